// The knobs: a workload's flat fields to the form and back.

import { parse, tree } from "./fields.js";
import { $, bytes, el, parseBytes } from "./words.js";

// nest makes the JSON body of the agent's interface from flat fields.
export function nest(fields) {
  const plain = new Map(fields);
  plain.delete("train"); // its fields say it; alone it means {}
  const root = tree(plain, scalar);
  if (fields.has("train")) root.train ??= {};
  return root;
}

function scalar(path, value) {
  if (path === "batch") return value.split(",").map(Number);
  if (/\.logical$/.test(path)) return value.split(",");
  if (value === "true" || value === "false") return value === "true";
  if (path !== "name" && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  return value;
}

const plainNames = ["model", "mode", "steps", "seed", "input.prefetch", "input.map.parallel", "input.shuffle", "devices.0.preset"];

export class Knobs {
  constructor(app) {
    this.app = app;
    this.form = $("knobs");
    this.base = new Map(); // the fields of the run on screen
    this.given = null;
    this.form.addEventListener("input", () => this.changed());
    this.form.addEventListener("submit", (e) => {
      e.preventDefault();
      app.rerun();
    });
    $("run-agent").addEventListener("click", () => app.runOnAgent());
    $("stop").addEventListener("click", () => app.stop());
    $("add-rule").addEventListener("click", () => {
      this.#addRule("", "/CPU:0").querySelector("input").focus();
      this.changed();
    });
  }

  // offer fills the choices that the module knows.
  offer(info) {
    fill($("k-model"), info.models.map((m) => [m.name, m.title]));
    fill($("k-preset"), info.presets.map((p) => [p.name, p.title.replace(/ \(.*/, ""), p.title]));
    this.models = info.models;
    // Sharing a card takes two runs, so an agent.
    const demos = info.demos.filter((d) => this.app.hasAgent || d.id !== "two-runs");
    for (const [where, count] of [["demos", demos.length], ["start-demos", 4]]) {
      $(where).replaceChildren(...demos.slice(0, count).map((d, i) => {
        const node = el(`button.demo${i === 0 ? ".first" : ""}`, { type: "button", title: d.text }, el("b", {}, d.title), el("span", {}, d.text));
        node.dataset.demo = d.id;
        node.addEventListener("click", () => this.app.demo(d));
        return node;
      }));
    }
    if (!this.base.size && info.demos.length) this.show(parse(info.demos[0].fields));
    this.#layers();
  }

  control(name) {
    return this.form.elements[name];
  }

  // show puts the fields of a run into the form and makes them the base that
  // changes are told against.
  show(fields) {
    this.base = fields;
    const get = (k, d = "") => fields.get(k) ?? d;
    for (const name of plainNames) {
      const c = this.control(name);
      const v = get(name, { mode: "graph", steps: "20", seed: "1", "input.prefetch": "0", "input.map.parallel": "1", "input.shuffle": "0" }[name]);
      if (v !== undefined && c) set(c, v === "auto" ? "-1" : v);
    }
    set(this.control("batch"), get("batch", "32").replaceAll(",", ", "));
    set(this.control("train.optimizer"), fields.has("train") || fields.has("train.optimizer") ? get("train.optimizer", "adam") : "");
    set(this.control("cards"), String(Math.min(2, this.#cards(fields))));
    const limit = get("devices.0.memory_limit");
    set(this.control("memory"), get("devices.0.growth") === "true" ? "growth" : limit ? "limit" : "whole");
    if (limit) $("k-limit").value = size(limit);
    $("k-held").value = size(get("devices.0.held", "0"));
    $("k-cost").value = micros(get("input.map.cost", "0"));
    this.control("placement.soft").checked = get("placement.soft", "true") === "true";
    $("rules").replaceChildren();
    for (let i = 0; fields.has(`placement.rules.${i}.match`); i++) {
      this.#addRule(get(`placement.rules.${i}.match`), get(`placement.rules.${i}.device`));
    }
    this.given = this.collect();
    this.#layers();
    this.changed();
  }

  #cards(fields) {
    let n = 0;
    while (fields.has(`devices.${n}.kind`) || fields.has(`devices.${n}.preset`)) n++;
    return n;
  }

  // collect is the form as fields. What the form has no control for stays as
  // the run on screen had it.
  collect() {
    const f = new Map();
    const value = (name) => this.control(name).value;
    const keep = (k) => this.base.has(k) && f.set(k, this.base.get(k));
    keep("name");
    f.set("model", value("model"));
    f.set("mode", value("mode"));
    const optimizer = value("train.optimizer");
    if (optimizer) {
      f.set("train", "on").set("train.optimizer", optimizer);
      if (this.base.get("train.optimizer") === optimizer) keep("train.learning_rate");
      keep("train.precision");
    }
    f.set("batch", value("batch").split(/[\s,;]+/).filter(Boolean).join(","));
    f.set("steps", value("steps")).set("seed", value("seed"));
    keep("input.source");
    f.set("input.map.parallel", value("input.map.parallel"));
    const cost = Number($("k-cost").value);
    if (cost > 0) f.set("input.map.cost", `${cost}us`);
    f.set("input.shuffle", value("input.shuffle"));
    f.set("input.prefetch", value("input.prefetch").replace("-1", "auto"));
    this.#collectDevices(f, keep);
    f.set("placement.soft", String(this.control("placement.soft").checked));
    [...$("rules").children].filter((r) => r.querySelector("input").value.trim()).forEach((r, i) => {
      f.set(`placement.rules.${i}.match`, r.querySelector("input").value.trim());
      f.set(`placement.rules.${i}.device`, r.querySelector("select").value);
    });
    return f;
  }

  #collectDevices(f, keep) {
    const cards = Number(this.control("cards").value);
    const had = this.#cards(this.base);
    // More cards than the form can tell apart are kept as they were.
    for (let i = 0; i < (cards === 2 ? Math.max(2, had) : cards); i++) {
      const d = `devices.${i}`;
      f.set(`${d}.kind`, "gpu");
      f.set(`${d}.preset`, i > 0 && i < had ? this.base.get(`${d}.preset`) : this.control("devices.0.preset").value);
      keep(`${d}.card`);
      const memory = this.control("memory").value;
      if (memory === "growth") f.set(`${d}.growth`, "true");
      if (memory === "limit") f.set(`${d}.memory_limit`, compact($("k-limit").value));
      if (memory === "whole") keep(`${d}.logical`);
      const held = compact($("k-held").value);
      if (held && held !== "0") f.set(`${d}.held`, held);
      keep(`${d}.allocator`);
    }
  }

  changed() {
    for (const when of this.form.querySelectorAll(".when")) {
      const [name, want] = when.dataset.when.split("=");
      when.hidden = this.control(name).value !== want;
    }
    const now = this.collect();
    const list = [];
    for (const k of new Set([...(this.given?.keys() ?? []), ...now.keys()])) {
      const a = this.given?.get(k);
      const b = now.get(k);
      if (a !== b && k !== "train" && k !== "name") list.push([k, a, b]);
    }
    for (const row of this.form.querySelectorAll(".row")) row.classList.remove("changed");
    for (const [k] of list) this.#row(k)?.classList.add("changed");
    this.list = list;
    const out = $("changes");
    out.title = list.map(([k, a, b]) => `${label(k)} ${a ?? "–"} → ${b ?? "–"}`).join(", ");
    if (!list.length) out.replaceChildren(this.app.live ? "Running" : this.app.current?.settings ? "No changes from this run" : "Ready to run");
    else {
      out.replaceChildren(...list.flatMap(([k, a, b], i) => [i ? ", " : "", el("b", {}, label(k)), ` ${a ?? "–"} → ${b ?? "–"}`]));
    }
    this.#layers();
  }

  #row(path) {
    const names = { growth: "memory", memory_limit: "memory", held: "held", cost: "cost", kind: "cards" };
    const last = path.split(".").at(-1);
    const c = this.control(path) ?? this.control(names[last]) ?? $(`k-${names[last] ?? last}`);
    return (c?.[0]?.type === "radio" ? c[0] : c)?.closest?.(".row");
  }

  #addRule(match, device) {
    const where = el("select", { ariaLabel: "on device" });
    const options = ["/CPU:0", "/GPU:0", "/GPU:1"];
    if (device && !options.includes(device)) options.push(device);
    fill(where, options.map((o) => [o, o]));
    where.value = device || "/CPU:0";
    const node = el("div.rule", {},
      el("input", { type: "text", value: match, placeholder: "conv2/*", ariaLabel: "Layer", spellcheck: false }),
      where,
      el("button.ghost", { type: "button", ariaLabel: "Remove rule", title: "Remove", onclick: () => {
        node.remove();
        this.changed();
      } }, "×"));
    node.querySelector("input").setAttribute("list", "layers");
    $("rules").append(node);
    return node;
  }

  #layers() {
    const model = this.models?.find((m) => m.name === this.control("model").value);
    if (!model || this.layersOf === model.name) return;
    this.layersOf = model.name;
    $("layers").replaceChildren(...model.layers.map((l) => el("option", { value: `${l}/*` })));
  }

  // problems shows what is wrong with the settings, at the control where that
  // is known.
  problems(list) {
    const out = $("problem");
    out.hidden = !list?.length;
    out.textContent = list?.map((p) => (p.path ? `${label(p.path)}: ${p.message}` : p.message)).join("\n") ?? "";
    for (const c of this.form.querySelectorAll("[aria-invalid]")) c.removeAttribute("aria-invalid");
    for (const p of list ?? []) this.#row(p.path ?? "")?.querySelector("input, select")?.setAttribute("aria-invalid", "true");
  }
}

function label(path) {
  const words = {
    "train.optimizer": "optimizer", "devices.0.preset": "card", "devices.0.growth": "growth", "devices.0.memory_limit": "limit",
    "devices.0.held": "held by others", "input.prefetch": "prefetch", "input.map.parallel": "map calls", "input.map.cost": "map cost",
    "input.shuffle": "shuffle", "placement.soft": "soft placement", "devices.0.kind": "card", "devices.1.kind": "second card",
  };
  return words[path] ?? path.replace(/^devices\.1\./, "second card ").replace("placement.rules.", "rule ");
}

const compact = (text) => text.replaceAll(" ", "");

function size(text) {
  const n = parseBytes(text);
  if (!Number.isFinite(n)) return text;
  if (n % 1048576 === 0 && n) return `${n / 1048576} MiB`;
  return n < 1024 ? String(n) : text.replace(/([KMGT]?i?B)$/, " $1").replace("  ", " ") || bytes(n);
}

function micros(duration) {
  const m = /^([\d.]+)(ns|us|µs|ms|s)$/.exec(duration);
  if (!m) return "0";
  return String(Number(m[1]) * { ns: 1e-3, us: 1, "µs": 1, ms: 1e3, s: 1e6 }[m[2]]);
}

function set(control, value) {
  if (control instanceof RadioNodeList) {
    for (const r of control) r.checked = r.value === value;
    return;
  }
  if (control.tagName === "SELECT" && value && ![...control.options].some((o) => o.value === value)) {
    control.append(el("option", { value }, value));
  }
  control.value = value;
}

function fill(select, pairs) {
  const was = select.value;
  select.replaceChildren(...pairs.map(([value, text, title]) => el("option", { value, title }, text)));
  if (pairs.some(([v]) => v === was)) select.value = was;
}
