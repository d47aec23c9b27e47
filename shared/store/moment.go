package store

import (
	"sort"

	"tideline/protocol/event"
)

// Moment is a place in the order of a pool's changes. A time alone is not one:
// many events may share a nanosecond, and a step that fails is unwound in the
// very nanosecond of its failure. The zero Moment is before everything.
type Moment struct {
	Time    int64 // nanoseconds
	points  int   // changes of the bytes in use that went before
	regions int   // changes of the regions that went before
}

// latest is the moment after everything that was told so far.
func (p *Pool) latest(at int64) Moment { return Moment{at, p.inUse.n, p.reserved.n} }

// After is the moment after all events of time at.
func (p *Pool) After(at int64) Moment {
	return Moment{at, p.inUse.upTo(at), p.reserved.upTo(at)}
}

// Fullest is the moment of time at when the pool holds most: at the time of a
// peak, the peak, even where the block that made it is freed at the same time.
// Where no event has that time, it is what came in.
func (p *Pool) Fullest(at int64) Moment {
	m := p.After(at)
	if a := p.inUse.before(at, 0); a < m.points {
		m = p.moment(int(p.inUse.extent(a, m.points).at)+1, at)
	}
	return m
}

// moment is the one right after the first n points, the last of which has time
// at.
func (p *Pool) moment(n int, at int64) Moment {
	m := Moment{at, n, p.reserved.before(at, 0)}
	for end := p.reserved.upTo(at); m.regions < end && p.reserved.extra(m.regions) < int64(n); {
		m.regions++
	}
	return m
}

// Seen is the moment that a time means to a reader: where a request of the
// pool failed at that time, the failure, the last if there are several; else
// the fullest.
func (t *Timeline) Seen(p *Pool, at int64) Moment {
	i := sort.Search(len(t.ooms), func(i int) bool { return t.ooms[i].Time > at })
	for i--; i >= 0 && t.ooms[i].Time == at; i-- {
		if t.ooms[i].Pool == p.Index {
			return t.ooms[i].Moment
		}
	}
	return p.Fullest(at)
}

// In is what the pool holds at a moment.
func (p *Pool) In(m Moment) State {
	s := p.after(m.points)
	s.Time, s.Reserved = m.Time, p.reserved.valueAfter(m.regions)
	return s
}

// LiveIn is LiveAt for a moment.
func (p *Pool) LiveIn(dst []int32, m Moment) []int32 { return p.liveAfter(dst, m.points) }

// ChunkMapIn is ChunkMapAt for a moment.
func (p *Pool) ChunkMapIn(m Moment) event.ChunkMap {
	return p.chunkMap(p.liveAfter(nil, m.points), p.heldIn(m))
}
