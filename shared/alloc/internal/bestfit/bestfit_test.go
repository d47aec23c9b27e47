package bestfit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The set against a sorted slice: every answer, under inserts, removals and
// changes, with many equal sizes.
func TestTheSetIsASortedList(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s Set
		var list []entry
		less := func(x, y entry) int {
			if x.less(y.size, y.addr) {
				return -1
			}
			return 1
		}
		kinds := 1 + rnd.IntN(40)
		size := func() int64 { return 256 * (1 + int64(rnd.IntN(kinds))<<rnd.IntN(12)) }
		for step := range 1500 {
			switch k := rnd.IntN(5); {
			case k < 2 || len(list) == 0 || step < 200:
				e := entry{size(), uint64(step*7919%8192+1) * 4096, uint32(step)}
				s.Insert(e.size, e.addr, e.h)
				list = append(list, e)
			case k == 2:
				i := rnd.IntN(len(list))
				s.Remove(list[i].size, list[i].addr)
				list = slices.Delete(list, i, i+1)
			case k == 3:
				i := rnd.IntN(len(list))
				e := entry{size(), list[i].addr + 64, list[i].h}
				s.Change(s.Locate(list[i].size, list[i].addr), e.size, e.addr, e.h)
				list[i] = e
			}
			slices.SortFunc(list, less)
			want := size()
			h, at := s.First(want)
			i := slices.IndexFunc(list, func(e entry) bool { return e.size >= want })
			if (i < 0) != (h == None) || i >= 0 && (h != list[i].h || at != s.Locate(list[i].size, list[i].addr)) {
				t.Fatalf("seed %d, step %d: first of %d is %d at %v", seed, step, want, h, at)
			}
			if step%50 == 0 {
				var all []uint32
				s.Each(0, func(h uint32) bool { all = append(all, h); return true })
				var bytes int64
				for i, e := range list {
					bytes += e.size
					if all[i] != e.h {
						t.Fatalf("seed %d, step %d: entry %d is %d, want %d", seed, step, i, all[i], e.h)
					}
				}
				if len(all) != len(list) || s.Len() != len(list) || s.Bytes() != bytes || len(list) > 0 && s.Largest() != list[len(list)-1].size {
					t.Fatalf("seed %d, step %d: %d entries of %d bytes, largest %d", seed, step, s.Len(), s.Bytes(), s.Largest())
				}
			}
		}
	}
}
