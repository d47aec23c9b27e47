package pipeline

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
)

// batcher collects elements and copies them, in the asking thread.
type batcher struct {
	m     *Model
	s     *Stage
	i     int
	in    iterator
	turn  int
	ended bool
}

func (x *batcher) reset() { x.turn, x.ended = 0, false; x.in.reset() }

func (x *batcher) next(th *thread) (item, bool) {
	if x.ended {
		return item{}, false
	}
	want := x.s.Sizes[x.turn]
	x.turn = (x.turn + 1) % len(x.s.Sizes)
	out := item{box: x.m.box()}
	n := 0
	for ; n < want; n++ {
		e, ok := x.in.next(th)
		if !ok {
			break
		}
		if !x.m.add(&out, e, n, x.i) {
			return out, true
		}
	}
	if n == 0 || n < want && x.s.Drop {
		x.ended = true
		x.m.recycle(out)
		return item{}, false
	}
	x.m.spend(th, x.i, int64(n)*x.s.Cost, out.bytes)
	return out, true
}

// add puts element number n into a batch. An element that is an error, or of
// another shape than the first, makes an error of the batch, and false.
func (m *Model) add(out *item, e item, n, stage int) (ok bool) {
	b := &m.boxes[out.box]
	switch {
	case m.failed(e) != nil:
		b.err = m.failed(e)
		return false
	case n == 0:
		out.shape, out.epoch = e.shape, e.epoch
	case out.shape != e.shape:
		if err := sameShapes(m.shapes[out.shape], m.shapes[e.shape], n); err != nil {
			b.err = fmt.Errorf("pipeline: %s: %w", m.names[stage], err)
			return false
		}
	}
	if e.box == 0 {
		b.list = append(b.list, e.one)
	} else {
		b.list = append(b.list, m.boxes[e.box].list...)
		m.recycle(e)
	}
	out.bytes += e.bytes
	return true
}

// sameShapes compares an element's components with those of a batch's first.
func sameShapes(first, next [][]int64, n int) error {
	if len(first) != len(next) {
		return fmt.Errorf("element %d of the batch has %d components, the first has %d: %w", n, len(next), len(first), ErrInvalidArgument)
	}
	for c := range first {
		if !slices.Equal(first[c], next[c]) {
			return fmt.Errorf("component %d of element %d of the batch has the shape %v, that of the first %v: they must be equal: %w", c, n, next[c], first[c], ErrInvalidArgument)
		}
	}
	return nil
}

// mapBatch is a parallel map that writes into batches: as many batches are
// held as there are calls, and no element on its own.
type mapBatch struct {
	m       *Model
	s       *Stage
	i       int
	in      iterator
	reader  thread
	workers []int64
	busy    []slot // one a batch
	turn    int
	calls   int64
	shape   int32
	started bool
	ended   bool
}

func (m *Model) buildMapBatch(i int, in iterator) *mapBatch {
	s := &m.d.Stages[i]
	n := max(1, s.Parallel)
	if s.Cores > 0 {
		n = min(n, s.Cores)
	}
	return &mapBatch{m: m, s: s, i: i, in: in, shape: m.intern(s), reader: m.thread(), workers: make([]int64, n)}
}

func (x *mapBatch) reset() {
	x.busy, x.turn, x.started, x.ended = x.busy[:0], 0, false, false
	x.in.reset()
}

// schedule decides the fate of the next batch, which has room from time t on.
// An input is fetched when a call is free for it.
func (x *mapBatch) schedule(t int64) {
	want := x.s.Sizes[x.turn]
	x.turn = (x.turn + 1) % len(x.s.Sizes)
	waiting := x.reader.clock > t
	x.reader.begin()
	c := slot{item: item{box: x.m.box()}}
	failed := false
	n := 0
	for ; n < want; n++ {
		w := earliest(x.workers)
		x.reader.clock = max(x.reader.clock, t, x.workers[w])
		e, ok := x.in.next(&x.reader)
		if !ok {
			x.ended = true
			break
		}
		e = x.s.mapped(e, x.calls, x.shape)
		if failed = !x.m.add(&c.item, e, n, x.i); failed {
			break
		}
		c.fetched, c.behind = x.reader.clock, waiting
		x.workers[w] = c.fetched + x.s.call(x.calls)
		x.calls++
		x.m.log.stage(c.fetched, x.workers[w], x.i, event.StreamID(w), e.bytes)
		c.finish = max(c.finish, x.workers[w])
	}
	if !failed && (n == 0 || n < want && x.s.Drop) {
		x.ended = true
		x.m.recycle(c.item)
		return
	}
	c.finish = max(c.finish, x.reader.clock)
	c.source, c.filling = x.reader.blame(), x.reader.filling
	c.behind = c.behind && c.finish == c.fetched
	x.busy = append(x.busy, c)
}

func (x *mapBatch) fill(t int64) {
	for len(x.busy) < max(1, x.s.Parallel) && !x.ended {
		x.schedule(t)
	}
}

func (x *mapBatch) next(th *thread) (item, bool) {
	if !x.started {
		x.started = true
		x.fill(th.clock)
	}
	if len(x.busy) == 0 {
		return item{}, false
	}
	c := x.busy[0]
	x.busy = x.busy[:copy(x.busy, x.busy[1:])]
	th.filling = th.filling || c.filling
	by := x.i
	if c.behind {
		by = c.source
	}
	th.wait(c.finish, by)
	x.fill(th.clock)
	return c.item, true
}
