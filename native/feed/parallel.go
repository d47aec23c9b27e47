package feed

import (
	"errors"
	"slices"

	"tideline/shared/pipeline"
)

// parallelMap has a goroutine that walks over the input and workers for the
// calls. A slot is taken before an element is fetched and freed when its result
// is taken, so there are never more results, done or pending, than calls.
type parallelMap struct {
	link
	gate
	cut     bool    // a call has ended the sequence
	limit   int     // slots
	workers int     // goroutines
	slots   []*slot // in the order of the input; oldest first
	spare   []*slot
	jobs    []*slot // not begun
	ended   error
	started bool
	threads []*thread // of the workers, and the reader's first
}

// slot is a call.
type slot struct {
	e       *element
	err     error
	source  int // stage to blame for the time of the fetch
	filling bool
	done    bool
}

func newParallel(l link) *parallelMap {
	x := &parallelMap{link: l, limit: max(1, l.s.Parallel), threads: []*thread{l.f.thread()}}
	l.f.gate(&x.gate)
	if l.s.Parallel == pipeline.Auto {
		l.f.tuner.add(l.i, x)
	}
	return x
}

func (x *parallelMap) cancel() {
	x.gate.cancel()
	x.in.cancel()
}

func (x *parallelMap) reset() {
	x.cancel()
	x.wg.Wait()
	x.in.reset()
	x.mu.Lock()
	x.slots, x.jobs, x.ended, x.started, x.workers, x.stopped, x.cut = nil, nil, nil, false, 0, false, false
	x.mu.Unlock()
}

// start begins to fill all slots; the lock is held.
func (x *parallelMap) start() {
	if !x.started {
		x.started = true
		th := x.threads[0]
		x.f.spawn(&x.wg, func() { x.read(th) })
	}
	n := x.limit
	if x.s.Cores > 0 {
		n = min(n, x.s.Cores)
	}
	for ; x.workers < n; x.workers++ {
		w := x.workers
		if len(x.threads) < w+2 {
			x.threads = append(x.threads, x.f.thread())
		}
		th := x.threads[w+1]
		x.f.spawn(&x.wg, func() { x.work(th, w) })
	}
}

func (x *parallelMap) parallelism() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.limit
}

func (x *parallelMap) raise(n int) {
	x.mu.Lock()
	x.limit = n
	if x.started && !x.over() {
		x.start()
	}
	x.changed.Broadcast()
	x.mu.Unlock()
}

// read walks over the input and hands out work.
func (x *parallelMap) read(th *thread) {
	for {
		x.mu.Lock()
		for len(x.slots) >= x.limit && !x.over() {
			x.changed.Wait()
		}
		over := x.over()
		x.mu.Unlock()
		if over {
			return
		}
		th.begin()
		e, err := x.in.next(th)
		x.mu.Lock()
		if err != nil {
			x.ended = err
		} else {
			s := x.slot()
			*s = slot{e: e, source: th.blame(), filling: th.filling}
			x.slots, x.jobs = append(x.slots, s), append(x.jobs, s)
		}
		x.changed.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *parallelMap) slot() *slot {
	if n := len(x.spare); n > 0 {
		s := x.spare[n-1]
		x.spare = x.spare[:n-1]
		return s
	}
	return &slot{}
}

func (x *parallelMap) work(th *thread, worker int) {
	for {
		x.mu.Lock()
		for len(x.jobs) == 0 && x.ended == nil && !x.over() {
			x.changed.Wait()
		}
		if len(x.jobs) == 0 || x.over() {
			x.mu.Unlock()
			return
		}
		s := x.jobs[0]
		x.jobs = x.jobs[:copy(x.jobs, x.jobs[1:])]
		x.mu.Unlock()
		epoch := s.e.epoch
		e, err := x.f.apply(th, x.i, worker, s.e)
		if e != nil {
			e.epoch = epoch
		}
		x.mu.Lock()
		s.e, s.err, s.done = e, err, true
		x.changed.Broadcast()
		x.mu.Unlock()
	}
}

// next is the oldest result, or the first that is there where the order does
// not matter.
func (x *parallelMap) next(th *thread) (*element, error) {
	x.f.retune()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.start()
	if x.cut {
		return nil, pipeline.ErrEnd
	}
	begin := x.f.o.Clock()
	for len(x.slots) == 0 && x.ended == nil && !x.over() {
		x.changed.Wait()
	}
	fetched := x.f.o.Clock()
	k := x.ready()
	for k < 0 && len(x.slots) > 0 && !x.over() {
		x.changed.Wait()
		k = x.ready()
	}
	if x.over() {
		return nil, ErrClosed
	}
	if len(x.slots) == 0 {
		return nil, x.ended
	}
	s := x.slots[k]
	x.slots = append(x.slots[:k], x.slots[k+1:]...)
	th.self[s.source] += fetched - begin
	th.self[x.i] += x.f.o.Clock() - fetched
	th.filling = th.filling || s.filling
	e, err := s.e, s.err
	s.e = nil
	x.cut = errors.Is(err, pipeline.ErrEnd)
	x.spare = append(x.spare, s)
	x.changed.Broadcast()
	return e, err
}

// ready is the slot to take, -1 for none. The end is taken only where it is the
// oldest.
func (x *parallelMap) ready() int {
	for k, s := range x.slots {
		if s.done && (k == 0 || !errors.Is(s.err, pipeline.ErrEnd)) {
			return k
		}
		if !x.s.Unordered {
			break
		}
	}
	return -1
}

// mapBatch is a parallel map that writes into batches.
type mapBatch struct {
	link
	gate
	open    []*filling // oldest first
	jobs    []job
	turn    int
	ended   error
	started bool
	threads []*thread
}

// filling is a batch that is being written.
type filling struct {
	e       *element
	calls   int  // not ended
	whole   bool // no more elements will come
	err     error
	source  int
	filling bool
}

// job is a call on an element whose content lies in the batch already.
type job struct {
	b      *filling
	in     *element
	images []float32
	labels []int64
}

func newMapBatch(l link) *mapBatch {
	x := &mapBatch{link: l}
	for range x.calls() + 1 {
		x.threads = append(x.threads, l.f.thread())
	}
	l.f.gate(&x.gate)
	return x
}

func (x *mapBatch) calls() int {
	n := max(1, x.s.Parallel)
	if x.s.Cores > 0 {
		n = min(n, x.s.Cores)
	}
	return n
}

func (x *mapBatch) cancel() {
	x.gate.cancel()
	x.in.cancel()
}

func (x *mapBatch) reset() {
	x.cancel()
	x.wg.Wait()
	x.in.reset()
	x.mu.Lock()
	x.open, x.jobs, x.turn, x.ended, x.started, x.stopped = nil, nil, 0, nil, false, false
	x.mu.Unlock()
}

// read fetches elements while there is room: as many batches as calls, and no
// more elements waiting for a call.
func (x *mapBatch) read() {
	th := x.threads[0]
	for x.batch(th) {
	}
}

func (x *mapBatch) batch(th *thread) (more bool) {
	x.mu.Lock()
	for len(x.open) >= max(1, x.s.Parallel) && !x.over() {
		x.changed.Wait()
	}
	over := x.over()
	x.mu.Unlock()
	if over {
		return false
	}
	want := x.s.Sizes[x.turn]
	x.turn = (x.turn + 1) % len(x.s.Sizes)
	b := &filling{e: x.f.pool.get(want * x.f.largest(x.i))}
	th.begin()
	for pos := range want {
		e, err := x.in.next(th)
		x.mu.Lock()
		b.source, b.filling = th.blame(), th.filling
		if err != nil {
			x.ended = err
			end := errors.Is(err, pipeline.ErrEnd)
			switch {
			case pos > 0 && !end:
				b.whole, b.err = true, err
			case pos > 0 && x.s.Drop:
				x.open = x.open[:len(x.open)-1]
			case pos > 0:
				b.whole = true
			}
			x.changed.Broadcast()
			x.mu.Unlock()
			return false
		}
		if pos == 0 {
			b.e.epoch = e.epoch
			x.open = append(x.open, b)
		}
		at := len(b.e.Indices)
		b.e.add(e)
		b.calls++
		b.whole = pos == want-1
		x.jobs = append(x.jobs, job{b, e, b.e.Images[at*x.f.o.Pixels:], b.e.Labels[at:]})
		x.changed.Broadcast()
		for len(x.jobs) >= x.calls() && !x.over() {
			x.changed.Wait()
		}
		over := x.over()
		x.mu.Unlock()
		if over {
			return false
		}
	}
	return true
}

func (x *mapBatch) work(th *thread, worker int) {
	for {
		x.mu.Lock()
		for len(x.jobs) == 0 && x.ended == nil && !x.over() {
			x.changed.Wait()
		}
		if len(x.jobs) == 0 || x.over() {
			x.mu.Unlock()
			return
		}
		j := x.jobs[0]
		x.jobs = x.jobs[:copy(x.jobs, x.jobs[1:])]
		x.changed.Broadcast()
		x.mu.Unlock()
		err := x.write(th, worker, j)
		x.f.pool.put(j.in)
		x.mu.Lock()
		j.b.calls--
		if err != nil && j.b.err == nil {
			j.b.err = err
		}
		x.changed.Broadcast()
		x.mu.Unlock()
	}
}

// write runs the function on the element's place in the batch, which is large
// enough from the beginning, so that it does not move.
func (x *mapBatch) write(th *thread, worker int, j job) error {
	fn := x.f.function(x.i)
	if fn == nil {
		return nil
	}
	p := x.f.o.Pixels
	for k, index := range j.in.Indices {
		err := x.f.call(th, x.i, worker, index, max(0, x.s.Bytes), func() (err error) {
			j.labels[k], err = fn(index, j.images[k*p:][:p], j.labels[k])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// largest is how many of the source's elements may be in one that enters a
// stage.
func (f *Feed) largest(stage int) int {
	n := 1
	for i := range f.d.Stages[:stage] {
		if sizes := f.d.Stages[i].Sizes; len(sizes) > 0 {
			n *= slices.Max(sizes)
		}
	}
	return n
}

func (x *mapBatch) next(th *thread) (*element, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.started {
		x.started = true
		x.f.spawn(&x.wg, x.read)
		for w := range x.calls() {
			x.f.spawn(&x.wg, func() { x.work(x.threads[w+1], w) })
		}
	}
	begin := x.f.o.Clock()
	for !x.over() && (len(x.open) == 0 && x.ended == nil || len(x.open) > 0 && (!x.open[0].whole || x.open[0].calls > 0)) {
		x.changed.Wait()
	}
	if x.over() {
		return nil, ErrClosed
	}
	if len(x.open) == 0 {
		return nil, x.ended
	}
	b := x.open[0]
	x.open = x.open[:copy(x.open, x.open[1:])]
	th.self[x.i] += x.f.o.Clock() - begin
	th.filling = th.filling || b.filling
	x.changed.Broadcast()
	return b.e, b.err
}
