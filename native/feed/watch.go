package feed

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"tideline/shared/pipeline"
)

// ErrBlocked says that a function did not return in time.
var ErrBlocked = errors.New("blocked")

// ErrPanic says that a function panicked.
var ErrPanic = errors.New("panic")

// StageError is what went wrong in a stage's function. Err is the function's
// own error, or an ErrPanic or ErrBlocked.
type StageError struct {
	Stage   string
	Element int32
	Err     error
}

func (e *StageError) Error() string {
	return fmt.Sprintf("%s element %d: %v", e.Stage, e.Element, e.Err)
}

// Unwrap gives the reason.
func (e *StageError) Unwrap() error { return e.Err }

// thread is a goroutine that works in stages: what it does now, for the
// watchdog, and what took the time of the element in the making.
type thread struct {
	self    []int64 // nanoseconds by stage
	filling bool    // a shuffle buffer was filled

	stage, element atomic.Int32
	since          atomic.Int64 // when the call under way began, plus one; 0: none
}

// thread makes one that the watchdog knows.
func (f *Feed) thread() *thread {
	th := &thread{self: make([]int64, len(f.d.Stages))}
	f.mu.Lock()
	f.threads = append(f.threads, th)
	f.mu.Unlock()
	return th
}

func (th *thread) begin() {
	clear(th.self)
	th.filling = false
}

// blame is the stage that took most of the time.
func (th *thread) blame() int {
	best := 0
	for i, n := range th.self {
		if n > th.self[best] {
			best = i
		}
	}
	return best
}

// cost is the time that a stage's calls took in all.
type cost struct{ nanos, calls atomic.Int64 }

// call lets a thread run a stage's function on one element: timed, told and
// watched, and its panic is an error.
func (f *Feed) call(th *thread, i int, worker int, element int32, bytes int64, fn func() error) (err error) {
	id := f.log.begin(i, worker, bytes)
	begin := f.o.Clock()
	th.stage.Store(int32(i))
	th.element.Store(element)
	th.since.Store(begin + 1)
	defer func() {
		th.since.Store(0)
		took := f.o.Clock() - begin
		th.self[i] += took
		f.cost[i].nanos.Add(took)
		f.cost[i].calls.Add(1)
		f.log.end(i, worker, bytes, id)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrPanic, r)
		}
		if errors.Is(err, pipeline.ErrEnd) {
			err = pipeline.ErrEnd
		} else if err != nil {
			err = &StageError{f.names[i], element, err}
		}
	}()
	return fn()
}

// answer is what the goroutine that pulls got.
type answer struct {
	e   *element
	err error
}

// pull gets the last stage's next element: in this goroutine, or, so that it
// can be given up, in another.
func (f *Feed) pull() (*element, error) {
	if f.o.Timeout < 0 {
		f.th.begin()
		return f.root.next(f.th)
	}
	if f.asks == nil {
		f.asks, f.answers = make(chan struct{}), make(chan answer, 1)
		f.tick = time.NewTicker(max(f.o.Timeout/4, time.Millisecond)).C
		if !f.spawn(nil, f.puller) {
			return nil, ErrClosed
		}
	}
	select {
	case f.asks <- struct{}{}:
	case <-f.stop:
		return nil, ErrClosed
	}
	for {
		select {
		case a := <-f.answers:
			return a.e, a.err
		case <-f.stop:
			return nil, ErrClosed
		case <-f.tick:
			if err := f.blocked(); err != nil {
				return nil, err
			}
		}
	}
}

func (f *Feed) puller() {
	for {
		select {
		case <-f.asks:
			f.th.begin()
			e, err := f.root.next(f.th)
			f.answers <- answer{e, err}
		case <-f.stop:
			return
		}
	}
}

// blocked is the error of the call that has been under way for longest, if
// that is too long.
func (f *Feed) blocked() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock()
	var worst *thread
	var longest int64
	for _, th := range f.threads {
		if since := th.since.Load(); since > 0 && now-since+1 > longest {
			worst, longest = th, now-since+1
		}
	}
	if worst == nil || longest < int64(f.o.Timeout) {
		return nil
	}
	return &StageError{
		f.names[worst.stage.Load()], worst.element.Load(),
		fmt.Errorf("%w: the function has not returned for %v", ErrBlocked, time.Duration(longest).Round(time.Millisecond)),
	}
}
