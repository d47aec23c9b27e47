// Running workloads, here and on the agent, the menu of runs, and a run against
// the one before. These are methods of App.

import { agent } from "./agent.js";
import { encode, parse } from "./fields.js";
import { label, nest } from "./knobs.js";
import { $, el } from "./words.js";

export const running = {
  // demo starts a demo: with a card to itself, so that one click never depends on
  // what else runs, unless it names the card that two runs are to share.
  async demo(d) {
    this.knobs.show(parse(d.fields));
    const shared = d.fields.includes(".card=");
    if (this.hasAgent) await this.runOnAgent({ alone: !shared, twice: shared, fresh: true });
    else await this.rerun(d.title, true);
  },

  async rerun(name, fresh = false) {
    if (!this.engine.up) return;
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    if (!fresh && this.rerunless) return this.toast(this.rerunless);
    const before = this.identity;
    this.leave();
    const fields = this.knobs.collect();
    this.knobs.problems(null);
    const title = name || rerunName(this.knobs);
    await this.work(async () => {
      this.live = this.local = true;
      this.setRunning(true);
      this.blob = this.told = null;
      this.runId = "";
      const started = performance.now();
      try {
        const ran = await this.runner.run(encode(fields),
          () => this.engine.tell({ t: "begin", name: title, fresh }),
          (bytes) => this.engine.tell({ t: "piece", bytes }, [bytes.buffer]));
        if (ran.problems || ran.error) {
          Object.assign(this, { runId: before.runId, blob: before.blob, told: before.told });
          return this.knobs.problems(ran.problems ?? [{ message: ran.error }]);
        }
        this.live = false;
        const end = { ...(await this.engine.call({ t: "done" })), ...ran };
        this.blob = end.blob;
        this.rerunMs = performance.now() - started;
        this.other = before;
        this.keep(`rerun:${++this.reruns}`, title, end.blob);
        this.remember();
        await this.settings();
        if (this.base) this.details.choose("compare");
        if (this.current.ooms) {
          this.details.choose("oom");
          this.skipWait();
        }
        if (end.note) this.toast(end.note);
      } finally {
        this.local = false;
        this.setRunning(false);
      }
    });
  },

  // runOnAgent starts what the controls say; twice: once more when the first has
  // its memory, and shows the second.
  async runOnAgent({ alone = false, twice = false, fresh = false } = {}) {
    if (!this.hasAgent) return;
    if (!fresh && this.rerunless) return this.toast(this.rerunless);
    if (this.local) return this.toast("A rerun is in progress: stop it first.");
    this.knobs.problems(null);
    await this.work(async () => {
      try {
        const fields = this.knobs.collect();
        const { problems } = await this.runner.check(encode(fields));
        if (problems) return this.knobs.problems(problems);
        let run = await agent.start(nest(fields), alone);
        if (twice) {
          await begun(run.id);
          run = await agent.start(nest(fields), alone);
        }
        await this.listRuns();
        await this.pick(`agent:${run.id}`, true);
      } catch (e) {
        this.knobs.problems(e.problems ?? [{ message: e.message }]);
      }
    });
  },

  async stop() {
    if (this.runId) await agent.stop(this.runId).catch((e) => this.trouble(e));
    else this.runner.stop();
  },

  setRunning(on) {
    $("stop").hidden = !on;
    $("rerun").hidden = on && this.local;
    $("run-agent").hidden = on || !this.hasAgent;
    this.knobs.changed();
  },

  // settings puts the settings of the timeline on screen into the form. Those of
  // an allocator, as another program's snapshot has them, name no model to run.
  async settings() {
    const { fields } = await this.engine.ask("settings");
    const named = parse(fields ?? "");
    this.modelless = named.size && !named.has("model") ? this.current?.serial : null;
    if (named.has("model")) this.knobs.show(named);
    else if (this.current) this.facts();
  },

  async pick(value) {
    const at = value.indexOf(":");
    const kind = value.slice(0, at);
    const id = value.slice(at + 1);
    if (kind !== "agent") {
      const local = this.library.get(value);
      if (!local) return;
      if (!local.blob) return this.openFile(local.file); // not yet read
      return this.load(local.blob, local.name, value, "", local.told);
    }
    const info = this.agentRuns?.find((r) => r.id === id);
    if (info?.kind) return this.readOriginal(info);
    this.reader.stop();
    this.told = null;
    this.sharing.cancel();
    this.sharing.field = "";
    this.current = null;
    this.linked = false;
    this.runId = id;
    this.blob = null;
    this.live = true;
    this.follow = true;
    $("follow").setAttribute("aria-pressed", "true");
    this.setRunning(info?.state === "running" || !info);
    this.engine.tell({ t: "stream", id: ++this.streams, slot: 0, url: agent.streamURL(id), name: info?.name ?? `run ${id}` });
    this.remember();
    this.picker();
  },

  // readOriginal opens a foreign file that the agent was started with. The
  // agent would stream its events; the file says more.
  async readOriginal({ id, name }) {
    let blob = null;
    await this.work(async () => { blob = await agent.original(id); });
    if (!blob) return;
    await this.openFile(new File([blob], name));
    const mine = this.library.get(this.localId);
    if (this.runId || mine?.name !== name) return;
    mine.agent = id; // the menu has it already
    this.picker();
  },

  async streamed(s) {
    if (s.id !== this.streams) return; // of a stream that was left
    switch (s.state) {
      case "hello":
        this.setRunning(s.run?.state === "running");
        this.knownSettings = false;
        return;
      case "retry":
        return this.toast(`The connection broke; trying again in ${(s.wait / 1000).toFixed(1)} s.`);
      case "end":
      case "failed":
      case "lost": {
        const whole = this.whole();
        this.live = false;
        this.blob = s.blob;
        this.setRunning(false);
        if (s.state !== "end") this.toast(`The stream ended early: ${s.reason}`, true);
        if (this.current) {
          if (whole) this.view = this.startView(); // it ends with the run
          this.facts();
          this.redraw(true);
          const kept = await this.recall();
          await this.settings().catch(() => {});
          this.restore();
          if (kept) await this.firstLook();
          else if (this.current.ooms) this.failed();
        }
        await this.listRuns();
        this.tables();
      }
    }
  },

  async listRuns() {
    if (!this.hasAgent) return;
    const [runs, files] = await Promise.all([agent.runs().catch(() => []), agent.files().catch(() => [])]);
    this.agentRuns = [...(runs ?? []), ...(files ?? [])];
    this.picker();
  },

  picker() {
    const select = $("run-picker");
    const groups = [];
    if (this.agentRuns?.length) {
      groups.push(el("optgroup", { label: "On the agent" }, ...this.agentRuns.map((r) => el("option", { value: `agent:${r.id}` }, `${r.name} #${r.id.slice(0, 8)} · ${r.state}`))));
    }
    const own = [...this.library].filter(([, l]) => !this.agentRuns?.some((r) => r.id === l.agent));
    if (own.length) {
      groups.push(el("optgroup", { label: "In this tab" }, ...own.map(([id, l]) => el("option", { value: id }, l.name))));
    }
    const now = this.runId ? `agent:${this.runId}` : this.current ? (this.localId && !own.some(([id]) => id === this.localId) ? `agent:${this.library.get(this.localId)?.agent}` : this.localId) : "";
    const key = JSON.stringify([this.agentRuns?.map((r) => [r.id, r.state]), own.map(([id]) => id), now, this.current?.name]);
    if (key === this.pickerKey) return;
    this.pickerKey = key;
    select.disabled = !groups.length;
    if (!now || ![...groups].some((g) => [...g.children].some((o) => o.value === now))) {
      groups.unshift(el("option", { value: "" }, this.current?.name ?? "No timeline open"));
    }
    select.replaceChildren(...groups);
    select.value = now && [...select.options].some((o) => o.value === now) ? now : "";
  },

  async ask(command) {
    await this.work(async () => {
      const status = await this.engine.ask(command);
      this.grown({ status, heap: this.heap });
    });
  },

  async swap() {
    if (!this.base || this.live) return;
    this.current = null;
    const mine = this.identity;
    const { field = "", ...other } = this.other ?? { runId: "", localId: "", blob: null, told: null };
    Object.assign(this, other);
    this.sharing.field = field;
    this.other = mine;
    await this.ask("swap");
    await this.settings();
    this.remember();
  },
};

// begun waits for a run's first step.
async function begun(id) {
  for (let run = await agent.run(id); run.state === "running" && run.step < 1; run = await agent.run(id)) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function rerunName(knobs) {
  const what = knobs.list?.filter(([k]) => k !== "train.learning_rate").map(([k, , b]) => `${label(k)} ${b}`).join(", ");
  const fields = knobs.collect();
  const name = fields.get("name") || fields.get("model");
  return what ? `${name}: ${what}` : `${name}, again`;
}
