package feed

import (
	"sync"

	"tideline/protocol/event"
	"tideline/shared/pipeline"
)

// runner is the map stage. With one call it runs where it is asked; with more
// it has a goroutine that walks over the source and as many workers. A slot
// is taken before an element is read and freed when its result is taken, so
// there are never more results, done or pending, than calls.
type runner struct {
	f     *Feed
	slots chan struct{}
	order chan *element // in the source's order
	jobs  chan *element

	mu    sync.Mutex
	spare []*element
}

func newRunner(f *Feed) *runner { return &runner{f: f} }

func (r *runner) parallel() bool { return r.f.o.Settings.Map.Parallel > 1 }

// start begins to fill all slots.
func (r *runner) start() {
	if !r.parallel() {
		return
	}
	n := r.f.o.Settings.Map.Parallel
	r.slots, r.order, r.jobs = make(chan struct{}, n), make(chan *element, n), make(chan *element)
	r.f.wg.Go(r.read)
	if c := r.f.o.Settings.Map.Cores; c > 0 {
		n = min(n, c)
	}
	for w := range n {
		r.f.wg.Go(func() { r.work(event.StreamID(w)) })
	}
}

// read walks over the source and hands out work.
func (r *runner) read() {
	defer close(r.jobs)
	defer close(r.order)
	for {
		select {
		case r.slots <- struct{}{}:
		case <-r.f.stop:
			return
		}
		e, ok := r.fetch()
		if !ok {
			return
		}
		r.order <- e // has room for every slot
		select {
		case r.jobs <- e:
		case <-r.f.stop:
			return
		}
	}
}

func (r *runner) work(worker event.StreamID) {
	for e := range r.jobs {
		r.apply(e, worker)
		e.ready <- struct{}{}
	}
}

// fetch takes the next element out of the source.
func (r *runner) fetch() (*element, bool) {
	i, epoch, ok := r.f.src.Next()
	if !ok {
		return nil, false
	}
	e := r.blank()
	e.index, e.epoch = i, epoch
	return e, true
}

// apply maps one element.
func (r *runner) apply(e *element, worker event.StreamID) {
	id := r.f.log.begin(pipeline.StageMap, worker, r.f.o.Settings.ElementBytes)
	e.label, e.err = r.f.o.Map(e.index, e.image)
	r.f.log.end(pipeline.StageMap, worker, r.f.o.Settings.ElementBytes, id)
}

// next is the next element in the source's order; nil at the end, or when
// the feed is closed.
func (r *runner) next() *element {
	if !r.parallel() {
		return r.serial()
	}
	var e *element
	select {
	case e = <-r.order:
	case <-r.f.stop:
	}
	if e == nil {
		return nil
	}
	select {
	case <-e.ready:
	case <-r.f.stop:
		return nil
	}
	<-r.slots
	return e
}

func (r *runner) serial() *element {
	select {
	case <-r.f.stop:
		return nil
	default:
	}
	e, ok := r.fetch()
	if !ok {
		return nil
	}
	r.apply(e, 0)
	return e
}

func (r *runner) blank() *element {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.spare); n > 0 {
		e := r.spare[n-1]
		r.spare = r.spare[:n-1]
		return e
	}
	return &element{image: make([]float32, r.f.o.Pixels), ready: make(chan struct{}, 1)}
}

// recycle takes back an element whose content was copied.
func (r *runner) recycle(e *element) {
	r.mu.Lock()
	r.spare = append(r.spare, e)
	r.mu.Unlock()
}
