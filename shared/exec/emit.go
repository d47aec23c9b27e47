package exec

import "tideline/protocol/event"

// emitter puts a run's events into one order. Host events happen now; work on
// a device is known when it is ordered and told when its time has come. Each
// stream runs in order, so its events wait in a queue, and the earliest head
// of all queues is the next to tell.
type emitter struct {
	sink   event.Sink
	clock  clock
	queues []queue // by device and stream
	next   int64   // earliest time in any queue; far when all are empty
	feed   Feed    // whose events are told when their time comes; nil for none
	feedAt int64   // earliest time of those
	last   int64   // time of the last event told
	count  uint64
}

// clock says what time it is on the host.
type clock interface{ Now() int64 }

const far = int64(1<<63 - 1)

// queue is a ring of events of one stream, ascending in time.
type queue struct {
	ring  []event.Event
	head  int
	n     int
	first int64 // time of the head; far when there is none
}

// push appends a copy of e. The queue must have room.
func (q *queue) push(e *event.Event) {
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = *e
	q.n++
}

// pop takes the head away.
func (q *queue) pop() {
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	q.first = far
	if q.n > 0 {
		q.first = q.ring[q.head].Time
	}
}

func (q *queue) grow() {
	bigger := make([]event.Event, max(64, 2*len(q.ring)))
	for i := range q.n {
		bigger[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = bigger, 0
}

const streamsPerDevice = 4

func (m *emitter) open(devices int) {
	m.queues = make([]queue, devices*streamsPerDevice)
	for i := range m.queues {
		m.queues[i].first = far
	}
	m.next, m.feedAt = far, far
}

// follow tells the events of a feed from now on, among the others.
func (m *emitter) follow(f Feed) {
	m.feed = f
	m.feedAt = f.Pending()
}

// host tells an event at the host's time; it is at without the call.
func (m *emitter) host(e *event.Event) {
	t := m.clock.Now()
	if t >= m.next || t >= m.feedAt {
		m.flush(t)
	}
	e.Time = t
	m.tell(e)
}

// at tells an event at time t, after all device events up to then.
func (m *emitter) at(t int64, e *event.Event) {
	if t >= m.next || t >= m.feedAt {
		m.flush(t)
	}
	e.Time = t
	m.tell(e)
}

func (m *emitter) tell(e *event.Event) {
	// A real clock's device span may end a tick behind what was told.
	e.Time = max(e.Time, m.last)
	m.last = e.Time
	m.count++
	m.sink.Emit(e)
}

// nobody is the sink of a run that is not watched.
type nobody struct{}

func (nobody) Emit(*event.Event) {}

// later queues the two events of work on a stream: e, which tells its begin, and
// the same of the kind that tells its end, which is the next one.
func (m *emitter) later(dev event.DeviceID, stream event.StreamID, e *event.Event, s Span) {
	q := &m.queues[int(dev)*streamsPerDevice+int(stream)]
	if q.n+2 > len(q.ring) {
		q.grow()
	}
	e.Time = s.Begin
	q.push(e)
	e.Kind, e.Time = e.Kind+1, s.End
	q.push(e)
	q.first = q.ring[q.head].Time
	m.next = min(m.next, q.first)
}

// flush tells everything up to time t, the feed's events before a device's of
// the same time.
func (m *emitter) flush(t int64) {
	for m.feedAt <= t {
		m.devices(m.feedAt - 1)
		m.feed.Advance(m.feedAt)
		m.feedAt = m.feed.Pending()
	}
	m.devices(t)
}

// devices tells all queued events of devices up to time t.
func (m *emitter) devices(t int64) {
	for m.next <= t {
		best, first, second := 0, far, far
		for i := range m.queues {
			if h := m.queues[i].first; h < first {
				best, first, second = i, h, first
			} else if h < second {
				second = h
			}
		}
		if first == far {
			m.next = far
			return
		}
		m.drain(&m.queues[best], t, second)
	}
}

// drain tells the head of q and what follows it before any other queue's head.
func (m *emitter) drain(q *queue, until, other int64) {
	for {
		m.tell(&q.ring[q.head])
		q.pop()
		if h := q.first; h == far || h >= other || h > until {
			m.next = min(h, other)
			return
		}
	}
}
