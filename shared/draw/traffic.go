package draw

import "tideline/shared/store"

// flow is what crossed on one row of a transfer lane, column by column. It is
// kept from frame to frame, because all columns are measured by the busiest in
// view: panning must know of all, but may look up only those that come in.
type flow struct {
	tl      *store.Timeline
	track   *store.Track
	version uint64
	t0, t1  int64
	bytes   []store.Sums
	largest int64
	since   int // the first column that the last look changed
}

// flow is that of row i for a view.
func (r *Renderer) flow(i int, tl *store.Timeline, k *store.Track, v *View) *flow {
	for len(r.flows) <= i {
		r.flows = append(r.flows, flow{})
	}
	f := &r.flows[i]
	same := f.tl == tl && f.track == k && f.version == tl.Version() && len(f.bytes) == v.W
	if same && f.t0 == v.T0 && f.t1 == v.T1 {
		return f
	}
	old := View{T0: f.t0, T1: f.t1, W: v.W}
	stays := f.tl == tl && f.track == k && len(f.bytes) == v.W && f.t0 == v.T0 && f.t1 == v.T1
	f.bytes = grown(f.bytes, v.W)
	f.since = 0
	x0, x1 := 0, v.W // the columns to look up
	if dx, ok := scrolled(&old, v); same && ok {
		if dx > 0 {
			copy(f.bytes, f.bytes[dx:])
			x0 = v.W - dx
		} else {
			copy(f.bytes[-dx:], f.bytes)
			x1 = -dx
		}
	}
	r.bucketsOf(k, v.part(x0, x1))
	for stays && f.since < v.W && f.bytes[f.since] == r.spans[f.since].Value {
		f.since++
	}
	for n := range r.spans {
		f.bytes[x0+n] = r.spans[n].Value
	}
	f.tl, f.track, f.version, f.t0, f.t1 = tl, k, tl.Version(), v.T0, v.T1
	f.largest = 0
	for x := range f.bytes {
		f.largest = max(f.largest, f.bytes[x].Total())
	}
	return f
}

// sameMeasure reports whether a scrolled transfer lane is still measured by
// what it was in the window from t0 to t1, so that the columns it has kept are
// right.
func (r *Renderer) sameMeasure(tl *store.Timeline, v *View, l *Lane, t0, t1 int64) bool {
	r.rows = appendRows(r.rows[:0], tl, l)
	for i := range r.rows {
		k := tl.Tracks()[r.rows[i].Track]
		if i >= len(r.flows) || showsSpans(k, v) {
			return false
		}
		f := &r.flows[i]
		if f.tl != tl || f.track != k || f.t0 != t0 || f.t1 != t1 {
			return false
		}
		before := f.largest
		if r.flow(i, tl, k, v).largest != before {
			return false
		}
	}
	return true
}

// traffic draws for each column the bytes that crossed in it, by cause, as a
// share of the busiest column.
func (r *Renderer) traffic(c *canvas, f *flow, y0, y1 int) {
	for x := c.x0; x < c.x1; x++ {
		b := &f.bytes[x]
		total := b.Total()
		if total <= 0 {
			continue
		}
		full := max(float64(y1-y0)*float64(total)/float64(f.largest), 1)
		y, done := float64(y1), int64(0)
		for class, n := range b {
			if n <= 0 {
				continue
			}
			done += n
			up := float64(y1) - full*float64(done)/float64(total)
			c.column(x, int(up+0.5), int(y+0.5), r.palette.color(store.TransferTrack, uint8(class)))
			y = up
		}
	}
}
