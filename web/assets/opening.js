// Opening, keeping and saving timelines, and the progress of what takes a
// while. These are methods of App.

import { describe } from "./files.js";
import { $, bytes, el } from "./words.js";

export const opening = {
  // openFile opens a timeline or a log; share is the field of the link that it
  // came by.
  async openFile(file, share = "") {
    if (!this.engine.up) return this.toast("The browser module is not running.", true);
    document.documentElement.dataset.idle = "false";
    const head = new Uint8Array(await file.slice(0, 256).arrayBuffer());
    const binary = head.some((b) => b === 0);
    if (!binary) {
      if (file.size > 64 << 20) return this.toast("This text is larger than 64 MiB: cut it down to the part around the failure.", true);
      return this.openLog(await file.text(), file.name, share);
    }
    await this.load(file, file.name, "", share);
  },

  // leave lets go of a stream. The run itself goes on at the agent.
  leave(share = "") {
    this.sharing.cancel();
    this.sharing.field = share;
    this.engine.tell({ t: "unstream" });
    this.streams++;
    this.live = false;
  },

  async load(blob, name, id, share = "") {
    const before = { runId: this.runId, blob: this.blob };
    const field = this.sharing.field;
    this.leave(share);
    this.runId = "";
    this.blob = null;
    this.live = true;
    this.follow = true;
    this.current = null;
    this.openedAt = performance.now();
    await this.work(async () => {
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
      this.keep(id || `file:${name}`, name, blob);
      if (end.warning) this.toast(end.warning, true);
      this.remember();
      await this.settings();
      this.restore();
      if (this.current?.ooms) this.skipWait();
    });
  },

  async openLog(text, name, share = "") {
    this.leave(share);
    await this.work(async () => {
      const blob = new Blob([text], { type: "text/plain" });
      const end = await this.engine.call({ t: "log", slot: 0, name, text }).catch(async (e) => {
        throw new Error(await describe(blob, name, e.message));
      });
      this.runId = "";
      this.blob = blob;
      this.keep(`file:${name}`, name, this.blob);
      if (end.warning) this.toast(end.warning);
      this.details.choose("oom");
      const { t } = await this.engine.ask("next-oom", -1, 1);
      if (t !== undefined) this.moveCursor(t);
    });
  },

  pasteDialog() {
    $("paste-text").value = "";
    $("paste-dialog").showModal();
  },

  async save() {
    if (!this.blob) return;
    const log = this.current.origin === "log";
    const name = this.current.name.replace(/\.(tideline|txt|log)$/, "").replace(/[^\w.-]+/g, "-") || "run";
    const a = el("a", { href: URL.createObjectURL(this.blob), download: `${name}.${log ? "txt" : "tideline"}` });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
    this.toast(`Saved ${a.download}, ${bytes(this.blob.size)}`);
  },

  keep(id, name, blob) {
    this.library.set(id, { name, blob });
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
