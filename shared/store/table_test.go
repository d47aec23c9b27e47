package store

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
)

// Totals by all names are what counting one allocation after the other gives.
func TestTotalsByNameEqualBruteForce(t *testing.T) {
	type key struct {
		tensor, op event.StringID
		category   event.Category
	}
	for seed := range uint64(3) {
		events := random(seed, 9000)
		// Few names, so that many allocations share them and some share all but
		// their category.
		for i := range events {
			events[i].Tensor, events[i].Op = events[i].Tensor%5, events[i].Op%3
		}
		tl := filled2(t, events)
		first, last := tl.Span()
		for _, p := range tl.Pools() {
			for k := range int64(7) {
				live := p.LiveAt(nil, first+(last-first)*k/6)
				want := map[key]Total{}
				for _, i := range live {
					a := p.Alloc(int(i))
					x := want[key{a.Tensor, a.Op, a.Category}]
					x.Tensor, x.Op, x.Category = a.Tensor, a.Op, a.Category
					x.Bytes, x.Waste, x.Count = x.Bytes+a.Size, x.Waste+a.Size-a.Requested, x.Count+1
					want[key{a.Tensor, a.Op, a.Category}] = x
				}
				got := p.TotalsByName(live)
				if len(got) != len(want) {
					t.Fatalf("seed %d: %d totals, want %d", seed, len(got), len(want))
				}
				for _, x := range got {
					if w := want[key{x.Tensor, x.Op, x.Category}]; x != w {
						t.Errorf("seed %d: summed as %+v, want %+v", seed, x, w)
					}
				}
			}
		}
	}
}

// The largest totals are the first of all of them in order, and the rest is the
// sum of the others.
func TestTheLargestTotalsAreThoseOfAWholeSort(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		list := make([]Total, r.IntN(60))
		for i := range list {
			list[i] = Total{Tensor: event.StringID(i), Bytes: r.Int64N(1 << r.IntN(63)), Waste: r.Int64N(9), Count: 1 + r.IntN(4)}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b Total) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
		n := r.IntN(70)
		top, rest := Largest(list, n)
		var others Total
		for i := range want {
			if i >= n {
				others.plus(&want[i])
			}
		}
		if !slices.Equal(top, want[:min(n, len(want))]) || rest != others {
			t.Fatalf("seed %d: the %d largest of %d are %+v and %+v, want %+v and %+v", seed, n, len(list), top, rest, want[:min(n, len(want))], others)
		}
	}
}
