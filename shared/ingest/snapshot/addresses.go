package snapshot

// addresses is what is known of each address of one device, by open addressing:
// a trace has far fewer addresses than events.
type addresses struct {
	index []uint32 // entry+1
	list  []entry
}

type entry struct {
	addr  uint64
	size  int64  // bytes of the block that lies there now, rounded; 0 for none
	final uint32 // block of the snapshot+1, where one is in use at the end
	last  uint32 // event+1 of the allocation that is still alive at the end
	seen  bool   // a trace event told of it
}

func (a *addresses) at(addr uint64) *entry {
	if 4*(len(a.list)+1) > 3*len(a.index) {
		a.grow()
	}
	mask := uint64(len(a.index) - 1)
	at := (addr >> 9 * 0x9E3779B97F4A7C15) >> 32 & mask
	for ; a.index[at] != 0; at = (at + 1) & mask {
		if e := &a.list[a.index[at]-1]; e.addr == addr {
			return e
		}
	}
	a.list = append(a.list, entry{addr: addr})
	a.index[at] = uint32(len(a.list))
	return &a.list[len(a.list)-1]
}

func (a *addresses) grow() {
	a.index = make([]uint32, max(1024, 2*len(a.index)))
	mask := uint64(len(a.index) - 1)
	for i := range a.list {
		at := (a.list[i].addr >> 9 * 0x9E3779B97F4A7C15) >> 32 & mask
		for a.index[at] != 0 {
			at = (at + 1) & mask
		}
		a.index[at] = uint32(i) + 1
	}
}
