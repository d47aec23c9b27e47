// Runner is the page's side of the second worker, which runs workloads. It is
// started when the page has time for it; the first rerun waits for it.

export class Runner {
  #worker = null;
  #calls = new Map();
  #next = 1;

  // start resolves with what there is to choose from.
  start() {
    this.ready ??= new Promise((resolve, reject) => {
      this.#worker = new Worker("/assets/rerun-worker.js", { type: "module", name: "tideline rerun" });
      const dead = (why) => {
        for (const c of this.#calls.values()) c.reject(new Error(why));
        this.#calls.clear();
        this.#worker.terminate();
        this.ready = null; // the next call starts it anew
        reject(new Error(why));
      };
      this.#worker.onerror = (e) => {
        e.preventDefault();
        dead(e.message || "its script could not be loaded");
      };
      this.#worker.onmessage = ({ data }) => {
        const c = this.#calls.get(data.id);
        switch (data.t) {
          case "ready":
            return resolve(data.info);
          case "dead":
            return dead(data.why);
          case "began":
            return c?.began();
          case "piece":
            return c?.piece(data.bytes ?? data.told);
        }
        this.#calls.delete(data.id);
        if (data.t === "failed") c?.reject(new Error(data.error));
        else c?.resolve(data.answer);
      };
    });
    return this.ready;
  }

  async #call(message, hooks = {}) {
    await this.start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject, ...hooks });
      this.#worker.postMessage({ ...message, id });
    });
  }

  // check resolves with {problems} or {error}, or with neither.
  check(fields) {
    return this.#call({ t: "check", fields });
  }

  // run calls began once when the workload proves sound, and piece with every
  // piece of the timeline; it resolves with how the run went.
  run(fields, began, piece) {
    return this.#call({ t: "run", fields }, { began, piece });
  }

  // helped calls piece with what stands out in a run of the fields, then with
  // every rerun that was tried, then with what all came to.
  helped(fields, piece) {
    return this.#call({ t: "helped", fields }, { piece });
  }

  stop() {
    this.#worker?.postMessage({ t: "stop" });
  }

  // sum adds a timeline to those side by side, with lines of its name and what else
  // is known, and unread one that cannot be read; both resolve with what all come to.
  sum(lines, blob) {
    return this.#call({ t: "sum", lines, blob });
  }

  unread(name, why) {
    return this.#call({ t: "unread", name, why });
  }

  // ranked tells whether the names of files tell their ranks.
  ranked(names) {
    return this.#call({ t: "ranked", names });
  }

  end() {
    this.#worker?.terminate();
    this.ready = null;
  }
}
