package store

import (
	"encoding/binary"
	"math/bits"

	"tideline/protocol/event"
)

// Cells is how many pieces of the address layout a tile tells apart.
const (
	Cells    = 256
	cellBits = 8
)

// Tiles cover tilePoints points each, those of the next level four times more.
const (
	tilePoints   = 128
	tileLevelFan = 4
)

// Tile is the address layout over a stretch of time: for each of Cells equal
// pieces of 1<<Shift bytes, how full it was at its fullest in that time and
// with what. It is what an address map shows where single blocks are smaller
// than a pixel.
type Tile struct {
	Shift uint8
	Cell  [Cells]uint8 // each a Cell
}

// Cell is one piece: the upper four bits say how full it was, 15 for wholly,
// and at least 1 when anything was in use; the lower four bits are the
// category that filled most of it. 0 is empty.
type Cell uint8

// Fill is how full the cell was, 0 to 15.
func (c Cell) Fill() int { return int(c >> 4) }

// Category is what filled most of it.
func (c Cell) Category() event.Category { return event.Category(c & 15) }

const (
	tileBytes = Cells + 1
	numCats   = event.NumCategories
)

// tiles builds the tiles of a pool while its blocks come and go.
type tiles struct {
	levels []vector[Tile]
	shift  uint8
	cells  [Cells]fill
	// dirty are the cells that may differ from the last tile.
	dirty [Cells / 64]uint64
	last  Tile
}

// fill is a cell of the open tile.
type fill struct {
	now  int64          // bytes in use
	high int64          // at most, in the tile's time
	top  int64          // the most that one category had in it
	by   uint8          // which one
	some uint16         // a bit for each category that ever had a byte in it
	cat  [numCats]int64 // bytes in use by category
}

// settle makes the cell's highest what it holds now; false when it was so.
func (f *fill) settle() bool {
	best, by := f.cat[0], 0
	if f.now == 0 {
		best = 0
	} else {
		for some := f.some &^ 1; some != 0; some &= some - 1 {
			c := bits.TrailingZeros16(some) & (numCats - 1)
			if n := f.cat[c]; n > best {
				best, by = n, c
			}
		}
	}
	was := f.high != f.now || f.top != best || int(f.by) != by
	f.high, f.top, f.by = f.now, best, uint8(by)
	return was
}

// init starts with cells of 256 bytes: the least that any allocator hands out.
func (t *tiles) init() { t.shift = 8 }

// cover makes the cells wide enough for a layout of that many bytes.
func (t *tiles) cover(layout int64) {
	for layout > Cells<<t.shift {
		t.shift++
		for i := range Cells / 2 {
			t.cells[i] = t.cells[2*i]
			t.cells[i].join(&t.cells[2*i+1])
		}
		clear(t.cells[Cells/2:])
		for i := range t.dirty {
			t.dirty[i] = ^uint64(0)
		}
	}
}

// join adds a neighbour. Both may have been at their fullest at different
// moments: until the tile ends, the sum is a bound.
func (f *fill) join(o *fill) {
	f.now += o.now
	f.high += o.high
	if o.top > f.top {
		f.top, f.by = o.top, o.by
	}
	f.some |= o.some
	for c, n := range o.cat {
		f.cat[c] += n
	}
}

// add counts a block at a place of the layout in, or out with sign -1.
func (t *tiles) add(off, size int64, c int, sign int64) {
	s := t.shift & 63
	first, end := off>>s, off+size
	last := (end - 1) >> s
	if size <= 0 || last >= Cells || first < 0 {
		return
	}
	c &= numCats - 1
	t.touch(first, last)
	// Of the block, as much as lies in its first cell, in those that it fills,
	// and in its last.
	n := min(end, (first+1)<<s) - off
	for i := first; ; n = min(end-i<<s, 1<<s) {
		f := &t.cells[i&(Cells-1)]
		if sign > 0 {
			f.some |= 1 << c
			f.now += n
			f.high = max(f.high, f.now)
			in := f.cat[c] + n
			f.cat[c] = in
			if in > f.top {
				f.top, f.by = in, uint8(c)
			}
		} else { // which cannot make it fuller
			f.now -= n
			f.cat[c] -= n
		}
		if i++; i > last {
			return
		}
	}
}

// touch makes cells dirty.
func (t *tiles) touch(first, last int64) {
	for w := first >> 6; ; w++ {
		set := ^uint64(0)
		if w == first>>6 {
			set <<= first & 63
		}
		if w == last>>6 {
			t.dirty[w&(Cells/64-1)] |= set & (^uint64(0) >> (63 - last&63))
			return
		}
		t.dirty[w&(Cells/64-1)] |= set
	}
}

// close ends the open tile and begins the next one.
func (t *tiles) close() {
	t.last.Shift = t.shift
	for w, set := range t.dirty {
		left := set
		for ; set != 0; set &= set - 1 {
			k := bits.TrailingZeros64(set)
			i := w<<6 + k
			t.last.Cell[i] = t.encode(i)
			// A cell whose next tile begins as this one ends is clean.
			if !t.cells[i].settle() {
				left &^= 1 << k
			}
		}
		t.dirty[w] = left
	}
	t.store(0, &t.last)
}

// refresh brings last up to date with the open tile.
func (t *tiles) refresh() {
	t.last.Shift = t.shift
	for w, set := range t.dirty {
		for ; set != 0; set &= set - 1 {
			i := w<<6 + bits.TrailingZeros64(set)
			t.last.Cell[i] = t.encode(i)
		}
	}
}

func (t *tiles) encode(i int) uint8 {
	f := &t.cells[i]
	if f.high <= 0 {
		return 0
	}
	return uint8(min(max(f.high*15>>t.shift, 1), 15)<<4 | int64(f.by))
}

// store puts a tile on a level, and when it is the last of its four, the four
// together on the next.
func (t *tiles) store(l int, x *Tile) {
	if l == len(t.levels) {
		t.levels = append(t.levels, vector[Tile]{})
	}
	t.levels[l].push(*x)
	n := t.levels[l].n
	if n%tileLevelFan != 0 {
		return
	}
	up := *x // the latest is the widest
	for k := 2; k <= tileLevelFan; k++ {
		up.Join(t.levels[l].at(n - k))
	}
	t.store(l+1, &up)
}

// Join makes t the tile of its own time and that of o.
func (t *Tile) Join(o *Tile) {
	if o.Shift > t.Shift {
		w := *o
		w.Join(t)
		*t = w
		return
	}
	if o.Shift == t.Shift {
		for i := 0; i < Cells; i += 8 {
			a, b := t.Cell[i:i+8], o.Cell[i:i+8]
			binary.LittleEndian.PutUint64(a, larger(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)))
		}
		return
	}
	d := min(t.Shift-o.Shift, cellBits)
	for i := range Cells >> d {
		sum, top := 0, uint8(0)
		for _, c := range o.Cell[i<<d : (i+1)<<d] {
			sum += Cell(c).Fill()
			top = max(top, c)
		}
		if sum > 0 {
			f := max(1, (sum+1<<(d-1))>>d)
			t.Cell[i] = max(t.Cell[i], uint8(f<<4)|top&15)
		}
	}
}

// Widen makes the cells of a tile as wide as 1<<shift bytes, if they are
// narrower.
func (t *Tile) Widen(shift uint8) {
	if shift > t.Shift {
		w := Tile{Shift: shift}
		w.Join(t)
		*t = w
	}
}

// larger is the larger of each pair of bytes: eight at a time, for tiles are
// joined for every column of a picture.
func larger(a, b uint64) uint64 {
	const high = 0x8080808080808080
	// The high bit of each byte of ge says that a's is at least b's: of the
	// lower seven bits by a subtraction that cannot borrow, of the high ones
	// directly.
	ge := (a | high) - (b &^ high)
	ge = a&^b&high | ^(a^b)&ge&high
	m := ge >> 7 * 255 // spread over the byte
	return a&m | b&^m
}

// over joins the tiles of points [a,b) into dst, taking whole tiles: it may
// look at up to a tile too much on either side. n is the number of points.
func (t *tiles) over(dst *Tile, a, b, n int) {
	lo, hi := a/tilePoints, (b+tilePoints-1)/tilePoints
	*dst = Tile{Shift: 0}
	fresh := true
	take := func(x *Tile) {
		if fresh {
			*dst, fresh = *x, false
		} else {
			dst.Join(x)
		}
	}
	if len(t.levels) == 0 || hi > t.levels[0].n {
		take(&t.last)
		if hi = 0; len(t.levels) > 0 {
			hi = t.levels[0].n
		}
	}
	for l := 0; lo < hi; l++ {
		up, down := (lo+tileLevelFan-1)/tileLevelFan, hi/tileLevelFan
		if up >= down {
			for i := lo; i < hi; i++ {
				take(t.levels[l].at(i))
			}
			return
		}
		for i := lo; i < up*tileLevelFan; i++ {
			take(t.levels[l].at(i))
		}
		for i := down * tileLevelFan; i < hi; i++ {
			take(t.levels[l].at(i))
		}
		lo, hi = up, down
	}
}

func (t *tiles) bytes() int64 {
	n := int64(Cells * (4 + numCats) * 8)
	for i := range t.levels {
		n += t.levels[i].bytes(tileBytes)
	}
	return n
}
