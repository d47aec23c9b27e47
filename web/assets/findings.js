// What stands out in the timeline on screen, and what would have helped: the
// second module runs its workload again with each remedy and tells of every run
// as it ends.

import { parse } from "./fields.js";
import { $, bytes, el, nanos } from "./words.js";

const nothing = (pane) => pane.replaceChildren(el("p.pane-note", {}, "This file names no workload, so nothing can be rerun. What other settings would have come to is in “What it says”, where the file tells its requests."));

export class Findings {
  #of = 0; // the timeline that is told of
  #told = null; // its findings and reruns
  #turn = 0;

  constructor(app) {
    this.app = app;
  }

  // show fills the pane, asking once for each timeline.
  async show(pane) {
    const { app } = this;
    $("tab-note").textContent = "";
    if (!app.current.settings) {
      return nothing(pane);
    }
    if (app.live) {
      pane.replaceChildren(el("p.pane-note", {}, "The run is still going on: what stands out is told when it has ended."));
      return;
    }
    if (this.#of !== app.current.serial || !this.#told) {
      this.#of = app.current.serial;
      return await this.#ask(pane);
    }
    this.#draw(pane);
  }

  async #ask(pane) {
    const turn = ++this.#turn;
    const told = { findings: [], reruns: [], fields: "" };
    this.#told = told;
    const { fields } = await this.app.engine.ask("settings");
    told.fields = fields ?? "";
    // Those of an allocator, as a snapshot has them, are no workload.
    told.modelless = !parse(told.fields).has("model");
    if (told.modelless) return this.#draw(pane);
    const piece = (p) => {
      if (turn !== this.#turn) return;
      if (p.error) told.error = p.error;
      if (p.count !== undefined) told.findings = p.findings ?? [];
      if (p.trial) told.reruns.push(p);
      if (p.over) told.end = p;
      if (this.app.details.tab === "findings") this.#draw(pane);
    };
    this.#draw(pane);
    try {
      const answer = await this.app.runner.helped(fields, piece);
      if (answer.error || answer.problems) told.error = answer.error ?? answer.problems[0].message;
    } catch (e) {
      told.error = e.message;
    }
    told.done = true;
    if (turn === this.#turn && this.app.details.tab === "findings") this.#draw(pane);
  }

  #draw(pane) {
    const told = this.#told;
    if (told.modelless) return nothing(pane);
    const nodes = [];
    if (told.error) nodes.push(el("p.pane-note", {}, told.error));
    const need = Number(told.end?.need ?? 0);
    const failed = told.findings.some((f) => f.id === "out_of_memory");
    told.findings.forEach((f, i) => {
      const lines = (f.text ?? []).map((t) => el("p", {}, t));
      const title = f.device ? `${f.title}, ${f.device}` : f.title;
      nodes.push(el(`div.verdict${f.severity === "serious" ? "" : ".calm"}`, { "data-finding": f.id }, el("h3", {}, title), ...lines, this.#reruns(told, (r) => !failed && Number(r.finding) === i)));
    });
    if (failed) {
      nodes.push(el("section.advice", {}, el("h3", {}, "What would have helped, each run to its end"),
        need ? el("p", {}, `Without a bound on memory the run needs ${bytes(need)}, of a limit of ${bytes(Number(told.end.limit))}.`) : null,
        this.#reruns(told, () => true, need)));
    }
    if (!told.done) nodes.push(el("p.pane-note", { role: "status" }, `Looking for what would have helped: ${told.reruns.length} reruns so far.`));
    else if (!nodes.length) nodes.push(el("p.pane-note", {}, "Nothing stands out."));
    pane.replaceChildren(...nodes);
  }

  // reruns lists those that did something about it; each can be taken over.
  #reruns(told, which, need = 0) {
    const list = told.reruns.filter(which);
    if (!list.length) return null;
    const good = list.filter((r) => r.helps === "true");
    const bad = list.filter((r) => r.helps !== "true");
    const items = good.map((r) => {
      let what = `peak ${bytes(Number(r.peak))}`;
      if (need && need !== Number(r.peak)) what += `, ${bytes(Math.abs(need - Number(r.peak)))} ${need > Number(r.peak) ? "less" : "more"} than it needs now`;
      if (r.base_duration) what += `, ${nanos(Number(r.duration))} instead of ${nanos(Number(r.base_duration))}`;
      else what += `, ${nanos(Number(r.per_sample))} a sample`;
      const sizes = new Set(parse(told.fields).get("batch")?.split(","));
      if (sizes.size > 1 && r.changes.some((c) => c.field === "batch" && !String(c.value).includes(","))) what += `; one fixed size for every step, instead of ${sizes.size} that take turns`;
      if (told.end?.batch === r.set && told.end.batch_next) what += "; the largest that fits";
      if (told.end?.batch === r.set && told.end.postpones_only === "true") what += ", and only puts the end off";
      return el("li", {}, el("button.small", { type: "button", title: "Rerun with this", onclick: () => this.#take(told, r) }, r.short), ` ${what}, modelled`);
    });
    return el("div", {}, items.length ? el("ul", {}, ...items) : null,
      bad.length ? el("p", {}, `Run as well, and no help: ${bad.map((r) => r.short).join(", ")}.`) : null);
  }

  // take puts a rerun's changes into the form and runs it here.
  #take(told, rerun) {
    const fields = parse(told.fields);
    for (const { field, value } of rerun.changes) {
      if (field === "placement.rules") {
        for (const k of [...fields.keys()]) if (k.startsWith("placement.rules.")) fields.delete(k);
      } else fields.set(field, String(value ?? "").replace(/^\[|\]$/g, ""));
    }
    this.app.knobs.show(fields);
    this.app.rerun();
  }
}
