// What a file of another program means: each of its readings with the verdict
// and why, the figures, what other settings would have come to, what to do and
// what stays open. The numbers and words are the reader's; this module only
// lays them out.

import { $, bytes, el } from "./words.js";

// show fills the pane with the readings of what was opened.
export function show(pane, told) {
  const list = told?.readings ?? [];
  $("tab-note").textContent = list.length > 1 ? `${list.length} readings of one input` : "";
  const nodes = list.map((r, i) => reading(r, i, list.length));
  if (told?.cut) nodes.unshift(el("p.pane-note", { role: "note" }, `Not all of it was read: ${told.cut}.`));
  const top = pane.scrollTop;
  pane.replaceChildren(...nodes);
  pane.scrollTop = top;
}

function reading({ name, kind, line, phrase, rows, reading: r }, i, of) {
  const id = `reading-${i}`;
  const where = line > 1 || of > 1 ? el("small", {}, line ? ` line ${line}` : "") : null;
  const left = el("div", {},
    el(`div.verdict${calm.has(r.verdict) || r.verdict?.startsWith("undetermined") ? ".calm" : ""}`, { "data-verdict": r.verdict }, el("h4", {}, phrase ?? "What it says"), r.why ? el("p", {}, r.why) : null),
    section("What to do", "not verified by a rerun", r.next),
    replays(r),
    section("What cannot be concluded", "", r.not_concluded));
  return el("article.reading", { "aria-labelledby": id, "data-kind": kind }, el("h3", { id }, name, where), el("div.reading-split", {}, left, table(rows)));
}

// Verdicts that are no failure.
const calm = new Set(["balanced", "explained", "no_growth", "parse_only", "retryable", "timeline"]);

function section(title, note, list) {
  if (!list?.length) return null;
  return el("section.said", {}, el("h4", {}, title, note ? el("small", {}, ` ${note}`) : null), el("ul", {}, ...list.map((x) => el("li", {}, x))));
}

function table(rows) {
  if (!rows.length) return null;
  return el("table.said", {}, el("caption.unseen", {}, "Figures"), el("tbody", {}, ...rows.map(([label, value]) => el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, value)))));
}

// replays lists the settings that were tried on the recorded requests, those
// that serve first.
function replays(r) {
  const { trials, peaks, replayed, least_reduction: least, short_bytes: short } = r;
  if (!trials && !peaks && !replayed && !least && !short) return null;
  const serving = trials?.filter((t) => t.serves).length ?? 0;
  const words = [];
  if (trials && !serving) words.push(`Nothing would have served the request: ${trials.length} other settings and allocators were tried, and none did.`);
  if (least) words.push(`The least reduction: the request must shrink by ${exact(least)} to be served as things were.`);
  if (short) words.push(`What is live and the request are ${exact(short)} more than there is: so much less must be live, or asked for, before any placement serves.`);
  if (replayed) words.push(replayed);
  const assumes = [...(trials ?? []), ...(peaks ?? [])].find((t) => t.assumes)?.assumes;
  if (assumes) words.push(`Assumed: ${assumes}.`);
  return el("section.said", { "data-replayed": serving }, el("h4", {}, "Other settings", el("small", {}, " verified by replaying the recorded requests")),
    trials ? trialTable("Settings tried on the failing request", trials, true) : null,
    peaks ? trialTable("The same requests under other settings", peaks, false) : null,
    ...words.map((w) => el("p", {}, w)));
}

function trialTable(caption, list, failed) {
  const heads = failed ? ["Setting", "Allocator", "Serves it", "To spare", "Held at most"] : ["Setting", "Allocator", "Held at most"];
  const row = (t) => [t.setting ?? "as recorded", `${t.allocator}, ${t.own ? "its own" : "another one"}`, ...(failed ? [t.serves ? "yes" : "no", t.spare === null ? "–" : bytes(t.spare)] : []), bytes(t.peak_reserved)];
  return el("table.trials", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, ...list.map((t) => el(`tr${failed && t.serves ? ".serves" : ""}`, {}, ...row(t).map((c, i) => (i ? el("td", {}, c) : el("th", { scope: "row" }, c)))))));
}

const exact = (n) => (n < 1024 ? bytes(n) : `${bytes(n)} (${n} bytes)`);
