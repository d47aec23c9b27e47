package draw

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/store"
)

// events collects what a generator emits.
type events []event.Event

func (e *events) Emit(x *event.Event) { *e = append(*e, *x) }

// A picture that follows a run as it grows is the one that is drawn afresh,
// whatever came in between two frames; and most frames draw a few columns.
func TestAPictureThatGrowsIsThatOfAFreshOne(t *testing.T) {
	for _, c := range []struct {
		name string
		made synthetic.Options
		odd  bool
		past float64 // of the run, in the window from the start; 0: it follows the run
	}{
		{"steady", synthetic.Options{Events: 150_000, Seed: 3}, false, 1.05},
		{"changing", synthetic.Options{Events: 150_000, Seed: 4, Dynamic: true, Devices: 2}, false, 1.3},
		{"short", synthetic.Options{Events: 6_000, Seed: 5, Dynamic: true}, false, 1.02},
		{"with failures and gaps", synthetic.Options{Events: 150_000, Seed: 6, Dynamic: true}, true, 1.1},
		{"followed", synthetic.Options{Events: 90_000, Seed: 9, Dynamic: true}, false, 0},
		{"followed with failures and gaps", synthetic.Options{Events: 90_000, Seed: 10}, true, 0},
		{"out of view", synthetic.Options{Events: 60_000, Seed: 7, Dynamic: true}, true, 0.4},
	} {
		for i := range 4 {
			hurried, filtered := i&1 != 0, i&2 != 0
			t.Run(fmt.Sprintf("%s, hurried %v, filtered %v", c.name, hurried, filtered), func(t *testing.T) {
				tl := store.New(nil)
				var all events
				synthetic.Generate(c.made, tl.Strings(), &all)
				rnd := rand.New(rand.NewPCG(8, c.made.Seed))
				if c.odd {
					all = withTroubles(all, rnd)
				}
				part, whole := growing(t, tl, all, c.past, hurried, filtered, rnd)
				if c.past != 0.4 && !c.odd && part < whole {
					t.Errorf("%d frames drew a part, %d all columns", part, whole)
				}
			})
		}
	}
}

// growing appends events in pieces, draws after each, and counts how many
// frames of memory lanes drew a part of the columns and how many drew all.
func growing(t *testing.T, tl *store.Timeline, all events, past float64, hurried, filtered bool, rnd *rand.Rand) (part, whole int) {
	t.Helper()
	var r Renderer
	if hurried {
		r.Enough = func() bool { return true }
	}
	v := &View{W: 310, H: 300, DPR: 1 + int(rnd.Uint64()%2), Theme: Light()}
	v.T0, v.T1 = all[0].Time, all[0].Time+int64(float64(all[len(all)-1].Time-all[0].Time)*past)+1
	v.Align()
	img, want := NewImage(v.W, v.H), NewImage(v.W, v.H)
	filter := store.NewFilter(tl, "block1")
	for n := 0; len(all) > 0; n++ {
		k := min(len(all), 1+rnd.IntN(400)*rnd.IntN(20))
		if i := slices.IndexFunc(all[:k], func(e event.Event) bool { return e.Kind == event.OutOfMemory }); i >= 0 {
			k = i + 1 // what it changes of the ones before it must be seen
		}
		tl.Append(all[:k])
		all = all[k:]
		if l := Layout(tl, v.H, 3, 1); len(l) != len(v.Lanes) {
			v.Lanes = l // places stay, as the page's do
		}
		if n%40 == 30 && past != 0 { // somebody looks elsewhere
			d := (v.T1 - v.T0) / 7
			v.T0, v.T1 = v.T0+d, v.T1+d
			v.Align()
		}
		if _, last := tl.Span(); past == 0 && last >= v.T1 {
			v.T0 = min(v.T0, last-1)
			v.T1 = last + (last-v.T0)/16 + 1
			v.Align()
		}
		if filtered {
			for len(v.Parts) < len(tl.Pools()) {
				v.Parts = append(v.Parts, store.NewPart(tl.Pools()[len(v.Parts)], filter))
			}
			for _, p := range v.Parts {
				p.Advance(rnd.IntN(3000))
			}
			v.PartsSeen++
		}
		touched := r.Frame(img, tl, v)
		for i := 0; r.Pending() && i < 1000; i++ {
			r.Frame(img, tl, v)
		}
		for _, x := range touched {
			if x.Y != v.Lanes[0].Y || len(touched) == 1 && x.H == v.H {
				continue
			}
			if x.X > 0 {
				part++
			} else {
				whole++
			}
		}
		var fresh Renderer
		fresh.Frame(want, tl, v)
		if !bytes.Equal(img.Pix, want.Pix) {
			for o := 0; ; o++ {
				if img.Pix[o] != want.Pix[o] {
					y := o / img.Stride
					for _, l := range v.Lanes {
						if y >= l.Y && y < l.Y+l.H {
							t.Errorf("it is lane %v at %d", l.Kind, l.Y)
						}
					}
					_, last := tl.Span()
					t.Fatalf("frame %d of [%d,%d) differs from a fresh one at (%d,%d); the newest event is in column %d", n, v.T0, v.T1, o%img.Stride/4, y, v.x(last))
				}
			}
		}
	}
	return part, whole
}

// withTroubles puts what is rare in between: failed requests one after the other,
// gaps, regions that come and go and are used, limits that are told late, and
// pauses.
func withTroubles(all events, rnd *rand.Rand) events {
	out := make(events, 0, len(all)+1000)
	var pool event.Event
	var pauses, used int64
	run := all[len(all)-1].Time - all[0].Time
	for i, e := range all {
		if e.Kind == event.Alloc {
			pool = event.Event{Device: e.Device, Allocator: e.Allocator}
		}
		e.Time += pauses
		out = append(out, e)
		if i%(len(all)/60) != 7 || e.Kind == event.End {
			continue
		}
		x := pool
		x.Time, x.Step = e.Time, event.NoStep
		switch rnd.IntN(6) {
		case 0:
			x.Kind, x.Size, x.Requested = event.OutOfMemory, 1<<30, 1<<30
			for range 6 {
				out = append(out, x)
				pauses += run / 100
				x.Time += run / 100
			}
		case 1:
			x.Kind, x.Size = event.Lost, 5
		case 2:
			used++
			x.Kind, x.Address, x.Size = event.RegionAdd, 1<<46+uint64(used)<<32, 1<<31
			out = append(out, x)
			x.Kind, x.Size, x.Requested = event.Alloc, 1<<30, 1<<30
		case 3:
			x.Kind, x.Address = event.Free, 1<<46+uint64(1+rnd.Int64N(used+1))<<32
			out = append(out, x)
			x.Kind = event.RegionRemove
		case 4:
			x.Kind, x.Size = event.AllocatorFacts, int64(1+rnd.IntN(30))<<32
		case 5:
			pauses += run / 30
			continue
		}
		out = append(out, x)
	}
	return out
}

// BenchmarkGrow draws a run of 100,000 events a second that is followed at 30
// frames a second, in a window that stays.
func BenchmarkGrow(b *testing.B) {
	const perFrame = 3300
	tl := store.New(nil)
	var all events
	synthetic.Generate(synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true}, tl.Strings(), &all)
	img := NewImage(1280, 720)
	var r Renderer
	v := &View{W: 1280, H: 720, DPR: 1, Theme: Light(), T0: all[0].Time, T1: all[len(all)-1].Time}
	v.Align()
	half := len(all) / 2
	tl.Append(all[:half])
	v.Lanes = Layout(tl, v.H, 6, 1)
	r.Frame(img, tl, v)
	at := half
	b.ResetTimer()
	for range b.N {
		if at+perFrame > len(all) {
			b.StopTimer()
			tl = store.New(tl.Strings())
			tl.Append(all[:half])
			r.Frame(img, tl, v)
			at = half
			b.StartTimer()
		}
		tl.Append(all[at : at+perFrame])
		at += perFrame
		r.Frame(img, tl, v)
	}
}
