package pipeline

// prefetch is a producer that makes elements ahead, or sends them to the
// device ahead.
type prefetch struct {
	m     *Model
	s     *Stage
	i     int
	in    iterator
	th    thread // the producer's
	tuner *Tuner

	queue   []made // made and not yet given, oldest first
	started bool
	ended   bool

	buffered int // in the buffer when the last one was taken
}

// made is an element that waits for its consumer.
type made struct {
	item    item
	at      int64
	stage   int
	filling bool
}

func (m *Model) buildPrefetch(i int, in iterator) *prefetch {
	s := &m.d.Stages[i]
	x := &prefetch{m: m, s: s, i: i, in: in, th: m.thread(), tuner: NewTuner(s.N, s.Budget)}
	m.log.limits[i] = int64(x.tuner.Limit())
	return x
}

// reset begins another pass with a new buffer, but what the tuner has learnt
// is kept.
func (x *prefetch) reset() {
	for range x.queue {
		x.m.log.change(x.th.clock, x.i, -1, 0)
	}
	x.queue, x.started, x.ended = x.queue[:0], false, false
	x.in.reset()
}

func (x *prefetch) next(th *thread) (item, bool) {
	if !x.started {
		x.started = true
		x.th.clock = max(x.th.clock, th.clock)
	}
	x.ahead(th.clock)
	if len(x.queue) == 0 {
		return item{}, false
	}
	size := x.arrived(th.clock)
	if size == 0 {
		if x.tuner.Consumed(0) {
			x.ahead(th.clock)
		}
		size = x.arrived(x.queue[0].at)
	}
	x.tuner.Consumed(size)
	x.buffered = size
	q := x.queue[0]
	x.queue = x.queue[:copy(x.queue, x.queue[1:])]
	th.wait(q.at, q.stage)
	th.filling = th.filling || q.filling
	x.m.log.change(th.clock, x.i, -1, x.tuner.Limit())
	x.ahead(th.clock)
	return q.item, true
}

// arrived counts the elements in the buffer at time t.
func (x *prefetch) arrived(t int64) int {
	n := 0
	for n < len(x.queue) && x.queue[n].at <= t {
		n++
	}
	return n
}

// ahead lets the producer run on from time t, at which a place in the buffer
// may have become free, until the buffer is full. What it does from there on
// depends on nothing that is still to come, so it is decided at once.
func (x *prefetch) ahead(t int64) {
	for len(x.queue) < x.tuner.Limit() && !x.ended {
		x.th.clock = max(x.th.clock, t)
		x.th.begin()
		e, ok := x.in.next(&x.th)
		if !ok {
			x.ended = true
			return
		}
		if x.s.Op == OpDevice {
			x.m.spend(&x.th, x.i, x.s.Cost, e.bytes)
		}
		x.queue = append(x.queue, made{e, x.th.clock, x.th.blame(), x.th.filling})
		if !x.tuner.Element(e.bytes) {
			x.m.warn("%s: %d elements of %d bytes are more than the budget of %d bytes", x.m.names[x.i], x.tuner.Limit(), e.bytes, x.s.Budget)
		}
		x.m.log.change(x.th.clock, x.i, +1, 0)
	}
}
