package draw

import "tideline/shared/store"

// overview is a minimap without its window: only the window moves.
type overview struct {
	under    Image
	underKey laneKey
}

// minimap draws the whole run's bytes in use, stalls and failed requests, and
// dims what lies outside the view.
func (r *Renderer) minimap(c *canvas, tl *store.Timeline, v *View, l *Lane) {
	k := laneKey{tl: tl, version: tl.Version(), w: v.W, dpr: v.dpr(), theme: *v.Theme, lane: *l}
	if r.underKey != k || r.under.W != c.w || r.under.H != c.h {
		if r.under.W != c.w || r.under.H != c.h {
			r.under = *NewImage(c.w, c.h)
		}
		u := r.under.canvas(Rect{0, 0, c.w, c.h})
		r.run(&u, tl, v, l)
		r.underKey = k
	}
	for y := range c.h {
		copy(c.pix[y*c.stride:y*c.stride+4*c.w], r.under.Pix[y*r.under.Stride:])
	}
	pal, d := &r.palette, v.dpr()
	axis := axisOf(tl, v, l)
	x0, x1 := axis.x(v.T0), axis.x(v.T1)
	x1 = max(x1, x0+2*d)
	background := v.Theme.Background.pixel()
	c.shade(0, 0, x0, c.h, background, 150)
	c.shade(x1, 0, c.w, c.h, background, 150)
	c.rect(x0-d, 0, x0, c.h, pal.line)
	c.rect(x1, 0, x1+d, c.h, pal.line)
}

// run draws the whole run.
func (r *Renderer) run(c *canvas, tl *store.Timeline, v *View, l *Lane) {
	pal := &r.palette
	c.rect(0, 0, c.w, c.h, pal.lane)
	axis, d := axisOf(tl, v, l), v.dpr()
	for _, part := range [...]section{axis.before, axis.after} {
		if part.W > 0 {
			r.section(c, tl, v, l, part)
		}
	}
	if axis.gap > 0 {
		at := axis.before.W
		c.rect(at, 0, at+axis.gap, c.h, v.Theme.Background.pixel())
		for x := at; x < at+axis.gap; x++ {
			c.hatch(x, x, 0, c.h, 6*d, pal.line, 110)
		}
		c.rect(at, 0, at+d, c.h, pal.line)
		c.rect(at+axis.gap-d, 0, at+axis.gap, c.h, pal.line)
	}
	list := tl.OOMs()
	for i, o := range list {
		if o.Retryable {
			continue
		}
		x := min(axis.x(o.Time), c.w-d) // the last often ends the run
		if i > 0 && i+1 < len(list) && axis.x(list[i+1].Time)-axis.x(list[i-1].Time) < crowded*d {
			c.rect(x, 0, max(x+d, axis.x(list[i+1].Time)), 3*d, pal.warning)
			continue
		}
		c.rect(x, 0, x+d, c.h, pal.warning)
	}
}

// section draws a part of the run.
func (r *Renderer) section(c *canvas, tl *store.Timeline, v *View, l *Lane, part section) {
	pal, d := &r.palette, v.dpr()
	if l.Pool < len(tl.Pools()) {
		whole := Whole(tl, v)
		r.series = grown(r.series, part.W)
		tl.Pools()[l.Pool].Outline(part.Window, r.series)
		s := scale{l.H, float64(Scale(tl, &whole, l))}
		for i := range r.series {
			if b := &r.series[i]; b.Known {
				lo := s.row(b.Min)
				c.column(part.x+i, lo, c.h, pal.reserved)
				for y := s.row(b.Max); y < lo; y++ {
					c.blend(part.x+i, y, pal.reserved, 110)
				}
			}
		}
	}
	for _, k := range tl.Tracks() {
		if k.Kind == store.StallTrack {
			r.bucketsOf(k, part.Window)
			for i := range r.spans {
				if r.spans[i].Busy.Total() > 0 {
					c.rect(part.x+i, c.h-2*d, part.x+i+1, c.h, pal.warning)
				}
			}
		}
	}
}

// moment is the nanoseconds that a timeline of a single moment is drawn as.
const moment = 1_000_000

// Whole is the view of the whole run, with the columns of v.
func Whole(tl *store.Timeline, v *View) View {
	w := *v
	w.T0, w.T1 = tl.Span()
	if w.T1 == w.T0 {
		w.T1 += moment // wide enough that columns have times of their own
	}
	return w
}

// IdleShare is the part of a minimap's width that an idle time takes which is
// left out of it: a mark that something is missing, and no more.
const IdleShare = 0.06

// axis is the time axis of a minimap. Where the run waits long for nothing, it
// is broken: the wait has a few columns, and the run's own time the others.
type axis struct {
	before, after section // of the idle time; without one, all is before it
	gap           int     // columns between them
}

// section is a part of the run and its first column.
type section struct {
	store.Window
	x int
}

func axisOf(tl *store.Timeline, v *View, l *Lane) axis {
	whole := Whole(tl, v)
	a, b := max(l.Idle0, whole.T0), min(l.Idle1, whole.T1)
	gap := int(IdleShare * float64(v.W))
	if gap < 1 || a >= b || whole.T1-whole.T0 == b-a {
		return axis{before: section{whole.Window(), 0}}
	}
	busy := float64(a-whole.T0) + float64(whole.T1-b)
	left := int(float64(v.W-gap) * float64(a-whole.T0) / busy)
	return axis{
		before: section{store.Window{T0: whole.T0, T1: max(a, whole.T0+1), W: left}, 0},
		after:  section{store.Window{T0: b, T1: max(whole.T1, b+1), W: v.W - gap - left}, left + gap},
		gap:    gap,
	}
}

// x is the column of a time, which may lie outside.
func (a *axis) x(t int64) int {
	w := &a.before.Window
	switch {
	case a.gap == 0 || t < w.T1:
		return columnOf(w, t)
	case t < a.after.T0:
		return a.before.W + int(float64(a.gap)*float64(t-w.T1)/float64(a.after.T0-w.T1))
	}
	return a.after.x + columnOf(&a.after.Window, t)
}

func columnOf(w *store.Window, t int64) int {
	if w.W == 0 {
		return 0
	}
	v := View{T0: w.T0, T1: w.T1, W: w.W}
	return v.x(t)
}

// timeAt is the time at the left edge of a column.
func (a *axis) timeAt(x int) int64 {
	switch at := x - a.before.W; {
	case a.gap == 0 || at < 0:
		return a.before.Edge(x)
	case at < a.gap:
		from := a.before.T1
		return from + int64(float64(a.after.T0-from)*float64(at)/float64(a.gap))
	case a.after.W == 0:
		return a.after.T0
	}
	return a.after.Edge(x - a.after.x)
}
