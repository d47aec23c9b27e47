package pipeline

// item is an element on its way through the stages. It has no pointers, so
// that buffers of many are copied and moved for little.
type item struct {
	one   int32 // its number, where there is no box
	epoch int32 // which turn of the last repeat it is of
	bytes int64
	box   int32 // what else there is to say, a place in Model.boxes; 0: nothing
	shape int32 // of its components, a place in Model.shapes; 0: unknown
}

// box is what an element that is not one of the source's has.
type box struct {
	list []int32 // the numbers of what a batch is made of
	err  error   // instead of the element
	kept bool    // a cache holds it: it is not to be used again
}

// box takes an empty box.
func (m *Model) box() int32 {
	if n := len(m.free); n > 0 {
		i := m.free[n-1]
		m.free = m.free[:n-1]
		m.boxes[i] = box{list: m.boxes[i].list[:0]}
		return i
	}
	n := 1
	for i := range m.d.Stages {
		n *= max(1, m.d.Stages[i].largest())
	}
	m.boxes = append(m.boxes, box{list: make([]int32, 0, n)})
	return int32(len(m.boxes) - 1)
}

// recycle takes back the box of an element that nobody holds any more.
func (m *Model) recycle(x item) {
	if x.box != 0 && !m.boxes[x.box].kept {
		m.free = append(m.free, x.box)
	}
}

// failed is the error that stands for an element.
func (m *Model) failed(x item) error { return m.boxes[x.box].err }

// intern keeps a stage's shapes and gives the place of the first.
func (m *Model) intern(s *Stage) int32 {
	at := len(m.shapes)
	m.shapes = append(m.shapes, s.Shapes...)
	return int32(at)
}

// iterator is a running stage. Its caller's thread works in it, at the time
// thread.clock, which it moves on; a stage with a thread of its own lets the
// caller wait instead.
type iterator interface {
	// next gives the next element; false at the end, which sticks.
	next(th *thread) (item, bool)
	// reset begins another pass over the same.
	reset()
}

// thread is whoever works: the consumer, or the producer of a stage that runs
// beside it.
type thread struct {
	clock   int64
	self    []int64 // nanoseconds by stage, for the element in the making
	filling bool    // a shuffle buffer was filled for it
}

func (th *thread) begin() {
	clear(th.self)
	th.filling = false
}

// blame is the stage that took most of the time; the earlier one of equals.
func (th *thread) blame() int {
	best := 0
	for i, n := range th.self {
		if n > th.self[best] {
			best = i
		}
	}
	return best
}

// wait lets the thread wait until time t for what a stage does beside it.
func (th *thread) wait(t int64, stage int) {
	if t > th.clock {
		th.self[stage] += t - th.clock
		th.clock = t
	}
}

func (m *Model) thread() thread { return thread{self: make([]int64, len(m.d.Stages))} }

// spend lets the thread work for a stage.
func (m *Model) spend(th *thread, stage int, nanos, bytes int64) {
	if nanos == 0 {
		return
	}
	m.log.stage(th.clock, th.clock+nanos, stage, 0, bytes)
	th.clock += nanos
	th.self[stage] += nanos
}

// build makes the iterators of the first n stages.
func (m *Model) build(n int) iterator {
	i := n - 1
	s := &m.d.Stages[i]
	if i == 0 {
		return &source{m: m, s: s, shape: m.intern(s)}
	}
	in := m.build(i)
	switch s.Op {
	case OpInterleave:
		return m.buildInterleave(i, in)
	case OpMap:
		if s.async() {
			return m.buildParallel(i, in)
		}
		return &mapper{m: m, s: s, i: i, in: in, shape: m.intern(s)}
	case OpShuffle:
		return m.buildShuffle(i, in)
	case OpRepeat:
		return &repeat{s: s, in: in}
	case OpBatch:
		return &batcher{m: m, s: s, i: i, in: in}
	case OpMapBatch:
		return m.buildMapBatch(i, in)
	case OpCache:
		return &cache{m: m, i: i, in: in}
	case OpTake:
		return &take{s: s, in: in}
	case OpSkip:
		return &skip{s: s, in: in}
	case OpShard:
		return &shard{m: m, s: s, in: in}
	case OpPrefetch, OpDevice:
		if s.async() {
			return m.buildPrefetch(i, in)
		}
	default:
	}
	return in
}

// source gives slices, numbers or names of files.
type source struct {
	m   *Model
	s   *Stage
	pos int

	shape int32 // of the first element
}

func (x *source) reset() { x.pos = 0 }

func (x *source) next(th *thread) (item, bool) {
	if x.pos >= x.s.N {
		return item{}, false
	}
	cost := x.s.Cost
	if x.pos == 0 {
		cost += x.s.Open
	}
	out := item{one: int32(x.s.First + x.pos), bytes: max(0, x.s.Bytes)}
	if n := len(x.s.Shapes); n > 0 {
		out.shape = x.shape + int32(x.pos%n)
	}
	x.pos++
	x.m.spend(th, 0, cost, out.bytes)
	return out, true
}

// call is what is known of the calls of a map's function.
func (s *Stage) call(n int64) int64 {
	if len(s.Costs) > 0 {
		return s.Costs[n%int64(len(s.Costs))]
	}
	return s.Cost
}

// mapped is what call number n of the function makes of an element. shape is
// the place of the stage's first.
func (s *Stage) mapped(x item, n int64, shape int32) item {
	switch {
	case s.Bytes > 0:
		x.bytes = s.Bytes
	case s.Bytes == NoBytes:
		x.bytes = 0
	}
	if k := len(s.Shapes); k > 0 {
		x.shape = shape + int32(n%int64(k))
	}
	return x
}

// mapper is a map in the asking thread.
type mapper struct {
	m     *Model
	s     *Stage
	i     int
	in    iterator
	calls int64
	shape int32
}

func (x *mapper) reset() { x.in.reset() }

func (x *mapper) next(th *thread) (item, bool) {
	e, ok := x.in.next(th)
	if !ok || x.m.failed(e) != nil {
		return e, ok
	}
	e = x.s.mapped(e, x.calls, x.shape)
	x.m.spend(th, x.i, x.s.call(x.calls), e.bytes)
	x.calls++
	return e, true
}

// repeat begins its input again and tells the turns apart.
type repeat struct {
	s     *Stage
	in    iterator
	epoch int32
	some  bool // this turn gave something
	ended bool
}

func (x *repeat) reset() {
	x.epoch, x.some, x.ended = 0, false, false
	x.in.reset()
}

func (x *repeat) next(th *thread) (item, bool) {
	for !x.ended && x.s.N != 0 {
		if e, ok := x.in.next(th); ok {
			x.some = true
			e.epoch = x.epoch
			return e, true
		}
		if !x.some || x.s.N > 0 && int(x.epoch)+1 >= x.s.N {
			break // nothing will come of more turns over nothing
		}
		x.epoch++
		x.some = false
		x.in.reset()
	}
	x.ended = true
	return item{}, false
}

// cache keeps what a whole pass gave.
type cache struct {
	m        *Model
	i        int
	in       iterator
	list     []item
	pos      int
	complete bool
}

// reset throws an incomplete cache away: the pass that was to fill it was
// dropped.
func (x *cache) reset() {
	x.pos = 0
	if x.complete {
		return
	}
	if len(x.list) > 0 {
		x.m.warn("%s: the first pass ended after %d elements and before the input did: what was kept is thrown away, and nothing is cached", x.m.names[x.i], len(x.list))
	}
	x.list = x.list[:0]
	x.in.reset()
}

func (x *cache) next(th *thread) (item, bool) {
	if x.complete {
		if x.pos == len(x.list) {
			return item{}, false
		}
		x.pos++
		return x.list[x.pos-1], true
	}
	e, ok := x.in.next(th)
	switch {
	case !ok:
		x.complete, x.pos = true, len(x.list)
		x.m.log.set(th.clock, x.i, len(x.list), len(x.list))
	case x.m.failed(e) == nil:
		if e.box != 0 {
			x.m.boxes[e.box].kept = true
		}
		x.list = append(x.list, e)
	}
	return e, ok
}

type take struct {
	s     *Stage
	in    iterator
	taken int
}

func (x *take) reset() { x.taken = 0; x.in.reset() }

func (x *take) next(th *thread) (item, bool) {
	if x.s.N >= 0 && x.taken >= x.s.N {
		return item{}, false
	}
	x.taken++
	return x.in.next(th)
}

// skip reads what it leaves out.
type skip struct {
	s    *Stage
	in   iterator
	done bool
}

func (x *skip) reset() { x.done = false; x.in.reset() }

func (x *skip) next(th *thread) (item, bool) {
	if x.s.N < 0 {
		return item{}, false
	}
	if !x.done {
		x.done = true
		for range x.s.N {
			if _, ok := x.in.next(th); !ok {
				break
			}
		}
	}
	return x.in.next(th)
}

// shard reads what belongs to others. An element that is an error counts and
// is nobody's.
type shard struct {
	m  *Model
	s  *Stage
	in iterator
	at int // of the element that comes next, modulo their number
}

func (x *shard) reset() { x.at = 0; x.in.reset() }

func (x *shard) next(th *thread) (item, bool) {
	for {
		e, ok := x.in.next(th)
		if !ok || x.m.failed(e) != nil {
			return e, ok
		}
		mine := x.at == x.s.Index
		if x.at++; x.at == x.s.N {
			x.at = 0
		}
		if mine {
			return e, true
		}
		x.m.recycle(e)
	}
}
