package bridge

import (
	"time"

	"tideline/shared/draw"
	"tideline/shared/store"
)

// sieve is the page's filter: what passes it, in each pool that has a lane. It
// is built in slices between other questions, and follows a timeline that grows.
type sieve struct {
	text   string // as the page gave it; "" for no filter
	tl     *store.Timeline
	filter *store.Filter
	parts  []*store.Part // by pool; nil where no lane shows it
	seen   uint64        // rises when pictures of the parts are worth drawing anew
	told   time.Time     // when it last rose
	points int           // taken in by then
}

// Of one slice of sifting: short, so that no picture waits for it; and of how
// often a picture that fills in is drawn anew.
const (
	sliceTime  = 5 * time.Millisecond
	slicePiece = 256 // changes between two looks at the clock
	tellEvery  = 200 * time.Millisecond
)

// sift takes another filter.
func (s *Session) sift(text string) {
	if text != s.sieve.text {
		s.sieve = sieve{text: text, seen: s.sieve.seen + 1}
	}
	s.out.open().close()
}

// parts is what passes the filter, of the timeline on screen; nil without a
// filter.
func (s *Session) parts() []*store.Part {
	q, sl := &s.sieve, s.slots[Current]
	if q.text == "" || sl == nil {
		return nil
	}
	if q.tl != sl.tl {
		*q = sieve{text: q.text, seen: q.seen + 1, tl: sl.tl, filter: store.NewFilter(sl.tl, q.text)}
	}
	for len(q.parts) < len(sl.tl.Pools()) {
		q.parts = append(q.parts, nil)
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		if (l.Kind == draw.MemoryLane || l.Kind == draw.AddressLane) && q.parts[l.Pool] == nil {
			q.parts[l.Pool] = store.NewPart(sl.tl.Pools()[l.Pool], q.filter)
		}
	}
	return q.parts
}

// part is what passes of one pool; nil without a filter.
func (s *Session) part(pool int) *store.Part {
	if list := s.parts(); pool >= 0 && pool < len(list) {
		return list[pool]
	}
	return nil
}

// filterFor is the filter of a question, which most often is the page's.
func (s *Session) filterFor(tl *store.Timeline, text string) *store.Filter {
	if s.parts(); s.sieve.text == text && s.sieve.tl == tl && text != "" {
		return s.sieve.filter
	}
	return store.NewFilter(tl, text)
}

// sifting goes on with the filter for a slice of time: "more" says that there is
// more to do, "share" how much is done in percent, and "changed" that pictures
// are worth drawing anew.
func (s *Session) sifting() {
	began := time.Now()
	q, more := &s.sieve, false
	taken, of := 0, 0
	for _, part := range s.parts() {
		if part == nil {
			continue
		}
		left := true
		for left && time.Since(began) < sliceTime {
			left = part.Advance(slicePiece)
		}
		more = more || left
		taken += part.Taken()
		of += s.slots[Current].tl.Pools()[part.Pool()].Points()
	}
	changed := taken != q.points && (!more || began.Sub(q.told) > tellEvery)
	if changed {
		q.seen, q.told, q.points = q.seen+1, began, taken
	}
	share := int64(100)
	if more {
		share = int64(100*taken) / int64(of)
	}
	s.out.open().key("more").truth(more).key("changed").truth(changed).key("share").num(share).close()
}

// writePassing says how much of what a pool holds at a moment passes, once that
// is known.
func (s *Session) writePassing(a *answer, p *store.Pool, m store.Moment, whole int64) {
	part := s.part(p.Index)
	if part == nil {
		return
	}
	a.key("passes")
	if !part.Knows(m) {
		a.text("")
		return
	}
	in := part.In(m)
	a.text(size(in.Total()) + " of " + size(whole))
}

// passesWords tells of an allocation whether it passes.
func passesWords(part *store.Part, i int) string {
	switch {
	case part == nil:
		return ""
	case part.Holds(i):
		return "matches"
	}
	return "does not match"
}
