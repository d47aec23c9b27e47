package pipeline

import (
	"math"

	"tideline/protocol/event"
)

// aheadPerCycle is how many files a parallel interleave opens ahead, for each
// file of its cycle.
const aheadPerCycle = 2

// perFile is how many elements a parallel interleave buffers of one file.
func (s *Stage) perFile() int { return 2*s.Block + 1 }

// Turns is the order of an interleave: whose turn it is among the files of the
// cycle. It is a function of cycle and block alone.
type Turns struct {
	cycle, block int
	at, taken    int
}

// NewTurns makes the order of an interleave.
func NewTurns(cycle, block int) *Turns { return &Turns{cycle: cycle, block: block} }

// At is the place in the cycle whose turn it is.
func (t *Turns) At() int { return t.at }

// Took says that an element was taken there.
func (t *Turns) Took() {
	if t.taken++; t.taken == t.block {
		t.Pass()
	}
}

// Pass moves on to the next place: the file is exhausted.
func (t *Turns) Pass() {
	t.at, t.taken = (t.at+1)%t.cycle, 0
}

// interleave reads from several files in turn, in the asking thread.
type interleave struct {
	m     *Model
	s     *Stage
	i     int
	in    iterator
	turns *Turns
	open  []cursor
	ended bool // no more files
}

// cursor is an open file.
type cursor struct {
	file   int32
	next   int  // element to read
	opened bool // there is a file
}

func (m *Model) buildInterleave(i int, in iterator) iterator {
	s := &m.d.Stages[i]
	if s.async() {
		x := &readAhead{m: m, s: s, i: i, in: in, files: m.d.Stages[0].Files, reader: m.thread()}
		x.raise(max(1, s.Parallel), 0)
		m.lazy = append(m.lazy, x)
		if s.Parallel == Auto {
			m.tune(i, x)
		}
		return x
	}
	return &interleave{m: m, s: s, i: i, in: in, turns: NewTurns(s.Cycle, s.Block), open: make([]cursor, s.Cycle)}
}

func (x *interleave) reset() {
	clear(x.open)
	x.turns, x.ended = NewTurns(x.s.Cycle, x.s.Block), false
	x.in.reset()
}

func (x *interleave) next(th *thread) (item, bool) {
	for {
		c := &x.open[x.turns.At()]
		if !c.opened && !x.ended {
			f, ok := x.in.next(th)
			x.ended = !ok
			if ok && x.m.failed(f) != nil {
				return f, true
			}
			*c = cursor{file: f.one, opened: ok}
		}
		if c.opened {
			f := &x.m.d.Stages[0].Files[c.file]
			if c.next < f.Elements {
				x.turns.Took()
				x.m.spend(th, x.i, f.cost(c.next), f.Bytes)
				c.next++
				return x.s.mapped(f.element(c.next-1), 0, 0), true
			}
			c.opened, c.next = false, 0
		} else if !x.any() {
			return item{}, false
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

// cost is the time to read a file's element; the first opens it.
func (f *File) cost(element int) int64 {
	if element == 0 {
		return f.Open + f.Read
	}
	return f.Read
}

func (f *File) element(i int) item { return item{one: f.First + int32(i), bytes: f.Bytes} }

// readAhead is a parallel interleave. Workers read ahead from the files of the
// cycle first and then from those that will follow, as far as there is room;
// elements are taken in the same order as without them.
type readAhead struct {
	m      *Model
	s      *Stage
	i      int
	in     iterator
	files  []File
	reader thread // which gets files

	workers []int64     // when each is free
	cycle   []aheadFile // by place
	coming  []aheadFile // opened ahead
	turns   *Turns
	ended   bool // no more files
	started bool
}

// aheadFile is a file that is read ahead.
type aheadFile struct {
	cursor
	ready []int64 // of the elements read and not taken: when each is there
	free  int64   // when the next read may begin: the last one ended, and there is room
}

func (x *readAhead) parallelism() int { return len(x.workers) }

func (x *readAhead) raise(n int, at int64) {
	for len(x.workers) < n {
		x.workers = append(x.workers, at)
	}
}

func (x *readAhead) reset() {
	x.started, x.ended = false, false
	x.cycle, x.coming = x.cycle[:0], x.coming[:0]
	x.in.reset()
}

func (x *readAhead) start(at int64) {
	x.started = true
	x.turns = NewTurns(x.s.Cycle, x.s.Block)
	x.cycle, x.coming = make([]aheadFile, x.s.Cycle), x.coming[:0]
	for w := range x.workers {
		x.workers[w] = max(x.workers[w], at)
	}
	for i := range x.cycle {
		x.cycle[i] = x.file(at)
	}
	x.refill(at)
}

// file gets the next file; none is one that is not open.
func (x *readAhead) file(at int64) aheadFile {
	if x.ended {
		return aheadFile{}
	}
	x.reader.clock = max(x.reader.clock, at)
	f, ok := x.in.next(&x.reader)
	if !ok {
		x.ended = true
		return aheadFile{}
	}
	return aheadFile{cursor: cursor{file: f.one, opened: true}, free: x.reader.clock, ready: make([]int64, 0, x.s.perFile())}
}

func (x *readAhead) refill(at int64) {
	for len(x.coming) < aheadPerCycle*x.s.Cycle {
		f := x.file(at)
		if !f.opened {
			return
		}
		x.coming = append(x.coming, f)
	}
}

// job is the file on which a worker can begin first, and when; those of the
// cycle go before those to come.
func (x *readAhead) job() (best *aheadFile, worker int, at int64) {
	worker = earliest(x.workers)
	for _, list := range [][]aheadFile{x.cycle, x.coming} {
		for i := range list {
			f := &list[i]
			if !f.opened || f.next == x.files[f.file].Elements || len(f.ready) == x.s.perFile() {
				continue
			}
			if t := max(f.free, x.workers[worker]); best == nil || t < at {
				best, at = f, t
			}
		}
	}
	return best, worker, at
}

func (x *readAhead) read(f *aheadFile, worker int, at int64) {
	file := &x.files[f.file]
	end := at + file.cost(f.next)
	x.m.log.stage(at, end, x.i, event.StreamID(worker), file.Bytes)
	x.workers[worker], f.free = end, end
	f.ready = append(f.ready, end)
	f.next++
}

// begins is when the next read begins that is not decided yet.
func (x *readAhead) begins() int64 {
	if f, _, at := x.job(); f != nil {
		return at
	}
	return math.MaxInt64
}

// run decides all reads that begin up to time t.
func (x *readAhead) run(t int64) {
	for {
		f, w, at := x.job()
		if f == nil || at > t {
			return
		}
		x.read(f, w, at)
	}
}

func (x *readAhead) next(th *thread) (item, bool) {
	if !x.started {
		x.start(th.clock)
	}
	x.run(th.clock)
	for {
		f := &x.cycle[x.turns.At()]
		if !f.opened && len(x.coming) > 0 {
			*f = x.coming[0]
			x.coming = x.coming[:copy(x.coming, x.coming[1:])]
			x.refill(th.clock)
		}
		if !f.opened {
			if !x.any() {
				return item{}, false
			}
			x.turns.Pass()
			continue
		}
		file := &x.files[f.file]
		for len(f.ready) == 0 && f.next < file.Elements {
			g, w, at := x.job()
			x.read(g, w, at)
		}
		if len(f.ready) == 0 {
			f.opened = false
			x.turns.Pass()
			continue
		}
		return x.give(th, f), true
	}
}

// give takes the oldest element of a file, which makes room for another.
func (x *readAhead) give(th *thread, f *aheadFile) item {
	full := len(f.ready) == cap(f.ready)
	e := x.files[f.file].element(f.next - len(f.ready))
	th.wait(f.ready[0], x.i)
	f.ready = f.ready[:copy(f.ready, f.ready[1:])]
	if full {
		f.free = max(f.free, th.clock)
	}
	x.turns.Took()
	return x.s.mapped(e, 0, 0)
}

func (x *readAhead) any() bool {
	for i := range x.cycle {
		if x.cycle[i].opened {
			return true
		}
	}
	return false
}
