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
	whole := Whole(tl, v)
	x0, x1 := whole.x(v.T0), whole.x(v.T1)
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
	whole := Whole(tl, v)
	if l.Pool < len(tl.Pools()) {
		p := tl.Pools()[l.Pool]
		r.series = grown(r.series, v.W)
		p.Outline(whole.Window(), r.series)
		s := scale{l.H, float64(Scale(tl, &whole, l))}
		for x := range r.series {
			if b := &r.series[x]; b.Known {
				lo := s.row(b.Min)
				c.column(x, lo, c.h, pal.reserved)
				for y := s.row(b.Max); y < lo; y++ {
					c.blend(x, y, pal.reserved, 110)
				}
			}
		}
	}
	d := v.dpr()
	for _, k := range tl.Tracks() {
		if k.Kind == store.StallTrack {
			r.bucketsOf(k, whole.Window())
			for x := range r.spans {
				if r.spans[x].Busy.Total() > 0 {
					c.rect(x, c.h-2*d, x+1, c.h, pal.warning)
				}
			}
		}
	}
	for _, o := range tl.OOMs() {
		if !o.Retryable {
			x := whole.x(o.Time)
			c.rect(x, 0, x+d, c.h, pal.warning)
		}
	}
}

// Whole is the view of the whole run that a minimap shows, with the columns of
// v: what turns a place on the minimap into a time.
func Whole(tl *store.Timeline, v *View) View {
	w := *v
	w.T0, w.T1 = tl.Span()
	w.T1 = max(w.T1, w.T0+1)
	return w
}
