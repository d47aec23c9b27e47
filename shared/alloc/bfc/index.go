package bfc

// index finds a chunk by the address it starts at. Slots hold the first chunk
// of a chain, the chunks' records hold the rest of it: to add is to write two
// words, to remove the chunk that was added last is to write one. Nothing is
// ever moved but when the table doubles.
//
// Only blocks in use are looked up by their address, so only they are in it,
// unless the allocator needs more (see indexAll).
type index struct {
	slots []uint32
	shift uint // 64 - log2(len(slots))
}

const firstSlots = 1 << 10

// spread is 2^64 over the golden ratio: neighbouring granules land far apart.
const spread = 0x9e3779b97f4a7c15

func newIndex() index { return index{slots: make([]uint32, firstSlots), shift: 54} }

func (x *index) home(addr uint64) uint64 { return addr * spread >> (x.shift & 63) }

func (x *index) add(chunks []chunk, h uint32) {
	c := &chunks[h]
	slot := &x.slots[x.home(c.addr)]
	c.chain = *slot
	*slot = h
}

// reserve keeps the slots twice as many as the records, so that add need not
// look: there is nothing to add without one.
func (x *index) reserve(chunks []chunk) {
	if 2*len(chunks) > len(x.slots) {
		x.grow(chunks)
	}
}

func (x *index) grow(chunks []chunk) {
	old := x.slots
	x.slots = make([]uint32, 4*len(old))
	x.shift -= 2
	for _, h := range old {
		for h != none {
			c := &chunks[h]
			i := x.home(c.addr)
			h, c.chain, x.slots[i] = c.chain, x.slots[i], h
		}
	}
}

// remove forgets chunk h, which must be there.
func (x *index) remove(chunks []chunk, h uint32) {
	c := &chunks[h]
	at := &x.slots[x.home(c.addr)]
	for *at != h {
		at = &chunks[*at].chain
	}
	*at = c.chain
}

// forward makes the chunk at addr, not the first of the chain of slot, the
// first; it reports whether there is one.
func forward(chunks []chunk, slot *uint32, addr uint64) bool {
	for h := *slot; h != none; {
		c := &chunks[h]
		h = c.chain
		if n := &chunks[h]; n.addr == addr {
			c.chain = n.chain
			n.chain = *slot
			*slot = h
			return true
		}
	}
	return false
}

// at returns the handle of the chunk in the index that starts at addr, or none.
func (a *Allocator) at(addr uint64) uint32 {
	h := a.index.slots[a.index.home(addr)]
	for h != none && a.chunks[h].addr != addr {
		h = a.chunks[h].chain
	}
	return h
}
