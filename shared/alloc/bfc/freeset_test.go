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

func compareSet(t *testing.T, s *freeSet, chunks []chunk, m model) {
	t.Helper()
	var got []uint32
	s.each(chunks, 0, func(h uint32) bool { got = append(got, h); return true })
	if len(got) != len(m) {
		t.Fatalf("%d chunks, want %d", len(got), len(m))
	}
	for i, h := range got {
		if m[i].h != h {
			t.Fatalf("chunk %d is %d, want %+v", i, h, m[i])
		}
	}
	largest := uint64(0)
	if len(m) > 0 {
		largest = m[len(m)-1].size
	}
	if s.largest(chunks) != largest {
		t.Fatalf("largest is %d, want %d", s.largest(chunks), largest)
	}
}

// TestFreeSetIsASortedList compares with a sorted list, with few sizes, so
// that lists become long runs of many leaves and short again.
func TestFreeSetIsASortedList(t *testing.T) {
	long, short := 0, 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		s, m := &freeSet{walk: longWalk}, model{}
		if seed%3 == 2 {
			s.flip = ^uint64(0)
		}
		chunks := []chunk{nobody}
		fresh := func() entry {
			g := uint64(64 + rnd.IntN(1+int(seed)))
			if rnd.IntN(20) == 0 {
				g = 1 + rnd.Uint64N(1<<rnd.IntN(40))
			}
			addr := rnd.Uint64N(1<<40) << minBits
			chunks = append(chunks, chunk{addr: addr, size: g << minBits})
			return entry{g << minBits, addr ^ s.flip, uint32(len(chunks) - 1)}
		}
		growing := 3 // of fourteen steps
		for step := range 2500 {
			if step%700 == 0 {
				growing = 12 - growing
			}
			switch k := rnd.IntN(14); {
			case k < growing || len(m) == 0:
				e := fresh()
				s.insert(chunks, e.h)
				m.insert(e)
			case k < 10:
				e := m[rnd.IntN(len(m))]
				s.remove(chunks, e.h)
				m.remove(e)
			default:
				size := fresh().size
				i := m.find(size, 0)
				h := s.first(chunks, size)
				if i == len(m) {
					if h != none {
						t.Fatalf("seed %d: found %d where nothing fits", seed, h)
					}
					continue
				}
				if h != m[i].h {
					t.Fatalf("seed %d, step %d: first is %d, want %+v", seed, step, h, m[i])
				}
				s.remove(chunks, h)
				m.remove(m[i])
			}
			if step%50 == 0 {
				compareSet(t, s, chunks, m)
			}
			long = max(long, len(s.long)-len(s.idle))
			if len(s.idle) > 0 {
				short++
			}
		}
		compareSet(t, s, chunks, m)
		for len(m) > 0 {
			e := m[rnd.IntN(len(m))]
			s.remove(chunks, e.h)
			m.remove(e)
		}
		if compareSet(t, s, chunks, m); s.words != [numRuns / 64]uint64{} || len(s.idle) != len(s.long) {
			t.Fatalf("seed %d: an empty set has marks left", seed)
		}
	}
	if long == 0 || short == 0 {
		t.Errorf("no list became a long run (%d) or a list again (%d)", long, short)
	}
}

func TestRunsAreInOrderOfSize(t *testing.T) {
	last := uint64(0)
	for _, g := range []uint64{1, 2, 3, 7, 8, 15, 16, 17, 18, 31, 32, 33, 34, 35, 36, 63, 64, 68, 1000, 1 << 20, 1<<56 - 1} {
		if i := runOf(g << minBits); i < last || i >= numRuns {
			t.Errorf("%d granules are in run %d, after run %d", g, i, last)
		} else {
			last = i
		}
	}
	if last != 847 {
		t.Errorf("the largest size is in run %d", last)
	}
}

// TestIndexWithCollidingAddresses uses more chunks than slots, and addresses
// that share their low bits.
func TestIndexWithCollidingAddresses(t *testing.T) {
	a := &Allocator{}
	a.clearTables()
	rnd := rand.New(rand.NewPCG(1, 2))
	present := map[uint64]uint32{}
	var order []uint64
	for i := range 40000 {
		if rnd.IntN(5) < 3 || len(order) == 0 {
			addr := rnd.Uint64N(3000)<<minBits | rnd.Uint64N(8)<<40
			if _, dup := present[addr]; dup {
				continue
			}
			h := uint32(len(a.chunks))
			a.chunks = append(a.chunks, chunk{addr: addr})
			a.index.reserve(a.chunks)
			a.index.add(a.chunks, h)
			present[addr] = h
			order = append(order, addr)
		} else {
			k := rnd.IntN(len(order))
			addr := order[k]
			order[k] = order[len(order)-1]
			order = order[:len(order)-1]
			a.index.remove(a.chunks, present[addr])
			delete(present, addr)
			if a.at(addr) != none {
				t.Fatalf("step %d: %x is still found", i, addr)
			}
		}
		if i%5000 == 0 && a.indexed() != len(order) {
			t.Fatalf("step %d: %d indexed, want %d", i, a.indexed(), len(order))
		}
	}
	for _, addr := range order {
		if a.at(addr) != present[addr] {
			t.Fatalf("%x is handle %d, want %d", addr, a.at(addr), present[addr])
		}
	}
}
