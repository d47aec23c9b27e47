package draw

import "tideline/shared/store"

// Renderer draws frames. It keeps buffers and remembers what each lane last
// showed; use one for each picture. The zero value is ready.
type Renderer struct {
	// Enough is asked between two pieces of a frame whether the rest can wait
	// for the next one; nil, the default, draws every frame whole. It is asked
	// only when nothing but the window of time changed, so that there is a
	// picture to look at meanwhile.
	Enough func() bool

	drawn   []shown
	turn    int // the lane to go on with
	pending bool
	img     *Image
	w, h    int
	dpr     int
	touched []Rect

	memory   []store.MemoryBucket
	passing  []store.MemoryBucket // of what passes a filter
	series   []store.SeriesBucket
	spans    []store.SpanBucket
	ids      []int32
	rows     []Row
	stepX    []int // columns in which steps begin
	stepBuf  []int
	tile     store.Tile
	passes   store.Tile   // what of it passes a filter
	cellOf   [2048]uint16 // row of an address lane -> its lowest cell
	cellTop  [2048]uint16 // and its highest
	palette  palette
	strip    strip
	bands    store.Bands
	edges    edges
	details  []detailed  // by pool
	oneCell  bool        // each row shows a single cell
	cells    [256]pixel  // of the palette, as an address lane needs them
	dimCells [256]pixel  // of what does not pass a filter
	through  [256]uint32 // the bits of what lies below that a cell lets through
	flows    []flow      // by row of the transfer lane
	stretcher
	overview
}

// laneKey is everything that a lane's pixels depend on besides the window of
// time and what follows from it: equal keys, equal windows and modes, equal
// pixels.
type laneKey struct {
	tl, base       *store.Timeline
	version, baseV uint64
	w, dpr         int
	theme          Theme
	hide           uint32
	lane           Lane
	part           *store.Part
	partSeen       uint64
}

// Frame draws the lanes of v that changed since the last Frame into the same
// image, and returns the pieces that it touched, valid until the next call. A
// frame of another size, or after Invalidate, is drawn whole. What is still to
// be drawn when Enough stops it, Pending tells, and the next Frame goes on with
// it. In a steady state it allocates nothing.
func (r *Renderer) Frame(img *Image, tl *store.Timeline, v *View) []Rect {
	r.touched, r.pending = r.touched[:0], false
	if v.T1 <= v.T0 || v.W <= 0 || v.Theme == nil {
		return r.touched
	}
	r.palette.use(v.Theme)
	r.dpr = v.dpr()
	whole := r.img != img || r.w != v.W || r.h != v.H || len(r.drawn) != len(v.Lanes) || !r.samePlaces(v)
	if whole {
		r.img, r.w, r.h = img, v.W, v.H
		r.drawn = append(r.drawn[:0], make([]shown, len(v.Lanes))...)
		all := img.canvas(Rect{0, 0, v.W, v.H})
		all.rect(0, 0, all.w, all.h, v.Theme.Background.pixel())
	}
	for i := range v.Lanes {
		r.keep(img, tl, v, i)
	}
	r.refine(img, tl, v)
	if whole {
		return append(r.touched, Rect{0, 0, v.W, v.H})
	}
	for i := range r.drawn {
		if s := &r.drawn[i]; s.changedTo > s.changedFrom {
			r.touched = append(r.touched, Rect{s.changedFrom, v.Lanes[i].Y, s.changedTo - s.changedFrom, v.Lanes[i].H})
		}
	}
	return r.touched
}

// Pending reports whether the last Frame left something for the next one.
func (r *Renderer) Pending() bool { return r.pending }

// samePlaces reports whether the lanes lie where they were drawn last, so that
// what lies between them is still background.
func (r *Renderer) samePlaces(v *View) bool {
	for i := range v.Lanes {
		d := &r.drawn[i].key
		if d.lane.Y != v.Lanes[i].Y || d.lane.H != v.Lanes[i].H || d.theme.Background != v.Theme.Background {
			return false
		}
	}
	return true
}

func (r *Renderer) key(tl *store.Timeline, v *View, i int) laneKey {
	k := laneKey{
		tl: tl, version: tl.Version(), w: v.W, dpr: v.dpr(),
		theme: *v.Theme, hide: v.Hide, lane: v.Lanes[i],
	}
	if v.Base != nil && v.Lanes[i].Kind == MemoryLane {
		k.base, k.baseV = v.Base, v.Base.Version()
	}
	if k.part = v.partOf(&v.Lanes[i]); k.part != nil {
		k.partSeen = v.PartsSeen
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
	r.dpr = v.dpr()
	r.paint(img, tl, v, i, 0, v.W)
}

// paint draws the columns [x0,x1) of a lane and leaves the others alone. Only
// the whole of an unaligned view can be drawn: see View.Align.
func (r *Renderer) paint(img *Image, tl *store.Timeline, v *View, i, x0, x1 int) {
	l := &v.Lanes[i]
	c := img.canvas(Rect{0, l.Y, v.W, l.H})
	c.x0, c.x1 = max(c.x0, x0), min(c.x1, x1)
	if c.h == 0 || c.x1 <= c.x0 {
		return
	}
	switch l.Kind {
	case MemoryLane:
		r.memoryLane(&c, tl, v, l)
	case AddressLane:
		r.addressLane(&c, tl, v, l)
	case OpLane, SampleLane, TransferLane, InputLane:
		r.rowLane(&c, tl, v, l)
	case MinimapLane:
		r.minimap(&c, tl, v, l)
		return
	}
	r.gaps(&c, tl, v)
}

// showsSteps reports whether the steps of a view are far enough apart to be
// told apart.
func showsSteps(tl *store.Timeline, v *View) bool {
	k := tl.Steps()
	return k != nil && k.Began(v.T0, v.T1) <= v.W/(12*v.dpr())
}

// findSteps puts into stepX the columns of the canvas in which steps begin.
func (r *Renderer) findSteps(c *canvas, tl *store.Timeline, v *View) {
	r.stepX = r.stepBuf[:0]
	if !showsSteps(tl, v) {
		return
	}
	k := tl.Steps()
	w := v.part(c.x0, c.x1)
	r.ids = k.Overlapping(r.ids[:0], w.T0, w.T1, 0)
	for _, i := range r.ids {
		if x := v.x(k.Span(int(i)).Begin); x >= c.x0 && x < c.x1 {
			r.stepX = append(r.stepX, x)
		}
	}
	r.stepBuf = r.stepX
}

// steps draws a hairline where a step begins.
func (r *Renderer) steps(c *canvas, tl *store.Timeline, v *View) {
	r.findSteps(c, tl, v)
	for _, x := range r.stepX {
		c.rect(x, 0, x+1, c.h, r.palette.grid)
	}
}

// gaps marks where events are missing.
func (r *Renderer) gaps(c *canvas, tl *store.Timeline, v *View) {
	for _, g := range tl.Gaps() {
		x, w := v.x(g.Time), v.dpr()
		if !c.near(x, 2*w+1) {
			continue
		}
		c.rect(x-w, 0, x+w+1, c.h, r.palette.lane)
		for i := -w; i <= w; i++ {
			c.hatch(x+i, w+i, 0, c.h, 4*v.dpr(), r.palette.line, 256)
		}
	}
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
