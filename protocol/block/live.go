package block

import "tideline/protocol/event"

// liveTable finds the allocation of this block that a free ends. It is a
// guess made by the writer alone: what it forgets costs bytes, not
// correctness.
type liveTable struct {
	ring       []liveBlock // the block's allocations in order
	n          int
	generation uint32
	slots      [liveSlots]liveSlot
}

type liveBlock struct {
	address uint64
	size    int64
}

const liveSlots = 1 << 14

// liveSlot holds an ordinal of the ring, valid in one block only.
type liveSlot struct {
	generation uint32
	ordinal    uint32
}

// liveIndex is the even slot of a pair.
func liveIndex(e *event.Event) uint64 {
	k := e.Address>>8 ^ uint64(e.Device)<<40 ^ uint64(e.Allocator)<<52
	return k * 0x9E3779B97F4A7C15 >> (64 - 14) &^ 1
}

// add records an allocation. Of a pair of slots the first holds the newer.
func (t *liveTable) add(e *event.Event) {
	t.ring[t.n] = liveBlock{e.Address, e.Size}
	i := liveIndex(e)
	a := &t.slots[i]
	if a.generation == t.generation && t.ring[a.ordinal].address != e.Address {
		t.slots[i+1] = *a
	}
	*a = liveSlot{t.generation, uint32(t.n)}
	t.n++
}

// find returns how many allocations ago the freed block was handed out: 1 is
// the last one, 0 means not known.
func (t *liveTable) find(e *event.Event) int {
	i := liveIndex(e)
	for j := i; j <= i+1; j++ {
		s := &t.slots[j]
		if s.generation == t.generation && int(s.ordinal) < t.n && t.ring[s.ordinal].address == e.Address {
			s.generation--
			return t.n - int(s.ordinal)
		}
	}
	return 0
}
