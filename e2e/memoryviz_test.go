package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/ingest/snapshot/synthetic"
)

// TestBesideMemoryViz opens made-up snapshots in PyTorch's own viewer and in
// Tideline's page by turns, each time in a browser of its own, and prints how
// long both take, what they need for it and the ratios of the medians.
//
// TIDELINE_MEMORYVIZ names a folder that holds the viewer, none of which is part
// of Tideline:
//
//	MemoryViz.js           torch/utils/viz/MemoryViz.js of PyTorch, as it is
//	process_alloc_data.js  beside it there, since 2026
//	node_modules/          npm install d3@7, or the versions that it imports
//
// The page that loads it is the one that the viewer's own words ask for; its
// imports from a network are mapped to node_modules, whichever network it is.
// TIDELINE_SNAPSHOT_REQUESTS sets how many allocations and frees there are. Of
// the two snapshots the one with random lifetimes is the harder for a viewer
// that draws blocks as bands one above the other, since every free moves all
// that lie above it; training steps free nearly in reverse, as programs do.
//
// The viewer leaves all but the 15,000 largest blocks out until its slider is
// moved. With TIDELINE_MEMORYVIZ_ALL set it is opened a second time each round
// and the slider moved to its end as soon as there is a first picture: of many
// requests with random lifetimes that is more than a browser's tab can hold.
//
// The picture is complete, for both, two frames after the page has drawn the
// last of it: from the input's change event, by the page's clock. On screen is
// when the driver then has a screenshot of it, which waits for what the
// browser still has to paint: from the file being given, by the test's clock.
func TestBesideMemoryViz(t *testing.T) {
	folder := os.Getenv("TIDELINE_MEMORYVIZ")
	if folder == "" {
		t.Skip("TIDELINE_MEMORYVIZ names no folder with PyTorch's viewer")
	}
	requests := 10_000
	if s := os.Getenv("TIDELINE_SNAPSHOT_REQUESTS"); s != "" {
		var err error
		if requests, err = strconv.Atoi(s); err != nil {
			t.Fatalf("TIDELINE_SNAPSHOT_REQUESTS is %q, not a number", s)
		}
	}
	theirs := serveMemoryViz(t, folder)
	viewers := []viewer{tidelinePage(startAgent(t).url), memoryViz(theirs)}
	if os.Getenv("TIDELINE_MEMORYVIZ_ALL") != "" {
		viewers = append(viewers, memoryVizAll(theirs))
	}
	for _, c := range []struct {
		name  string
		write func(io.Writer, int) (int, error)
	}{
		{"random", func(w io.Writer, n int) (int, error) {
			return synthetic.Write(w, synthetic.Shape{Requests: n})
		}},
		{"steps", writeSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "made-up.pickle")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			entries, err := c.write(f, requests)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d requests, %d entries, %d bytes; load %s", requests, entries, st.Size(), load())
			beside(t, requests, path, viewers)
		})
	}
}

// beside opens a file in each of the viewers by turns, three times, and prints
// what the others took of what the first did.
func beside(t *testing.T, requests int, path string, viewers []viewer) {
	t.Helper()
	took := map[string][]opening{}
	for round := range 3 {
		for _, v := range viewers {
			t.Run(fmt.Sprintf("%s-%d", v.name, round+1), func(t *testing.T) {
				p := openPage(t, 1280, 800)
				v.open(p)
				o := p.openTimed(v.input, path, v.done)
				t.Logf("%s: %v; %s; load %s", v.name, o, v.drawn(p), load())
				took[v.name] = append(took[v.name], o)
			})
		}
	}
	var first opening
	for i, v := range viewers {
		if len(took[v.name]) == 0 {
			continue // it has failed and said why
		}
		o := median(took[v.name])
		t.Logf("%d requests, %s, medians: %v", requests, v.name, o)
		if i == 0 {
			first = o
		} else if first.peak > 0 {
			t.Logf("%d requests, %s / %s: picture %.1f, on screen %.1f, processor time %.1f, renderer's peak %.1f", requests, v.name, viewers[0].name,
				o.picture.Seconds()/first.picture.Seconds(), o.screen.Seconds()/first.screen.Seconds(),
				o.cpu.Seconds()/first.cpu.Seconds(), float64(o.peak)/float64(first.peak))
		}
	}
}

// viewer is a page that opens snapshots.
type viewer struct {
	name        string
	input, done string             // the CSS of its input; JavaScript that tells when all is drawn
	open        func(*page)        // until it can be given a file
	drawn       func(*page) string // fails without a picture, and says how much is in it
}

func memoryViz(url string) viewer {
	return viewer{
		"MemoryViz", "input[type=file]", `document.querySelector("svg polygon")`,
		func(p *page) {
			p.do("open the viewer", chromedp.Navigate(url))
			p.wait("the viewer's input", `document.querySelector("input[type=file]")`)
		},
		func(p *page) string {
			type shown struct {
				Polygons, Points int
				Detail           string
			}
			s := eval[shown](p, `(() => {
				const polygons = [...document.querySelectorAll("svg polygon")].map(x => x.points.numberOfItems);
				const label = [...document.querySelectorAll("label")].find(x => x.textContent.startsWith("Detail"));
				return {Polygons: polygons.length, Points: polygons.reduce((a, b) => a + b, 0), Detail: label?.textContent ?? ""};
			})()`)
			if s.Polygons < 100 || s.Detail == "" {
				p.t.Errorf("the viewer drew %+v: no picture of this file", s)
			}
			return fmt.Sprintf("%d polygons of %d points, %s", s.Polygons, s.Points, s.Detail)
		},
	}
}

// memoryVizAll moves the slider to its end, which draws everything anew.
func memoryVizAll(url string) viewer {
	v := memoryViz(url)
	v.name = "MemoryViz-all"
	v.done = `document.querySelector("svg polygon") && (() => {
		const slider = document.querySelector("input[type=range]");
		if (slider.value === slider.max) return true;
		slider.value = slider.max;
		slider.dispatchEvent(new Event("change"));
		return false;
	})()`
	return v
}

func tidelinePage(url string) viewer {
	return viewer{
		"Tideline", "#file", `tideline.firstPictureMs`,
		func(p *page) {
			p.open(url)
			p.wait("the reader, before there is a file", `tideline.reader.up`)
		},
		func(p *page) string {
			p.settled()
			p.pictured("snapshot")
			p.quiet()
			return fmt.Sprintf("%d events", eval[int](p, `tideline.current.events`))
		},
	}
}

// writeSteps makes a snapshot of training steps: a forward pass keeps an
// activation a layer and drops a workspace, the backward one drops the
// activations in reverse and makes gradients, which the step's end drops.
func writeSteps(w io.Writer, requests int) (int, error) {
	const layers = 200
	h := torch.NewHistory(2 * requests)
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0x7f0000000000), torch.Options{Tracer: h})
	if err != nil {
		return 0, err
	}
	sizes := rand.New(rand.NewPCG(1, 2))
	left := requests
	get := func() (b uint64) {
		if left--; left < 0 || err != nil {
			return 0
		}
		got, ok := a.AllocateOn(torch.Request{Bytes: 1 + sizes.Int64N(1<<(9+sizes.IntN(16)))})
		if !ok {
			err = a.Failure()
		}
		return got.Address
	}
	drop := func(b uint64) {
		if left--; left >= 0 && b != 0 && err == nil {
			err = a.Free(b)
		}
	}
	var weights, acts, grads [layers]uint64
	for i := range weights {
		weights[i] = get()
	}
	for left > 0 && err == nil {
		for i := range acts {
			acts[i] = get()
			drop(get())
		}
		upper := get()
		for i := layers - 1; i >= 0; i-- {
			grads[i] = get()
			lower := get()
			drop(upper)
			drop(acts[i])
			upper = lower
		}
		drop(upper)
		for _, g := range grads {
			drop(g)
		}
	}
	if err != nil {
		return 0, err
	}
	return len(h.Entries()), synthetic.Record(w, a.Snapshot(), h.Entries(), "")
}

// opening is what one opening of a file took.
type opening struct {
	picture, screen time.Duration // see TestBesideMemoryViz
	cpu             time.Duration // of all the browser's processes, until it is on screen
	heap, peak      int64         // bytes: JavaScript's heap of the page after it, the most its renderer ever held
}

func (o opening) String() string {
	return fmt.Sprintf("picture %d ms, on screen %d ms, processor time %d ms, heap %.0f MB, renderer's peak %.0f MB",
		o.picture.Milliseconds(), o.screen.Milliseconds(), o.cpu.Milliseconds(), float64(o.heap)/1e6, float64(o.peak)/1e6)
}

// median is that of each figure by itself.
func median(list []opening) opening {
	return opening{
		middle(list, func(o opening) time.Duration { return o.picture }),
		middle(list, func(o opening) time.Duration { return o.screen }),
		middle(list, func(o opening) time.Duration { return o.cpu }),
		middle(list, func(o opening) int64 { return o.heap }),
		middle(list, func(o opening) int64 { return o.peak }),
	}
}

func middle[T cmp.Ordered](list []opening, of func(opening) T) T {
	var all []T
	for _, o := range list {
		all = append(all, of(o))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// openTimed gives a page's input a file, as a user would, and waits until done
// says that all is drawn. Nothing but the page itself looks meanwhile.
func (p *page) openTimed(input, file, done string) opening {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Minute)
	defer cancel()
	eval[bool](p, `(globalThis.besides = new Promise(resolve => document.addEventListener("change", () => {
		const start = performance.now();
		const look = () => (`+done+`) ? requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - start))) : requestAnimationFrame(look);
		look();
	}, {capture: true, once: true})), true)`)
	before, start := browserCPU(), time.Now()
	if err := chromedp.Do(ctx, chromedp.SetUploadFiles(chromedp.CSS(input), []string{file})); err != nil {
		p.t.Fatalf("give %s the file: %v", input, err)
	}
	ms, err := chromedp.Run(ctx, chromedp.Evaluate[float64](`besides`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("waited for %s: %v", done, err)
	}
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("a screenshot: %v", err)
	}
	o := opening{picture: time.Duration(ms * 1e6), screen: time.Since(start), cpu: browserCPU() - before}
	o.heap, o.peak = eval[int64](p, `performance.memory.usedJSHeapSize`), rendererPeak()
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(artifacts, p.name+"-picture.png"), shot, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return o
}

var fromNetwork = regexp.MustCompile(`from\s*["'](https://[^"']*/(d3[a-z-]*)@[^"']*)["']`)

// serveMemoryViz serves the viewer in a folder, and the page around it.
func serveMemoryViz(t *testing.T, folder string) string {
	t.Helper()
	code, err := os.ReadFile(filepath.Join(folder, "MemoryViz.js"))
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string]string{}
	list, _ := filepath.Glob(filepath.Join(folder, "node_modules", "*", "package.json"))
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var is struct{ Name, Module string }
		if err := json.Unmarshal(b, &is); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if is.Module != "" {
			imports[is.Name] = "/node_modules/" + is.Name + "/" + is.Module
		}
	}
	for _, m := range fromNetwork.FindAllSubmatch(code, -1) {
		local, ok := imports[string(m[2])]
		if !ok {
			t.Fatalf("MemoryViz.js imports %s, which %s/node_modules does not hold: npm install d3 there", m[1], folder)
		}
		imports[string(m[1])] = local
	}
	table, err := json.Marshal(map[string]any{"imports": imports})
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(folder))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			files.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, `<!DOCTYPE html><html><head><title>MemoryViz</title><script type="importmap">%s</script></head><body><script type="module" src="/MemoryViz.js"></script></body></html>`, table)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// browserCPU is the processor's time that all this test's child processes took
// so far, where the system tells; the server beside them has nothing to do.
func browserCPU() time.Duration {
	const tick = 10 * time.Millisecond
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	var sum time.Duration
	for _, name := range names {
		dir := filepath.Dir(name)
		if f := procStat(dir); len(f) > 12 && ours(dir) {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			sum += time.Duration(user+system) * tick
		}
	}
	return sum
}

// rendererPeak is the most memory that the largest of the browser's renderers
// ever held, where the system tells.
func rendererPeak() int64 {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var most int64
	for _, name := range names {
		dir := filepath.Dir(name)
		if b, err := os.ReadFile(name); err != nil || !bytes.Contains(b, []byte("--type=renderer")) || !ours(dir) {
			continue
		}
		status, _ := os.ReadFile(dir + "/status")
		for line := range strings.Lines(string(status)) {
			if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				most = max(most, kib<<10)
			}
		}
	}
	return most
}

// load is how busy the machine was over the last minute, where it tells.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
