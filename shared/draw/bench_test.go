package draw

import (
	"flag"
	"fmt"
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

// BenchmarkLane draws the lanes one by one, whole, at several zooms.
func BenchmarkLane(b *testing.B) {
	tl := synthesize(b, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	v := &View{W: 1280, H: 720, DPR: 1, Theme: Light()}
	v.Lanes = append(Layout(tl, v.H, 6, 1), Lane{Kind: MinimapLane, H: 48})
	img := NewImage(v.W, v.H)
	names := [...]string{"memory", "address", "ops", "transfers", "input", "minimap"}
	var r Renderer
	for _, z := range []int64{1, 3, 10, 100, 1000, 30000} {
		for i := range v.Lanes {
			b.Run(fmt.Sprintf("%s/zoom=%d", names[v.Lanes[i].Kind], z), func(b *testing.B) {
				b.ReportAllocs()
				d := (last - first) / z
				n := int64(0)
				start := cpu()
				for b.Loop() {
					v.T0 = first + (last-first-d)*(n%17)/17 + n
					v.T1 = v.T0 + d
					n++
					r.Lane(img, tl, v, i)
				}
				b.ReportMetric(float64(cpu()-start)/float64(n)/1e6, "cpu-ms/lane")
			})
		}
	}
}

// BenchmarkHand moves a view as a hand does: pans by a few pixels a frame, or
// turns the wheel. A frame stops when its time is up, as in the browser.
func BenchmarkHand(b *testing.B) {
	tl := synthesize(b, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	img := NewImage(1280, 720)
	for _, how := range []string{"pan", "zoom"} {
		for _, z := range []int64{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/zoom=%d", how, z), func(b *testing.B) {
				v := &View{W: 1280, H: 720, DPR: 1, Theme: Light()}
				v.Lanes = Layout(tl, v.H, 6, 1)
				var r Renderer
				var began, asked int64
				r.Enough = func() bool {
					now := cpu()
					piece := now - asked
					asked = now
					return now-began+piece > 2.5e6
				}
				d := (last - first) / z
				v.T0, v.T1 = first+(last-first-d)/3, first+(last-first-d)/3+d
				v.Align()
				r.Frame(img, tl, v)
				b.ReportAllocs()
				b.ResetTimer()
				frames := make([]float64, 0, b.N)
				left := 0
				for i := range b.N {
					step := v.step()
					if how == "pan" {
						by := step * int64(3+i%9)
						if i%100 >= 50 {
							by = -step * int64(3+i%9)
						}
						v.T0, v.T1 = v.T0+by, v.T1+by
					} else {
						d = (v.T1 - v.T0) * 100 / 106
						if i%20 >= 10 {
							d = (v.T1 - v.T0) * 106 / 100
						}
						v.T0 += (v.T1 - v.T0 - d) / 3
						v.T1 = v.T0 + d
						v.Align()
					}
					began = cpu()
					asked = began
					r.Frame(img, tl, v)
					frames = append(frames, float64(cpu()-began)/1e6)
					if r.Pending() {
						left++
					}
				}
				slices.Sort(frames)
				b.ReportMetric(frames[len(frames)/2], "p50-cpu-ms")
				b.ReportMetric(frames[len(frames)*95/100], "p95-cpu-ms")
				b.ReportMetric(float64(left)/float64(b.N), "unfinished")
			})
		}
	}
}

// BenchmarkFilteredFrame is BenchmarkFrame with a filter that a third of the
// allocations pass.
func BenchmarkFilteredFrame(b *testing.B) {
	tl := synthesize(b, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	v := &View{W: 1280, H: 720, DPR: 1, Theme: Light()}
	v.Lanes = Layout(tl, v.H, 6, 1)
	v.Parts = partsOf(tl, "block1", all)
	img := NewImage(v.W, v.H)
	var r Renderer
	for _, z := range []int64{1, 3, 10, 100, 1000, 30000} {
		b.Run(fmt.Sprintf("zoom=%d", z), func(b *testing.B) {
			b.ReportAllocs()
			d := (last - first) / z
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
		})
	}
}
