// The lanes: their layout, the time axis, and what lies above the picture
// (ticks, crosshair, selection). All lanes are one canvas, drawn by the module
// in one go; a lane's element only marks its place.

import { $, bytes, count, el, nanos, niceStep } from "./words.js";

const plain = { op: [0, 19], sample: [0, 34], transfer: [0, 24], input: [0, 14] }; // pixels: base, per row
const roomy = { memory: [170, 3], address: [84, 2] }; // pixels: least, share of what is left

export class Lanes {
  constructor(app) {
    this.app = app;
    this.list = [];
    this.key = "";
    this.width = 0;
    this.height = 0;
    this.dpr = 1;
    this.root = $("lanes");
    this.canvases();
    new ResizeObserver(() => this.layout()).observe(this.root);
  }

  // canvases makes the two canvases anew: once handed to a worker, a canvas
  // cannot be handed to the next.
  canvases() {
    this.main?.remove();
    this.main = el("canvas.picture", { "aria-hidden": "true" });
    this.root.insertBefore(this.main, $("cross").nextSibling);
    const old = $("minimap-plot").querySelector("canvas");
    const map = el("canvas", { "aria-hidden": "true" });
    old.replaceWith(map);
    this.offered = false;
    this.minimap = map;
  }

  offer() {
    if (this.offered || !this.app.engine.up) return;
    this.offered = true;
    for (const [name, canvas] of [["main", this.main], ["map", this.minimap]]) {
      const off = canvas.transferControlToOffscreen();
      this.app.engine.tell({ t: "canvas", name, canvas: off }, [off]);
    }
  }

  // take follows the list of lanes that the module offers.
  take(list) {
    const key = list.map((l) => `${l.key}/${l.rows}/${l.title}`).join();
    const named = list.map((l) => `${l.key}:${l.legend?.map((c) => c.name)}`).join() + this.app.base?.name;
    if (key === this.key) {
      if (named !== this.named) {
        this.named = named;
        for (const l of list) this.#legend(this.list.find((x) => x.key === l.key), l.legend);
        this.layout(); // a head needs more room by now
      }
      // The module forgets places when a timeline without these lanes was in
      // between, such as one that has only just begun.
      if (list.some((l) => !l.placed)) this.layout();
      return;
    }
    this.key = key;
    this.named = named;
    this.list = list;
    for (const old of this.root.querySelectorAll(".lane")) old.remove();
    for (const lane of list) this.root.append(this.#make(lane));
    this.layout();
  }

  #make(lane) {
    lane.now = el("p.lane-now", {}, "\u00a0");
    lane.sub2 = el("p.lane-sub", {}, "");
    lane.ticks = el("div.ticks", { "aria-hidden": "true" });
    lane.plot = el("div.lane-plot", {
      role: "img", tabIndex: 0, "aria-label": `${lane.title}, ${lane.sub}. The same as a table: tab “Lane as table”.`,
    }, lane.ticks);
    lane.match = roomy[lane.kind] ? el("p.lane-match", { hidden: !this.filter }) : null;
    lane.legendNode = lane.legend ? el("div.legend") : null;
    this.#legend(lane, lane.legend);
    lane.node = el("section.lane", { "aria-label": `${lane.title} ${lane.sub}` },
      el("div.lane-head", {}, el("h3", {}, lane.title, el("span", { title: lane.sub }, lane.sub)), lane.now, lane.sub2, lane.match, lane.legendNode),
      lane.plot);
    lane.node.dataset.kind = lane.kind;
    lane.node.dataset.key = lane.key;
    lane.plot.addEventListener("focus", () => this.app.choose(lane));
    return lane.node;
  }

  // #legend lists the colours of a lane. Categories arrive while a run goes on.
  #legend(lane, list) {
    if (!lane?.legendNode) return;
    lane.legend = list;
    lane.legendNode.replaceChildren(...list.map((c) => {
      const swatch = el("i");
      swatch.style.backgroundColor = c.color;
      const row = el("div", {}, swatch, el("span.clip", { title: c.name }, ...clipped(c.name)), el("b.value", { hidden: true }, ""));
      row.dataset.name = c.name;
      return row;
    }));
    const { base } = this.app;
    if (lane.kind === "memory" && base) lane.legendNode.append(el("div", { title: base.name }, el("i.ghost"), el("span", {}, `B: ${base.name}`)));
  }

  // sift gives the heads room to say what the filter shows.
  sift(filter) {
    const turned = !filter !== !this.filter;
    this.filter = filter;
    this.sifted = 0;
    for (const l of this.list) if (l.match) l.match.hidden = !filter;
    if (turned) this.layout();
  }

  // #matching says what is in colour in a lane, and how much at the instant.
  #matching(lane, passes) {
    if (!lane.match || !this.filter) return;
    const name = this.filter.length > 40 ? `${this.filter.slice(0, 38)}…` : this.filter;
    const looking = this.sifted < 100 ? ` · ${this.sifted} % looked through` : "";
    lane.match.title = `In colour: what holds “${this.filter}” in a frame, tensor or op. The rest is dimmed.`;
    if (lane.kind === "address") lane.match.replaceChildren(`matching ${name} in colour`);
    else lane.match.replaceChildren(`matching ${name}: `, el("b", {}, passes || "…"), looking, " ", el("button.link", { type: "button", title: "Drop the filter", onclick: () => this.app.details.sift("") }, "clear"));
  }

  // layout gives each lane its height, tells the module, and draws.
  layout() {
    if (!this.list.length || this.root.clientWidth === 0) return;
    const narrow = matchMedia("(max-width: 860px)").matches;
    const heights = this.#heights(narrow);
    this.list.forEach((l, i) => {
      l.plot.style.height = `${heights[i]}px`;
    });
    const box = this.root.getBoundingClientRect();
    const first = this.list[0].plot.getBoundingClientRect();
    this.dpr = Math.max(1, Math.round(devicePixelRatio || 1));
    this.left = first.left - box.left;
    this.width = Math.max(1, Math.floor(first.width));
    const scroll = this.root.scrollTop;
    const last = this.list.at(-1).plot.getBoundingClientRect();
    this.height = Math.ceil(last.bottom - box.top + scroll);
    const places = this.list.map((l, i) => {
      const r = l.plot.getBoundingClientRect();
      l.y = Math.round(r.top - box.top + scroll);
      l.h = Math.round(heights[i]);
      return `${l.key}:${l.y * this.dpr}:${l.h * this.dpr}`;
    });
    Object.assign(this.main.style, {
      left: `${this.left}px`, top: "0px", width: `${this.width}px`, height: `${this.height}px`,
    });
    this.root.style.setProperty("--lanes-height", `${this.height}px`);
    this.offer();
    this.app.engine.ask("layout", ...places).catch(() => {});
    this.app.redraw(true);
  }

  #heights(narrow) {
    const fixed = this.list.map((l) => (plain[l.kind] ? plain[l.kind][0] + plain[l.kind][1] * Math.max(1, l.rows) : roomy[l.kind]?.[0] ?? 80));
    if (narrow) return this.list.map((l, i) => (l.kind === "memory" ? 190 : l.kind === "address" ? 120 : fixed[i]));
    // A head needs its height, above all one with a legend, whatever is left.
    this.list.forEach((l, i) => (fixed[i] = Math.max(fixed[i], 44 + (l.legendNode ? l.legendNode.offsetHeight + 3 : 0) + (l.kind === "memory" ? 18 : 0) + (l.match && !l.match.hidden ? 33 : 0))));
    const spare = this.root.clientHeight - fixed.reduce((a, b) => a + b + 1, 0);
    const shares = this.list.map((l) => roomy[l.kind]?.[1] ?? 0);
    // Samples that stand alone are what is looked at.
    if (this.list.every((l) => !roomy[l.kind])) this.list.forEach((l, i) => l.kind === "sample" && (fixed[i] += Math.max(0, Math.min(spare, 66 * l.rows))));
    const all = shares.reduce((a, b) => a + b, 0);
    return fixed.map((h, i) => Math.floor(h + (spare > 0 && all ? (spare * shares[i]) / all : 0)));
  }

  // draw asks for both pictures of the present view.
  draw(all) {
    const { view, span, engine, theme } = this.app;
    if (!view || !this.width || !this.offered) return;
    engine.draw({
      name: "main", picture: 0, w: this.width * this.dpr, h: this.height * this.dpr, dpr: this.dpr,
      t0: view.t0, t1: view.t1, theme, follow: this.app.followed,
    });
    if (!all) return;
    const r = this.minimap.getBoundingClientRect();
    engine.draw({
      name: "map", picture: 1, w: Math.floor(r.width) * this.dpr, h: Math.floor(r.height) * this.dpr, dpr: this.dpr,
      t0: span.t0, t1: span.t1, theme,
    });
  }

  // overviewAxis has where the overview's axis is broken, by the shares of its
  // width: the module draws it the same way, see IdleShare there.
  #overviewAxis() {
    const { t0, t1 } = this.app.span;
    const [from, to] = this.app.current?.idle ?? [t1, t1];
    const gap = to > from ? 0.06 : 0;
    const left = (1 - gap) * ((from - t0) / (from - t0 + t1 - to || 1));
    return { t0, t1, from, to, gap, left };
  }

  // overviewShare is the place of a time on the overview, 0 to 1.
  overviewShare(t) {
    const { t0, t1, from, to, gap, left } = this.#overviewAxis();
    if (t < from || !gap) return left * ((t - t0) / (from - t0 || 1));
    if (t < to) return left + gap * ((t - from) / (to - from));
    return left + gap + (1 - gap - left) * ((t - to) / (t1 - to || 1));
  }

  // overviewTime is the time at a place on the overview.
  overviewTime(share) {
    const { t0, t1, from, to, gap, left } = this.#overviewAxis();
    if (share < left || !gap) return t0 + (share / (left || 1)) * (from - t0);
    if (share < left + gap) return from + ((share - left) / gap) * (to - from);
    return to + ((share - left - gap) / (1 - gap - left || 1)) * (t1 - to);
  }

  x(t) {
    const { view } = this.app;
    return ((t - view.t0) / (view.t1 - view.t0)) * this.width;
  }

  time(x) {
    const { view } = this.app;
    return view.t0 + (x / this.width) * (view.t1 - view.t0);
  }

  // overlay places what follows the view at once: axis, crosshair, brush.
  overlay() {
    const { view, span, hover, cursor, selection } = this.app;
    if (!view) return;
    this.#axis(view);
    place($("hair"), hover, this);
    place($("pin"), cursor, this);
    $("pin-tag").hidden = $("pin").hidden;
    if (cursor !== null) {
      // Its time stands on the axis, where it covers no label.
      const tag = $("pin-tag");
      tag.textContent = nanos(cursor, view.t1);
      const half = tag.offsetWidth / 2 + 1;
      tag.style.left = `${Math.min(Math.max(this.x(cursor), half), this.width - half)}px`;
    }
    const s = $("selection");
    s.hidden = !selection;
    if (selection) {
      const a = Math.max(0, this.x(selection.t0));
      const b = Math.min(this.width, this.x(selection.t1));
      s.hidden = b <= a;
      Object.assign(s.style, { left: `${a}px`, width: `${Math.max(1, b - a)}px` });
    }
    const brush = $("brush");
    const whole = span.t1 - span.t0 || 1;
    const left = this.overviewShare(view.t0);
    brush.style.left = `${left * 100}%`;
    brush.style.width = `${(Math.min(this.overviewShare(view.t1), 1) - left) * 100}%`;
    brush.setAttribute("aria-valuenow", Math.round(((view.t0 + view.t1) / 2 - span.t0) / whole * 100));
    brush.setAttribute("aria-valuetext", `${nanos(view.t0)} to ${nanos(view.t1)}`);
    const out = $("span");
    if (this.app.still) {
      out.replaceChildren(this.app.current.ooms > 1 ? `${count(this.app.current.ooms)} moments, one after the other` : "A moment");
      return;
    }
    out.replaceChildren(el("b", {}, nanos(view.t0, view.t1)), " – ", el("b", {}, nanos(view.t1, view.t1)), ` · ${nanos(view.t1 - view.t0)}`,
      selection ? ` · selected ${nanos(selection.t1 - selection.t0)}` : "", this.#ahead(view));
  }

  // #ahead tells of the failure that lies beyond the view, where nothing happens
  // in between but the wait for memory.
  #ahead(view) {
    const { active, waited } = this.app.current ?? {};
    if (!waited || view.t1 < active || view.t1 >= active + waited) return "";
    return el("b.ahead", { title: "Nothing happens in between. Fit shows all of it, Next OOM goes there." }, ` ▸ out of memory at ${nanos(active + waited)}, after ${nanos(waited)} of waiting`);
  }

  // told shows why a run ended in the place of lanes that have nothing to show.
  told(message) {
    const none = !!message && !this.list.some((l) => l.kind === "memory" || l.kind === "op");
    this.message ??= this.root.appendChild(el("p.lanes-message", { role: "status" }));
    this.message.hidden = !none;
    this.message.textContent = none ? message : "";
  }

  #axis(view) {
    document.querySelector(".axis").hidden = this.app.still;
    if (this.app.still) return;
    const range = view.t1 - view.t0;
    const step = niceStep(range, Math.max(2, this.width / 96));
    const marks = [];
    for (let t = Math.ceil(view.t0 / step) * step; t < view.t1 - (38 / this.width) * range; t += step) {
      const mark = el("span", {}, nanos(Math.round(t), Math.max(Math.abs(view.t0), Math.abs(view.t1))));
      mark.style.left = `${this.x(t)}px`;
      marks.push(mark);
    }
    $("axis").replaceChildren(...marks);
  }

  // scales writes the labels that lie upon the lanes: sizes, limits, rows.
  scales(answer) {
    for (const s of answer.lanes) {
      const lane = this.list.find((l) => l.key === s.key);
      if (!lane) continue;
      const nodes = [];
      const d = this.dpr;
      for (const t of s.ticks) nodes.push(line("", t.y / d, t.label));
      for (const m of s.marks) {
        const node = line(`.mark.${m.kind}${m.y / d < 14 ? ".below" : ""}`, m.y / d, m.label);
        if (m.h !== undefined) node.style.height = `${Math.max(2, m.h / d)}px`;
        nodes.push(node);
      }
      for (const r of s.rows) nodes.push(line(".row-name", r.y / d, r.title));
      spread(nodes);
      lane.ticks.replaceChildren(...nodes);
    }
  }

  // values writes what each lane holds at an instant into its head.
  values(at) {
    for (const lane of this.list) {
      const v = at?.lanes[lane.key];
      lane.now.textContent = v?.now ?? "\u00a0";
      lane.sub2.textContent = lane.sub2.title = v?.sub ?? "";
      this.#matching(lane, v?.passes);
      if (!lane.legendNode) continue;
      [...lane.legendNode.children].forEach((row) => {
        if (!row.dataset.name) return; // the base, which has no value here
        const n = v?.legend?.[row.dataset.name];
        row.lastChild.hidden = n === undefined;
        row.lastChild.textContent = n === undefined ? "" : bytes(n, 1);
        row.classList.toggle("zero", n === 0);
      });
    }
  }

  recolor(list) {
    for (const l of list) {
      const mine = this.list.find((x) => x.key === l.key);
      this.#legend(mine, l.legend);
    }
  }

  laneAt(y) {
    return this.list.find((l) => y >= l.y && y < l.y + l.h) ?? null;
  }
}

function line(classes, y, label) {
  const node = el(`span${classes}`, {}, el("em", {}, label));
  node.style.top = `${y}px`;
  node.y = y;
  return node;
}

// spread moves the labels of marks apart that would lie on each other.
function spread(nodes) {
  let last = -Infinity;
  for (const n of nodes.filter((n) => n.classList.contains("mark")).sort((a, b) => a.y - b.y)) {
    const at = n.y - (n.classList.contains("below") ? 0 : 14);
    const want = Math.max(at, last + 13);
    if (want !== at) n.firstChild.style.top = `${want - n.y}px`;
    last = want;
  }
}

function place(node, t, lanes) {
  const x = t === null ? -1 : lanes.x(t);
  node.hidden = x < 0 || x > lanes.width;
  if (!node.hidden) node.style.left = `${x}px`;
}

// clipped is a name in two parts, of which the first is cut where the head of a
// lane is too narrow: what tells a line of code from others is at its end.
function clipped(name) {
  const end = /[^\s/]*:\d+$/.exec(name);
  return end?.index ? [el("span", {}, name.slice(0, end.index)), el("b", {}, el("bdi", {}, end[0]))] : [el("span", {}, name)];
}
