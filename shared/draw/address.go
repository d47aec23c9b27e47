package draw

import (
	"encoding/binary"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// exactPerColumn is how many changes a column may hold on average for blocks
// to be drawn one by one; with more, tiles are: at the limit a tile spans two
// columns.
const exactPerColumn = 64

// span is the part of the layout that a lane shows: unless told otherwise, as
// much as was ever used, and a little of what was not.
func (l *Lane) span(p *store.Pool) (low, high int64) {
	if l.High > l.Low {
		return l.Low, l.High
	}
	return 0, max(min(p.LayoutSize(), p.LayoutUsed()+p.LayoutUsed()/8), 1)
}

// addressScale turns places of the layout into rows, low addresses below.
type addressScale struct {
	h         int
	low, high int64
}

func (s addressScale) y(off int64) int {
	d := float64(s.high - s.low)
	f := float64(off-s.low) * float64(s.h) / d
	return s.h - int(min(max(f, -1), float64(s.h)+1)+0.5)
}

// off is the place at the lower edge of row y.
func (s addressScale) off(y int) int64 {
	return s.low + int64(float64(s.h-1-y)*float64(s.high-s.low)/float64(s.h))
}

// Row is the pixel row, counted from the lane's upper edge, that a place of the
// pool's layout has in an address lane.
func (l *Lane) Row(p *store.Pool, off int64) int {
	low, high := l.span(p)
	return min(max(addressScale{l.H, low, high}.y(off), 0), l.H)
}

func (r *Renderer) addressLane(c *canvas, tl *store.Timeline, v *View, l *Lane) {
	c.rect(0, 0, c.w, c.h, r.palette.outside)
	if l.Pool >= len(tl.Pools()) {
		return
	}
	p := tl.Pools()[l.Pool]
	low, high := l.span(p)
	s := addressScale{l.H, low, high}
	end := v.end(tl)
	for i, g := range p.Regions() {
		if g.Offset < high && g.Offset+g.Size > low {
			y0, y1 := s.y(g.Offset+g.Size), s.y(g.Offset)
			p.Holds(i, v.Window(), func(added, removed int64) {
				c.rect(v.x(added), y0, min(v.x(removed), end), y1, r.palette.hole)
			})
		}
	}
	if showsTiles(p, v) {
		r.addressTiles(c, s, p, v, v.partOf(l), min(end, c.x1))
	} else if part := v.partOf(l); part != nil {
		// What passes last: a row or a column that both share is its.
		r.addressBlocks(c, s, p, v, end, func(i int) bool { return !part.Holds(i) }, &r.palette.dimBlock)
		r.addressBlocks(c, s, p, v, end, part.Holds, &r.palette.pass)
	} else {
		r.addressBlocks(c, s, p, v, end, nil, &r.palette.category)
	}
	for _, g := range p.Regions() {
		// Where two regions meet, unless they are too thin to be seen.
		if y := s.y(g.Offset); g.Offset > 0 && y-s.y(g.Offset+g.Size) >= 3 {
			c.rect(0, y-1, c.w, y, r.palette.outside)
		}
	}
	r.oomMarks(c, tl, v, l.Pool)
}

// showsTiles reports whether a view holds too many blocks to draw each.
func showsTiles(p *store.Pool, v *View) bool { return p.Changes(v.T0, v.T1) > exactPerColumn*v.W }

// addressBlocks draws those blocks of the window that are meant, or all without
// a choice, one by one in the colours of their categories.
func (r *Renderer) addressBlocks(c *canvas, s addressScale, p *store.Pool, v *View, end int, meant func(int) bool, colors *[event.NumCategories]pixel) {
	w := v.part(c.x0, c.x1)
	r.ids = p.Overlapping(r.ids[:0], w.T0, w.T1, 0)
	pal := &r.palette
	perByte := float64(s.h) / float64(s.high-s.low)
	for _, i := range r.ids {
		if meant != nil && !meant(int(i)) {
			continue
		}
		b := p.Box(int(i))
		if b.Offset < 0 || b.Offset+b.Size <= s.low || b.Offset >= s.high || v.Hide>>b.Category&1 != 0 {
			continue
		}
		x0 := v.x(b.Birth)
		x1 := max(min(v.x(b.Death), end), x0+1)
		y1 := s.h - int(max(float64(b.Offset-s.low)*perByte, 0)+0.5)
		y0 := s.h - int(min(float64(b.Offset+b.Size-s.low)*perByte, float64(s.h))+0.5)
		if y0 >= y1 {
			y0 = y1 - 1
		}
		c.rect(x0, y0, x1, y1, colors[b.Category])
		edge := pal.edge[b.Category]
		if colors == &pal.dimBlock {
			edge = pal.hole
		}
		if y1-y0 >= 4 && x1-x0 >= 2 {
			// A lit upper edge tells neighbours of one category apart.
			c.rect(x0, y0, x1, y0+1, edge)
		}
		if x1-x0 >= 4 && y1-y0 >= 2 {
			c.rect(x0, y0, x0+1, y1, edge)
		}
	}
}

// addressTiles draws each column from the tiles of its time.
func (r *Renderer) addressTiles(c *canvas, s addressScale, p *store.Pool, v *View, part *store.Part, end int) {
	w := v.Window()
	shift := -1
	h := min(s.h, len(r.cellOf), c.h)
	r.useCells(v.Hide)
	until := end
	if part != nil {
		r.partCells(v.Hide)
		until = v.x(part.Until())
	}
	var cur, partCur store.TileCursor
	for x := max(v.x(p.FirstChange()), c.x0); x < end; x += stripWidth {
		r.strip.take(c, x, end)
		for i := range r.strip.w {
			p.TileNext(&cur, &r.tile, w.Edge(x+i), w.Edge(x+i+1))
			if part != nil {
				if r.passes = (store.Tile{}); x+i < until {
					part.TileNext(&partCur, &r.passes, w.Edge(x+i), w.Edge(x+i+1))
				}
				r.passes.Widen(r.tile.Shift)
				r.tile.Widen(r.passes.Shift)
			}
			if int(r.tile.Shift) != shift {
				shift = int(r.tile.Shift)
				r.mapCells(s, h, shift)
			}
			switch {
			case part != nil:
				r.partColumn(i, h)
			case r.oneCell:
				r.cellColumn(i, h)
			default:
				r.tileColumn(i, h)
			}
		}
		r.strip.put(c)
	}
}

// mapCells finds the cells that each row shows.
func (r *Renderer) mapCells(s addressScale, h, shift int) {
	single := (s.high-s.low)>>shift < int64(s.h)
	r.oneCell = single
	for y := range h {
		bottom, top := s.off(y), s.off(y-1)-1
		if single {
			// No cell is lower than a row: each has rows whose middle it holds.
			bottom += (top - bottom) / 2
			top = bottom
		}
		lo, hi := bottom>>shift, top>>shift
		r.cellTop[y] = uint16(min(max(hi, lo, 0), store.Cells))
		r.cellOf[y] = uint16(min(max(lo, 0), store.Cells))
	}
}

// tileColumn paints column x of the strip: each row the fullest of its cells.
func (r *Renderer) tileColumn(x, h int) {
	// One cell more than a tile has stands for what lies beyond it.
	var cells [2 * store.Cells]uint8
	copy(cells[:], r.tile.Cell[:])
	low, high := r.cellOf[:h], r.cellTop[:h]
	o := 4 * x
	for y := range low {
		a, b := low[y]&(2*store.Cells-1), high[y]&(2*store.Cells-1)
		cell := max(cells[a], cells[b])
		for a++; a < b; a++ {
			cell = max(cell, cells[a])
		}
		if p := r.cells[cell]; p != 0 {
			binary.LittleEndian.PutUint32(r.strip.buf[o:], uint32(p))
		}
		o += stripStride
	}
}

// cellColumn is tileColumn where each row shows one cell. Without a branch and
// four rows at a time it costs a third, most of all in WebAssembly.
func (r *Renderer) cellColumn(x, h int) {
	var cells [2 * store.Cells]uint8
	copy(cells[:], r.tile.Cell[:])
	rows := r.cellOf[:h]
	b := r.strip.buf[4*x:]
	put := func(d []byte, row uint16) {
		cell := cells[row&(2*store.Cells-1)]
		old := binary.LittleEndian.Uint32(d)
		binary.LittleEndian.PutUint32(d, old&r.through[cell]|uint32(r.cells[cell]))
	}
	for ; len(rows) > 4; rows = rows[4:] {
		d := (*[3*stripStride + 4]byte)(b)
		put(d[0*stripStride:], rows[0])
		put(d[1*stripStride:], rows[1])
		put(d[2*stripStride:], rows[2])
		put(d[3*stripStride:], rows[3])
		b = b[4*stripStride:]
	}
	for y, row := range rows {
		put(b[y*stripStride:], row)
	}
}

// useCells makes the colours of cells those of the palette, with 0 for what is
// not to be painted.
func (r *Renderer) useCells(hide uint32) {
	r.cells, r.through = r.palette.cell, [256]uint32{}
	for i := range r.cells {
		if c := store.Cell(i); c.Fill() == 0 || hide>>c.Category()&1 != 0 {
			r.cells[i], r.through[i] = 0, ^uint32(0)
		}
	}
}
