package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// Renderer draws frames. It keeps buffers and remembers what each lane last
// showed; use one for each picture. The zero value is ready.
type Renderer struct {
	drawn   []laneKey
	img     *Image
	w, h    int
	touched []Rect

	memory  []store.MemoryBucket
	series  []store.SeriesBucket
	spans   []store.SpanBucket
	ids     []int32
	rows    []Row
	stepX   []int // columns in which steps begin
	stepBuf []int
	tile    store.Tile
	cellOf  [2048]uint16 // row of an address lane -> its lowest cell
	cellTop [2048]uint16 // and its highest
	palette palette
	strip   strip
	cells   [256]pixel // of the palette, as an address lane needs them
}

// laneKey is everything that a lane's pixels depend on: equal keys, equal
// pixels.
type laneKey struct {
	tl, base       *store.Timeline
	version, baseV uint64
	t0, t1         int64
	w, dpr         int
	theme          Theme
	hide           uint32
	lane           Lane
}

// palette is the theme as pixels.
type palette struct {
	theme Theme
	ready bool

	lane, grid, line, reserved, pool, limit, ghost, halo pixel
	hole, outside, warning, peak, stage, queue           pixel
	category, faint, edge                                [event.NumCategories]pixel
	phase, cause                                         [store.NumClasses]pixel
	cell                                                 [256]pixel
}

func (p *palette) use(t *Theme) {
	if p.ready && p.theme == *t {
		return
	}
	*p = palette{
		theme: *t, ready: true,
		lane: t.Lane.pixel(), grid: t.Grid.pixel(), line: t.Line.pixel(), reserved: t.Reserved.pixel(),
		pool: t.Pool.pixel(), limit: t.Limit.pixel(), ghost: t.Ghost.pixel(), halo: t.Lane.pixel(),
		hole: t.Hole.pixel(), outside: t.Outside.pixel(), warning: t.Warning.pixel(), peak: t.Peak.pixel(),
		stage: t.Stage.pixel(), queue: t.Queue.pixel(),
	}
	for i, c := range t.Category {
		p.category[i] = c.pixel()
		// What comes and goes within one pixel column.
		p.faint[i] = c.Mix(t.Lane, 0.28).pixel()
		p.edge[i] = c.Mix(t.Lane, 0.32).pixel()
	}
	for i := range t.Phase {
		p.phase[i], p.cause[i] = t.Phase[i].pixel(), t.Cause[i].pixel()
	}
	for i := range p.cell {
		c := store.Cell(i)
		if c.Fill() == 0 || int(c.Category()) >= len(t.Category) {
			p.cell[i] = p.hole
			continue
		}
		// A cell with little in it still shows that it is not free.
		p.cell[i] = t.Hole.Mix(t.Category[c.Category()], 0.3+0.7*float64(c.Fill())/15).pixel()
	}
}

// Frame draws the lanes of v that changed since the last Frame into the same
// image, and returns the pieces that it touched, valid until the next call. A
// frame of another size, or after Invalidate, is drawn whole. In a steady
// state it allocates nothing.
func (r *Renderer) Frame(img *Image, tl *store.Timeline, v *View) []Rect {
	r.touched = r.touched[:0]
	if v.T1 <= v.T0 || v.W <= 0 || v.Theme == nil {
		return r.touched
	}
	r.palette.use(v.Theme)
	if r.img != img || r.w != v.W || r.h != v.H || len(r.drawn) != len(v.Lanes) || !r.samePlaces(v) {
		r.img, r.w, r.h = img, v.W, v.H
		r.drawn = append(r.drawn[:0], make([]laneKey, len(v.Lanes))...)
		all := img.canvas(Rect{0, 0, v.W, v.H})
		all.rect(0, 0, all.w, all.h, v.Theme.Background.pixel())
		r.touched = append(r.touched, Rect{0, 0, v.W, v.H})
	}
	whole := len(r.touched) > 0
	for i := range v.Lanes {
		k := r.key(tl, v, i)
		if r.drawn[i] == k {
			continue
		}
		r.drawn[i] = k
		r.Lane(img, tl, v, i)
		if !whole {
			r.touched = append(r.touched, Rect{0, v.Lanes[i].Y, v.W, v.Lanes[i].H})
		}
	}
	return r.touched
}

// samePlaces reports whether the lanes lie where they were drawn last, so that
// what lies between them is still background.
func (r *Renderer) samePlaces(v *View) bool {
	for i := range v.Lanes {
		d := &r.drawn[i]
		if d.lane.Y != v.Lanes[i].Y || d.lane.H != v.Lanes[i].H || d.theme.Background != v.Theme.Background {
			return false
		}
	}
	return true
}

func (r *Renderer) key(tl *store.Timeline, v *View, i int) laneKey {
	k := laneKey{
		tl: tl, version: tl.Version(), t0: v.T0, t1: v.T1, w: v.W, dpr: v.dpr(),
		theme: *v.Theme, hide: v.Hide, lane: v.Lanes[i],
	}
	if v.Base != nil && v.Lanes[i].Kind == MemoryLane {
		k.base, k.baseV = v.Base, v.Base.Version()
	}
	return k
}

// Invalidate makes the next Frame draw everything.
func (r *Renderer) Invalidate() { r.img = nil }

// Lane draws one lane of the view, whether it changed or not.
func (r *Renderer) Lane(img *Image, tl *store.Timeline, v *View, i int) {
	if v.T1 <= v.T0 || v.W <= 0 || v.Theme == nil {
		return
	}
	r.palette.use(v.Theme)
	l := &v.Lanes[i]
	c := img.canvas(Rect{0, l.Y, v.W, l.H})
	if c.h == 0 {
		return
	}
	switch l.Kind {
	case MemoryLane:
		r.memoryLane(&c, tl, v, l)
	case AddressLane:
		r.addressLane(&c, tl, v, l)
	case OpLane, TransferLane, InputLane:
		r.rowLane(&c, tl, v, l)
	case MinimapLane:
		r.minimap(&c, tl, v, l)
		return
	}
	r.gaps(&c, tl, v)
}

// findSteps puts into stepX the columns in which steps begin, as long as they
// are far enough apart to be told apart.
func (r *Renderer) findSteps(tl *store.Timeline, v *View) {
	r.stepX = r.stepBuf[:0]
	k := tl.Steps()
	if k == nil || k.Began(v.T0, v.T1) > v.W/(12*v.dpr()) {
		return
	}
	r.ids = k.Overlapping(r.ids[:0], v.T0, v.T1, 0)
	for _, i := range r.ids {
		if x := v.x(k.Span(int(i)).Begin); x >= 0 {
			r.stepX = append(r.stepX, x)
		}
	}
	r.stepBuf = r.stepX
}

// steps draws a hairline where a step begins.
func (r *Renderer) steps(c *canvas, tl *store.Timeline, v *View) {
	r.findSteps(tl, v)
	for _, x := range r.stepX {
		c.rect(x, 0, x+1, c.h, r.palette.grid)
	}
}

// gaps marks where events are missing.
func (r *Renderer) gaps(c *canvas, tl *store.Timeline, v *View) {
	for _, g := range tl.Gaps() {
		if g.Time < v.T0 || g.Time >= v.T1 {
			continue
		}
		x, w := v.x(g.Time), v.dpr()
		c.rect(x-w, 0, x+w+1, c.h, r.palette.lane)
		for i := -w; i <= w; i++ {
			c.hatch(x+i, x+w+i, 0, c.h, 4*v.dpr(), r.palette.line, 256)
		}
	}
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
