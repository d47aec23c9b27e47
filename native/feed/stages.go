package feed

import (
	"errors"

	"tideline/shared/pipeline"
)

// iterator is a running stage. next and reset belong to one goroutine at a
// time: the consumer's, or that of the stage behind.
type iterator interface {
	// next gives the next element. pipeline.ErrEnd is the end of this pass,
	// ErrClosed that somebody gave it up.
	next(th *thread) (*element, error)
	// cancel ends the waits of this stage and those before it. It may be called
	// from any goroutine.
	cancel()
	// reset waits for the pass's goroutines and begins another pass.
	reset()
}

// build makes the iterators of the first n stages.
func (f *Feed) build(n int) iterator {
	i := n - 1
	s := &f.d.Stages[i]
	if i == 0 {
		return &source{f: f, s: s}
	}
	in := f.build(i)
	l := link{f: f, s: s, i: i, in: in}
	switch s.Op {
	case pipeline.OpInterleave:
		if parallel(s) {
			return newReadAhead(l)
		}
		return newInterleave(l)
	case pipeline.OpMap:
		if parallel(s) {
			return newParallel(l)
		}
		return &mapper{link: l}
	case pipeline.OpShuffle:
		return newShuffler(l)
	case pipeline.OpRepeat:
		return &repeat{link: l}
	case pipeline.OpBatch:
		return &batcher{link: l}
	case pipeline.OpMapBatch:
		return newMapBatch(l)
	case pipeline.OpCache:
		return &cache{link: l}
	case pipeline.OpTake:
		return &take{link: l}
	case pipeline.OpSkip:
		return &skip{link: l}
	case pipeline.OpShard:
		return &shard{link: l}
	case pipeline.OpPrefetch, pipeline.OpDevice:
		if s.N != 0 {
			return newPrefetch(l)
		}
	default:
	}
	return in
}

func parallel(s *pipeline.Stage) bool { return s.Parallel > 1 || s.Parallel == pipeline.Auto }

// link is a stage's place in the chain.
type link struct {
	f  *Feed
	s  *pipeline.Stage
	i  int
	in iterator
}

func (l *link) cancel() { l.in.cancel() }

// source numbers the elements, and reads them where there is a function.
type source struct {
	f   *Feed
	s   *pipeline.Stage
	pos int
}

func (x *source) cancel() {}
func (x *source) reset()  { x.pos = 0 }

func (x *source) next(th *thread) (*element, error) {
	select {
	case <-x.f.stop:
		return nil, ErrClosed
	default:
	}
	if x.pos == x.s.N {
		return nil, pipeline.ErrEnd
	}
	e := x.f.pool.one(int32(x.s.First + x.pos))
	x.pos++
	if x.s.Op == pipeline.OpFiles {
		return e, nil
	}
	return e, x.f.read(th, 0, 0, e)
}

// read fills in an element of the source.
func (f *Feed) read(th *thread, stage, worker int, e *element) error {
	if f.o.Read == nil {
		return nil
	}
	return f.call(th, stage, worker, e.Indices[0], f.d.Stages[stage].Bytes, func() (err error) {
		e.Labels[0], err = f.o.Read(e.Indices[0], e.Images)
		return err
	})
}

// mapper is a map in the asking goroutine.
type mapper struct {
	link
	ended bool
}

func (x *mapper) reset() { x.ended = false; x.in.reset() }

func (x *mapper) next(th *thread) (*element, error) {
	if x.ended {
		return nil, pipeline.ErrEnd
	}
	e, err := x.in.next(th)
	if err != nil {
		return nil, err
	}
	e, err = x.f.apply(th, x.i, 0, e)
	x.ended = errors.Is(err, pipeline.ErrEnd)
	return e, err
}

// apply runs a map stage's function.
func (f *Feed) apply(th *thread, stage, worker int, e *element) (*element, error) {
	fn := f.function(stage)
	if fn == nil {
		return e, nil
	}
	e = f.pool.own(e)
	for k, index := range e.Indices {
		image := e.Images[k*f.o.Pixels:][:f.o.Pixels]
		err := f.call(th, stage, worker, index, max(0, f.d.Stages[stage].Bytes), func() (err error) {
			e.Labels[k], err = fn(index, image, e.Labels[k])
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return e, nil
}

// function is a map stage's; nil for none.
func (f *Feed) function(stage int) func(int32, []float32, int64) (int64, error) {
	if fn := f.o.Maps[f.names[stage]]; fn != nil {
		return fn
	}
	for i := range f.d.Stages[:stage] {
		if op := f.d.Stages[i].Op; op == pipeline.OpMap || op == pipeline.OpMapBatch {
			return nil
		}
	}
	if f.o.Map == nil {
		return nil
	}
	return func(e int32, image []float32, _ int64) (int64, error) { return f.o.Map(e, image) }
}

type repeat struct {
	link
	epoch int
	some  bool
	ended bool
}

func (x *repeat) reset() {
	x.epoch, x.some, x.ended = 0, false, false
	x.in.reset()
}

func (x *repeat) next(th *thread) (*element, error) {
	for !x.ended && x.s.N != 0 {
		e, err := x.in.next(th)
		if err == nil {
			x.some = true
			e.epoch = x.epoch
			return e, nil
		}
		if !errors.Is(err, pipeline.ErrEnd) {
			return nil, err
		}
		if !x.some || x.s.N > 0 && x.epoch+1 >= x.s.N {
			break
		}
		x.epoch++
		x.some = false
		x.in.reset()
	}
	x.ended = true
	return nil, pipeline.ErrEnd
}

// cache keeps the elements of a whole pass.
type cache struct {
	link
	list     []*element
	pos      int
	complete bool
}

func (x *cache) reset() {
	x.pos = 0
	if x.complete {
		return
	}
	x.list = x.list[:0]
	x.in.reset()
}

func (x *cache) next(th *thread) (*element, error) {
	if x.complete {
		if x.pos == len(x.list) {
			return nil, pipeline.ErrEnd
		}
		x.pos++
		return x.served(x.list[x.pos-1]), nil
	}
	e, err := x.in.next(th)
	switch {
	case errors.Is(err, pipeline.ErrEnd):
		x.complete, x.pos = true, len(x.list)
		x.f.log.depth(x.i, len(x.list), len(x.list))
	case err == nil:
		e.kept = true
		x.list = append(x.list, e)
		return x.served(e), nil
	}
	return nil, err
}

// served is a reference to what the cache holds, which may say another epoch.
func (x *cache) served(e *element) *element {
	c := *e
	return &c
}

type take struct {
	link
	taken int
}

func (x *take) reset() { x.taken = 0; x.in.reset() }

func (x *take) next(th *thread) (*element, error) {
	if x.s.N >= 0 && x.taken >= x.s.N {
		return nil, pipeline.ErrEnd
	}
	x.taken++
	return x.in.next(th)
}

type skip struct {
	link
	done bool
}

func (x *skip) reset() { x.done = false; x.in.reset() }

func (x *skip) next(th *thread) (*element, error) {
	if x.s.N < 0 {
		return nil, pipeline.ErrEnd
	}
	if !x.done {
		x.done = true
		for range x.s.N {
			e, err := x.in.next(th)
			if err != nil {
				return nil, err
			}
			x.f.pool.put(e)
		}
	}
	return x.in.next(th)
}

// shard reads what belongs to others.
type shard struct {
	link
	at int // of the element that comes next, modulo their number
}

func (x *shard) reset() { x.at = 0; x.in.reset() }

func (x *shard) next(th *thread) (*element, error) {
	for {
		e, err := x.in.next(th)
		if err != nil {
			return nil, err
		}
		mine := x.at == x.s.Index
		if x.at++; x.at == x.s.N {
			x.at = 0
		}
		if mine {
			return e, nil
		}
		x.f.pool.put(e)
	}
}

// batcher collects elements and then copies them into one.
type batcher struct {
	link
	turn  int
	ended bool
	list  []*element
}

func (x *batcher) reset() { x.turn, x.ended = 0, false; x.in.reset() }

func (x *batcher) next(th *thread) (*element, error) {
	if x.ended {
		return nil, pipeline.ErrEnd
	}
	want := x.s.Sizes[x.turn]
	x.turn = (x.turn + 1) % len(x.s.Sizes)
	x.list = x.list[:0]
	n := 0
	for len(x.list) < want {
		e, err := x.in.next(th)
		if errors.Is(err, pipeline.ErrEnd) {
			break
		}
		if err != nil {
			return nil, err
		}
		n += len(e.Indices)
		x.list = append(x.list, e)
	}
	if len(x.list) == 0 || len(x.list) < want && x.s.Drop {
		x.ended = true
		return nil, pipeline.ErrEnd
	}
	return x.copied(th, n)
}

func (x *batcher) copied(th *thread, n int) (*element, error) {
	out := x.f.pool.get(n)
	out.epoch = x.list[0].epoch
	id := x.f.log.begin(x.i, 0, int64(n)*x.f.bytes(x.i))
	begin := x.f.o.Clock()
	for _, e := range x.list {
		out.add(e)
		x.f.pool.put(e)
	}
	took := x.f.o.Clock() - begin
	x.f.log.end(x.i, 0, int64(n)*x.f.bytes(x.i), id)
	th.self[x.i] += took
	x.f.cost[x.i].nanos.Add(took)
	x.f.cost[x.i].calls.Add(int64(n))
	return out, nil
}

// bytes is the size that one of the source's elements has where it enters a
// stage.
func (f *Feed) bytes(stage int) int64 {
	for i := stage - 1; i >= 0; i-- {
		if b := f.d.Stages[i].Bytes; b != 0 {
			return max(0, b)
		}
	}
	return 0
}

// shuffler takes random elements out of a buffer.
type shuffler struct {
	link
	buf   *pipeline.Shuffler[*element]
	seeds *pipeline.Seeds
	fetch func() (*element, int, bool)
	th    *thread
	saved []int64
	err   error
	turn  int
	some  bool
}

func newShuffler(l link) *shuffler {
	x := &shuffler{link: l, seeds: pipeline.NewSeeds(l.s.Seed, l.s.Fixed), saved: make([]int64, len(l.f.names))}
	x.buf = pipeline.NewShuffler[*element](l.s.N, x.seeds.Next())
	x.fetch = x.pull
	return x
}

func (x *shuffler) reset() {
	x.buf.Reset(x.seeds.Next())
	x.turn, x.some, x.err = 0, false, nil
	x.in.reset()
}

func (x *shuffler) next(th *thread) (*element, error) {
	if x.err != nil {
		return nil, x.err
	}
	x.th = th
	before, size := x.f.o.Clock(), x.buf.Len()
	copy(x.saved, th.self)
	e, pulls, ok := x.buf.Next(x.fetch)
	if x.err != nil {
		return nil, x.err
	}
	if pulls > 1 {
		copy(th.self, x.saved)
		th.self[x.i] += x.f.o.Clock() - before
		th.filling = true
	}
	if pulls != 1 && x.buf.Len() != size {
		x.f.log.depth(x.i, x.buf.Len(), x.s.N)
	}
	if !ok {
		return nil, pipeline.ErrEnd
	}
	return e, nil
}

// pull fetches for the buffer; an error other than the end is kept.
func (x *shuffler) pull() (*element, int, bool) {
	e, err := x.in.next(x.th)
	for x.s.Fused && errors.Is(err, pipeline.ErrEnd) && x.some && (x.s.Times < 0 || x.turn+1 < x.s.Times) {
		x.turn++
		x.some = false
		x.in.reset()
		e, err = x.in.next(x.th)
	}
	if err != nil {
		if !errors.Is(err, pipeline.ErrEnd) {
			x.err = err
		}
		return nil, 0, false
	}
	switch {
	case x.s.Fused:
		x.some = true
		e.epoch = x.turn
		return e, x.turn, x.s.Times != 0
	case x.s.ByEpoch:
		return e, e.epoch, true
	}
	return e, 0, true
}
