package firstfit

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The set against a sorted slice.
func TestTheSetIsASortedList(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s Set
		var list []entry
		for step := range 1500 {
			switch k := rnd.IntN(5); {
			case k < 2 || len(list) == 0 || step < 200:
				e := entry{uint64(rnd.IntN(1<<20)) * 4096, 64 * (1 + int64(rnd.IntN(30))), uint32(step)}
				if slices.ContainsFunc(list, func(x entry) bool { return x.addr&^4095 == e.addr }) {
					continue
				}
				s.Insert(e.addr, e.size, e.h)
				list = append(list, e)
			case k == 2:
				i := rnd.IntN(len(list))
				s.Remove(list[i].addr)
				list = slices.Delete(list, i, i+1)
			case k == 3: // within its 4096 bytes, it keeps its place
				e := &list[rnd.IntN(len(list))]
				to := e.addr&^4095 + 64*uint64(rnd.IntN(30))
				n := 64 * (1 + int64(rnd.IntN(30)))
				s.Change(e.addr, to, n, e.h)
				e.addr, e.size = to, n
			}
			slices.SortFunc(list, func(x, y entry) int { return int(int64(x.addr - y.addr)) })
			want, align := 64*(1+int64(rnd.IntN(32))), uint64(64)<<rnd.IntN(6)
			first, aligned := None, None
			var bytes, largest int64
			for _, e := range list {
				bytes += e.size
				largest = max(largest, e.size)
				if first == None && e.size >= want {
					first = e.h
				}
				if pad := -e.addr & (align - 1); aligned == None && e.size >= want+int64(pad) {
					aligned = e.h
				}
			}
			if got := s.First(want); got != first {
				t.Fatalf("seed %d, step %d: first of %d is %d, want %d", seed, step, want, got, first)
			}
			if got := s.FirstAligned(want, align); got != aligned {
				t.Fatalf("seed %d, step %d: first of %d at %d is %d, want %d", seed, step, want, align, got, aligned)
			}
			last := None
			if len(list) > 0 {
				last = list[len(list)-1].h
			}
			if s.Len() != len(list) || s.Bytes() != bytes || s.Largest() != largest || s.Last() != last {
				t.Fatalf("seed %d, step %d: %d entries of %d bytes, largest %d, last %d", seed, step, s.Len(), s.Bytes(), s.Largest(), s.Last())
			}
			i := 0
			s.Each(func(h uint32) bool {
				if h != list[i].h {
					t.Fatalf("seed %d, step %d: entry %d is %d, want %d", seed, step, i, h, list[i].h)
				}
				i++
				return true
			})
		}
	}
}
