package torch

import (
	"math/rand/v2"
	"sort"
	"testing"
)

// TestFreeSetKeepsItsOrder holds the set against a sorted list, with so many
// entries of few sizes that runs need several leaves.
func TestFreeSetKeepsItsOrder(t *testing.T) {
	for _, sizes := range []int64{1, 2, 7, 300, 1 << 40} {
		rnd := rand.New(rand.NewPCG(uint64(sizes), 1))
		var s freeSet
		var list []entry
		at := func(size int64, addr uint64) int {
			return sort.Search(len(list), func(i int) bool { return !list[i].before(size, addr) })
		}
		for step := range 6000 {
			size := 512 * (1 + rnd.Int64N(sizes))
			addr := 512 * rnd.Uint64N(1<<30)
			i := at(size, addr)
			there := i < len(list) && list[i].size == size && list[i].addr == addr
			switch {
			case step < 3000 && rnd.IntN(3) > 0 || step >= 3000 && rnd.IntN(3) == 0 || len(list) == 0:
				if there {
					continue
				}
				s.insert(size, addr, uint32(step))
				list = append(list, entry{})
				copy(list[i+1:], list[i:])
				list[i] = entry{size, addr, uint32(step)}
			case rnd.IntN(4) == 0:
				// grow, with the address or below it, as merging does.
				k := rnd.IntN(len(list))
				e := list[k]
				list = append(list[:k], list[k+1:]...)
				big := entry{e.size + 512*(1+rnd.Int64N(3)), e.addr - 512*rnd.Uint64N(2), e.h}
				if k := at(big.size, big.addr); k < len(list) && list[k].size == big.size && list[k].addr == big.addr {
					s.remove(e.size, e.addr)
					break
				}
				s.grow(s.locate(e.size, e.addr), big.size, big.addr, big.h)
				k = at(big.size, big.addr)
				list = append(list, entry{})
				copy(list[k+1:], list[k:])
				list[k] = big
			case rnd.IntN(2) == 0:
				e := list[rnd.IntN(len(list))]
				s.remove(e.size, e.addr)
				k := at(e.size, e.addr)
				list = append(list[:k], list[k+1:]...)
			default:
				k := at(size, 0)
				h, x := s.first(size, 0)
				if (h == none) != (k == len(list)) || h != none && h != list[k].h {
					t.Fatalf("step %d: first of %d is %d", step, size, h)
				}
				if h != none {
					s.removeAt(x)
					list = append(list[:k], list[k+1:]...)
				}
			}
			compareSet(t, &s, list, size, addr)
		}
		n := 0
		s.each(func(h uint32) {
			if list[n].h != h {
				t.Fatalf("entry %d is %d, want %d", n, h, list[n].h)
			}
			n++
		})
		if n != len(list) {
			t.Fatalf("%d entries, want %d", n, len(list))
		}
	}
}

func compareSet(t *testing.T, s *freeSet, list []entry, size int64, addr uint64) {
	t.Helper()
	var bytes, largest int64
	for _, e := range list {
		bytes += e.size
		largest = e.size
	}
	if s.count != len(list) || s.bytes != bytes || s.largest() != largest {
		t.Fatalf("%d entries of %d bytes, largest %d; want %d, %d, %d", s.count, s.bytes, s.largest(), len(list), bytes, largest)
	}
	k := sort.Search(len(list), func(i int) bool { return !list[i].before(size, addr) })
	want := none
	if k > 0 {
		want = list[k-1].h
	}
	if got := s.before(size, addr); got != want {
		t.Fatalf("before (%d, %d) is %d, want %d", size, addr, got, want)
	}
	for k < len(list) && list[k].size == size && list[k].addr == addr {
		k++
	}
	want = none
	if k < len(list) {
		want = list[k].h
	}
	if got, _ := s.after(size, addr); got != want {
		t.Fatalf("after (%d, %d) is %d, want %d", size, addr, got, want)
	}
}
