package draw

import (
	"encoding/binary"

	"tideline/shared/store"
)

// What passes a filter is drawn in full colour over the whole, which is dimmed;
// what has no category, such as all of a foreign program, in the filter's own. In
// a memory lane it is a stack from the bottom with a line on top, in an address
// lane it lies in its places. Where a filter has not looked yet, all is dimmed
// and there is no line.

// passingColumns draws the stack of what passes into the strip, whose first
// column is x, as far as the filter has looked.
func (r *Renderer) passingColumns(s scale, x, until, left int, hide uint32) {
	shades := r.palette.passShades()
	for i := range min(r.strip.w, max(until-x, 0)) {
		if b := &r.passing[x+i-left]; b.Max > 0 {
			r.memoryColumn(s, i, 0, b, &shades, hide)
		}
	}
}

// passingLine draws the top of what passes as one unbroken line, with a halo
// that keeps it apart from any colour.
func (r *Renderer) passingLine(c *canvas, s scale, x0, x1, left int, hide uint32) {
	d, pal := r.dpr, &r.palette
	for pass := range 2 {
		before := -1
		for x := x0; x < x1; x++ {
			y := s.row(drawn(&r.passing[x-left], hide))
			if pass == 0 {
				c.shade(x, y-2*d, x+1, y-d, pal.halo, 120)
			} else {
				c.rect(x, y-d, x+1, y, pal.line)
				if before >= 0 {
					// Where many changes share a column, steep parts at full strength
					// would hide what they stand on.
					c.shade(x, min(y, before), x+1, max(y, before)-d, pal.line, 100)
				}
			}
			before = y
		}
	}
}

// drawn is the bytes of a bucket in categories that are drawn.
func drawn(b *store.MemoryBucket, hide uint32) int64 {
	n := b.Max
	for k, v := range b.ByCategory {
		if hide>>k&1 != 0 {
			n -= v
		}
	}
	return n
}

// partCells makes the colours of cells for what passes and for the rest, with 0
// for what is not to be painted.
func (r *Renderer) partCells(hide uint32) {
	r.cells, r.dimCells = r.palette.partCell, r.palette.dimCell
	for i := range r.cells {
		if c := store.Cell(i); c.Fill() == 0 || hide>>c.Category()&1 != 0 {
			r.cells[i], r.dimCells[i] = 0, 0
		}
	}
}

// partColumn paints column x of the strip: each row the fullest of its cells
// that passes, else the fullest of all, dimmed.
func (r *Renderer) partColumn(x, h int) {
	// One cell more than a tile has stands for what lies beyond it.
	var all, pass [2 * store.Cells]uint8
	copy(all[:], r.tile.Cell[:])
	copy(pass[:], r.passes.Cell[:])
	low, high := r.cellOf[:h], r.cellTop[:h]
	o := 4 * x
	for y := range low {
		a, b := low[y]&(2*store.Cells-1), high[y]&(2*store.Cells-1)
		cell, mine := max(all[a], all[b]), max(pass[a], pass[b])
		for a++; a < b; a++ {
			cell, mine = max(cell, all[a]), max(mine, pass[a])
		}
		p := r.cells[mine]
		if p == 0 {
			p = r.dimCells[cell]
		}
		if p != 0 {
			binary.LittleEndian.PutUint32(r.strip.buf[o:], uint32(p))
		}
		o += stripStride
	}
}
