package store

import "tideline/protocol/event"

// Part is what a pool holds of the allocations that pass a filter, over time:
// a step function with its pyramid, checkpoints by category and address tiles,
// as the pool has of all of them. It is built by Advance, a piece at a time,
// and follows a pool that still grows; no question about it costs more than one
// about the pool.
type Part struct {
	pool   *Pool
	filter *Filter

	taken int     // points of the pool that were looked at
	inUse numbers // bytes after each point that changed something; extra: the pool's point
	marks rows    // by category, before points 0, markEvery, 2*markEvery, …
	now   Categories
	tiles tiles // closed with the pool's, so that both mean the same times
}

// NewPart begins with nothing taken in.
func NewPart(p *Pool, f *Filter) *Part {
	q := &Part{pool: p, filter: f, inUse: newNumbers(), marks: rows{cols: event.NumCategories}}
	q.tiles.init()
	return q
}

// Filter is what the part is of.
func (q *Part) Filter() *Filter { return q.filter }

// Pool is the index of the pool.
func (q *Part) Pool() int { return q.pool.Index }

// Knows reports whether everything up to a moment of the pool was taken in.
func (q *Part) Knows(m Moment) bool { return m.points <= q.taken }

// Taken is how many changes of the pool were taken in, of Pool.Points.
func (q *Part) Taken() int { return q.taken }

// Until is the time before which everything was taken in; Alive when all was.
func (q *Part) Until() int64 {
	if q.taken >= q.pool.inUse.n {
		return Alive
	}
	return q.pool.inUse.time(q.taken)
}

// Advance takes in up to n more changes of the pool. It reports whether some are
// left.
func (q *Part) Advance(n int) (more bool) {
	p := q.pool
	end := min(p.inUse.n, q.taken+n)
	for ; q.taken < end; q.taken++ {
		c := p.inUse.extra(q.taken)
		before := q.now
		var some bool
		switch i := int(c >> didBits); c & didMask {
		case didAlloc:
			some = q.take(i, 1)
		case didFree:
			some = q.take(i, -1)
		default:
			some = q.take(int(p.forwards.at(0, i)), -1)
			some = q.take(int(p.forwards.at(1, i)), 1) || some
		}
		if some {
			q.push(&before)
		}
		if (q.taken+1)&(tilePoints-1) == 0 {
			q.tiles.close()
		}
	}
	return end < p.inUse.n
}

// push makes a point of what changed, and before it a mark where one is due.
func (q *Part) push(before *Categories) {
	if q.inUse.n&(markEvery-1) == 0 {
		k := q.marks.add()
		for c, n := range before {
			q.marks.open[k+c*q.marks.stride] = n
		}
	}
	q.inUse.push(q.pool.inUse.time(q.taken), q.now.Total(), int64(q.taken))
}

// take adds allocation i, or takes it away with sign -1, if it passes.
func (q *Part) take(i int, sign int64) (passes bool) {
	row := q.pool.allocs.row(i)
	passes = q.passes(&row)
	// Cells are as wide as the pool's at every moment, whatever passes.
	grows := sign > 0 && q.tiles.shift != q.pool.tiles.shift
	if !passes && !grows {
		return false
	}
	size, category := row.at(sizeCol), int(row.at(kindCol)&0xff)
	if r := row.at(regionCol); r >= 0 {
		g := &q.pool.regions[r]
		at := int64(uint64(row.at(addrCol)) - g.Address)
		if placed := min(size, g.Size-at); placed > 0 {
			q.tiles.cover(g.Offset + at + placed)
			if passes {
				q.tiles.add(g.Offset+at, placed, category, sign)
			}
		}
	}
	if passes {
		q.now[category] += sign * size
	}
	return passes
}

func (q *Part) passes(row *row) bool {
	return q.filter.Passes(event.StringID(row.at(tensorCol)), event.StringID(row.at(opCol)))
}

// Holds reports whether allocation i of the pool passes, whether it was taken in
// or not.
func (q *Part) Holds(i int) bool { return q.filter.Passes(q.pool.Names(i)) }

// In is the bytes that pass at a moment of the pool, by category; what was not
// taken in yet does not count.
func (q *Part) In(m Moment) (in Categories) {
	q.seek(&in, q.inUse.after(extraCol, int64(m.points)-1, 0))
	return in
}

// seek makes s what passes after n points of the part, from the nearer of the
// two marks around it.
func (q *Part) seek(s *Categories, n int) {
	m := n >> markBits
	if n&(markEvery-1) > markEvery/2 && m+1 < q.marks.n {
		m++
	}
	if m >= q.marks.n { // the mark is only set with its first point
		*s = q.now
		return
	}
	row := q.marks.row(m)
	for c := range s {
		s[c] = row.at(c)
	}
	q.walk(s, m<<markBits, n)
}

// walk takes s from after from points to after to points, in either direction.
func (q *Part) walk(s *Categories, from, to int) {
	for i := from; i < to; i++ {
		q.apply(s, int(q.inUse.extra(i)), 1)
	}
	for i := from - 1; i >= to; i-- {
		q.apply(s, int(q.inUse.extra(i)), -1)
	}
}

func (q *Part) apply(s *Categories, point int, sign int64) {
	p := q.pool
	c := p.inUse.extra(point)
	switch i := int(c >> didBits); c & didMask {
	case didAlloc:
		q.applyOne(s, i, sign)
	case didFree:
		q.applyOne(s, i, -sign)
	default:
		q.applyOne(s, int(p.forwards.at(0, i)), -sign)
		q.applyOne(s, int(p.forwards.at(1, i)), sign)
	}
}

func (q *Part) applyOne(s *Categories, i int, sign int64) {
	if row := q.pool.allocs.row(i); q.passes(&row) {
		s[row.at(kindCol)&0xff] += sign * row.at(sizeCol)
	}
}

// Buckets is Pool.Buckets of the part: Waste and Reserved are left 0, and Events
// counts the changes of the part. What was not taken in yet does not count.
func (q *Part) Buckets(w Window, dst []MemoryBucket) {
	if !w.valid() {
		return
	}
	a := q.inUse.before(w.T0, 0)
	var s Categories // after the first at points
	at := a
	q.seek(&s, at)
	for i := range dst[:w.W] {
		b := q.inUse.before(w.Edge(i+1), a)
		carry := q.inUse.valueAfter(a)
		d := MemoryBucket{Min: carry, Max: carry, Time: w.Edge(i), Events: b - a}
		top := a
		if b > a {
			e := q.inUse.extent(a, b)
			d.Min = min(carry, e.lo)
			if e.hi > carry {
				d.Max, top = e.hi, int(e.at)+1
				d.Time = q.inUse.time(int(e.at))
			}
		}
		switch n := top - at; {
		case n > markEvery/2 || n < -markEvery/2:
			q.seek(&s, top)
		default:
			q.walk(&s, at, top)
		}
		at = top
		d.ByCategory = s
		if top > 0 {
			d.points = int(q.inUse.extra(top-1)) + 1
		}
		dst[i] = d
		a = b
	}
}

// TileNext is Pool.TileNext of the part; times from Until on have no tile. The
// tile may have narrower cells than the pool's where the part is not complete:
// see Tile.Widen.
func (q *Part) TileNext(cur *TileCursor, dst *Tile, t0, t1 int64) {
	p := q.pool
	if !cur.set {
		q.tiles.refresh()
		cur.point, cur.set = p.inUse.before(t0, 0), true
	}
	a := cur.point
	b := p.inUse.before(t1, a)
	q.tiles.over(dst, max(a-1, 0), max(b, a, 1), p.inUse.n)
	cur.point = b
}

// Bytes is the memory that the part takes.
func (q *Part) Bytes() int64 { return q.inUse.bytes() + q.marks.bytes() + q.tiles.bytes() }
