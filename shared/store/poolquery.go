package store

import "tideline/protocol/event"

// Allocs is the number of allocations so far.
func (p *Pool) Allocs() int { return p.allocs.n }

// Points is the number of changes of the bytes in use so far.
func (p *Pool) Points() int { return p.inUse.n }

// Live is the number of blocks in use after the last event.
func (p *Pool) Live() int { return p.live.n }

// MostLive is the highest number of blocks that were in use at once.
func (p *Pool) MostLive() int { return p.blocks.n }

// Now is what the pool holds after the last event.
func (p *Pool) Now() State { return p.now }

// Alloc is allocation i, 0 <= i < Allocs().
func (p *Pool) Alloc(i int) Allocation {
	k := p.allocs.at(kindCol, i)
	size := p.allocs.at(sizeCol, i)
	return Allocation{
		Index: i, Birth: p.born(i), Death: p.died(i),
		Address: uint64(p.allocs.at(addrCol, i)), Size: size, Requested: size - p.allocs.at(wasteCol, i),
		Tensor: event.StringID(p.allocs.at(tensorCol, i)), Op: event.StringID(p.allocs.at(opCol, i)), Step: int32(p.allocs.at(stepCol, i)),
		Category: event.Category(k), Stream: event.StreamID(k >> 8), Forwarded: k>>16 != 0,
	}
}

func (p *Pool) born(i int) int64 { return p.inUse.time(int(p.allocs.at(birthCol, i))) }

func (p *Pool) died(i int) int64 {
	n := *p.lives.end.at(i)
	if n == 0 {
		return Alive
	}
	return p.inUse.time(int(n) - 1)
}

// Box is what a picture needs of an allocation.
type Box struct {
	Birth, Death int64 // nanoseconds
	Offset       int64 // in the layout; -1 where it has no place
	Size         int64 // bytes, cut at the end of its region
	Category     event.Category
}

// Box is allocation i in the compact layout.
func (p *Pool) Box(i int) Box {
	row := p.allocs.row(i)
	b := Box{Birth: p.inUse.time(int(row.at(birthCol))), Death: p.died(i), Offset: -1, Category: event.Category(row.at(kindCol))}
	if r := row.at(regionCol); r >= 0 {
		reg := &p.regions[r]
		at := int64(uint64(row.at(addrCol)) - reg.Address)
		b.Offset, b.Size = reg.Offset+at, min(row.at(sizeCol), reg.Size-at)
	}
	return b
}

// At is what the pool holds at time at, all events of that time included.
func (p *Pool) At(at int64) State {
	s := p.after(p.inUse.upTo(at))
	s.Time = at
	s.Reserved = p.reserved.valueAfter(p.reserved.upTo(at))
	return s
}

// after is the state after the first n points, without Reserved.
func (p *Pool) after(n int) State {
	var s State
	p.seek(&s, n)
	return s
}

// seek makes s the state after n points, from the nearer of the two marks
// around it.
func (p *Pool) seek(s *State, n int) {
	m := n >> markBits
	if n&(markEvery-1) > markEvery/2 && m+1 < p.marks.n {
		m++
	}
	if m >= p.marks.n { // the mark is only set with its first point
		*s = p.now
		s.Reserved = 0
		return
	}
	s.InUse = p.inUse.valueAfter(m << markBits)
	row := p.marks.row(m)
	for c := range s.ByCategory {
		s.ByCategory[c] = row.at(c)
	}
	s.Waste = row.at(event.NumCategories)
	p.walk(s, m<<markBits, n)
}

// walk takes s from after from points to after to points, in either direction.
func (p *Pool) walk(s *State, from, to int) {
	for i := from; i < to; i++ {
		p.apply(s, i, 1)
	}
	for i := from - 1; i >= to; i-- {
		p.apply(s, i, -1)
	}
	s.InUse = p.inUse.valueAfter(to)
}

func (p *Pool) apply(s *State, point int, sign int64) {
	c := p.inUse.extra(point)
	switch i := int(c >> didBits); c & didMask {
	case didAlloc:
		p.applyOne(s, i, sign)
	case didFree:
		p.applyOne(s, i, -sign)
	default:
		p.applyOne(s, int(p.forwards.at(0, i)), -sign)
		p.applyOne(s, int(p.forwards.at(1, i)), sign)
	}
}

func (p *Pool) applyOne(s *State, i int, sign int64) {
	row := p.allocs.row(i)
	s.ByCategory[row.at(kindCol)&0xff] += sign * row.at(sizeCol)
	s.Waste += sign * row.at(wasteCol)
}

// Buckets fills dst, which must have w.W elements, with the pool's bytes over
// the window. The cost grows with w.W, not with the events in it.
func (p *Pool) Buckets(w Window, dst []MemoryBucket) {
	if !w.valid() {
		return
	}
	a := p.inUse.before(w.T0, 0)
	ra := p.reserved.before(w.T0, 0)
	var s State // after the first at points
	at := a
	p.seek(&s, at)
	for i := range dst[:w.W] {
		edge := w.Edge(i + 1)
		b := p.inUse.before(edge, a)
		d := &dst[i]
		carry := p.inUse.valueAfter(a)
		d.Min, d.Max, d.Time, d.Events = carry, carry, w.Edge(i), b-a
		top := a
		if b > a {
			e := p.inUse.extent(a, b)
			d.Min = min(carry, e.lo)
			if e.hi > carry {
				d.Max, top = e.hi, int(e.at)+1
				d.Time = p.inUse.time(int(e.at))
			}
		}
		if top != at {
			if n := top - at; n > 0 && n <= markEvery/2 || n < 0 && -n <= markEvery/2 {
				p.walk(&s, at, top)
			} else {
				p.seek(&s, top)
			}
			at = top
		}
		d.ByCategory, d.Waste, d.points = s.ByCategory, s.Waste, top
		rb := p.reserved.before(edge, ra)
		d.Reserved = p.reserved.valueAfter(ra)
		if rb > ra {
			d.Reserved = max(d.Reserved, p.reserved.extent(ra, rb).hi)
		}
		a, ra = b, rb
	}
}

// HighestReserved is the most bytes held from the driver in [t0,t1).
func (p *Pool) HighestReserved(t0, t1 int64) int64 { return p.reserved.highest(t0, t1) }

// HighestInUse is the most bytes in use in [t0,t1).
func (p *Pool) HighestInUse(t0, t1 int64) int64 { return p.inUse.highest(t0, t1) }

// Outline fills dst, which must have w.W elements, with no more than Min and
// Max: what a ghost line or a minimap needs.
func (p *Pool) Outline(w Window, dst []SeriesBucket) { p.inUse.buckets(w, dst) }

// Changes is the number of changes of the bytes in use in [t0,t1).
func (p *Pool) Changes(t0, t1 int64) int {
	a := p.inUse.before(t0, 0)
	return p.inUse.before(t1, a) - a
}

// TileOver joins into dst the tiles of [t0,t1), and of up to one tile's time
// on either side. The cost does not grow with the time.
func (p *Pool) TileOver(dst *Tile, t0, t1 int64) {
	p.tiles.refresh()
	a := p.inUse.before(t0, 0)
	b := p.inUse.before(t1, a)
	p.tiles.over(dst, max(a-1, 0), max(b, a, 1), p.inUse.n)
}

// LiveAt appends the allocations that are live at time at to dst, by age.
func (p *Pool) LiveAt(dst []int32, at int64) []int32 {
	return p.liveAfter(dst, p.inUse.upTo(at))
}

func (p *Pool) liveAfter(dst []int32, n int) []int32 {
	return p.lives.reaching(dst, 0, p.allocs.after(birthCol, int64(n)-1, 0), uint32(n), 0)
}

// Overlapping appends the allocations that are live at some moment of
// [t0,t1), by age; it stops when dst has limit of them (0: no limit).
func (p *Pool) Overlapping(dst []int32, t0, t1 int64, limit int) []int32 {
	a := p.inUse.before(t0, 0)
	b := p.inUse.before(t1, a)
	return p.lives.reaching(dst, 0, p.allocs.after(birthCol, int64(b)-1, 0), uint32(a), limit)
}

// AllocAt is the allocation that covers a place of the compact layout at time
// at; ok is false for a hole. scratch is room to work in.
func (p *Pool) AllocAt(off, at int64, scratch *[]int32) (alloc int, ok bool) {
	live := p.LiveAt((*scratch)[:0], at)
	*scratch = live
	for _, r := range live {
		if b := p.Box(int(r)); b.Offset >= 0 && off >= b.Offset && off < b.Offset+b.Size {
			return int(r), true
		}
	}
	return 0, false
}

// TileCursor remembers where the last TileNext ended.
type TileCursor struct {
	point int
	set   bool
}

// TileNext is TileOver for windows that follow each other: each call goes on
// where the one before ended.
func (p *Pool) TileNext(cur *TileCursor, dst *Tile, t0, t1 int64) {
	if !cur.set {
		p.tiles.refresh()
		cur.point, cur.set = p.inUse.before(t0, 0), true
	}
	a := cur.point
	b := p.inUse.before(t1, a)
	p.tiles.over(dst, max(a-1, 0), max(b, a, 1), p.inUse.n)
	cur.point = b
}

// FirstChange is the time of the first change of the bytes in use; Alive when
// there is none.
func (p *Pool) FirstChange() int64 {
	if p.inUse.n == 0 {
		return Alive
	}
	return p.inUse.time(0)
}

// PeakPoint is when the bytes in use were highest in [t0,t1), and how high.
func (p *Pool) PeakPoint(t0, t1 int64) (at, bytes int64) {
	a := p.inUse.before(t0, 0)
	b := p.inUse.before(t1, a)
	at, bytes = t0, p.inUse.valueAfter(a)
	if b > a {
		if e := p.inUse.extent(a, b); e.hi > bytes {
			at, bytes = p.inUse.time(int(e.at)), e.hi
		}
	}
	return at, bytes
}
