package store

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
)

// The single blocks of a stack are those of all live ones, at the very instant
// of the bucket, that are large enough and lived long enough, by age; whatever
// was asked while the timeline grew.
func TestBandsAreTheLiveBlocksThatAreMeant(t *testing.T) {
	singles, finer, filtered := 0, 0, 0
	for seed := range uint64(12) {
		all := random(seed, 4000)
		tl := New(nil)
		rnd := rand.New(rand.NewPCG(seed, 1))
		var bands Bands
		for len(all) > 0 {
			n := min(len(all), 1+rnd.IntN(1500))
			tl.Append(all[:n])
			all = all[n:]
			for _, p := range tl.Pools() {
				if p.Points() == 0 {
					continue
				}
				first, last := tl.Span()
				d := 1 + rnd.Int64N(last-first+1)
				w := Window{W: 1 + rnd.IntN(40)}
				w.T0 = first - 3 + rnd.Int64N(last-first+4)
				w.T1 = w.T0 + max(d, int64(w.W))
				det := p.Detail(w, 1+rnd.Int64N(1<<uint(1+rnd.IntN(16))), rnd.IntN(400))
				if det.Rank > 0 {
					finer++
				}
				var meant func(int) bool
				if rnd.IntN(3) == 0 {
					meant = func(i int) bool { return i%3 != 0 }
					filtered++
				}
				buckets := make([]MemoryBucket, w.W)
				p.Buckets(w, buckets)
				bands.Begin(p, w, det, meant)
				before := -1
				for i := range buckets {
					b := &buckets[i]
					if i > 0 && i < w.W-1 && rnd.IntN(4) == 0 {
						continue // a column may be passed over
					}
					bands.Next(b)
					m := p.Instant(b)
					if in := p.In(m); in.ByCategory != b.ByCategory {
						t.Fatalf("seed %d: at the instant of bucket %d the pool holds %v, the bucket says %v", seed, i, in.ByCategory, b.ByCategory)
					}
					singles += sameBands(t, p, &bands, det, meant, m, before)
					before = m.points
				}
			}
		}
	}
	if singles < 10_000 || finer == 0 || filtered == 0 {
		t.Errorf("%d blocks, %d windows left some out, %d were filtered: the test shows little", singles, finer, filtered)
	}
}

// sameBands compares the stack with one made of all live blocks, and counts
// them. before is the instant before, -1 for none.
func sameBands(t *testing.T, p *Pool, bands *Bands, det Detail, meant func(int) bool, m Moment, before int) (n int) {
	t.Helper()
	var want, got [event.NumCategories][]int32
	for _, id := range p.LiveIn(nil, m) {
		end := int(*p.lives.end.at(int(id)))
		long := end == 0 || end-1-int(p.allocs.at(birthCol, int(id))) >= 1<<det.Rank
		if a := p.Alloc(int(id)); long && a.Size >= det.Least && (meant == nil || meant(int(id))) {
			want[a.Category] = append(want[a.Category], id)
		}
	}
	for c := range got {
		height := int64(0)
		for _, b := range bands.Of(event.Category(c)) {
			got[c] = append(got[c], b.Alloc)
			a := p.Alloc(int(b.Alloc))
			if b.Size != a.Size || bands.Ends(&b) != a.Death {
				t.Fatalf("block %d has %d bytes until %d, the stack says %d until %d", b.Alloc, a.Size, a.Death, b.Size, bands.Ends(&b))
			}
			if born := int(p.allocs.at(birthCol, int(b.Alloc))); before >= 0 && bands.Fresh(&b) != (born >= before) {
				t.Fatalf("block %d was born after %d points and is fresh %v after %d", b.Alloc, born, bands.Fresh(&b), before)
			}
			for _, at := range []int64{height, height + b.Size - 1} {
				if x, ok := bands.At(event.Category(c), at); !ok || x.Alloc != b.Alloc {
					t.Fatalf("at %d bytes of %v lies block %d, want %d", at, event.Category(c), x.Alloc, b.Alloc)
				}
			}
			height += b.Size
			n++
		}
		if x, ok := bands.At(event.Category(c), height); ok {
			t.Fatalf("above all blocks of %v lies block %d", event.Category(c), x.Alloc)
		}
		if !slices.Equal(got[c], want[c]) {
			t.Fatalf("after %d points, %+v: the stack of %v is %v, want %v", m.points, det, event.Category(c), got[c], want[c])
		}
	}
	return n
}

// A window never tells apart more ended blocks than was asked for, nor those
// that live for less than a column.
func TestDetailKeepsToItsMeasure(t *testing.T) {
	tl := New(nil)
	tl.Append(random(3, 30_000))
	first, last := tl.Span()
	for _, p := range tl.Pools() {
		for _, w := range []Window{{first, last + 1, 10}, {first, last + 1, 4000}, {first, first + (last-first)/30, 300}} {
			for _, most := range []int{0, 40, 1000, 1 << 20} {
				d := p.Detail(w, 1, most)
				a, n := p.inUse.before(w.T0, 0), 0
				b := p.inUse.before(w.T1, a)
				for r := d.Rank; r < ranks; r++ {
					from, to := p.ended(r, a, b)
					n += to - from
				}
				if n > most || 1<<d.Rank <= (b-a)/w.W {
					t.Errorf("%+v, most %d: rank %d has %d blocks, and %d changes in a column", w, most, d.Rank, n, (b-a)/w.W)
				}
			}
		}
	}
}

// What is too small for any picture of the whole costs nothing.
func TestSmallBlocksAreNotListed(t *testing.T) {
	tl := New(nil)
	var es []event.Event
	es = append(es, event.Event{Kind: event.Alloc, Device: 1, Address: 1 << 40, Size: 1 << 30, Requested: 1 << 30})
	for i := range int64(20_000) {
		es = append(es,
			event.Event{Kind: event.Alloc, Device: 1, Time: i, Address: 4096, Size: 512, Requested: 512},
			event.Event{Kind: event.Free, Device: 1, Time: i, Address: 4096})
	}
	for i := range uint64(20_000) { // and stay
		es = append(es, event.Event{Kind: event.Alloc, Device: 1, Time: 20_000, Address: i << 12, Size: 512, Requested: 512})
	}
	tl.Append(es)
	p := tl.Pools()[0]
	if n := p.lasting.count; n > 1000 {
		t.Errorf("%d of 20000 blocks of a two-millionth of the peak are listed", n)
	}
	if n := len(p.openBlocks()); n != 1 {
		t.Errorf("%d of 20001 open blocks may be seen, want the large one", n)
	}
}

func TestBandsAreSortedHoweverMany(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var s Bands
	for _, n := range []int{0, 1, 199, 200, 3000, 3000, 500} {
		for _, span := range []int32{1, 2000, 2049, 1 << 22, 1<<31 - 1} {
			s.ids = s.ids[:0]
			for range n {
				s.ids = append(s.ids, rnd.Int32N(span))
			}
			want := slices.Sorted(slices.Values(s.ids))
			if s.sort(); !slices.Equal(s.ids, want) {
				t.Fatalf("%d blocks below %d are out of order", n, span)
			}
		}
	}
}
