package bfc

import "math/bits"

// freeSet holds free chunks ordered by size, then key. The key is the address,
// or its complement where equal sizes are to go from the highest address down.
//
// Upstream keeps one ordered set per power of two. Here every power of two is
// cut into eight runs, which changes no order and leaves most runs with one or
// two entries: finding the best fit is a look at a bitmap and at the end of a
// run. A run is sorted descending, so that its best entry is its last. A run
// that outgrows a leaf continues in further leaves.
type freeSet struct {
	flip    uint64 // all ones for descending addresses
	words   [numWords]uint64
	summary uint64 // which words are not zero
	runs    [numRuns]run
	spare   []*leaf
	count   int
}

const (
	numRuns  = (56-3)*8 + 8 // the runs of sizes up to 2^64
	numWords = (numRuns + 63) / 64
	leafSize = 32
	// shortRun entries are looked through and moved one by one.
	shortRun = 8
)

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

// run is descending over rest[0], rest[1], …, low.
type run struct {
	low  *leaf // the smallest entries; nil until first used; empty only if the run is
	rest []*leaf
}

// runOf numbers the runs: sizes of 1 to 7 granules have one each, then eight
// for every power of two.
func runOf(size uint64) int {
	g := size >> minBits
	if g < 8 {
		return int(g)
	}
	k := bits.Len64(g)
	return (k-3)*8 + int(g>>(uint(k-4)&63)&7)
}

func (s *freeSet) insert(size, key uint64, h uint32) {
	s.count++
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
		l.e[0] = entry{size, key, h}
		return
	}
	if len(r.rest) > 0 || l.n == leafSize {
		l = s.roomFor(r, size, key)
	}
	l.insert(size, key, h)
}

func (l *leaf) insert(size, key uint64, h uint32) {
	n := l.n
	p := n
	if n <= shortRun {
		for p > 0 && l.e[p-1].less(size, key) {
			l.e[p] = l.e[p-1]
			p--
		}
	} else {
		p = l.search(size, key)
		copy(l.e[p+1:n+1], l.e[p:n])
	}
	l.e[p] = entry{size, key, h}
	l.n = n + 1
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

// leafOf returns the leaf in whose span (size, key) falls: the position in
// rest, or len(rest) for low.
func (r *run) leafOf(size, key uint64) int {
	lo, hi := 0, len(r.rest)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		l := r.rest[m]
		if l.e[l.n-1].less(size, key) || l.e[l.n-1].size == size && l.e[l.n-1].key == key {
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

// roomFor returns the leaf that (size, key) belongs into, split if it was full.
func (s *freeSet) roomFor(r *run, size, key uint64) *leaf {
	i := r.leafOf(size, key)
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
	if n.e[n.n-1].less(size, key) {
		return n
	}
	return l
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

// spot is the place of an entry: run, leaf and position in it.
type spot struct{ run, leaf, p int }

// locate finds the entry (size, key), which must be there.
func (s *freeSet) locate(size, key uint64) spot {
	i := runOf(size)
	r := &s.runs[i]
	at := len(r.rest)
	if at > 0 {
		at = r.leafOf(size, key)
	}
	l := r.leaf(at)
	p := l.n - 1
	if p < shortRun {
		for l.e[p].key != key || l.e[p].size != size {
			p--
		}
	} else {
		p = l.search(size, key) - 1
	}
	return spot{i, at, p}
}

func (s *freeSet) remove(size, key uint64) { s.removeAt(s.locate(size, key)) }

// change makes the entry at x another one. Most chunks that are cut or grow
// stay where they are in the order, and then nothing moves.
func (s *freeSet) change(x spot, size, key uint64, h uint32) {
	if runOf(size) == x.run {
		r := &s.runs[x.run]
		l := r.leaf(x.leaf)
		above := x.p > 0 && !l.e[x.p-1].less(size, key) || x.p == 0 && x.leaf == 0
		below := x.p < l.n-1 && l.e[x.p+1].less(size, key) || x.p == l.n-1 && x.leaf == len(r.rest)
		if above && below {
			l.e[x.p] = entry{size, key, h}
			return
		}
	}
	s.removeAt(x)
	s.insert(size, key, h)
}

// removeAt takes out the entry at x.
func (s *freeSet) removeAt(x spot) {
	s.count--
	l := s.runs[x.run].leaf(x.leaf)
	l.n--
	if l.n-x.p <= shortRun {
		for p := x.p; p < l.n; p++ {
			l.e[p] = l.e[p+1]
		}
	} else {
		copy(l.e[x.p:l.n], l.e[x.p+1:l.n+1])
	}
	if l.n == 0 {
		s.emptied(x.run, x.leaf)
	}
}

func (s *freeSet) emptied(i, at int) {
	r := &s.runs[i]
	last := len(r.rest) - 1
	switch {
	case last < 0:
		s.words[i>>6] &^= 1 << (i & 63)
		if s.words[i>>6] == 0 {
			s.summary &^= 1 << (i >> 6)
		}
		return
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
func (s *freeSet) nextRun(i int) int {
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

// first returns the first chunk of at least size bytes and its place, or none.
func (s *freeSet) first(size uint64) (uint32, spot) {
	home := runOf(size)
	i := s.nextRun(home)
	if i == home {
		r := &s.runs[i]
		if at, p := r.fit(size); p >= 0 {
			return r.leaf(at).e[p].h, spot{i, at, p}
		}
		i = s.nextRun(i + 1)
	}
	if i < 0 {
		return none, spot{}
	}
	r := &s.runs[i]
	p := r.low.n - 1
	return r.low.e[p].h, spot{i, len(r.rest), p}
}

// fit finds the smallest entry of at least size bytes; p is -1 when the run
// has none.
func (r *run) fit(size uint64) (at, p int) {
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

// each calls f for the chunks of at least size bytes in order until it returns
// false. f must not change the set.
func (s *freeSet) each(size uint64, f func(h uint32) bool) {
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
	}
}

// largest is the size of the largest chunk, 0 when there is none.
func (s *freeSet) largest() uint64 {
	if s.summary == 0 {
		return 0
	}
	w := 63 - bits.LeadingZeros64(s.summary)
	r := &s.runs[w<<6+63-bits.LeadingZeros64(s.words[w])]
	return r.leaf(0).e[0].size
}
