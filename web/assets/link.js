// The address bar holds the view, so that a link to a run of the agent, or a
// reload, shows the same thing again: #run=3&from=0&to=1200&at=340&tab=peak.
// Of what is in this tab alone it holds the name, to say later what is missing.
// A timeline that came by link keeps its share=ID.KEY in front.

export function read() {
  const p = new URLSearchParams(location.hash.slice(1));
  const number = (k) => (p.has(k) && Number.isFinite(Number(p.get(k))) ? Number(p.get(k)) : null);
  return { run: p.get("run") ?? "", file: p.get("file") ?? "", share: p.get("share"), t0: number("from"), t1: number("to"), cursor: number("at"), tab: p.get("tab") ?? "", lane: p.get("lane") ?? "", selection: range(p.get("select")), ...details(p) };
}

// details is what the flame graph and the filter show.
function details(p) {
  return { filter: p.get("filter") ?? "", how: p.get("of") ?? "", by: p.get("by") ?? "", fold: p.get("fold") !== "no", frame: Number.parseInt(p.get("frame") ?? "0", 36) || 0 };
}

function range(text) {
  const [t0, t1] = (text ?? "").split("-").map(Number);
  return text && t1 > t0 ? { t0, t1 } : null;
}

// Browsers take some six changes of the address a second; the first is made at
// once, so that a reload right after a click shows what was clicked.
const pause = 200; // milliseconds
let timer = 0;
let written = -pause;
let latest = null;

export function write(state) {
  latest = state;
  timer ||= setTimeout(put, Math.max(0, written + pause - performance.now()));
}

function put() {
  timer = 0;
  written = performance.now();
  const { run, file, share, view, cursor, selection, tab, lane, whole, filter, how, by, fold, frame } = latest;
  const p = new URLSearchParams();
  if (share) p.set("share", share);
  if (run) p.set("run", run);
  if (view && !whole) {
    p.set("from", Math.round(view.t0));
    p.set("to", Math.round(view.t1));
  }
  if (cursor !== null) p.set("at", Math.round(cursor));
  if (tab && tab !== "live") p.set("tab", tab);
  if (lane) p.set("lane", lane);
  if (selection) p.set("select", `${Math.round(selection.t0)}-${Math.round(selection.t1)}`);
  if (filter) p.set("filter", filter);
  if (tab === "flame") {
    if (selection && how === "kept") p.set("of", how);
    if (by === "blocks") p.set("by", by);
    if (!fold) p.set("fold", "no");
    if (frame) p.set("frame", frame.toString(36));
  }
  if (file && !run && !share && p.size) p.set("file", file);
  const hash = p.toString();
  if (hash !== location.hash.slice(1)) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}
