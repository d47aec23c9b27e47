package draw

import (
	"sort"

	"tideline/shared/store"
)

// A timeline only grows at its end, so that in a window that stays the columns
// before the last event stay too, unless what came changes by what measure the
// lane is drawn: then it is drawn anew.

// reach is how far from its time something may mark a lane, in pixels of CSS:
// the flag of a failure is the widest.
const reach = 8

// tileChanges is how many changes of a pool lie in one tile of package store.
const tileChanges = 128

// gained reports whether a lane that was drawn in the window of s differs from
// what it would show there now only by what its timeline, or its part that
// passes a filter, has gained since; and if so forgets the columns that this
// touches.
func (r *Renderer) gained(tl *store.Timeline, v *View, i int, s *shown, k *laneKey) bool {
	was := s.key
	was.version, was.partSeen = k.version, k.partSeen
	old := *v
	old.T0, old.T1 = s.t0, s.t1
	if was != *k || old.step() == 0 || k.lane.Kind == MinimapLane {
		return false
	}
	if s.measure != r.measure(tl, v, i) || s.mode != r.mode(tl, &old, i) {
		return false
	}
	x := old.x(s.last) - reach*v.dpr()
	switch l := &v.Lanes[i]; l.Kind {
	case MemoryLane:
		// A block that had not ended was told apart: it may have lived too short.
		x = min(x, columnAfter(tl.Pools()[l.Pool], &old, s.points-1<<detail(tl, &old, l).Rank))
	case AddressLane:
		if p := tl.Pools()[l.Pool]; showsTiles(p, &old) {
			// The tile that was still open.
			x = min(x, columnAfter(p, &old, s.points-s.points%tileChanges))
		}
	case TransferLane:
		x = min(x, r.newTraffic(tl, &old, l))
	}
	s.from, s.to = min(s.from, max(x, 0)), min(s.to, max(x, 0))
	return true
}

// newest draws at once what came after a time, in all columns from there on:
// who follows a run looks there. The rest can wait.
func (r *Renderer) newest(img *Image, tl *store.Timeline, v *View, i int, after int64) {
	s := &r.drawn[i]
	x := min(max(v.x(after)-reach*v.dpr(), 0), v.W)
	if x == v.W || v.step() == 0 {
		return
	}
	if s.to < x-v.W/8 || s.from >= s.to {
		s.from, s.to = x, x
	}
	if s.from == s.to && wholeOnly(v.Lanes[i].Kind) {
		s.from, s.to = 0, 0
	}
	r.paint(img, tl, v, i, s.to, v.W)
	s.touch(s.to, v.W)
	s.to = v.W
}

// columnAfter is the first column before whose end a pool changed more than n
// times.
func columnAfter(p *store.Pool, v *View, n int) int {
	first := p.FirstChange()
	return sort.Search(v.W, func(x int) bool { return p.Changes(first, v.TimeAt(x+1)) > n })
}

// newTraffic is the first column of a transfer lane in which other bytes
// crossed than were drawn; 0 when they are not measured as they were.
func (r *Renderer) newTraffic(tl *store.Timeline, v *View, l *Lane) int {
	if !r.sameMeasure(tl, v, l, v.T0, v.T1) {
		return 0
	}
	x := v.W
	for i := range r.rows {
		x = min(x, r.flows[i].since)
	}
	return x
}

// measure is what all columns of a lane take from its timeline: places, scales,
// and how many marks there are that may lie anywhere.
func (r *Renderer) measure(tl *store.Timeline, v *View, i int) uint64 {
	m := uint64(1)
	add := func(list ...int64) {
		for _, n := range list {
			m = (m ^ uint64(n)) * 0x9e3779b97f4a7c15
			m ^= m >> 29
		}
	}
	first, last := tl.Span()
	add(first, min(last-first, 1), int64(len(tl.OOMs())), int64(len(tl.Gaps())))
	switch l := &v.Lanes[i]; {
	case l.Kind == MemoryLane && l.Pool < len(tl.Pools()):
		p := tl.Pools()[l.Pool]
		at, bytes := p.PeakPoint(first, last+1)
		add(Scale(tl, v, l), p.Limit, at, bytes)
	case l.Kind == AddressLane && l.Pool < len(tl.Pools()):
		p := tl.Pools()[l.Pool]
		low, high := l.span(p)
		add(low, high, p.FirstChange(), int64(len(p.Regions())))
	default:
		r.rows = appendRows(r.rows[:0], tl, l)
		for k := range r.rows {
			add(int64(r.rows[k].Y), int64(r.rows[k].H), int64(r.rows[k].Track), int64(r.rows[k].Series))
		}
	}
	return m
}
