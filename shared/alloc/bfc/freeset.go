package bfc

import "math/bits"

// freeSet holds free chunks ordered by size, then key. The key is the address,
// or its complement where equal sizes are to go from the highest address down.
//
// Upstream keeps one ordered set per power of two. Here every power of two is
// cut into sixteen runs, which changes no order and leaves most runs with one
// or two chunks: finding the best fit is a look at a bitmap and at the head of
// a run. A run is a list through the chunks' own records, ascending, so a chunk
// leaves it without being searched for, and takes its place by walking. A walk
// that grows too long turns the list into a longRun.
type freeSet struct {
	flip    uint64 // all ones for descending addresses
	walk    int    // so many steps in a list turn it into a longRun, which turns back at a quarter
	summary uint64 // which words are not zero
	words   [numRuns / 64]uint64
	heads   [numRuns]uint32 // first chunk of a run; longMark and the number of its longRun
	long    []longRun
	idle    []uint32 // unused numbers of long
	spare   []*leaf
}

const (
	// numRuns covers the 848 runs of sizes up to 2^64; a power of two, so
	// that a mask proves an index to be inside.
	numRuns = 1024
	runMask = numRuns - 1
	// emptyWord is the last word, which has no run and is always 0.
	emptyWord = numRuns/64 - 1
	runBits   = 4 // 16 runs for every power of two
	// longMark is beyond every handle: one comparison with the length of the
	// table tells lists from long runs and proves the index.
	longMark = 1 << 31
	// inLong is added to the run of a chunk that is in a longRun.
	inLong = numRuns
	// longWalk is the usual walk.
	longWalk = 48
)

// runOf numbers the runs: sizes of 1 to 31 granules have one each, then
// sixteen for every power of two.
func runOf(size uint64) uint64 {
	g := size >> minBits
	e := uint64(bits.Len64(g|1<<runBits)) - (runBits + 1)
	return (e<<runBits + g>>(e&63)) & runMask
}

// before reports whether c comes before (size, key) in a set. One more byte
// stands for a higher address: one branch, because whether sizes are equal is
// hard to foresee.
func (s *freeSet) before(c *chunk, size, key uint64) bool {
	if c.addr^s.flip < key {
		size++
	}
	return c.size < size
}

// insert puts chunk h into its run.
func (s *freeSet) insert(chunks []chunk, h uint32) {
	c := &chunks[h]
	i := runOf(c.size)
	c.run = uint16(i)
	s.mark(i)
	up := s.heads[i]
	if int(up) >= len(chunks) {
		c.run |= inLong
		s.longInsert(up, c.size, c.addr^s.flip, h)
		return
	}
	if s.before(&chunks[up], c.size, c.addr^s.flip) {
		s.insertBehind(chunks, i, h, up)
		return
	}
	c.up = up
	c.down = none
	chunks[up].down = h
	s.heads[i] = h
}

// insertBehind puts h into the list of run i that begins with down, which comes
// before it.
func (s *freeSet) insertBehind(chunks []chunk, i uint64, h, down uint32) {
	c := &chunks[h]
	c.run = uint16(i)
	size, key := c.size, c.addr^s.flip
	d := &chunks[down]
	for steps := s.walk; ; steps-- {
		up := d.up
		u := &chunks[up]
		if !s.before(u, size, key) {
			c.up, c.down = up, down
			u.down = h
			d.up = h
			return
		}
		if steps == 0 {
			break
		}
		down, d = up, u
	}
	s.lengthen(chunks, i)
	c.run |= inLong
	s.longInsert(s.heads[i&runMask], size, key, h)
}

// remove takes chunk h out of its run.
func (s *freeSet) remove(chunks []chunk, h uint32) {
	c := &chunks[h]
	run := c.run
	i := uint64(run & runMask)
	c.run = 0
	switch up, down := c.up, c.down; {
	case run >= inLong:
		s.longRemove(chunks, i, c)
	case s.heads[i] == h:
		s.dropHead(i, up)
	default:
		chunks[up].down = down
		chunks[down].up = up
	}
}

// cut takes chunk h, which is c, out of its list and returns the list's head.
func (s *freeSet) cut(chunks []chunk, h uint32, c *chunk) uint32 {
	head, up, down := s.heads[c.run&runMask], c.up, c.down
	if head == h {
		head = up
		down = none
	}
	chunks[up].down = down
	chunks[down].up = up
	return head
}

// setHead makes h the head of run i in place of up.
func (s *freeSet) setHead(chunks []chunk, i uint64, h, up uint32) {
	c := &chunks[h]
	c.run = uint16(i)
	c.up = up
	c.down = none
	chunks[up].down = h
	s.heads[i] = h
	s.mark(i)
}

// mark notes that run i has chunks.
func (s *freeSet) mark(i uint64) {
	i &= runMask
	s.words[i>>6] |= 1 << (i & 63)
	s.summary |= 1 << (i >> 6)
}

// dropHead makes up the head of run i. Whether that empties the run is hard to
// foresee, so there is no branch.
func (s *freeSet) dropHead(i uint64, up uint32) {
	i &= runMask
	s.heads[i] = up
	gone := uint64(0)
	if up == none {
		gone = 1
	}
	w := i >> 6
	m := s.words[w] &^ (gone << (i & 63))
	s.words[w] = m
	gone = 0
	if m == 0 {
		gone = 1
	}
	s.summary &^= gone << (w & 63)
}

// nextRun returns the first run from i on that has chunks, or 0.
func (s *freeSet) nextRun(i uint64) uint64 {
	w := i >> 6 & (numRuns/64 - 1)
	if m := s.words[w] >> (i & 63); m != 0 {
		return i + uint64(bits.TrailingZeros64(m))
	}
	m := s.summary >> (w + 1) << (w + 1)
	if m == 0 {
		return 0
	}
	w = uint64(bits.TrailingZeros64(m)) & (numRuns/64 - 1)
	return w<<6 + uint64(bits.TrailingZeros64(s.words[w]))
}

// first returns the first chunk of at least size bytes, or none.
func (s *freeSet) first(chunks []chunk, size uint64) uint32 {
	home := runOf(size)
	i := s.nextRun(home)
	if i == home {
		if h := s.fit(chunks, i, size); h != none {
			return h
		}
		i = s.nextRun(i + 1)
	}
	h := s.heads[i&runMask] // run 0 is empty
	if h >= longMark {
		h = s.long[h&^longMark].lowest()
	}
	return h
}

// takeBehind takes out the first chunk of at least size bytes, of which run i,
// the first that may have any, has none at its head; or returns none.
func (s *freeSet) takeBehind(chunks []chunk, i, size uint64) uint32 {
	h := s.fit(chunks, i, size)
	if h == none {
		h = s.heads[s.nextRun(i+1)]
		if h >= longMark {
			h = s.long[h&^longMark].lowest()
		}
	}
	if h != none {
		s.remove(chunks, h)
	}
	return h
}

// fit returns the first chunk of run i that has at least size bytes, or none.
func (s *freeSet) fit(chunks []chunk, i, size uint64) uint32 {
	h := s.heads[i]
	if h >= longMark {
		return s.long[h&^longMark].fit(size)
	}
	for steps := 0; chunks[h].size < size; steps++ {
		if steps == s.walk {
			s.lengthen(chunks, i)
			return s.fit(chunks, i, size)
		}
		h = chunks[h].up
	}
	return h
}

// each calls f for the chunks of at least size bytes in order until it returns
// false. f must not change the set.
func (s *freeSet) each(chunks []chunk, size uint64, f func(h uint32) bool) {
	for i := s.nextRun(runOf(size)); i != 0; i = s.nextRun(i + 1) {
		h := s.heads[i]
		if h >= longMark {
			if !s.long[h&^longMark].each(size, f) {
				return
			}
			continue
		}
		for ; h != none; h = chunks[h].up {
			if chunks[h].size >= size && !f(h) {
				return
			}
		}
	}
}

// largest is the size of the largest chunk, 0 when there is none.
func (s *freeSet) largest(chunks []chunk) uint64 {
	if s.summary == 0 {
		return 0
	}
	w := 63 - bits.LeadingZeros64(s.summary)
	h := s.heads[w<<6+63-bits.LeadingZeros64(s.words[w])]
	if h >= longMark {
		return s.long[h&^longMark].largest()
	}
	for chunks[h].up != none {
		h = chunks[h].up
	}
	return chunks[h].size
}
