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
  if (told?.own && list.length) nodes.unshift(el("p.pane-note.saved", { role: "note" }, saved(told)));
  if (told?.cut) nodes.unshift(el("p.pane-note", { role: "note" }, `Not all of it was read: ${told.cut}.`));
  const top = pane.scrollTop;
  pane.replaceChildren(...nodes);
  pane.scrollTop = top;
}

// saved says whose the readings of a timeline are.
function saved({ input_kind: kind, input_cut: cut, left_out: left }) {
  const words = [`Saved readings: this timeline was made of another file (${kind ?? "of a kind that is not told"}), and keeps what that said.`];
  if (cut) words.push(`Not all of that file was read: ${cut}.`);
  if (left) words.push(`${left} more readings were left out.`);
  return words.join(" ");
}

function reading({ name, kind, line, phrase, rows, reading: r }, i, of) {
  const id = `reading-${i}`;
  const where = line > 1 || of > 1 ? el("small", {}, line ? ` line ${line}` : "") : null;
  const { figures, lists, held, grows } = sorted(rows);
  const calmly = calm.has(r.verdict) || r.verdict?.startsWith("undetermined");
  const left = el("div", {},
    grows && section(grows.label, "", grows.values),
    ...lists.map((l) => section(l.label[0].toUpperCase() + l.label.slice(1), "", l.values)),
    section("What to do", "not verified by a rerun", r.next),
    replays(r),
    section("What cannot be concluded", "", r.not_concluded));
  const right = held.length ? el("div", {}, ...held.map(holders)) : null;
  return el("article.reading", { "aria-labelledby": id, "data-kind": kind },
    el("h3", { id }, name, where),
    el(`div.verdict${calmly ? ".calm" : ""}`, { "data-verdict": r.verdict }, phrase ? el("h4", {}, phrase) : null, r.why ? el("p", {}, r.why) : null),
    figureList(figures),
    el("div.reading-split", {}, right, left.childNodes.length ? left : null));
}

// sorted tells the rows apart: figures, who holds the memory, what grows and
// other lists of sentences, each a label and the values that belong to it.
function sorted(rows) {
  const groups = [];
  for (const [label, value] of rows) {
    if (label || !groups.length) groups.push({ label, values: [] });
    groups.at(-1).values.push(value);
  }
  const told = (words) => groups.filter((g) => g.label.startsWith(words));
  const held = told("Who holds ");
  const [grows] = told("What grows");
  const rest = groups.filter((g) => g !== grows && !held.includes(g));
  const isList = ({ label, values }) => label && values.length > 1 && values.some((v) => v.length > 30);
  return { held, grows, lists: rest.filter(isList), figures: rest.filter((g) => !isList(g)) };
}

// holders lists who holds an allocator's memory, with the share of each.
function holders({ label, values }) {
  return el("section.said.held", {}, el("h4", {}, label), el("table", {}, el("tbody", {}, ...values.map((v) => {
    const [, size, share, blocks, who] = /^([^,]+), ([\d.<]+) % in (.+? blocks?): ([^]*)$/.exec(v) ?? [];
    if (!who) return el("tr", {}, el("td", { colSpan: 4 }, v));
    const bar = el("i");
    bar.style.width = `${Number.parseFloat(share.replace("<", "")) || 0}%`;
    return el("tr", {}, el("td.num", {}, size), el("td.length", { title: `${share} %` }, bar), el("td.num", {}, `${share} %`), el("td", {}, who, el("small", {}, ` ${blocks}`)));
  }))));
}

// Verdicts that are no failure.
const calm = new Set(["balanced", "explained", "no_growth", "parse_only", "retryable", "timeline"]);

function section(title, note, list) {
  if (!list?.length) return null;
  return el("section.said", {}, el("h4", {}, title, note ? el("small", {}, ` ${note}`) : null), el("ul", {}, ...list.map((x) => el("li", {}, x))));
}

function figureList(groups) {
  if (!groups.length) return null;
  return el("dl.said-figures", { "aria-label": "Figures" }, ...groups.map(({ label, values }) =>
    el(`div${values.some((v) => v.length > 44) || values.length > 1 ? ".long" : ""}`, {}, el("dt", {}, label), ...values.map((v) => el("dd", {}, v)))));
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
