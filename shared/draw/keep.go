package draw

import "tideline/shared/store"

// shown is what a lane's pixels show: some of them exactly, the others what
// stood there before, moved to where it belongs by now.
type shown struct {
	key    laneKey
	t0, t1 int64
	mode   uint64 // see Renderer.mode
	// What was known when it was drawn: see Renderer.gained.
	measure uint64
	last    int64 // time of the last event, or from which a filter has not looked
	points  int   // changes of the lane's pool, as far as a filter has looked
	// The columns [from,to) are exact.
	from, to int
	// What this frame touched.
	changedFrom, changedTo int
	// must: the old picture is none of this lane, so that it cannot wait.
	must bool
}

// note remembers what is known of a lane's timeline by now.
func (s *shown) note(tl *store.Timeline, v *View, i int) {
	_, s.last = tl.Span()
	s.points = 0
	if l := &v.Lanes[i]; l.Pool < len(tl.Pools()) {
		s.points = tl.Pools()[l.Pool].Points()
	}
	if part := s.key.part; part != nil {
		s.last, s.points = min(s.last, part.Until()), min(s.points, part.Taken())
	}
}

func (s *shown) touch(x0, x1 int) {
	if s.changedTo <= s.changedFrom {
		s.changedFrom, s.changedTo = x0, x1
		return
	}
	s.changedFrom, s.changedTo = min(s.changedFrom, x0), max(s.changedTo, x1)
}

// pieceWidth is how many columns are drawn between two questions whether it is
// enough: a small part of what a frame may take.
const pieceWidth = stripWidth

// keep finds what of a lane can stay: all of it, the columns that a scrolled
// window has in common with the last one, or none; and moves it into place.
func (r *Renderer) keep(img *Image, tl *store.Timeline, v *View, i int) {
	s, k := &r.drawn[i], r.key(tl, v, i)
	s.changedFrom, s.changedTo, s.must = 0, 0, false
	before := s.last
	gained := s.key != k && r.gained(tl, v, i, s, &k)
	if s.key != k && !gained {
		if r.Enough == nil || !s.key.sameButFilter(&k) {
			*s = shown{t0: v.T0, t1: v.T1, mode: r.mode(tl, v, i), measure: r.measure(tl, v, i), must: true}
		}
		// Another filter: the picture before can be looked at meanwhile.
		s.from, s.to = 0, 0
	}
	if s.key != k {
		s.key = k
		s.note(tl, v, i)
	}
	if !s.must && (s.t0 != v.T0 || s.t1 != v.T1) {
		r.move(img, tl, v, i)
	}
	if gained && r.Enough != nil {
		r.newest(img, tl, v, i, before)
	}
}

// sameButFilter reports whether two keys differ at most by what passes a filter.
func (k laneKey) sameButFilter(o *laneKey) bool {
	k.part, k.partSeen = o.part, o.partSeen
	return k == *o
}

// move keeps what of a lane's picture lies in another window too.
func (r *Renderer) move(img *Image, tl *store.Timeline, v *View, i int) {
	s := &r.drawn[i]
	old := View{T0: s.t0, T1: s.t1, W: v.W}
	mode := r.mode(tl, v, i)
	dx, scrolled := scrolled(&old, v)
	c := img.canvas(Rect{0, v.Lanes[i].Y, v.W, v.Lanes[i].H})
	switch {
	case scrolled && mode == s.mode && r.scrolls(tl, v, s, &v.Lanes[i]):
		c.scroll(dx)
		if r.Enough != nil {
			c.rect(0, 0, -dx, c.h, r.palette.lane)
			c.rect(v.W-dx, 0, v.W, c.h, r.palette.lane)
		}
		s.from, s.to = max(s.from-dx, 0), min(s.to-dx, v.W)
		if s.from >= s.to {
			s.from, s.to = 0, 0
		}
		s.touch(0, v.W)
	case r.Enough != nil && v.Lanes[i].Kind != MinimapLane:
		r.stretch(&c, &old, v)
		s.from, s.to = 0, 0
		s.touch(0, v.W)
	default:
		s.from, s.to = 0, 0
	}
	s.t0, s.t1, s.mode = v.T0, v.T1, mode
}

// scrolls reports whether the columns of a lane that stay in view stay as they
// are.
func (r *Renderer) scrolls(tl *store.Timeline, v *View, s *shown, l *Lane) bool {
	switch l.Kind {
	case MinimapLane:
		return false
	case TransferLane:
		return s.from < s.to && r.sameMeasure(tl, v, l, s.t0, s.t1)
	}
	return true
}

// wholeOnly reports whether a lane's columns depend on each other: transfers
// are measured by the largest in view, and a minimap marks the view.
func wholeOnly(k LaneKind) bool { return k == TransferLane || k == MinimapLane }

// scrolled is how many columns a view lies to the right of an old one; false
// when they have no columns in common.
func scrolled(old, v *View) (dx int, ok bool) {
	step := v.step()
	by := v.T0 - old.T0
	if step == 0 || old.step() != step || by%step != 0 {
		return 0, false
	}
	by /= step
	return int(by), by > -int64(v.W) && by < int64(v.W)
}

// mode is what a lane's pixels take from the whole window rather than from
// their own columns: what is drawn one by one, and by which measure.
func (r *Renderer) mode(tl *store.Timeline, v *View, i int) uint64 {
	l := &v.Lanes[i]
	m := uint64(1)
	add := func(n uint64) { m = (m ^ n) * 0x9e3779b97f4a7c15 }
	flag := func(b bool) {
		if b {
			add(1)
		} else {
			add(2)
		}
	}
	switch l.Kind {
	case MemoryLane:
		flag(showsSteps(tl, v))
		if l.Pool < len(tl.Pools()) {
			d := r.detail(tl, v, l)
			add(uint64(d.Least))
			add(uint64(d.Rank))
		}
	case AddressLane:
		if l.Pool < len(tl.Pools()) {
			flag(showsTiles(tl.Pools()[l.Pool], v))
		}
	case OpLane, SampleLane, InputLane, TransferLane:
		flag(showsSteps(tl, v))
		r.rows = appendRows(r.rows[:0], tl, l)
		for k := range r.rows {
			if s := r.rows[k].Series; s >= 0 {
				add(uint64(fullQueue(tl.SeriesList()[s], v)))
			} else {
				flag(showsSpans(tl.Tracks()[r.rows[k].Track], v))
			}
		}
	}
	return m
}

// refine draws what is not exact yet: at once where it must, then piece by
// piece, lane by lane in turn, from the middle outwards, until it is enough.
func (r *Renderer) refine(img *Image, tl *store.Timeline, v *View) {
	for i := range r.drawn {
		if s := &r.drawn[i]; s.must || r.Enough == nil || v.step() == 0 {
			for r.piece(img, tl, v, i, v.W) {
			}
		}
	}
	if r.Enough == nil {
		return
	}
	begun := false
	for idle := 0; idle < len(r.drawn); r.turn++ {
		if r.turn >= len(r.drawn) {
			r.turn = 0
		}
		if begun && wholeOnly(v.Lanes[r.turn].Kind) && r.drawn[r.turn].to == 0 {
			break // too much for what is left of this frame's time
		}
		if !r.piece(img, tl, v, r.turn, pieceWidth) {
			idle++
			continue
		}
		idle, begun = 0, true
		if r.Enough() {
			r.turn++
			break
		}
	}
	for i := range r.drawn {
		r.pending = r.pending || r.drawn[i].to-r.drawn[i].from < v.W
	}
}

// piece draws the next piece of a lane; false when all of it is exact.
func (r *Renderer) piece(img *Image, tl *store.Timeline, v *View, i, width int) bool {
	s := &r.drawn[i]
	var x0, x1 int
	switch {
	case s.to-s.from >= v.W:
		return false
	case v.step() == 0 || s.from == s.to && wholeOnly(v.Lanes[i].Kind):
		x0, x1 = 0, v.W
		s.from, s.to = x0, x1
	case s.from == s.to:
		x0 = max(v.W/2-width/2, 0)
		x1 = min(x0+width, v.W)
		s.from, s.to = x0, x1
	case s.to < v.W && (s.from == 0 || v.W-s.to >= s.from):
		x0, x1 = s.to, min(s.to+width, v.W)
		s.to = x1
	default:
		x0, x1 = max(s.from-width, 0), s.from
		s.from = x0
	}
	r.paint(img, tl, v, i, x0, x1)
	s.touch(x0, x1)
	return true
}

// scroll moves the picture dx columns to the left; what comes in shows what
// stood there.
func (c *canvas) scroll(dx int) {
	from, to, n := 4*max(dx, 0), 4*max(-dx, 0), 4*(c.w-max(dx, -dx))
	if n <= 0 || dx == 0 {
		return
	}
	for y := range c.h {
		row := c.pix[y*c.stride : y*c.stride+4*c.w]
		copy(row[to:to+n], row[from:from+n])
	}
}
