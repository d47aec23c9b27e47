// What a file that does not open looks like, and what to do with it. Files
// that begin with a signature are known to the module already.

const opens = "a .tideline file, or the text of an out-of-memory log";

// describe says in a sentence or two why a file does not open. why is what its
// reader found wrong.
export async function describe(blob, name, why) {
  if (!blob.size) return `${name} is empty. Open ${opens}.`;
  const head = String.fromCharCode(...new Uint8Array(await blob.slice(0, 4096).arrayBuffer()));
  if (head.startsWith("\x89TIDE") || /\.tideline$/.test(name) || /looks like/.test(why)) return `${name}: ${why}`;
  if (head.includes("\0")) return `${name} looks like binary data of another program. Open ${opens}.`;
  if (/^(model|mode|batch|train|devices|steps)\s*:/m.test(head)) return `${name} looks like a workload: run it with “tideline run ${name}”, or set its fields in the form.`;
  if (/^\s*[[{]/.test(head)) return `${name} looks like JSON, which the page does not read. Open ${opens}.`;
  if (/\.csv$/i.test(name)) return `${name} looks like a table, which the page does not read. Open ${opens}.`;
  return `${name} looks like text without an out-of-memory report. Open the part with lines such as “Allocator (GPU_0_bfc) ran out of memory trying to allocate …”.`;
}
