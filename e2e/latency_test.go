package e2e

import (
	"io"
	"net/http"
	"sort"
	"testing"
	"time"

	"tideline/protocol/synthetic"
	"tideline/shared/launch"
)

// following makes the page follow a run and write down when it showed which
// time.
const following = `
	const shown = [];
	tideline.engine.addEventListener("drawn", ({ detail: d }) => {
		if (d.name !== "main" || !d.rects) return;
		const row = [d.at, d.through, 0, d.own, d.ms];
		shown.push(row);
		// The picture is there with the page's next frame: told in the one after it.
		frame().then(frame).then(() => (row[2] = performance.timeOrigin + performance.now()));
	});
	const id = await (await tell("start")).text();
	await tideline.pick("agent:" + id);
	await until(() => tideline.current?.origin === "live" && !tideline.live);
	await soon();
	const { events, lost, skipped } = tideline.current;
	const { view, span } = tideline;
	return { events, lost, skipped, shown, whole: view.t0 <= span.t0 && view.t1 === span.t1 };
`

// followed is what the page says of a run that it followed.
type followed struct {
	Events, Lost, Skipped int
	Whole                 bool // the view ends with the run, once it has
	// Of each picture: when the worker had put it on its canvas, the time of the
	// newest event in it, when the page's frame with it was over, and what it
	// cost in milliseconds, the module's own and all.
	Shown [][5]float64
}

// TestEventToPixel lets a browser without a debugger follow a run of 100,000
// events a second and tells how long after an event its pixel was there.
// TIDELINE_LIVE_SECONDS and TIDELINE_LIVE_RATE change what it follows.
func TestEventToPixel(t *testing.T) {
	perSecond, seconds := number(t, "TIDELINE_LIVE_RATE", 100_000), number(t, "TIDELINE_LIVE_SECONDS", 3)
	var v *visit
	out := &paced{perMS: perSecond / 1000}
	count := make(chan int, 1)
	v = newVisit(t, following, map[string]http.HandlerFunc{"start": func(w http.ResponseWriter, _ *http.Request) {
		info, err := v.agent.Go("made-up", "", 0, func(o launch.Options) (launch.Result, error) {
			out.sink = o.Sink
			count <- synthetic.Generate(synthetic.Options{Events: seconds * perSecond, Seed: 7, Dynamic: true}, o.Strings, out)
			return launch.Result{}, nil
		})
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, info.ID)
	}})
	var got followed
	v.open(t, time.Minute+3*time.Duration(seconds)*time.Second, &got)
	if n := <-count; got.Events != n || got.Lost != 0 || got.Skipped != 0 {
		t.Errorf("the page holds %d events, %d lost, %d skipped; the run emitted %d", got.Events, got.Lost, got.Skipped, n)
	}
	if !got.Whole {
		t.Error("the view of the finished run does not end with it")
	}
	var canvas, frame [][3]float64
	var own, all []float64
	for _, s := range got.Shown {
		canvas = append(canvas, [3]float64{s[0], s[1]})
		if s[2] > 0 { // the last may have had no time for it
			frame = append(frame, [3]float64{s[2], s[1]})
		}
		own, all = append(own, s[3]), append(all, s[4])
	}
	sort.Float64s(own)
	sort.Float64s(all)
	last := out.samples[len(out.samples)-1].wall
	a, b := lateness(out.samples, canvas, last), lateness(out.samples, frame, last)
	if len(a) == 0 || len(b) == 0 {
		t.Fatal("no event was shown")
	}
	t.Logf("%d events at %d a second, %d pictures; event to canvas: median %v, 95 %% %v, worst %v; to the end of the page's frame: median %v, 95 %% %v, worst %v; milliseconds a picture: the module's median %.1f, 95 %% %.1f; in all %.1f, %.1f",
		got.Events, perSecond, len(canvas), at(a, 50), at(a, 95), at(a, 100), at(b, 50), at(b, 95), at(b, 100),
		own[len(own)/2], own[len(own)*95/100], all[len(all)/2], all[len(all)*95/100])
}
