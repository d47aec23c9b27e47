package store

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every instant of short histories, in every range worth trying: what is open
// must be exactly what a walk over all records says.
func TestReachingFindsWhatIsOpenAtEveryInstant(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 9))
		var x lifetimes[uint32]
		var begin, end []uint32
		var open []int
		now := uint32(0)
		for x.end.n < 700 {
			now++
			if len(open) > 0 && r.IntN(9) < 4 {
				k := r.IntN(len(open))
				i := open[k]
				open = slices.Delete(open, k, k+1)
				x.finish(i, now)
				end[i] = now
				continue
			}
			open = append(open, x.end.n)
			x.begin()
			begin, end = append(begin, now), append(end, 0)
		}
		for at := range now + 1 {
			from, to := 0, len(begin)
			if at%3 == 0 {
				from = r.IntN(to)
				to = from + r.IntN(to-from+1)
			}
			var want []int32
			for i := from; i < to; i++ {
				if end[i] == 0 || end[i] > at {
					want = append(want, int32(i))
				}
			}
			if got := x.reaching(nil, from, to, at, 0); !slices.Equal(got, want) {
				t.Fatalf("seed %d, instant %d, records [%d,%d): got %v, want %v", seed, at, from, to, got, want)
			}
			if got := x.reaching(nil, from, to, at, 3); !slices.Equal(got, want[:min(3, len(want))]) {
				t.Fatalf("seed %d, instant %d: the first three are %v, want %v", seed, at, got, want)
			}
		}
	}
}
