// What to say of a file that does not open, beside its reader's own words.

// describe completes why, what the file's reader found wrong with it.
export async function describe(blob, name, why) {
  const said = why.includes(name) ? why : `${name}: ${why}`;
  const head = await blob.slice(0, 16384).text();
  if (/^(model|mode|batch|train|devices|steps)\s*:/m.test(head)) return `${said}. It looks like a workload: run it with “tideline run ${name}”, or set its fields in the form.`;
  return said;
}
