// Package tiling keeps the chunks of an allocator: pieces of address space that
// lie side by side, each in use or free, found by their address.
//
// A run is what the chunks that touch and are linked form; where a run begins
// and ends is the allocator's business (a region, an upstream block, a mapped
// range). Chunks are records of one cache line in one slice, named by index.
// Addresses find their chunk through an open-addressing table. Nothing is
// allocated per operation once both have their size.
//
// Which free chunk serves a request is not decided here: see bestfit and
// firstfit.
package tiling

// None is the handle of no chunk.
const None = ^uint32(0)

// Chunk is one piece; 64 bytes. ID 0 says that it is free.
type Chunk struct {
	Addr      uint64
	Size      int64
	Requested int64 // of the present use, or of the last one
	ID        int64
	Mark      uint64 // the owner's point in time, see package stream
	Prev      uint32 // by address, inside of the run
	Next      uint32 // also links the free handles
	Owner     uint32 // the list, stream or arena it belongs to
	Flags     uint32
	_         [8]byte
}

// InUse reports whether the chunk is handed out.
func (c *Chunk) InUse() bool { return c.ID != 0 }

// Table holds all chunks of an allocator. The zero value is not ready: use New.
type Table struct {
	Chunks []Chunk // by handle; records on the free list have Size 0
	free   uint32
	index  index
}

// New returns an empty table.
func New() Table { return Table{free: None} }

// Add makes a chunk that is a run of its own.
func (t *Table) Add(addr uint64, size int64) uint32 {
	h := t.record()
	t.Chunks[h].begin(addr, size)
	t.index.add(addr, h)
	return h
}

// begin makes the record that of a new chunk. It is written field by field,
// because WebAssembly takes a literal through memory that is cleared and copied
// by calls.
func (c *Chunk) begin(addr uint64, size int64) {
	c.Addr, c.Size = addr, size
	c.Requested, c.ID, c.Mark = 0, 0, 0
	c.Prev, c.Next = None, None
	c.Owner, c.Flags = 0, 0
}

func (t *Table) record() uint32 {
	if h := t.free; h != None {
		t.free = t.Chunks[h].Next
		return h
	}
	t.Chunks = append(t.Chunks, Chunk{})
	return uint32(len(t.Chunks) - 1)
}

// Split cuts h after size bytes. The rest is free and inherits owner, mark and
// flags. Pointers into Chunks are stale afterwards.
func (t *Table) Split(h uint32, size int64) (rest uint32) {
	rest = t.record()
	c, n := &t.Chunks[h], &t.Chunks[rest]
	n.begin(c.Addr+uint64(size), c.Size-size)
	n.Mark, n.Owner, n.Flags = c.Mark, c.Owner, c.Flags
	n.Prev, n.Next = h, c.Next
	c.Size = size
	c.Next = rest
	if n.Next != None {
		t.Chunks[n.Next].Prev = rest
	}
	t.index.add(n.Addr, rest)
	return rest
}

// Merge joins right, which follows on left, to left. The later mark stays.
func (t *Table) Merge(left, right uint32) {
	l, r := &t.Chunks[left], &t.Chunks[right]
	l.Size += r.Size
	l.Mark = max(l.Mark, r.Mark)
	l.Next = r.Next
	if l.Next != None {
		t.Chunks[l.Next].Prev = left
	}
	t.drop(right)
}

// Link says that right follows on left in the same run.
func (t *Table) Link(left, right uint32) {
	t.Chunks[left].Next = right
	t.Chunks[right].Prev = left
}

// Cut ends the run behind h; what follows on it begins one of its own.
func (t *Table) Cut(h uint32) {
	if next := t.Chunks[h].Next; next != None {
		t.Chunks[next].Prev = None
		t.Chunks[h].Next = None
	}
}

// Remove forgets a chunk; its neighbours end and begin runs of their own.
func (t *Table) Remove(h uint32) {
	c := &t.Chunks[h]
	if c.Prev != None {
		t.Chunks[c.Prev].Next = None
	}
	if c.Next != None {
		t.Chunks[c.Next].Prev = None
	}
	t.drop(h)
}

func (t *Table) drop(h uint32) {
	c := &t.Chunks[h]
	t.index.remove(c.Addr, h)
	c.ID, c.Size = 0, 0
	c.Next = t.free
	t.free = h
}

// At is the chunk that starts at addr, or None.
func (t *Table) At(addr uint64) uint32 {
	slots := t.index.slots
	if len(slots) == 0 || addr&(1<<minBits-1) != 0 {
		return None
	}
	key := uint32(addr >> minBits)
	i := t.index.home(key)
	s := slots[i]
	h := uint32(s) - 1
	if uint32(s>>32) != key || uint64(h) >= uint64(len(t.Chunks)) || t.Chunks[h].Addr != addr {
		return t.atFurther(i, addr)
	}
	return h
}

// atFurther is At from slot i on. Most chunks are in the slot that is looked at
// first, and WebAssembly is slow at whatever is written as a loop.
func (t *Table) atFurther(i uint32, addr uint64) uint32 {
	slots, key := t.index.slots, uint32(addr>>minBits)
	for ; ; i = (i + 1) & uint32(len(slots)-1) {
		s := slots[i]
		if s == 0 {
			return None
		}
		if uint32(s>>32) == key {
			if h := uint32(s) - 1; t.Chunks[h].Addr == addr {
				return h
			}
		}
	}
}

// minBits is the granule's logarithm: chunks begin at multiples of 64.
const minBits = 6

// index is open addressing with linear probing, at most half full. A slot
// holds the low 32 bits of the granule number above the handle plus one; 0 is
// empty. A hit is confirmed at the chunk.
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
	for x.shift = 32; n > 1; n >>= 1 {
		x.shift--
	}
	for _, s := range old {
		if s != 0 {
			x.place(s)
		}
	}
}

// remove closes the hole it leaves, so that no probe stops short.
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
