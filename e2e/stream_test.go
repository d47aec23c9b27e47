package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	inprocess "tideline/native/agent"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
	"tideline/web/ui"
)

// serveHere runs an agent within the test, which can so stream anything, and
// returns it with its address.
func serveHere(t *testing.T) (*inprocess.Agent, string) {
	t.Helper()
	return serveWith(t, ui.Handler(ui.Options{Agent: true}))
}

// serveWith does so with another page.
func serveWith(t *testing.T, page http.Handler) (*inprocess.Agent, string) {
	t.Helper()
	a, err := inprocess.New(inprocess.Options{Page: page, Data: t.TempDir(), Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := inprocess.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.ServeOn(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("close the agent: %v", err)
		}
	})
	return a, a.URL(l)
}

// emitted says when an event left the run.
type emitted struct {
	time int64 // of the event
	wall time.Time
}

// paced emits a made-up run at a steady pace and remembers when.
type paced struct {
	sink    event.Sink
	perMS   int // events a millisecond
	from    time.Time
	n       int
	samples []emitted // of every 1024th event
}

func (p *paced) Emit(e *event.Event) {
	if p.n == 0 {
		p.from = time.Now()
	}
	p.n++
	if p.n%p.perMS == 0 {
		// A late sleep is made up for: the pace is that of the whole run.
		time.Sleep(time.Until(p.from.Add(time.Duration(p.n/p.perMS) * time.Millisecond)))
	}
	p.sink.Emit(e)
	if p.n%1024 == 0 {
		p.samples = append(p.samples, emitted{e.Time, time.Now()})
	}
}

// watchPictures makes the page write down when its worker had drawn which time.
const watchPictures = `(() => {
	globalThis.shown = [];
	tideline.engine.addEventListener("drawn", ({ detail }) => {
		if (detail.name === "main") shown.push([detail.at, detail.through, detail.rects]);
	});
	return true;
})()`

// TestLiveStream lets the page follow a run of 200,000 events a second. It
// must hold every one of them at the end. TIDELINE_LIVE_SECONDS lengthens it. The
// debugger slows the stream: TestEventToPixel tells how late a picture is.
func TestLiveStream(t *testing.T) {
	const perSecond = 200_000
	seconds := number(t, "TIDELINE_LIVE_SECONDS", 3)
	a, url := serveHere(t)
	p := openPage(t, 1280, 800)
	p.open(url)
	eval[bool](p, watchPictures)
	out := &paced{perMS: perSecond / 1000}
	count := make(chan int, 1)
	info, err := a.Go("made-up", "", 0, func(o launch.Options) (launch.Result, error) {
		out.sink = o.Sink
		count <- synthetic.Generate(synthetic.Options{Events: seconds * perSecond, Seed: 7, Dynamic: true}, o.Strings, out)
		return launch.Result{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eval[bool](p, fmt.Sprintf(`(tideline.pick("agent:%s"), true)`, info.ID))
	n := <-count
	took := time.Since(began)
	p.settled()
	p.screenshot("end")
	got := eval[struct{ Events, Lost, Skipped int }](p, `tideline.current`)
	if got.Events != n || got.Lost != 0 || got.Skipped != 0 {
		t.Errorf("the page holds %d events, %d lost, %d skipped; the run emitted %d", got.Events, got.Lost, got.Skipped, n)
	}
	shown := eval[[][3]float64](p, `shown`)
	p.quiet()
	late := lateness(out.samples, shown, began.Add(took))
	if len(late) == 0 {
		t.Fatal("no event was shown before the run ended")
	}
	first := slices.IndexFunc(shown, func(s [3]float64) bool { return s[2] > 0 && s[1] > 1e6 })
	if first >= 0 {
		t.Logf("the first picture came %v after the run began", time.UnixMicro(int64(shown[first][0]*1000)).Sub(out.from).Round(time.Millisecond))
	}
	t.Logf("%d events in %.2f s, %d pictures, event to pixel: median %v, 95 %% %v, worst %v",
		n, took.Seconds(), len(shown), at(late, 50), at(late, 95), late[len(late)-1])
}

// lateness is how long after its emission each sample was first in a picture, of
// which shown has when it was there and the time it reached,
// ascending. Pictures are in order of time, and so are samples.
func lateness(samples []emitted, shown [][3]float64, end time.Time) []time.Duration {
	var late []time.Duration
	for _, s := range samples {
		if s.wall.After(end) {
			break
		}
		k := sort.Search(len(shown), func(i int) bool { return shown[i][1] >= float64(s.time) })
		if k < len(shown) {
			late = append(late, time.UnixMicro(int64(shown[k][0]*1000)).Sub(s.wall))
		}
	}
	slices.Sort(late)
	return late
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Round(time.Millisecond)
}

// TestOpenFile opens a large file and looks at how long that takes.
// TIDELINE_OPEN_EVENTS sets how many events it has.
func TestOpenFile(t *testing.T) {
	want := number(t, "TIDELINE_OPEN_EVENTS", 100_000)
	path := filepath.Join(t.TempDir(), "made-up.tideline")
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{})
	n := synthetic.Generate(synthetic.Options{Events: want, Seed: 1, Dynamic: true}, w.Strings(), w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	size := b.Len()
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	_, url := serveHere(t)
	p := openPage(t, 1280, 800)
	p.open(url)
	const first = `tideline.engine.addEventListener("grown", () => tideline.grownMs ??= performance.now() - tideline.openedAt)`
	eval[bool](p, `(`+first+`, true)`)
	for i := range 3 {
		eval[bool](p, `(delete tideline.grownMs, delete tideline.firstPictureMs, true)`)
		before := workerCPU()
		p.upload(path)
		p.wait("the picture", `tideline.firstPictureMs`)
		worked := workerCPU() - before
		p.settled()
		got := eval[struct{ Events, Memory int }](p, `tideline.current`)
		if got.Events != n {
			t.Fatalf("the page holds %d events of %d", got.Events, n)
		}
		heap := eval[float64](p, `tideline.heap`)
		t.Logf("opening %d: %d events, %d bytes: first data %.0f ms, open %.0f ms, whole picture %.0f ms, worker's CPU %v; %.1f B/event kept, module memory %.1f MB (%.1f B/event)",
			i+1, n, size, eval[float64](p, `tideline.grownMs`), eval[float64](p, `tideline.openMs`), eval[float64](p, `tideline.firstPictureMs`), worked,
			float64(got.Memory)/float64(n), heap/1e6, heap/float64(n))
	}
	p.quiet()
}

// workerCPU is the processor's time that the Web Workers of this test's browser
// took so far, where the system tells: unlike time by the clock it does not
// depend much on what else the machine does.
func workerCPU() time.Duration {
	const tick = 10 * time.Millisecond
	names, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/comm") // none elsewhere
	var sum time.Duration
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || string(bytes.TrimSpace(comm)) != "DedicatedWorker" || !ours(filepath.Dir(name)) {
			continue
		}
		if f := procStat(filepath.Dir(name)); len(f) > 12 {
			user, _ := strconv.Atoi(f[11])
			system, _ := strconv.Atoi(f[12])
			sum += time.Duration(user+system) * tick
		}
	}
	return sum
}

// ours reports whether a process descends from this one.
func ours(dir string) bool {
	for {
		f := procStat(dir)
		if len(f) < 2 || f[1] == "1" || f[1] == "0" {
			return false
		}
		if f[1] == strconv.Itoa(os.Getpid()) {
			return true
		}
		dir = "/proc/" + f[1]
	}
}

// procStat is the fields of a process's or thread's stat after its name.
func procStat(dir string) []string {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
