package feed

import "tideline/shared/pipeline"

// prefetch is a goroutine that makes elements ahead.
type prefetch struct {
	link
	gate
	tuner   *pipeline.Tuner
	th      *thread // the producer's
	queue   []made
	ended   error
	started bool

	// Of the consumer's last call.
	buffered int
	waited   bool
}

// made is an element that waits for its consumer.
type made struct {
	e       *element
	stage   int
	filling bool
}

func newPrefetch(l link) *prefetch {
	x := &prefetch{link: l, tuner: pipeline.NewTuner(l.s.N, l.s.Budget), th: l.f.thread()}
	l.f.gate(&x.gate)
	return x
}

func (x *prefetch) cancel() {
	x.gate.cancel()
	x.in.cancel()
}

func (x *prefetch) reset() {
	x.cancel()
	x.wg.Wait()
	x.in.reset()
	x.mu.Lock()
	x.queue, x.ended, x.started, x.stopped = x.queue[:0], nil, false, false
	x.mu.Unlock()
}

// next takes the oldest element of the buffer.
func (x *prefetch) next(th *thread) (*element, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.started {
		x.started = true
		x.f.spawn(&x.wg, x.produce)
	}
	x.waited = false
	begin := x.f.o.Clock()
	for len(x.queue) == 0 && x.ended == nil && !x.over() {
		if !x.waited && x.tuner.Consumed(0) {
			x.changed.Broadcast()
		}
		x.waited = true
		x.changed.Wait()
	}
	if x.over() {
		return nil, ErrClosed
	}
	if len(x.queue) == 0 {
		return nil, x.ended
	}
	x.buffered = len(x.queue)
	x.tuner.Consumed(x.buffered)
	q := x.queue[0]
	x.queue = x.queue[:copy(x.queue, x.queue[1:])]
	if x.waited {
		th.self[q.stage] += x.f.o.Clock() - begin
	}
	th.filling = th.filling || q.filling
	x.f.log.depth(x.i, len(x.queue), x.tuner.Limit())
	x.changed.Broadcast()
	return q.e, nil
}

// produce makes elements while the buffer has room.
func (x *prefetch) produce() {
	for x.room() {
		x.th.begin()
		e, err := x.in.next(x.th)
		x.mu.Lock()
		if err != nil {
			x.ended = err
		} else {
			x.queue = append(x.queue, made{e, x.th.blame(), x.th.filling})
			x.tuner.Element(int64(len(e.Indices)) * x.f.bytes(x.i))
			x.f.log.depth(x.i, len(x.queue), x.tuner.Limit())
		}
		x.changed.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// room waits for a free place in the buffer; false when nobody wants more.
func (x *prefetch) room() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.queue) >= x.tuner.Limit() && !x.over() {
		x.changed.Wait()
	}
	return !x.over()
}
