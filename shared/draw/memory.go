package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// Scale is the number of bytes at the upper edge of a memory lane when its Top
// is 0. The lane must show the highest use with a little air. The limit is
// taken in when it lies so near that use would fill a third of the height;
// otherwise the shape of the use tells more.
func Scale(tl *store.Timeline, v *View, l *Lane) int64 {
	if l.Top > 0 {
		return l.Top
	}
	if l.Pool >= len(tl.Pools()) {
		return 1 << 20
	}
	p := tl.Pools()[l.Pool]
	first, last := tl.Span()
	high := p.HighestInUse(first, last+1)
	if b := basePool(tl, v, l.Pool); b != nil {
		first, last = v.Base.Span()
		high = max(high, b.HighestInUse(first, last+1))
	}
	top := high
	for _, mark := range [...]int64{p.Limit, p.HighestReserved(first, last+1)} {
		if mark <= 3*high {
			top = max(top, mark)
		}
	}
	if top == 0 {
		top = max(p.Limit, 1<<20)
	}
	return top + top/16 + 1
}

// basePool is the pool of the base run that goes with pool i; nil for none.
func basePool(tl *store.Timeline, v *View, i int) *store.Pool {
	if v.Base == nil {
		return nil
	}
	if j := store.Counterpart(tl, i, v.Base); j >= 0 {
		return v.Base.Pools()[j]
	}
	return nil
}

// scale turns bytes into rows of a lane.
type scale struct {
	h   int
	top float64
}

// y is the place of a value as a distance from the lane's upper edge.
func (s scale) y(bytes int64) float64 {
	return float64(s.h) - float64(bytes)*float64(s.h)/s.top
}

func (s scale) row(bytes int64) int { return int(s.y(bytes) + 0.5) }

func (r *Renderer) memoryLane(c *canvas, tl *store.Timeline, v *View, l *Lane) {
	pal := &r.palette
	if l.Pool >= len(tl.Pools()) {
		c.rect(0, 0, c.w, c.h, pal.lane)
		return
	}
	p := tl.Pools()[l.Pool]
	s := scale{l.H, float64(Scale(tl, v, l))}
	w, left := v.joined(c.x0, c.x1)
	r.memory = grown(r.memory, w.W)
	p.Buckets(w, r.memory)
	part := v.partOf(l)
	shades := pal.shades()
	if part != nil {
		r.passing = grown(r.passing, w.W)
		part.Buckets(w, r.passing)
		shades = pal.dimShades()
	}
	// Nothing is known before the run began or after its last event.
	first, _ := tl.Span()
	x0, x1 := max(v.x(first), c.x0), min(v.end(tl), c.x1)
	c.rect(0, 0, x0, c.h, pal.lane)
	c.rect(x1, 0, c.w, c.h, pal.lane)
	r.findSteps(c, tl, v)
	stack, until, over := r.memory, x1, shades
	if part != nil {
		over = pal.passShades()
		stack, until = r.passing, min(x1, v.x(part.Until()))
	}
	if x0 < x1 {
		r.beginBands(tl, v, l, w, part, stack, x0, left)
	}
	phase := v.phase()
	for x := x0; x < x1; x += stripWidth {
		r.strip.fill(c, x, x1, pal.lane)
		for len(r.stepX) > 0 && r.stepX[0] < x+r.strip.w {
			at := r.stepX[0] - x
			r.strip.rect(at, 0, at+1, c.h, pal.grid)
			r.stepX = r.stepX[1:]
		}
		for i := range r.strip.w {
			r.memoryColumn(s, i, phase+x+i, &r.memory[x+i-left], &shades, v.Hide)
		}
		if part != nil {
			r.passingColumns(s, x, until, left, v.Hide)
		}
		for i := range min(r.strip.w, max(until-x, 0)) {
			r.bandEdges(s, v, x+i, i, &stack[x+i-left], &over)
		}
		r.strip.put(c)
	}
	if part != nil {
		r.passingLine(c, s, max(v.x(first), left), until, left, v.Hide)
	}
	r.reservedLine(c, s, max(v.x(first), left), x1, left)
	if p.Limit > 0 {
		c.dashes(phase, s.row(p.Limit)-v.dpr(), v.dpr(), 6*v.dpr(), 4*v.dpr(), pal.limit)
	}
	if b := basePool(tl, v, l.Pool); b != nil {
		r.ghost(c, s, b, v)
	}
	r.peakMark(c, s, tl, p, v)
	r.oomMarks(c, tl, v, l.Pool)
}

// memoryColumn draws one column: the stack at the bucket's fullest instant,
// paler above what was in use all the time; the waste hatched on top of it;
// and the reserved bytes behind it.
func (r *Renderer) memoryColumn(s scale, x, phase int, b *store.MemoryBucket, of *shades, hide uint32) {
	c, pal := &r.strip, &r.palette
	top := s.y(b.Max)
	if b.Reserved > b.Max {
		c.column(x, s.row(b.Reserved), int(top)+1, pal.pool)
	}
	if b.Max == 0 {
		return
	}
	steady := int(s.y(b.Min) + 0.5)
	y, sum := s.h, int64(0)
	for k, n := range b.ByCategory {
		if n == 0 || hide>>k&1 != 0 {
			continue
		}
		sum += n
		up := s.y(sum)
		full := int(up)
		if frac := up - float64(full); frac > 0 {
			full++
			// The row that the band ends in: over what lies there already.
			if full-1 >= 0 && full-1 < c.h && full-1 < y {
				c.blend(x, full-1, of.of(k, full-1 < steady), uint32(256*(1-frac)))
			}
		}
		if cut := min(max(steady, full), y); cut > full {
			c.column(x, full, cut, of.faint[k])
			c.column(x, cut, y, of.full[k])
		} else {
			c.column(x, full, y, of.full[k])
		}
		y = min(y, full)
	}
	if w := s.row(sum - b.Waste); b.Waste > 0 && w > y && of.full != &pal.dim {
		c.hatch(x, phase, y, w, 4*r.dpr, pal.lane, 150)
	}
}

// shades are the colours of a stack: what stays, and what comes and goes within
// a column.
type shades struct{ full, faint *[event.NumCategories]pixel }

func (p *palette) shades() shades     { return shades{&p.category, &p.faint} }
func (p *palette) passShades() shades { return shades{&p.pass, &p.passFaint} }
func (p *palette) dimShades() shades  { return shades{&p.dim, &p.dimFaint} }

func (s *shades) of(category int, faint bool) pixel {
	if faint {
		return s.faint[category]
	}
	return s.full[category]
}

// reservedLine draws the top of the reserved bytes as one unbroken line.
func (r *Renderer) reservedLine(c *canvas, s scale, x0, x1, left int) {
	thick := r.dpr
	before := -1
	for x := x0; x < x1; x++ {
		held := r.memory[x-left].Reserved
		if held == 0 {
			before = -1
			continue
		}
		y := s.row(held)
		c.rect(x, y-thick, x+1, y, r.palette.reserved)
		if before >= 0 && before != y {
			c.rect(x, min(before, y)-thick, x+1, max(before, y), r.palette.reserved)
		}
		before = y
	}
}

// ghost draws the base run's bytes in use as a dashed line with a faint halo, so
// that it can be read on any colour and leaves the run below to be seen. Steep
// parts are whole: they are a column or two wide. Its instants are those of the
// view.
func (r *Renderer) ghost(c *canvas, s scale, b *store.Pool, v *View) {
	w, left := v.joined(c.x0, c.x1)
	r.series = grown(r.series, w.W)
	b.Outline(w, r.series)
	_, last := v.Base.Span()
	x1 := min(v.x(last)+1, c.x1)
	d, phase := v.dpr(), v.phase()
	for pass := range 2 {
		before := -1
		for x := left; x < x1; x++ {
			o := &r.series[x-left]
			if !o.Known {
				continue
			}
			hi, lo := s.row(o.Max), s.row(o.Last)
			from, to := hi, max(hi, min(lo, hi+1))
			if before >= 0 {
				from, to = min(from, before), max(to, before)
			}
			switch {
			case to-from <= 2*d && (phase+x)%(5*d) >= 3*d: // a gap between dashes
			case pass == 0:
				c.shade(x, from-2*d, x+1, to+d, r.palette.halo, 90)
			default:
				c.rect(x, from-d, x+1, max(to-d, from), r.palette.ghost)
			}
			before = hi
		}
	}
}

// peakMark puts a ring on the run's peak when it lies in the view.
func (r *Renderer) peakMark(c *canvas, s scale, tl *store.Timeline, p *store.Pool, v *View) {
	first, last := tl.Span()
	at, bytes := p.PeakPoint(first, last+1)
	if bytes == 0 || !c.near(v.x(at), 5*v.dpr()) {
		return
	}
	d := float64(v.dpr())
	x, y := float64(v.x(at))+0.5, max(s.y(bytes), 4*d)
	c.disc(x, y, 3.5*d, r.palette.peak)
	c.disc(x, y, 2*d, r.palette.lane)
}

// crowded is the width, in pixels of a screen of one dot each, within which a
// failed request with its two neighbours is part of a band: lines so close would
// hide what failed.
const crowded = 12

// oomMarks draws each failed request as a line with a flag; where several fall
// on one column they are one.
func (r *Renderer) oomMarks(c *canvas, tl *store.Timeline, v *View, pool int) {
	d := v.dpr()
	list := tl.OOMs()
	for i, o := range list {
		x := v.x(o.Time)
		if o.Pool != pool || !c.near(x, crowded*d) {
			continue // neither its flag nor its part of a band reaches the canvas
		}
		a := uint32(256)
		if o.Retryable {
			a = 110 // the caller did without
		}
		if i > 0 && i+1 < len(list) && v.width(list[i+1].Time-list[i-1].Time) < crowded*d {
			c.shade(x, 0, max(x+d, v.x(list[i+1].Time)), 4*d, r.palette.warning, a)
			continue
		}
		c.shade(x, 0, x+d, c.h, r.palette.warning, a)
		if !o.Retryable {
			c.triangle(x, 7*d, 7*d, r.palette.warning)
		}
	}
}
