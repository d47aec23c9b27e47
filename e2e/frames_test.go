package e2e

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// turning opens a long run and moves its view as a hand does, with a filter and
// without.
const turning = `
	const file = new File([await (await tell("file")).blob()], "long.tideline");
	const { engine } = tideline;
	await tideline.openFile(file);
	await until(() => tideline.current?.peak && !tideline.live);
	await idle();
	const plot = document.querySelector(".lane-plot");
	const box = plot.getBoundingClientRect();
	const spread = (list) => {
		const l = [...list].sort((a, b) => a - b);
		return [0.5, 0.95, 1].map((q) => l[Math.min(l.length - 1, Math.floor(q * l.length))]);
	};
	const watch = async (steps, step) => {
		engine.own.length = engine.times.length = 0;
		for (let i = 0; i < steps; i++) {
			step(i);
			await frame();
		}
		const frames = { own: spread(engine.own), all: spread(engine.times), pictures: engine.own.length };
		await idle();
		return frames;
	};
	const wheel = (i) => {
		// A wheel tells more often than there are frames.
		for (let k = 0; k < 3; k++) plot.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: box.left + box.width / 3, clientY: box.top + 20, deltaY: i % 60 < 30 ? -16 : 16 }));
	};
	const { span } = tideline;
	const d = (span.t1 - span.t0) / 5;
	const pan = (i) => tideline.show(span.t0 + d * (1 + i / 100), span.t0 + d * (2 + i / 100));
	const out = {};
	for (const filter of ["", "block1"]) {
		const name = filter ? ", filtered" : "";
		tideline.details.sift(filter);
		await soon(200);
		await until(() => !tideline.sifting);
		await idle();
		tideline.fit();
		await idle();
		out["wheel" + name] = await watch(180, wheel);
		out["pan" + name] = await watch(120, pan);
	}
	return out;
`

// TestAHandMovesALongRun turns the wheel over a long run and pans, with a filter
// and without, in a browser without a debugger, and tells what a frame cost.
// TIDELINE_E2E_EVENTS says how long the run is.
func TestAHandMovesALongRun(t *testing.T) {
	var b bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&b, timeline.Options{Strings: strs})
	n := synthetic.Generate(synthetic.Options{Events: longRun(), Seed: 1, Dynamic: true}, strs, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	v := newVisit(t, turning, map[string]http.HandlerFunc{"file": func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b.Bytes()))
	}})
	got := map[string]struct {
		Own, All [3]float64
		Pictures int
	}{}
	v.open(t, 2*time.Minute, &got)
	for _, name := range []string{"wheel", "wheel, filtered", "pan", "pan, filtered"} {
		f := got[name]
		if f.Pictures < 10 {
			t.Errorf("%s: %d pictures were drawn", name, f.Pictures)
		}
		t.Logf("%d events, %s: %d pictures; the module's milliseconds for one: median %.1f, 95 %% %.1f, most %.1f; with the canvas %.1f, %.1f, %.1f",
			n, name, f.Pictures, f.Own[0], f.Own[1], f.Own[2], f.All[0], f.All[1], f.All[2])
	}
}
