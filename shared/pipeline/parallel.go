package pipeline

import "tideline/protocol/event"

// parallel is a map with a runner of its own. It has as many slots as calls; a
// slot is busy from the fetch of its input until its result is taken. Slots
// are filled in the order of the input.
type parallel struct {
	m       *Model
	s       *Stage
	i       int
	in      iterator
	reader  thread  // of the runner: its clock is when the last fetch ended
	workers []int64 // when each is free
	limit   int     // slots
	busy    []slot  // oldest first
	calls   int64
	shape   int32
	started bool
	ended   bool
}

// slot is a call whose fate is decided.
type slot struct {
	item    item
	fetched int64 // when its input was
	finish  int64 // when its result is there
	source  int   // stage to blame for the time of the fetch
	behind  bool  // it waited for the reader and for nothing else
	filling bool
}

func (m *Model) buildParallel(i int, in iterator) *parallel {
	x := &parallel{m: m, s: &m.d.Stages[i], i: i, in: in, reader: m.thread(), shape: m.intern(&m.d.Stages[i])}
	x.setLimit(max(1, x.s.Parallel))
	if x.s.Parallel == Auto {
		m.tune(i, x)
	}
	return x
}

// setLimit makes more slots and workers.
func (x *parallel) setLimit(n int) {
	x.limit = n
	if x.s.Cores > 0 {
		n = min(n, x.s.Cores)
	}
	for len(x.workers) < n {
		x.workers = append(x.workers, 0)
	}
	if cap(x.busy) < x.limit {
		x.busy = append(make([]slot, 0, x.limit), x.busy...)
	}
}

func (x *parallel) parallelism() int { return x.limit }

func (x *parallel) raise(n int, at int64) {
	x.setLimit(n)
	if x.started {
		x.fill(at)
	}
}

func (x *parallel) reset() {
	x.busy, x.started, x.ended = x.busy[:0], false, false
	x.in.reset()
}

// fill gives the runner the slots that are free from time t on.
func (x *parallel) fill(t int64) {
	for len(x.busy) < x.limit && !x.ended {
		x.schedule(t)
	}
}

// schedule decides the fate of the next element, whose slot is free from
// time t on.
func (x *parallel) schedule(t int64) {
	waiting := x.reader.clock > t
	x.reader.clock = max(x.reader.clock, t)
	x.reader.begin()
	e, ok := x.in.next(&x.reader)
	if !ok {
		x.ended = true
		return
	}
	c := slot{item: e, fetched: x.reader.clock, finish: x.reader.clock, source: x.reader.blame(), behind: waiting, filling: x.reader.filling}
	if x.m.failed(e) == nil {
		c.item = x.s.mapped(e, x.calls, x.shape)
		w := earliest(x.workers)
		at := max(c.fetched, x.workers[w])
		c.finish = at + x.s.call(x.calls)
		c.behind = waiting && at == c.fetched
		x.workers[w] = c.finish
		x.m.log.stage(at, c.finish, x.i, event.StreamID(w), c.item.bytes)
		x.calls++
	}
	x.busy = append(x.busy, c)
}

// earliest is the index of the least; the first of equals.
func earliest(times []int64) int {
	best := 0
	for w, t := range times {
		if t < times[best] {
			best = w
		}
	}
	return best
}

// next waits for the oldest result, or whichever is there first where the
// order does not matter, and frees its slot. The wait is the input's where the
// reader alone set the pace, whoever worked last.
func (x *parallel) next(th *thread) (item, bool) {
	if !x.started {
		x.started = true
		x.fill(th.clock)
	}
	if len(x.busy) == 0 {
		return item{}, false
	}
	k := 0
	if x.s.Unordered {
		k = x.first(th.clock)
	}
	c := x.busy[k]
	x.busy = append(x.busy[:k], x.busy[k+1:]...)
	th.filling = th.filling || c.filling
	th.wait(c.fetched, c.source)
	by := x.i
	if c.behind {
		by = c.source
	}
	th.wait(c.finish, by)
	x.fill(th.clock)
	return c.item, true
}

// first is the slot whose result is taken at time t: the first that is there,
// or the one that will be.
func (x *parallel) first(t int64) int {
	best := 0
	for k := range x.busy {
		f := x.busy[k].finish
		if f <= t {
			return k
		}
		if f < x.busy[best].finish {
			best = k
		}
	}
	return best
}
