package feed

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"tideline/protocol/event"
	"tideline/shared/pipeline"
)

// ErrClosed is returned by Next after Close.
var ErrClosed = errors.New("the input pipeline is closed")

// Options make a Feed.
type Options struct {
	Settings pipeline.Settings // costs in it are ignored, they are measured
	// Map is the map stage: it writes the pixels of one element and gives its
	// label. It is called from as many goroutines at a time as
	// Settings.Map.Parallel says.
	Map func(element int32, image []float32) (label int64, err error)
	// Pixels is the length of an image.
	Pixels int
	// Clock is the run's time in nanoseconds, never going backwards, safe for
	// concurrent use; nil counts from New.
	Clock func() int64
	// Sink takes events when Advance is called, on the calling goroutine; nil
	// drops them. Stage names are put into Strings.
	Sink    event.Sink
	Strings *event.Strings
}

// Batch is a batch with its content.
type Batch struct {
	pipeline.Batch
	Images []float32 // one image after the other
	Labels []int64
}

// Feed is a running pipeline. Next, Advance and Pending belong to one
// goroutine; Close may be called from any.
type Feed struct {
	o       Options
	src     *pipeline.Source
	shuffle *pipeline.Shuffler[*element]
	sizes   *pipeline.Sizes
	runner  *runner
	log     log
	fetch   func() (*element, int, bool)

	// Of the goroutine that makes batches: the producer, or the one in Next.
	self [numStages]int64

	started bool
	given   int
	current *Batch
	wg      sync.WaitGroup
	stop    chan struct{} // closed by Close

	mu      sync.Mutex // guards what follows
	changed sync.Cond
	tuner   *pipeline.Tuner
	queue   []*Batch
	spare   []*Batch
	ended   error // why the producer stopped
	closed  bool
}

var _ pipeline.Pipeline = (*pipelineView)(nil)

// New checks the settings and makes a Feed. Goroutines start with the first
// call of Next and end with Close, which must be called.
func New(o Options) (*Feed, error) {
	if err := o.Settings.Check(); err != nil {
		return nil, err
	}
	if o.Map == nil || o.Pixels < 1 {
		return nil, fmt.Errorf("feed: no map function, or images of %d pixels", o.Pixels)
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() int64 { return int64(time.Since(start)) }
	}
	s := &o.Settings
	f := &Feed{
		o: o, src: pipeline.NewSource(s), sizes: pipeline.NewSizes(s),
		tuner: pipeline.NewTuner(s.Prefetch, s.RAMBudget), stop: make(chan struct{}),
	}
	f.changed.L = &f.mu
	f.log.open(&o)
	f.fetch = f.pull
	if s.Shuffle > 0 {
		f.shuffle = pipeline.NewShuffler[*element](s.Shuffle, s.Seed)
	}
	f.runner = newRunner(f)
	return f, nil
}

// Close ends all goroutines and waits for them; a Next under way returns
// ErrClosed. Closing twice is allowed.
func (f *Feed) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.stop)
		f.changed.Broadcast()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// Next waits for the next batch. The batch is valid until the next call.
// pipeline.ErrEnd ends the feed and sticks, as does an error of the map
// function, which names the element.
func (f *Feed) Next() (*Batch, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	asked := f.o.Clock()
	var b *Batch
	var err error
	if f.o.Settings.Prefetch == 0 {
		b, err = f.inline()
	} else {
		b, err = f.take()
	}
	if err != nil {
		return nil, err
	}
	b.Ready = max(asked, f.o.Clock())
	b.Number = f.given
	f.given++
	f.current = b
	return b, nil
}

// begin starts the goroutines at the first call and takes the last batch back.
func (f *Feed) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if f.current != nil {
		f.spare = append(f.spare, f.current)
		f.current = nil
	}
	if !f.started {
		f.started = true
		f.runner.start()
		if f.o.Settings.Prefetch != 0 {
			f.wg.Go(f.produce)
		}
	}
	return nil
}

// inline makes a batch in the goroutine that asks.
func (f *Feed) inline() (*Batch, error) {
	if f.ended != nil {
		return nil, f.ended
	}
	b, err := f.make()
	if err != nil {
		f.ended = err
		return nil, err
	}
	return b, nil
}

// take takes the oldest batch of the prefetch buffer.
func (f *Feed) take() (*Batch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	waited := false
	for len(f.queue) == 0 && f.ended == nil && !f.closed {
		if !waited && f.tuner.Consumed(0) {
			f.changed.Broadcast()
		}
		waited = true
		f.changed.Wait()
	}
	if f.closed {
		return nil, ErrClosed
	}
	if len(f.queue) == 0 {
		return nil, f.ended
	}
	f.tuner.Consumed(len(f.queue))
	b := f.queue[0]
	b.Buffered = len(f.queue)
	copy(f.queue, f.queue[1:])
	f.queue = f.queue[:len(f.queue)-1]
	b.Limit = f.tuner.Limit()
	if !waited {
		b.Stage = ""
	}
	f.log.depth(pipeline.StagePrefetch, len(f.queue), b.Limit)
	f.changed.Broadcast()
	return b, nil
}

// produce makes batches while the buffer has room.
func (f *Feed) produce() {
	for f.room() {
		b, err := f.make()
		f.mu.Lock()
		if err != nil {
			f.ended = err
			f.changed.Broadcast()
			f.mu.Unlock()
			return
		}
		f.queue = append(f.queue, b)
		f.tuner.Element(int64(len(b.Indices)) * f.o.Settings.ElementBytes)
		f.log.depth(pipeline.StagePrefetch, len(f.queue), f.tuner.Limit())
		f.changed.Broadcast()
		f.mu.Unlock()
	}
}

// room waits for a free place in the buffer; false when closed.
func (f *Feed) room() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.queue) >= f.tuner.Limit() && !f.closed {
		f.changed.Wait()
	}
	return !f.closed
}

// Advance tells the events up to time until; see pipeline.Model.
func (f *Feed) Advance(until int64) { f.log.tell(until) }

// Pending is the time of the earliest event not told yet, math.MaxInt64 when
// there is none.
func (f *Feed) Pending() int64 { return f.log.earliest() }

// pipelineView is a Feed as an executor sees it.
type pipelineView struct{ *Feed }

// Pipeline gives the feed as an executor's pipeline: the content of the batch
// that Next gave last comes through Current.
func (f *Feed) Pipeline() pipeline.Pipeline { return pipelineView{f} }

// Next implements pipeline.Pipeline. The time is the feed's own clock's.
func (v pipelineView) Next(int64) (pipeline.Batch, error) {
	b, err := v.Feed.Next()
	if err != nil {
		return pipeline.Batch{}, err
	}
	return b.Batch, nil
}

// Current is the batch that Next gave last, nil before the first.
func (f *Feed) Current() *Batch { return f.current }
