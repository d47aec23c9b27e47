// The worker: it owns the module, the WebSocket and the canvases, so that
// neither decoding nor drawing ever holds up the page. The page sends commands
// as messages {t: …}; answers carry the command's id.

import { Module } from "./module.js";

let m = null; // the module
let canvases = {}; // name -> {canvas, context}
let job = null; // the file that is being read: {id, cancelled}
let rerun = null; // the pieces of a rerun that comes in
let stream = null;

const post = (message, transfer) => self.postMessage(message, transfer || []);

function boot() {
  const started = performance.now();
  return Module.start("./tideline.wasm", (why) => {
    m = null;
    stream?.close();
    post({ t: "dead", why });
  }).then((module) => {
    m = module;
    post({ t: "ready", ms: performance.now() - started });
  });
}

function ask(command) {
  return JSON.parse(m.text(m.call.tl_ask(m.writeText(command))));
}

// feed gives bytes of a timeline to a slot and throws what the module found
// wrong with them.
function feed(slot, bytes) {
  const n = m.call.tl_feed(slot, m.write(bytes));
  if (n < 0) throw new Error(m.text(-n));
}

// grown tells the page that there is more to show: at once when it was not told
// for a while, else when that while is over, so that what came last is never
// left unsaid.
const grownPause = 40; // milliseconds
let grownAt = 0;
let grownLater = 0;
function grown(force, pause = grownPause) {
  const now = performance.now();
  const wait = grownAt + pause - now;
  if (!force && wait > 0) {
    grownLater ||= setTimeout(() => m && grown(true), wait);
    return;
  }
  clearTimeout(grownLater);
  grownLater = 0;
  grownAt = now;
  post({ t: "grown", status: ask("status"), window: ask("window"), heap: m.call.mem.buffer.byteLength });
  sift();
}

// Lanes that follow a run are painted here as soon as there is more of it, once
// a frame, and not by way of the page: its thread may have other things to do.
// It hears how the run stands less often. What a picture left for the next waits
// for that, for every picture is work for the browser, too.
const followPause = 100; // milliseconds
const nextFrame = self.requestAnimationFrame?.bind(self) ?? ((f) => setTimeout(f, 16));
let followed = null; // the page's wish for such a picture
let following = false; // a frame is asked for
let leftovers = 0;
function follow() {
  if (!followed || following) return;
  following = true;
  nextFrame(() => {
    following = false;
    if (!m || !followed) return;
    try {
      later(paint(followed, true));
    } catch (e) {
      post({ t: "failed", name: followed.name, command: "draw", error: e.message });
    }
  });
}

// later goes on with a followed picture, unless more of the run comes first.
function later(more) {
  clearTimeout(leftovers);
  if (more) leftovers = setTimeout(follow, followPause);
}

// paint draws one picture and puts only what changed on its canvas. It reports
// whether the module kept to its time and left the rest for the next draw. What
// follows a run shows it up to now, whatever the page knew when it wished.
function paint({ name, picture, w, h, dpr, t0, t1, theme, follow }, unasked = false) {
  const c = canvases[name];
  const start = performance.now();
  let rects = 0;
  let more = false;
  let through = t1; // the newest moment in the picture
  if (follow) {
    const now = ask("window");
    if (now.t1) ({ t0, t1, last: through } = follow === "all" ? { ...now, t0: now.first } : now);
  }
  let drawn = start;
  if (c && w > 0 && h > 0) {
    if (c.canvas.width !== w || c.canvas.height !== h) {
      c.canvas.width = w;
      c.canvas.height = h;
      m.call.tl_invalidate(picture);
    }
    rects = m.call.tl_draw(picture, w, h, dpr, t0, t1, theme);
    more = m.call.tl_pending(picture) !== 0;
    drawn = performance.now();
    if (rects > 0) {
      const pixels = new Uint8ClampedArray(m.call.mem.buffer, m.call.tl_pixels(picture), w * h * 4);
      const image = new ImageData(pixels, w, h);
      const r = new Int32Array(m.call.mem.buffer, m.call.tl_answer(), rects * 4).slice();
      for (let i = 0; i < rects; i++) c.context.putImageData(image, 0, 0, r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]);
    }
  }
  const end = performance.now();
  post({ t: "drawn", name, t0, t1, through, follow, unasked, rects, more, ms: end - start, own: drawn - start, at: performance.timeOrigin + end });
  return more;
}

// sift goes on with the filter, a few milliseconds at a time between other
// commands, until all of the timeline was looked at.
let sifting = false;
const again = new MessageChannel(); // a timer of 0 waits for 4 ms
again.port1.onmessage = () => {
  sifting = false;
  if (!m) return;
  const { more, changed, share } = ask("sifting");
  if (more) sift();
  if (changed || !more) post({ t: "sifted", more, changed, share });
};
function sift() {
  if (!sifting) again.port2.postMessage(null);
  sifting = true;
}

const commands = {
  // sift takes another filter.
  sift({ text }) {
    ask(`sift\t${text}`);
    sift();
  },

  canvas({ name, canvas }) {
    canvases[name] = { canvas, context: canvas.getContext("2d", { alpha: false, willReadFrequently: true }) };
  },

  draw(wish) {
    if (wish.name === "main") followed = wish.follow ? wish : null;
    const more = paint(wish);
    if (wish.follow) later(more); // the page goes on with any other
  },

  ask({ id, command }) {
    post({ t: "answer", id, answer: ask(command) });
  },

  // open reads a file in pieces, so that the first picture comes early and the
  // tab never holds the file twice.
  async open({ id, slot, name, origin, blob }) {
    const mine = begin(id);
    ask(`reset\t${slot}\t${name}\t${origin ?? "file"}`);
    const size = blob.size;
    const piece = 2 << 20;
    const read = (at) => (at < size ? blob.slice(at, at + piece).arrayBuffer() : null);
    let shown = performance.now();
    let next = read(0);
    for (let at = 0; at < size && !mine.cancelled; at += piece) {
      const bytes = new Uint8Array(await next);
      next = read(at + piece); // comes in while this piece is decoded
      feed(slot, bytes);
      post({ t: "progress", id, done: Math.min(size, at + piece), of: size });
      // Pictures on the way are for files that take a while: one of the first
      // piece, and then a few a second, for each costs time.
      const early = at === 0 && size > 3 * piece;
      if (at + piece < size && (early || performance.now() - shown > 400)) {
        grown(true);
        shown = performance.now();
      }
    }
    const end = ask(`finish\t${slot}`);
    if (end.error) throw new Error(end.error);
    finish(mine, { ...end, blob });
  },

  // begin makes room for a rerun, or for what is read of another program's file
  // where origin says what of. Its bytes come in pieces from another worker until
  // done.
  begin({ name, fresh, origin }) {
    if (job) job.cancelled = true;
    rerun = [];
    ask(origin ? `reset\t0\t${name.replace(/[\t\n]/g, " ")}\t${origin}` : `rerun\t${name}\t${fresh ? "fresh" : ""}`);
  },

  // restore brings back what begin took the place of, when nothing came of it.
  restore({ id }) {
    rerun = null;
    ask("restore\t0");
    grown(true);
    post({ t: "answer", id, answer: {} });
  },

  // moments takes the timeline on screen for one of a log, whose times are made up.
  moments({ id }) {
    ask("moments\t0");
    grown(true);
    post({ t: "answer", id, answer: {} });
  },

  piece({ bytes }) {
    rerun.push(bytes);
    feed(0, bytes);
    grown();
  },

  done({ id }) {
    const end = ask("finish\t0");
    grown(true);
    post({ t: "answer", id, answer: { ...end, blob: new Blob(rerun, { type: "application/octet-stream" }) } });
    rerun = null;
  },

  stream({ id, slot, url, name }) {
    stream?.close();
    followed = null;
    stream = new Stream(id, slot, url, name);
  },

  unstream() {
    stream?.close();
    stream = null;
  },
};

function begin(id) {
  if (job) job.cancelled = true;
  job = { id, cancelled: false };
  return job;
}

function finish(mine, answer) {
  if (job === mine) job = null;
  if (!mine.cancelled || answer) {
    grown(true);
    post({ t: "answer", id: mine.id, answer });
  }
}

const creditWindow = 8 << 20;
const subprotocol = "tideline.v1";

// Stream follows one run of the agent: credit, resume after a break, and a
// close by us after the agent's in-band end.
class Stream {
  constructor(id, slot, url, name) {
    Object.assign(this, { id, slot, url, retries: 0, over: false, taken: 0, parts: [] });
    ask(`reset\t${slot}\t${name}\tlive`);
    this.connect();
  }

  connect() {
    this.from = ask(`seq\t${this.slot}`).seq;
    this.socket = new WebSocket(this.url, subprotocol);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.send({ type: "start", from: this.from, credit: creditWindow });
      post({ t: "stream", id: this.id, state: "open" });
    };
    this.socket.onmessage = (e) => this.guard(() => (typeof e.data === "string" ? this.control(JSON.parse(e.data)) : this.blocks(e.data)));
    this.socket.onclose = () => this.closed();
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  // guard turns a failure into a message: a damaged stream must not take the
  // page down.
  guard(work) {
    try {
      work();
    } catch (e) {
      this.end({ state: "failed", reason: e.message });
    }
  }

  blocks(data) {
    if (!m || this.over) return;
    const bytes = new Uint8Array(data);
    feed(this.slot, bytes);
    this.retries = 0;
    this.parts.push(data);
    this.taken += bytes.length;
    if (this.taken >= creditWindow / 8) {
      this.send({ type: "credit", credit: this.taken });
      this.taken = 0;
    }
    follow();
    grown(false, followPause);
  }

  control(message) {
    switch (message.type) {
      case "hello":
        return post({ t: "stream", id: this.id, state: "hello", run: message.run });
      case "end":
        return this.end({ state: "end", reason: message.reason, seq: message.seq });
      case "error":
        return this.end({ state: "failed", reason: message.reason });
    }
  }

  // end is the in-band end: from here on it is for us to close.
  end(what) {
    if (this.over) return;
    this.over = true;
    this.send({ type: "bye" });
    this.socket.close(1000);
    followed = null;
    if (m) {
      ask(`finish\t${this.slot}`);
      grown(true);
    }
    post({ t: "stream", id: this.id, ...what, blob: new Blob(this.parts) });
  }

  closed() {
    if (this.over || !m) return;
    this.retries++;
    if (this.retries > 8) return this.end({ state: "lost", reason: "the agent does not answer" });
    const wait = Math.min(8000, 250 * 2 ** (this.retries - 1));
    post({ t: "stream", id: this.id, state: "retry", wait });
    this.timer = setTimeout(() => !this.over && this.guard(() => this.connect()), wait);
  }

  close() {
    if (this.over) return;
    this.over = true;
    clearTimeout(this.timer);
    this.send({ type: "bye" });
    this.socket.close(1000);
  }
}

self.onmessage = async ({ data }) => {
  const { t, id } = data;
  try {
    if (!m) throw new Error("the module is not running");
    await commands[t](data);
  } catch (e) {
    if (job && job.id === id) job = null;
    if (m && t === "open") {
      ask(`restore\t${data.slot}`); // what was on screen before stays
      grown(true);
    }
    post({ t: "failed", id, name: data.name, command: t, error: e.message });
  }
};

boot().catch((e) => post({ t: "dead", why: e.message, boot: true }));
