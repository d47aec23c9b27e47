// Mouse, touch and keyboard on the timeline.

import { $, nanos } from "./words.js";

// watchPlots makes the lanes answer to the pointer: drag selects, Shift or the
// middle button or one finger pans, two fingers and the wheel zoom, a click
// sets the cursor.
export function watchPlots(app) {
  const root = app.lanes.root;
  const fingers = new Map();
  let drag = null;

  const local = (e) => {
    const box = root.getBoundingClientRect();
    return { x: e.clientX - box.left - app.lanes.left, y: e.clientY - box.top + root.scrollTop };
  };
  const onPlot = (e) => e.target.closest(".lane-plot");

  root.addEventListener("pointerdown", (e) => {
    if (!onPlot(e) || e.button > 1) return;
    const p = local(e);
    if (e.pointerType === "touch") {
      fingers.set(e.pointerId, p.x);
      drag = { kind: "touch", x: p.x, y: p.y, view: { ...app.view }, moved: false };
    } else {
      drag = { kind: e.shiftKey || e.button === 1 ? "pan" : "select", x: p.x, y: p.y, view: { ...app.view }, moved: false };
      onPlot(e).setPointerCapture(e.pointerId);
    }
    if (e.button === 1) e.preventDefault();
    drag.lane = app.lanes.laneAt(p.y);
  });

  root.addEventListener("pointermove", (e) => {
    const p = local(e);
    if (!drag) {
      if (onPlot(e)) app.point(p.x, p.y, e.clientX, e.clientY);
      else app.unpoint();
      return;
    }
    if (fingers.has(e.pointerId)) {
      const before = [...fingers.values()];
      fingers.set(e.pointerId, p.x);
      const now = [...fingers.values()];
      if (now.length === 2) {
        pinch(app, before, now);
        drag.moved = true;
        return;
      }
    }
    if (Math.abs(p.x - drag.x) < 4 && !drag.moved) return;
    drag.moved = true;
    if (drag.kind === "select") {
      app.select(app.lanes.time(drag.x), app.lanes.time(p.x));
    } else {
      const per = (drag.view.t1 - drag.view.t0) / app.lanes.width;
      const by = (drag.x - p.x) * per;
      app.show(drag.view.t0 + by, drag.view.t1 + by);
    }
  });

  const up = (e) => {
    fingers.delete(e.pointerId);
    if (!drag || fingers.size) return;
    const p = local(e);
    if (!drag.moved && e.type === "pointerup") {
      app.select(null);
      app.choose(drag.lane);
      app.moveCursor(app.lanes.time(p.x), p);
    } else if (drag.kind === "select") {
      app.selected();
    }
    drag = null;
  };
  root.addEventListener("pointerup", up);
  root.addEventListener("pointercancel", up);
  root.addEventListener("pointerleave", () => app.unpoint());

  root.addEventListener("wheel", (e) => {
    if (!onPlot(e) || !app.view) return;
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    e.preventDefault();
    const delta = (sideways ? e.deltaX || e.deltaY : e.deltaY) * (e.deltaMode === 1 ? 16 : 1);
    if (sideways) app.pan(delta / app.lanes.width);
    else app.zoom(Math.exp(delta * 0.0022), app.lanes.time(local(e).x));
  }, { passive: false });
}

function pinch(app, before, now) {
  const gap = Math.max(12, Math.abs(now[0] - now[1]));
  const was = Math.max(12, Math.abs(before[0] - before[1]));
  const middle = (before[0] + before[1]) / 2;
  app.zoom(was / gap, app.lanes.time(middle));
  app.pan((middle - (now[0] + now[1]) / 2) / app.lanes.width);
}

// watchMinimap lets the window be dragged, stretched by its edges, or set
// around a click.
export function watchMinimap(app) {
  const plot = $("minimap-plot");
  let drag = null;
  const at = (e) => {
    const box = plot.getBoundingClientRect();
    return app.lanes.overviewTime((e.clientX - box.left) / box.width);
  };
  plot.addEventListener("pointerdown", (e) => {
    const t = at(e);
    const grip = e.target.closest(".grip");
    let kind = grip ? (grip.classList.contains("left") ? "left" : "right") : "move";
    if (!grip && !e.target.closest(".brush")) {
      const half = (app.view.t1 - app.view.t0) / 2;
      app.show(t - half, t + half);
    }
    drag = { kind, t, view: { ...app.view } };
    plot.setPointerCapture(e.pointerId);
  });
  plot.addEventListener("pointermove", (e) => {
    if (!drag) return;
    const by = at(e) - drag.t;
    const { t0, t1 } = drag.view;
    if (drag.kind === "left") app.show(Math.min(t0 + by, t1 - 1), t1);
    else if (drag.kind === "right") app.show(t0, Math.max(t1 + by, t0 + 1));
    else app.show(t0 + by, t1 + by);
  });
  for (const end of ["pointerup", "pointercancel"]) plot.addEventListener(end, () => (drag = null));
}

// watchKeys is the keyboard of the whole page. Keys that write text are left
// to the fields they are written in.
export function watchKeys(app) {
  const keys = {
    a: () => app.pan(-0.12), ArrowLeft: () => app.pan(-0.12),
    d: () => app.pan(0.12), ArrowRight: () => app.pan(0.12),
    w: () => app.zoom(0.72), ArrowUp: () => app.zoom(0.72), "+": () => app.zoom(0.72), "=": () => app.zoom(0.72),
    s: () => app.zoom(1.39), ArrowDown: () => app.zoom(1.39), "-": () => app.zoom(1.39),
    f: () => app.fit(), 0: () => app.fit(), Home: () => app.fit(),
    z: () => app.zoomToSelection(),
    ",": () => app.stepCursor(-1), ".": () => app.stepCursor(1),
    p: () => app.toPeak(),
    n: () => app.nextOOM(), N: () => app.nextOOM(-1),
    l: () => app.toggleFollow(),
    g: () => app.details.choose("flame"),
    e: () => app.details.choose("reading"),
    m: () => app.details.choose("files"),
    x: () => app.swap(),
    r: () => app.rerun(), R: () => app.runOnAgent(),
    o: () => $("file").click(),
    v: () => app.pasteDialog(),
    "/": () => $("find-text").focus(),
    "?": () => $("help-dialog").showModal(),
    Escape: () => app.escape(),
  };
  // A list that was set with the mouse gives the keyboard back; one that has it
  // by Tab looks for what is typed.
  let pointed = null;
  document.addEventListener("pointerdown", (e) => (pointed = e.target.closest?.("select") ?? null));
  document.addEventListener("keydown", () => (pointed = null), true);
  document.addEventListener("change", (e) => e.target === pointed && pointed.blur());

  document.addEventListener("keydown", (e) => {
    if ((e.ctrlKey || e.metaKey) && e.key === "s") {
      e.preventDefault();
      app.save();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
    const field = e.target.closest("input, select, textarea");
    if (field) {
      if (e.key === "Escape") field.blur();
      // A switch takes only what moves and sets it: letters are free.
      if (!/^(radio|checkbox)$/.test(field.type) || /^(Arrow|Escape|Enter|Tab| )/.test(e.key)) return;
    }
    const arrows = e.key.startsWith("Arrow") || e.key === "Home";
    if (arrows && e.target.closest("[role=tablist], [role=separator], .pane")) return;
    if (/^[1-9]$/.test(e.key)) {
      app.details.chooseNumber(Number(e.key));
      return;
    }
    const run = keys[e.key];
    if (!run || (!app.view && /^[adwszfpnlge0,.]$|^Arrow/.test(e.key))) return;
    e.preventDefault();
    run();
  });
}

// watchSplitter changes the height of the details.
export function watchSplitter() {
  const bar = $("splitter");
  const box = $("inspector");
  const set = (h) => {
    const clamped = Math.round(Math.min(Math.max(h, 120), innerHeight * 0.7));
    box.style.setProperty("--inspector", `${clamped}px`);
    bar.setAttribute("aria-valuenow", clamped);
  };
  let from = null;
  bar.addEventListener("pointerdown", (e) => {
    from = { y: e.clientY, h: box.clientHeight };
    bar.setPointerCapture(e.pointerId);
  });
  bar.addEventListener("pointermove", (e) => from && set(from.h + from.y - e.clientY));
  bar.addEventListener("pointerup", () => (from = null));
  bar.addEventListener("keydown", (e) => {
    if (e.key === "ArrowUp") set(box.clientHeight + 24);
    else if (e.key === "ArrowDown") set(box.clientHeight - 24);
    else return;
    e.preventDefault();
  });
}

export const spoken = (view) => `${nanos(view.t0)} to ${nanos(view.t1)}`;
