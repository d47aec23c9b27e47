// The buttons of the bar and above the lanes, and files and text that are
// dropped or pasted.

import { dropped } from "./side.js";
import { $ } from "./words.js";

const root = document.documentElement;

export function watchButtons(app) {
  const on = (id, f) => $(id).addEventListener("click", f);
  $("file").addEventListener("click", () => app.reader.warm());
  on("open", () => $("file").click());
  on("start-open", () => $("file").click());
  on("paste", () => app.pasteDialog());
  on("start-paste", () => app.pasteDialog());
  on("show-knobs", () => app.showKnobs($("show-knobs").getAttribute("aria-expanded") !== "true"));
  on("save", () => app.save());
  on("help", () => $("help-dialog").showModal());
  on("theme", () => {
    root.dataset.theme = app.theme ? "light" : "dark";
    try {
      localStorage.setItem("tideline-theme", root.dataset.theme);
    } catch {
      // Without storage the choice holds until the page is left.
    }
    app.themeChanged();
  });
  on("fit", () => app.fit());
  on("zoom-in", () => app.zoom(0.6));
  on("zoom-out", () => app.zoom(1.7));
  on("zoom-selection", () => app.zoomToSelection());
  on("to-peak", () => app.toPeak());
  on("next-oom", () => app.nextOOM());
  on("follow", () => app.toggleFollow());
  on("swap", () => app.swap());
  on("drop-base", () => app.ask("drop-base"));
  $("file").addEventListener("change", () => {
    app.openFiles([...$("file").files]);
    $("file").value = "";
  });
  $("run-picker").addEventListener("change", (e) => app.pick(e.target.value));
  $("run-picker").addEventListener("focus", () => app.listRuns());
  $("find").addEventListener("submit", (e) => {
    e.preventDefault();
    app.find($("find-text").value.trim());
  });
  $("paste-form").addEventListener("submit", (e) => {
    if (e.submitter?.value === "open") app.openText($("paste-text").value);
  });
}

export function watchDrops(app) {
  let depth = 0;
  const files = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (e) => {
    if (!files(e)) return;
    app.reader.warm();
    $("drop").hidden = !++depth;
  });
  addEventListener("dragleave", (e) => {
    if (files(e)) $("drop").hidden = !(depth = Math.max(0, depth - 1));
  });
  addEventListener("dragover", (e) => files(e) && e.preventDefault());
  addEventListener("drop", (e) => {
    if (!files(e)) return;
    e.preventDefault();
    depth = 0;
    $("drop").hidden = true;
    dropped(e.dataTransfer).then((files) => app.openFiles(files), (why) => app.trouble(why));
  });
  addEventListener("paste", (e) => {
    if (e.target.closest?.("input, textarea")) return;
    const text = e.clipboardData.getData("text/plain");
    if (text.length > 80) app.openText(text);
  });
}
