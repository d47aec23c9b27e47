package store

import (
	"encoding/binary"
	"math/bits"
)

// rows is an append-only table of numbers with a few columns. The last rows lie
// open, one column after the other; when they fill a chunk they are packed
// column by column: the lowest value is taken off, common low zero bits are shifted out,
// and the rest takes as many bytes each as the largest needs, from none to
// eight. Packing at the end rather than while appending keeps the append a few
// plain stores, and never rewrites anything.
type rows struct {
	chunks []chunk
	open   []int64 // column after column, of stride rows each
	stride int
	k      int // rows in open
	cols   int
	n      int
	slab   []byte // room for the data of chunks to come
	kept   int    // bytes of those there are
}

// slabBytes is the most room made at once. A piece of memory for each chunk
// took a sixth of the time of an append in WebAssembly.
const slabBytes = 128 << 10

// chunkBits gives chunks of 512 rows: few enough that an open chunk stays in
// the processor's cache while it is packed and spans little time, enough that
// headers cost little.
const (
	chunkBits = 9
	chunkLen  = 1 << chunkBits
)

// chunk is a full run of rows. The data of all columns lie in one piece, with
// seven bytes to spare, so that each value can be read as eight bytes and
// masked: one path for every width.
type chunk struct {
	cols []packed
	data []byte
}

// packed is where a column of a chunk lies.
type packed struct {
	base  int64
	mask  uint64
	at    uint32 // in data
	width uint8
	shift uint8
}

const (
	packedBytes = 24
	chunkBytes  = 48
)

// add makes a row and returns its place in open: column c of it is
// open[c*stride+place], to be filled at once.
func (t *rows) add() (place int) {
	if t.k == t.stride {
		t.grow()
	}
	t.k++
	t.n++
	return t.k - 1
}

// grow makes room in the open chunk, or seals it when it is full. The first
// chunk starts small, because most pools and tracks of a run stay so.
func (t *rows) grow() {
	if t.stride == chunkLen {
		t.seal()
		t.k = 0
		return
	}
	stride := min(chunkLen, max(16, 4*t.stride))
	open := make([]int64, stride*t.cols)
	for c := range t.cols {
		copy(open[c*stride:], t.open[c*t.stride:][:t.stride])
	}
	t.open, t.stride = open, stride
}

func (t *rows) seal() {
	c := chunk{cols: make([]packed, t.cols)}
	size := 0
	for i := range c.cols {
		p := &c.cols[i]
		p.measure((*[chunkLen]int64)(t.open[i<<chunkBits:]))
		p.at = uint32(size)
		size += chunkLen * int(p.width)
	}
	c.data = t.room(size + 8)
	for i := range c.cols {
		c.cols[i].fill(c.data, (*[chunkLen]int64)(t.open[i<<chunkBits:]))
	}
	t.chunks = append(t.chunks, c)
}

// room is a piece of n bytes. At most an eighth of what there is lies unused.
func (t *rows) room(n int) []byte {
	if n > len(t.slab) {
		t.slab = make([]byte, max(n, min(slabBytes, t.kept/8)))
	}
	data := t.slab[:n:n]
	t.slab = t.slab[n:]
	t.kept += n
	return data
}

// measure finds the width of a column.
func (p *packed) measure(v *[chunkLen]int64) {
	lo, hi, first := v[0], v[0], v[0]
	var set uint64
	// Eight at a time: in WebAssembly the turn of a loop costs more than what is
	// done in it.
	for i := 0; i < chunkLen; i += 8 {
		x := (*[8]int64)(v[i:])
		lo = min(lo, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
		hi = max(hi, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7])
		// All values leave the same rest by a power of two exactly when their
		// distances from any one of them leave none.
		set |= uint64(x[0]-first) | uint64(x[1]-first) | uint64(x[2]-first) | uint64(x[3]-first) |
			uint64(x[4]-first) | uint64(x[5]-first) | uint64(x[6]-first) | uint64(x[7]-first)
	}
	p.base = lo
	if set == 0 {
		return
	}
	// hi-lo may wrap around for values more than 63 bits apart; as unsigned
	// numbers the differences are right all the same.
	p.shift = uint8(bits.TrailingZeros64(set))
	p.width = uint8(bits.Len64(uint64(hi-lo)>>p.shift)+7) / 8
	p.mask = ^uint64(0) >> (64 - 8*uint(p.width))
}

// fill packs a column into its place. Columns are filled in the order in which
// they lie, because the last bytes may spill over into the next one's place.
func (p *packed) fill(data []byte, v *[chunkLen]int64) {
	w, base, shift := int(p.width), p.base, p.shift&63
	data = data[p.at:]
	switch w {
	case 0:
	case 1:
		for i := 0; i < chunkLen; i += 8 {
			x, d := (*[8]int64)(v[i:]), data[i:]
			// Eight values of a byte are one of eight.
			binary.LittleEndian.PutUint64(d, uint64(x[0]-base)>>shift|uint64(x[1]-base)>>shift<<8|
				uint64(x[2]-base)>>shift<<16|uint64(x[3]-base)>>shift<<24|
				uint64(x[4]-base)>>shift<<32|uint64(x[5]-base)>>shift<<40|
				uint64(x[6]-base)>>shift<<48|uint64(x[7]-base)>>shift<<56)
		}
	case 2:
		for i := 0; i < chunkLen; i += 4 {
			x, d := (*[4]int64)(v[i:]), data[2*i:]
			binary.LittleEndian.PutUint64(d, uint64(x[0]-base)>>shift|uint64(x[1]-base)>>shift<<16|
				uint64(x[2]-base)>>shift<<32|uint64(x[3]-base)>>shift<<48)
		}
	default:
		// The last of four may spill over by seven bytes.
		for i := 0; i < chunkLen; i += 4 {
			x, d := (*[4]int64)(v[i:]), data[i*w:][:3*w+8]
			binary.LittleEndian.PutUint64(d, uint64(x[0]-base)>>shift)
			binary.LittleEndian.PutUint64(d[w:], uint64(x[1]-base)>>shift)
			binary.LittleEndian.PutUint64(d[2*w:], uint64(x[2]-base)>>shift)
			binary.LittleEndian.PutUint64(d[3*w:], uint64(x[3]-base)>>shift)
		}
	}
}

// at is column c of row i, 0 <= i < n.
func (t *rows) at(c, i int) int64 {
	if k := i >> chunkBits; k < len(t.chunks) {
		return t.chunks[k].at(c, i&(chunkLen-1))
	}
	return t.open[c*t.stride+i&(chunkLen-1)]
}

func (k *chunk) at(c, i int) int64 {
	p := &k.cols[c]
	v := binary.LittleEndian.Uint64(k.data[int(p.at)+i*int(p.width):])
	return p.base + int64(v&p.mask<<(p.shift&63))
}

// after is the first row whose column c, which never falls, is greater than v,
// searched from row from on: those before it must not be greater.
func (t *rows) after(c int, v int64, from int) int {
	n := t.n
	if from >= n || t.at(c, from) > v {
		return from
	}
	// Chunk by chunk first, with leaps of doubled length: the next pixel's edge
	// is near, and a chunk's lowest value is its first.
	lo, step := from>>chunkBits, 1
	last := len(t.chunks) - 1
	for lo+step <= last && t.chunks[lo+step].cols[c].base <= v {
		lo += step
		step *= 2
	}
	for hi := lo + step; lo+1 < hi; {
		if mid := int(uint(lo+hi) >> 1); mid <= last && t.chunks[mid].cols[c].base <= v {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo <= last {
		k := &t.chunks[lo]
		next := k.cols[c].base
		if lo < last {
			next = t.chunks[lo+1].cols[c].base
		} else if t.k > 0 {
			next = t.open[c*t.stride]
		}
		i := k.after(c, v, max(from-lo<<chunkBits, 0), next)
		if lo < last || i < chunkLen {
			return lo<<chunkBits + i
		}
		from = (last + 1) << chunkBits
	}
	lo, hi := from, n
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); t.at(c, mid) <= v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// after is rows.after within a chunk; next is a value that the chunk's last one
// does not exceed. Times come at a steady pace more often than not, so that
// the place is guessed first, and looked for around the guess.
func (k *chunk) after(c int, v int64, from int, next int64) int {
	lo, hi := from, chunkLen // all before lo are at most v, all from hi on greater
	base := k.cols[c].base
	if next > base && v >= base && v < next {
		guess := int(float64(v-base) / float64(next-base) * chunkLen)
		guess = min(max(guess, lo), hi-1)
		if k.at(c, guess) <= v {
			lo = guess + 1
			for step := 8; lo+step < hi; step *= 4 {
				if k.at(c, lo+step) > v {
					hi = lo + step
					break
				}
				lo += step + 1
			}
		} else {
			hi = guess
			for step := 8; hi-step > lo; step *= 4 {
				if k.at(c, hi-step) <= v {
					lo = hi - step + 1
					break
				}
				hi -= step
			}
		}
	}
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); k.at(c, mid) <= v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// bytes is the memory that the table holds.
func (t *rows) bytes() int64 {
	n := int64(cap(t.open))*8 + int64(cap(t.chunks))*chunkBytes + int64(len(t.slab))
	for i := range t.chunks {
		n += int64(len(t.chunks[i].data)) + int64(t.cols)*packedBytes
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

// next adds an element, which is zero, to be filled in place: in WebAssembly a
// value of more than two words is copied by a call.
func (v *vector[T]) next() *T {
	if v.n>>vectorBits == len(v.chunks) {
		v.chunks = append(v.chunks, new([vectorLen]T))
	}
	v.n++
	return v.at(v.n - 1)
}

func (v *vector[T]) at(i int) *T { return &v.chunks[i>>vectorBits][i&(vectorLen-1)] }

func (v *vector[T]) bytes(each int) int64 { return int64(len(v.chunks)) * vectorLen * int64(each) }

// table maps keys to numbers by open addressing. It holds what is open: live
// addresses, begun spans. Key 0 is allowed.
type table struct {
	slots []slot
	n     int
	shift uint8 // 64 less the bits of a slot's number
}

type slot struct {
	key uint64
	val uint64 // value+1; 0 is an empty slot
}

func (t *table) slot(key uint64) int {
	// Multiplied by the golden ratio: addresses differ in their middle bits only.
	return int(key * 0x9e3779b97f4a7c15 >> (t.shift & 63))
}

// put sets a key's value; it reports whether the key had one.
func (t *table) put(key, val uint64) (again bool) {
	_, again = t.swap(key, val)
	return again
}

// swap is put that gives the value that the key had.
func (t *table) swap(key, val uint64) (old uint64, again bool) {
	if 4*(t.n+1) > 3*len(t.slots) {
		t.rehash()
	}
	slots, mask := t.slots, len(t.slots)-1
	for i := t.slot(key); ; i++ {
		s := &slots[i&mask]
		if s.val == 0 {
			s.key, s.val = key, val+1
			t.n++
			return 0, false
		}
		if s.key == key {
			old = s.val - 1
			s.val = val + 1
			return old, true
		}
	}
}

func (t *table) get(key uint64) (val uint64, ok bool) {
	if i := t.find(key); i >= 0 {
		return t.slots[i].val - 1, true
	}
	return 0, false
}

// take returns and removes.
func (t *table) take(key uint64) (val uint64, ok bool) {
	i := t.find(key)
	if i < 0 {
		return 0, false
	}
	slots, mask := t.slots, len(t.slots)-1
	val = slots[i].val - 1
	t.n--
	// Close the hole: entries behind it that would be looked for across it
	// move up.
	for j := i; ; {
		j = (j + 1) & mask
		s := &slots[j]
		if s.val == 0 {
			break
		}
		if home := t.slot(s.key); (j-home)&mask >= (j-i)&mask {
			slots[i] = *s
			i = j
		}
	}
	slots[i].val = 0
	return val, true
}

func (t *table) find(key uint64) int {
	if t.n == 0 {
		return -1
	}
	slots, mask := t.slots, len(t.slots)-1
	for i := t.slot(key); ; i++ {
		i &= mask
		s := &slots[i]
		if s.val == 0 {
			return -1
		}
		if s.key == key {
			return i
		}
	}
}

func (t *table) rehash() {
	old := t.slots
	size := max(64, 2*len(old))
	*t = table{slots: make([]slot, size), shift: uint8(64 - bits.Len(uint(size-1)))}
	for _, s := range old {
		if s.val != 0 {
			t.put(s.key, s.val-1)
		}
	}
}

func (t *table) bytes() int64 { return 16 * int64(len(t.slots)) }
