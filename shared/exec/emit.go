package exec

import "tideline/protocol/event"

// emitter puts a run's events into one order. Host events happen now; work on
// a device is known when it is ordered and told when its time has come. Each
// stream runs in order, so its events wait in a queue, and the earliest head
// of all queues is the next to tell.
type emitter struct {
	sink   event.Sink
	now    func() int64
	queues []queue // by device and stream
	next   int64   // earliest time in any queue; far when all are empty
	feed   Feed    // whose events are told when their time comes; nil for none
	feedAt int64   // earliest time of those
	last   int64   // time of the last event told
	count  uint64
	ev     event.Event // the one that is handed out: no allocation per event
}

const far = int64(1<<63 - 1)

// queue is a ring of events of one stream, ascending in time.
type queue struct {
	ring []event.Event
	head int
	n    int
}

func (q *queue) push(e *event.Event) {
	if q.n == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = *e
	q.n++
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
	m.next, m.feedAt = far, far
}

// follow tells the events of a feed from now on, among the others.
func (m *emitter) follow(f Feed) {
	m.feed = f
	m.feedAt = f.Pending()
}

// host tells an event at the host's time.
func (m *emitter) host(e *event.Event) {
	m.at(m.now(), e)
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
	if e.Time < m.last {
		// A real clock's device span may end a tick behind what was told.
		e.Time = m.last
	}
	m.last = e.Time
	m.count++
	if m.sink != nil {
		m.sink.Emit(e)
	}
}

// later queues an event of a stream; its Time is set already.
func (m *emitter) later(dev event.DeviceID, s event.StreamID, e *event.Event) {
	m.queues[int(dev)*streamsPerDevice+int(s)].push(e)
	m.next = min(m.next, e.Time)
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
		best, second := -1, far
		for i := range m.queues {
			q := &m.queues[i]
			if q.n == 0 {
				continue
			}
			h := q.ring[q.head].Time
			switch {
			case best < 0 || h < m.queues[best].ring[m.queues[best].head].Time:
				if best >= 0 {
					second = min(second, m.queues[best].ring[m.queues[best].head].Time)
				}
				best = i
			default:
				second = min(second, h)
			}
		}
		if best < 0 {
			m.next = far
			return
		}
		m.drain(&m.queues[best], t, second)
	}
}

// drain tells the head of q and what follows it before any other queue's head.
func (m *emitter) drain(q *queue, until, other int64) {
	for {
		m.ev = q.ring[q.head]
		q.head = (q.head + 1) & (len(q.ring) - 1)
		q.n--
		m.tell(&m.ev)
		if q.n == 0 {
			m.next = other
			return
		}
		if h := q.ring[q.head].Time; h >= other || h > until {
			m.next = min(h, other)
			return
		}
	}
}
