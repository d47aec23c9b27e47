// The details below the lanes: what the cursor or the selection holds. The
// module answers with figures, a verdict and tables of plain values; this
// module only lays them out.

import { Findings } from "./findings.js";
import { Flame } from "./flame.js";
import * as reading from "./reading.js";
import { $, bytes, count, el, nanos } from "./words.js";

const order = ["reading", "files", "live", "flame", "chunks", "peak", "oom", "findings", "transfers", "compare", "twin", "log"];
const digits = order.filter((tab) => !["flame", "reading", "files"].includes(tab)); // which have letters
const sifted = ["live", "flame"]; // the tabs that the filter is about

export class Details {
  constructor(app) {
    this.app = app;
    this.tab = "live";
    this.sorts = new Map();
    this.pane = $("pane");
    this.wanted = 0;
    this.filter = "";
    this.findings = new Findings(app);
    this.flame = new Flame(app);
    this.#sieve();
    const list = document.querySelector("[role=tablist]");
    list.addEventListener("click", (e) => {
      const tab = e.target.closest("[role=tab]");
      if (tab) this.choose(tab.dataset.tab);
    });
    list.addEventListener("keydown", (e) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
      if (!step) return;
      e.preventDefault();
      const shown = order.filter((tab) => !$(`tab-${tab}`).hidden);
      const next = shown.at((shown.indexOf(this.tab) + step) % shown.length);
      this.choose(next);
      $(`tab-${next}`).focus();
    });
  }

  chooseNumber(n) {
    this.choose(digits[n - 1]);
    $(`tab-${this.tab}`).focus();
  }

  // #sieve is the field of the filter.
  #sieve() {
    let timer = 0;
    const take = () => {
      clearTimeout(timer);
      this.sift($("sift-text").value);
    };
    $("sift-text").addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(take, 200);
    });
    $("sift-text").addEventListener("change", take);
    $("sift").addEventListener("submit", (e) => {
      e.preventDefault();
      take();
    });
    $("sift-text").addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || !e.target.value) return;
      e.preventDefault(); // the first Escape clears the field, the next leaves it
      e.stopPropagation();
      this.sift("");
    });
  }

  // sift lets only what holds a text in a frame, tensor or op through.
  sift(text) {
    text = text.replace(/\s+/g, " ").trim();
    if ($("sift-text").value.trim() !== text) $("sift-text").value = text;
    if (text === this.filter) return;
    this.filter = text;
    this.app.sift();
    this.app.tables();
    this.app.remember();
  }

  // state is what the address bar holds of the details.
  get state() {
    const { how, measure, fold, frame } = this.flame;
    return { tab: this.tab, filter: this.filter, how, by: measure, fold, frame };
  }

  // recall takes what it held; the tab is chosen apart.
  recall(state) {
    this.flame.recall(state);
    this.sift(state.filter);
  }

  choose(tab) {
    if (!order.includes(tab) || $(`tab-${tab}`).hidden) return;
    this.tab = tab;
    for (const t of document.querySelectorAll("[role=tab]")) {
      const on = t.dataset.tab === tab;
      t.setAttribute("aria-selected", on);
      t.tabIndex = on ? 0 : -1;
      if (on && document.activeElement?.closest("[role=tablist]")) t.focus({ preventScroll: true });
      if (on) t.parentNode.scrollLeft = t.offsetLeft - 60; // sideways only: the page stays where it is
    }
    this.pane.setAttribute("aria-labelledby", `tab-${tab}`);
    this.pane.scrollTop = 0;
    $("sift").hidden = !sifted.includes(tab);
    $("flame-tools").hidden = tab !== "flame";
    $("sift-note").textContent = "";
    this.refresh();
    this.app.remember();
  }

  badge(tab, text) {
    const b = $(`tab-${tab}`).querySelector(".badge");
    b.hidden = !text;
    b.textContent = text;
  }

  // refresh asks for the present tab's answer; an answer that is overtaken by
  // a newer question is dropped.
  async refresh() {
    const { app } = this;
    if (!app.current || !app.view) return;
    const mine = ++this.wanted;
    const range = app.selection ?? app.view;
    try {
      if (this.tab === "reading") return reading.show(this.pane, app.told);
      if (this.tab === "files") return this.#show({ note: app.side.note, text: app.side.answer ? "" : "Reading …", ...app.side.answer });
      if (this.tab === "findings") return await this.findings.show(this.pane);
      if (this.tab === "flame") {
        const { filter } = this;
        const answer = await this.flame.ask(filter);
        if (mine !== this.wanted) return;
        this.#passes(answer);
        this.flame.show(this.pane, answer, filter);
        return;
      }
      const answer = await app.engine.ask("details", this.tab, app.moment, Math.round(range.t0), Math.round(range.t1), app.lane?.key ?? "", this.filter);
      if (mine === this.wanted) this.#show(answer);
    } catch (e) {
      app.trouble(e);
    }
  }

  // #passes says how much of what is there passes the filter.
  #passes({ sum, whole }) {
    $("tab-note").textContent = "";
    const share = whole?.[0] ? ` (${((100 * sum[0]) / whole[0]).toFixed(1)} %)` : "";
    $("sift-note").textContent = this.filter && whole ? `${bytes(sum[0])} of ${bytes(whole[0])}${share} pass` : "";
  }

  #show(a) {
    $("tab-note").textContent = $("tab-note").title = a.note ?? "";
    const nodes = [];
    if (a.verdict) {
      nodes.push(el(`div.verdict${a.verdict.calm ? ".calm" : ""}`, {}, el("h3", {}, a.verdict.title), ...a.verdict.text.map((t) => el("p", {}, t))));
    }
    if (a.advice?.length) nodes.push(el("section.advice", {}, el("h3", {}, "What to do"), el("ul", {}, ...a.advice.map((x) => el("li", {}, x)))));
    if (a.figures?.length) {
      nodes.push(el("dl.figures", {}, ...a.figures.map((f) => el(`div.figure${f.tone ? `.${f.tone}` : ""}`, {}, el("dt", {}, f.name), el("dd", {}, f.value, f.sub ? el("small", {}, ` ${f.sub}`) : null)))));
    }
    if (a.facts?.length) nodes.push(el("ul.facts-list", {}, ...a.facts.map((f) => el("li", { title: f.length > 120 ? f : undefined }, el("span", {}, f)))));
    if (a.strip?.length) nodes.push(strip(a));
    if (a.text) nodes.push(el("p.pane-note", {}, a.text));
    a.tables?.forEach((t, i) => nodes.push(this.#table(t, `${this.tab}/${i}`)));
    const top = this.pane.scrollTop;
    const held = document.activeElement?.closest("#pane tr")?.dataset.file;
    this.pane.replaceChildren(...nodes);
    this.pane.scrollTop = top;
    if (held !== undefined) this.pane.querySelector(`tr[data-file="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
  }

  #table(t, key) {
    const body = el("tbody");
    const head = el("tr", {}, ...t.columns.map((c, i) => {
      const th = el(`th${numeric(c.kind) ? ".num" : ""}`, { scope: "col" });
      th.append(el("button", { type: "button", onclick: () => {
        const [by, dir] = this.sorts.get(key) ?? [-1, 0];
        this.sorts.set(key, [i, by === i ? -dir : numeric(c.kind) ? -1 : 1]);
        fill();
      } }, c.name));
      return th;
    }));
    const most = Math.max(1, ...t.rows.map((r) => Math.abs(Number(r.c[t.columns.findIndex((c) => c.kind === "share")]) || 0)));
    const fill = () => {
      const [by, dir] = this.sorts.get(key) ?? [-1, 0];
      const rows = by < 0 || by >= t.columns.length ? t.rows : [...t.rows].sort((a, b) => absent(a.c[by]) - absent(b.c[by]) || dir * compare(a.c[by], b.c[by]));
      [...head.children].forEach((th, i) => {
        if (i === by) th.setAttribute("aria-sort", dir > 0 ? "ascending" : "descending");
        else th.removeAttribute("aria-sort");
      });
      body.replaceChildren(...rows.map((r) => this.#row(t, r, most)));
    };
    fill();
    const more = t.more ? ` · ${count(t.more)} more not shown` : "";
    return el("table.data", {}, el("caption", {}, t.caption + more), el("thead", {}, head), body);
  }

  #row(t, r, most) {
    const tr = el("tr");
    t.columns.forEach((c, i) => {
      const v = r.c[i];
      const td = el(`td${numeric(c.kind) ? ".num" : ""}${c.kind === "addr" ? ".addr" : ""}`);
      if (i === 0 && r.color) {
        const swatch = el("i.swatch");
        swatch.style.backgroundColor = r.color;
        td.append(swatch);
      }
      if (c.kind === "share") {
        td.classList.add("share-cell");
        const bar = el("span.share");
        bar.style.width = `${(100 * Math.abs(v)) / most}%`;
        if (r.color) bar.style.backgroundColor = r.color;
        td.append(bar);
      } else td.append(cell(c.kind, v));
      if (c.kind === "delta" && v) td.classList.add(v > 0 ? "more" : "less");
      if (c.kind === "text" && String(v).length > 40) td.title = v;
      tr.append(td);
    });
    if (r.bad) tr.classList.add("bad");
    if (r.t !== undefined || r.file !== undefined) {
      tr.classList.add("go");
      tr.tabIndex = 0;
      if (r.file !== undefined) tr.dataset.file = r.file;
      if (r.file === this.app.current?.name) tr.setAttribute("aria-current", "true");
      const go = (e) => (r.file === undefined ? this.app.goto(r.t, r.t1) : this.app.beside(r.file, e.shiftKey));
      tr.addEventListener("click", go);
      tr.addEventListener("keydown", (e) => e.key === "Enter" && go(e));
    }
    return tr;
  }
}

const numeric = (kind) => kind !== "text" && kind !== "addr" && kind !== "share";

const absent = (v) => v === null || v === undefined; // stays last, whatever comes first

const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));

function cell(kind, v) {
  if (v === null || v === undefined || v === "") return "–";
  if (typeof v === "string") return v;
  switch (kind) {
    case "bytes":
      return bytes(v);
    case "delta":
      return v === 0 ? "same" : `${v > 0 ? "+" : "−"}${bytes(Math.abs(v))}`;
    case "time":
      return nanos(v);
    case "rate":
      return `${bytes(v)}/s`;
    case "count":
      return count(v);
    case "percent":
      return `${(100 * v).toFixed(1)} %`;
    default:
      return String(v);
  }
}

// strip draws a chunk map as one bar: blocks in use, their unrequested tails,
// holes, and the largest hole set apart.
function strip(a) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", `0 0 ${a.stripWidth} 10`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", a.stripLabel);
  for (const [x, w, kind] of a.strip) {
    const r = document.createElementNS(ns, "rect");
    for (const [k, v] of Object.entries({ x, y: 0, width: w, height: 10, class: kind })) r.setAttribute(k, v);
    svg.append(r);
  }
  const legend = [["used", "in use"], ["hole", "free"], ["hole largest", "the largest hole"]].map(([kind, name]) => el("span", {}, el(`i.${kind.replace(" ", ".")}`), name));
  return el("figure.strip", {}, svg, el("figcaption", {}, ...legend, el("span", {}, a.stripLabel)));
}
