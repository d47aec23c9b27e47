package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// HitKind says what lies under a point.
type HitKind uint8

// What can lie under a point.
const (
	NoHit     HitKind = iota
	MemoryHit         // the pool's state: Category is the band under the point, Index the block, -1 where none is told apart
	AllocHit          // an allocation: Pool, Index
	HoleHit           // free addresses: Pool, Size
	SpanHit           // a span: Track, Index
	QueueHit          // a series: Index into SeriesList, Value
	OOMHit            // a failed request: Index into OOMs
)

// Hit is what lies under a point.
type Hit struct {
	Kind     HitKind
	Lane     int   // index into View.Lanes, -1 outside
	Time     int64 // of the point; of the fullest instant in its column for MemoryHit
	Pool     int
	Track    int
	Index    int
	Count    int // blocks or spans that share the pixel, this one included
	Passing  int // of these, blocks that pass the view's filter
	Category event.Category
	InBand   bool         // MemoryHit: false above the stack
	Rest     int64        // MemoryHit without a block: bytes of the band in blocks that are not told apart
	Merged   int          // how many blocks these are; 0 where that would cost too much
	Moment   store.Moment // MemoryHit: of the stack
	Size     int64        // bytes: of the band, block or hole
	Value    int64        // MemoryLane: bytes at this height. AddressLane: place in the layout. QueueHit: elements
}

// HitTest says what lies under pixel (x, y).
func HitTest(tl *store.Timeline, v *View, x, y int) Hit {
	h := Hit{Lane: -1, Pool: -1, Track: -1, Index: -1}
	if v.T1 <= v.T0 || x < 0 || x >= v.W {
		return h
	}
	h.Time = v.TimeAt(x)
	for i := range v.Lanes {
		l := &v.Lanes[i]
		if y < l.Y || y >= l.Y+l.H {
			continue
		}
		h.Lane = i
		c := column{tl, v, l, x, y - l.Y, v.TimeAt(x), max(v.TimeAt(x+1), v.TimeAt(x)+1)}
		switch l.Kind {
		case MemoryLane:
			c.memory(&h)
		case AddressLane:
			c.address(&h)
		case OpLane, SampleLane, TransferLane, InputLane:
			c.row(&h)
		case MinimapLane:
			axis := axisOf(tl, v, l)
			h.Time = axis.timeAt(x)
		}
		break
	}
	return h
}

// countable is how many live blocks are looked at one by one for a number.
const countable = 100_000

// column is the pixel that is asked for, with the time that it covers.
type column struct {
	tl     *store.Timeline
	v      *View
	l      *Lane
	x, y   int
	t0, t1 int64
}

func (c *column) pool(h *Hit) *store.Pool {
	if c.l.Pool >= len(c.tl.Pools()) {
		return nil
	}
	h.Pool = c.l.Pool
	return c.tl.Pools()[c.l.Pool]
}

// oom finds a failed request whose mark lies within three CSS pixels.
func (c *column) oom(h *Hit) bool {
	best := 3*c.v.dpr() + 1
	for i, o := range c.tl.OOMs() {
		if o.Pool != c.l.Pool || o.Time < c.v.T0 || o.Time >= c.v.T1 {
			continue
		}
		if d := max(c.v.x(o.Time)-c.x, c.x-c.v.x(o.Time)); d < best {
			best = d
			h.Kind, h.Index, h.Time = OOMHit, i, o.Time
		}
	}
	return h.Kind == OOMHit
}

func (c *column) memory(h *Hit) {
	p := c.pool(h)
	if p == nil || c.oom(h) {
		return
	}
	w := store.Window{T0: c.t0, T1: c.t1, W: 1}
	var b [1]store.MemoryBucket
	h.Kind = MemoryHit
	top := float64(Scale(c.tl, c.v, c.l))
	h.Value = int64((float64(c.l.H-c.y) - 0.5) * top / float64(c.l.H))
	if part := c.v.partOf(c.l); part != nil && c.x < c.v.x(part.Until()) {
		// What passes a filter lies over the rest.
		part.Buckets(w, b[:])
		if c.stack(h, p, w, &b[0], part); h.InBand {
			h.Size = p.In(h.Moment).ByCategory[h.Category]
			return
		}
	}
	p.Buckets(w, b[:])
	c.stack(h, p, w, &b[0], nil)
}

// stack finds what lies at the hit's value in a bucket's stack, as it is drawn.
func (c *column) stack(h *Hit, p *store.Pool, w store.Window, b *store.MemoryBucket, part *store.Part) {
	h.Time, h.Moment, h.Size = b.Time, p.Instant(b), b.Max
	at := h.Value
	for k, n := range b.ByCategory {
		if c.v.Hide>>k&1 != 0 {
			continue
		}
		if at >= n {
			at -= n
			continue
		}
		h.Category, h.Size, h.InBand = event.Category(k), n, true
		var s store.Bands
		s.Begin(p, w, detail(c.tl, c.v, c.l), holds(part))
		s.Next(b)
		if band, ok := s.At(h.Category, at); ok {
			h.Index = int(band.Alloc)
			return
		}
		c.merged(h, p, &s, n, part)
		return
	}
}

// merged is what of a category's n bytes is not told apart: how many blocks
// these are, or the one that it is.
func (c *column) merged(h *Hit, p *store.Pool, s *store.Bands, n int64, part *store.Part) {
	single := s.Of(h.Category)
	for i := range single {
		n -= single[i].Size
	}
	h.Rest = n
	if p.MostLive() > countable {
		return
	}
	for _, i := range p.LiveIn(nil, h.Moment) {
		if p.Box(int(i)).Category != h.Category || part != nil && !part.Holds(int(i)) {
			continue
		}
		if len(single) > 0 && single[0].Alloc == i { // both are by age
			single = single[1:]
			continue
		}
		h.Merged++
		h.Index = int(i)
	}
	if h.Merged > 1 {
		h.Index = -1
	} else {
		h.Rest, h.Merged = 0, 0
	}
}

func (c *column) address(h *Hit) {
	p := c.pool(h)
	if p == nil || c.oom(h) {
		return
	}
	low, high := c.l.span(p)
	s := addressScale{c.l.H, low, high}
	lo := s.off(c.y)
	hi := max(s.off(c.y-1), lo+1)
	h.Value = lo + (hi-lo)/2
	mid := h.Value
	part := c.v.partOf(c.l)
	var best store.Box
	below, above := low, high // edges of the hole around the point
	for _, i := range p.Overlapping(nil, c.t0, c.t1, 0) {
		b := p.Box(int(i))
		if b.Offset < 0 || c.v.Hide>>b.Category&1 != 0 {
			continue
		}
		end := b.Offset + b.Size
		if b.Birth <= c.t0 && b.Death > c.t0 {
			if end <= mid {
				below = max(below, end)
			} else if b.Offset > mid {
				above = min(above, b.Offset)
			}
		}
		if b.Offset >= hi || end <= lo {
			continue
		}
		h.Count++
		if part != nil && part.Holds(int(i)) {
			h.Passing++
		}
		if covers := b.Offset <= mid && mid < end; h.Kind != AllocHit || covers && (best.Offset > mid || mid >= best.Offset+best.Size) || b.Size > best.Size && covers {
			h.Kind, h.Index, h.Size, h.Category, best = AllocHit, int(i), b.Size, b.Category, b
		}
	}
	if h.Kind == AllocHit {
		return
	}
	if i := p.RegionAt(mid, c.t0); i >= 0 {
		g := &p.Regions()[i]
		h.Kind = HoleHit
		h.Size = min(above, g.Offset+g.Size) - max(below, g.Offset)
	}
}

func (c *column) row(h *Hit) {
	for _, r := range appendRows(nil, c.tl, c.l) {
		if y := c.y + c.l.Y; y < r.Y || y >= r.Y+r.H {
			continue
		}
		if r.Series >= 0 {
			if n, ok := c.tl.SeriesList()[r.Series].At(c.t0); ok {
				h.Kind, h.Index, h.Value = QueueHit, r.Series, n
			}
			return
		}
		c.span(h, c.tl.Tracks()[r.Track])
		return
	}
}

// span finds the longest span that touches the column, or one that is near,
// since many are no wider than a pixel.
func (c *column) span(h *Hit, k *store.Track) {
	h.Track = k.Index
	const enough = 4096 // beyond it, which one is the longest says little
	for reach := 0; reach <= 2*c.v.dpr(); reach++ {
		t0, t1 := c.v.TimeAt(c.x-reach), max(c.v.TimeAt(c.x+reach+1), c.t1)
		longest := int64(-1)
		ids := k.Overlapping(nil, t0, t1, enough)
		for _, i := range ids {
			if s := k.Span(int(i)); s.End-s.Begin > longest {
				longest = s.End - s.Begin
				h.Kind, h.Index, h.Size = SpanHit, int(i), s.Value
			}
		}
		if h.Kind == SpanHit {
			h.Count = max(len(ids), k.Began(c.t0, c.t1))
			return
		}
	}
}
