package bfc

import "slices"

// longRun is a run with many chunks: leaves of sorted entries, descending over
// all of them, so that the best entry is the last. Its chunks have inLong
// in their run.
type longRun struct {
	leaves []*leaf // never an empty one
	count  int
}

const leafSize = 32

type entry struct {
	size, key uint64
	h         uint32
}

func (e *entry) less(size, key uint64) bool {
	return e.size < size || e.size == size && e.key < key
}

type leaf struct {
	n int
	e [leafSize]entry
}

// search returns how many entries are at least (size, key).
func (l *leaf) search(size, key uint64) int {
	lo, hi := 0, l.n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if l.e[m&(leafSize-1)].less(size, key) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// leafOf returns the leaf in whose span (size, key) falls.
func (r *longRun) leafOf(size, key uint64) int {
	lo, hi := 0, len(r.leaves)-1
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		l := r.leaves[m]
		if e := &l.e[l.n-1]; e.less(size, key) || e.size == size && e.key == key {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

func (r *longRun) lowest() uint32 {
	l := r.leaves[len(r.leaves)-1]
	return l.e[l.n-1].h
}

func (r *longRun) largest() uint64 { return r.leaves[0].e[0].size }

// fit returns the first entry of at least size bytes, or none.
func (r *longRun) fit(size uint64) uint32 {
	for at := r.leafOf(size, 0); at >= 0; at-- {
		l := r.leaves[at]
		if p := l.search(size, 0); p > 0 {
			return l.e[p-1].h
		}
	}
	return none
}

// each is freeSet.each for this run; it reports whether to go on.
func (r *longRun) each(size uint64, f func(h uint32) bool) bool {
	for _, l := range slices.Backward(r.leaves) {
		for p := l.n - 1; p >= 0; p-- {
			if l.e[p].size >= size && !f(l.e[p].h) {
				return false
			}
		}
	}
	return true
}

// lengthen turns the list of run i into a longRun.
func (s *freeSet) lengthen(chunks []chunk, i uint64) {
	k := uint32(len(s.long))
	if n := len(s.idle); n > 0 {
		k = s.idle[n-1]
		s.idle = s.idle[:n-1]
	} else {
		s.long = append(s.long, longRun{})
	}
	h := s.heads[i]
	s.heads[i] = longMark | k
	for h != none {
		c := &chunks[h]
		c.run |= inLong
		s.longInsert(longMark|k, c.size, c.addr^s.flip, h)
		h = c.up
	}
}

// shorten turns the longRun of run i into a list.
func (s *freeSet) shorten(chunks []chunk, i uint64) {
	k := s.heads[i] &^ longMark
	r := &s.long[k]
	up := none
	for at, l := range r.leaves {
		for p := range l.n {
			h := l.e[p].h
			chunks[h].run &^= inLong
			chunks[h].up = up
			chunks[up].down = h
			up = h
		}
		s.spare = append(s.spare, l)
		r.leaves[at] = nil
	}
	s.heads[i] = up
	r.leaves, r.count = r.leaves[:0], 0
	s.idle = append(s.idle, k)
}

func (s *freeSet) newLeaf() *leaf {
	if n := len(s.spare); n > 0 {
		l := s.spare[n-1]
		s.spare = s.spare[:n-1]
		l.n = 0
		return l
	}
	return new(leaf)
}

func (s *freeSet) longInsert(head uint32, size, key uint64, h uint32) {
	r := &s.long[head&^longMark]
	r.count++
	if len(r.leaves) == 0 {
		r.leaves = append(r.leaves, s.newLeaf())
	}
	at := r.leafOf(size, key)
	l := r.leaves[at]
	if l.n == leafSize {
		l = s.divide(r, at, size, key)
	}
	p := l.search(size, key)
	copy(l.e[p+1:l.n+1], l.e[p:l.n])
	l.e[p] = entry{size, key, h}
	l.n++
}

// divide moves the larger half of a full leaf into a new one before it, and
// returns the one that (size, key) belongs into.
func (s *freeSet) divide(r *longRun, at int, size, key uint64) *leaf {
	l, n := r.leaves[at], s.newLeaf()
	const half = leafSize / 2
	n.n = copy(n.e[:], l.e[:half])
	l.n = copy(l.e[:], l.e[half:])
	r.leaves = append(r.leaves, nil)
	copy(r.leaves[at+1:], r.leaves[at:])
	r.leaves[at] = n
	if n.e[n.n-1].less(size, key) {
		return n
	}
	return l
}

// longRemove takes c out of the longRun of run i.
func (s *freeSet) longRemove(chunks []chunk, i uint64, c *chunk) {
	r := &s.long[s.heads[i]&^longMark]
	size, key := c.size, c.addr^s.flip
	at := r.leafOf(size, key)
	l := r.leaves[at]
	p := l.search(size, key) - 1
	copy(l.e[p:l.n-1], l.e[p+1:l.n])
	if l.n--; l.n == 0 {
		s.spare = append(s.spare, l)
		r.leaves = append(r.leaves[:at], r.leaves[at+1:]...)
	}
	if r.count--; r.count <= s.walk/4 {
		s.shorten(chunks, i)
	}
}
