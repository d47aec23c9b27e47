package draw

import (
	"encoding/binary"

	"tideline/shared/store"
)

// What passes a filter is drawn in full colour over the whole, which is dimmed:
// in a memory lane as a stack of its own from the bottom with a line on top, in
// an address lane in its places. Where a filter has not looked yet, all is
// dimmed and there is no line.

// passingColumns draws the stack of what passes into the strip, whose first
// column is x, as far as the filter has looked.
func (r *Renderer) passingColumns(s scale, x, until, left int, hide uint32) {
	shades := r.palette.shades()
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
			from, to := y, y
			if before >= 0 {
				from, to = min(y, before), max(y, before)
			}
			// Within the lane where nothing passes, too.
			from, to = min(from, c.h), min(to, c.h)
			if pass == 0 {
				c.shade(x, from-2*d, x+1, from-d, pal.halo, 120)
			} else {
				c.rect(x, from-d, x+1, max(to-d, from), pal.line)
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
