package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func example(name string) string { return filepath.Join("..", "examples", "files", name) }

// TestAForeignFileComesFirst: beside a file that names no workload the settings
// of a run are away, what it says has room, and nothing starts the last demo.
func TestAForeignFileComesFirst(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.screenshot("start")
	p.opened(example("llm-step.pickle.gz"))
	p.wait("who holds the memory", `document.querySelector("#pane .held tr")`)
	p.pictured("snapshot")
	if h := eval[float64](p, `document.querySelector("#inspector").offsetHeight / innerHeight`); h < 0.4 {
		t.Errorf("what it says has %.2f of the height", h)
	}
	if !eval[bool](p, `document.querySelector(".knobs").offsetWidth === 0 && document.querySelector("#run-agent").disabled`) {
		t.Error("the settings of a run are shown beside a snapshot, or can be started")
	}
	p.do("what would help", chromedp.Evaluate[chromedp.Void](`tideline.details.choose("findings")`))
	p.settled()
	if said := p.text("#pane"); !strings.HasPrefix(said, "This file names no workload, so nothing can be rerun.") {
		t.Errorf("what would help: %q", said)
	}
	p.click("#show-knobs")
	if eval[int](p, `document.querySelector(".knobs").offsetWidth`) < 200 {
		t.Error("the button does not bring the settings back")
	}
	p.do("run on the agent", chromedp.Evaluate[chromedp.Void](`tideline.runOnAgent()`))
	p.settled()
	if name := eval[string](p, `tideline.current.name`); name != "llm-step.pickle.gz" {
		t.Errorf("%s was started", name)
	}
	p.quiet()
}

// TestAMomentIsABand: a profile of an instant has no times, and fills the lanes.
func TestAMomentIsABand(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.opened(example("jax-memory.prof"))
	p.pictured("moment")
	if span := p.text("#span"); span != "A moment" {
		t.Errorf("the time shown is %q", span)
	}
	if lanes := p.text("#lanes"); strings.Contains(lanes, "largest hole") || !strings.Contains(lanes, "free memory is not told") {
		t.Errorf("the lanes say %q", lanes)
	}
	p.quiet()
}

// TestALinkToAFileOfATab says after a reload what it was of, and does not put
// its view over another file.
func TestALinkToAFileOfATab(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.opened(example("small-model.pickle"))
	p.do("look at the peak", chromedp.Evaluate[chromedp.Void](`tideline.toPeak()`))
	p.wait("the name in the address bar", `location.hash.includes("file=small-model.pickle") && location.hash.includes("tab=peak")`)
	p.reload()
	p.wait("nothing open", `!tideline.current`)
	p.idle()
	if said := p.text("#start-lost"); !strings.Contains(said, "small-model.pickle") || !strings.Contains(said, "Share") {
		t.Errorf("the start page says %q", said)
	}
	p.screenshot("reloaded")
	p.opened(example("rmm.csv"))
	if eval[bool](p, `tideline.cursor !== null || tideline.details.tab !== "reading"`) {
		t.Error("another file took the view of the first over")
	}
	p.quiet()
}

// TestTheCursorStaysInTheLanes on a phone, where the lanes scroll with the page.
func TestTheCursorStaysInTheLanes(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 390, 844)
	p.open(a.url)
	p.opened(example("small-model.pickle"))
	p.do("place the cursor and scroll", chromedp.Evaluate[chromedp.Void](`(tideline.moveCursor(tideline.span.t1 * 0.9), document.querySelector(".tabs").scrollIntoView())`))
	p.settled()
	p.screenshot("scrolled")
	if !eval[bool](p, `(() => {
		const box = (css) => document.querySelector(css).getBoundingClientRect();
		return box("#pin").bottom <= box("#lanes").bottom + 1 && box("#pin").top >= box("#lanes").top - 1;
	})()`) {
		t.Error("the cursor's line leaves the lanes")
	}
	p.quiet()
}

// TestWhatTheAgentServesIsListedOnce in the menu of runs.
func TestWhatTheAgentServesIsListedOnce(t *testing.T) {
	a := startAgent(t, example("small-model.pickle"))
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("what it says", `document.querySelector("#pane article.reading")`)
	p.settled()
	if n := eval[int](p, `[...document.querySelector("#run-picker").options].filter((o) => o.textContent.startsWith("small-model.pickle")).length`); n != 1 {
		t.Errorf("it is listed %d times", n)
	}
	if eval[string](p, `document.querySelector("#run-picker").value.slice(0, 6)`) != "agent:" {
		t.Error("the menu does not say that it is on screen")
	}
	p.quiet()
}

// TestAnotherFileTakesNothingOver of what the pointer rests on, and a legend keeps
// the ends of names that differ there alone.
func TestAnotherFileTakesNothingOver(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.opened(example("small-model.pickle"))
	if cut := eval[string](p, `[...document.querySelectorAll(".legend .clip > b")].filter((b) => Math.max(b.firstChild.getBoundingClientRect().right, b.getBoundingClientRect().right) > b.parentNode.getBoundingClientRect().right + 1 || b.clientWidth < 40).map((b) => b.textContent).join()`); cut != "" {
		t.Errorf("the legend cuts %s", cut)
	}
	if n := eval[int](p, `document.querySelectorAll(".legend .clip > b").length`); n < 4 {
		t.Errorf("%d names of the legend have an end of their own", n)
	}
	p.screenshot("first")
	p.do("rest on a block", chromedp.Evaluate[chromedp.Void](`(() => {
		const l = tideline.lanes.list[0];
		tideline.point(tideline.lanes.width - 20, l.y + l.h - 8, 900, 400);
	})()`))
	p.wait("the tip", `!document.querySelector("#tip").hidden`)
	p.screenshot("tip")
	p.opened(example("rmm.csv"))
	if !eval[bool](p, `tideline.hover === null && document.querySelector("#tip").hidden`) {
		t.Error("the pointer or its tip stayed")
	}
	head := `document.querySelector(".lane-now").textContent`
	p.do("ask again", chromedp.Evaluate[chromedp.Void](`globalThis.before = `+head+`; tideline.values()`))
	p.settled()
	if !eval[bool](p, `before === `+head) {
		t.Errorf("the head said %q, and is %q", eval[string](p, `before`), p.text(".lane-now"))
	}
	p.quiet()
}
