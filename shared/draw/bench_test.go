package draw

import (
	"flag"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/store"
)

var benchN = flag.Int("events", 1_000_000, "events in the benchmarks' timeline")

func synthesize(tb testing.TB, o synthetic.Options) *store.Timeline {
	tb.Helper()
	tl := store.New(nil)
	batch := make([]event.Event, 0, 8192)
	synthetic.Generate(o, tl.Strings(), event.SinkFunc(func(e *event.Event) {
		if batch = append(batch, *e); len(batch) == cap(batch) {
			tl.Append(batch)
			batch = batch[:0]
		}
	}))
	tl.Append(batch)
	return tl
}

// BenchmarkFrame draws whole frames while panning at several zooms: what a
// wheel or a key costs.
func BenchmarkFrame(b *testing.B) {
	tl := synthesize(b, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	v := &View{W: 1280, H: 720, DPR: 1, Theme: Light()}
	v.Lanes = Layout(tl, v.H, 6, 1)
	img := NewImage(v.W, v.H)
	var r Renderer
	for _, z := range []struct {
		name string
		part int64
	}{{"1", 1}, {"3", 3}, {"10", 10}, {"30", 30}, {"100", 100}, {"1000", 1000}, {"30000", 30000}} {
		b.Run("zoom="+z.name, func(b *testing.B) {
			b.ReportAllocs()
			d := (last - first) / z.part
			frames := make([]int64, 0, b.N)
			for i := range b.N {
				v.T0 = first + (last-first-d)*int64(i%17)/17 + int64(i)
				v.T1 = v.T0 + d
				from := cpu()
				r.Frame(img, tl, v)
				frames = append(frames, cpu()-from)
			}
			slices.Sort(frames)
			b.ReportMetric(float64(frames[0])/1e6, "least-cpu-ms")
			b.ReportMetric(float64(frames[len(frames)/2])/1e6, "p50-cpu-ms")
			b.ReportMetric(float64(frames[len(frames)*95/100])/1e6, "p95-cpu-ms")
		})
	}
}

// BenchmarkLane draws the lanes one by one over the whole run.
func BenchmarkLane(b *testing.B) {
	tl := synthesize(b, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	v := &View{W: 1280, H: 720, DPR: 1, Theme: Light()}
	v.T0, v.T1 = tl.Span()
	v.Lanes = append(Layout(tl, v.H, 6, 1), Lane{Kind: MinimapLane, H: 48})
	img := NewImage(v.W, v.H)
	names := [...]string{"memory", "address", "ops", "transfers", "input", "minimap"}
	var r Renderer
	for i := range v.Lanes {
		b.Run(names[v.Lanes[i].Kind], func(b *testing.B) {
			b.ReportAllocs()
			start := cpu()
			for range b.N {
				r.Lane(img, tl, v, i)
			}
			b.ReportMetric(float64(cpu()-start)/float64(b.N)/1e6, "cpu-ms/lane")
		})
	}
}
