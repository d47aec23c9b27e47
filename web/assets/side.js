// Files side by side: what each of several files of one program comes to. The one
// on screen is shown at once; all of them are then read one after the other, in
// workers of their own, which end with the last: one timeline is held at a time, and
// only its sums are kept. The figures and words are package side's.

import { isOwn } from "./files.js";
import { Reader } from "./reader.js";
import { Runner } from "./runner.js";
import { $ } from "./words.js";

const most = 256; // files that are taken at once

export class Side {
  files = [];
  read = 0; // of them
  answer = null; // the table so far, in the form of the details
  #turn = 0;

  constructor(app) {
    this.app = app;
  }

  // take puts files into the menu and begins their table; what was read of others
  // is forgotten.
  take(files) {
    this.#turn++;
    this.files = files;
    this.read = 0;
    this.answer = null;
    const { library } = this.app;
    for (const file of files) {
      const id = `file:${file.name}`;
      library.delete(id); // of that name, and another
      library.set(id, { name: file.name, file });
    }
    $("tab-files").hidden = false;
    this.app.details.badge("files", String(files.length));
    this.app.picker();
  }

  // note says how far the table is.
  get note() {
    const n = this.files.length;
    return this.read < n ? `${this.read} of ${n} read` : `${n} files`;
  }

  // survey reads the files. One that ends the module that read it is left out when
  // the others are read again.
  async survey() {
    const mine = this.#turn;
    const fatal = new Map(); // file -> why
    this.app.busy++;
    try {
      while (fatal.size <= 3 && mine === this.#turn && !(await this.#pass(mine, fatal)));
    } finally {
      this.app.busy--;
      this.app.idle();
    }
    if (mine === this.#turn && this.answer) $("announce").textContent = [`${this.files.length} files read.`, ...this.answer.facts].join(" ");
  }

  // #pass reads all files and says whether it came to their end.
  async #pass(mine, fatal) {
    const runner = new Runner();
    const reader = new Reader();
    const { details } = this.app;
    this.read = 0;
    try {
      for (const file of this.files) {
        const name = line(file.name);
        let answer;
        try {
          if (fatal.has(file)) throw new Error(fatal.get(file));
          const { blob, told } = await this.#timeline(file, reader);
          if (mine !== this.#turn) return true;
          await runner.start();
          answer = await runner.sum([name, ...known(told)].map(line), blob);
        } catch (e) {
          if (!runner.ready && this.read) { // it ended, with what it knew
            fatal.set(file, e.message);
            return false;
          }
          answer = await runner.unread(name, line(e.message));
        }
        if (mine !== this.#turn) return true;
        this.read++;
        this.answer = laidOut(answer);
        if (details.tab === "files") details.refresh();
      }
      return true;
    } catch (e) {
      this.app.trouble(e);
      return true;
    } finally {
      runner.end();
      reader.end();
    }
  }

  // #timeline is a file as a timeline, as it was made already if it was.
  async #timeline(file, reader) {
    const made = this.app.library.get(`file:${file.name}`);
    if (made?.blob) return made;
    if (await isOwn(file)) return { blob: file, told: null };
    return this.app.timelineOf(file, reader);
  }
}

const line = (s) => s.replace(/[\t\n]/g, " ");

// known is what a file is said to mean, why it was cut, and the bytes that a text tells
// of the moment of its failure: the peak until then, in use, reserved, the largest hole.
function known(told) {
  const list = told?.readings ?? [];
  const moment = (r) => {
    const mib = (n) => (n ? Math.round(n * 2 ** 20) : null);
    const { peak_in_use_bytes: peak, in_use_bytes: inUse, pool_bytes: pool, largest_free_chunk_bytes: hole, allocated_mib: allocated, reserved_mib: reserved } = r.reading;
    return [peak, inUse ?? mib(allocated), pool ?? mib(reserved), hole];
  };
  const last = told?.origin === "log" ? list.map(moment).findLast(([, inUse]) => Number.isInteger(inUse)) : null;
  return [list.findLast((r) => r.phrase)?.phrase ?? "", told?.cut ?? "", ...(last ?? []).map((n) => String(n ?? ""))];
}

// laidOut is the table in the form of the details.
function laidOut({ words = [], ranked, rows }) {
  const columns = [["File", "text"], ["Peak", "bytes"], ["", "share"], ["To the median", "delta"], ["Reserved then", "bytes"], ["In use at the end", "bytes"], ["Largest hole", "bytes"], ["What it says", "text"]];
  if (ranked) columns.unshift(["Rank", "text"]);
  const number = (v) => (v === undefined ? null : Number(v));
  return {
    facts: words,
    tables: [{
      caption: "Each file by the allocator that held most, a log by what it tells of its failure; the hole is that at the failure, else at the end. Choose a file to see it, with Shift against the one on screen.",
      columns: columns.map(([name, kind]) => ({ name, kind })),
      rows: rows.map((r) => ({
        c: [...(ranked ? [r.label] : []), r.name, number(r.peak), number(r.peak) ?? 0, number(r.beside), number(r.reserved), number(r.end), number(r.hole), r.says],
        file: r.name,
        bad: !!r.bad,
      })),
    }],
  };
}

// dropped are the files of a drop, those in folders with their paths. It must be
// called while the drop is handled.
export function dropped(transfer) {
  const entries = [...transfer.items].map((i) => i.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((e) => e.isDirectory)) return Promise.resolve([...transfer.files]);
  return inside(entries);
}

async function inside(entries) {
  const out = [];
  const walk = async (entry, path) => {
    if (out.length > most || entry.name.startsWith(".")) return;
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      out.push(path === entry.name ? file : new File([file], path, { type: file.type, lastModified: file.lastModified }));
      return;
    }
    const from = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => from.readEntries(resolve, reject));
      if (!some.length) return;
      some.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
      for (const e of some) await walk(e, path ? `${path}/${e.name}` : e.name);
    }
  };
  for (const e of entries) await walk(e, e.isDirectory && entries.length === 1 ? "" : e.name);
  return out;
}

// distinct makes the names of files differ, and says which are too many.
export function distinct(files) {
  const seen = new Map();
  const kept = files.slice(0, most).map((f) => {
    const n = (seen.get(f.name) ?? 0) + 1;
    seen.set(f.name, n);
    return n === 1 ? f : new File([f], `${f.name} (${n})`, { type: f.type, lastModified: f.lastModified });
  });
  return { kept, over: Math.max(0, files.length - most) };
}
