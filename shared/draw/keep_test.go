package draw

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tideline/protocol/synthetic"
	"tideline/shared/store"
)

// However a window came about, by scrolling, by zooming, in pieces or not, the
// finished picture is the one that is drawn afresh.
func TestAPictureThatWasKeptIsThatOfAFreshOne(t *testing.T) {
	busy := synthesize(t, synthetic.Options{Events: 250_000, Seed: 5, Dynamic: true, Devices: 2})
	for _, c := range []struct {
		name   string
		pieces int // to a frame; 0: no limit
		base   bool
	}{{"at once", 0, false}, {"piece by piece", 1, false}, {"a few pieces", 7, true}} {
		t.Run(c.name, func(t *testing.T) {
			keepsPicture(t, story(t), c.pieces, c.base)
			keepsPicture(t, busy, c.pieces, c.base)
		})
	}
}

func keepsPicture(t *testing.T, tl *store.Timeline, pieces int, base bool) {
	t.Helper()
	v := viewOf(tl, 310, 240, Light())
	under := v.Lanes[len(v.Lanes)-1]
	v.Lanes = append(v.Lanes, Lane{Kind: MinimapLane, Y: under.Y + under.H + 4, H: 15})
	v.H = under.Y + under.H + 20
	if base {
		v.Base = story(t)
	}
	first, last := tl.Span()
	rnd := rand.New(rand.NewPCG(3, 4))
	img, want := NewImage(v.W, v.H), NewImage(v.W, v.H)
	var r Renderer
	left, measured := 0, false
	if pieces > 0 {
		r.Enough = func() bool { left--; return left <= 0 }
	}
	for i := range 120 {
		d := v.T1 - v.T0
		switch rnd.IntN(5) {
		case 0: // zoom
			d = max(d*int64(40+rnd.IntN(120))/100, 400)
			v.T0 += rnd.Int64N(d) - d/2
			v.T1 = v.T0 + d
		case 1: // leave and return
			v.T0 = first - d/3 + rnd.Int64N(last-first)
			v.T1 = v.T0 + d
		case 2: // a step beyond what was seen, or none
		default: // scroll
			by := (rnd.Int64N(80) - 40) * (d / int64(v.W))
			v.T0, v.T1 = v.T0+by, v.T1+by
		}
		if v.T0 > last || v.T1 < first {
			v.T0, v.T1 = first, last
		}
		v.Align()
		left = pieces
		r.Frame(img, tl, v)
		measured = measured || len(r.flows) > 0 && r.flows[0].t0 == v.T0
		if i%3 == 0 {
			continue // the next window comes before this one is done
		}
		for n := 0; r.Pending(); n++ {
			if n > 1000 {
				t.Fatalf("frame %d is never done", i)
			}
			left = pieces
			if len(r.Frame(img, tl, v)) == 0 {
				t.Fatalf("frame %d is not done, but nothing is drawn", i)
			}
		}
		var fresh Renderer
		fresh.Frame(want, tl, v)
		if !bytes.Equal(img.Pix, want.Pix) {
			for o := 0; ; o++ {
				if img.Pix[o] != want.Pix[o] {
					t.Fatalf("frame %d of [%d,%d) differs from a fresh one at (%d,%d)", i, v.T0, v.T1, o%img.Stride/4, o/img.Stride)
				}
			}
		}
	}
	if !measured && tl.Events() > 1000 {
		t.Error("transfers were never too many to be drawn one by one")
	}
}

func TestAlignMovesAViewByLessThanAPixel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		v := View{W: 1 + rnd.IntN(3000)}
		v.T0 = rnd.Int64N(1<<40) - 1<<39
		v.T1 = v.T0 + 1 + rnd.Int64N(1<<uint(1+rnd.IntN(44)))
		w := v
		w.Align()
		if v.T1-v.T0 < int64(v.W) {
			if w.T0 != v.T0 || w.T1 != v.T1 {
				t.Fatalf("[%d,%d) of %d columns became [%d,%d)", v.T0, v.T1, v.W, w.T0, w.T1)
			}
			continue
		}
		step := w.step()
		if step == 0 || w.T0%step != 0 {
			t.Fatalf("[%d,%d) of %d columns is not aligned", w.T0, w.T1, w.W)
		}
		if off := w.T0 - v.T0; off > step || off < -step || step-1 > (v.T1-v.T0)/int64(v.W) {
			t.Fatalf("[%d,%d) of %d columns became [%d,%d)", v.T0, v.T1, v.W, w.T0, w.T1)
		}
		again := w
		again.Align()
		if again.T0 != w.T0 || again.T1 != w.T1 {
			t.Fatalf("aligning twice moved [%d,%d) to [%d,%d)", w.T0, w.T1, again.T0, again.T1)
		}
	}
}

// Before anything is drawn anew, a zoomed picture is the old one with each
// column where its time lies now.
func TestAPictureThatWaitsIsTheOldOneStretched(t *testing.T) {
	for _, zoom := range []int64{95, 104, 130, 47, 210} {
		old := View{T0: 1000, T1: 1000 + 300*500, W: 300}
		v := View{T0: 17_000, T1: 17_000 + 300*500*zoom/100, W: 300}
		img := NewImage(300, 4)
		for i := range img.Pix {
			img.Pix[i] = byte(i / img.Stride / 2 * 7) // two equal rows, then two others
			if i%4 < 3 {
				img.Pix[i] += byte(i / 4 % 300 * (1 + i%4))
			}
		}
		was := bytes.Clone(img.Pix)
		var r Renderer
		r.palette.lane = 0xff332211
		c := img.canvas(Rect{0, 0, 300, 4})
		r.stretch(&c, &old, &v)
		before := Image{Pix: was, W: 300, H: 4, Stride: img.Stride}
		b := before.canvas(Rect{0, 0, 300, 4})
		for y := range 4 {
			for x := range 300 {
				want := pixel(0xff332211)
				if from := old.x(v.TimeAt(x)); from >= 0 && from < 300 {
					want = b.get(from, y)
				}
				if got := c.get(x, y); got != want {
					t.Fatalf("zoom %d%%: (%d,%d) is %08x, want %08x", zoom, x, y, got, want)
				}
			}
		}
	}
}
