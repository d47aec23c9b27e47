// Who holds the memory, by stack: an icicle, the outermost frame on top, as wide
// as what it holds. A click zooms into a frame; the way back stands above. The
// table below it is the same for those who do not see the picture.

import { find, grow, label, own, place, way } from "./flame-tree.js";
import { $, bytes, count, el } from "./words.js";

const finger = matchMedia("(max-width: 860px)"); // a narrow screen is touched
const least = 0.8; // pixels of a frame that is drawn; narrower ones are one piece
const mostRows = 300;
const firstGroup = 10; // of the categories, by number: event.Group1
const hues = [195, 150, 235, 80, 45, 120, 265, 20, 300, 175];

export class Flame {
  #answer = null;
  #root = null;
  #focus = null; // the node that fills the width
  #at = null; // the node that the keyboard is on
  #boxes = []; // by row: {x, w, node}
  #serial = 0;
  how = "peak"; // of a selection: peak or kept
  measure = "bytes";
  fold = true;
  frame = 0; // the focus, by the hash of its way
  #high = 20; // pixels of a row

  constructor(app) {
    this.app = app;
    this.canvas = el("canvas.flame", { tabIndex: 0, role: "img" });
    this.crumbs = el("nav.crumbs", { "aria-label": "Frames zoomed into" });
    this.notes = el("div.flame-notes");
    this.table = el("div");
    this.box = el("div.flame-box", {}, this.canvas);
    this.#gestures();
    new ResizeObserver(() => this.draw()).observe(this.box);
    for (const [name, field] of [["flame-how", "how"], ["flame-measure", "measure"]]) {
      $(name).addEventListener("change", (e) => {
        this[field] = e.target.value;
        if (field === "how") this.app.tables();
        else this.#grow();
        this.app.remember();
      });
    }
    $("flame-fold").addEventListener("change", (e) => {
      this.fold = e.target.checked;
      this.#grow();
      this.app.remember();
    });
  }

  // recall takes the state that the address bar holds.
  recall({ how, by, fold, frame }) {
    if (how) this.how = how;
    this.measure = by || "bytes";
    this.fold = fold;
    this.frame = frame;
    for (const [name, value] of [["flame-how", this.how], ["flame-measure", this.measure]]) {
      for (const r of $(name).querySelectorAll("input")) r.checked = r.value === value;
    }
    $("flame-fold").checked = fold;
  }

  // ask is the question for what is on screen.
  ask(filter) {
    const { app } = this;
    const range = app.selection ?? app.view;
    const how = app.selection ? this.how : "at";
    return app.engine.ask("flame", how, app.moment, Math.round(range.t0), Math.round(range.t1), app.lane?.key ?? "", filter);
  }

  // show fills the pane with an answer.
  show(pane, answer, filter) {
    const { app } = this;
    $("flame-how").hidden = !app.selection;
    if (!answer.stacks) {
      pane.replaceChildren(el("p.pane-note", {}, answer.text ?? "This timeline tells of no memory."));
      return;
    }
    if (app.current.serial !== this.#serial) {
      if (this.#serial) this.frame = 0; // another timeline: its frames are others
      this.#serial = app.current.serial;
    }
    this.filter = filter.toLowerCase();
    this.#answer = answer;
    if (this.box.parentNode !== pane) {
      pane.replaceChildren(this.crumbs, this.box, this.notes, this.table);
    }
    this.#grow();
  }

  #grow() {
    if (!this.#answer) return;
    this.#root = grow(this.#answer, this.measure, this.fold);
    this.#focus = find(this.#root, this.frame);
    this.#at = null;
    this.#shown();
  }

  // zoom makes a frame fill the width.
  zoom(node) {
    this.#focus = node;
    this.frame = node.parent ? node.hash : 0;
    this.#at = null;
    this.box.scrollTop = 0;
    $("tip").hidden = true;
    this.#shown();
    this.app.remember();
    this.#say(node);
  }

  // back goes out of one frame; false when there is none to leave.
  back() {
    if (!this.#focus?.parent) return false;
    const was = this.#focus;
    this.zoom(was.parent);
    this.#at = was;
    this.draw();
    return true;
  }

  #shown() {
    this.#crumbs();
    this.#notes();
    this.#rows();
    this.draw();
  }

  share(node) {
    const all = this.#root[this.measure];
    return all ? `${((100 * node[this.measure]) / all).toFixed(1)} %` : "–";
  }

  #say(node) {
    $("announce").textContent = `${label(node)}: ${bytes(node.bytes)}, ${this.share(node)}, ${blocks(node.blocks)}`;
  }

  #crumbs() {
    const list = [this.#root, ...way(this.#focus)];
    const shown = list.length > 6 ? [list[0], null, ...list.slice(-4)] : list;
    const nodes = shown.map((n) => {
      if (!n) return el("span.gap", { title: `${list.length - 5} frames in between` }, "…");
      if (n === this.#focus) return el("b", { title: n.chain.join("\n") }, label(n));
      return el("button.link", { type: "button", title: n.chain.join("\n"), onclick: () => this.zoom(n) }, label(n));
    });
    const f = this.#focus;
    const sum = el("span.sum", {}, `${bytes(f.bytes)} in ${blocks(f.blocks)}${f.parent ? `, ${this.share(f)}` : ""}`);
    const last = f.parent ? el("button.ghost.small", { type: "button", title: "Let through only what this frame is part of, here and in the table of what is live", onclick: () => this.app.details.sift(f.file ? f.text : f.name) }, "Filter by it") : "";
    this.crumbs.replaceChildren(...nodes.flatMap((n, i) => (i ? [el("i", { "aria-hidden": "true" }, "›"), n] : [n])), sum, last, el("span.when", {}, this.#answer.note ?? ""));
  }

  // #why says why blocks have no stack, as far as that is known.
  #why() {
    const { bare } = this.#root;
    const [old, many] = this.#answer.before ?? [0, 0];
    if (!many) return "the file has none for them";
    if (many >= bare.blocks) return "allocated before the recording began";
    return `${bytes(old)} in ${blocks(many)} of them were allocated before the recording began, and the file has none for the rest`;
  }

  #notes() {
    const root = this.#root;
    const lines = [];
    if (!root.blocks) {
      lines.push(this.filter ? "Nothing in use here passes the filter." : "Nothing is in use here.");
    }
    const [rest, many, stacks] = this.#answer.rest;
    if (stacks) lines.push(`${count(stacks)} smaller ${root.foreign ? "stacks" : "names"} are summed: ${bytes(rest)} in ${blocks(many)}. The filter brings them out.`);
    if (root.foreign && root.bare.blocks) {
      lines.push(`${bytes(root.bare.bytes)} in ${blocks(root.bare.blocks)} came without a stack: ${this.#why()}. They stand on the outermost level, under the frame to blame where that is known.`);
    }
    if (this.deep) lines.push(`${count(this.deep)} rows are deeper than what is drawn: zoom into a frame to see them.`);
    this.notes.replaceChildren(...lines.map((t) => el("p.pane-note", {}, t)));
  }

  // rows lists what the focus is made of.
  #rows() {
    const f = this.#focus;
    const body = el("tbody");
    const most = Math.max(1, ...f.kids.map((k) => k[this.measure]));
    const row = (name, n, node) => {
      const swatch = el("i.swatch");
      swatch.style.backgroundColor = node ? this.#fill(node) : "transparent";
      const bar = el("span.share");
      bar.style.width = `${(100 * n[this.measure]) / most}%`;
      const tr = el("tr", {}, el("td", { title: node?.chain.join("\n") }, swatch, name), el("td.num", {}, bytes(n.bytes)), el("td.num", {}, this.share(n)), el("td.num", {}, count(n.blocks)), el("td.share-cell", {}, bar), el("td.addr", { title: node?.file }, node?.file ? `${node.file}:${node.line}` : ""));
      if (node?.kids.length) {
        tr.classList.add("go");
        tr.tabIndex = 0;
        tr.addEventListener("click", () => this.zoom(node));
        tr.addEventListener("keydown", (e) => e.key === "Enter" && this.zoom(node));
      }
      body.append(tr);
    };
    for (const k of f.kids.slice(0, 200)) row(label(k), k, k);
    const self = { bytes: own(f, "bytes"), blocks: own(f, "blocks") };
    if (self.blocks && f.kids.length) row("itself", self, null);
    const more = f.kids.length > 200 ? ` · ${count(f.kids.length - 200)} more not shown` : "";
    this.table.hidden = !body.children.length;
    this.table.replaceChildren(el("table.data", {}, el("caption", {}, `${f.parent ? `Inside ${label(f)}` : "All"}, by ${this.#root.foreign ? "frame" : "scope"}, largest first${more}`),
      el("thead", {}, el("tr", {}, ...[["Frame"], ["Bytes", 1], ["Share", 1], ["Blocks", 1], [""], ["File"]].map(([name, num]) => el(`th.plain${num ? ".num" : ""}`, { scope: "col" }, name)))), body));
  }

  // --- drawing

  // colours are read from the page's styles, once a drawing.
  #colours() {
    const css = getComputedStyle(document.documentElement);
    const get = (name) => css.getPropertyValue(name).trim();
    this.c = { ink: get("--ink"), ink2: get("--ink-2"), surface: get("--surface"), sunken: get("--sunken"), line: get("--line-2"), accent: get("--accent"), dark: this.app.theme === 1 };
    // By category where there are several; by file of a program whose memory is all of one,
    // or of none but the groups of those who hold most, whose frames have names of their own.
    const kinds = [...this.#root.kinds.keys()].filter((k) => k >= 0 && k < firstGroup);
    this.byKind = kinds.length > 1 || !this.#root.foreign;
    this.known = new Map();
  }

  #fill(node) {
    if (!this.c) this.#colours();
    const { c } = this;
    const key = node.rest ? "rest" : this.byKind ? node.kind : node.lib || !node.file ? "lib" : node.file;
    if (!this.known.has(key)) this.known.set(key, this.#colour(key, c));
    return this.known.get(key);
  }

  #colour(key, c) {
    if (key === "rest" || key === "lib" || key === null) return `color-mix(in oklab, ${c.ink} ${c.dark ? 17 : 10}%, ${c.surface})`;
    if (this.byKind) return `color-mix(in oklab, ${this.#answer.categories[key]?.[1] ?? c.ink} ${c.dark ? 62 : 58}%, ${c.surface})`;
    let h = 0;
    for (const x of key) h = (h * 31 + x.codePointAt(0)) >>> 0;
    return c.dark ? `oklch(0.42 0.065 ${hues[h % hues.length]})` : `oklch(0.885 0.062 ${hues[h % hues.length]})`;
  }

  // layout places the focus, if it is a frame, and what is below it.
  #layout(width) {
    const rows = [];
    const put = (depth, x, w, node, many) => (rows[depth] ??= []).push({ x, w, node, many });
    this.deep = 0;
    const todo = [[this.#focus, this.#focus.parent ? 0 : -1, 0, width]];
    while (todo.length) {
      const [node, depth, x, w] = todo.pop();
      if (depth >= mostRows) {
        this.deep = Math.max(this.deep, depth - mostRows + 1);
        continue;
      }
      if (depth >= 0) put(depth, x, w, node);
      let at = x;
      let narrow = null;
      for (const k of node.kids) {
        const kw = node[this.measure] ? (w * k[this.measure]) / node[this.measure] : 0;
        if (kw >= least) todo.push([k, depth + 1, at, kw]);
        else if (narrow) {
          narrow.w += kw;
          narrow.many++;
        } else narrow = { at, w: kw, many: 1 };
        at += kw;
      }
      if (narrow && narrow.w >= 0.3) put(depth + 1, narrow.at, narrow.w, node, narrow.many);
    }
    for (const r of rows) r?.sort((a, b) => a.x - b.x);
    return rows;
  }

  draw() {
    if (!this.#focus || !this.box.isConnected) return;
    this.#colours();
    this.#high = finger.matches ? 28 : 20;
    const width = this.box.clientWidth - 32;
    if (width <= 0) return;
    const dpr = Math.max(1, devicePixelRatio || 1);
    this.#boxes = this.#root[this.measure] ? this.#layout(width) : [];
    const height = this.#boxes.length * this.#high;
    this.canvas.hidden = !height;
    Object.assign(this.canvas, { width: Math.round(width * dpr), height: Math.round(Math.max(1, height) * dpr) });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    const g = this.canvas.getContext("2d");
    g.scale(dpr, dpr);
    g.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
    g.textBaseline = "middle";
    this.#boxes.forEach((row, i) => row?.forEach((b) => this.#box(g, b, i * this.#high)));
    this.canvas.setAttribute("aria-label", `Flame graph of ${bytes(this.#focus.bytes)} in ${blocks(this.#focus.blocks)}. Arrow keys move, Enter zooms in, Escape goes back. The same as a table follows.`);
  }

  #box(g, b, y) {
    const { c } = this;
    const gap = b.w > 3 ? 1 : b.w > 1.4 ? 0.4 : 0;
    const w = b.w - gap;
    if (b.many) {
      g.fillStyle = `color-mix(in oklab, ${c.ink} 22%, ${c.surface})`;
      g.fillRect(b.x, y, Math.max(w, 0.5), this.#high - 1);
      return;
    }
    const hit = this.filter && b.node.chain.some((t) => t.toLowerCase().includes(this.filter));
    g.fillStyle = this.#fill(b.node);
    g.beginPath();
    if (w > 6) g.roundRect(b.x, y, w, this.#high - 1, 2.5);
    else g.rect(b.x, y, w, this.#high - 1);
    g.fill();
    if (hit && w > 2) {
      g.fillStyle = c.accent;
      g.fillRect(b.x, y + this.#high - 3, w, 2);
    }
    if (b.node === this.#at) {
      g.strokeStyle = c.ink;
      g.lineWidth = 1.5;
      g.strokeRect(b.x + 0.75, y + 0.75, Math.max(1, w - 1.5), this.#high - 2.5);
    }
    if (w > 26) this.#label(g, b, y, w - 11, hit);
  }

  // label writes the name, and where there is room, what the frame holds and
  // where it stands.
  #label(g, b, y, room, hit) {
    const { c } = this;
    const text = label(b.node);
    const value = this.measure === "bytes" ? bytes(b.node.bytes, 1) : count(b.node.blocks);
    const family = g.font.slice(g.font.indexOf("px ") + 3);
    g.font = `${hit ? "650 " : ""}11.5px ${family}`;
    const width = g.measureText(text).width;
    g.fillStyle = b.node.lib && !this.byKind ? c.ink2 : c.ink;
    g.fillText(width <= room ? text : cut(g, text, room), b.x + 5.5, y + this.#high / 2);
    g.font = `11.5px ${family}`;
    g.globalAlpha = 0.75;
    let x = width;
    for (const more of [value, place(b.node)]) {
      const w = g.measureText(more).width;
      if (!more || x + w + 9 > room) break;
      g.fillText(more, b.x + 5.5 + x + 9, y + this.#high / 2);
      x += w + 9;
    }
    g.globalAlpha = 1;
  }

  // --- pointer and keys

  #hit(e) {
    const r = this.canvas.getBoundingClientRect();
    const row = this.#boxes[Math.floor((e.clientY - r.top) / this.#high)];
    const x = e.clientX - r.left;
    return row?.find((b) => x >= b.x && x < b.x + Math.max(b.w, 0.5)) ?? null;
  }

  #gestures() {
    const { canvas, app } = this;
    canvas.addEventListener("pointermove", (e) => {
      const b = this.#hit(e);
      canvas.style.cursor = b && !b.many ? "pointer" : "default";
      app.tip(b && this.#told(b), e);
    });
    canvas.addEventListener("pointerleave", () => ($("tip").hidden = true));
    canvas.addEventListener("click", (e) => {
      const b = this.#hit(e);
      if (!b || b.many) return;
      if (e.shiftKey || e.altKey) app.details.sift(b.node.file ? b.node.text : b.node.name);
      else if (b.node === this.#focus) this.back();
      else this.zoom(b.node);
    });
    canvas.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const at = this.#at ?? this.#focus;
      const row = at?.parent?.kids ?? [];
      const i = row.indexOf(at);
      const to = { ArrowDown: at?.kids[0], ArrowUp: at !== this.#focus && at?.parent, ArrowLeft: at !== this.#focus && row[i - 1], ArrowRight: at !== this.#focus && row[i + 1] };
      if (e.key === "Enter" && at) this.zoom(at);
      else if (e.key === "Backspace") this.back();
      else if (e.key in to) {
        if (to[e.key]) this.#move(to[e.key]);
      } else return;
      e.preventDefault();
      e.stopPropagation();
    });
  }

  #move(node) {
    this.#at = node;
    this.draw();
    this.#say(node);
    const y = this.#boxes.findIndex((row) => row?.some((b) => b.node === node)) * this.#high;
    const pane = this.box.parentNode;
    const top = this.box.offsetTop + y;
    if (top < pane.scrollTop) pane.scrollTop = top;
    else if (top + 2 * this.#high > pane.scrollTop + pane.clientHeight) pane.scrollTop = top + 2 * this.#high - pane.clientHeight;
  }

  // told is the words beside the pointer.
  #told(b) {
    if (b.many) return { title: `${count(b.many)} narrower frames`, lines: [["inside", label(b.node)], ["", "zoom into it to see them"]] };
    const n = b.node;
    const lines = [["holds", `${bytes(n.bytes)} in ${blocks(n.blocks)}, ${this.share(n)}`]];
    const self = own(n, "bytes");
    if (self > 0 && n.kids.length) lines.push(["itself", bytes(self)]);
    if (this.byKind && n.kind !== null && n.kind >= 0) lines.push(["category", this.#answer.categories[n.kind]?.[0] ?? ""]);
    if (n.file) lines.push(["at", `${n.file}:${n.line}`]);
    if (n.chain.length > 1 && n.file) {
      const names = n.chain.map((t) => t.slice(0, t.indexOf(" ")) || t);
      lines.push(["frames", names.length > 9 ? [...names.slice(0, 4), `… ${names.length - 8} more …`, ...names.slice(-4)].join(" › ") : names.join(" › ")]);
    }
    return { title: n.file ? n.name : label(n), lines };
  }
}

const blocks = (n) => `${count(n)} ${n === 1 ? "block" : "blocks"}`;

// cut shortens a text to a width, with the end of it that fits.
function cut(g, text, room) {
  let lo = 0;
  let hi = text.length;
  while (lo < hi) {
    const m = (lo + hi + 1) >> 1;
    if (g.measureText(`${text.slice(0, m)}…`).width <= room) lo = m;
    else hi = m - 1;
  }
  return lo > 0 ? `${text.slice(0, lo)}…` : "";
}
