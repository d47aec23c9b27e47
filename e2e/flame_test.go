package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/ingest/snapshot"
	"tideline/shared/ingest/snapshot/synthetic"
)

// trainer writes what a snapshot of a small training program becomes: parameters
// that stay, a step's activations, and a cache that grows. It returns the bytes
// that the cache holds at the end.
func trainer(t *testing.T, file string) (cache int64) {
	t.Helper()
	strs := new(event.Strings)
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	now, next := int64(0), uint64(0x7f0000000000)
	emit := func(e event.Event) event.Event {
		now += 50_000
		e.Time, e.Step = now, event.NoStep
		w.Emit(&e)
		return e
	}
	emit(event.Event{Kind: event.DeviceFacts, Text: strs.ID(event.Fields{{Key: "name", Value: "/GPU:0"}, {Key: "kind", Value: "gpu"}}.Encode())})
	emit(event.Event{Kind: event.AllocatorFacts, Text: strs.ID(event.Fields{{Key: "name", Value: "GPU_0_torch"}, {Key: "kind", Value: "torch"}}.Encode())})
	emit(event.Event{Kind: event.RegionAdd, Address: next, Size: 6 << 30, Requested: 6 << 30})
	outer := []string{"_start ??:0", "main /srv/run/train.py:212", "fit /srv/run/train.py:140"}
	inner := []string{"_call_impl /opt/lib/python3.11/site-packages/torch/nn/modules/module.py:1511", "forward /opt/lib/python3.11/site-packages/torch/nn/modules/linear.py:114"}
	alloc := func(size int64, blame string, frames ...string) event.Event {
		e := emit(event.Event{Kind: event.Alloc, Address: next, Size: size, Requested: size - 100, Op: strs.ID(blame), Tensor: strs.ID(strings.Join(append(append([]string{}, outer...), frames...), "\n"))})
		next += uint64(size)
		return e
	}
	for i := range 24 {
		layer := fmt.Sprintf("__init__ /srv/models/block.py:%d", 20+i%3*7)
		alloc(int64(4+i%3*12)<<20, layer, "build /srv/run/train.py:33", fmt.Sprintf("add_block /srv/models/net.py:%d", 51+i/8), layer)
	}
	for range 8 {
		var step []event.Event
		for i := range 24 {
			part := []string{"attention", "mlp", "norm"}[i%3]
			line := fmt.Sprintf("%s /srv/models/block.py:%d", part, 90+i%3*15)
			step = append(step, alloc(int64(6+i%3*9)<<20, line, append([]string{"train_step /srv/run/train.py:96", "forward /srv/models/net.py:77", line}, inner...)...))
		}
		e := alloc(12<<20, "remember /srv/run/metrics.py:18", "log_step /srv/run/train.py:103", "remember /srv/run/metrics.py:18")
		cache += e.Size
		for _, e := range step {
			e.Kind = event.Free
			emit(e)
		}
	}
	emit(event.Event{Kind: event.Alloc, Address: next, Size: 3 << 20, Requested: 3 << 20, Op: strs.ID("warm_up train.py:20")}) // its stack was left out
	emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone)})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return cache
}

// crumb is the frame that fills the width, as the way above the graph says.
const crumb = `document.querySelector(".crumbs b")?.textContent`

// TestTheFlameGraph: who holds the memory of a foreign program by stack, with
// zoom, filter, selection, keyboard and a link to all of it.
func TestTheFlameGraph(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.tideline")
	cache := trainer(t, file)
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("the file", `tideline.current?.peak && !tideline.live`)
	p.settled()
	p.do("the key of the flame graph", chromedp.KeyEvent("g"))
	p.idle()
	p.wait("the graph", `document.querySelector("canvas.flame")?.getBoundingClientRect().height > 60 && `+crumb+` === "All"`)
	p.screenshot("peak")
	if tabs := eval[string](p, `[...document.querySelectorAll("[role=tab]")].map(t => t.dataset.tab).join()`); !strings.Contains(tabs, "live,flame,chunks,peak") {
		t.Errorf("the tabs are %s", tabs)
	}
	p.do("the digit of the chunk map", chromedp.KeyEvent("2"))
	p.wait("the chunk map", `tideline.details.tab === "chunks"`)
	p.choose("#tab-flame")

	// What grew in a selection is the cache alone.
	p.do("select most of the run", chromedp.Evaluate[chromedp.Void](`(() => { const { t0, t1 } = tideline.span; tideline.select(t0 + (t1 - t0) * 0.2, t1); tideline.selected(); })()`))
	p.idle()
	p.choose(`input[name="flame-how"][value="kept"]`)
	p.wait("what was kept", `!document.querySelector("#flame-how").hidden && document.querySelector(".crumbs .sum").textContent.includes("blocks") && document.querySelector("table.data tbody").textContent.includes("remember")`)
	p.screenshot("kept")
	if rows := eval[int](p, `document.querySelectorAll("#pane tbody tr").length`); rows < 1 {
		t.Error("no row tells of what was kept")
	}
	p.do("drop the selection", chromedp.Evaluate[chromedp.Void](`(() => { document.activeElement.blur(); tideline.select(null); tideline.moveCursor(tideline.span.t1); })()`))
	p.idle()

	// The filter is exact, in the graph and in the table of what is alive.
	p.fill("#sift-text", "METRICS.py")
	p.idle()
	p.wait("what passes", `document.querySelector("#sift-note").textContent.startsWith(`+quoted(fmt.Sprintf("%.2f MiB of ", float64(cache)/(1<<20)))+`)`)
	p.screenshot("filtered")
	p.choose("#tab-live")
	p.wait("the table behind the filter", `[...document.querySelectorAll("#pane tbody tr")].length === 8 && document.querySelector("#pane dl").textContent.includes("8 of 33 blocks")`)

	// A click zooms, the address bar knows, Escape goes back.
	p.choose("#tab-flame")
	p.fill("#sift-text", "")
	p.idle()
	p.wait("all of it without the filter", `[...document.querySelectorAll("#pane tbody tr.go")].some(r => r.textContent.includes("fit"))`)
	p.do("zoom by the table", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#pane tbody tr.go")].find(r => r.textContent.includes("fit")).click()`))
	p.wait("the frame", crumb+`.includes("fit")`)
	p.do("into the graph by keyboard", chromedp.Evaluate[chromedp.Void](`document.querySelector("canvas.flame").focus()`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent("\r"))
	p.wait("what the keyboard zoomed into, announced", crumb+` && !`+crumb+`.endsWith("fit") && document.querySelector("#announce").textContent.includes("%")`)
	into := eval[string](p, crumb)
	p.wait("the frame in the address bar", `location.hash.includes("frame=") && location.hash.includes("tab=flame")`)
	p.reload()
	p.settled()
	p.wait("the same frame after a reload", crumb+` === `+quoted(into))
	p.do("Escape", chromedp.KeyEvent(kb.Escape))
	p.wait("one frame less", crumb+`.includes("fit")`)
	p.do("Escape again", chromedp.KeyEvent(kb.Escape))
	p.wait("all of it", crumb+` === "All"`)
	box := eval[[]float64](p, `(() => { const r = document.querySelector("canvas.flame").getBoundingClientRect(); return [r.left + 80, r.top + 30]; })()`)
	p.do("click a frame", chromedp.MouseClickXY(box[0], box[1]))
	p.wait("the clicked frame", crumb+` !== "All"`)
	p.quiet()
}

// TestTheFlameGraphOfASnapshot: deep stacks are drawn whole, folded or not, by
// night and on a narrow screen.
func TestTheFlameGraphOfASnapshot(t *testing.T) {
	var pickled bytes.Buffer
	if _, err := synthetic.Write(&pickled, synthetic.Shape{Requests: 6000, Live: 500, Stacks: 120, Depth: 40}); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(&pickled, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	strs := new(event.Strings)
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	s.Emit(strs, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.tideline")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t, file)
	p := openPage(t, 390, 844)
	p.dark()
	p.open(a.url)
	p.settled()
	p.choose("#tab-flame")
	p.wait("the graph", `document.querySelector("canvas.flame")?.getBoundingClientRect().height > 10`)
	folded := eval[float64](p, `document.querySelector("canvas.flame").getBoundingClientRect().height`)
	p.do("show it", chromedp.Evaluate[chromedp.Void](`document.querySelector(".inspector").scrollIntoView()`))
	p.screenshot("phone")
	p.choose("#flame-fold")
	p.wait("every frame", fmt.Sprintf(`document.querySelector("canvas.flame").getBoundingClientRect().height >= %f`, max(folded, 40*20)))
	if wide := eval[float64](p, `document.documentElement.scrollWidth`); wide > 390 {
		t.Errorf("the page is %v wide on a screen of 390", wide)
	}
	p.quiet()
}

// TestTheFlameGraphOfOurOwnRun: the names of tensors are scopes.
func TestTheFlameGraphOfOurOwnRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resnet.tideline")
	if out, err := exec.Command(agentBinary, "run", "-q", "--modelled", "-o", file, filepath.Join("..", "examples", "resnet50.yaml")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.settled()
	p.choose("#tab-flame")
	p.wait("the scopes", `[...document.querySelectorAll("#pane tbody td:first-child")].some(d => d.textContent.startsWith("block1"))`)
	p.screenshot("light")
	p.dark()
	p.reload()
	p.settled()
	p.wait("the scopes by night", `document.querySelector("canvas.flame")?.getBoundingClientRect().height > 30`)
	p.idle()
	p.screenshot("dark")
	p.quiet()
}
