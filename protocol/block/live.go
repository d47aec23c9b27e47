package block

import "tideline/protocol/event"

// liveTable finds the allocation of this block that a free ends. It is a
// guess made by the writer alone: what it forgets costs bytes, not
// correctness.
type liveTable struct {
	ring  []liveBlock // the block's allocations in order
	n     uint32
	base  uint32 // number of the block's first allocation in slots
	slots [liveSlots]uint32
}

type liveBlock struct {
	address uint64
	size    int64
}

const (
	liveBits  = 13
	liveSlots = 1 << liveBits
)

// begin forgets the allocations of the block before: their numbers are below
// the new base.
func (t *liveTable) begin() {
	t.base += t.n
	t.n = 0
	if t.base > 1<<31 {
		t.slots, t.base = [liveSlots]uint32{}, 1
	}
}

// liveIndex is the even slot of a pair.
func liveIndex(e *event.Event) uint64 {
	k := e.Address>>8 ^ uint64(e.Device)<<40 ^ uint64(e.Allocator)<<52
	return k * 0x9E3779B97F4A7C15 >> (64 - liveBits) &^ 1
}

// add records an allocation. Of a pair of slots the first holds the newer.
func (t *liveTable) add(e *event.Event) {
	t.ring[t.n] = liveBlock{e.Address, e.Size}
	pair := t.slots[liveIndex(e):][:2]
	if pair[0] >= t.base {
		pair[1] = pair[0]
	}
	pair[0] = t.base + t.n
	t.n++
}

// find returns how many allocations ago the freed block was handed out: 1 is
// the last one, 0 means not known.
func (t *liveTable) find(e *event.Event) int {
	pair := t.slots[liveIndex(e):][:2]
	if n := pair[0] - t.base; n < t.n && t.ring[n].address == e.Address {
		pair[0] = 0
		return int(t.n - n)
	}
	if n := pair[1] - t.base; n < t.n && t.ring[n].address == e.Address {
		pair[1] = 0
		return int(t.n - n)
	}
	return 0
}
