package feed

import (
	"errors"

	"tideline/shared/pipeline"
)

// cursor is an open file.
type cursor struct {
	file   int
	next   int
	opened bool
}

// interleave reads from several files in turn, in the asking goroutine.
type interleave struct {
	link
	turns *pipeline.Turns
	open  []cursor
	ended bool // no more files
}

func newInterleave(l link) *interleave {
	return &interleave{link: l, turns: pipeline.NewTurns(l.s.Cycle, l.s.Block), open: make([]cursor, l.s.Cycle)}
}

func (x *interleave) reset() {
	clear(x.open)
	x.turns, x.ended = pipeline.NewTurns(x.s.Cycle, x.s.Block), false
	x.in.reset()
}

func (x *interleave) next(th *thread) (*element, error) {
	for {
		c := &x.open[x.turns.At()]
		if !c.opened && !x.ended {
			f, err := nextFile(x.in, th, x.f)
			if err != nil && !errors.Is(err, pipeline.ErrEnd) {
				return nil, err
			}
			x.ended = err != nil
			*c = cursor{file: f, opened: err == nil}
		}
		if c.opened {
			if c.next < x.f.d.Stages[0].Files[c.file].Elements {
				x.turns.Took()
				c.next++
				return x.f.readFile(th, x.i, 0, c.file, c.next-1)
			}
			*c = cursor{}
		} else if !x.any() {
			return nil, pipeline.ErrEnd
		}
		x.turns.Pass()
	}
}

func (x *interleave) any() bool {
	for i := range x.open {
		if x.open[i].opened {
			return true
		}
	}
	return false
}

// nextFile is the number of the next file to open.
func nextFile(in iterator, th *thread, f *Feed) (int, error) {
	e, err := in.next(th)
	if err != nil {
		return 0, err
	}
	defer f.pool.put(e)
	return int(e.Indices[0]), nil
}

// readFile reads an element of a file, which the first one opens.
func (f *Feed) readFile(th *thread, stage, worker, file, k int) (*element, error) {
	x := &f.d.Stages[0].Files[file]
	e := f.pool.one(x.First + int32(k))
	if f.o.Read == nil && (f.o.Open == nil || k > 0) {
		return e, nil
	}
	return e, f.call(th, stage, worker, e.Indices[0], x.Bytes, func() (err error) {
		if f.o.Open != nil && k == 0 {
			if err := f.o.Open(file); err != nil {
				return err
			}
		}
		if f.o.Read != nil {
			e.Labels[0], err = f.o.Read(e.Indices[0], e.Images)
		}
		return err
	})
}

// aheadPerCycle is how many files are read ahead for each of the cycle.
const aheadPerCycle = 2

// readAhead is a parallel interleave: workers read from the files of the cycle
// first, and then from those that will follow, as far as there is room. The
// order is that of an interleave without them.
type readAhead struct {
	link
	gate
	limit   int // workers
	workers int
	cycle   []*openFile
	coming  []*openFile
	turns   *pipeline.Turns
	ended   error // of the files
	started bool
	done    bool
	threads []*thread
}

// openFile is a file that is read ahead.
type openFile struct {
	cursor
	busy  bool
	ready []result // not taken
}

type result struct {
	e   *element
	err error
}

func newReadAhead(l link) *readAhead {
	x := &readAhead{link: l, limit: max(1, l.s.Parallel)}
	l.f.gate(&x.gate)
	if l.s.Parallel == pipeline.Auto {
		l.f.tuner.add(l.i, x)
	}
	return x
}

func (x *readAhead) cancel() {
	x.gate.cancel()
	x.in.cancel()
}

func (x *readAhead) reset() {
	x.cancel()
	x.wg.Wait()
	x.in.reset()
	x.mu.Lock()
	x.cycle, x.coming, x.ended, x.started, x.done, x.workers, x.stopped = nil, nil, nil, false, false, 0, false
	x.mu.Unlock()
}

func (x *readAhead) parallelism() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.limit
}

func (x *readAhead) raise(n int) {
	x.mu.Lock()
	x.limit = n
	if x.started && !x.over() {
		x.hire()
	}
	x.mu.Unlock()
}

func (x *readAhead) hire() {
	for ; x.workers < x.limit; x.workers++ {
		w := x.workers
		if len(x.threads) == w {
			x.threads = append(x.threads, x.f.thread())
		}
		th := x.threads[w]
		x.f.spawn(&x.wg, func() { x.work(th, w) })
	}
}

// file opens the next file; nil when there is none. The lock is held: names of
// files are there at once.
func (x *readAhead) file(th *thread) *openFile {
	if x.ended != nil {
		return nil
	}
	f, err := nextFile(x.in, th, x.f)
	if err != nil {
		x.ended = err
		return nil
	}
	return &openFile{cursor: cursor{file: f, opened: true}}
}

func (x *readAhead) refill(th *thread) {
	for len(x.coming) < aheadPerCycle*x.s.Cycle {
		f := x.file(th)
		if f == nil {
			return
		}
		x.coming = append(x.coming, f)
	}
}

// job is a file that there is something to read from.
func (x *readAhead) job() *openFile {
	for _, list := range [][]*openFile{x.cycle, x.coming} {
		for _, f := range list {
			if f != nil && !f.busy && len(f.ready) < 2*x.s.Block+1 && f.next < x.f.d.Stages[0].Files[f.file].Elements {
				return f
			}
		}
	}
	return nil
}

func (x *readAhead) work(th *thread, worker int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for {
		f := x.job()
		for f == nil && !x.over() && !x.done {
			x.changed.Wait()
			f = x.job()
		}
		if x.over() || x.done {
			return
		}
		f.busy = true
		k := f.next
		f.next++
		x.mu.Unlock()
		e, err := x.f.readFile(th, x.i, worker, f.file, k)
		x.mu.Lock()
		f.busy = false
		f.ready = append(f.ready, result{e, err})
		x.changed.Broadcast()
	}
}

func (x *readAhead) next(th *thread) (*element, error) {
	x.f.retune()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.started {
		x.started = true
		x.turns = pipeline.NewTurns(x.s.Cycle, x.s.Block)
		x.cycle = make([]*openFile, x.s.Cycle)
		for i := range x.cycle {
			x.cycle[i] = x.file(th)
		}
		x.refill(th)
		x.hire()
	}
	for {
		at := x.turns.At()
		f := x.cycle[at]
		if f == nil && len(x.coming) > 0 {
			f = x.coming[0]
			x.cycle[at] = f
			x.coming = x.coming[:copy(x.coming, x.coming[1:])]
			x.refill(th)
			x.changed.Broadcast()
		}
		if f == nil {
			if !x.any() {
				return nil, x.finish()
			}
			x.turns.Pass()
			continue
		}
		begin := x.f.o.Clock()
		for len(f.ready) == 0 && (f.busy || f.next < x.f.d.Stages[0].Files[f.file].Elements) && !x.over() {
			x.changed.Wait()
		}
		th.self[x.i] += x.f.o.Clock() - begin
		if x.over() {
			return nil, ErrClosed
		}
		if len(f.ready) == 0 {
			x.cycle[at] = nil
			x.turns.Pass()
			continue
		}
		r := f.ready[0]
		f.ready = f.ready[:copy(f.ready, f.ready[1:])]
		x.turns.Took()
		x.changed.Broadcast()
		return r.e, r.err
	}
}

// finish lets the workers go; the lock is held.
func (x *readAhead) finish() error {
	x.done = true
	x.changed.Broadcast()
	return x.ended
}

func (x *readAhead) any() bool {
	for _, f := range x.cycle {
		if f != nil {
			return true
		}
	}
	return false
}
