package draw

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/store"
)

// partsOf is what passes a filter of every pool, taken in as far as told.
func partsOf(tl *store.Timeline, text string, points int) []*store.Part {
	f := store.NewFilter(tl, text)
	var out []*store.Part
	for _, p := range tl.Pools() {
		q := store.NewPart(p, f)
		q.Advance(points)
		out = append(out, q)
	}
	return out
}

const all = 1 << 30

func laneOf(tb testing.TB, v *View, k LaneKind) *Lane {
	tb.Helper()
	for i := range v.Lanes {
		if v.Lanes[i].Kind == k {
			return &v.Lanes[i]
		}
	}
	tb.Fatalf("there is no lane of kind %d", k)
	return nil
}

// colors counts the pixels of each colour in a lane.
func colors(img *Image, l *Lane) map[pixel]int {
	c := img.canvas(Rect{0, l.Y, img.W, l.H})
	out := map[pixel]int{}
	for y := range c.h {
		for x := range c.w {
			out[c.get(x, y)]++
		}
	}
	return out
}

func TestOnlyWhatPassesAFilterKeepsItsColour(t *testing.T) {
	tl := story(t)
	for _, th := range []*Theme{Light(), Dark()} {
		v := viewOf(tl, 400, 300, th)
		plain := NewImage(v.W, v.H)
		var r Renderer
		r.Frame(plain, tl, v)
		v.Parts = partsOf(tl, "OP PARAMETER", all)
		img := NewImage(v.W, v.H)
		r.Frame(img, tl, v)
		for _, kind := range []LaneKind{MemoryLane, AddressLane} {
			l := laneOf(t, v, kind)
			was, is := colors(plain, l), colors(img, l)
			if n := is[r.palette.category[event.Parameter]]; n < 500 || n < was[r.palette.category[event.Parameter]]*9/10 {
				t.Errorf("%s, lane %d: %d pixels of parameters, %d without a filter", th.Name, kind, n, was[r.palette.category[event.Parameter]])
			}
			dim := &r.palette.dim
			if kind == AddressLane {
				dim = &r.palette.dimBlock
			}
			for _, c := range []event.Category{event.OptimizerState, event.Input} {
				if was[r.palette.category[c]] == 0 || is[r.palette.category[c]] != 0 {
					t.Errorf("%s, lane %d: %d pixels of %s, %d without a filter", th.Name, kind, is[r.palette.category[c]], c, was[r.palette.category[c]])
				}
				if is[dim[c]] == 0 {
					t.Errorf("%s, lane %d: no dimmed %s", th.Name, kind, c)
				}
			}
		}
		if is := colors(img, laneOf(t, v, MemoryLane)); is[r.palette.line] < v.W/2 {
			t.Errorf("%s: the line of what passes has %d pixels", th.Name, is[r.palette.line])
		}
	}
}

func TestAMapIsDimmedOnlyWhereNothingPasses(t *testing.T) {
	busy := synthesize(t, synthetic.Options{Events: 250_000, Seed: 5, Dynamic: true})
	for _, tl := range []*store.Timeline{story(t), busy} {
		v := viewOf(tl, 300, 240, Light())
		l := laneOf(t, v, AddressLane)
		v.Lanes = []Lane{*l}
		var r Renderer
		plain, img := NewImage(v.W, v.H), NewImage(v.W, v.H)
		r.Frame(plain, tl, v)
		v.Parts = partsOf(tl, "", all)
		r.Frame(img, tl, v)
		if !showsTiles(tl.Pools()[l.Pool], v) && !bytes.Equal(plain.Pix, img.Pix) {
			t.Error("everything passes, but the map is another")
		}
		// Used and free places stay used and free, whatever passes.
		free := map[pixel]bool{r.palette.hole: true, r.palette.outside: true, r.palette.warning: true}
		for _, text := range []string{"", "kernel", "nothing has this"} {
			v.Parts = partsOf(tl, text, all)
			r.Frame(img, tl, v)
			a, b := plain.canvas(Rect{0, 0, v.W, v.H}), img.canvas(Rect{0, 0, v.W, v.H})
			differ := 0
			for y := l.Y; y < l.Y+l.H; y++ {
				for x := range a.w {
					if free[a.get(x, y)] && a.get(x, y) != b.get(x, y) {
						differ++
					}
				}
			}
			if differ != 0 {
				t.Errorf("%q: %d free pixels are drawn as if in use", text, differ)
			}
		}
	}
}

// Beyond what was looked at nothing is said to pass, and nothing not to: all is
// dimmed there and there is no line.
func TestAPartThatIsNotDoneEndsWhereItEnds(t *testing.T) {
	tl := synthesize(t, synthetic.Options{Events: 60_000, Seed: 5, Dynamic: true})
	v := viewOf(tl, 300, 240, Light())
	l := *laneOf(t, v, MemoryLane)
	p := tl.Pools()[l.Pool]
	v.Lanes = []Lane{l, *laneOf(t, v, AddressLane)}
	v.Parts = partsOf(tl, "", p.Points()/2)
	end := v.x(v.Parts[l.Pool].Until())
	if end < 20 || end > 280 {
		t.Fatalf("half of the changes end at column %d", end)
	}
	half, none := NewImage(v.W, v.H), NewImage(v.W, v.H)
	var a, b Renderer
	a.Frame(half, tl, v)
	v.Parts = partsOf(tl, "nothing has this", 0)
	b.Frame(none, tl, v)
	same := true
	for i := range v.Lanes {
		x, y := half.canvas(Rect{0, v.Lanes[i].Y, v.W, v.Lanes[i].H}), none.canvas(Rect{0, v.Lanes[i].Y, v.W, v.Lanes[i].H})
		for row := range x.h {
			for col := range x.w {
				if col >= end && x.get(col, row) != y.get(col, row) {
					t.Fatalf("lane %d: (%d,%d) lies beyond column %d, but shows something", i, col, row, end)
				}
				same = same && x.get(col, row) == y.get(col, row)
			}
		}
	}
	if same {
		t.Error("nothing passes in what was looked at")
	}
}

// However the windows and filters followed each other, and however far a part
// was built, the finished picture is the one that is drawn afresh.
func TestAKeptPictureOfAPartIsThatOfAFreshOne(t *testing.T) {
	tl := synthesize(t, synthetic.Options{Events: 120_000, Seed: 5, Dynamic: true})
	v := viewOf(tl, 310, 240, Light())
	first, last := tl.Span()
	rnd := rand.New(rand.NewPCG(3, 4))
	img, want := NewImage(v.W, v.H), NewImage(v.W, v.H)
	left := 0
	r := Renderer{Enough: func() bool { left--; return left <= 0 }}
	for i := range 60 {
		switch rnd.IntN(4) {
		case 0:
			v.Parts = partsOf(tl, []string{"kernel", "layer1", "", "grad"}[rnd.IntN(4)], 2000)
			v.PartsSeen++
		case 1:
			v.Parts = nil
		default:
			for _, p := range v.Parts {
				p.Advance(rnd.IntN(60_000))
			}
			v.PartsSeen++
		}
		if rnd.IntN(2) == 0 {
			d := max((last-first)/int64(1+rnd.IntN(300)), 1000)
			v.T0 = first + rnd.Int64N(last-first)
			v.T1 = v.T0 + d
		} else {
			by := (rnd.Int64N(80) - 40) * ((v.T1 - v.T0) / int64(v.W))
			v.T0, v.T1 = v.T0+by, v.T1+by
		}
		if v.T0 > last || v.T1 < first {
			v.T0, v.T1 = first, last
		}
		v.Align()
		left = 5
		r.Frame(img, tl, v)
		if i%4 == 0 {
			continue // the next comes before this one is done
		}
		for n := 0; r.Pending(); n++ {
			if left = 5; n > 1000 {
				t.Fatalf("frame %d is never done", i)
			}
			r.Frame(img, tl, v)
		}
		var fresh Renderer
		fresh.Frame(want, tl, v)
		if !bytes.Equal(img.Pix, want.Pix) {
			t.Fatalf("frame %d is not the one that is drawn afresh", i)
		}
	}
}

func TestAHitCountsWhatPasses(t *testing.T) {
	tl := synthesize(t, synthetic.Options{Events: 250_000, Seed: 5, Dynamic: true})
	v := viewOf(tl, 300, 240, Light())
	l := laneOf(t, v, AddressLane)
	several := 0
	for _, c := range []struct {
		text string
		want func(h *Hit) int
	}{{"", func(h *Hit) int { return h.Count }}, {"nothing has this", func(*Hit) int { return 0 }}} {
		v.Parts = partsOf(tl, c.text, 0)
		for x := 0; x < v.W; x += 13 {
			h := HitTest(tl, v, x, l.Y+l.H/2)
			if h.Kind != AllocHit {
				continue
			}
			if h.Passing != c.want(&h) {
				t.Fatalf("%q: %d of %d pass at column %d", c.text, h.Passing, h.Count, x)
			}
			if h.Count > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("no pixel is shared: the test shows little")
	}
}
