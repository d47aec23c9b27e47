package bfc

import "math"

// none is the handle of no chunk. Record 0 of the table stands for it: it is
// never free, so that a chunk at the end of its region needs no test for a
// neighbour, it comes after every chunk of a run, and what is written to its
// links is never read.
const none = uint32(0)

var nobody = chunk{size: math.MaxUint64}

// idFree is the allocation id of a chunk that is not in use.
const idFree = int64(-1)

// tag says to which part of a partitioned region a chunk belongs. Without
// partitioning every chunk is tagLower.
type tag uint8

const (
	tagLower tag = iota
	tagUpper
	tagGap
)

var tagNames = [...]string{"lower", "upper", "central_gap"}

// chunk is one piece of a region; 64 bytes, so that it is one cache line.
//
// Invariants: the chunks of a region, followed by next, tile it; prev is
// next's inverse; a chunk is in the index under its address if it is in use or
// the index holds all; a free chunk is in the set of its tag exactly if binned,
// and the gap is in none.
type chunk struct {
	addr      uint64
	size      uint64
	requested uint64 // of the present use, or whatever the record held last
	id        int64  // idFree when not in use
	freedAt   uint64 // stamp of the free; survives while in use, as upstream
	prev      uint32 // by address, inside the region
	next      uint32 // also links the free handles
	chain     uint32 // the next chunk of the same index slot
	up        uint32 // the next larger free chunk of the same run
	down      uint32 // the next smaller one, unless it is the first
	run       uint16 // where it is binned, and whether inLong; 0: in no set
	tag       tag
}

func (c *chunk) inUse() bool  { return c.id != idFree }
func (c *chunk) binned() bool { return c.run != 0 }

// upstreamHandle is the handle as upstream counts it, from 0.
func upstreamHandle(h uint32) uint64 {
	if h == none {
		return InvalidHandle
	}
	return uint64(h - 1)
}

// newChunk takes the handle freed last, else appends. A recycled record keeps
// its requested size: upstream shows it in dumps.
func (a *Allocator) newChunk() uint32 {
	if h := a.freeHandle; h != none {
		a.freeHandle = a.chunks[h].next
		return h
	}
	a.chunks = append(a.chunks, chunk{})
	a.index.reserve(a.chunks)
	return uint32(len(a.chunks) - 1)
}

// dropChunk forgets a chunk and puts its handle on the free list.
func (a *Allocator) dropChunk(h uint32) {
	c := &a.chunks[h]
	if a.indexAll {
		a.index.remove(a.chunks, h)
	}
	c.id = idFree
	c.run = 0
	c.next = a.freeHandle
	a.freeHandle = h
}

// split cuts h after size bytes; the rest gets a new handle, is free, is not
// binned and inherits tag and stamp.
func (a *Allocator) split(h uint32, size uint64) (rest uint32) {
	rest = a.newChunk() // may move the table: take pointers only now
	c, n := &a.chunks[h], &a.chunks[rest]
	n.addr = c.addr + size
	n.size = c.size - size
	n.id = idFree
	n.freedAt = c.freedAt
	n.tag = c.tag
	n.run = 0
	n.prev = h
	n.next = c.next
	a.chunks[n.next].prev = rest
	c.size = size
	c.next = rest
	if a.indexAll {
		a.index.add(a.chunks, rest)
	}
	return rest
}

// merge joins right to left, which keeps its handle and requested size.
func (a *Allocator) merge(left, right uint32) {
	l, r := &a.chunks[left], &a.chunks[right]
	l.size += r.size
	l.next = r.next
	a.chunks[l.next].prev = left
	l.freedAt = max(l.freedAt, r.freedAt)
	if l.tag != r.tag {
		l.tag = tagGap
	}
	a.dropChunk(right)
}

// coalesce merges h with its free neighbours and returns the result. None of
// it is binned. The order, next before previous, decides which handles are
// recycled first. Chunks that the device may still read stay apart unless
// forced.
func (a *Allocator) coalesce(h uint32, force bool) uint32 {
	c := &a.chunks[h]
	if !force && c.freedAt > 0 {
		return h
	}
	next, prev := c.next, c.prev
	if n := &a.chunks[next]; !n.inUse() && (n.freedAt == 0 || force) {
		a.unbin(next)
		a.merge(h, next)
	}
	if p := &a.chunks[prev]; !p.inUse() && (p.freedAt == 0 || force) {
		a.unbin(prev)
		a.merge(prev, h)
		return prev
	}
	return h
}

// bin puts a free chunk into the set of its tag. The gap has none.
func (a *Allocator) bin(h uint32) {
	c := &a.chunks[h]
	if c.tag == tagGap {
		a.gap = h
		return
	}
	a.sets[c.tag].insert(a.chunks, h)
}

func (a *Allocator) unbin(h uint32) {
	c := &a.chunks[h]
	if c.binned() {
		a.sets[c.tag].remove(a.chunks, h)
	} else if a.gap == h {
		a.gap = none
	}
}
