package torch

// none is the handle of no block.
const none = ^uint32(0)

// What a block is, as bits.
const (
	inUse      uint8 = 1 << iota // handed out
	mapped                       // backed by memory; always, outside of expandable segments
	expandable                   // part of a reservation
	live                         // the record is a block and not a spare one
)

// block is one piece of a segment; 64 bytes, so that it is one cache line.
//
// Invariants: the blocks of a segment, followed by next, tile it; prev is
// next's inverse; a block is in its arena's free set exactly if it is mapped,
// not in use, has no outstanding events and no recorded streams, and in the
// arena's unmapped list exactly if it is not mapped; it is in the index
// exactly while it is in use.
type block struct {
	addr      uint64
	size      int64
	requested int64  // of the present use, or of the last one of this record
	id        int64  // counts the allocations; 0 before the first
	born      int64  // the pool's call counter when the block became free
	prev      uint32 // by address, inside the segment
	next      uint32 // also links the spare records
	arena     uint32
	uses      uint32 // recorded streams, as an index into useLists; 0 is none
	place     uint32 // the reservation, where expandable
	events    uint16 // outstanding
	flags     uint8
	_         uint8
}

func (b *block) is(bits uint8) bool { return b.flags&bits == bits }
func (b *block) split() bool        { return b.prev != none || b.next != none }
func (b *block) end() uint64        { return b.addr + uint64(b.size) }

// mergeable: nobody uses the block or may still be reading it.
func (b *block) mergeable() bool { return b.flags&inUse == 0 && b.events == 0 && b.uses == 0 }

// begin makes the record that of a new, free block of the segment that of is
// in, with no neighbours yet. It is written field by field, because WebAssembly
// takes a literal through memory that is cleared and copied by calls.
func (b *block) begin(addr uint64, size int64, of *block) {
	b.addr, b.size = addr, size
	b.requested, b.id, b.born = 0, 0, 0
	b.arena, b.place = of.arena, of.place
	b.uses, b.events = 0, 0
	b.flags = of.flags & (mapped | expandable | live)
}

// newBlock takes a spare record, else appends one. It may move the table:
// take pointers only afterwards.
func (a *Allocator) newBlock() uint32 {
	if h := a.spareBlock; h != none {
		a.spareBlock = a.blocks[h].next
		return h
	}
	a.blocks = append(a.blocks, block{})
	return uint32(len(a.blocks) - 1)
}

var nobody block

func (a *Allocator) dropBlock(h uint32) {
	b := &a.blocks[h]
	b.begin(0, 0, &nobody)
	b.prev, b.next = 0, a.spareBlock
	a.spareBlock = h
}

// merge joins src, a neighbour, to dst, which keeps its record, and returns the
// bytes that came with it; 0 when the neighbour may not be touched. dst is in
// no set.
func (a *Allocator) merge(dst, src uint32) int64 {
	if src == none {
		return 0
	}
	d, s := &a.blocks[dst], &a.blocks[src]
	if !s.mergeable() || (d.flags^s.flags)&mapped != 0 {
		return 0
	}
	if s.is(mapped) {
		a.arenas[s.arena].free.remove(s.size, s.addr)
	} else {
		a.arenas[s.arena].dropUnmapped(a, src)
	}
	size := s.size
	a.swallow(dst, src)
	return size
}

// swallow adds a neighbour's bytes to dst and drops its record.
func (a *Allocator) swallow(dst, src uint32) {
	d, s := &a.blocks[dst], &a.blocks[src]
	if d.prev == src {
		d.addr, d.prev = s.addr, s.prev
		if d.prev != none {
			a.blocks[d.prev].next = dst
		}
	} else {
		d.next = s.next
		if d.next != none {
			a.blocks[d.next].prev = dst
		}
	}
	d.size += s.size
	a.dropBlock(src)
}

// idle returns h if it is a free block with memory, else none.
func (a *Allocator) idle(h uint32) uint32 {
	if h != none {
		if b := &a.blocks[h]; !b.mergeable() || !b.is(mapped) {
			return none
		}
	}
	return h
}

// insertFree puts a block among the free ones of its arena.
func (a *Allocator) insertFree(h uint32) {
	b := &a.blocks[h]
	ar := a.arenas[b.arena]
	b.born = ar.pool.calls
	ar.free.insert(b.size, b.addr, h)
}

// cutBelow makes a new block of the low size bytes of h, which keeps the rest.
// Neither is put into a set.
func (a *Allocator) cutBelow(h uint32, size int64) uint32 {
	low := a.newBlock()
	b, n := &a.blocks[h], &a.blocks[low]
	n.begin(b.addr, size, b)
	n.prev, n.next = b.prev, h
	if n.prev != none {
		a.blocks[n.prev].next = low
	}
	b.prev = low
	b.addr += uint64(size)
	b.size -= size
	return low
}

// cutAbove makes a new block of what h has beyond size bytes.
func (a *Allocator) cutAbove(h uint32, size int64) uint32 {
	high := a.newBlock()
	b, n := &a.blocks[h], &a.blocks[high]
	n.begin(b.addr+uint64(size), b.size-size, b)
	n.prev, n.next = h, b.next
	if n.next != none {
		a.blocks[n.next].prev = high
	}
	b.next = high
	b.size = size
	return high
}
