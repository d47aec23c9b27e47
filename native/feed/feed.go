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

// DefaultTimeout is far longer than any call of a function takes that is not
// stuck.
const DefaultTimeout = time.Minute

// Options make a Feed.
type Options struct {
	// Settings are of the usual pipeline. Costs in it are ignored, they are
	// measured.
	Settings pipeline.Settings
	// Dataset is a chain of stages instead; Settings are not looked at where
	// there is one.
	Dataset pipeline.Dataset
	// Open opens a file of an interleave before its first element; nil does
	// nothing.
	Open func(file int) error
	// Read writes the pixels of one element as it comes from the source, and
	// gives its label; nil leaves that to Map. A parallel interleave calls it
	// from as many goroutines at a time as it has calls.
	Read func(element int32, image []float32) (label int64, err error)
	// Map is the first map stage: it writes the pixels of one element and gives
	// its label. Its pipeline.ErrEnd ends the sequence there. It is called from as many goroutines at a time as the stage
	// has calls.
	Map func(element int32, image []float32) (label int64, err error)
	// Maps are the functions of other map stages, by the stage's name; a stage
	// without one passes elements on.
	Maps map[string]func(element int32, image []float32, label int64) (int64, error)
	// Pixels is the length of an image.
	Pixels int
	// Timeout is how long one call of a function may take before the stage
	// counts as blocked, which is then Next's error; 0 is DefaultTimeout, and
	// below 0 it may take for ever. A function that never returns keeps its
	// goroutine: it should watch Done.
	Timeout time.Duration
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
	o     Options
	d     pipeline.Dataset
	names []string
	log   log
	pool  pool
	root  iterator
	th    *thread // the consumer's
	gates []*gate // of all stages with goroutines
	cost  []cost  // by stage, measured
	tuner tuner

	given   int
	current *element
	ended   error         // sticks
	asks    chan struct{} // to the goroutine that pulls, where there is a timeout
	answers chan answer
	tick    <-chan time.Time // when the watchdog looks

	wg   sync.WaitGroup
	stop chan struct{} // closed by Close

	mu      sync.Mutex // guards what follows
	threads []*thread
	closed  bool
}

var _ pipeline.Pipeline = (*pipelineView)(nil)

// New checks the settings and makes a Feed. Goroutines start with the first
// call of Next and end with Close, which must be called.
func New(o Options) (*Feed, error) {
	if len(o.Dataset.Stages) == 0 {
		if err := o.Settings.Check(); err != nil {
			return nil, err
		}
		if o.Map == nil || o.Pixels < 1 {
			return nil, fmt.Errorf("feed: no map function, or images of %d pixels", o.Pixels)
		}
		o.Dataset = o.Settings.Dataset()
	}
	if err := o.Dataset.Check(); err != nil {
		return nil, err
	}
	if o.Pixels < 0 {
		return nil, fmt.Errorf("feed: images of %d pixels", o.Pixels)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() int64 { return int64(time.Since(start)) }
	}
	f := &Feed{o: o, d: o.Dataset, names: o.Dataset.Names(), stop: make(chan struct{}), cost: make([]cost, len(o.Dataset.Stages))}
	f.pool.pixels = o.Pixels
	f.log.open(&o, f.names)
	f.th = f.thread()
	f.root = f.build(len(f.d.Stages))
	return f, nil
}

// Done is closed by Close: a function that can wait for something else should
// stop then.
func (f *Feed) Done() <-chan struct{} { return f.stop }

// Close ends all goroutines and waits for them; a Next under way returns
// ErrClosed. A function under way is not waited for longer than the timeout.
// Closing twice is allowed.
func (f *Feed) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.stop)
	}
	f.mu.Unlock()
	for _, g := range f.gates {
		g.close()
	}
	if f.o.Timeout < 0 {
		f.wg.Wait()
		return
	}
	done := make(chan struct{})
	go func() {
		f.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(f.o.Timeout):
	}
}

// Next waits for the next batch. The batch is valid until the next call.
// pipeline.ErrEnd ends the feed and sticks, as does an error of a function,
// which is a *StageError and names stage and element.
func (f *Feed) Next() (*Batch, error) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if f.ended != nil {
		return nil, f.ended
	}
	if f.current != nil {
		f.pool.put(f.current)
		f.current = nil
	}
	asked := f.o.Clock()
	e, err := f.pull()
	if err != nil {
		if !errors.Is(err, ErrClosed) {
			f.ended = err
		}
		return nil, err
	}
	b := &e.Batch
	b.Batch = pipeline.Batch{
		Indices: b.Indices, Number: f.given, Ready: max(asked, f.o.Clock()), Stage: f.names[f.th.blame()], Filling: f.th.filling,
	}
	if p, ok := f.root.(*prefetch); ok {
		b.Buffered, b.Limit = p.buffered, p.tuner.Limit()
		if !p.waited {
			b.Stage = ""
		}
	}
	f.given++
	f.current = e
	return b, nil
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
func (f *Feed) Current() *Batch {
	if f.current == nil {
		return nil
	}
	return &f.current.Batch
}
