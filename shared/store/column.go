package store

import (
	"encoding/binary"
	"math/bits"
)

// column is an append-only list of numbers. The last chunk lies open in full
// width; when it is full it is packed: its lowest value is taken off, common
// low zero bits are shifted out, and the rest takes as many bytes each as the
// largest needs, from none to eight. Packing at the end rather than while
// appending keeps the append a plain store, and never rewrites anything.
type column struct {
	sealed []packed
	open   []int64
}

// chunkBits gives chunks of 4096 values: small enough that a chunk spans
// little time and packs well, large enough that its header costs nothing.
const (
	chunkBits = 10
	chunkLen  = 1 << chunkBits
)

// packed is a full chunk. The data has seven bytes more than its values, so
// that each can be read as eight and masked: one path for every width.
type packed struct {
	base  int64
	mask  uint64
	data  []byte
	width uint8
	shift uint8
}

const packedBytes = 48

func (c *column) len() int { return len(c.sealed)<<chunkBits + len(c.open) }

func (c *column) push(v int64) {
	if len(c.open) == cap(c.open) {
		c.grow()
	}
	c.open = append(c.open, v)
}

// grow makes room in the open chunk, or seals it when it is full. The first
// chunk starts small, because most pools and tracks of a run stay so.
func (c *column) grow() {
	if len(c.open) < chunkLen {
		n := make([]int64, len(c.open), min(chunkLen, max(64, 4*len(c.open))))
		copy(n, c.open)
		c.open = n
		return
	}
	c.sealed = append(c.sealed, pack(c.open))
	c.open = c.open[:0]
}

func pack(v []int64) packed {
	lo, hi, first := v[0], v[0], v[0]
	var set uint64
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
		// All values leave the same rest by a power of two exactly when their
		// distances from any one of them leave none.
		set |= uint64(x - first)
	}
	if set == 0 {
		return packed{base: lo, data: make([]byte, 8)}
	}
	// hi-lo may wrap around for values more than 63 bits apart; as unsigned
	// numbers the differences are right all the same.
	p := packed{base: lo, shift: uint8(bits.TrailingZeros64(set))}
	p.width = uint8(bits.Len64(uint64(hi-lo)>>p.shift)+7) / 8
	p.mask = ^uint64(0) >> (64 - 8*uint(p.width))
	w := int(p.width)
	p.data = make([]byte, len(v)*w+8-w)
	for i, x := range v {
		// What spills over is overwritten by the next value.
		binary.LittleEndian.PutUint64(p.data[i*w:], uint64(x-lo)>>p.shift)
	}
	return p
}

// at is value i, 0 <= i < len.
func (c *column) at(i int) int64 {
	if k := i >> chunkBits; k < len(c.sealed) {
		p := &c.sealed[k]
		v := binary.LittleEndian.Uint64(p.data[i&(chunkLen-1)*int(p.width):])
		return p.base + int64(v&p.mask<<(p.shift&63))
	}
	return c.open[i&(chunkLen-1)]
}

// after is the index of the first value greater than v in a column that never
// falls, searched from index from on: values before it must not be greater.
func (c *column) after(v int64, from int) int {
	n := c.len()
	if from >= n || c.at(from) > v {
		return from
	}
	// Leaps of doubled length first: neighbouring pixels lie near each other.
	lo, step := from, 1
	for lo+step < n && c.at(lo+step) <= v {
		lo += step
		step *= 2
	}
	hi := min(lo+step, n)
	for lo+1 < hi {
		if mid := int(uint(lo+hi) >> 1); c.at(mid) <= v {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// bytes is the memory that the column holds.
func (c *column) bytes() int64 {
	n := int64(cap(c.open))*8 + int64(cap(c.sealed))*packedBytes
	for i := range c.sealed {
		n += int64(len(c.sealed[i].data))
	}
	return n
}

// vector is a growing list of plain values in chunks that never move.
type vector[T any] struct {
	chunks []*[vectorLen]T
	n      int
}

const (
	vectorBits = 10
	vectorLen  = 1 << vectorBits
)

func (v *vector[T]) push(x T) {
	if v.n>>vectorBits == len(v.chunks) {
		v.chunks = append(v.chunks, new([vectorLen]T))
	}
	v.chunks[v.n>>vectorBits][v.n&(vectorLen-1)] = x
	v.n++
}

func (v *vector[T]) at(i int) *T { return &v.chunks[i>>vectorBits][i&(vectorLen-1)] }

func (v *vector[T]) bytes(each int) int64 { return int64(len(v.chunks)) * vectorLen * int64(each) }

// table maps keys to numbers by open addressing. It holds what is open: live
// addresses, begun spans. Key 0 is allowed.
type table struct {
	keys []uint64
	vals []uint64 // value+1; 0 is an empty slot
	n    int
}

func (t *table) slot(key uint64) int {
	// Multiplied by the golden ratio: addresses differ in their middle bits only.
	return int(key * 0x9e3779b97f4a7c15 >> (64 - uint(bits.Len(uint(len(t.keys)-1)))))
}

// put sets a key's value; it reports whether the key had one.
func (t *table) put(key, val uint64) (again bool) {
	if 4*(t.n+1) > 3*len(t.keys) {
		t.rehash()
	}
	mask := len(t.keys) - 1
	for i := t.slot(key); ; i = (i + 1) & mask {
		if t.vals[i] == 0 {
			t.keys[i], t.vals[i] = key, val+1
			t.n++
			return false
		}
		if t.keys[i] == key {
			t.vals[i] = val + 1
			return true
		}
	}
}

func (t *table) get(key uint64) (val uint64, ok bool) {
	if i := t.find(key); i >= 0 {
		return t.vals[i] - 1, true
	}
	return 0, false
}

// take returns and removes.
func (t *table) take(key uint64) (val uint64, ok bool) {
	i := t.find(key)
	if i < 0 {
		return 0, false
	}
	val = t.vals[i] - 1
	t.n--
	// Close the hole: entries behind it that would be looked for across it
	// move up.
	mask := len(t.keys) - 1
	for j := i; ; {
		j = (j + 1) & mask
		if t.vals[j] == 0 {
			break
		}
		if home := t.slot(t.keys[j]); (j-home)&mask >= (j-i)&mask {
			t.keys[i], t.vals[i] = t.keys[j], t.vals[j]
			i = j
		}
	}
	t.vals[i] = 0
	return val, true
}

func (t *table) find(key uint64) int {
	if t.n == 0 {
		return -1
	}
	mask := len(t.keys) - 1
	for i := t.slot(key); t.vals[i] != 0; i = (i + 1) & mask {
		if t.keys[i] == key {
			return i
		}
	}
	return -1
}

func (t *table) rehash() {
	old := *t
	size := max(64, 2*len(old.keys))
	*t = table{keys: make([]uint64, size), vals: make([]uint64, size)}
	for i, v := range old.vals {
		if v != 0 {
			t.put(old.keys[i], v-1)
		}
	}
}

func (t *table) bytes() int64 { return 16 * int64(len(t.keys)) }
