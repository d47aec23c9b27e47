// The page: what is on screen, and what the module tells of it. What happens on
// gestures is in view.js, opening.js and running.js, whose methods are App's. It
// asks the module through Engine and the agent through agent.js.

import { agent } from "./agent.js";
import { watchButtons, watchDrops } from "./controls.js";
import { Details } from "./details.js";
import { Engine } from "./engine.js";
import { watchKeys, watchMinimap, watchPlots, watchSplitter } from "./gestures.js";
import { Knobs } from "./knobs.js";
import { Lanes } from "./lanes.js";
import * as link from "./link.js";
import { opening } from "./opening.js";
import { Reader } from "./reader.js";
import { Runner } from "./runner.js";
import { running } from "./running.js";
import { Sharing } from "./sharing.js";
import { Side } from "./side.js";
import { viewing } from "./view.js";
import { $, bytes, count, el, nanos } from "./words.js";

const root = document.documentElement;
const moment = 1e6; // nanoseconds that a file of a single moment is drawn as
const leisure = 400; // milliseconds of nothing to do, after which the reader is started

class App {
  engine = new Engine();
  runner = new Runner();
  reader = new Reader();
  hasAgent = root.dataset.agent === "yes";
  view = null; // {t0, t1} in nanoseconds
  span = { t0: 0, t1: 1 }; // of the timeline
  home = 0; // where the first view begins
  window = null; // {t0, t1} in which a run that goes on is followed: it ends a little after now
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
  reading = false; // another program's file is being read
  told = null; // what another program's file means, when the timeline is of one
  linked = false; // the tab is the one that the address bar asked for
  busy = 0;
  reruns = 0;
  streams = 0;

  constructor() {
    this.lanes = new Lanes(this);
    this.details = new Details(this);
    this.knobs = new Knobs(this);
    this.sharing = new Sharing(this);
    this.side = new Side(this);
    watchPlots(this);
    watchMinimap(this);
    watchKeys(this);
    watchSplitter();
    watchButtons(this);
    watchDrops(this);
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
  // moment of what is still coming in, else the failure that ended the run, else
  // the peak.
  get instant() {
    return this.cursor ?? (this.live ? this.span.t1 : (this.current?.failure ?? this.current?.peakTime ?? this.span.t1));
  }

  // moments tells a log, whose failures have no times: they lie side by side.
  get moments() {
    return this.current?.origin === "log";
  }

  // still tells what has no times to show: moments, or a single one.
  get still() {
    return this.moments || (!!this.current && !this.live && this.current.last <= this.current.first);
  }

  // moment is that instant in a question. Many events may share a nanosecond: a
  // p asks for the peak there, not for a failure that came with it.
  get moment() {
    const peak = this.cursor === null ? !this.live && this.current?.failure === undefined : this.atPeak;
    return `${Math.round(this.instant)}${peak ? "p" : ""}`;
  }

  #events() {
    const on = (type, f) => this.engine.addEventListener(type, (e) => f(e.detail));
    on("ready", () => this.#ready());
    on("dead", (d) => this.#dead(d));
    on("turn", () => this.idle());
    on("grown", (g) => this.grown(g));
    on("drawn", (d) => d.name === "main" && this.#drawn(d));
    on("progress", (p) => this.progress(p.done / p.of));
    on("sifted", (s) => this.sifted(s));
    on("stream", (s) => this.streamed(s));
    on("trouble", (e) => this.trouble(new Error(e)));
    addEventListener("hashchange", () => {
      this.wanted = link.read();
      if (this.wanted.share !== null && this.wanted.share !== this.sharing.field) this.sharing.open();
      else if (this.wanted.run && this.wanted.run !== this.runId) this.pick(`agent:${this.wanted.run}`);
      else this.restore();
    });
  }

  async #ready() {
    this.lanes.offer();
    if (this.details.filter) this.sift();
    await this.#choices();
    root.dataset.ready = "true";
    this.#counted(() => this.sharing.start(root.dataset.share));
    const shared = (this.wanted?.share ?? null) !== null;
    if (shared) this.#counted(() => this.sharing.open());
    if (!shared && this.wanted?.file && !this.wanted.run) {
      $("start-lost").hidden = false;
      $("start-lost").replaceChildren("This view was of ", el("b", {}, this.wanted.file), ", which was in a tab of yours alone: open it again to see it, or use Share for a link that works.");
    }
    if (!this.hasAgent) return;
    await this.listRuns();
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
      this.idle();
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
      this.idle();
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
    this.live = this.sifting = false;
    this.runId = "";
    this.blob = this.told = null;
    this.lanes.key = "";
    $("timeline").hidden = $("inspector").hidden = true;
    this.reading = false;
    this.foreign(false);
    $("start").hidden = false;
    $("run-facts").querySelectorAll(".fact").forEach((f) => (f.hidden = true));
    $("run-state").hidden = true;
  }

  // idle tells tests that nothing is on its way, and whether a run is live: at
  // once, for while one is followed its pictures put off what waits for quiet.
  idle() {
    root.dataset.idle = "false";
    root.dataset.live = String(this.live);
    clearTimeout(this.idleTimer);
    clearTimeout(this.leisureTimer);
    this.idleTimer = setTimeout(() => {
      const quiet = !this.engine.pending && !this.busy && !this.sifting && !this.scalesWanted && !this.hoverWanted;
      root.dataset.idle = String(quiet);
      if (!quiet) this.idle();
      else if (this.engine.up && !this.live) this.leisureTimer = setTimeout(() => this.reader.foresee(), leisure);
    }, 60);
  }

  // --- what the module tells

  grown({ status, window, heap }) {
    this.heap = heap;
    this.window = window;
    const [current, base] = status.slots;
    if (!current) return;
    const first = !this.current || this.current.serial !== current.serial;
    const wasWhole = this.whole();
    this.current = current;
    this.base = base;
    this.span = { t0: current.first, t1: current.last > current.first ? current.last : current.first + moment };
    this.home = Math.min(current.begin ?? current.first, this.span.t1 - 1);
    if (first) {
      this.cursor = this.selection = null;
      this.everything = false;
      this.view = this.startView();
      this.lanes.values(null); // what the heads and the tip say is of another timeline
      this.unpoint();
      $("tip").hidden = true;
      if ((this.details.tab === "oom" && !current.ooms) || (this.details.tab === "compare" && !base)) this.details.choose("live");
      $("start").hidden = true;
      $("timeline").hidden = $("inspector").hidden = false;
    } else if ((this.follow && this.live) || wasWhole) {
      this.view = this.startView();
    }
    this.lanes.take(status.lanes);
    this.lanes.told(current.message);
    if (!this.lane || !status.lanes.some((l) => l.key === this.lane.key)) this.lane = status.lanes[0] ?? null;
    if (first) this.restore();
    this.facts();
    this.redraw(true);
    this.tables();
  }

  // failed shows why a run ended, unless a link asked for something else, and
  // leaves a long last wait for memory out of the first view.
  failed() {
    if (!this.linked) this.details.choose("oom");
    this.linked = false;
    this.skipWait();
  }

  skipWait() {
    const { active } = this.current;
    const { t0, t1 } = this.span;
    if (this.whole() && active < t0 + 0.6 * (t1 - t0)) this.show(this.view.t0, active + 0.07 * (active - this.view.t0));
  }

  whole() {
    return this.view && this.view.t0 <= this.home && this.view.t1 >= this.span.t1;
  }

  // startView is the first view, without the emptiness before the accelerator's
  // first work, until everything is asked for.
  startView() {
    const { t0, t1 } = this.live && this.current?.origin === "live" && this.window?.t1 ? this.window : { t0: this.home, t1: this.span.t1 };
    return { t0: this.everything ? this.span.t0 : t0, t1 };
  }

  // followed says how the worker is to follow the run on screen by itself: from
  // the home of its view, from its beginning, or not.
  get followed() {
    if (!this.live || !this.follow || this.current?.origin !== "live" || !this.whole()) return "";
    return this.everything ? "all" : "home";
  }

  facts() {
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
    fact("elapsed", c.last > c.first && !log ? nanos(c.last - c.first) : null, [c.modelled && "modelled", c.waited && `${nanos(c.waited)} of it waiting for memory`].filter(Boolean).join(", "));
    const chip = $("run-state");
    chip.hidden = false;
    const state = this.live ? "running" : c.state;
    chip.dataset.state = { "out of memory": "oom", "out of memory log": "oom" }[state] ?? state;
    chip.textContent = this.live && c.origin === "file" ? "loading" : this.live ? (c.origin === "rerun" ? "computing" : "live") : state;
    $("save").disabled = !this.blob;
    this.sharing.allow(!!this.blob);
    $("next-oom").hidden = !c.ooms;
    $("follow").hidden = !(this.live && c.origin === "live");
    this.rerunless = log ? "A log has no workload to rerun" : !this.live && (c.origin === "file" && !c.settings || this.modelless === c.serial) ? "This file names no workload to rerun" : "";
    $("rerun").disabled = !!this.rerunless;
    $("rerun").title = this.rerunless || "Rerun in the browser (r)";
    $("run-agent").disabled = !!this.rerunless;
    $("run-agent").title = this.rerunless || "Run on the agent (Shift+R)";
    this.foreign(!!this.rerunless || this.reading);
    document.querySelector(".desk").toggleAttribute("data-bare", !!this.told?.readings.length && !this.live && this.lanes.list.every((l) => this.moments && l.kind === "sample"));
    $("tab-reading").hidden = !this.told?.readings.length;
    this.details.badge("reading", this.told?.readings.length > 1 ? String(this.told.readings.length) : "");
    if (this.details.tab === "reading" && $("tab-reading").hidden && !this.live) this.details.choose("live");
    this.details.badge("oom", c.ooms ? String(c.ooms) : "");
    $("versus").hidden = !this.base;
    if (this.base) {
      for (const [id, s] of [["versus-a", c], ["versus-b", this.base]]) {
        $(id).textContent = s.name;
        $(id).title = s.name;
      }
    }
    document.title = `${c.name} · Tideline`;
    this.picker();
  }

  // foreign hides the settings of a run beside a file that names none; a button
  // brings them, and the demos, back.
  foreign(on, told = !!this.told?.readings.length || this.reading) {
    const desk = document.querySelector(".desk");
    desk.toggleAttribute("data-told", told);
    if (on === desk.hasAttribute("data-foreign")) return;
    desk.toggleAttribute("data-foreign", on);
    this.showKnobs(false);
    $("show-knobs").hidden = !on;
  }

  showKnobs(on) {
    document.querySelector(".desk").toggleAttribute("data-knobs", on);
    $("show-knobs").setAttribute("aria-expanded", on);
  }

  #drawn({ follow, t0, t1 }) {
    // The worker knows first when a followed run has outgrown its window.
    if (follow && follow === this.followed && (t0 !== this.view.t0 || t1 !== this.view.t1)) {
      this.view = { t0, t1 };
      this.lanes.overlay();
    }
    // Measured from the file's bytes to the whole picture, for the tests.
    if (this.openedAt && !this.live) {
      this.firstPictureMs = performance.now() - this.openedAt;
      this.openedAt = 0;
    }
    this.wantScales();
  }

  // identity is where the timeline on screen comes from.
  get identity() {
    const { runId, localId, blob, told } = this;
    return { runId, localId, blob, told, field: this.sharing.field };
  }

  // --- small things

  themeChanged() {
    this.engine.ask("colors", this.theme).then((c) => this.lanes.recolor(c.lanes)).catch(() => {});
    this.redraw(true);
    this.tables();
  }

  remember() {
    link.write({ run: this.runId, file: this.current?.name ?? "", share: this.sharing.field, view: this.view, whole: this.whole(), cursor: this.cursor, selection: this.selection, lane: "", ...this.details.state });
  }

  // restore brings back the view that the address bar asks for.
  restore() {
    const w = this.wanted;
    if (!w || !this.view) return;
    if (w.file && w.file !== this.current.name) { // a view of something else
      this.wanted = null;
      return;
    }
    if (w.selection && w.selection.t1 <= this.span.t1 * 1.001) this.select(w.selection.t0, w.selection.t1);
    this.details.recall(w);
    if (w.tab) {
      this.details.choose(w.tab);
      this.linked = true;
    }
    // What the link is about may not have arrived yet.
    if (this.live && Math.max(w.t1 ?? 0, w.cursor ?? 0) > this.span.t1) {
      w.tab = "";
      return;
    }
    if (w.t0 !== null && w.t1 !== null && w.t1 <= this.span.t1 * 1.001) this.show(w.t0, w.t1);
    if (w.cursor !== null) this.moveCursor(w.cursor);
    this.wanted = null;
  }

  trouble(e) {
    this.toast(e.message, true);
  }

  toast(text, bad = false) {
    const t = $("toast");
    t.replaceChildren(...shortened(text));
    t.classList.toggle("bad", bad);
    t.classList.add("on");
    clearTimeout(this.toastTimer);
    this.toastTimer = setTimeout(() => t.querySelector("details[open]") ?? t.classList.remove("on"), bad ? 9000 : 3800);
  }
}

// shortened is a long message's first sentence, and the rest to be unfolded. Its
// text as a whole stays the message: the word to unfold it by is the style's.
function shortened(text) {
  const cut = [...text.matchAll(/[.;]\s|\n/g)].map((m) => m.index + 1).find((i) => i > 12);
  if (text.length <= 170 || !cut) return [text];
  return [el("p", {}, text.slice(0, cut)), " ", el("details", {}, el("summary", { "aria-label": "More" }), text.slice(cut).trim())];
}

Object.assign(App.prototype, viewing, opening, running);

globalThis.tideline = new App();
