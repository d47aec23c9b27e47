package bfc

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// model is a free set as one sorted list.
type model []entry

func (m *model) find(size, key uint64) int {
	i, _ := slices.BinarySearchFunc(*m, entry{size: size, key: key}, func(a, b entry) int {
		switch {
		case a.less(b.size, b.key):
			return -1
		case b.less(a.size, a.key):
			return 1
		}
		return 0
	})
	return i
}

func (m *model) insert(e entry) { *m = slices.Insert(*m, m.find(e.size, e.key), e) }
func (m *model) remove(e entry) { i := m.find(e.size, e.key); *m = slices.Delete(*m, i, i+1) }

func compareSet(t *testing.T, s *freeSet, m model) {
	t.Helper()
	var got []uint32
	s.each(0, func(h uint32) bool { got = append(got, h); return true })
	if len(got) != len(m) || s.count != len(m) {
		t.Fatalf("%d entries, count %d, want %d", len(got), s.count, len(m))
	}
	for i, h := range got {
		if m[i].h != h {
			t.Fatalf("entry %d is %d, want %+v", i, h, m[i])
		}
	}
	largest := uint64(0)
	if len(m) > 0 {
		largest = m[len(m)-1].size
	}
	if s.largest() != largest {
		t.Fatalf("largest is %d, want %d", s.largest(), largest)
	}
}

// TestFreeSetIsASortedList compares with a sorted list, with few sizes, so
// that runs have many leaves and entries change places across them.
func TestFreeSetIsASortedList(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		s, m := new(freeSet), model{}
		next := uint32(0)
		fresh := func() entry {
			next++
			g := uint64(64 + rnd.IntN(1+int(seed)))
			if rnd.IntN(20) == 0 {
				g = 1 + rnd.Uint64N(1<<rnd.IntN(40))
			}
			return entry{g << minBits, rnd.Uint64N(1<<40) << minBits, next}
		}
		for step := range 1500 {
			pick := func() entry { return m[rnd.IntN(len(m))] }
			switch k := rnd.IntN(10); {
			case k < 4 || len(m) == 0:
				e := fresh()
				s.insert(e.size, e.key, e.h)
				m.insert(e)
			case k < 6:
				e := pick()
				s.remove(e.size, e.key)
				m.remove(e)
			case k < 9:
				old, e := pick(), fresh()
				if rnd.IntN(2) == 0 {
					// Near its old place, as a cut or grown chunk is.
					e.size = old.size
					e.key = old.key + rnd.Uint64N(1<<36)<<minBits
				}
				s.change(s.locate(old.size, old.key), e.size, e.key, e.h)
				m.remove(old)
				m.insert(e)
			default:
				size := fresh().size
				i := m.find(size, 0)
				h, at := s.first(size)
				if i == len(m) {
					if h != none {
						t.Fatalf("seed %d: found %d where nothing fits", seed, h)
					}
					continue
				}
				if h != m[i].h {
					t.Fatalf("seed %d, step %d: first is %d, want %+v", seed, step, h, m[i])
				}
				s.removeAt(at)
				m.remove(m[i])
			}
			if step%50 == 0 {
				compareSet(t, s, m)
			}
		}
		compareSet(t, s, m)
	}
}

func TestRunsAreInOrderOfSize(t *testing.T) {
	last := 0
	for _, g := range []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 18, 31, 32, 35, 36, 1000, 1 << 20, 1<<56 - 1} {
		if i := runOf(g << minBits); i < last || i >= numRuns {
			t.Errorf("%d granules are in run %d, after run %d", g, i, last)
		} else {
			last = i
		}
	}
	if last != numRuns-1 {
		t.Errorf("the largest size is in run %d of %d", last, numRuns)
	}
}

// TestIndexWithCollidingAddresses uses addresses that share their low bits.
func TestIndexWithCollidingAddresses(t *testing.T) {
	a := &Allocator{}
	rnd := rand.New(rand.NewPCG(1, 2))
	present := map[uint64]uint32{}
	var order []uint64
	for i := range 20000 {
		if rnd.IntN(5) < 3 || len(order) == 0 {
			addr := rnd.Uint64N(3000)<<minBits | rnd.Uint64N(4)<<40
			if _, dup := present[addr]; dup {
				continue
			}
			h := uint32(len(a.chunks))
			a.chunks = append(a.chunks, chunk{addr: addr})
			a.index.add(addr, h)
			present[addr] = h
			order = append(order, addr)
		} else {
			k := rnd.IntN(len(order))
			addr := order[k]
			order[k] = order[len(order)-1]
			order = order[:len(order)-1]
			a.index.remove(addr, present[addr])
			delete(present, addr)
			if a.at(addr) != none {
				t.Fatalf("step %d: %x is still found", i, addr)
			}
		}
	}
	for _, addr := range order {
		if a.at(addr) != present[addr] {
			t.Fatalf("%x is handle %d, want %d", addr, a.at(addr), present[addr])
		}
	}
}
