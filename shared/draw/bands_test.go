package draw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// blocks makes a timeline of n blocks of a few categories that come, go and are
// taken over, many at one time, with no bytes but the requested ones.
func blocks(tb testing.TB, seed uint64, n int) *store.Timeline {
	tb.Helper()
	tl := store.New(nil)
	s := tl.Strings()
	rnd := rand.New(rand.NewPCG(seed, 2))
	var live []uint64
	var es []event.Event
	at := int64(1000)
	for i := range n {
		if rnd.IntN(3) > 0 {
			at += rnd.Int64N(900)
		}
		k := rnd.IntN(16)
		if k == 0 { // an old one
			k = rnd.IntN(max(len(live), 1))
		} else {
			k = len(live) - 1 - rnd.IntN(min(max(len(live), 1), 4))
		}
		e := event.Event{Kind: event.Alloc, Time: at, Device: 1, Address: uint64(i+1) << 24, Size: 256 << rnd.IntN(12), Category: event.Category(rnd.IntN(6)), Op: s.ID([]string{"some", "other"}[i&1])}
		switch r := rnd.IntN(20); {
		case len(live) > 0 && (r < 8 || len(live) > 60):
			e = event.Event{Kind: event.Free, Time: at, Device: 1, Address: live[k]}
			live = slices.Delete(live, k, k+1)
		case len(live) > 0 && r == 9:
			e.Kind, e.Address = event.Forward, live[k]
		default:
			live = append(live, e.Address)
		}
		if e.Kind == event.Alloc {
			e.Requested = e.Size
		}
		es = append(es, e)
	}
	tl.Append(es)
	return tl
}

// somewhere is a view of a timeline's memory with nothing else.
func somewhere(tl *store.Timeline, rnd *rand.Rand) *View {
	first, last := tl.Span()
	d := (last - first) >> rnd.IntN(9)
	v := &View{W: 60 + rnd.IntN(200), H: 60 + rnd.IntN(300), DPR: 1 + rnd.IntN(2), Theme: Light()}
	v.T0 = first + rnd.Int64N(last-first) - d/2
	v.T1 = v.T0 + max(d, 10*int64(v.W))
	if rnd.IntN(3) > 0 {
		v.Align()
	}
	if rnd.IntN(3) == 0 {
		v.Hide = rnd.Uint32() & 0x3f
	}
	v.Lanes = []Lane{{Kind: MemoryLane, H: v.H}}
	return v
}

// What lies under the pointer is what a stack of all blocks that are live at
// the column's fullest instant has there: by category, the oldest lowest, those
// too thin together on top.
func TestABlockUnderThePointerIsThatOfTheWholeStack(t *testing.T) {
	single, rest, dense := 0, 0, 0
	for seed := range uint64(40) {
		tl := blocks(t, seed, 100+int(seed)*40)
		rnd := rand.New(rand.NewPCG(seed, 3))
		v := somewhere(tl, rnd)
		l, p := &v.Lanes[0], tl.Pools()[0]
		var part *store.Part
		if seed%3 == 0 {
			v.Parts = partsOf(tl, "some", all)
			part = v.Parts[0]
		}
		d := detail(tl, v, l)
		if d.Rank > 0 {
			dense++
			continue // package store knows how long a block lived
		}
		least := float64(3 * v.DPR * int(Scale(tl, v, l)) / v.H)
		for range 30 {
			x := rnd.IntN(v.W)
			w := store.Window{T0: v.TimeAt(x), T1: v.TimeAt(x + 1), W: 1}
			var whole, pass [1]store.MemoryBucket
			p.Buckets(w, whole[:])
			stack := stackOf(p, &whole[0], nil, v.Hide, least)
			var over []piece
			if part != nil {
				part.Buckets(w, pass[:])
				over = stackOf(p, &pass[0], part, v.Hide, least)
			}
			for y := range v.H {
				h := HitTest(tl, v, x, y)
				bytes := int64((float64(v.H-y) - 0.5) * float64(Scale(tl, v, l)) / float64(v.H))
				want, ok := at(over, bytes)
				if !ok {
					want, ok = at(stack, bytes)
				}
				if h.InBand != ok {
					t.Fatalf("seed %d, (%d,%d): in the stack %v, want %v", seed, x, y, h.InBand, ok)
				}
				if !ok {
					continue
				}
				got := piece{category: h.Category, block: h.Index, bytes: h.Rest, count: h.Merged}
				if h.Index >= 0 {
					got.bytes, got.count = p.Alloc(h.Index).Size, 1
					single++
				} else {
					rest++
				}
				if got != want {
					t.Fatalf("seed %d, (%d,%d), %d bytes: got %+v, want %+v", seed, x, y, bytes, got, want)
				}
			}
		}
	}
	if single < 2000 || rest < 500 || dense > 20 {
		t.Errorf("%d points on blocks, %d on what is merged, %d views too dense: the test shows little", single, rest, dense)
	}
}

// piece is a part of a stack: a block, or those that are too thin together.
type piece struct {
	category event.Category
	block    int // -1: several
	bytes    int64
	count    int
}

func at(stack []piece, bytes int64) (piece, bool) {
	for _, s := range stack {
		if bytes -= s.bytes; bytes < 0 {
			return s, true
		}
	}
	return piece{}, false
}

func stackOf(p *store.Pool, b *store.MemoryBucket, part *store.Part, hide uint32, least float64) []piece {
	ids := p.LiveIn(nil, p.Instant(b))
	slices.Sort(ids)
	var out []piece
	for c := range event.NumCategories {
		thin, last := piece{event.Category(c), -1, 0, 0}, 0
		for _, i := range ids {
			a := p.Alloc(int(i))
			switch {
			case int(a.Category) != c || hide>>c&1 != 0 || part != nil && !part.Holds(int(i)):
			case float64(a.Size) > least:
				out = append(out, piece{a.Category, int(i), a.Size, 1})
			default:
				thin.bytes, thin.count = thin.bytes+a.Size, thin.count+1
				last = int(i)
			}
		}
		if thin.count == 1 {
			thin.block = last
		}
		if thin.count > 0 {
			out = append(out, thin)
		}
	}
	return out
}

// A pixel is an edge exactly where another block of its category lies above it,
// or where its block begins, for a while.
func TestEdgesLieBetweenTheBlocksThatThePointerFinds(t *testing.T) {
	edges, plain, left := 0, 0, 0
	for seed := range uint64(30) {
		tl := blocks(t, seed, 400)
		v := somewhere(tl, rand.New(rand.NewPCG(seed, 9)))
		img := NewImage(v.W, v.H)
		var r Renderer
		r.Frame(img, tl, v)
		c := img.canvas(Rect{0, 0, v.W, v.H})
		p, pal := tl.Pools()[0], &r.palette
		s := scale{v.H, float64(Scale(tl, v, &v.Lanes[0]))}
		d := detail(tl, v, &v.Lanes[0])
		if d.Rank > 0 {
			continue
		}
		first, _ := tl.Span()
		buckets := make([]store.MemoryBucket, v.W)
		p.Buckets(v.Window(), buckets)
		for x := max(1, v.x(first)+1); x < min(v.end(tl), v.W); x++ {
			sum := int64(0)
			for k, n := range buckets[x].ByCategory {
				if n == 0 || v.Hide>>k&1 != 0 {
					continue
				}
				low := s.row(sum)
				sum += n
				for y := top(s, sum); y < low; y++ {
					if nearMark(tl, v, x, y) {
						continue
					}
					h, above := HitTest(tl, v, x, y), HitTest(tl, v, x, y-1)
					want := single(p, h.Index, d) && y > top(s, sum) && above.Index != h.Index
					if want {
						edges++
					}
					if single(p, h.Index, d) && !want {
						a := p.Alloc(h.Index)
						before := p.LiveIn(nil, p.Instant(&buckets[x-1]))
						if want = !slices.Contains(before, int32(h.Index)) && v.x(a.Death)-x >= 4*v.DPR; want {
							left++
						}
					}
					color := pal.category[k]
					if y < int(s.y(buckets[x].Min)+0.5) {
						color = pal.faint[k]
					}
					if want {
						color = mix(color, pal.lane, edgeWeight)
					}
					if at := c.get(x, y); at != color {
						t.Fatalf("seed %d, (%d,%d): %06x in block %d below %d of %v, want %06x, an edge: %v", seed, x, y, at, h.Index, above.Index, event.Category(k), color, want)
					}
					plain++
				}
			}
		}
	}
	if edges < 1000 || plain < 10*edges || left < 50 {
		t.Errorf("%d points on edges, %d at beginnings, of %d: the test shows little", edges, left, plain)
	}
}

// uneven is a pool with a stack of high blocks that stay, in which thousands of
// small ones come and go in each column, then only a few high ones, far apart.
func uneven(add func(e event.Event), busy, quiet int) {
	at, next := int64(0), uint64(1)
	alloc := func(size int64) uint64 {
		next++
		add(event.Event{Kind: event.Alloc, Time: at, Device: 1, Address: next << 30, Size: size, Requested: size})
		return next << 30
	}
	free := func(a uint64) { add(event.Event{Kind: event.Free, Time: at, Device: 1, Address: a}) }
	for range 5 {
		alloc(10 << 20)
	}
	for range busy {
		at += 10
		free(alloc(4 << 20))
	}
	for range quiet {
		at += 3000
		a := alloc(9 << 20)
		at += 40_000
		alloc(1 << 10)
		free(a)
	}
}

// What is told apart depends on the whole view: what a view that moved a little
// keeps of its columns must be told apart as the rest is.
func TestAKeptPictureHasTheDetailOfItsView(t *testing.T) {
	tl := store.New(nil)
	uneven(func(e event.Event) { tl.Append([]event.Event{e}) }, 60_000, 15)
	v := &View{T0: 0, T1: 600_000, W: 300, H: 120, DPR: 1, Theme: Light()}
	v.Lanes = []Lane{{Kind: MemoryLane, H: v.H}}
	v.Align()
	img, want := NewImage(v.W, v.H), NewImage(v.W, v.H)
	var r Renderer
	ranks := map[int]bool{}
	for v.T1 < 1_280_000 {
		r.Frame(img, tl, v)
		var fresh Renderer
		fresh.Frame(want, tl, v)
		if !slices.Equal(img.Pix, want.Pix) {
			t.Fatalf("[%d,%d) differs from a fresh picture, whose detail is %+v", v.T0, v.T1, detail(tl, v, &v.Lanes[0]))
		}
		ranks[detail(tl, v, &v.Lanes[0]).Rank] = true
		v.T0, v.T1 = v.T0+4*v.step(), v.T1+4*v.step()
	}
	if !ranks[0] || len(ranks) < 2 {
		t.Errorf("all views have one detail, %v: the test shows little", ranks)
	}
}

// A block that was told apart while it was open is not, once it has ended too
// soon, wherever in the view it began.
func TestABlockThatEndsSoonIsMergedWhereItWasDrawn(t *testing.T) {
	var list []event.Event
	uneven(func(e event.Event) { list = append(list, e) }, 60_000, 6)
	tl := store.New(nil)
	v := &View{T0: 0, T1: 900_000, W: 600, H: 120, DPR: 1, Theme: Light()}
	v.Lanes = []Lane{{Kind: MemoryLane, H: v.H}}
	v.Align()
	img, want := NewImage(v.W, v.H), NewImage(v.W, v.H)
	var r Renderer
	part := 0
	first := len(list) - 20
	tl.Append(list[:first])
	for i := first; ; i++ {
		touched := r.Frame(img, tl, v)
		if len(touched) > 0 && touched[0].W < v.W/2 {
			part++
		}
		var fresh Renderer
		fresh.Frame(want, tl, v)
		if !slices.Equal(img.Pix, want.Pix) {
			t.Fatalf("after %d events the picture differs from a fresh one", i)
		}
		if i == len(list) {
			break
		}
		tl.Append(list[i : i+1])
	}
	if d := detail(tl, v, &v.Lanes[0]); d.Rank == 0 || part == 0 {
		t.Errorf("the detail is %+v, %d frames drew a part: the test shows little", d, part)
	}
}

// single reports whether a block that was found is high enough for edges.
func single(p *store.Pool, i int, d store.Detail) bool {
	return i >= 0 && p.Alloc(i).Size >= d.Least
}

// nearMark reports whether the ring on the peak may cover a pixel.
func nearMark(tl *store.Timeline, v *View, x, y int) bool {
	first, last := tl.Span()
	at, bytes := tl.Pools()[0].PeakPoint(first, last+1)
	s := scale{v.H, float64(Scale(tl, v, &v.Lanes[0]))}
	d := 5 * v.dpr()
	dx, dy := v.x(at)-x, int(max(s.y(bytes), 4*float64(v.dpr())))-y
	return max(dx, -dx) <= d && max(dy, -dy) <= d
}

// BenchmarkBands draws a memory lane whose stack is full of single blocks that
// come and go: twenty high blocks in each of five categories at a time.
func BenchmarkBands(b *testing.B) {
	for _, perColumn := range []int{1, 8, 64, 800} {
		tl := store.New(nil)
		rnd := rand.New(rand.NewPCG(1, 1))
		var es []event.Event
		live := make([]uint64, 100)
		const w = 1280
		for i := range w * perColumn {
			at := int64(i) * 1000
			k := rnd.IntN(len(live))
			if live[k] != 0 {
				es = append(es, event.Event{Kind: event.Free, Time: at, Device: 1, Address: live[k]})
			}
			live[k] = uint64(i+1) << 30
			es = append(es, event.Event{Kind: event.Alloc, Time: at, Device: 1, Address: live[k], Size: 1 << 20, Requested: 1 << 20, Category: event.Category(k % 5)})
		}
		tl.Append(es)
		v := &View{W: w, H: 500, DPR: 1, Theme: Light(), Lanes: []Lane{{Kind: MemoryLane, H: 500}}}
		v.T0, v.T1 = tl.Span()
		v.Align()
		img := NewImage(v.W, v.H)
		var r Renderer
		b.Run(fmt.Sprint("changes/column=", 2*perColumn), func(b *testing.B) {
			b.ReportAllocs()
			n, start := 0, cpu()
			for b.Loop() {
				r.Lane(img, tl, v, 0)
				n++
			}
			b.ReportMetric(float64(cpu()-start)/float64(n)/1e6, "cpu-ms/lane")
		})
	}
}
