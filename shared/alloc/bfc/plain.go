package bfc

import (
	"math/bits"

	"tideline/shared/alloc"
)

// The way of nearly every request and free: no stamp, no partition, no
// alignment that an address does not have anyway. It does what allocate and
// free do, but searches nothing where a link or the head of a run answers. Its
// pieces are small enough to be inlined, because calls would be a good part of
// the time, and what is rare ends in a call and a return: code that meets again
// behind an if costs WebAssembly an indirect jump.

// Allocate implements alloc.Allocator. Bytes are taken for what C++ makes of
// them, so that a negative number is an impossibly large request. An alignment
// above 256 that is no power of two is rounded up to one.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	if !a.plain || r.Bytes <= 0 || r.Alignment > MinAllocation || r.FreedBy != nil {
		return a.allocate(r, alloc.Lower)
	}
	size := (uint64(r.Bytes) + MinAllocation - 1) &^ (MinAllocation - 1)
	s := &a.sets[tagLower]
	home := runOf(size)
	i := s.from(home)
	chunks := a.chunks
	h := s.heads[i]
	if uint64(h)-1 >= uint64(len(chunks))-1 {
		return a.allocateBehind(r, i)
	}
	c := &chunks[h]
	left := c.size - size
	if left > c.size {
		return a.allocateBehind(r, i)
	}
	if left < min(size, a.splitWaste) {
		s.dropHead(i, c.up)
		a.index.add(chunks, h)
		return a.handOut(c, r.Bytes), true
	}
	rest := a.freeHandle
	if rest == none {
		return a.allocateBehind(r, i)
	}
	s.dropHead(i, c.up)
	a.cutOff(chunks, h, size, rest)
	a.index.add(chunks, h)
	block := a.handOut(c, r.Bytes)
	if j := runOf(left); s.leads(j, home, len(chunks)) {
		s.setHead(chunks, j, rest, s.heads[j])
		return block, true
	}
	s.insert(chunks, rest)
	return block, true
}

// from returns the first run from home on that has chunks; if there is none,
// one that never has any.
func (s *freeSet) from(home uint64) uint64 {
	w := home >> 6
	m := s.words[w] >> (home & 63) << (home & 63)
	if m == 0 {
		w = uint64(bits.TrailingZeros64(s.summary>>(w+1)<<(w+1)|1<<emptyWord)) & emptyWord
		m = s.words[w]
	}
	return (w<<6 | uint64(bits.TrailingZeros64(m))) & runMask
}

// leads reports whether what is left of the best fit for a request of run home
// comes first in its own run j: what would come before it, but not before the
// request, would have been the better fit. n is the length of the table.
func (s *freeSet) leads(j, home uint64, n int) bool {
	return j > home && int(s.heads[j]) < n
}

// cutOff is split with the handle of the rest, which is not none.
func (a *Allocator) cutOff(chunks []chunk, h uint32, size uint64, rest uint32) {
	c, n := &chunks[h], &chunks[rest]
	a.freeHandle = n.next
	n.addr = c.addr + size
	n.size = c.size - size
	n.id = idFree
	n.prev = h
	n.next = c.next
	chunks[n.next].prev = rest
	c.size = size
	c.next = rest
}

// handOut makes c, which is in no set and in the index, a block.
func (a *Allocator) handOut(c *chunk, requested int64) alloc.Block {
	c.run = 0
	c.requested = uint64(requested)
	c.id = a.nextID
	a.nextID++
	size := int64(c.size)
	a.inUse += size
	a.peak = max(a.peak, a.inUse)
	a.largest = max(a.largest, size)
	return alloc.Block{Address: c.addr, Size: size, Requested: requested, ID: c.id}
}

// allocateBehind is Allocate when the head of i, the first run that may serve
// r, does not, or a new record is needed.
func (a *Allocator) allocateBehind(r alloc.Request, i uint64) (alloc.Block, bool) {
	s := &a.sets[tagLower]
	size := round(uint64(r.Bytes))
	h := s.takeBehind(a.chunks, i, size)
	if h == none {
		return a.allocate(r, alloc.Lower)
	}
	if a.worthSplitting(a.chunks[h].size, size) {
		rest := a.split(h, size)
		s.insert(a.chunks, rest)
	}
	return a.use(h, uint64(r.Bytes)), true
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	if !a.plain {
		return a.free(addr)
	}
	chunks := a.chunks
	slot := &a.index.slots[a.index.home(addr)]
	h := *slot
	c := &chunks[h]
	if c.addr != addr {
		return a.freeBehind(addr)
	}
	next, prev := c.next, c.prev
	n, p := &chunks[next], &chunks[prev]
	if n.run|p.run >= inLong {
		return a.free(addr)
	}
	*slot = c.chain
	c.id = idFree
	a.inUse -= int64(c.size)
	s := &a.sets[tagLower]
	if n.run != 0 {
		s.dropHead(uint64(n.run), s.cut(chunks, next, n))
		a.absorb(chunks, h, next)
	}
	if p.run != 0 {
		s.dropHead(uint64(p.run), s.cut(chunks, prev, p))
		a.absorb(chunks, prev, h)
		h, c = prev, p
	}
	i := runOf(c.size)
	up := s.heads[i]
	if int(up) >= len(chunks) {
		s.insert(chunks, h)
		return nil
	}
	if s.before(&chunks[up], c.size, c.addr) {
		s.insertBehind(chunks, i, h, up)
		return nil
	}
	s.setHead(chunks, i, h, up)
	return nil
}

// absorb is merge where the left chunk's stamp and tag need no look.
func (a *Allocator) absorb(chunks []chunk, left, right uint32) {
	l, r := &chunks[left], &chunks[right]
	r.run = 0
	l.size += r.size
	l.next = r.next
	chunks[r.next].prev = left
	r.next = a.freeHandle
	a.freeHandle = right
}

// freeBehind is Free when another chunk comes first in the chain of addr.
func (a *Allocator) freeBehind(addr uint64) error {
	if !forward(a.chunks, &a.index.slots[a.index.home(addr)], addr) {
		return a.badFree(addr)
	}
	return a.Free(addr)
}
