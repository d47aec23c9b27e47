package snapshot

// addresses is what is known of each address of one device, by open addressing:
// a trace has far fewer addresses than events.
type addresses struct {
	index []uint32 // entry+1
	list  []entry
	last  uint32 // entry asked for last: a block's events often follow each other
}

type entry struct {
	addr  uint64
	size  int64  // bytes of the block that lies there now, rounded; 0 for none
	final uint32 // block of the snapshot+1, where one is in use at the end
	last  uint32 // event+1 of the allocation that is still alive at the end
	seen  bool   // a trace event told of it
}

// at is the entry of an address, valid until the next call.
func (a *addresses) at(addr uint64) *entry { return &a.list[a.number(addr)] }

// number is the number of an address's entry.
func (a *addresses) number(addr uint64) uint32 {
	if a.last < uint32(len(a.list)) && a.list[a.last].addr == addr {
		return a.last
	}
	if 4*(len(a.list)+1) > 3*len(a.index) {
		a.grow()
	}
	index := a.index
	mask := uint64(len(index) - 1)
	at := hashOf(addr) & mask
	for ; index[at] != 0; at = (at + 1) & mask {
		if n := index[at] - 1; a.list[n].addr == addr {
			a.last = n
			return n
		}
	}
	a.last = uint32(len(a.list))
	a.list = append(a.list, entry{addr: addr})
	index[at] = uint32(len(a.list))
	return a.last
}

// hashOf spreads addresses, which are multiples of 512.
func hashOf(addr uint64) uint64 { return (addr >> 9 * 0x9E3779B97F4A7C15) >> 32 }

func (a *addresses) grow() {
	a.index = make([]uint32, max(1024, 2*len(a.index)))
	mask := uint64(len(a.index) - 1)
	for i := range a.list {
		at := hashOf(a.list[i].addr) & mask
		for a.index[at] != 0 {
			at = (at + 1) & mask
		}
		a.index[at] = uint32(i) + 1
	}
}
