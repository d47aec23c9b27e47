// The third worker: it reads the files of other programs, in pieces as they
// come from the disk, and hands out the timeline in pieces as it grows, then
// what the file means. It is started with the first such file.

import { Module } from "./module.js";

let m = null;
let job = null; // the file that is being read

const post = (message, transfer) => self.postMessage(message, transfer || []);
const told = () => JSON.parse(m.text(m.call.tl_told()));

// What the module waits for, as package reader numbers it.
const [, hungry, known, full, complete, busy, tried, failed] = Array(8).keys();

// breathe lets waiting messages in, such as one that gives the file up.
const channel = new MessageChannel();
const waiting = [];
channel.port1.onmessage = () => waiting.shift()?.();
const breathe = () => new Promise((r) => {
  waiting.push(r);
  channel.port2.postMessage(0);
});

// pause leaves the processor to the picture before other settings are tried.
const pause = () => new Promise((r) => setTimeout(r, 500));

const drained = () => m.answer(m.call.tl_drain()).slice();

function hand(id) {
  const bytes = drained();
  if (bytes.length) post({ t: "piece", id, bytes }, [bytes.buffer]);
}

const pieceBytes = 1 << 20;

// slices gives a file piece by piece, each read while the one before is taken in.
function slices(blob) {
  const read = (at) => (at < blob.size ? blob.slice(at, at + pieceBytes).arrayBuffer() : null);
  let at = 0;
  let ahead = read(0);
  return {
    async next() {
      const bytes = new Uint8Array((await ahead) ?? 0);
      at += bytes.length;
      ahead = read(at);
      return { bytes, last: at >= blob.size, share: at / blob.size };
    },
    stop() {},
  };
}

// unpacked gives what comes out of a packed file: the browser unpacks several
// times as fast as the module.
function unpacked(blob) {
  let at = 0;
  const counted = new TransformStream({
    transform(chunk, to) {
      at += chunk.length;
      to.enqueue(chunk);
    },
  });
  const reader = blob.stream().pipeThrough(counted).pipeThrough(new DecompressionStream("gzip")).getReader();
  return {
    async next() {
      const { value, done } = await reader.read();
      return { bytes: value ?? new Uint8Array(0), last: done, share: at / blob.size };
    },
    stop: () => reader.cancel().catch(() => {}), // a stream that failed says so again
  };
}

const canUnpack = (head) => head[0] === 0x1f && head[1] === 0x8b && "DecompressionStream" in self;

async function open({ id, name, blob }) {
  const mine = (job = {});
  const head = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  if (job !== mine) return post({ t: "over", id, heap: m.call.mem.buffer.byteLength });
  let source = canUnpack(head) ? unpacked(blob) : slices(blob);
  let breath = performance.now();
  let state = canUnpack(head) ? m.call.tl_start_unpacked(m.writeText(name)) : m.call.tl_start(m.writeText(name));
  for (;;) {
    if (state === hungry) {
      let piece = null;
      try {
        piece = await source.next();
      } catch (e) {
        if (!canUnpack(head)) throw e;
      }
      if (job !== mine) break;
      if (!piece) {
        // Damaged, or more than one file packed: how far it goes, and what is
        // wrong with it, is the module's to say.
        head.fill(0);
        source = slices(blob);
        state = m.call.tl_start(m.writeText(name));
        continue;
      }
      state = m.call.tl_feed(m.write(piece.bytes), piece.last ? 1 : 0);
      post({ t: "progress", id, share: piece.share });
      continue;
    }
    if (state === failed) {
      source.stop();
      return post({ t: "failed", id, error: m.text(m.call.tl_told()) });
    }
    if (state === known) post({ t: "known", id, known: told() });
    if (state === full || state === complete) hand(id);
    if (state === complete) post({ t: "answer", id, answer: told() });
    if (state === tried) {
      const end = drained();
      post({ t: "tried", id, answer: told(), end }, [end.buffer]);
    }
    if (![known, full, complete, busy].includes(state)) break;
    if (state !== busy || performance.now() - breath > 25) {
      await (state === complete ? pause() : breathe());
      if (job !== mine) break;
      breath = performance.now();
    }
    state = m.call.tl_work();
  }
  source.stop();
  if (job === mine) job = null;
  post({ t: "over", id, heap: m.call.mem.buffer.byteLength });
}

self.onmessage = async ({ data }) => {
  if (data.t === "stop") {
    job = null;
    return;
  }
  try {
    if (!m) throw new Error("the module is not running");
    await open(data);
  } catch (e) {
    post({ t: "failed", id: data.id, error: e.message });
  }
};

Module.start("./reader.wasm", (why) => {
  m = null;
  post({ t: "dead", why });
}).then((module) => {
  m = module;
  post({ t: "ready" });
}, (e) => post({ t: "dead", why: e.message, boot: true }));
