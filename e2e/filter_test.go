package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"

	"tideline/protocol/event"
	prefab "tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// matching is what the head of the first memory lane says of the filter.
const matching = `(document.querySelector(".lane[data-kind=memory] .lane-match:not([hidden])")?.textContent ?? "")`

// TestTheLanesFollowTheFilter: a filter dims lane and map, the heads say what is
// left and the hover whether it matches, by day and by night; dropping it brings
// back the picture.
func TestTheLanesFollowTheFilter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.tideline")
	cache := trainer(t, file)
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("the file", `tideline.current?.peak && !tideline.live`)
	p.settled()
	plain := p.pictured("plain")
	p.do("the end", chromedp.Evaluate[chromedp.Void](`tideline.moveCursor(tideline.span.t1)`))
	p.choose("#tab-flame")
	p.fill("#sift-text", "METRICS.py")
	p.idle()
	says := fmt.Sprintf("matching METRICS.py: %.2f MiB of ", float64(cache)/(1<<20))
	p.wait("what matches in the head", matching+`.startsWith(`+quoted(says)+`)`)
	filtered := p.pictured("filtered")
	if bytes.Equal(plain, filtered) {
		t.Error("the filter changes no picture")
	}

	// The hover tells block by block.
	p.do("hover everywhere", chromedp.Evaluate[chromedp.Void](`(async () => {
		const lane = tideline.lanes.list.find((l) => l.kind === "address");
		const told = new Set();
		const d = tideline.lanes.dpr;
		for (let x = 10; x < tideline.lanes.width; x += 40) for (let y = lane.y + lane.h - 3; y > lane.y; y -= 4) {
			const { hit } = await tideline.engine.ask("hover", x * d, y * d, Math.round(tideline.lanes.time(x)));
			for (const [k, v] of hit?.lines ?? []) if (k === "filter") told.add(v);
		}
		globalThis.hovered = [...told].sort().join();
	})()`))
	p.wait("the hovers", `globalThis.hovered !== undefined`)
	if got := eval[string](p, `hovered`); got != "does not match,matches" {
		t.Errorf("the hovers say %q", got)
	}
	p.dark()
	p.idle()
	p.screenshot("dark")

	// The link brings the filter back, for the lanes too.
	p.reload()
	p.settled()
	p.wait("the filter after a reload", matching+`.startsWith(`+quoted(says)+`)`)
	p.do("clear", chromedp.Evaluate[chromedp.Void](`document.querySelector(".lane-match button").click()`))
	p.idle()
	p.wait("no filter", `!`+matching+` && document.querySelector("#sift-text").value === ""`)
	if !bytes.Equal(p.pictured("dropped-dark"), p.pictured("again-dark")) {
		t.Error("the picture does not rest")
	}
	p.quiet()
}

// longRun is the number of events of a long run; TIDELINE_E2E_EVENTS asks for
// another one.
func longRun() int {
	if n, err := strconv.Atoi(os.Getenv("TIDELINE_E2E_EVENTS")); err == nil {
		return n
	}
	return 1_000_000
}

// TestAFilterOfALongRun: a million events are looked through in slices, the
// picture filling in, and a frame keeps to its time.
func TestAFilterOfALongRun(t *testing.T) {
	var b bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	prefab.Generate(prefab.Options{Events: longRun(), Seed: 1, Dynamic: true}, strs, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "long.tideline")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("the file", `tideline.current?.peak && !tideline.live`)
	p.settled()
	without := p.pans()
	p.do("count", chromedp.Evaluate[chromedp.Void](`(() => {
		globalThis.seen = [];
		tideline.engine.addEventListener("sifted", (e) => seen.push({ at: performance.now(), ...e.detail }));
		globalThis.asked = performance.now();
		tideline.details.sift("block1");
	})()`))
	p.idle()
	p.wait("all of it", `seen.at(-1)?.more === false`)
	t.Logf("told %d times, %.0f ms from the wish to the end", eval[int](p, `seen.length`), eval[float64](p, `seen.at(-1).at - asked`))
	if n := eval[int](p, `seen.filter((s) => s.more).length`); n < 1 {
		t.Error("the picture does not fill in")
	}
	p.wait("what matches", matching+`.includes(" of ") && !`+matching+`.includes("looked")`)
	p.screenshot("long")
	t.Logf("own milliseconds a frame while panning: %s; with the filter: %s", without, p.pans())
	p.quiet()
}

// pans moves over the run and says what a frame cost the module: the median, the
// 95th percentile and the most, in milliseconds.
func (p *page) pans() string {
	p.t.Helper()
	p.do("pan", chromedp.Evaluate[chromedp.Void](`(async () => {
		globalThis.panned = false;
		const { span } = tideline;
		const d = (span.t1 - span.t0) / 5;
		tideline.show(span.t0 + d, span.t0 + 2 * d);
		tideline.engine.own.length = 0;
		for (let i = 0; i < 120; i++) {
			tideline.show(span.t0 + d * (1 + i / 100), span.t0 + d * (2 + i / 100));
			await new Promise(requestAnimationFrame);
		}
		globalThis.panned = true;
	})()`))
	p.wait("the pan", `globalThis.panned`)
	p.idle()
	return eval[string](p, `(() => { const o = [...tideline.engine.own].sort((a, b) => a - b); return [0.5, 0.95, 1].map((q) => o[Math.min(o.length - 1, Math.floor(q * o.length))].toFixed(1)).join(" ") + " of " + o.length; })()`)
}
