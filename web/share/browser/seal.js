// Sealed files in the browser: what package protocol/seal does, on WebCrypto.
// protocol/FORMAT.md, "Sealed files", describes every byte.

const SEGMENT = 64 << 10;
const TAG = 16;
const OWN = 40; // our header; behind it Tink's: its length, salt, nonce prefix
const SALT = 32;
const PREFIX = 7;
const HEAD = OWN + 1 + SALT + PREFIX;
const FIRST = SEGMENT - HEAD - TAG; // content in the first segment
const ROOM = SEGMENT - TAG; // and in the others
const MAGIC = [0x89, 0x54, 0x49, 0x44, 0x53, 0x0d, 0x0a, 0x1a];
const TOGETHER = 16; // segments given to WebCrypto at once

// SealError tells what is wrong in words for people; code is for programs:
// not_sealed, version, bad_key, wrong_key, cut, damaged, no_crypto.
export class SealError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "SealError";
    this.code = code;
  }
}

// isSealed looks at the first bytes of a file.
export const isSealed = (bytes) => bytes.length >= MAGIC.length && MAGIC.every((b, i) => bytes[i] === b);

// sealedSize is the length that n bytes of content take when sealed.
export const sealedSize = (n) => HEAD + n + TAG * segments(n);

const segments = (n) => (n <= FIRST ? 1 : 1 + Math.ceil((n - FIRST) / ROOM));

// unseal returns the content of a sealed file, or throws a SealError.
export async function unseal(sealed, keyText, progress = () => {}) {
  const head = readHead(sealed);
  const key = await readKey(keyText);
  if (!same(await keyCheck(key), head.check)) throw new SealError("wrong_key", "The key in the link does not fit this file: the link was changed, or belongs to another share. Ask for it again.");
  const whole = sealedSize(head.size);
  if (sealed.length < whole) throw new SealError("cut", `The file is cut short: ${sealed.length} of ${whole} bytes are there. Load it again.`);
  if (sealed.length > whole) throw new SealError("damaged", `${sealed.length - whole} bytes follow the end of the file. Load it again.`);
  const aes = await fileKey(key, head.salt, sealed.subarray(0, OWN), "decrypt");
  const plain = new Uint8Array(head.size);
  const count = segments(head.size);
  await inGroups(count, async (i) => {
    const { from, start, length } = place(i, head.size);
    try {
      const out = await crypto.subtle.decrypt({ name: "AES-GCM", iv: nonce(head.prefix, i, i === count - 1) }, aes, sealed.subarray(from, from + length + TAG));
      plain.set(new Uint8Array(out), start);
    } catch {
      throw new SealError("damaged", `The file is damaged: segment ${i} at byte ${from} is not what was sealed. Load it again.`);
    }
  }, (done) => progress(done / count));
  return plain;
}

// seal encrypts content under a new key: {sealed, key}, the key as in a link.
export async function seal(content, progress = () => {}) {
  needCrypto();
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const key = await importKey(secret);
  const sealed = new Uint8Array(sealedSize(content.length));
  const view = new DataView(sealed.buffer);
  sealed.set(MAGIC);
  sealed[8] = 1; // version
  sealed[9] = 1; // AES256-GCM-HKDF-SHA256 in segments of 64 KiB
  view.setBigUint64(12, BigInt(content.length), true);
  sealed.set(await keyCheck(key), 20);
  view.setUint32(36, crc32c(sealed.subarray(0, 36)), true);
  sealed[OWN] = 1 + SALT + PREFIX;
  crypto.getRandomValues(sealed.subarray(OWN + 1, HEAD));
  const aes = await fileKey(key, sealed.slice(OWN + 1, OWN + 1 + SALT), sealed.slice(0, OWN), "encrypt");
  const prefix = sealed.slice(OWN + 1 + SALT, HEAD);
  const count = segments(content.length);
  await inGroups(count, async (i) => {
    const { from, start, length } = place(i, content.length);
    const out = await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce(prefix, i, i === count - 1) }, aes, content.subarray(start, start + length));
    sealed.set(new Uint8Array(out), from);
  }, (done) => progress(done / count));
  return { sealed, key: base64url(secret) };
}

// place is where a segment lies in the sealed file and in the content.
function place(i, size) {
  if (i === 0) return { from: HEAD, start: 0, length: Math.min(size, FIRST) };
  const start = FIRST + (i - 1) * ROOM;
  return { from: i * SEGMENT, start, length: Math.min(size - start, ROOM) };
}

// inGroups keeps WebCrypto busy without a promise for each of a million segments.
async function inGroups(count, one, told) {
  for (let i = 0; i < count; i += TOGETHER) {
    const group = [];
    for (let j = i; j < Math.min(i + TOGETHER, count); j++) group.push(one(j));
    // All of them end before one is told of: the first in the file, whichever failed first.
    for (const end of await Promise.allSettled(group)) if (end.status === "rejected") throw end.reason;
    told(Math.min(i + TOGETHER, count));
  }
}

function readHead(b) {
  if (!isSealed(b)) throw new SealError("not_sealed", "This is not a sealed file.");
  if (b.length < HEAD) throw new SealError("cut", `The file is cut short: it ends in its header, at byte ${b.length} of ${HEAD}. Load it again.`);
  const view = new DataView(b.buffer, b.byteOffset, HEAD);
  if (crc32c(b.subarray(0, 36)) !== view.getUint32(36, true)) throw new SealError("damaged", "The file's header is damaged. Load it again.");
  if (b[8] !== 1 || b[9] !== 1) throw new SealError("version", `The file was sealed by a newer version (${b[8]}, construction ${b[9]}). Load this page anew, or update Tideline.`);
  const size = view.getBigUint64(12, true);
  if (b[10] || b[11] || b[OWN] !== 1 + SALT + PREFIX || size > 1n << 40n) throw new SealError("damaged", "The file's header has values that cannot be. Load it again.");
  return { size: Number(size), check: b.slice(20, 36), salt: b.slice(OWN + 1, OWN + 1 + SALT), prefix: b.slice(OWN + 1 + SALT, HEAD) };
}

async function readKey(text) {
  needCrypto();
  const bytes = text.length === 43 ? fromBase64url(text) : null;
  if (!bytes || base64url(bytes) !== text) throw new SealError("bad_key", `The key in the link is not whole: it has ${text.length} characters of 43, or one that no key has. Copy the link again.`);
  return importKey(bytes);
}

function needCrypto() {
  if (!globalThis.crypto?.subtle) throw new SealError("no_crypto", "This browser does not offer encryption on a page without https. Open it by https, or on this machine as http://127.0.0.1.");
}

const importKey = (bytes) => crypto.subtle.importKey("raw", bytes, "HKDF", false, ["deriveBits", "deriveKey"]);

const hkdf = (salt, info) => ({ name: "HKDF", hash: "SHA-256", salt, info });

const keyCheck = async (key) => new Uint8Array(await crypto.subtle.deriveBits(hkdf(new Uint8Array(0), new TextEncoder().encode("tideline sealed file 1, key check")), key, 128));

const fileKey = (key, salt, head, use) => crypto.subtle.deriveKey(hkdf(salt, head), key, { name: "AES-GCM", length: 256 }, false, [use]);

function nonce(prefix, segment, last) {
  const n = new Uint8Array(12);
  n.set(prefix);
  new DataView(n.buffer).setUint32(PREFIX, segment); // big endian, as Tink has it
  n[11] = last ? 1 : 0;
  return n;
}

const same = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

export function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export function fromBase64url(text) {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null;
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

const castagnoli = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0x82f63b78 ^ (n >>> 1) : n >>> 1;
  return n;
});

function crc32c(bytes) {
  let c = 0xffffffff;
  for (const b of bytes) c = castagnoli[(c ^ b) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
