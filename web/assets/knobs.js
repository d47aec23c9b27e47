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

// lists are written as lists, words as they stand; everything else by its looks.
const lists = /^(batch|image|sequence|devices\.\d+\.logical)$/;
const wordLists = /^(keep|env|devices\.\d+\.allocator_options)$/;

function scalar(path, value) {
  if (wordLists.test(path)) return value.split(/\s+/).filter(Boolean);
  if (lists.test(path)) return value.split(",").map((v) => (/^\d+$/.test(v) ? Number(v) : v));
  if (value === "true" || value === "false") return value === "true";
  if (!/^name$|\.card$|\.match$/.test(path) && /^-?\d+(\.\d+)?$/.test(value)) return Number(value);
  return value;
}

const modelKinds = [["images", "Images"], ["features", "Feature vectors"], ["tokens", "Text"]];
const precisions = {
  train: [["float32", "float32"], ["float64", "float64"], ["mixed_float16", "mixed float16"], ["mixed_bfloat16", "mixed bfloat16"]],
  inference: [["float32", "float32"], ["float64", "float64"], ["float16", "float16"], ["bfloat16", "bfloat16"]],
};

// Controls whose name is the path of their field say in data-kind how their
// text is written, and in data-unset what a missing field means.
const plain = (c) => c.name && (c.dataset.kind !== undefined || c.dataset.unset !== undefined);

// read is what a control says as a field's text; "" for what a missing field
// means.
function read(c) {
  const v = text(c);
  return v === c.dataset.unset ? "" : v;
}

function text(c) {
  const v = c.value.trim();
  switch (c.dataset.kind) {
    case "flag":
      return c.checked ? "true" : "";
    case "list":
      return v.split(/[\s,;]+/).filter(Boolean).join(",");
    case "words":
    case "lines":
      return v.split(/\s+/).filter(Boolean).join(" ");
    case "us":
      if (!v || Number(v) === 0) return "";
      return Number.isFinite(Number(v)) ? `${Number(v)}us` : v;
    case "bytes":
      return compact(v);
  }
  return v;
}

// write is the inverse of read.
function write(c, v = "") {
  switch (c.dataset.kind) {
    case "flag":
      c.checked = v === "true";
      return;
    case "list":
      v = v.replaceAll(",", ", ");
      break;
    case "lines":
      v = v.replaceAll(" ", "\n");
      break;
    case "us":
      v = v && micros(v);
      break;
    case "bytes":
      v = v && size(v);
  }
  set(c, v || c.dataset.unset || "");
}

export class Knobs {
  constructor(app) {
    this.app = app;
    this.form = $("knobs");
    this.base = new Map(); // the fields of the run on screen
    this.given = null;
    this.form.addEventListener("input", (e) => {
      if (e.target.name === "train.optimizer") this.#rate();
      if (e.target.name === "model") this.#suit();
      this.changed();
    });
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
    $("add-env").addEventListener("change", (e) => {
      const env = $("k-env");
      env.value = `${env.value.trim()}\n${e.target.value}=`.trimStart();
      e.target.value = "";
      env.focus();
      this.changed();
    });
    this.#precisions();
  }

  // offer fills the choices that the module knows.
  offer(info) {
    this.models = info.models;
    this.presets = info.presets;
    fillGroups($("k-model"), modelKinds.map(([kind, label]) => [label, info.models.filter((m) => m.kind === kind).map((m) => [m.name, m.title])]));
    fillGroups($("k-preset"), [["gpu", "GPU"], ["tpu", "TPU"]].map(([kind, label]) => [
      label, info.presets.filter((p) => (p.kind || "gpu") === kind).map((p) => [p.name, p.title.replace(/ \(.*/, ""), p.title]),
    ]));
    this.allocators = info.allocators;
    fill(this.control("devices.0.allocator"), info.allocators.map((a) => [a.name, a.name, a.text]));
    fill($("add-env"), [["", "Add a variable…"], ...info.env[0].names.split(" ").map((n) => [n, n.replace(/^TF_/, "")])]);
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
    else this.changed();
  }

  control(name) {
    return this.form.elements[name];
  }

  // show puts the fields of a run into the form and makes them the base that
  // changes are told against.
  show(fields) {
    this.base = fields;
    const get = (k, d = "") => fields.get(k) ?? d;
    for (const [name, unset] of [["model", "mlp"], ["mode", "graph"], ["steps", "20"], ["seed", "1"], ["batch", "32"]]) {
      set(this.control(name), get(name, unset).replaceAll(",", ", "));
    }
    for (const c of this.form.elements) if (plain(c)) write(c, get(c.name));
    if (fields.has("devices.0.preset")) set(this.control("devices.0.preset"), get("devices.0.preset"));
    const trains = fields.has("train") || fields.has("train.optimizer");
    set(this.control("train.optimizer"), trains ? get("train.optimizer", "adam") : "");
    this.#precisions();
    set($("k-precision"), get(trains ? "train.precision" : "precision", "float32"));
    if (ownCard(fields, 0)) this.control("devices.0.card").value = "";
    set(this.control("cards"), String(Math.min(2, this.#cards(fields))));
    const limit = get("devices.0.memory_limit");
    const logical = get("devices.0.logical");
    set(this.control("memory"), get("devices.0.growth") === "true" ? "growth" : limit ? "limit" : logical ? "split" : "whole");
    if (limit) $("k-limit").value = size(limit);
    if (logical) $("k-logical").value = logical.split(",").map(size).join(", ");
    $("k-held").value = size(get("devices.0.held", "0"));
    this.control("placement.soft").checked = get("placement.soft", "true") === "true";
    $("rules").replaceChildren();
    for (let i = 0; fields.has(`placement.rules.${i}.match`); i++) {
      this.#addRule(get(`placement.rules.${i}.match`), get(`placement.rules.${i}.device`));
    }
    this.#fit();
    this.given = this.collect();
    this.changed();
  }

  get #trains() {
    return this.control("train.optimizer").value !== "";
  }

  get #kind() {
    return this.presets?.find((p) => p.name === this.control("devices.0.preset").value)?.kind || "gpu";
  }

  // #precisions offers those of training or of inference, and keeps the chosen
  // one in the other's words.
  #precisions() {
    const select = $("k-precision");
    const list = precisions[this.#trains ? "train" : "inference"];
    if (select.options.length && select.options[2].value === list[2][0]) return;
    const was = select.value.replace("mixed_", "");
    fill(select, list);
    select.value = list.find(([v]) => v.replace("mixed_", "") === was)?.[0] ?? "float32";
  }

  // #rate: a learning rate that came with another optimizer is not this one's.
  #rate() {
    const rate = this.control("train.learning_rate");
    const base = this.base.get("train.learning_rate") ?? "";
    const same = this.control("train.optimizer").value === this.base.get("train.optimizer");
    if (!same && rate.value === base) rate.value = "";
    else if (same && rate.value === "") rate.value = base;
  }

  // #suit: sizes of a sample and a source that came with another model are not
  // this one's; they come back with it.
  #suit() {
    const model = this.control("model").value;
    const same = model === this.base.get("model");
    for (const name of ["image", "sequence", "input.source"]) {
      const c = this.control(name);
      const was = same ? this.base.get(name) ?? "" : "";
      if (name !== "input.source" || same || this.#reads(model, c.value) === false) write(c, was);
    }
  }

  // #reads says whether a source holds what a model reads: text is for tokens,
  // digits are for all others.
  #reads(model, source) {
    const tokens = this.models?.find((m) => m.name === model)?.kind === "tokens";
    return !(source === "text" && !tokens) && !(source === "digits" && tokens);
  }

  // #fit shows the controls that mean something with what is chosen.
  #fit() {
    const value = (name) => this.control(name).value;
    const cards = Number(value("cards"));
    const model = this.models?.find((m) => m.name === value("model"));
    const on = {
      train: this.#trains,
      eager: value("mode") === "eager",
      graph: value("mode") !== "eager",
      // Of an MLP, named for its one size, only where the run has set another.
      images: !!model?.image && (!model.name.startsWith("mlp") || this.base.has("image")),
      tokens: model?.kind === "tokens",
      accelerator: cards > 0,
      two: cards === 2,
      gpu: cards > 0 && this.#kind === "gpu",
      unlimited: value("memory") === "whole" || value("memory") === "growth",
      interleaved: Number(value("input.interleave.cycle")) > 0,
    };
    for (const when of this.form.querySelectorAll(".when")) {
      const [name, want] = when.dataset.when.split("=");
      when.hidden = want === undefined ? !on[name] : !want.split("|").includes(value(name));
    }
    this.#precisions();
    const allocator = this.allocators?.find((a) => a.name === value("devices.0.allocator"));
    if (allocator) {
      const options = this.control("devices.0.allocator_options");
      options.title = allocator.options ? `Settings of the allocator with their defaults: ${allocator.options}` : "This allocator has no settings";
      options.disabled = !allocator.options;
      this.control("devices.0.allocator").title = allocator.text;
    }
    for (const o of this.control("input.source").options) o.hidden = o.disabled = !!model && !this.#reads(model.name, o.value);
    if (model?.image) this.control("image").placeholder = model.image;
    if (model?.sequence) this.control("sequence").placeholder = model.sequence;
    for (const fold of this.form.querySelectorAll(".more")) {
      const n = [...fold.querySelectorAll("[name]")].filter((c) => meant(c) && read(c) !== "" && !(c.name === "train.learning_rate" && c.value === this.base.get(c.name))).length;
      fold.querySelector(".more-set").textContent = n ? ` ${n} set` : "";
    }
    if (model && this.layersOf !== model.name) {
      this.layersOf = model.name;
      $("layers").replaceChildren(...model.layers.map((l) => el("option", { value: `${l}/*` })));
    }
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
    f.set("model", value("model")).set("mode", value("mode"));
    const optimizer = value("train.optimizer");
    if (optimizer) f.set("train", "on").set("train.optimizer", optimizer);
    const precision = $("k-precision").value;
    if (precision !== "float32") f.set(optimizer ? "train.precision" : "precision", precision);
    f.set("batch", value("batch").split(/[\s,;]+/).filter(Boolean).join(","));
    f.set("steps", value("steps")).set("seed", value("seed"));
    this.#collectDevices(f, keep);
    for (const c of this.form.elements) {
      if (!plain(c) || !meant(c) || /^devices\.|^train\.optimizer$/.test(c.name)) continue;
      const v = read(c);
      if (v) f.set(c.name, v);
    }
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
    const kind = this.#kind;
    const memory = kind === "gpu" ? this.control("memory").value : "";
    const own = [...this.form.elements].filter((c) => c.name?.startsWith("devices.") && plain(c) && meant(c));
    // More cards than the form can tell apart are kept as they were.
    for (let i = 0; i < (cards === 2 ? Math.max(2, had) : cards); i++) {
      const d = `devices.${i}`;
      f.set(`${d}.kind`, kind);
      f.set(`${d}.preset`, i > 0 && i < had && this.base.get(`${d}.kind`) === kind ? this.base.get(`${d}.preset`) : this.control("devices.0.preset").value);
      if (i > 0 && !ownCard(this.base, i)) keep(`${d}.card`);
      if (i > 1) keep(`${d}.hidden`);
      if (memory === "growth") f.set(`${d}.growth`, "true");
      if (memory === "limit") f.set(`${d}.memory_limit`, compact($("k-limit").value));
      if (memory === "split") f.set(`${d}.logical`, $("k-logical").value.split(/[,;]/).map(compact).filter(Boolean).join(","));
      const held = compact($("k-held").value);
      if (held && held !== "0") f.set(`${d}.held`, held);
      for (const c of own) {
        const [, n, name] = c.name.split(".");
        const v = read(c);
        if (v && (c.dataset.each !== undefined || Number(n) === i)) f.set(`${d}.${name}`, v);
      }
    }
  }

  changed() {
    this.#fit();
    const now = this.collect();
    const list = [];
    for (const k of new Set([...(this.given?.keys() ?? []), ...now.keys()])) {
      const a = this.given?.get(k);
      const b = now.get(k);
      if (a !== b && k !== "train" && k !== "name") list.push([k, a ?? this.#unset(k), b ?? this.#unset(k)]);
    }
    for (const row of this.form.querySelectorAll(".changed")) row.classList.remove("changed");
    for (const [k] of list) this.#row(k)?.classList.add("changed");
    this.list = list;
    const out = $("changes");
    out.title = list.map(([k, a, b]) => `${label(k)} ${a} → ${b}`).join(", ");
    if (!list.length) out.replaceChildren(this.app.live ? "Running" : this.app.current?.settings ? "No changes from this run" : "Ready to run");
    else {
      out.replaceChildren(...list.flatMap(([k, a, b], i) => [i ? ", " : "", el("b", {}, label(k)), ` ${a} → ${b}`]));
    }
  }

  // #unset is the word for a field that is not there.
  #unset(path) {
    if (path.endsWith("precision")) return "float32";
    const c = this.control(path);
    return c?.dataset?.kind === "flag" ? "off" : c?.dataset?.unset || c?.placeholder || "–";
  }

  #row(path) {
    const names = { growth: "memory", memory_limit: "memory", kind: "preset" };
    const last = path.split(".").at(-1);
    const first = path.replace(/^devices\.\d+\./, "devices.0.");
    const c = this.control(path) ?? this.control(first) ?? this.control(names[last]) ?? document.getElementById(`k-${names[last] ?? last}`);
    return (c?.[0]?.type === "radio" ? c[0] : c)?.closest?.(".row, .check");
  }

  #addRule(match, device) {
    const where = el("select", { ariaLabel: "on device" });
    const type = this.#kind.toUpperCase();
    const parts = $("k-logical").closest("[hidden]") ? Number(this.control("devices.0.virtual").value) || 1 : $("k-logical").value.split(",").length;
    const count = Math.max(2, Number(this.control("cards").value) * parts);
    const options = ["/CPU:0", ...Array.from({ length: count }, (_, i) => `/${type}:${i}`)];
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

  // problems shows what is wrong with the settings, at the control where that
  // is known.
  problems(list) {
    const out = $("problem");
    out.hidden = !list?.length;
    out.textContent = list?.map((p) => (p.path ? `${label(p.path)}: ${p.message}` : p.message)).join("\n") ?? "";
    for (const c of this.form.querySelectorAll("[aria-invalid]")) c.removeAttribute("aria-invalid");
    for (const p of list ?? []) {
      const row = this.#row(p.path ?? "");
      row?.querySelector("input, select, textarea")?.setAttribute("aria-invalid", "true");
      const fold = row?.closest("details");
      if (fold) fold.open = true;
    }
  }
}

const words = {
  check_numerics: "stop at the first NaN", image: "image side", sequence: "tokens", optimize: "graph rewriting", keep: "kept", copy_policy: "copies", env: "environment",
  "train.checkpoint": "checkpoints", "train.clip": "clip norm", "devices.preset": "card", "devices.card": "shared card", "devices.kind": "device",
  "devices.memory_limit": "limit", "devices.logical": "parts", "devices.virtual": "equal parts", "devices.unified": "unified memory",
  "devices.held": "held by others", "devices.reserve_rule": "reserve", "devices.peer": "link", "devices.allocator": "allocator", "devices.allocator_options": "allocator options",
  "train.momentum": "momentum", "train.nesterov": "looking ahead", "train.centered": "centred gradients",
  "input.map.parallel": "map calls", "input.map.cost": "map cost", "input.interleave.cycle": "interleave", "input.interleave.block": "interleave block",
  "input.interleave.parallel": "interleave reads", "input.repeat": "epochs", "input.prefetch_to_device": "prefetch on the card",
  "input.ram_budget": "memory for buffers", "input.cache": "cache", "placement.soft": "soft placement", "placement.log": "placement log",
};

// label names a field in a few words.
export function label(path) {
  const rule = /^placement\.rules\.(\d+)\.(\w+)$/.exec(path);
  if (rule) return `rule ${Number(rule[1]) + 1} ${rule[2]}`;
  const device = /^devices\.(\d+)\.(\w+)$/.exec(path);
  const [, n, name] = device ?? [];
  const word = words[device ? `devices.${name}` : path] ?? path.split(".").at(-1).replaceAll("_", " ");
  return Number(n) > 0 ? `${["", "second", "third", "fourth"][n] ?? `${Number(n) + 1}th`} card's ${word}` : word;
}

// ownCard: the name that a card has when the workload gives it none.
const ownCard = (fields, i) => fields.get(`devices.${i}.card`) === `${fields.get(`devices.${i}.preset`)}#${i}`;

// meant: not hidden, because what is chosen gives it a meaning.
const meant = (c) => !c.disabled && !c.closest(".when[hidden]");

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

const choices = (pairs) => pairs.map(([value, text, title]) => el("option", { value, title: title ?? "" }, text));

function fill(select, pairs) {
  const was = select.value;
  select.replaceChildren(...choices(pairs));
  if (pairs.some(([v]) => v === was)) select.value = was;
}

function fillGroups(select, groups) {
  const was = select.value;
  select.replaceChildren(...groups.filter(([, pairs]) => pairs.length).map(([label, pairs]) => el("optgroup", { label }, ...choices(pairs))));
  if (groups.some(([, pairs]) => pairs.some(([v]) => v === was))) select.value = was;
}
