// The page: what is on screen, and what happens on every gesture. It asks the
// module through Engine and the agent through agent.js.

import { agent } from "./agent.js";
import { Details } from "./details.js";
import { Engine } from "./engine.js";
import { watchKeys, watchMinimap, watchPlots, watchSplitter } from "./gestures.js";
import { describe } from "./files.js";
import { encode, parse } from "./fields.js";
import { Knobs, label, nest } from "./knobs.js";
import { Lanes } from "./lanes.js";
import * as link from "./link.js";
import { Runner } from "./runner.js";
import { Sharing } from "./sharing.js";
import { $, bytes, count, el, nanos } from "./words.js";

const root = document.documentElement;
const least = 50; // nanoseconds that fill the width at the deepest zoom

class App {
  engine = new Engine();
  runner = new Runner();
  hasAgent = root.dataset.agent === "yes";
  view = null; // {t0, t1} in nanoseconds
  span = { t0: 0, t1: 1 }; // of the timeline
  home = 0; // where the first view begins
  hover = null;
  cursor = null;
  selection = null;
  lane = null; // the one the tables are about
  live = false; // something is being received or computed
  local = false; // a rerun in this tab is what is computed
  follow = true;
  current = null; // status of the timeline on screen
  base = null;
  runId = ""; // of the agent, when the timeline is one
  library = new Map(); // timelines of this tab: id -> {name, blob}
  blob = null; // what Save writes
  busy = 0;

  constructor() {
    this.lanes = new Lanes(this);
    this.details = new Details(this);
    this.knobs = new Knobs(this);
    this.sharing = new Sharing(this);
    watchPlots(this);
    watchMinimap(this);
    watchKeys(this);
    watchSplitter();
    this.#buttons();
    this.#drops();
    this.#events();
    this.wanted = link.read();
    if (root.dataset.module === "yes") this.engine.start();
    else root.dataset.idle = "true";
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.themeChanged());
  }

  get theme() {
    const chosen = root.dataset.theme;
    return (chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches) ? 1 : 0;
  }

  // instant is what tables and heads are about: the cursor, else the newest
  // moment of what is still coming in, else the peak.
  get instant() {
    return this.cursor ?? (this.live ? this.span.t1 : (this.current?.peakTime ?? this.span.t1));
  }

  // moments tells a log, whose failures have no times: they lie side by side.
  get moments() {
    return this.current?.origin === "log";
  }

  // moment is that instant in a question. Many events may share a nanosecond: a
  // p asks for the peak there, not for a failure that came with it.
  get moment() {
    const peak = this.cursor === null ? !this.live : this.atPeak;
    return `${Math.round(this.instant)}${peak ? "p" : ""}`;
  }

  #buttons() {
    const on = (id, f) => $(id).addEventListener("click", f);
    on("open", () => $("file").click());
    on("start-open", () => $("file").click());
    on("paste", () => this.pasteDialog());
    on("start-paste", () => this.pasteDialog());
    on("save", () => this.save());
    on("help", () => $("help-dialog").showModal());
    on("theme", () => {
      root.dataset.theme = this.theme ? "light" : "dark";
      try {
        localStorage.setItem("tideline-theme", root.dataset.theme);
      } catch {
        // Without storage the choice holds until the page is left.
      }
      this.themeChanged();
    });
    on("fit", () => this.fit());
    on("zoom-in", () => this.zoom(0.6));
    on("zoom-out", () => this.zoom(1.7));
    on("zoom-selection", () => this.zoomToSelection());
    on("to-peak", () => this.toPeak());
    on("next-oom", () => this.nextOOM());
    on("follow", () => this.toggleFollow());
    on("swap", () => this.swap());
    on("drop-base", () => this.#ask("drop-base"));
    $("file").addEventListener("change", () => {
      const [file] = $("file").files;
      if (file) this.openFile(file);
      $("file").value = "";
    });
    $("run-picker").addEventListener("change", (e) => this.pick(e.target.value));
    $("run-picker").addEventListener("focus", () => this.#runs());
    $("find").addEventListener("submit", (e) => {
      e.preventDefault();
      this.find($("find-text").value.trim());
    });
    $("paste-form").addEventListener("submit", (e) => {
      if (e.submitter?.value === "open") this.openLog($("paste-text").value, "pasted log");
    });
  }

  #drops() {
    let depth = 0;
    const files = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
    addEventListener("dragenter", (e) => {
      if (files(e)) $("drop").hidden = !++depth;
    });
    addEventListener("dragleave", (e) => {
      if (files(e)) $("drop").hidden = !(depth = Math.max(0, depth - 1));
    });
    addEventListener("dragover", (e) => files(e) && e.preventDefault());
    addEventListener("drop", (e) => {
      if (!files(e)) return;
      e.preventDefault();
      depth = 0;
      $("drop").hidden = true;
      const [file] = e.dataTransfer.files;
      if (file) this.openFile(file);
    });
    addEventListener("paste", (e) => {
      if (e.target.closest?.("input, textarea")) return;
      const text = e.clipboardData.getData("text/plain");
      if (text.length > 80) this.openLog(text, "pasted log");
    });
  }

  #events() {
    const on = (type, f) => this.engine.addEventListener(type, (e) => f(e.detail));
    on("ready", () => this.#ready());
    on("dead", (d) => this.#dead(d));
    on("turn", () => this.#idle());
    on("grown", (g) => this.#grown(g));
    on("drawn", (d) => d.name === "main" && this.#drawn(d));
    on("progress", (p) => this.#progress(p.done / p.of));
    on("stream", (s) => this.#stream(s));
    on("trouble", (e) => this.trouble(new Error(e)));
    addEventListener("hashchange", () => {
      this.wanted = link.read();
      if (this.wanted.share !== null && this.wanted.share !== this.sharing.field) this.sharing.open();
      else if (this.wanted.run && this.wanted.run !== this.runId) this.pick(`agent:${this.wanted.run}`);
      else this.#restore();
    });
  }

  async #ready() {
    this.lanes.offer();
    await this.#choices();
    root.dataset.ready = "true";
    this.#counted(() => this.sharing.start(root.dataset.share));
    const shared = (this.wanted?.share ?? null) !== null;
    if (shared) this.#counted(() => this.sharing.open());
    if (!this.hasAgent) return;
    await this.#runs();
    if (shared) return;
    if (this.wanted?.run) this.pick(`agent:${this.wanted.run}`);
    else {
      const files = await agent.files().catch(() => []);
      if (files?.length) this.pick(`agent:${files[0].id}`);
    }
  }

  // #counted does something that the page is not idle before the end of.
  async #counted(job) {
    this.busy++;
    try {
      return await job();
    } finally {
      this.busy--;
      this.#idle();
    }
  }

  // #choices starts the second worker and fills the form with what it knows.
  async #choices() {
    this.busy++;
    try {
      this.knobs.offer(await this.runner.start());
    } catch (e) {
      this.toast(`Reruns are not available: ${e.message}`, true);
    } finally {
      this.busy--;
      this.#idle();
    }
  }

  // #dead starts the module anew. What it held is gone, and is said so.
  #dead({ why, boot }) {
    if (boot) return this.toast(`The browser module did not start: ${why}`, true);
    this.deaths = (this.deaths ?? 0) + 1;
    if (this.deaths > 3) return this.toast(`The browser module stopped again: ${why}. Reload the page to go on.`, true);
    this.toast(`The browser module stopped (${why}) and was started anew. Open the timeline again.`, true);
    this.#clear();
    this.lanes.canvases();
    this.engine.start();
  }

  #clear() {
    this.view = this.current = this.base = this.cursor = this.selection = this.hover = null;
    this.live = false;
    this.runId = "";
    this.blob = null;
    this.lanes.key = "";
    $("timeline").hidden = $("inspector").hidden = true;
    $("start").hidden = false;
    $("run-facts").querySelectorAll(".fact").forEach((f) => (f.hidden = true));
    $("run-state").hidden = true;
  }

  // #idle tells tests that nothing is on its way.
  #idle() {
    root.dataset.idle = "false";
    clearTimeout(this.idleTimer);
    this.idleTimer = setTimeout(() => {
      const quiet = !this.engine.pending && !this.busy && !this.scalesWanted && !this.hoverWanted;
      root.dataset.idle = String(quiet);
      root.dataset.live = String(this.live);
      if (!quiet) this.#idle();
    }, 60);
  }

  // --- what the module tells

  #grown({ status, heap }) {
    this.heap = heap;
    const [current, base] = status.slots;
    if (!current) return;
    const first = !this.current || this.current.serial !== current.serial;
    const wasWhole = this.#whole();
    this.current = current;
    this.base = base;
    this.span = { t0: current.first, t1: Math.max(current.last, current.first + 1) };
    this.home = Math.min(current.begin ?? current.first, this.span.t1 - 1);
    if (first) {
      this.cursor = this.selection = null;
      this.everything = false;
      this.view = this.#start();
      if ((this.details.tab === "oom" && !current.ooms) || (this.details.tab === "compare" && !base)) this.details.choose("live");
      $("start").hidden = true;
      $("timeline").hidden = $("inspector").hidden = false;
    } else if ((this.follow && this.live) || wasWhole) {
      this.view = this.#start();
    }
    this.lanes.take(status.lanes);
    if (!this.lane || !status.lanes.some((l) => l.key === this.lane.key)) this.lane = status.lanes[0] ?? null;
    if (first) this.#restore();
    this.#facts();
    this.redraw(true);
    this.#tables();
  }

  // #skipWait leaves a long last wait for memory out of the first view.
  #skipWait() {
    const { active } = this.current;
    const { t0, t1 } = this.span;
    if (this.#whole() && active < t0 + 0.6 * (t1 - t0)) this.show(this.view.t0, active + 0.07 * (active - this.view.t0));
  }

  #whole() {
    return this.view && this.view.t0 <= this.home && this.view.t1 >= this.span.t1;
  }

  // #start is the first view, without the emptiness before the accelerator's
  // first work, until everything is asked for.
  #start() {
    return { t0: this.everything ? this.span.t0 : this.home, t1: this.span.t1 };
  }

  #facts() {
    const c = this.current;
    const fact = (id, value, note) => {
      const f = $(`fact-${id}`);
      f.hidden = value === null || value === undefined;
      if (!f.hidden) f.querySelector("dd").replaceChildren(value, note ? el("small", {}, ` ${note}`) : "");
    };
    const metric = (name) => c.metrics.find((m) => m[0] === name)?.[1];
    fact("step", c.steps ? `${count(Math.max(0, c.step))} / ${count(c.steps)}` : c.step >= 0 ? count(c.step) : null);
    fact("accuracy", metric("accuracy") === undefined ? null : `${(100 * metric("accuracy")).toFixed(1)} %`);
    fact("loss", metric("loss") === undefined ? null : metric("loss").toFixed(3));
    const log = c.origin === "log"; // a moment: no peak, no time
    fact("peak", c.peak && !log ? bytes(c.peak) : null);
    fact("elapsed", c.last > c.first && !log ? nanos(c.last - c.first) : null, c.modelled ? "modelled" : "");
    const chip = $("run-state");
    chip.hidden = false;
    const state = this.live ? "running" : c.state;
    chip.dataset.state = { "out of memory": "oom", "out of memory log": "oom" }[state] ?? state;
    chip.textContent = this.live && c.origin === "file" ? "loading" : this.live ? (c.origin === "rerun" ? "computing" : "live") : state;
    $("save").disabled = !this.blob;
    this.sharing.allow(!!this.blob);
    $("next-oom").hidden = !c.ooms;
    $("follow").hidden = !(this.live && c.origin === "live");
    this.rerunless = log ? "A log has no workload to rerun" : c.origin === "file" && !this.live && !c.settings ? "This file names no workload to rerun" : "";
    $("rerun").disabled = !!this.rerunless;
    $("rerun").title = this.rerunless || "Rerun in the browser (r)";
    this.details.badge("oom", c.ooms ? String(c.ooms) : "");
    $("versus").hidden = !this.base;
    if (this.base) {
      for (const [id, s] of [["versus-a", c], ["versus-b", this.base]]) {
        $(id).textContent = s.name;
        $(id).title = s.name;
      }
    }
    document.title = `${c.name} · Tideline`;
    this.#picker();
  }

  #drawn() {
    // Measured from the file's bytes to the whole picture, for the tests.
    if (this.openedAt && !this.live) {
      this.firstPictureMs = performance.now() - this.openedAt;
      this.openedAt = 0;
    }
    this.#wantScales();
  }

  // --- view

  show(t0, t1) {
    if (!this.view) return;
    const { span } = this;
    const whole = span.t1 - span.t0;
    let w = Math.min(Math.max(t1 - t0, Math.min(least, whole)), whole);
    t0 = Math.min(Math.max(t0, span.t0), span.t1 - w);
    this.view = { t0, t1: t0 + w };
    if (this.live && this.follow && !this.#whole()) this.toggleFollow(false);
    this.redraw(false);
    this.remember();
  }

  zoom(factor, around) {
    if (!this.view) return;
    const { t0, t1 } = this.view;
    const at = around ?? (this.cursor !== null && this.cursor > t0 && this.cursor < t1 ? this.cursor : (t0 + t1) / 2);
    const w = Math.min(Math.max((t1 - t0) * factor, least), this.span.t1 - this.span.t0);
    const share = (at - t0) / (t1 - t0);
    this.show(at - share * w, at + (1 - share) * w);
  }

  pan(share) {
    if (!this.view) return;
    const by = share * (this.view.t1 - this.view.t0);
    const { span, view } = this;
    const clamped = Math.min(Math.max(by, span.t0 - view.t0), span.t1 - view.t1);
    this.show(view.t0 + clamped, view.t1 + clamped);
  }

  // fit goes back to the first view, and from there to everything.
  fit() {
    this.everything = this.view?.t0 === this.home && this.view.t1 === this.span.t1;
    this.show(this.#start().t0, this.span.t1);
  }

  select(a, b) {
    this.selection = a === null ? null : { t0: Math.min(a, b), t1: Math.max(a, b) };
    $("zoom-selection").disabled = !this.selection;
    this.lanes.overlay();
  }

  selected() {
    this.#tables();
  }

  zoomToSelection() {
    if (!this.selection) return;
    const { t0, t1 } = this.selection;
    this.select(null);
    this.show(t0, t1);
    this.#tables();
  }

  goto(t, t1, peak = false) {
    const w = this.view.t1 - this.view.t0;
    if (t1 !== undefined && t1 > t) {
      const pad = (t1 - t) * 0.5;
      this.show(t - pad, t1 + pad);
    } else if (t < this.view.t0 || t > this.view.t1) this.show(t - w / 2, t + w / 2);
    this.moveCursor(t, peak);
  }

  // redraw paints now: the pictures in the worker, the rest here.
  redraw(all) {
    if (!this.view) return;
    this.allWanted ||= all;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (!this.view) return;
      this.lanes.draw(this.allWanted);
      this.allWanted = false;
      this.lanes.overlay();
      this.#idle();
    });
  }

  #wantScales() {
    if (this.scalesWanted) return;
    this.scalesWanted = true;
    setTimeout(async () => {
      this.scalesWanted = false;
      if (!this.view || !this.engine.up) return;
      try {
        this.lanes.scales(await this.engine.ask("scales", Math.round(this.view.t0), Math.round(this.view.t1)));
        if (this.hover === null) this.#values();
      } catch {
        // The module died; that is told elsewhere.
      }
    }, 90);
  }

  async #values() {
    const at = await this.engine.ask("at", this.moment).catch(() => null);
    if (at) this.lanes.values(at);
  }

  // --- pointer and cursor

  point(x, y, clientX, clientY) {
    if (!this.view) return;
    this.hover = this.lanes.time(x);
    this.lanes.overlay();
    this.pointer = { x, y, clientX, clientY };
    if (this.hoverWanted) return;
    this.hoverWanted = true;
    requestAnimationFrame(async () => {
      const p = this.pointer;
      try {
        const d = this.lanes.dpr;
        const answer = p && (await this.engine.ask("hover", Math.round(p.x * d), Math.round(p.y * d), Math.round(this.lanes.time(p.x))));
        if (answer && this.hover !== null) {
          this.lanes.values(answer.at);
          this.#tip(answer.hit, p);
        }
      } catch {
        // As in #wantScales.
      }
      this.hoverWanted = false;
      this.#idle();
    });
  }

  unpoint() {
    if (this.hover === null) return;
    this.hover = null;
    this.pointer = null;
    $("tip").hidden = true;
    this.lanes.overlay();
    this.#values();
  }

  #tip(hit, p) {
    const tip = $("tip");
    tip.hidden = !hit;
    if (!hit) return;
    tip.replaceChildren(el("b", {}, hit.title), el("dl", {}, ...hit.lines.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])));
    const w = tip.offsetWidth;
    const h = tip.offsetHeight;
    const x = p.clientX + 16 + w > innerWidth ? p.clientX - w - 12 : p.clientX + 16;
    const y = Math.min(p.clientY + 14, innerHeight - h - 8);
    tip.style.transform = `translate(${Math.max(4, Math.round(x))}px, ${Math.round(y)}px)`;
  }

  choose(lane) {
    if (!lane || lane === this.lane) return;
    this.lane = lane;
    if (this.details.tab === "twin" || this.details.tab !== "transfers") this.#tables();
  }

  moveCursor(t, peak = false) {
    this.atPeak = peak;
    this.cursor = Math.min(Math.max(t, this.span.t0), this.span.t1);
    this.lanes.overlay();
    this.#values();
    this.#tables();
    this.remember();
    $("announce").textContent = this.moments ? "Cursor moved" : `Cursor at ${nanos(this.cursor)}`;
  }

  async stepCursor(dir) {
    const at = this.cursor ?? this.view.t0;
    const { t } = await this.engine.ask("step", Math.round(at), dir, this.lane?.key ?? "");
    if (t !== undefined) this.goto(t);
  }

  async toPeak() {
    const { t } = await this.engine.ask("peak", this.lane?.key ?? "");
    if (t === undefined) return;
    this.details.choose("peak");
    this.goto(t, undefined, true);
  }

  async nextOOM(dir = 1) {
    const { t } = await this.engine.ask("next-oom", Math.round(this.cursor ?? -1), dir);
    if (t === undefined) return this.toast("No request failed in this timeline.");
    this.details.choose("oom");
    this.goto(t);
  }

  toggleFollow(on = !this.follow) {
    this.follow = on;
    $("follow").setAttribute("aria-pressed", on);
    if (on && this.view) this.show(this.#start().t0, this.span.t1);
  }

  escape() {
    if (this.selection) {
      this.select(null);
      this.#tables();
    } else if (this.cursor !== null) {
      this.cursor = null;
      this.lanes.overlay();
      this.#tables();
      this.remember();
    }
  }

  // #tables refreshes the details soon; while data pour in, a few times a
  // second is enough.
  #tables() {
    const wait = this.live ? 300 : 30;
    if (this.tablesTimer) return;
    this.busy++;
    this.tablesTimer = setTimeout(async () => {
      this.tablesTimer = 0;
      await this.details.refresh();
      this.busy--;
      this.#idle();
    }, wait);
  }

  async find(text) {
    if (!text || !this.view) return;
    const { hits, more } = await this.engine.ask("find", text);
    if (!hits.length) return this.toast(`Nothing named “${text}”.`);
    // The same words again go on to the next hit.
    this.found = this.found?.text === text ? { text, i: (this.found.i + 1) % hits.length } : { text, i: 0 };
    const h = hits[this.found.i];
    this.goto(h.t, h.t1);
    this.toast(`${this.found.i + 1} of ${hits.length}${more ? "+" : ""}: ${h.name}${h.size ? `, ${bytes(h.size)}` : ""}`);
  }

  // --- opening

  // openFile opens a timeline or a log; share is the field of the link that it
  // came by.
  async openFile(file, share = "") {
    if (!this.engine.up) return this.toast("The browser module is not running.", true);
    root.dataset.idle = "false";
    const head = new Uint8Array(await file.slice(0, 256).arrayBuffer());
    const binary = head.some((b) => b === 0);
    if (!binary) {
      if (file.size > 64 << 20) return this.toast("This text is larger than 64 MiB: cut it down to the part around the failure.", true);
      return this.openLog(await file.text(), file.name, share);
    }
    await this.#load(file, file.name, "", share);
  }

  // #leave lets go of a stream. The run itself goes on at the agent.
  #leave(share = "") {
    this.sharing.cancel();
    this.sharing.field = share;
    this.engine.tell({ t: "unstream" });
    this.streams++;
    this.live = false;
  }

  async #load(blob, name, id, share = "") {
    const before = { runId: this.runId, blob: this.blob };
    const field = this.sharing.field;
    this.#leave(share);
    this.runId = "";
    this.blob = null;
    this.live = true;
    this.follow = true;
    this.current = null;
    this.openedAt = performance.now();
    await this.#work(async () => {
      let end;
      try {
        end = await this.engine.call({ t: "open", slot: 0, name, blob });
      } catch (e) {
        Object.assign(this, before); // what was on screen is still there
        this.sharing.field = field;
        throw new Error(await describe(blob, name, e.message));
      }
      this.live = false;
      this.blob = blob;
      this.openMs = performance.now() - this.openedAt;
      this.#remember(id || `file:${name}`, name, blob);
      if (end.warning) this.toast(end.warning, true);
      this.remember();
      await this.#settings();
    });
  }

  async openLog(text, name, share = "") {
    this.#leave(share);
    await this.#work(async () => {
      const blob = new Blob([text], { type: "text/plain" });
      const end = await this.engine.call({ t: "log", slot: 0, name, text }).catch(async (e) => {
        throw new Error(await describe(blob, name, e.message));
      });
      this.runId = "";
      this.blob = blob;
      this.#remember(`file:${name}`, name, this.blob);
      if (end.warning) this.toast(end.warning);
      this.details.choose("oom");
      const { t } = await this.engine.ask("next-oom", -1, 1);
      if (t !== undefined) this.moveCursor(t);
    });
  }

  pasteDialog() {
    $("paste-text").value = "";
    $("paste-dialog").showModal();
  }

  async save() {
    if (!this.blob) return;
    const log = this.current.origin === "log";
    const name = this.current.name.replace(/\.(tideline|txt|log)$/, "").replace(/[^\w.-]+/g, "-") || "run";
    const a = el("a", { href: URL.createObjectURL(this.blob), download: `${name}.${log ? "txt" : "tideline"}` });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
    this.toast(`Saved ${a.download}, ${bytes(this.blob.size)}`);
  }

  #remember(id, name, blob) {
    this.library.set(id, { name, blob });
    this.localId = id;
    this.#picker();
  }

  // working shows the progress of a job that another part of the page does.
  async working(job) {
    await this.#work(() => job((share) => this.#progress(share)));
  }

  async #work(job) {
    this.busy++;
    $("toast").classList.remove("on");
    this.#idle();
    this.#progress(0);
    try {
      await job();
    } catch (e) {
      this.trouble(e);
    } finally {
      this.busy--;
      this.live = this.runId ? this.live : false;
      this.#progress(null);
      if (this.current) this.#facts();
      this.#idle();
    }
  }

  #progress(share) {
    const p = $("progress");
    p.hidden = share === null;
    p.firstChild.style.width = `${100 * (share ?? 0)}%`;
    p.setAttribute("aria-valuenow", Math.round(100 * (share ?? 0)));
  }

  // --- running

  async demo(d) {
    this.knobs.show(parse(d.fields));
    if (this.hasAgent) await this.runOnAgent();
    else await this.rerun(d.title, true);
  }

  async rerun(name, fresh = false) {
    if (!this.engine.up) return;
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    if (!fresh && this.rerunless) return this.toast(this.rerunless);
    const before = this.#identity;
    this.#leave();
    const fields = this.knobs.collect();
    this.knobs.problems(null);
    const title = name || rerunName(this.knobs, this.current);
    await this.#work(async () => {
      this.live = this.local = true;
      this.#running(true);
      this.blob = null;
      this.runId = "";
      const started = performance.now();
      try {
        const ran = await this.runner.run(encode(fields),
          () => this.engine.tell({ t: "begin", name: title, fresh }),
          (bytes) => this.engine.tell({ t: "piece", bytes }, [bytes.buffer]));
        if (ran.problems || ran.error) {
          Object.assign(this, { runId: before.runId, blob: before.blob });
          return this.knobs.problems(ran.problems ?? [{ message: ran.error }]);
        }
        this.live = false;
        const end = { ...(await this.engine.call({ t: "done" })), ...ran };
        this.blob = end.blob;
        this.rerunMs = performance.now() - started;
        this.other = before;
        this.#remember(`rerun:${++this.reruns}`, title, end.blob);
        this.remember();
        await this.#settings();
        if (this.base) this.details.choose("compare");
        if (this.current.ooms) {
          this.details.choose("oom");
          this.#skipWait();
        }
        if (end.note) this.toast(end.note);
      } finally {
        this.local = false;
        this.#running(false);
      }
    });
  }

  reruns = 0;
  streams = 0;

  async runOnAgent() {
    if (!this.hasAgent) return;
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    this.knobs.problems(null);
    await this.#work(async () => {
      try {
        const fields = this.knobs.collect();
        const { problems } = await this.runner.check(encode(fields));
        if (problems) return this.knobs.problems(problems);
        const run = await agent.start(nest(fields));
        await this.#runs();
        await this.pick(`agent:${run.id}`, true);
      } catch (e) {
        this.knobs.problems(e.problems ?? [{ message: e.message }]);
      }
    });
  }

  async stop() {
    if (this.runId) await agent.stop(this.runId).catch((e) => this.trouble(e));
    else this.runner.stop();
  }

  #running(on) {
    $("stop").hidden = !on;
    $("rerun").hidden = on && this.local;
    $("run-agent").hidden = on || !this.hasAgent;
    this.knobs.changed();
  }

  // #settings puts the settings of the timeline on screen into the form.
  async #settings() {
    const { fields } = await this.engine.ask("settings");
    if (fields) this.knobs.show(parse(fields));
  }

  async pick(value) {
    const at = value.indexOf(":");
    const kind = value.slice(0, at);
    const id = value.slice(at + 1);
    if (kind !== "agent") {
      const local = this.library.get(value);
      if (!local) return;
      if (local.blob.type === "text/plain") return this.openLog(await local.blob.text(), local.name);
      return this.#load(local.blob, local.name, value);
    }
    const info = this.agentRuns?.find((r) => r.id === id);
    this.sharing.cancel();
    this.sharing.field = "";
    this.current = null;
    this.runId = id;
    this.blob = null;
    this.live = true;
    this.follow = true;
    $("follow").setAttribute("aria-pressed", "true");
    this.#running(info?.state === "running" || !info);
    this.engine.tell({ t: "stream", id: ++this.streams, slot: 0, url: agent.streamURL(id), name: info?.name ?? `run ${id}` });
    this.remember();
    this.#picker();
  }

  async #stream(s) {
    if (s.id !== this.streams) return; // of a stream that was left
    switch (s.state) {
      case "hello":
        this.#running(s.run?.state === "running");
        this.knownSettings = false;
        return;
      case "retry":
        return this.toast(`The connection broke; trying again in ${(s.wait / 1000).toFixed(1)} s.`);
      case "end":
      case "failed":
      case "lost":
        this.live = false;
        this.blob = s.blob;
        this.#running(false);
        if (s.state !== "end") this.toast(`The stream ended early: ${s.reason}`, true);
        if (this.current) {
          this.#facts();
          this.redraw(true);
          await this.#settings().catch(() => {});
          if (this.current.ooms) {
            this.details.choose("oom");
            this.#skipWait();
          }
        }
        await this.#runs();
        this.#tables();
    }
  }

  async #runs() {
    if (!this.hasAgent) return;
    const [runs, files] = await Promise.all([agent.runs().catch(() => []), agent.files().catch(() => [])]);
    this.agentRuns = [...(runs ?? []), ...(files ?? [])];
    this.#picker();
  }

  #picker() {
    const select = $("run-picker");
    const groups = [];
    if (this.agentRuns?.length) {
      groups.push(el("optgroup", { label: "On the agent" }, ...this.agentRuns.map((r) => el("option", { value: `agent:${r.id}` }, `${r.name} #${r.id.slice(0, 8)} · ${r.state}`))));
    }
    if (this.library.size) {
      groups.push(el("optgroup", { label: "In this tab" }, ...[...this.library].map(([id, l]) => el("option", { value: id }, l.name))));
    }
    const now = this.runId ? `agent:${this.runId}` : this.current ? this.localId : "";
    const key = JSON.stringify([this.agentRuns?.map((r) => [r.id, r.state]), [...this.library.keys()], now, this.current?.name]);
    if (key === this.pickerKey) return;
    this.pickerKey = key;
    select.disabled = !groups.length;
    if (!now || ![...groups].some((g) => [...g.children].some((o) => o.value === now))) {
      groups.unshift(el("option", { value: "" }, this.current?.name ?? "No timeline open"));
    }
    select.replaceChildren(...groups);
    select.value = now && [...select.options].some((o) => o.value === now) ? now : "";
  }

  // --- A against B

  async #ask(command) {
    await this.#work(async () => {
      const status = await this.engine.ask(command);
      this.#grown({ status, heap: this.heap });
    });
  }

  // #identity is where the timeline on screen comes from.
  get #identity() {
    const { runId, localId, blob } = this;
    return { runId, localId, blob, field: this.sharing.field };
  }

  async swap() {
    if (!this.base || this.live) return;
    this.current = null;
    const mine = this.#identity;
    const { field = "", ...other } = this.other ?? { runId: "", localId: "", blob: null };
    Object.assign(this, other);
    this.sharing.field = field;
    this.other = mine;
    await this.#ask("swap");
    await this.#settings();
    this.remember();
  }

  // --- small things

  themeChanged() {
    this.engine.ask("colors", this.theme).then((c) => this.lanes.recolor(c.lanes)).catch(() => {});
    this.redraw(true);
    this.#tables();
  }

  remember() {
    link.write({ run: this.runId, share: this.sharing.field, view: this.view, whole: this.#whole(), cursor: this.cursor, tab: this.details.tab, lane: "" });
  }

  // #restore brings back the view that the address bar asks for.
  #restore() {
    const w = this.wanted;
    if (!w || !this.view) return;
    if (w.tab) this.details.choose(w.tab);
    if (w.t0 !== null && w.t1 !== null && w.t1 <= this.span.t1 * 1.001) this.show(w.t0, w.t1);
    if (w.cursor !== null) this.moveCursor(w.cursor);
    this.wanted = null;
  }

  trouble(e) {
    this.toast(e.message, true);
  }

  toast(text, bad = false) {
    const t = $("toast");
    t.textContent = text;
    t.classList.toggle("bad", bad);
    t.classList.add("on");
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => t.classList.remove("on"), bad ? 9000 : 3800);
  }
}

function rerunName(knobs, current) {
  const what = knobs.list?.filter(([k]) => k !== "train.learning_rate").map(([k, , b]) => `${label(k)} ${b}`).join(", ");
  const fields = knobs.collect();
  const name = fields.get("name") || fields.get("model");
  return what ? `${name}: ${what}` : `${name}, again`;
}

globalThis.tideline = new App();
