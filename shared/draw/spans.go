package draw

import "tideline/shared/store"

// exactSpans is how many columns there must be on average for each span, for
// spans to be drawn one by one.
const exactSpans = 2

// rowLane draws the rows of an op, sample, transfer or input lane.
func (r *Renderer) rowLane(c *canvas, tl *store.Timeline, v *View, l *Lane) {
	c.rect(0, 0, c.w, c.h, r.palette.lane)
	r.steps(c, tl, v)
	r.rows = appendRows(r.rows[:0], tl, l)
	gap := v.dpr()
	for i := range r.rows {
		row := &r.rows[i]
		y0, y1 := row.Y-l.Y+gap, row.Y-l.Y+row.H-gap
		if i > 0 {
			c.rect(0, y0-gap, c.w, y0-gap+1, r.palette.grid)
		}
		if row.Series >= 0 {
			r.queue(c, tl.SeriesList()[row.Series], v, y0, y1)
			continue
		}
		k := tl.Tracks()[row.Track]
		switch {
		case showsSpans(k, v):
			r.exact(c, k, v, y0, y1)
		case k.Kind == store.TransferTrack:
			r.traffic(c, r.flow(i, tl, k, v), y0, y1)
		default:
			r.busy(c, k, v, y0, y1)
		}
	}
}

// showsSpans reports whether a view holds few enough spans to draw each.
func showsSpans(k *store.Track, v *View) bool { return k.Began(v.T0, v.T1) <= v.W/exactSpans }

// color is that of a span by its track's kind and its class.
func (p *palette) color(k store.TrackKind, class uint8) pixel {
	switch k {
	case store.OpTrack:
		return p.phase[class&(store.NumClasses-1)]
	case store.TransferTrack:
		return p.cause[class&(store.NumClasses-1)]
	case store.StallTrack:
		return p.warning
	}
	return p.stage
}

// exact draws spans one by one. The height of a transfer is its share of the
// largest in the view; that of anything else is the row's.
func (r *Renderer) exact(c *canvas, k *store.Track, v *View, y0, y1 int) {
	w := v.part(c.x0, c.x1)
	if k.Kind == store.StallTrack {
		// Those just before the piece may reach into it by their least width.
		w = v.part(c.x0-v.dpr(), c.x1)
	}
	r.ids = k.Overlapping(r.ids[:0], w.T0, w.T1, 0)
	var largest int64
	if k.Kind == store.TransferTrack {
		for _, i := range r.ids {
			largest = max(largest, k.Span(int(i)).Value)
		}
	}
	for _, i := range r.ids {
		s := k.Span(int(i))
		x0, x1 := v.x(s.Begin), v.x(s.End)
		// A pixel of air parts neighbours where there is room for it.
		if x1-x0 > 3 {
			x1--
		}
		x1 = max(x1, x0+1)
		if k.Kind == store.StallTrack {
			x1 = max(x1, x0+v.dpr()) // never to be overlooked
		}
		top := y0
		if largest > 0 {
			top = y1 - max(int(float64(y1-y0)*float64(s.Value)/float64(largest)+0.5), 2)
		}
		c.rect(x0, top, x1, y1, r.palette.color(k.Kind, s.Class))
	}
}

// busy draws for each column how much of its time was at work, by class.
func (r *Renderer) busy(c *canvas, k *store.Track, v *View, y0, y1 int) {
	w := v.part(c.x0, c.x1)
	r.bucketsOf(k, w)
	for i := range r.spans {
		d := w.Edge(i+1) - w.Edge(i)
		b, x := &r.spans[i], c.x0+i
		total := b.Busy.Total()
		if total <= 0 {
			continue
		}
		if k.Kind == store.StallTrack {
			// Time lost must be seen at any scale: full height, weaker.
			a := 96 + 160*float64(min(total, d))/float64(max(d, 1))
			c.shade(x, y0, x+1, y1, r.palette.warning, uint32(a))
			continue
		}
		// Parts of the height by class; overlapping spans share it.
		full := float64(y1-y0) * float64(min(total, d)) / float64(max(d, 1))
		y, done := float64(y1), int64(0)
		for class, n := range b.Busy {
			if n <= 0 {
				continue
			}
			done += n
			up := float64(y1) - full*float64(done)/float64(total)
			c.column(x, int(up+0.5), int(y+0.5), r.palette.color(k.Kind, uint8(class)))
			y = up
		}
		if y > float64(y1)-1 {
			c.column(x, y1-1, y1, r.palette.color(k.Kind, b.Busy.Most()))
		}
	}
}

func (r *Renderer) bucketsOf(k *store.Track, w store.Window) {
	r.spans = grown(r.spans, w.W)
	r.ids = k.Buckets(w, r.spans, r.ids)
}

// fullQueue is the depth at the upper edge of a queue's row.
func fullQueue(q *store.Series, v *View) int64 { return max(q.Second, q.Highest(v.T0, v.T1), 1) }

// queue draws a buffer's depth as an area below its capacity, and a sampled
// number of a whole, below a line.
func (r *Renderer) queue(c *canvas, q *store.Series, v *View, y0, y1 int) {
	w := v.part(c.x0, c.x1)
	r.series = grown(r.series, w.W)
	q.Buckets(w, r.series)
	full := fullQueue(q, v)
	h := float64(y1 - y0)
	for i := range r.series {
		b, x := &r.series[i], c.x0+i
		if !b.Known {
			continue
		}
		// Solid up to the lowest: an empty queue is what matters.
		lo := y1 - int(h*float64(b.Min)/float64(full)+0.5)
		hi := y1 - int(h*float64(b.Max)/float64(full)+0.5)
		c.column(x, lo, y1, r.palette.queue)
		for y := hi; y < lo; y++ {
			c.blend(x, y, r.palette.queue, 120)
		}
		if q.Kind == store.SampleSeries {
			c.column(x, max(hi-r.dpr, y0), max(lo, hi+1)-r.dpr, r.palette.reserved)
		}
	}
}
