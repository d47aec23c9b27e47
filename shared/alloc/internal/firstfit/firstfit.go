// Package firstfit is a set of free chunks ordered by address that finds the
// lowest one of at least a size.
//
// The chunks lie in sorted leaves of bounded length, each with the size of its
// largest: a search looks at the maxima, then through one leaf.
package firstfit

// None is the handle of no chunk.
const None = ^uint32(0)

const leafSize = 64

// Set is a set of free chunks. The zero value is empty.
type Set struct {
	tops  []top
	spare []*leaf
	count int
	bytes int64
}

// top is what the search needs of a leaf. Leaves are never empty.
type top struct {
	first   uint64 // lowest address
	largest int64
	l       *leaf
}

type leaf struct {
	n int
	e [leafSize]entry
}

type entry struct {
	addr uint64
	size int64
	h    uint32
}

// Len is the number of chunks.
func (s *Set) Len() int { return s.count }

// Bytes is the sum of their sizes.
func (s *Set) Bytes() int64 { return s.bytes }

// leafOf is the last leaf that begins at or below addr, or the first one.
func (s *Set) leafOf(addr uint64) int {
	lo, hi := 0, len(s.tops)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if s.tops[m].first <= addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return max(0, lo-1)
}

// at is the position of the first entry at or above addr.
func (l *leaf) at(addr uint64) int {
	lo, hi := 0, l.n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if l.e[m&(leafSize-1)].addr < addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func (l *leaf) largest() int64 {
	var n int64
	for i := range l.n {
		n = max(n, l.e[i].size)
	}
	return n
}

// Insert adds a chunk.
func (s *Set) Insert(addr uint64, size int64, h uint32) {
	s.count++
	s.bytes += size
	if len(s.tops) == 0 {
		l := s.newLeaf()
		l.n = 1
		l.e[0] = entry{addr, size, h}
		s.tops = append(s.tops, top{addr, size, l})
		return
	}
	i := s.leafOf(addr)
	if s.tops[i].l.n == leafSize {
		s.split(i)
		if addr >= s.tops[i+1].first {
			i++
		}
	}
	t := &s.tops[i]
	p := t.l.at(addr)
	copy(t.l.e[p+1:t.l.n+1], t.l.e[p:t.l.n])
	t.l.e[p] = entry{addr, size, h}
	t.l.n++
	t.largest = max(t.largest, size)
	if p == 0 {
		t.first = addr
	}
}

func (s *Set) split(i int) {
	low, high := s.tops[i].l, s.newLeaf()
	const half = leafSize / 2
	high.n = copy(high.e[:], low.e[half:])
	low.n = half
	s.tops = append(s.tops, top{})
	copy(s.tops[i+2:], s.tops[i+1:])
	s.tops[i].largest = low.largest()
	s.tops[i+1] = top{high.e[0].addr, high.largest(), high}
}

func (s *Set) newLeaf() *leaf {
	if n := len(s.spare); n > 0 {
		l := s.spare[n-1]
		s.spare = s.spare[:n-1]
		l.n = 0
		return l
	}
	return new(leaf)
}

// Remove takes out the chunk at addr, which must be there.
func (s *Set) Remove(addr uint64) {
	i := s.leafOf(addr)
	t := &s.tops[i]
	p := t.l.at(addr)
	size := t.l.e[p].size
	s.count--
	s.bytes -= size
	copy(t.l.e[p:t.l.n-1], t.l.e[p+1:t.l.n])
	if t.l.n--; t.l.n == 0 {
		s.spare = append(s.spare, t.l)
		s.tops = append(s.tops[:i], s.tops[i+1:]...)
		return
	}
	if p == 0 {
		t.first = t.l.e[0].addr
	}
	if size == t.largest {
		t.largest = t.l.largest()
	}
}

// Change gives the chunk at addr another address, size and handle. It must
// keep its place among the others.
func (s *Set) Change(addr, to uint64, size int64, h uint32) {
	i := s.leafOf(addr)
	t := &s.tops[i]
	p := t.l.at(addr)
	old := t.l.e[p].size
	s.bytes += size - old
	t.l.e[p] = entry{to, size, h}
	if p == 0 {
		t.first = to
	}
	switch {
	case size >= t.largest:
		t.largest = size
	case old == t.largest:
		t.largest = t.l.largest()
	}
}

// First is the lowest chunk of at least size bytes, or None.
func (s *Set) First(size int64) uint32 {
	for i := range s.tops {
		if s.tops[i].largest < size {
			continue
		}
		l := s.tops[i].l
		for p := range l.n {
			if l.e[p].size >= size {
				return l.e[p].h
			}
		}
	}
	return None
}

// FirstAligned is the lowest chunk that holds size bytes from a multiple of
// align on, a power of two, or None.
func (s *Set) FirstAligned(size int64, align uint64) uint32 {
	for i := range s.tops {
		if s.tops[i].largest < size {
			continue
		}
		l := s.tops[i].l
		for p := range l.n {
			if e := &l.e[p]; e.size >= size && -e.addr&(align-1) <= uint64(e.size-size) {
				return e.h
			}
		}
	}
	return None
}

// Each calls f for every chunk, ascending, until it returns false. f must not
// change the set.
func (s *Set) Each(f func(h uint32) bool) {
	for i := range s.tops {
		l := s.tops[i].l
		for p := range l.n {
			if !f(l.e[p].h) {
				return
			}
		}
	}
}

// Largest is the size of the largest chunk, 0 when there is none.
func (s *Set) Largest() int64 {
	var n int64
	for i := range s.tops {
		n = max(n, s.tops[i].largest)
	}
	return n
}

// Last is the highest chunk, or None.
func (s *Set) Last() uint32 {
	if len(s.tops) == 0 {
		return None
	}
	l := s.tops[len(s.tops)-1].l
	return l.e[l.n-1].h
}
