package torch

// index finds the block in use at an address: open addressing with linear
// probing, at most half full. A slot holds the low 32 bits of the granule
// number above the handle plus one; 0 is empty. Addresses 2 TiB apart share
// those bits, so a hit is confirmed at the block.
type index struct {
	slots []uint64
	shift uint // 32 - log2(len(slots))
	used  int
}

const (
	firstSlots  = 1 << 8
	granuleBits = 9
	// spread is 2^32 over the golden ratio: neighbouring granules land far apart.
	spread = 0x9e3779b1
)

func (x *index) home(key uint32) uint32 { return key * spread >> (x.shift & 31) }

func (x *index) add(addr uint64, h uint32) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	x.used++
	x.put(addr<<(32-granuleBits)&^(1<<32-1) | uint64(h+1))
}

func (x *index) put(slot uint64) {
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
	for ; n > 1; n >>= 1 {
		x.shift--
	}
	for _, s := range old {
		if s != 0 {
			x.put(s)
		}
	}
}

// find returns the slot and the handle of the block in use at addr, or none.
func (a *Allocator) find(addr uint64) (slot, h uint32) {
	x := &a.index
	slots := x.slots
	if len(slots) == 0 || addr&(Granule-1) != 0 {
		return 0, none
	}
	key := uint32(addr >> granuleBits)
	for i := x.home(key); ; i = (i + 1) & uint32(len(slots)-1) {
		s := slots[i]
		if s == 0 {
			return 0, none
		}
		if uint32(s>>32) == key {
			if h := uint32(s) - 1; a.blocks[h].addr == addr {
				return i, h
			}
		}
	}
}

// removeAt empties a slot and closes the hole, so that no probe stops short.
func (x *index) removeAt(i uint32) {
	slots, mask := x.slots, uint32(len(x.slots)-1)
	for j := (i + 1) & mask; slots[j] != 0; j = (j + 1) & mask {
		if k := x.home(uint32(slots[j] >> 32)); (j-k)&mask >= (j-i)&mask {
			slots[i] = slots[j]
			i = j
		}
	}
	slots[i] = 0
	x.used--
}
