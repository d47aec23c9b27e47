// What a file is at a glance, and what to say of one that does not open, beside
// its reader's own words.

// isOwn: a timeline of ours, in blocks.
export async function isOwn(blob) {
  const head = String.fromCharCode(...new Uint8Array(await blob.slice(0, 5).arrayBuffer()));
  return head === "\x89TIDE" || head.startsWith("TDLB");
}

// isText: lines that other lines may follow; no JSON document, whose end is its
// last bracket, and no text form of a timeline.
export async function isText(blob) {
  const head = new Uint8Array(await blob.slice(0, 4096).arrayBuffer());
  const begins = String.fromCharCode(...head.subarray(0, 64)).trimStart();
  return !head.includes(0) && ![0x1f, 0x80].includes(head[0]) && !/^(TDLB|# tideline text|%PDF|\x89|[{[]\s*["{}[\]])/.test(begins);
}

// describe completes why, what the file's reader found wrong with it.
export async function describe(blob, name, why) {
  const said = why.includes(name) ? why : `${name}: ${why}`;
  const head = await blob.slice(0, 16384).text();
  if (/^(model|mode|batch|train|devices|steps)\s*:/m.test(head)) return `${said}. It looks like a workload: run it with “tideline run ${name}”, or set its fields in the form.`;
  return said;
}
