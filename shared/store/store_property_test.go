package store

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"tideline/protocol/event"
)

func filled2(tb testing.TB, events []event.Event) *Timeline {
	tb.Helper()
	tl := New(nil)
	tl.Append(events)
	return tl
}

func windows(r *rand.Rand, tl *Timeline) []Window {
	first, last := tl.Span()
	out := []Window{{first, last + 1, 97}, {first - 1000, last + 1000, 300}}
	for range 15 {
		a := first + r.Int64N(last-first+1)
		b := a + 1 + r.Int64N(1+r.Int64N(last-first+1))
		out = append(out, Window{a, b, 1 + r.IntN(200)})
	}
	for range 10 {
		a := first + r.Int64N(last-first+1)
		out = append(out, Window{a, a + 1 + r.Int64N(2000), 1 + r.IntN(60)})
	}
	return out
}

func TestBucketsEqualBruteForce(t *testing.T) {
	for seed := range uint64(3) {
		events := random(seed, 9000)
		tl := filled2(t, events)
		r := rand.New(rand.NewPCG(seed, 1))
		for pi, p := range tl.Pools() {
			b := newBrute(events, p.Device)
			if p.Points() != len(b.points) || p.Points() < 100 {
				t.Fatalf("seed %d: pool %d has %d points, want %d", seed, pi, p.Points(), len(b.points))
			}
			for _, w := range windows(r, tl) {
				got := make([]MemoryBucket, w.W)
				p.Buckets(w, got)
				for i, g := range got {
					lo, hi, top, n := b.bucket(w.Edge(i), w.Edge(i+1))
					if g.Min != lo || g.Max != hi || g.Time != top.at || g.ByCategory != top.cat || g.Waste != top.waste || g.Events != n {
						t.Fatalf("seed %d pool %d window %+v bucket %d:\n got %+v\nwant min %d max %d %+v events %d", seed, pi, w, i, g, lo, hi, top, n)
					}
					if g.ByCategory.Total() != g.Max {
						t.Fatalf("categories sum to %d, not %d", g.ByCategory.Total(), g.Max)
					}
				}
			}
		}
	}
}

func TestLiveSetEqualsBruteForce(t *testing.T) {
	for seed := range uint64(3) {
		events := random(seed, 8000)
		tl := filled2(t, events)
		first, last := tl.Span()
		r := rand.New(rand.NewPCG(seed, 2))
		for _, p := range tl.Pools() {
			b := newBrute(events, p.Device)
			for range 30 {
				at := first - 5 + r.Int64N(last-first+10)
				n := b.upTo(at)
				if got, want := p.LiveAt(nil, at), b.liveAt(n); !slices.Equal(got, want) {
					t.Fatalf("seed %d, live at %d: got %v, want %v", seed, at, got, want)
				}
				s, want := p.At(at), b.state(n)
				if s.InUse != want.inUse || s.ByCategory != want.cat || s.Waste != want.waste {
					t.Fatalf("seed %d, state at %d: got %+v, want %+v", seed, at, s, want)
				}
				to := at + r.Int64N(100_000)
				var over []int32
				for i, x := range b.blocks {
					a := b.upTo(at - 1)
					if b.points[x.birth].at < to && (x.death == 0 || x.death > a) {
						over = append(over, int32(i))
					}
				}
				if got := p.Overlapping(nil, at, to, 0); !slices.Equal(got, over) {
					t.Fatalf("seed %d, overlapping [%d,%d): got %v, want %v", seed, at, to, got, over)
				}
			}
			for i, x := range b.blocks {
				a := p.Alloc(i)
				if a.Address != x.e.Address || a.Size != x.e.Size || a.Requested != x.e.Requested || a.Op != x.e.Op ||
					a.Tensor != x.e.Tensor || a.Category != x.e.Category || a.Birth != x.e.Time || a.Forwarded != (x.e.Kind == event.Forward) {
					t.Fatalf("allocation %d: got %+v, want %+v", i, a, x.e)
				}
			}
		}
	}
}

func TestAnySplitOfTheStreamGivesTheSameTimeline(t *testing.T) {
	events := random(11, 12000)
	whole := filled2(t, events)
	r := rand.New(rand.NewPCG(3, 3))
	parts := New(nil)
	for rest := events; len(rest) > 0; {
		n := 1 + r.IntN(min(len(rest), 700))
		parts.Append(rest[:n])
		rest = rest[n:]
		// Asking in between must not disturb.
		p := parts.Pools()[0]
		p.Buckets(Window{0, 1 << 40, 50}, make([]MemoryBucket, 50))
		var tile Tile
		p.TileOver(&tile, 0, 1<<40)
		p.ChunkMapAt(rest0(rest))
	}
	first, last := whole.Span()
	for i, p := range whole.Pools() {
		q := parts.Pools()[i]
		a, b := make([]MemoryBucket, 333), make([]MemoryBucket, 333)
		w := Window{first, last + 1, 333}
		p.Buckets(w, a)
		q.Buckets(w, b)
		if !slices.Equal(a, b) {
			t.Fatalf("pool %d: buckets differ", i)
		}
		if !reflect.DeepEqual(p.ChunkMapAt(last/2), q.ChunkMapAt(last/2)) {
			t.Fatalf("pool %d: chunk maps differ", i)
		}
		var x, y Tile
		p.TileOver(&x, first, last+1)
		q.TileOver(&y, first, last+1)
		if x != y {
			t.Fatalf("pool %d: tiles differ", i)
		}
	}
	for i, k := range whole.Tracks() {
		a, b := make([]SpanBucket, 99), make([]SpanBucket, 99)
		w := Window{first, last + 1, 99}
		k.Buckets(w, a, nil)
		parts.Tracks()[i].Buckets(w, b, nil)
		if !slices.Equal(a, b) {
			t.Fatalf("track %d: buckets differ", i)
		}
	}
	if whole.Skipped() != parts.Skipped() || whole.Events() != parts.Events() {
		t.Fatalf("counts differ: %d/%d, %d/%d", whole.Skipped(), parts.Skipped(), whole.Events(), parts.Events())
	}
}

func rest0(rest []event.Event) int64 {
	if len(rest) == 0 {
		return 0
	}
	return rest[0].Time
}

func TestChunkMapTilesEveryRegionWithTheLiveBlocks(t *testing.T) {
	var scratch []int32
	for seed := range uint64(3) {
		events := random(seed, 6000)
		tl := filled2(t, events)
		_, last := tl.Span()
		p := tl.Pools()[0]
		b := newBrute(events, 0)
		for k := range int64(40) {
			at := last * k / 40
			m := p.ChunkMapAt(at)
			var used []event.Chunk
			var pool int64
			for _, r := range m {
				end := r.Address
				for _, c := range r.Chunks {
					if c.Address != end || c.Size <= 0 {
						t.Fatalf("seed %d at %d: chunk %x does not follow %x", seed, at, c.Address, end)
					}
					end += uint64(c.Size)
					if c.InUse {
						used = append(used, c)
					}
				}
				if end != r.Address+uint64(r.Size) {
					t.Fatalf("seed %d at %d: region %x is not filled", seed, at, r.Address)
				}
				pool += r.Size
			}
			var want []event.Chunk
			for _, i := range b.liveAt(b.upTo(at)) {
				e := b.blocks[i].e
				want = append(want, event.Chunk{Address: e.Address, Size: e.Size, Requested: e.Requested, InUse: true})
			}
			slices.SortFunc(want, func(x, y event.Chunk) int { return int(int64(x.Address) - int64(y.Address)) })
			if !slices.Equal(used, want) {
				t.Fatalf("seed %d at %d: blocks in use differ", seed, at)
			}
			if s := p.At(at); s.Reserved != pool {
				t.Fatalf("seed %d at %d: regions hold %d, reserved is %d", seed, at, pool, s.Reserved)
			}
			for _, c := range used {
				off, ok := p.Offset(c.Address, at)
				if !ok {
					t.Fatalf("block %x has no place", c.Address)
				}
				if i, ok := p.AllocAt(off+c.Size-1, at, &scratch); !ok || p.Alloc(i).Address != c.Address {
					t.Fatalf("the block at %x is not found under its place", c.Address)
				}
			}
		}
	}
}

func TestPeakIsTheHighestPoint(t *testing.T) {
	events := random(5, 8000)
	tl := filled2(t, events)
	first, last := tl.Span()
	r := rand.New(rand.NewPCG(3, 3))
	p := tl.Pools()[0]
	b := newBrute(events, 0)
	for range 50 {
		t0 := first + r.Int64N(last-first)
		t1 := t0 + 1 + r.Int64N(last-first)
		k := p.Peak(t0, t1, 5)
		_, hi, top, _ := b.bucket(t0, t1)
		if k.InUse != hi || k.Time != top.at || k.ByCategory != top.cat {
			t.Fatalf("peak of [%d,%d): got %+v, want %+v", t0, t1, k, top)
		}
		var sum int64
		for _, i := range p.liveAfter(nil, p.Points()) {
			sum += p.Alloc(int(i)).Size
		}
		if sum != p.Now().InUse {
			t.Fatalf("live blocks hold %d, now %d", sum, p.Now().InUse)
		}
	}
}

func TestSpanBucketsEqualBruteForce(t *testing.T) {
	for seed := range uint64(3) {
		events := random(seed, 9000)
		tl := filled2(t, events)
		_, last := tl.Span()
		r := rand.New(rand.NewPCG(seed, 1))
		for ti, k := range tl.Tracks() {
			spans := make([]Span, k.Spans())
			for i := range spans {
				spans[i] = k.Span(i)
			}
			if len(spans) < 100 {
				t.Fatalf("track %d has %d spans only", ti, len(spans))
			}
			for _, w := range windows(r, tl) {
				got := make([]SpanBucket, w.W)
				k.Buckets(w, got, nil)
				for i, g := range got {
					var want Sums
					n := 0
					a, b := w.Edge(i), w.Edge(i+1)
					for _, s := range spans {
						if s.Begin >= a && s.Begin < b {
							n++
						}
						end := s.End
						if end == Alive {
							end = last
						}
						if from, to := max(s.Begin, a), min(end, b); to > from {
							want[s.Class] += to - from
						}
					}
					if g.Busy != want || g.Count != n {
						t.Fatalf("seed %d track %d window %+v bucket %d: got %+v, want %v %d", seed, ti, w, i, g, want, n)
					}
				}
				var over []int32
				for i, s := range spans {
					if s.Begin < w.T1 && s.End > w.T0 {
						over = append(over, int32(i))
					}
				}
				if got := k.Overlapping(nil, w.T0, w.T1, 0); !slices.Equal(got, over) {
					t.Fatalf("seed %d track %d: overlapping %+v: got %v want %v", seed, ti, w, got, over)
				}
			}
		}
	}
}
