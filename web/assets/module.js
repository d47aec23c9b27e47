// What both workers need to run a Go module: start it, write into its memory,
// read its answers, and notice when it dies.

import "./wasm_exec.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
let lastLines = []; // what the module printed last, for the day it dies

// The Go runtime prints a panic through console.log just before it exits.
const print = console.log;
console.log = (...args) => {
  lastLines = [...lastLines, args.join(" ")].slice(-40);
};

export class Module {
  // start runs the module at a URL; onDead is told why it ended. A Go program
  // that panicked still answers calls, from a broken runtime, so nothing may
  // be asked of it any more.
  static async start(url, onDead) {
    const go = new self.Go();
    const answer = await fetch(url);
    if (!answer.ok) throw new Error(`the browser module ${url} is missing (${answer.status}): run "go run ./build wasm"`);
    const { instance } = await WebAssembly.instantiateStreaming(answer, go.importObject);
    const ended = (why) => {
      const panic = lastLines.find((l) => l.startsWith("panic:") || l.startsWith("fatal error:"));
      if (panic) print(lastLines.join("\n"));
      onDead(panic || why);
    };
    go.run(instance).then(() => ended("it ended"), (e) => ended(String(e)));
    return new Module(instance.exports);
  }

  constructor(exports) {
    this.call = exports;
  }

  // Memory may have grown in any call, which detaches old views: they are made
  // anew each time.
  bytes(at, n) {
    return new Uint8Array(this.call.mem.buffer, at, n);
  }

  write(bytes) {
    const at = this.call.tl_input(bytes.length);
    this.bytes(at, bytes.length).set(bytes);
    return bytes.length;
  }

  writeText(text) {
    return this.write(encoder.encode(text));
  }

  answer(n) {
    return this.bytes(this.call.tl_answer(), n);
  }

  text(n) {
    return decoder.decode(this.answer(n));
  }
}
