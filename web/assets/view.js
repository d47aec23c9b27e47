// What the page shows of a timeline: the window of time, the pointer, the
// cursor and the selection. These are methods of App.

import { $, bytes, el, nanos } from "./words.js";

const least = 50; // nanoseconds that fill the width at the deepest zoom

export const viewing = {
  show(t0, t1) {
    if (!this.view) return;
    const { span } = this;
    const whole = span.t1 - span.t0;
    let w = Math.min(Math.max(t1 - t0, Math.min(least, whole)), whole);
    t0 = Math.min(Math.max(t0, span.t0), span.t1 - w);
    this.view = { t0, t1: t0 + w };
    if (this.live && this.follow && !this.whole()) this.toggleFollow(false);
    this.redraw(false);
    this.remember();
  },

  zoom(factor, around) {
    if (!this.view) return;
    const { t0, t1 } = this.view;
    const at = around ?? (this.cursor !== null && this.cursor > t0 && this.cursor < t1 ? this.cursor : (t0 + t1) / 2);
    const w = Math.min(Math.max((t1 - t0) * factor, least), this.span.t1 - this.span.t0);
    const share = (at - t0) / (t1 - t0);
    this.show(at - share * w, at + (1 - share) * w);
  },

  pan(share) {
    if (!this.view) return;
    const by = share * (this.view.t1 - this.view.t0);
    const { span, view } = this;
    const clamped = Math.min(Math.max(by, span.t0 - view.t0), span.t1 - view.t1);
    this.show(view.t0 + clamped, view.t1 + clamped);
  },

  // fit goes back to the first view, and from there to everything.
  fit() {
    this.everything = !this.everything && this.whole() && this.view.t0 > this.span.t0;
    this.show(this.startView().t0, this.span.t1);
  },

  select(a, b) {
    this.selection = a === null ? null : { t0: Math.min(a, b), t1: Math.max(a, b) };
    $("zoom-selection").disabled = !this.selection;
    this.lanes.overlay();
  },

  selected() {
    this.tables();
    this.remember();
  },

  zoomToSelection() {
    if (!this.selection) return;
    const { t0, t1 } = this.selection;
    this.select(null);
    this.show(t0, t1);
    this.tables();
  },

  goto(t, t1, peak = false) {
    const w = this.view.t1 - this.view.t0;
    if (t1 !== undefined && t1 > t) {
      const pad = (t1 - t) * 0.5;
      this.show(t - pad, t1 + pad);
    } else if (t < this.view.t0 || t > this.view.t1) this.show(t - w / 2, t + w / 2);
    this.moveCursor(t, peak);
  },

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
      this.idle();
    });
  },

  wantScales() {
    if (this.scalesWanted) return;
    this.scalesWanted = true;
    setTimeout(async () => {
      this.scalesWanted = false;
      if (!this.view || !this.engine.up) return;
      try {
        this.lanes.scales(await this.engine.ask("scales", Math.round(this.view.t0), Math.round(this.view.t1)));
        if (this.hover === null) this.values();
      } catch {
        // The module died; that is told elsewhere.
      }
    }, 90);
  },

  // sift makes the lanes tell apart what passes the filter.
  sift() {
    const { engine, details, lanes } = this;
    if (!engine.up) return; // it is told when it is
    this.sifting = true;
    engine.tell({ t: "sift", text: details.filter });
    lanes.sift(details.filter);
    this.redraw(false);
  },

  // sifted follows the filter through the timeline.
  sifted({ more, changed, share }) {
    this.sifting = more;
    this.lanes.sifted = share;
    if (changed) this.redraw(false);
    if (this.view && this.hover === null) this.values();
  },

  async values() {
    const at = await this.engine.ask("at", this.moment).catch(() => null);
    if (at) this.lanes.values(at);
  },

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
          this.tip(answer.hit, p);
        }
      } catch {
        // As in wantScales.
      }
      this.hoverWanted = false;
      this.idle();
    });
  },

  unpoint() {
    if (this.hover === null) return;
    this.hover = null;
    this.pointer = null;
    $("tip").hidden = true;
    this.lanes.overlay();
    this.values();
  },

  tip(hit, p) {
    const tip = $("tip");
    tip.hidden = !hit;
    if (!hit) return;
    tip.replaceChildren(el("b", {}, hit.title), el("dl", {}, ...hit.lines.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])));
    const w = tip.offsetWidth;
    const h = tip.offsetHeight;
    const x = p.clientX + 16 + w > innerWidth ? p.clientX - w - 12 : p.clientX + 16;
    const y = Math.min(p.clientY + 14, innerHeight - h - 8);
    tip.style.transform = `translate(${Math.max(4, Math.round(x))}px, ${Math.round(y)}px)`;
  },

  choose(lane) {
    if (!lane || lane === this.lane) return;
    this.lane = lane;
    if (this.details.tab === "twin" || this.details.tab !== "transfers") this.tables();
  },

  moveCursor(t, peak = false) {
    this.atPeak = peak;
    this.cursor = Math.min(Math.max(t, this.span.t0), this.span.t1);
    this.lanes.overlay();
    this.values();
    this.tables();
    this.remember();
    $("announce").textContent = this.moments ? "Cursor moved" : `Cursor at ${nanos(this.cursor)}`;
  },

  async stepCursor(dir) {
    const at = this.cursor ?? this.view.t0;
    const { t } = await this.engine.ask("step", Math.round(at), dir, this.lane?.key ?? "");
    if (t !== undefined) this.goto(t);
  },

  async toPeak() {
    const { t } = await this.engine.ask("peak", this.lane?.key ?? "");
    if (t === undefined) return;
    this.details.choose("peak");
    this.goto(t, undefined, true);
  },

  async nextOOM(dir = 1) {
    const { t } = await this.engine.ask("next-oom", Math.round(this.cursor ?? -1), dir);
    if (t === undefined) return this.toast("No request failed in this timeline.");
    this.details.choose("oom");
    this.goto(t);
  },

  toggleFollow(on = !this.follow) {
    this.follow = on;
    $("follow").setAttribute("aria-pressed", on);
    if (on && this.view) this.show(this.startView().t0, this.span.t1);
  },

  // escape goes one thing back: out of a frame, then the selection, the cursor.
  escape() {
    if (this.details.tab === "flame" && this.details.flame.back()) return;
    if (this.selection) {
      this.select(null);
      this.tables();
      this.remember();
    } else if (this.cursor !== null) {
      this.cursor = null;
      this.lanes.overlay();
      this.tables();
      this.remember();
    }
  },

  // tables refreshes the details soon; while data pour in, a few times a
  // second is enough.
  tables() {
    const wait = this.live ? 300 : 30;
    if (this.tablesTimer) return;
    this.busy++;
    this.tablesTimer = setTimeout(async () => {
      this.tablesTimer = 0;
      await this.details.refresh();
      this.busy--;
      this.idle();
    }, wait);
  },

  async find(text) {
    if (!text || !this.view) return;
    const { hits, more } = await this.engine.ask("find", text);
    if (!hits.length) return this.toast(`Nothing named “${text}”.`);
    // The same words again go on to the next hit.
    this.found = this.found?.text === text ? { text, i: (this.found.i + 1) % hits.length } : { text, i: 0 };
    const h = hits[this.found.i];
    this.goto(h.t, h.t1);
    this.toast(`${this.found.i + 1} of ${hits.length}${more ? "+" : ""}: ${h.name}${h.size ? `, ${bytes(h.size)}` : ""}`);
  },
};
