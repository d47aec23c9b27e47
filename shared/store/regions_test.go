package store

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
)

// TestRegionsThatComeAgainAreTheSameRegion lets arenas come and go at few
// addresses and compares with a plain record of every coming and going.
func TestRegionsThatComeAgainAreTheSameRegion(t *testing.T) {
	type hold struct{ address, from, to int64 }
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := &script{tl: New(nil)}
		var holds []hold
		open := map[int64]int{}
		for range 600 {
			s.at += r.Int64N(3)
			a := 1 + r.Int64N(4)
			i, held := open[a]
			e := event.Event{Kind: event.RegionAdd, Address: uint64(a) << 24, Size: a << 12}
			if held {
				e.Kind = event.RegionRemove
				holds[i].to = s.at
				delete(open, a)
			} else {
				open[a] = len(holds)
				holds = append(holds, hold{a, s.at, Alive})
			}
			s.add(e)
		}
		p := s.tl.Pools()[0]
		if n := len(p.Regions()); n != 4 || s.tl.Skipped() != 0 {
			t.Fatalf("seed %d: %d regions and %d events skipped, want one for each of 4 addresses", seed, n, s.tl.Skipped())
		}
		end := s.at + 2
		index := map[int64]int{}
		for i, g := range p.Regions() {
			index[int64(g.Address>>24)] = i
		}
		there := func(a, at int64) bool {
			for _, h := range holds {
				if h.address == a && h.from <= at && at < h.to {
					return true
				}
			}
			return false
		}
		for a := int64(1); a <= 4; a++ {
			seen := make([]bool, end)
			p.Holds(index[a], Window{0, end, int(end)}, func(from, to int64) {
				for at := max(from, 0); at < min(to, end); at++ {
					seen[at] = true
				}
			})
			for at := range end {
				want := there(a, at)
				if _, ok := p.Offset(uint64(a)<<24, at); ok != want {
					t.Fatalf("seed %d: at %d region %d has a place: %v, want %v", seed, at, a, ok, want)
				}
				// Pauses of a bucket, here a nanosecond, may be passed over.
				near := func(at int64) bool {
					for _, h := range holds {
						if h.address == a && at-1 <= h.to && h.from <= at {
							return true
						}
					}
					return false
				}
				if want && !seen[at] || seen[at] && !near(at) {
					t.Fatalf("seed %d: at %d region %d is shown: %v, was there: %v", seed, at, a, seen[at], want)
				}
			}
			for range 200 {
				t0 := r.Int64N(end)
				t1 := t0 + r.Int64N(4)
				want := false
				for _, h := range holds {
					want = want || h.address == a && t0 <= h.from && h.from <= t1
				}
				if got := p.AddedWithin(index[a], t0, t1); got != want {
					t.Fatalf("seed %d: region %d came in [%d,%d]: %v, want %v", seed, a, t0, t1, got, want)
				}
			}
			visits := 0
			p.Holds(index[a], Window{0, end, 40}, func(int64, int64) { visits++ })
			if visits > 41 {
				t.Errorf("seed %d: a picture of 40 columns is told of %d holds", seed, visits)
			}
		}
		for at := range end {
			m := p.After(at)
			held := p.heldIn(m)
			n := 0
			for a := int64(1); a <= 4; a++ {
				if there(a, at) {
					n++
				}
			}
			if len(held) != n {
				t.Fatalf("seed %d: after %d there are %d regions, want %d", seed, at, len(held), n)
			}
		}
	}
}

// TestAnArenaEachStep is what planned execution tells: far more comings than
// regions may be kept.
func TestAnArenaEachStep(t *testing.T) {
	s := &script{tl: New(nil)}
	const steps = 3 * maxRegions
	for range steps {
		s.at++
		s.add(event.Event{Kind: event.RegionAdd, Address: 1 << 20, Size: 1 << 12})
		s.at++
		s.add(event.Event{Kind: event.RegionRemove, Address: 1 << 20, Size: 1 << 12})
	}
	p := s.tl.Pools()[0]
	if s.tl.Skipped() != 0 || len(p.Regions()) != 1 || p.LayoutSize() != 1<<12 {
		t.Fatalf("%d skipped, %d regions, layout %d", s.tl.Skipped(), len(p.Regions()), p.LayoutSize())
	}
	if per := float64(s.tl.Bytes()) / steps; per > 24 {
		t.Errorf("%.1f bytes a step", per)
	}
	if _, ok := p.Offset(1<<20, 2*steps-1); !ok {
		t.Error("the last arena is not there")
	}
	if _, ok := p.Offset(1<<20, 2*steps); ok {
		t.Error("the last arena is still there after it went")
	}
}
