// Opening, keeping and saving timelines, and the progress of what takes a
// while. These are methods of App.

import { describe, isOwn, isText } from "./files.js";
import { distinct } from "./side.js";
import { $, bytes, el } from "./words.js";

export const opening = {
  // openFile opens a file of any kind: timelines here, all others by the reader.
  // share is the field of the link that it came by.
  async openFile(file, share = "") {
    if (!this.engine.up) return this.toast("The browser module is not running.", true);
    document.documentElement.dataset.idle = "false";
    if (await isOwn(file)) return this.load(file, file.name, "", share);
    await this.read(file, file.name, share);
  },

  // openFiles opens what came at once: texts as if they were pasted one after the
  // other, unless their names tell three or more ranks; else the first with the
  // second as the base that it is compared with, and more side by side.
  async openFiles(files) {
    const [first, second, third] = files;
    if (!second) return first && this.openFile(first);
    const texts = (await Promise.all(files.map(isText))).every(Boolean);
    if (texts && !(third && this.engine.up && (await this.runner.ranked(files.map((f) => f.name)).catch(() => false)))) {
      return this.openFile(new File(files.flatMap((f) => [f, "\n"]), `${first.name} and ${files.length - 1} more`, { type: "text/plain" }));
    }
    if (!this.engine.up) return this.toast("The browser module is not running.", true);
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    if (third) return this.openMany(files);
    let base = null;
    await this.work(async () => {
      base = await this.timelineOf(second);
    });
    await this.openFile(first);
    if (!base || !this.current) return;
    if (this.moments || base.told?.origin === "log") return this.toast(`${second.name} was left out: a log tells moments, which are not compared.`, true);
    await this.work(async () => {
      await this.engine.call({ t: "open", slot: 1, name: second.name, origin: base.told?.origin, blob: base.blob });
      this.library.set(`file:${second.name}`, { name: second.name, ...base });
      this.other = { runId: "", localId: `file:${second.name}`, field: "", ...base };
    });
  },

  // openMany shows the first of many files that can be read, and all side by side.
  async openMany(files) {
    const { kept, over } = distinct(files);
    this.side.take(kept);
    for (const file of kept) {
      await this.openFile(file);
      if (this.localId === `file:${file.name}` && this.current) break;
    }
    if (over) this.toast(`${kept.length} files were taken, ${over} more left out.`, true);
    this.details.choose("files");
    await this.side.survey();
  },

  // beside shows another of the files side by side, against the one on screen where
  // that is asked for.
  async beside(name, against) {
    const id = `file:${name}`;
    if (id === this.localId && !this.runId) return;
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    const before = this.identity;
    const { moments, current } = this;
    await this.pick(id);
    if (!against || !before.blob || this.localId !== id || !this.current) return;
    if (moments || this.moments) return this.toast("A log tells moments, which are not compared.", true);
    await this.work(async () => {
      await this.engine.call({ t: "open", slot: 1, name: current.name, origin: before.told?.origin, blob: before.blob });
      this.other = before;
    });
  },

  // timelineOf is a file as a timeline, and what it means.
  async timelineOf(file, reader = this.reader) {
    if (await isOwn(file)) return { blob: file, told: null };
    const pieces = [];
    const nothing = () => {};
    let told;
    try {
      told = await reader.open(file, file.name, {
        known: nothing,
        piece: (bytes) => pieces.push(bytes),
        progress: (share) => reader === this.reader && this.progress(share),
        tried: nothing,
        over: nothing,
      });
    } catch (e) {
      throw new Error(await describe(file, file.name, e.message));
    }
    return told && { blob: new Blob(pieces), told };
  },

  openText(text) {
    return this.openFile(new File([text], "pasted text", { type: "text/plain" }));
  },

  // leave lets go of a stream. The run itself goes on at the agent.
  leave(share = "", reading = false) {
    if (!reading) this.reader.stop();
    this.sharing.cancel();
    this.sharing.field = share;
    this.engine.tell({ t: "unstream" });
    this.streams++;
    this.live = false;
  },

  // load opens a timeline; told is what the file meant that it was made of.
  async load(blob, name, id, share = "", told = null) {
    const before = { runId: this.runId, blob: this.blob, told: this.told };
    const field = this.sharing.field;
    this.leave(share);
    this.runId = "";
    this.blob = null;
    this.told = told;
    this.live = true;
    this.follow = true;
    this.current = null;
    this.openedAt = performance.now();
    await this.work(async () => {
      let end;
      try {
        end = await this.engine.call({ t: "open", slot: 0, name, origin: told?.origin, blob });
      } catch (e) {
        Object.assign(this, before); // what was on screen is still there
        this.sharing.field = field;
        throw new Error(await describe(blob, name, e.message));
      }
      this.live = false;
      this.blob = blob;
      this.openMs = performance.now() - this.openedAt;
      this.keep(id || `file:${name}`, name, blob, told);
      if (end.warning) this.toast(end.warning, true);
      const kept = !told && (await this.recall());
      this.remember();
      await this.settings();
      this.restore();
      if (this.current?.ooms) this.skipWait();
      if (kept) await this.firstLook();
    });
  },

  // recall takes the readings that the timeline on screen keeps of the input it was
  // made of; they are the reader's to read. It says whether there are any.
  async recall() {
    const { blob } = this;
    const [at, size] = this.current?.readings ?? [];
    if (!size || this.told || !blob) return false;
    const nothing = () => {};
    let told = null;
    try {
      told = await this.reader.open(blob.slice(at, at + size), this.current.name, { known: nothing, piece: nothing, progress: nothing, tried: nothing, over: nothing });
    } catch (e) {
      this.toast(`What the file says of its input cannot be read: ${e.message}`, true);
    }
    if (!told?.readings.length || this.blob !== blob) return false;
    this.told = told;
    const mine = this.library.get(this.localId);
    if (mine?.blob === blob) mine.told = told;
    if (told.origin === "log") await this.engine.call({ t: "moments" });
    this.facts();
    return true;
  },

  // read opens another program's file: the reader turns it into a timeline, whose
  // pieces are shown as they come, and says what it means. What was on screen
  // stays until the file is understood.
  async read(blob, name, share = "") {
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    const before = this.identity;
    const started = performance.now();
    let began = false;
    await this.work(async () => {
      let told;
      try {
        told = await this.reader.open(blob, name, {
          known: ({ origin }) => {
            began = true;
            this.leave(share, true);
            this.reading = true;
            Object.assign(this, { runId: "", blob: null, told: null, live: true, follow: true, current: null, openedAt: started });
            this.engine.tell({ t: "begin", name, origin });
          },
          piece: (bytes) => this.engine.tell({ t: "piece", bytes }, [bytes.buffer]),
          progress: (share) => this.progress(share),
          tried: (more, end) => this.tried(told, more, end),
          over: () => this.idle(),
        });
      } catch (e) {
        this.reading = false;
        if (began) await this.takeBack(before);
        throw new Error(await describe(blob, name, e.message));
      }
      if (!told) return; // something else was opened in the meantime
      this.live = this.reading = false;
      this.told = told;
      const { blob: made } = await this.engine.call({ t: "done" });
      this.blob = made;
      this.openMs = performance.now() - started;
      this.keep(`file:${name}`, name, made, told);
      this.amend(told);
      if (told.cut) this.toast(`Not all of it was read: ${told.cut}`, true);
      this.facts();
      this.remember();
      await this.settings();
      this.restore();
      await this.firstLook();
    });
  },

  // firstLook is what is shown of a file at first: what it means, at its failure.
  async firstLook() {
    if (this.linked || !this.told.readings.length) return;
    if (this.details.tab !== "files") this.details.choose("reading");
    if (!this.moments) return;
    const { t } = await this.engine.ask("next-oom", -1, 1);
    if (t !== undefined) this.moveCursor(t);
  },

  // tried takes what other settings came to into what the file means, and into the
  // timeline that is saved and shared.
  tried(told, more, end) {
    if (!told) return;
    told.readings = more.readings;
    told.amended = [more.end, end];
    this.amend(told);
    if (this.told === told && this.details.tab === "reading") this.details.refresh();
  },

  // amend puts the new end of a timeline in the place of the old one, once both are
  // there.
  amend(told) {
    const mine = [...this.library.values()].find((x) => x.told === told);
    if (!mine || !told.amended) return;
    const [at, end] = told.amended;
    const blob = new Blob([mine.blob.slice(0, at), end], { type: mine.blob.type });
    delete told.amended;
    if (this.blob === mine.blob) this.blob = blob;
    mine.blob = blob;
  },

  // takeBack puts on screen again what a file took the place of that then failed.
  async takeBack({ field, ...before }) {
    this.live = false;
    Object.assign(this, before);
    this.sharing.field = field;
    await this.engine.call({ t: "restore" });
  },

  pasteDialog() {
    this.reader.warm();
    $("paste-text").value = "";
    $("paste-dialog").showModal();
  },

  async save() {
    if (!this.blob) return;
    const made = this.told && !this.told.own;
    const name = this.current.name.replace(/\.gz$/, "").replace(/\.(tideline|txt|log|csv|json|pickle|pkl|pb|prof)$/, "").replace(/[^\w.-]+/g, "-") || "run";
    const a = el("a", { href: URL.createObjectURL(this.blob), download: `${name}.tideline` });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
    this.toast(`Saved ${a.download}, ${bytes(this.blob.size)}${made ? `: ${this.current.name} as a timeline` : ""}`);
  },

  keep(id, name, blob, told = null) {
    this.library.set(id, { name, blob, told });
    this.localId = id;
    this.picker();
  },

  // working shows the progress of a job that another part of the page does.
  async working(job) {
    await this.work(() => job((share) => this.progress(share)));
  },

  async work(job) {
    this.busy++;
    $("toast").classList.remove("on");
    this.idle();
    this.progress(0);
    try {
      await job();
    } catch (e) {
      this.trouble(e);
    } finally {
      this.busy--;
      this.live = this.runId ? this.live : false;
      this.progress(null);
      if (this.current) this.facts();
      this.idle();
    }
  },

  progress(share) {
    const p = $("progress");
    p.hidden = share === null;
    p.firstChild.style.width = `${100 * (share ?? 0)}%`;
    p.setAttribute("aria-valuenow", Math.round(100 * (share ?? 0)));
  },
};
