package bfc

// none is the handle of no chunk.
const none = ^uint32(0)

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
// next's inverse; every chunk is in the index under its address; a free chunk
// is in the set of its tag exactly if binned, and the gap is in none.
type chunk struct {
	addr      uint64
	size      uint64
	requested uint64 // of the present use, or whatever the record held last
	id        int64  // idFree when not in use
	freedAt   uint64 // stamp of the free; survives while in use, as upstream
	prev      uint32 // by address, inside the region
	next      uint32 // also links the free handles
	tag       tag
	binned    bool
	_         [14]byte
}

func (c *chunk) inUse() bool { return c.id != idFree }

// newChunk takes the handle freed last, else appends. A recycled record keeps
// its requested size: upstream shows it in dumps.
func (a *Allocator) newChunk() uint32 {
	if h := a.freeHandle; h != none {
		a.freeHandle = a.chunks[h].next
		return h
	}
	a.chunks = append(a.chunks, chunk{})
	return uint32(len(a.chunks) - 1)
}

// dropChunk forgets a chunk and puts its handle on the free list.
func (a *Allocator) dropChunk(h uint32) {
	c := &a.chunks[h]
	a.index.remove(c.addr, h)
	c.id = idFree
	c.binned = false
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
	n.binned = false
	n.prev = h
	n.next = c.next
	c.size = size
	c.next = rest
	if n.next != none {
		a.chunks[n.next].prev = rest
	}
	a.index.add(n.addr, rest)
	return rest
}

// merge joins right to left, which keeps its handle and requested size.
func (a *Allocator) merge(left, right uint32) {
	l, r := &a.chunks[left], &a.chunks[right]
	l.size += r.size
	l.next = r.next
	if l.next != none {
		a.chunks[l.next].prev = left
	}
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
	if next := c.next; next != none {
		if n := &a.chunks[next]; !n.inUse() && (n.freedAt == 0 || force) {
			a.unbin(next)
			a.merge(h, next)
		}
	}
	if prev := c.prev; prev != none {
		if p := &a.chunks[prev]; !p.inUse() && (p.freedAt == 0 || force) {
			a.unbin(prev)
			a.merge(prev, h)
			return prev
		}
	}
	return h
}

// release is bin(coalesce(h, false)) without partitioning: the entry of a
// neighbour is changed where it lies instead of taken out and put in again.
func (a *Allocator) release(h uint32) {
	c := &a.chunks[h]
	s := &a.sets[tagLower]
	if c.freedAt > 0 {
		a.bin(h)
		return
	}
	next := a.mergeable(c.next)
	prev := a.mergeable(c.prev)
	switch {
	case prev != none:
		if next != none {
			a.unbin(next)
			a.merge(h, next)
		}
		p := &a.chunks[prev]
		at := s.locate(p.size, p.addr)
		a.merge(prev, h)
		s.change(at, p.size, p.addr, prev)
	case next != none:
		n := &a.chunks[next]
		at := s.locate(n.size, n.addr)
		a.merge(h, next)
		c.binned = true
		s.change(at, c.size, c.addr, h)
	default:
		c.binned = true
		s.insert(c.size, c.addr, h)
	}
}

// mergeable returns h if it is a free chunk that the device is done with.
func (a *Allocator) mergeable(h uint32) uint32 {
	if h != none {
		if c := &a.chunks[h]; c.inUse() || c.freedAt != 0 {
			return none
		}
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
	c.binned = true
	s := &a.sets[c.tag]
	s.insert(c.size, c.addr^s.flip, h)
}

func (a *Allocator) unbin(h uint32) {
	c := &a.chunks[h]
	if !c.binned {
		if a.gap == h {
			a.gap = none
		}
		return
	}
	c.binned = false
	s := &a.sets[c.tag]
	s.remove(c.size, c.addr^s.flip)
}
