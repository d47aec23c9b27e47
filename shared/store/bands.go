package store

import (
	"math/bits"
	"slices"

	"tideline/protocol/event"
)

// Detail says which blocks of a pool are told apart in a stack of its bytes;
// the others are one remainder in each category.
type Detail struct {
	Least int64 // bytes: smaller ones are not
	Rank  int   // nor those that ended after fewer than 1<<Rank changes of the pool
}

// Detail is how finely the blocks of at least that many bytes can be told apart
// in a window: those are left out that live for less than a bucket's changes,
// which would be at another place in each, and of the rest the shortest, until
// about most are left. The cost is that of a few searches, however long the
// window.
func (p *Pool) Detail(w Window, least int64, most int) Detail {
	p.openBlocks() // what is too small for any picture is known by then
	d := Detail{Least: max(least, p.lasting.least, 1)}
	a := p.inUse.before(w.T0, 0)
	b := p.inUse.before(w.T1, a)
	d.Rank = even(bits.Len32(uint32((b - a) / max(w.W, 1))))
	for r, n := ranks-1, 0; r >= d.Rank; r-- {
		from, to := p.ended(r, a, b)
		if n += to - from; n > most {
			d.Rank = even(r + 1)
			break
		}
	}
	return d
}

// even rounds up: so that a view that moves a little more often keeps its
// detail.
func even(r int) int { return r + r&1 }

// Band is one block in a stack.
type Band struct {
	Size  int64 // bytes
	Alloc int32
	// In points of the pool: those before its first, and before its last.
	birth, end uint32
}

// Bands are the single blocks in a pool's stack at instants that follow each
// other: in each category those that a Detail names, the oldest lowest. What
// the category holds besides lies above them. The zero value is ready; it is
// used again without allocating.
type Bands struct {
	pool *Pool
	ids  []int32 // that are in any of the stacks, by age
	room []int32 // to sort in
	next int     // of them, the first that was not born yet
	born int     // its birth
	at   int     // the instant: points before it
	was  int     // the instant before
	soon uint32  // no block of the stack ends before
	by   [event.NumCategories][]Band
}

// Begin gets ready for the instants of a window. Where meant is not nil, only
// allocations for which it holds are in the stacks.
func (s *Bands) Begin(p *Pool, w Window, d Detail, meant func(alloc int) bool) {
	s.pool, s.ids, s.next, s.soon = p, s.ids[:0], 0, ^uint32(0)
	for c := range s.by {
		s.by[c] = s.by[c][:0]
	}
	s.at = p.inUse.before(w.T0, 0)
	end := p.inUse.before(w.T1, s.at)
	take := func(id int32) {
		row := p.allocs.row(int(id))
		if row.at(sizeCol) >= d.Least && row.at(birthCol) < int64(end) && (meant == nil || meant(int(id))) {
			s.ids = append(s.ids, id)
		}
	}
	for _, id := range p.openBlocks() {
		take(id)
	}
	for r := max(d.Rank, 0); r < ranks; r++ {
		list := &p.lasting.by[r]
		for i, to := p.ended(r, s.at, end); i < to; i++ {
			take(*list.at(i))
		}
	}
	s.sort()
	s.head()
}

// sort puts the blocks in the order of age. There may be thousands in each
// frame, so that they are dealt out by eleven bits at a time, as often as they
// differ.
func (s *Bands) sort() {
	if len(s.ids) < 200 {
		slices.Sort(s.ids)
		return
	}
	low, high := slices.Min(s.ids), slices.Max(s.ids)
	if cap(s.room) < len(s.ids) {
		s.room = make([]int32, cap(s.ids))
	}
	from, to := s.ids, s.room[:len(s.ids)]
	const deal = 11
	for shift := 0; (high-low)>>shift > 0; shift += deal {
		var place [1 << deal]int32
		for _, id := range from {
			place[(id-low)>>shift&(1<<deal-1)]++
		}
		at := int32(0)
		for i, n := range place {
			place[i], at = at, at+n
		}
		for _, id := range from {
			k := &place[(id-low)>>shift&(1<<deal-1)]
			to[*k] = id
			*k++
		}
		from, to = to, from
	}
	s.ids, s.room = from, to
}

// head finds the birth of the next block.
func (s *Bands) head() {
	s.born = int(^uint(0) >> 1)
	if s.next < len(s.ids) {
		s.born = int(s.pool.allocs.at(birthCol, int(s.ids[s.next])))
	}
}

// Next goes on to the fullest instant of a bucket of the window, which must not
// lie before the last one.
func (s *Bands) Next(b *MemoryBucket) {
	n := max(b.points, s.at)
	s.was, s.at = s.at, n
	if s.soon < uint32(n) {
		s.drop(uint32(n))
	}
	for s.born < n {
		id := int(s.ids[s.next])
		end := *s.pool.lives.end.at(id) - 1 // all the bits while there is none
		if int64(end) >= int64(n) {
			row := s.pool.allocs.row(id)
			c := row.at(kindCol) & 0xff
			s.by[c] = append(s.by[c], Band{row.at(sizeCol), int32(id), uint32(s.born), end})
			s.soon = min(s.soon, end)
		}
		s.next++
		s.head()
	}
}

// drop leaves out what has ended after n points.
func (s *Bands) drop(n uint32) {
	s.soon = ^uint32(0)
	for c, list := range s.by {
		k := 0
		for i := range list {
			if list[i].end >= n {
				s.soon = min(s.soon, list[i].end)
				list[k] = list[i]
				k++
			}
		}
		s.by[c] = list[:k]
	}
}

// Of are the single blocks of a category at the instant, the lowest first.
func (s *Bands) Of(c event.Category) []Band { return s.by[c] }

// At is the block at a height in bytes above the lower edge of a category's
// part of the stack; false in the remainder.
func (s *Bands) At(c event.Category, height int64) (Band, bool) {
	for _, b := range s.by[c] {
		if height -= b.Size; height < 0 {
			return b, true
		}
	}
	return Band{}, false
}

// Fresh reports whether a block was not in the stack of the instant before.
func (s *Bands) Fresh(b *Band) bool { return int(b.birth) >= s.was }

// Still reports whether the stack is that of the instant before.
func (s *Bands) Still() bool { return s.at == s.was }

// Ends is when a block of the stack ends; Alive when it was not freed yet.
func (s *Bands) Ends(b *Band) int64 { return s.pool.died(int(b.Alloc)) }

// Instant is the moment of a pool's bucket that its stack shows.
func (p *Pool) Instant(b *MemoryBucket) Moment { return p.moment(b.points, b.Time) }
