// How figures are written for people: IEC units for bytes, the fitting unit
// for nanoseconds.

const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

export function bytes(n, digits = 2) {
  if (Math.abs(n) < 1024) return `${n} B`;
  let i = -1;
  while (Math.abs(n) >= 1024 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${n.toFixed(digits)} ${units[i]}`;
}

// parseBytes reads "512 MiB", "4GiB", "1.5 GB" or plain bytes; NaN otherwise.
export function parseBytes(text) {
  const m = /^\s*([\d.]+)\s*(B|[KMGT]iB|[kKMGT]B)?\s*$/.exec(text);
  if (!m) return NaN;
  const unit = m[2] || "B";
  const power = " KMGT".indexOf(unit[0].toUpperCase());
  const base = unit.endsWith("iB") ? 1024 : 1000;
  return Math.round(Number(m[1]) * (power > 0 ? base ** power : 1));
}

const steps = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

// nanos writes a time or a duration. The unit is chosen by scale, so that the
// ticks of one axis share theirs.
export function nanos(ns, scale = Math.abs(ns)) {
  if (ns === 0) return "0";
  let [size, unit] = steps[0];
  for (const [s, u] of steps) if (scale >= s) [size, unit] = [s, u];
  const v = ns / size;
  const digits = Math.abs(v) >= 100 ? 1 : Math.abs(v) >= 10 ? 2 : 3;
  return `${trim(v.toFixed(digits))} ${unit}`;
}

function trim(s) {
  return s.includes(".") ? s.replace(/\.?0+$/, "") : s;
}

export function count(n) {
  return Math.round(n).toLocaleString("en-US").replaceAll(",", "\u202f");
}

// niceStep is the 1, 2 or 5 times a power of ten that cuts range into at most
// parts pieces.
export function niceStep(range, parts) {
  const raw = range / Math.max(1, parts);
  const mag = 10 ** Math.floor(Math.log10(raw));
  for (const f of [1, 2, 5, 10]) if (f * mag >= raw) return f * mag;
  return 10 * mag;
}

// byteStep is the same in powers of two, as memory is read.
export function byteStep(range, parts) {
  return 2 ** Math.ceil(Math.log2(Math.max(1, range / Math.max(1, parts))));
}

// el makes an element: el("td.num", {title}, "text", child).
export function el(what, props = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k in node && !k.startsWith("aria")) node[k] = v;
    else node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export const $ = (id) => document.getElementById(id);
