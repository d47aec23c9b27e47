// The second worker: it runs workloads on the modelled backend, in slices, and
// hands out the timeline in pieces as it grows.

import { parse, tree } from "./fields.js";
import { Module } from "./module.js";

let m = null;
let job = null;
let question = null;

const post = (message, transfer) => self.postMessage(message, transfer || []);
const told = (n) => tree(parse(m.text(n)));

// breathe lets waiting messages in, such as one that stops the run.
const channel = new MessageChannel();
const waiting = [];
channel.port1.onmessage = () => waiting.shift()?.();
const breathe = () => new Promise((r) => {
  waiting.push(r);
  channel.port2.postMessage(0);
});

function hand(id) {
  const n = m.call.tl_drain();
  if (n === 0) return;
  const bytes = m.answer(n).slice();
  post({ t: "piece", id, bytes }, [bytes.buffer]);
}

const commands = {
  check({ id, fields }) {
    post({ t: "answer", id, answer: told(m.call.tl_check(m.writeText(fields))) });
  },

  async run({ id, fields }) {
    if (job) job.stopped = true;
    const mine = { stopped: false };
    job = mine;
    const wrong = told(m.call.tl_start(m.writeText(fields)));
    if (wrong.error || wrong.problems) return post({ t: "answer", id, answer: wrong });
    post({ t: "began", id });
    let flushed = performance.now();
    for (let more = 1; more === 1 && !mine.stopped;) {
      const until = performance.now() + 25;
      do more = m.call.tl_work(256); while (more === 1 && performance.now() < until);
      if (performance.now() - flushed > 120) {
        flushed = performance.now();
        m.call.tl_flush();
      }
      hand(id);
      if (more === 1) await breathe();
    }
    const n = m.call.tl_end();
    const answer = told(n);
    hand(id);
    post({ t: "answer", id, answer });
    if (job === mine) job = null;
  },

  // helped tells what would have helped, a rerun or a few at a time. A newer
  // question ends an older one.
  async helped({ id, fields }) {
    const mine = (question = {});
    const wrong = told(m.call.tl_ask(m.writeText(fields)));
    if (wrong.error || wrong.problems) return post({ t: "answer", id, answer: wrong });
    while (question === mine) {
      const n = m.call.tl_next();
      if (n === 0) break;
      post({ t: "piece", id, told: told(n) });
      await breathe();
    }
    post({ t: "answer", id, answer: {} });
  },

  stop() {
    if (job) job.stopped = true;
  },

  // sum adds a timeline to those side by side, and tells of all.
  async sum({ id, lines, blob }) {
    m.call.tl_side_begin();
    const piece = 1 << 20;
    for (let at = 0; at === 0 || at < blob.size; at += piece) {
      const bytes = new Uint8Array(await blob.slice(at, at + piece).arrayBuffer());
      const wrong = m.call.tl_side_feed(m.write(bytes), at + piece >= blob.size ? 1 : 0);
      if (wrong) throw new Error(m.text(wrong));
    }
    post({ t: "answer", id, answer: told(m.call.tl_side_end(m.writeText(lines.join("\n")))) });
  },

  unread({ id, name, why }) {
    post({ t: "answer", id, answer: told(m.call.tl_side_unread(m.writeText(`${name}\n${why}`))) });
  },

  ranked({ id, names }) {
    post({ t: "answer", id, answer: m.call.tl_ranked(m.writeText(names.join("\n"))) === 1 });
  },
};

self.onmessage = async ({ data }) => {
  try {
    if (!m) throw new Error("the module is not running");
    await commands[data.t](data);
  } catch (e) {
    post({ t: "failed", id: data.id, error: e.message });
  }
};

Module.start("./rerun.wasm", (why) => {
  m = null;
  post({ t: "dead", why });
}).then((module) => {
  m = module;
  const info = told(m.call.tl_info());
  for (const x of info.models) x.layers = x.layers.split(" ");
  for (const d of info.demos) d.fields = d.fields.replaceAll("\t", "\n");
  post({ t: "ready", info });
}, (e) => post({ t: "dead", why: e.message, boot: true }));
