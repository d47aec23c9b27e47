package bfc

import (
	"math/bits"

	"tideline/shared/alloc"
)

// The way of nearly every request and free: no stamp, no partition, no
// alignment that an address does not have anyway. It does what allocate and
// free do, but searches nothing where a link or the head of a run answers, and
// is written out, because calls would be a good part of the time.

// Allocate implements alloc.Allocator. Bytes are taken for what C++ makes of
// them, so that a negative number is an impossibly large request. An alignment
// above 256 that is no power of two is rounded up to one.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	if !a.plain || r.Bytes <= 0 || r.Alignment > MinAllocation || r.FreedBy != nil {
		return a.allocate(r)
	}
	size := (uint64(r.Bytes) + MinAllocation - 1) &^ (MinAllocation - 1)
	s := &a.sets[tagLower]
	i := runOf(size)
	w := i >> 6
	m := s.words[w] >> (i & 63) << (i & 63)
	if m == 0 {
		later := s.summary >> (w + 1) << (w + 1)
		if later == 0 {
			return a.allocate(r)
		}
		w = uint64(bits.TrailingZeros64(later)) & (numRuns/64 - 1)
		m = s.words[w]
	}
	i = (w<<6 | uint64(bits.TrailingZeros64(m))) & runMask
	chunks := a.chunks
	h := s.heads[i]
	if int(h) >= len(chunks) || chunks[h].size < size {
		// A long run, or one that begins with smaller chunks.
		if h = a.takeBest(size); h == none {
			return a.allocate(r)
		}
		return a.use(h, uint64(r.Bytes)), true
	}
	c := &chunks[h]
	left := c.size - size
	if left < size && left < a.splitWaste {
		s.dropHead(i, c.up)
	} else {
		rest := a.freeHandle
		if rest == none {
			a.takeBest(size) // takes h, and a new record for the rest
			return a.use(h, uint64(r.Bytes)), true
		}
		n := &chunks[rest]
		a.freeHandle = n.next
		n.addr = c.addr + size
		n.size = left
		n.id = idFree
		n.prev = h
		n.next = c.next
		chunks[n.next].prev = rest
		c.size = size
		c.next = rest
		if runOf(left) == i {
			// The rest is smaller than the head was.
			n.run = uint16(i)
			n.up = c.up
			n.down = none
			chunks[n.up].down = rest
			s.heads[i] = rest
		} else {
			s.dropHead(i, c.up)
			s.insert(chunks, rest)
		}
	}
	c.run = 0
	slot := &a.index.slots[a.index.home(c.addr)]
	c.chain = *slot
	*slot = h
	c.requested = uint64(r.Bytes)
	c.id = a.nextID
	a.nextID++
	taken := int64(c.size)
	a.inUse += taken
	a.peak = max(a.peak, a.inUse)
	a.largest = max(a.largest, taken)
	return alloc.Block{Address: c.addr, Size: taken, Requested: r.Bytes, ID: c.id}, true
}

// dropHead makes up the head of run i.
func (s *freeSet) dropHead(i uint64, up uint32) {
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

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if !a.plain {
		return a.free(addr)
	}
	chunks := a.chunks
	at := &a.index.slots[a.index.home(addr)]
	h := *at
	for chunks[h].addr != addr {
		if h == none {
			return a.badFree(addr)
		}
		at = &chunks[h].chain
		h = *at
	}
	if h == none {
		return a.badFree(addr)
	}
	c := &chunks[h]
	*at = c.chain
	c.id = idFree
	a.inUse -= int64(c.size)
	if chunks[c.next].run|chunks[c.prev].run != 0 {
		a.join(h)
		return nil
	}
	s := &a.sets[tagLower]
	i := runOf(c.size)
	c.run = uint16(i)
	s.words[i>>6] |= 1 << (i & 63)
	s.summary |= 1 << (i >> 6)
	up := s.heads[i]
	if int(up) < len(chunks) {
		u := &chunks[up]
		_, less := bits.Sub64(u.addr, c.addr, 0)
		_, less = bits.Sub64(u.size, c.size, less)
		if less == 0 {
			c.up = up
			c.down = none
			u.down = h
			s.heads[i] = h
			return nil
		}
	}
	s.insert(chunks, h)
	return nil
}

// join merges h with its free neighbours. What grows keeps its place in the
// set where the order allows.
func (a *Allocator) join(h uint32) {
	chunks := a.chunks
	s := &a.sets[tagLower]
	c := &chunks[h]
	if next := c.next; chunks[next].run != 0 {
		n := &chunks[next]
		size := c.size + n.size
		if chunks[c.prev].run == 0 {
			if i := runOf(size); i == uint64(n.run) && n.down != inLong && s.before(&chunks[n.up], size, c.addr) == 0 {
				c.run = n.run
				c.up, c.down = n.up, n.down
				chunks[n.up].down = h
				if s.heads[i] == next {
					s.heads[i] = h
				} else {
					chunks[n.down].up = h
				}
				a.absorb(h, next, size)
				return
			}
			s.remove(chunks, next)
			a.absorb(h, next, size)
			s.insert(chunks, h)
			return
		}
		s.remove(chunks, next)
		a.absorb(h, next, size)
	}
	prev := c.prev
	p := &chunks[prev]
	size := p.size + c.size
	if runOf(size) == uint64(p.run) && p.down != inLong && s.before(&chunks[p.up], size, p.addr) == 0 {
		a.absorb(prev, h, size)
		return
	}
	s.remove(chunks, prev)
	a.absorb(prev, h, size)
	s.insert(chunks, prev)
}

// absorb makes left, now of size bytes, of itself and right, which is in no set.
func (a *Allocator) absorb(left, right uint32, size uint64) {
	l, r := &a.chunks[left], &a.chunks[right]
	l.size = size
	l.next = r.next
	a.chunks[l.next].prev = left
	r.id = idFree
	r.run = 0
	r.next = a.freeHandle
	a.freeHandle = right
}
