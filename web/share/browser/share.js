// Shares in the browser: reading a link, loading and checking what it names,
// and uploading. The service is that of package web/share, at /share/v1/ of
// the page's own origin; what it stores is sealed before (seal.js).

import { base64url, fromBase64url, seal, unseal } from "./seal.js";

const ROOT = "/share/v1/";
const CHUNK = 4 << 20;
const ATTEMPTS = 8; // without progress, with growing waits: about half a minute
const ID = 32;
const KEY = 43;

// ShareError tells what is wrong in words for people; code as in package
// protocol/share, and offline, mismatch, no_service, not_a_service.
export class ShareError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "ShareError";
    this.code = code;
  }
}

// readLink takes a page's fragment: null when it names no share, {id, key}
// when it does. It throws for a link that was cut.
export function readLink(fragment) {
  const field = new URLSearchParams(fragment.replace(/^#/, "")).get("share");
  if (field === null) return null;
  const [id, key] = field.split(".", 2);
  if (id.length !== ID || !fromBase64url(id)) throw new ShareError("bad_link", `The link was cut or changed: its id has ${id.length} of ${ID} characters, or one that no id has. Copy it again, whole.`);
  if (key === undefined || key.length !== KEY) throw new ShareError("bad_link", `The link was cut: its key has ${key?.length ?? 0} of ${KEY} characters. Copy it again, whole.`);
  return { id, key };
}

// available says whether a share service stands beside this page: its limits,
// or null.
export async function available({ base = "" } = {}) {
  try {
    const r = await fetch(base + ROOT, { credentials: "same-origin" });
    return r.ok ? await r.json() : null;
  } catch {
    return null;
  }
}

// load fetches a share and opens it: {bytes, expires}. Each chunk is checked
// against the manifest and the manifest against the id. progress is told
// fractions of 1.
export async function load({ id, key }, { base = "", signal, progress = () => {} } = {}) {
  const status = await (await ask("GET", base + ROOT + id, { signal })).json();
  const m = status.manifest;
  if ((await manifestID(m)) !== id) throw new ShareError("mismatch", "The service answered with another file than the link names. Ask for the link again.");
  const sealed = new Uint8Array(m.size);
  for (let i = 0; i < m.chunks.length; i++) {
    const chunk = await retrying(signal, async () => {
      const r = await once("GET", `${base + ROOT + id}/chunks/${i}`, { signal });
      const b = new Uint8Array(await r.arrayBuffer());
      if (hex(await sha256(b)) !== m.chunks[i]) throw new ShareError("mismatch", `Chunk ${i} arrived damaged.`);
      return b;
    });
    sealed.set(chunk, i * m.chunk_size);
    progress((0.9 * (i + 1)) / m.chunks.length);
  }
  const bytes = await unseal(sealed, key, (p) => progress(0.9 + 0.1 * p));
  return { bytes, expires: new Date(status.expires) };
}

// save seals content and uploads it: {link, id, owner, expires}; owner is what
// deletes it again. expiresIn is in seconds.
export async function save(content, { base = "", expiresIn = 0, uploadKey = "", signal, progress = () => {} } = {}) {
  const { sealed, key } = await seal(content, (p) => progress(0.1 * p));
  const owner = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const m = { size: sealed.length, chunk_size: CHUNK, salt: hex(crypto.getRandomValues(new Uint8Array(16))), chunks: [] };
  for (let at = 0; at < sealed.length; at += CHUNK) m.chunks.push(hex(await sha256(sealed.subarray(at, at + CHUNK))));
  const id = await manifestID(m);
  const headers = { "Tideline-Owner": owner, ...(uploadKey ? { "Tideline-Upload-Key": uploadKey } : {}) };
  const create = JSON.stringify({ manifest: m, expires_in: expiresIn });
  const begun = await (await ask("PUT", base + ROOT + id, { headers: { ...headers, "Content-Type": "application/json" }, body: create, signal })).json();
  for (const i of begun.missing ?? []) {
    await ask("PUT", `${base + ROOT + id}/chunks/${i}`, { headers, body: sealed.subarray(i * CHUNK, (i + 1) * CHUNK), signal });
    progress(0.1 + (0.9 * (i + 1)) / m.chunks.length);
  }
  const status = await (await ask("POST", `${base + ROOT + id}/finish`, { headers, signal })).json();
  return { link: `${base || location.origin}/#share=${id}.${key}`, id, owner, expires: new Date(status.expires) };
}

// remove deletes a share for its owner.
export async function remove(id, owner, { base = "", signal } = {}) {
  await ask("DELETE", base + ROOT + id, { headers: { "Tideline-Owner": owner }, signal });
}

// ask repeats a request until it is answered; every request of the service may
// be repeated.
const ask = (method, url, init) => retrying(init.signal, () => once(method, url, init));

async function retrying(signal, attempt) {
  for (let n = 1; ; n++) {
    try {
      return await attempt();
    } catch (e) {
      if (signal?.aborted) throw signal.reason;
      if (n >= ATTEMPTS || !mayPass(e)) throw e;
      await new Promise((done) => setTimeout(done, (e.wait ?? 0) * 1000 || Math.min(200 * 2 ** (n - 1), 10000)));
    }
  }
}

const mayPass = (e) => ["offline", "mismatch", "storage", "too_many", "no_service"].includes(e.code);

async function once(method, url, { headers = {}, body, signal }) {
  let r;
  try {
    r = await fetch(url, { method, headers, body, signal, credentials: "same-origin", cache: "no-store", redirect: "error" });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new ShareError("offline", `The share service cannot be reached: ${e.message}. Look at the connection and try again.`);
  }
  if (r.ok) return r;
  let problem;
  try {
    problem = (await r.json()).error;
  } catch {
    // Not the service's own answer.
  }
  if (!problem?.code) {
    throw new ShareError(r.status >= 500 ? "no_service" : "not_a_service", `There is no share service here: the answer is ${r.status}. Look where the link leads.`);
  }
  const e = new ShareError(problem.code, `${sentence(problem.message)} ${sentence(problem.do)}`);
  e.wait = Number(r.headers.get("Retry-After")) || 0;
  throw e;
}

const sentence = (s) => s.charAt(0).toUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? "" : ".");

const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

// manifestID is the id of the share with this manifest, as protocol/share has it.
async function manifestID(m) {
  const head = new TextEncoder().encode("tideline share 1");
  const b = new Uint8Array(head.length + 16 + 16 + 32 * m.chunks.length);
  b.set(head);
  const view = new DataView(b.buffer);
  view.setBigUint64(16, BigInt(m.size), true);
  view.setBigUint64(24, BigInt(m.chunk_size), true);
  b.set(fromHex(m.salt, 16), 32);
  m.chunks.forEach((c, i) => b.set(fromHex(c, 32), 48 + 32 * i));
  return base64url((await sha256(b)).subarray(0, 24));
}

function fromHex(text, size) {
  if (!new RegExp(`^[0-9a-f]{${2 * size}}$`).test(text)) throw new ShareError("mismatch", "The service answered with something that is no manifest.");
  return Uint8Array.from(text.match(/../g), (h) => parseInt(h, 16));
}
