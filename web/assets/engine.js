// Engine is the page's side of the worker: promises for commands, events for
// what the worker tells by itself, and a count of what is still pending.

export class Engine extends EventTarget {
  #worker = null;
  #pending = new Map();
  #next = 1;
  #drawing = new Map(); // name -> {wish, next}
  times = []; // milliseconds from a wish to its picture, in the worker, newest last
  own = []; // of these, the module's

  constructor() {
    super();
    this.up = false;
  }

  start() {
    this.up = false;
    this.#worker?.terminate();
    this.#drawing.clear();
    this.#worker = new Worker("/assets/worker.js", { type: "module", name: "tideline" });
    this.#worker.onmessage = ({ data }) => this.#take(data);
    this.#worker.onerror = (e) => {
      e.preventDefault();
      this.#take({ t: "dead", boot: true, why: e.message || "its script could not be loaded" });
    };
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  #take(msg) {
    switch (msg.t) {
      case "ready":
        this.up = true;
        this.bootMs = msg.ms;
        break;
      case "answer":
        this.#settle(msg.id, (p) => p.resolve(msg.answer));
        return;
      case "failed":
        if (msg.command === "draw") {
          this.#drawing.delete(msg.name);
          this.#emit("trouble", msg.error);
        }
        this.#settle(msg.id, (p) => p.reject(new Error(msg.error)));
        return;
      case "drawn": {
        for (const [list, ms] of [[this.times, msg.ms], [this.own, msg.own]]) {
          list.push(ms);
          if (list.length > 4000) list.splice(0, 2000);
        }
        if (msg.unasked) break; // the worker follows a run by itself
        const d = this.#drawing.get(msg.name);
        const next = d?.next ?? (msg.more && !msg.follow ? d?.wish : null);
        this.#drawing.delete(msg.name);
        if (next) this.draw(next);
        break;
      }
      case "dead":
        this.up = false;
        for (const p of this.#pending.values()) p.reject(new Error(msg.why));
        this.#pending.clear();
        this.#drawing.clear();
        break;
    }
    this.#emit(msg.t, msg);
    this.#emit("turn");
  }

  #settle(id, how) {
    const p = this.#pending.get(id);
    this.#pending.delete(id);
    if (p) how(p);
    this.#emit("turn");
  }

  // call sends a command that is answered.
  call(message, transfer) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      if (!this.up) return reject(new Error("the module is not running"));
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ ...message, id }, transfer || []);
    });
  }

  ask(...parts) {
    return this.call({ t: "ask", command: parts.join("\t") });
  }

  // tell sends one that is not.
  tell(message, transfer) {
    if (this.up) this.#worker.postMessage(message, transfer || []);
  }

  // draw asks for a picture. While one is on its way only the newest wish is
  // kept, so that drawing never lags behind the hand.
  draw(wish) {
    const d = this.#drawing.get(wish.name);
    if (d) {
      d.next = wish;
      return;
    }
    if (!this.up) return;
    this.#drawing.set(wish.name, { wish, next: null });
    this.#worker.postMessage({ t: "draw", ...wish });
  }

  get pending() {
    return this.#pending.size + this.#drawing.size;
  }
}
