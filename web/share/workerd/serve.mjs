// Runs the share Worker in the real workerd, with R2 and KV kept in a folder.
// It is given one argument, JSON: {bundle, persist, site, vars}. It prints one
// line of JSON when it is ready, answers "sweep" with a line when the cron
// handler has run, and ends when its standard input does.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Miniflare } from "miniflare";

// siteHeaders reads the one rule of the site's _headers, as wrangler does.
async function siteHeaders(site) {
  const lines = (await readFile(`${site}/_headers`, "utf8")).trimEnd().split("\n");
  const set = Object.fromEntries(lines.slice(1).map((l) => [l.slice(0, l.indexOf(":")).trim(), l.slice(l.indexOf(":") + 1).trim()]));
  return { version: 2, rules: { [lines[0]]: { set } } };
}

const o = JSON.parse(process.argv[2]);
const mf = new Miniflare({
  host: "127.0.0.1",
  port: 0,
  cf: false,
  telemetry: { enabled: false },
  modulesRoot: o.bundle,
  modules: [
    { type: "ESModule", path: `${o.bundle}/worker.mjs` },
    { type: "ESModule", path: `${o.bundle}/runtime.mjs` },
    { type: "ESModule", path: `${o.bundle}/wasm_exec.js` },
    { type: "CompiledWasm", path: `${o.bundle}/app.wasm` },
  ],
  compatibilityDate: "2026-04-01",
  r2Buckets: ["SHARES"],
  kvNamespaces: ["INDEX"],
  ratelimits: { RATE: { simple: { limit: 10000, period: 60 } }, RATE_CREATE: { simple: { limit: 1000, period: 60 } } },
  bindings: o.vars ?? {},
  r2Persist: `${o.persist}/r2`,
  kvPersist: `${o.persist}/kv`,
  ...(o.site ? { assets: { directory: o.site, routerConfig: { has_user_worker: true }, assetConfig: { headers: await siteHeaders(o.site) } } } : {}),
});
const url = await mf.ready;
console.log(JSON.stringify({ ready: url.href }));
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "sweep") {
    const { outcome } = await (await mf.getWorker()).scheduled({ cron: "0 * * * *" });
    console.log(JSON.stringify({ swept: outcome }));
  }
}
await mf.dispose();
