package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// Within a category's part of a memory lane the blocks lie by age, the oldest
// lowest, each that is high enough with an edge along its top; what is too thin
// or too short-lived to be told apart lies above them, as one. What is drawn
// and what lies under the pointer come from the same store.Bands.

const (
	// thinnest is how high a block must be to be told apart, in pixels of CSS.
	thinnest = 3
	// bandsPerColumn is how many blocks that ended a view may tell apart for each
	// of its columns, on average: those that lived longest.
	bandsPerColumn = 8
	// edgeWeight is how much of the lane's colour is in an edge, of 256: as in the
	// edges of an address map.
	edgeWeight = 82
)

// detail is which blocks of a pool a memory lane tells apart.
func detail(tl *store.Timeline, v *View, l *Lane) store.Detail {
	p := tl.Pools()[l.Pool]
	top := Scale(tl, v, l)
	least := int64(float64(thinnest*v.dpr())*float64(top)/float64(max(l.H, 1))) + 1
	return p.Detail(v.Window(), least, bandsPerColumn*v.W)
}

// detailed is a detail and all that it was found from.
type detailed struct {
	tl      *store.Timeline
	version uint64
	window  store.Window
	lane    Lane
	top     int64
	dpr     int
	store.Detail
}

// detail is detail, found once for all pieces of a frame.
func (r *Renderer) detail(tl *store.Timeline, v *View, l *Lane) store.Detail {
	for len(r.details) <= l.Pool {
		r.details = append(r.details, detailed{})
	}
	k := detailed{tl: tl, version: tl.Version(), window: v.Window(), lane: *l, top: Scale(tl, v, l), dpr: v.dpr()}
	was := &r.details[l.Pool]
	k.Detail = was.Detail
	if *was != k {
		*was = k
		was.Detail = detail(tl, v, l)
	}
	return was.Detail
}

// holds is the choice of what passes a filter; nil for all.
func holds(part *store.Part) func(alloc int) bool {
	if part == nil {
		return nil
	}
	return part.Holds
}

// beginBands gets ready for the columns of a window, of which left is drawn
// already.
func (r *Renderer) beginBands(tl *store.Timeline, v *View, l *Lane, w store.Window, part *store.Part, buckets []store.MemoryBucket, x0, left int) {
	r.bands.Begin(tl.Pools()[l.Pool], w, r.detail(tl, v, l), holds(part))
	r.edges.keep = false
	if x0 > left {
		r.bands.Next(&buckets[x0-1-left])
	}
}

// edges are those of the last column that was drawn: most are like the one
// before.
type edges struct {
	list []edge
	min  int64 // of the column's bucket
	keep bool  // the next column may have the same
}

type edge struct {
	y0, y1 int
	color  pixel
}

// bandEdges draws the edges of the single blocks of column x, which is number i
// of the strip, over its stack.
func (r *Renderer) bandEdges(s scale, v *View, x, i int, b *store.MemoryBucket, of *shades) {
	r.bands.Next(b)
	e := &r.edges
	if !e.keep || !r.bands.Still() || e.min != b.Min {
		r.findEdges(s, v, x, b, of)
	}
	for k := range e.list {
		r.strip.column(i, e.list[k].y0, e.list[k].y1, e.list[k].color)
	}
}

// findEdges finds the edges of column x.
func (r *Renderer) findEdges(s scale, v *View, x int, b *store.MemoryBucket, of *shades) {
	e := &r.edges
	e.list, e.min, e.keep = e.list[:0], b.Min, true
	sum := int64(0)
	steady := int(s.y(b.Min) + 0.5)
	for k, n := range b.ByCategory {
		if n == 0 || v.Hide>>k&1 != 0 {
			continue
		}
		at := sum
		sum += n
		list := r.bands.Of(event.Category(k))
		if len(list) == 0 {
			continue
		}
		full := mix(of.full[k], r.palette.lane, edgeWeight)
		faint := mix(of.faint[k], r.palette.lane, edgeWeight)
		end, low := top(s, sum), top(s, at)
		// Between blocks a row is that of its middle, as under the pointer.
		for j := range list {
			band := &list[j]
			at += band.Size
			high := s.row(at)
			if high > end { // something of its category lies above it
				color := full
				if high < steady {
					color = faint
				}
				e.list = append(e.list, edge{high, high + 1, color})
			}
			if r.bands.Fresh(band) && v.x(r.bands.Ends(band))-x >= 4*r.dpr {
				from := max(high, end)
				e.list = append(e.list, edge{from, min(steady, low), faint}, edge{max(from, steady), low, full})
				e.keep = false
			}
			low = high
		}
	}
}

// top is the uppermost row that lies wholly below a number of bytes.
func top(s scale, bytes int64) int {
	y := s.y(bytes)
	row := int(y)
	if float64(row) < y {
		row++
	}
	return row
}
