// Package bestfit is a set of free chunks ordered by size, then address: the
// first that is large enough is the best fit, equal sizes from the lowest
// address up.
//
// Every power of two is cut into eight runs, which changes no order and leaves
// most runs with one or two entries: finding the best fit is a look at a
// bitmap and at the end of a run. A run is sorted descending, so that its best
// entry is its last, and goes on in further leaves when it outgrows one.
package bestfit

import "math/bits"

// None is the handle of no chunk.
const None = ^uint32(0)

const (
	minBits  = 8
	numRuns  = (56-3)*8 + 8 // the runs of sizes up to 2^64
	numWords = (numRuns + 63) / 64
	leafSize = 32
	// shortRun entries are looked through and moved one by one.
	shortRun = 8
)

// Set is a set of free chunks. The zero value is empty.
type Set struct {
	summary uint64 // which words are not zero
	words   [numWords]uint64
	runs    [numRuns]run
	spare   []*leaf
	count   int
	bytes   int64
}

type entry struct {
	size int64
	addr uint64
	h    uint32
}

func (e *entry) less(size int64, addr uint64) bool {
	return e.size < size || e.size == size && e.addr < addr
}

type leaf struct {
	n int
	e [leafSize]entry
}

// run is descending over rest[0], rest[1], …, low.
type run struct {
	low  *leaf // the smallest entries; nil until first used; empty only if the run is
	rest []*leaf
}

// Spot is a place in a set, good until the set changes.
type Spot struct{ run, leaf, at int }

// Len is the number of chunks.
func (s *Set) Len() int { return s.count }

// Bytes is the sum of their sizes.
func (s *Set) Bytes() int64 { return s.bytes }

// runOf numbers the runs: sizes of 1 to 7 granules have one each, then eight
// for every power of two.
func runOf(size int64) int {
	g := uint64(size) >> minBits
	if g < 8 {
		return int(g)
	}
	k := bits.Len64(g)
	return (k-3)*8 + int(g>>(uint(k-4)&63)&7)
}

// Insert adds a chunk.
func (s *Set) Insert(size int64, addr uint64, h uint32) {
	s.count++
	s.bytes += size
	i := runOf(size)
	r := &s.runs[i]
	l := r.low
	if l == nil {
		l = s.newLeaf()
		r.low = l
	}
	if l.n == 0 {
		s.words[i>>6] |= 1 << (i & 63)
		s.summary |= 1 << (i >> 6)
		l.n = 1
		l.e[0] = entry{size, addr, h}
		return
	}
	if len(r.rest) > 0 || l.n == leafSize {
		l = s.roomFor(r, size, addr)
	} else if n := l.n; !l.e[n-1].less(size, addr) {
		l.e[n] = entry{size, addr, h}
		l.n = n + 1
		return
	}
	l.insert(entry{size, addr, h})
}

func (l *leaf) insert(e entry) {
	n := l.n
	p := n
	if n <= shortRun {
		for p > 0 && l.e[p-1].less(e.size, e.addr) {
			l.e[p] = l.e[p-1]
			p--
		}
	} else {
		p = l.search(e.size, e.addr)
		copy(l.e[p+1:n+1], l.e[p:n])
	}
	l.e[p] = e
	l.n = n + 1
}

// search returns how many entries are at least (size, addr).
func (l *leaf) search(size int64, addr uint64) int {
	lo, hi := 0, l.n
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if l.e[m&(leafSize-1)].less(size, addr) {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// leafOf returns the leaf in whose span (size, addr) falls: the position in
// rest, or len(rest) for low.
func (r *run) leafOf(size int64, addr uint64) int {
	lo, hi := 0, len(r.rest)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		l := r.rest[m]
		if last := &l.e[l.n-1]; last.less(size, addr) || last.size == size && last.addr == addr {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

func (r *run) leaf(i int) *leaf {
	if i == len(r.rest) {
		return r.low
	}
	return r.rest[i]
}

// roomFor returns the leaf that (size, addr) belongs into, split if it was full.
func (s *Set) roomFor(r *run, size int64, addr uint64) *leaf {
	i := r.leafOf(size, addr)
	l := r.leaf(i)
	if l.n < leafSize {
		return l
	}
	// The larger half moves to a new leaf that comes before l.
	n := s.newLeaf()
	const half = leafSize / 2
	n.n = copy(n.e[:], l.e[:half])
	l.n = copy(l.e[:], l.e[half:])
	r.rest = append(r.rest, nil)
	copy(r.rest[i+1:], r.rest[i:])
	r.rest[i] = n
	if n.e[n.n-1].less(size, addr) {
		return n
	}
	return l
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

// Locate finds a chunk, which must be there.
func (s *Set) Locate(size int64, addr uint64) Spot {
	i := runOf(size)
	r := &s.runs[i]
	at := len(r.rest)
	if at > 0 {
		at = r.leafOf(size, addr)
	}
	l := r.leaf(at)
	p := l.n - 1
	if p < shortRun {
		for l.e[p].addr != addr || l.e[p].size != size {
			p--
		}
	} else {
		p = l.search(size, addr) - 1
	}
	return Spot{i, at, p}
}

// Remove takes out a chunk, which must be there.
func (s *Set) Remove(size int64, addr uint64) { s.RemoveAt(s.Locate(size, addr)) }

// Change makes the entry at x another one. Most chunks that are cut or grow
// stay where they are in the order, and then nothing moves.
func (s *Set) Change(x Spot, size int64, addr uint64, h uint32) {
	if runOf(size) == x.run {
		r := &s.runs[x.run]
		l := r.leaf(x.leaf)
		above := x.at > 0 && !l.e[x.at-1].less(size, addr) || x.at == 0 && x.leaf == 0
		below := x.at < l.n-1 && l.e[x.at+1].less(size, addr) || x.at == l.n-1 && x.leaf == len(r.rest)
		if above && below {
			s.bytes += size - l.e[x.at].size
			l.e[x.at] = entry{size, addr, h}
			return
		}
	}
	s.RemoveAt(x)
	s.Insert(size, addr, h)
}

// RemoveAt takes out the entry at x.
func (s *Set) RemoveAt(x Spot) {
	l := s.runs[x.run].leaf(x.leaf)
	s.count--
	s.bytes -= l.e[x.at].size
	l.n--
	if l.n-x.at <= shortRun {
		for p := x.at; p < l.n; p++ {
			l.e[p] = l.e[p+1]
		}
	} else {
		copy(l.e[x.at:l.n], l.e[x.at+1:l.n+1])
	}
	if l.n == 0 {
		s.emptied(x.run, x.leaf)
	}
}

func (s *Set) emptied(i, at int) {
	r := &s.runs[i]
	last := len(r.rest) - 1
	switch {
	case last < 0:
		s.words[i>>6] &^= 1 << (i & 63)
		if s.words[i>>6] == 0 {
			s.summary &^= 1 << (i >> 6)
		}
	case at > last: // low ran dry
		s.spare = append(s.spare, r.low)
		r.low = r.rest[last]
		r.rest = r.rest[:last]
	default:
		s.spare = append(s.spare, r.rest[at])
		r.rest = append(r.rest[:at], r.rest[at+1:]...)
	}
}

// nextRun returns the first run from i on that has entries, or -1.
func (s *Set) nextRun(i int) int {
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

// First returns the best fit for size and its place, or None.
func (s *Set) First(size int64) (uint32, Spot) {
	home := runOf(size)
	i := s.nextRun(home)
	if i == home {
		r := &s.runs[i]
		if p := r.low.n - 1; r.low.e[p].size >= size {
			return r.low.e[p].h, Spot{i, len(r.rest), p}
		}
		if at, p := r.fit(size); p >= 0 {
			return r.leaf(at).e[p].h, Spot{i, at, p}
		}
		if i++; i == numRuns {
			return None, Spot{}
		}
		i = s.nextRun(i)
	}
	if i < 0 {
		return None, Spot{}
	}
	r := &s.runs[i]
	p := r.low.n - 1
	return r.low.e[p].h, Spot{i, len(r.rest), p}
}

// fit finds the smallest entry of at least size bytes; p is -1 when the run
// has none.
func (r *run) fit(size int64) (at, p int) {
	for at = len(r.rest); at >= 0; at-- {
		l := r.leaf(at)
		if p = l.n - 1; l.e[p].size >= size {
			return at, p
		}
		if l.e[0].size >= size {
			return at, l.search(size, 0) - 1
		}
	}
	return 0, -1
}

// Each calls f for the chunks of at least size bytes in order until it returns
// false. f must not change the set.
func (s *Set) Each(size int64, f func(h uint32) bool) {
	for i := s.nextRun(runOf(size)); i >= 0; i = s.nextRun(i + 1) {
		r := &s.runs[i]
		for at := len(r.rest); at >= 0; at-- {
			l := r.leaf(at)
			for p := l.n - 1; p >= 0; p-- {
				if l.e[p].size >= size && !f(l.e[p].h) {
					return
				}
			}
		}
		if i+1 == numRuns {
			return
		}
	}
}

// Largest is the size of the largest chunk, 0 when there is none.
func (s *Set) Largest() int64 {
	if s.summary == 0 {
		return 0
	}
	w := 63 - bits.LeadingZeros64(s.summary)
	r := &s.runs[w<<6+63-bits.LeadingZeros64(s.words[w])]
	return r.leaf(0).e[0].size
}
