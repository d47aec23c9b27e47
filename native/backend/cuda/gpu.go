//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"gorgonia.org/cu"

	"tideline/native/backend/cuda/lower"
)

// gpu is a card with the one goroutine that speaks to it. That goroutine is
// locked to its thread, whose current context is the card's, so that the
// binding's package functions reach it without a hop each.
type gpu struct {
	card  Card
	work  chan *order
	ended chan struct{}

	// Owned by the goroutine.
	ctx       cu.CUContext
	module    cu.Module
	functions []cu.Function
	open      bool

	// broken is what a card's context does not recover from: everything after
	// it fails the same way until the context is made anew.
	broken atomic.Pointer[error]

	mu    sync.Mutex
	users int
}

// queued is how much work may wait for a card's goroutine before the run's
// goroutine waits for it.
const queued = 512

func openDevice(c Card) (*gpu, error) {
	d := &gpu{card: c, work: make(chan *order, queued), ended: make(chan struct{})}
	started := make(chan error)
	go d.serve(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return d, nil
}

// serve is the goroutine. Its thread dies with it, as it never unlocks, and
// with the thread whatever the driver tied to it.
func (d *gpu) serve(started chan<- error) {
	runtime.LockOSThread()
	defer close(d.ended)
	err := d.enter()
	started <- err
	if err != nil {
		d.leave()
		return
	}
	for o := range d.work {
		o.perform()
	}
	d.leave()
}

// enter makes the context and loads the kernels.
func (d *gpu) enter() error {
	ctx, err := cu.Device(d.card.Ordinal).MakeContext(cu.SchedAuto)
	if err != nil {
		return fmt.Errorf("make a context: %w", err)
	}
	d.ctx, d.open = ctx, true
	if err := ctx.Lock(); err != nil {
		return fmt.Errorf("make the context current: %w", err)
	}
	if d.module, err = cu.LoadData(lower.Text()); err != nil {
		return fmt.Errorf("load the kernels: %w", err)
	}
	d.functions = d.functions[:0]
	for _, k := range lower.Kernels() {
		f, err := d.module.Function(k.Name)
		if err != nil {
			return fmt.Errorf("find kernel %s: %w", k.Name, err)
		}
		d.functions = append(d.functions, f)
	}
	// As TensorFlow does, the free memory is asked once the context is there.
	d.card.Free, d.card.Total, err = cu.MemInfo()
	if err != nil {
		return fmt.Errorf("ask for free memory: %w", err)
	}
	return nil
}

func (d *gpu) leave() {
	if !d.open {
		return
	}
	if len(d.functions) > 0 {
		_ = d.module.Unload() // fails only with a context that goes now anyway
	}
	_ = d.ctx.Destroy() // nothing could be done about it
	d.open = false
}

// do runs f on the device's goroutine and waits for it. Everything handed over
// before has been given to the driver then.
func (d *gpu) do(f func() error) error {
	var err error
	done := make(chan struct{})
	d.work <- &order{call: func() { err = f(); close(done) }}
	<-done
	return err
}

// fail notes an error of the driver. It returns it with what was attempted.
func (d *gpu) fail(attempted string, err error) error {
	err = fmt.Errorf("%s on %s: %w", attempted, d.card.Name, err)
	if fatal(err) {
		d.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// acquire takes the device for a run. A context that broke is made anew when
// nobody else uses it.
func (d *gpu) acquire() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.broken.Load(); b != nil {
		if d.users > 0 {
			return fmt.Errorf("the card's context is broken, and another run still holds it: %w", *b)
		}
		err := d.do(func() error {
			d.leave()
			return d.enter()
		})
		if err != nil {
			return fmt.Errorf("make the card's context anew: %w", err)
		}
		d.broken.Store(nil)
	}
	d.users++
	return nil
}

func (d *gpu) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users--
}

func (d *gpu) close() {
	close(d.work)
	<-d.ended
}
