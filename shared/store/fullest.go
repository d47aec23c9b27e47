package store

// fullest is the number of points after which the pool holds most at time at:
// events of one time leave several states, of which the last is what follows
// but the highest is what was needed. Where no event has that time, the state
// is the one that came in.
func (p *Pool) fullest(at int64) int {
	b := p.inUse.upTo(at)
	if a := p.inUse.before(at, 0); a < b {
		return int(p.inUse.extent(a, b).at) + 1
	}
	return b
}

// FullestAt is At at the highest that the events of that very time reach: at
// the time of a peak, the peak, even where the block that made it is freed at
// the same time.
func (p *Pool) FullestAt(at int64) State {
	s := p.after(p.fullest(at))
	s.Time = at
	s.Reserved = p.reserved.valueAfter(p.reserved.upTo(at))
	return s
}

// LiveAtFullest is LiveAt for the state of FullestAt.
func (p *Pool) LiveAtFullest(dst []int32, at int64) []int32 {
	return p.liveAfter(dst, p.fullest(at))
}
