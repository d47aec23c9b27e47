// Run by browser_test.go under Node: the first argument is a folder with what
// Go sealed, the second a share service. It prints one line of JSON.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { isSealed, seal, sealedSize, unseal } from "./seal.js";
import { load, readLink, remove, save } from "./share.js";

globalThis.crypto ??= (await import("node:crypto")).webcrypto; // Node 18 hides it

const [dir, base] = process.argv.slice(2);
const report = { opened: 0, faults: {}, shares: {} };
const same = (a, b) => a.length === b.length && Buffer.compare(a, b) === 0;
const fault = async (name, run) => {
  try {
    await run();
    report.faults[name] = "nothing was thrown";
  } catch (e) {
    report.faults[name] = `${e.code}: ${e.message}`;
  }
};

// What Go sealed opens here; what is sealed here goes to Go.
for (const name of (await readdir(dir)).filter((n) => n.endsWith(".plain"))) {
  const plain = new Uint8Array(await readFile(`${dir}/${name}`));
  const stem = name.slice(0, -".plain".length);
  const sealed = new Uint8Array(await readFile(`${dir}/${stem}.sealed`));
  const key = await readFile(`${dir}/${stem}.key`, "utf8");
  if (!isSealed(sealed) || sealedSize(plain.length) !== sealed.length) throw new Error(`${stem}: not recognised`);
  if (!same(await unseal(sealed, key), plain)) throw new Error(`${stem}: opened to something else`);
  const ours = await seal(plain);
  await writeFile(`${dir}/${stem}.js-sealed`, ours.sealed);
  await writeFile(`${dir}/${stem}.js-key`, ours.key);
  report.opened++;
}

const plain = new Uint8Array(300000).map((_, i) => i);
const { sealed, key } = await seal(plain);
const changed = (at) => sealed.map((b, i) => (i === at ? b ^ 1 : b));
await fault("another key", async () => unseal(sealed, (await seal(plain)).key));
await fault("a cut key", () => unseal(sealed, key.slice(0, 40)));
await fault("a cut file", () => unseal(sealed.subarray(0, 200000), key));
await fault("cut in the header", () => unseal(sealed.subarray(0, 60), key));
await fault("a changed segment", () => unseal(changed(70000), key));
await fault("a changed header", () => unseal(changed(15), key));
await fault("a changed salt", () => unseal(changed(50), key));
await fault("more behind the end", () => unseal(new Uint8Array([...sealed, 0]), key));
await fault("another file", () => unseal(plain, key));
const newer = sealed.slice();
newer[8] = 9;
await fault("a checksum that does not fit a new version", () => unseal(newer, key));

// Through the service and back.
const content = new Uint8Array(9_000_000).map((_, i) => (i * 2654435761) >>> 13);
const seen = [];
const made = await save(content, { base, expiresIn: 3600, progress: (p) => seen.push(p) });
report.shares.link = made.link;
const found = readLink(new URL(made.link).hash);
const got = await load(found, { base, progress: (p) => seen.push(p) });
if (!same(got.bytes, content)) throw new Error("the share came back as something else");
if (seen.some((p) => p < 0 || p > 1) || seen.at(-1) !== 1) throw new Error(`progress was ${seen}`);
report.shares.minutes = Math.round((got.expires - Date.now()) / 60000);
await fault("a wrong key in the link", () => load({ id: found.id, key }, { base }));
await fault("an unknown share", () => load({ id: found.id.split("").reverse().join(""), key: found.key }, { base }));
await fault("a cut id", () => readLink("#share=abc"));
await fault("a link without key", () => readLink(`#share=${found.id}`));
await fault("a link with half a key", () => readLink(`#share=${found.id}.${found.key.slice(5)}`));
if (readLink("#run=3&from=0") !== null) throw new Error("a link to a run is no share");
await fault("somebody else deletes", () => remove(made.id, "x".repeat(40), { base }));
await remove(made.id, made.owner, { base });
await fault("a deleted share", () => load(found, { base }));
console.log(JSON.stringify(report));
