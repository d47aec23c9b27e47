// Reader is the page's side of the third worker, which reads the files of other
// programs. It is started when the page has nothing else to do, or when a file
// seems to come, and ends after a large one, whose memory it would keep.

const heavy = 128 << 20; // bytes

export class Reader {
  #worker = null;
  #ready = null;
  #call = null; // the file that is being read: {id, resolve, reject, hooks}
  #next = 1;
  #failed = false;
  up = false; // it runs: a file need not wait for it

  #start() {
    this.#ready ??= new Promise((resolve, reject) => {
      const worker = (this.#worker = new Worker("/assets/reader-worker.js", { type: "module", name: "tideline reader" }));
      const dead = (why) => {
        const error = new Error(`The reader stopped: ${why}`);
        this.#failed = true;
        this.#end();
        this.#settle((c) => c.reject(error));
        reject(error);
      };
      worker.onerror = (e) => {
        e.preventDefault();
        dead(e.message || "its script could not be loaded");
      };
      worker.onmessage = ({ data }) => {
        if (data.t === "ready") {
          this.up = true;
          return resolve(worker);
        }
        if (data.t === "dead") return dead(data.why);
        const c = this.#call;
        if (c?.id !== data.id) return; // of a file that was given up
        switch (data.t) {
          case "known":
            return c.hooks.known(data.known);
          case "piece":
            return c.hooks.piece(data.bytes);
          case "progress":
            return c.hooks.progress(data.share);
          case "answer":
            return c.resolve(data.answer);
          case "tried":
            return c.hooks.tried(data.answer, data.end);
          case "failed":
            return this.#settle((x) => x.reject(new Error(data.error)));
          case "over":
            if (data.heap > heavy) this.#end();
            return this.#settle((x) => x.hooks.over());
        }
      };
    });
    return this.#ready;
  }

  // warm starts the worker before there is a file, when one seems to come.
  warm() {
    this.#start().catch(() => {}); // said when a file needs it
  }

  // foresee does so when nothing speaks for a file yet, and so not where data
  // costs, nor again where the module does not run.
  foresee() {
    const { saveData, effectiveType } = navigator.connection ?? {};
    if (!saveData && !effectiveType?.includes("2g") && !this.#failed) this.warm();
  }

  // end stops the worker, with the file that it reads.
  end() {
    this.stop();
    this.#end();
  }

  #end() {
    this.#worker?.terminate();
    this.#worker = this.#ready = null;
    this.up = false;
  }

  #settle(how) {
    const c = this.#call;
    this.#call = null;
    if (c) how(c);
  }

  // open reads a file: known is called once when it is understood, piece with
  // every piece of its timeline, progress with the share that was read, tried
  // with what other settings came to and the timeline's new end, over when nothing
  // more follows. It resolves with what the file means, or with null when another
  // file or stop came in between.
  async open(blob, name, hooks) {
    this.stop();
    const id = this.#next++;
    const promise = new Promise((resolve, reject) => {
      this.#call = { id, resolve, reject, hooks };
    });
    this.#start().then((worker) => this.#call?.id === id && worker.postMessage({ t: "open", id, name, blob }), () => {});
    return promise;
  }

  // busy tells that a file is being read, or settings are being tried on it.
  get busy() {
    return !!this.#call;
  }

  // stop gives the file up that is being read.
  stop() {
    if (!this.#call) return;
    this.#worker?.postMessage({ t: "stop" });
    this.#settle((c) => {
      c.resolve(null);
      c.hooks.over();
    });
  }
}
