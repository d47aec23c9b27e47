package bfc

// index finds the chunk that starts at an address: open addressing with linear
// probing, at most half full. A slot holds the low 32 bits of the granule
// number above the handle plus one; 0 is empty. Two addresses that differ only
// above bit 39 share those bits, so a hit is confirmed at the chunk.
type index struct {
	slots []uint64
	shift uint // 32 - log2(len(slots))
	used  int
}

const firstSlots = 1 << 8

// spread is 2^32 over the golden ratio: neighbouring granules land far apart.
const spread = 0x9e3779b1

func (x *index) home(key uint32) uint32 { return key * spread >> x.shift }

func (x *index) add(addr uint64, h uint32) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	x.used++
	x.place(addr<<(32-minBits)&^(1<<32-1) | uint64(h+1))
}

func (x *index) place(slot uint64) {
	slots := x.slots
	i := x.home(uint32(slot >> 32))
	for slots[i] != 0 {
		i = (i + 1) & uint32(len(slots)-1)
	}
	slots[i] = slot
}

func (x *index) grow() {
	old := x.slots
	n := max(firstSlots, 2*len(old))
	x.slots = make([]uint64, n)
	x.shift = 32
	for n > 1 {
		n >>= 1
		x.shift--
	}
	for _, s := range old {
		if s != 0 {
			x.place(s)
		}
	}
}

// remove forgets the entry of handle h, which must be there, and closes the
// hole it leaves so that no probe stops short.
func (x *index) remove(addr uint64, h uint32) {
	slots, mask := x.slots, uint32(len(x.slots)-1)
	i := x.home(uint32(addr >> minBits))
	for uint32(slots[i]) != h+1 {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; slots[j] != 0; j = (j + 1) & mask {
		k := x.home(uint32(slots[j] >> 32))
		if (j-k)&mask >= (j-i)&mask {
			slots[i] = slots[j]
			i = j
		}
	}
	slots[i] = 0
	x.used--
}

// at returns the handle of the chunk that starts at addr, or none.
func (a *Allocator) at(addr uint64) uint32 {
	slots := a.index.slots
	if len(slots) == 0 || addr&(MinAllocation-1) != 0 {
		return none
	}
	key := uint32(addr >> minBits)
	for i := a.index.home(key); ; i = (i + 1) & uint32(len(slots)-1) {
		s := slots[i]
		if s == 0 {
			return none
		}
		if uint32(s>>32) == key {
			if h := uint32(s) - 1; a.chunks[h].addr == addr {
				return h
			}
		}
	}
}
