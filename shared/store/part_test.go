package store

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/protocol/event"
)

// named is a timeline of random events whose strings have texts.
func named(tb testing.TB, events []event.Event) *Timeline {
	tb.Helper()
	names := new(event.Strings)
	for i := 1; i < 600; i++ {
		names.ID("Layer" + itoa(int64(i)) + "/kernel\ncall file.py:" + itoa(int64(i%7)))
	}
	tl := New(names)
	tl.Append(events)
	return tl
}

// only is the events with every allocation that does not pass made empty: what
// is in use of it is the truth of a Part.
func only(tl *Timeline, events []event.Event, text string) []event.Event {
	holds := func(id event.StringID) bool {
		return strings.Contains(strings.ToLower(tl.Text(id)), strings.ToLower(text))
	}
	out := make([]event.Event, len(events))
	for i, e := range events {
		if (e.Kind == event.Alloc || e.Kind == event.Forward) && text != "" && !holds(e.Tensor) && !holds(e.Op) {
			e.Size, e.Requested = 0, 0
		}
		out[i] = e
	}
	return out
}

func TestAPartIsThatOfBruteForce(t *testing.T) {
	for seed, text := range []string{"LAYER7", "file.py:3", "", "nothing has this", "layer12/"} {
		events := random(uint64(seed), 7000)
		tl := named(t, events)
		f := NewFilter(tl, text)
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		for pi, p := range tl.Pools() {
			b := newBrute(only(tl, events, text), p.Device)
			q := NewPart(p, f)
			for q.Advance(1 + r.IntN(300)) {
			}
			if q.Until() != Alive || q.Taken() != p.Points() {
				t.Fatalf("%q: %d of %d points were taken in, until %d", text, q.Taken(), p.Points(), q.Until())
			}
			for _, w := range windows(r, tl) {
				got := make([]MemoryBucket, w.W)
				q.Buckets(w, got)
				for i, g := range got {
					lo, hi, top, _ := b.bucket(w.Edge(i), w.Edge(i+1))
					if g.Min != lo || g.Max != hi || g.Time != top.at || g.ByCategory != top.cat {
						t.Fatalf("%q pool %d window %+v bucket %d:\n got %+v\nwant min %d max %d %+v", text, pi, w, i, g, lo, hi, top)
					}
				}
			}
			for range 200 {
				at := r.Int64N(tl.last + 1)
				if got, want := q.In(p.After(at)), b.state(b.upTo(at)).cat; got != want {
					t.Fatalf("%q pool %d at %d: %v, want %v", text, pi, at, got, want)
				}
			}
			for i := range p.Allocs() {
				al := p.Alloc(i)
				want := strings.Contains(strings.ToLower(tl.Text(al.Tensor)+" "+tl.Text(al.Op)), strings.ToLower(text))
				if q.Holds(i) != want {
					t.Fatalf("%q: allocation %d of %q, %q: %v", text, i, tl.Text(al.Tensor), tl.Text(al.Op), !want)
				}
			}
		}
	}
}

// A part that lets everything through has the pool's tiles, and one that does
// not has cells no fuller than these; what passes and what does not are empty
// exactly where the pool is.
func TestTilesOfAPartLieWithinThoseOfThePool(t *testing.T) {
	events := random(3, 9000)
	tl := named(t, events)
	p := tl.Pools()[0]
	all, some := NewPart(p, NewFilter(tl, "")), NewPart(p, NewFilter(tl, "file.py:3"))
	for all.Advance(100) {
	}
	for some.Advance(1000) {
	}
	r := rand.New(rand.NewPCG(9, 9))
	less := 0
	for _, w := range windows(r, tl) {
		var curA, curB, curC TileCursor
		for i := range w.W {
			var a, b, c Tile
			p.TileNext(&curA, &a, w.Edge(i), w.Edge(i+1))
			all.TileNext(&curB, &b, w.Edge(i), w.Edge(i+1))
			some.TileNext(&curC, &c, w.Edge(i), w.Edge(i+1))
			if a != b {
				t.Fatalf("window %+v column %d: the tile of all that passes is not the pool's", w, i)
			}
			if c.Shift != a.Shift {
				t.Fatalf("window %+v column %d: cells of 1<<%d bytes, the pool's have 1<<%d", w, i, c.Shift, a.Shift)
			}
			for k := range c.Cell {
				if Cell(c.Cell[k]).Fill() > Cell(a.Cell[k]).Fill() {
					t.Fatalf("window %+v column %d cell %d: %d passes of %d", w, i, k, Cell(c.Cell[k]).Fill(), Cell(a.Cell[k]).Fill())
				}
				if c.Cell[k] == 0 && a.Cell[k] != 0 {
					less++
				}
			}
		}
	}
	if less == 0 {
		t.Error("everything passes: the test shows nothing")
	}
}

// A part follows a pool that grows, and what it tells of the time before Until
// is never taken back.
func TestAPartFollowsALiveTimeline(t *testing.T) {
	events := random(5, 6000)
	whole := named(t, events)
	names := whole.Strings()
	tl := New(names)
	tl.Append(events[:500])
	p := tl.Pools()[0]
	q := NewPart(p, NewFilter(tl, "file.py:3"))
	for i := 500; i < len(events); i += 250 {
		tl.Append(events[i:min(i+250, len(events))])
		q.Advance(40)
	}
	if q.Until() == Alive {
		t.Fatal("nothing was left to be taken in")
	}
	w := Window{0, q.Until(), 50}
	early, late := make([]MemoryBucket, w.W), make([]MemoryBucket, w.W)
	q.Buckets(w, early)
	for q.Advance(100) {
	}
	q.Buckets(w, late)
	for i := range early {
		if early[i] != late[i] {
			t.Fatalf("bucket %d was %+v and became %+v", i, early[i], late[i])
		}
	}
	fresh := NewPart(whole.Pools()[0], NewFilter(whole, "file.py:3"))
	fresh.Advance(1 << 30)
	if at := whole.Pools()[0].After(whole.last); q.In(at) != fresh.In(at) || q.In(at) == (Categories{}) {
		t.Errorf("at the end %v, want %v", q.In(at), fresh.In(at))
	}
}

func TestAFilterAsksForStringsThatComeLater(t *testing.T) {
	tl := New(nil)
	f := NewFilter(tl, "Conv")
	if f.Passes(3, 3) {
		t.Error("a string that was not told yet passes")
	}
	for _, s := range []string{"a", "b", "conv1"} {
		tl.Strings().ID(s)
	}
	if !f.Passes(1, 3) || f.Passes(1, 2) || f.Passes(0, 0) {
		t.Error("the strings that came later are not looked at")
	}
}

func TestWidenKeepsWhatIsThere(t *testing.T) {
	x := Tile{Shift: 8}
	x.Cell[4], x.Cell[5] = 8<<4|2, 4<<4|2
	x.Widen(7)
	if x.Shift != 8 || x.Cell[4] != 8<<4|2 {
		t.Error("widening to less changed the tile")
	}
	x.Widen(9)
	if x.Shift != 9 || Cell(x.Cell[2]).Fill() != 6 || Cell(x.Cell[2]).Category() != 2 || x.Cell[4] != 0 {
		t.Errorf("widened to %v", x.Cell[:6])
	}
}

func BenchmarkPart(b *testing.B) {
	tl := named(b, random(1, 400_000))
	p := tl.Pools()[0]
	for _, text := range []string{"", "file.py:3", "nothing"} {
		b.Run("take/"+text, func(b *testing.B) {
			f := NewFilter(tl, text)
			b.ReportAllocs()
			var q *Part
			for b.Loop() {
				q = NewPart(p, f)
				q.Advance(1 << 30)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(p.Points()), "ns/point")
			b.ReportMetric(float64(q.Bytes())/float64(p.Points()), "B/point")
		})
	}
	b.Run("buckets", func(b *testing.B) {
		q := NewPart(p, NewFilter(tl, "file.py:3"))
		q.Advance(1 << 30)
		first, last := tl.Span()
		dst := make([]MemoryBucket, 1900)
		b.ReportAllocs()
		for b.Loop() {
			q.Buckets(Window{first, last, 1900}, dst)
		}
	})
}
