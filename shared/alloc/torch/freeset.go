package torch

import (
	"math/bits"
	"slices"
)

// freeSet holds the free blocks of one arena, ordered by size, then address.
//
// Every power of two of sizes is cut into sixteen runs, which changes no order
// and leaves most runs with a few entries: finding the best fit is a look at a
// bitmap and at one short sorted array. A run is sorted descending, because
// the entry that is taken most is its smallest, and goes on in further leaves
// when it outgrows one, so that no operation moves more than a leaf.
type freeSet struct {
	summary uint64 // which words are not zero
	words   [numWords]uint64
	runs    [numRuns]run
	spare   []*leaf
	count   int
	bytes   int64
}

const (
	numRuns  = (55-4)*16 + 16 // the runs of sizes up to 2^64
	numWords = (numRuns + 63) / 64
	leafSize = 32
	// shortLeaf entries are looked through and moved one by one.
	shortLeaf = 8
)

type entry struct {
	size int64
	addr uint64
	h    uint32
}

func (e *entry) before(size int64, addr uint64) bool {
	return e.size < size || e.size == size && e.addr < addr
}

type leaf struct {
	n int
	e [leafSize]entry
}

// run is descending over leaves[0], leaves[1], …. Leaves are only empty when
// the run is; then there is at most one.
type run struct{ leaves []*leaf }

// spot is a place in the set.
type spot struct{ run, leaf, at int }

// runOf numbers the runs: sizes of 1 to 15 granules have one each, then sixteen
// for every power of two.
func runOf(size int64) int {
	g := uint64(size) >> granuleBits
	if g < 16 {
		return int(g)
	}
	k := bits.Len64(g)
	return (k-4)*16 + int(g>>(uint(k-5)&63)&15)
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

// notBelow returns how many entries of the leaf are at least (size, addr).
func (l *leaf) notBelow(size int64, addr uint64) int {
	if l.n <= shortLeaf {
		p := l.n
		for p > 0 && l.e[p-1].before(size, addr) {
			p--
		}
		return p
	}
	lo, hi := 0, l.n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if l.e[m&(leafSize-1)].before(size, addr) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// leafFor returns the leaf in whose span (size, addr) falls: the first whose
// smallest entry is not above it, else the last.
func (r *run) leafFor(size int64, addr uint64) int {
	lo, hi := 0, len(r.leaves)-1
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		l := r.leaves[m]
		if e := &l.e[l.n-1]; e.before(size, addr) || e.size == size && e.addr == addr {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

func (s *freeSet) insert(size int64, addr uint64, h uint32) {
	s.count++
	s.bytes += size
	i := runOf(size)
	r := &s.runs[i]
	if len(r.leaves) == 0 {
		r.leaves = append(r.leaves, s.newLeaf())
	}
	at := 0
	if len(r.leaves) > 1 {
		at = r.leafFor(size, addr)
	}
	l := r.leaves[at]
	if l.n == 0 {
		s.words[i>>6] |= 1 << (i & 63)
		s.summary |= 1 << (i >> 6)
	}
	if l.n == leafSize {
		l = s.halve(r, at, size, addr)
	}
	l.insert(size, addr, h)
}

func (l *leaf) insert(size int64, addr uint64, h uint32) {
	n := l.n
	p := n
	if n <= shortLeaf {
		for p > 0 && l.e[p-1].before(size, addr) {
			l.e[p] = l.e[p-1]
			p--
		}
	} else {
		p = l.notBelow(size, addr)
		copy(l.e[p+1:n+1], l.e[p:n])
	}
	l.e[p] = entry{size, addr, h}
	l.n = n + 1
}

// halve splits a full leaf and returns the half that (size, addr) belongs to.
func (s *freeSet) halve(r *run, at int, size int64, addr uint64) *leaf {
	high, low := r.leaves[at], s.newLeaf()
	low.n = copy(low.e[:], high.e[leafSize/2:])
	high.n = leafSize / 2
	r.leaves = append(r.leaves, nil)
	copy(r.leaves[at+2:], r.leaves[at+1:])
	r.leaves[at+1] = low
	if low.e[0].before(size, addr) {
		return high
	}
	return low
}

func (s *freeSet) remove(size int64, addr uint64) { s.removeAt(s.locate(size, addr)) }

// locate finds an entry that is there.
func (s *freeSet) locate(size int64, addr uint64) spot {
	i := runOf(size)
	r := &s.runs[i]
	at := 0
	if len(r.leaves) > 1 {
		at = r.leafFor(size, addr)
	}
	return spot{i, at, r.leaves[at].notBelow(size, addr) - 1}
}

// grow makes the entry at x a larger one, where it lies if its place is in the
// same leaf.
func (s *freeSet) grow(x spot, size int64, addr uint64, h uint32) {
	r := &s.runs[x.run]
	l := r.leaves[x.leaf]
	if runOf(size) != x.run || x.leaf > 0 && l.e[0].before(size, addr) {
		s.removeAt(x)
		s.insert(size, addr, h)
		return
	}
	s.bytes += size - l.e[x.at].size
	p := x.at
	for p > 0 && l.e[p-1].before(size, addr) {
		l.e[p] = l.e[p-1]
		p--
	}
	l.e[p] = entry{size, addr, h}
}

func (s *freeSet) removeAt(x spot) {
	r := &s.runs[x.run]
	l := r.leaves[x.leaf]
	s.count--
	s.bytes -= l.e[x.at].size
	l.n--
	if x.at < l.n {
		copy(l.e[x.at:l.n], l.e[x.at+1:l.n+1])
	}
	if l.n > 0 {
		return
	}
	if len(r.leaves) > 1 {
		s.spare = append(s.spare, l)
		r.leaves = append(r.leaves[:x.leaf], r.leaves[x.leaf+1:]...)
		return
	}
	s.words[x.run>>6] &^= 1 << (x.run & 63)
	if s.words[x.run>>6] == 0 {
		s.summary &^= 1 << (x.run >> 6)
	}
}

// runFrom returns the first run from i on that has entries, or -1.
func (s *freeSet) runFrom(i int) int {
	w := i >> 6
	if m := s.words[w] >> (i & 63); m != 0 {
		return i + bits.TrailingZeros64(m)
	}
	m := s.summary >> (w + 1) << (w + 1)
	if m == 0 {
		return -1
	}
	w = bits.TrailingZeros64(m)
	return w<<6 + bits.TrailingZeros64(s.words[w])
}

// runUpTo returns the last run up to i that has entries, or -1.
func (s *freeSet) runUpTo(i int) int {
	w := i >> 6
	if m := s.words[w] << (63 - i&63); m != 0 {
		return i - bits.LeadingZeros64(m)
	}
	m := s.summary & (1<<w - 1)
	if m == 0 {
		return -1
	}
	w = 63 - bits.LeadingZeros64(m)
	return w<<6 + 63 - bits.LeadingZeros64(s.words[w])
}

// first returns the first entry that is at least (size, addr).
func (s *freeSet) first(size int64, addr uint64) (h uint32, x spot) {
	home := runOf(size)
	i := s.runFrom(home)
	if i == home {
		r := &s.runs[i]
		at := 0
		if len(r.leaves) > 1 {
			at = r.leafFor(size, addr)
		}
		l := r.leaves[at]
		if p := l.notBelow(size, addr) - 1; p >= 0 {
			return l.e[p].h, spot{i, at, p}
		}
		if at > 0 { // the leaf above ends with the next larger entry
			l = r.leaves[at-1]
			return l.e[l.n-1].h, spot{i, at - 1, l.n - 1}
		}
		if i++; i == numRuns {
			return none, spot{}
		}
		i = s.runFrom(i)
	}
	if i < 0 {
		return none, spot{}
	}
	at := len(s.runs[i].leaves) - 1
	l := s.runs[i].leaves[at]
	return l.e[l.n-1].h, spot{i, at, l.n - 1}
}

// after returns the first entry above (size, addr).
func (s *freeSet) after(size int64, addr uint64) (uint32, spot) { return s.first(size, addr+1) }

// before returns the last entry below (size, addr), or none.
func (s *freeSet) before(size int64, addr uint64) uint32 {
	home := runOf(size)
	i := s.runUpTo(home)
	if i == home {
		r := &s.runs[i]
		at := r.leafFor(size, addr)
		for ; at < len(r.leaves); at++ {
			if l := r.leaves[at]; l.notBelow(size, addr) < l.n {
				return l.e[l.notBelow(size, addr)].h
			}
		}
		if i--; i < 0 {
			return none
		}
		i = s.runUpTo(i)
	}
	if i < 0 {
		return none
	}
	return s.runs[i].leaves[0].e[0].h
}

// each calls f for every entry, ascending. f must not change the set.
func (s *freeSet) each(f func(h uint32)) {
	for i := s.runFrom(0); i >= 0; {
		r := &s.runs[i]
		for _, l := range slices.Backward(r.leaves) {
			for p := l.n - 1; p >= 0; p-- {
				f(l.e[p].h)
			}
		}
		if i++; i == numRuns {
			return
		}
		i = s.runFrom(i)
	}
}

// largest is the size of the largest block, 0 when there is none.
func (s *freeSet) largest() int64 {
	i := s.runUpTo(numRuns - 1)
	if i < 0 {
		return 0
	}
	return s.runs[i].leaves[0].e[0].size
}
