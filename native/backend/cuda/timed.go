//go:build cuda

package cuda

import (
	"slices"

	"tideline/protocol/event"
)

// timed gives the events of work on cards their measured times. An executor
// tells of work when it is ordered; here its events wait until it is done, and
// with them everything that may come after in time.
type timed struct {
	next   event.Sink
	b      *Backend
	held   []heldEvent
	lanes  map[laneKey]*expected
	host   int64 // time of the last event that was not a card's
	last   int64 // of the last event handed on
	serial uint64
}

type heldEvent struct {
	e      event.Event
	t      *ticket // nil: the time is right
	end    bool    // of the work, rather than its begin
	serial uint64
}

// laneKey is a stream of a logical device, on which work begins and ends in
// the order in which it was ordered.
type laneKey struct {
	dev    event.DeviceID
	stream event.StreamID
}

// expected is the work of a lane whose events are still to be told.
type expected struct {
	tickets []*ticket
	begun   int // of tickets, whose begin was told
}

// Timed returns a sink that hands events on to next in order of time, those of
// work on cards with the times that the card measured. Give it to the run as
// its sink. Events come later than with next itself: when the work is done that
// may have come before them.
func (b *Backend) Timed(next event.Sink) event.Sink {
	b.timed = &timed{next: next, b: b, lanes: map[laneKey]*expected{}}
	return b.timed
}

func (s *timed) key(l *lane, stream event.StreamID) laneKey {
	for i, x := range s.b.lanes {
		if x == l {
			return laneKey{event.DeviceID(i), stream}
		}
	}
	return laneKey{}
}

// expect is told of work that is handed to a card.
func (s *timed) expect(t *ticket) {
	k := s.key(t.lane, t.stream)
	if s.lanes[k] == nil {
		s.lanes[k] = &expected{}
	}
	s.lanes[k].tickets = append(s.lanes[k].tickets, t)
}

// releaseEvery is after how many events those are handed on that can be.
const releaseEvery = 256

// Emit implements event.Sink.
func (s *timed) Emit(e *event.Event) {
	h := heldEvent{e: *e, serial: s.serial}
	s.serial++
	switch e.Kind {
	case event.OpBegin, event.OpEnd:
		h.end = e.Kind == event.OpEnd
		h.t = s.match(laneKey{e.Device, e.Stream}, h.end)
	case event.TransferBegin, event.TransferEnd:
		owner := e.Device
		if owner == host {
			owner = e.Peer
		}
		h.end = e.Kind == event.TransferEnd
		h.t = s.match(laneKey{owner, e.Stream}, h.end)
	default:
	}
	if h.t == nil {
		s.host = max(s.host, e.Time)
	}
	s.held = append(s.held, h)
	if e.Kind == event.End {
		s.flush()
	} else if len(s.held)%releaseEvery == 0 {
		s.release()
	}
}

// match finds the work that the next event of a lane tells of.
func (s *timed) match(k laneKey, end bool) *ticket {
	x := s.lanes[k]
	if x == nil || len(x.tickets) == 0 {
		return nil
	}
	if !end {
		if x.begun >= len(x.tickets) {
			return nil
		}
		x.begun++
		return x.tickets[x.begun-1]
	}
	t := x.tickets[0]
	x.tickets = x.tickets[1:]
	x.begun--
	return t
}

// release hands on what nothing can come before any more: no event of work
// under way, which cannot begin before it was ordered, and none that the host
// is still to tell.
func (s *timed) release() {
	horizon := s.host
	for i := range s.held {
		h := &s.held[i]
		switch {
		case h.t == nil:
		case !h.t.done.Load():
			horizon = min(horizon, h.t.issued)
		case h.end:
			h.e.Time, h.t = h.t.span.End, nil
		default:
			h.e.Time, h.t = h.t.span.Begin, nil
		}
	}
	for _, x := range s.lanes {
		for _, t := range x.tickets { // not told yet
			horizon = min(horizon, t.issued)
		}
	}
	s.handOn(horizon)
}

// flush hands everything on: the run is over.
func (s *timed) flush() {
	clear(s.lanes)
	s.release()
	for i := range s.held {
		s.held[i].t = nil
	}
	s.handOn(1<<63 - 1)
}

// handOn sorts what is held by time, events of one time as they came, and
// hands on all up to the horizon.
func (s *timed) handOn(horizon int64) {
	slices.SortStableFunc(s.held, func(a, b heldEvent) int {
		switch {
		case a.e.Time != b.e.Time:
			if a.e.Time < b.e.Time {
				return -1
			}
			return 1
		case a.serial < b.serial:
			return -1
		}
		return 1
	})
	n := 0
	for n < len(s.held) && s.held[n].t == nil && s.held[n].e.Time <= horizon {
		e := &s.held[n].e
		e.Time = max(e.Time, s.last)
		s.last = e.Time
		s.next.Emit(e)
		n++
	}
	s.held = append(s.held[:0], s.held[n:]...)
}
