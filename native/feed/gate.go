package feed

import (
	"sync"
)

// gate is the lock of a stage with goroutines of its own, and how they end:
// with the pass that they are of, or with the feed.
type gate struct {
	mu      sync.Mutex
	changed sync.Cond
	stopped bool // this pass is over
	closed  bool // all is
	wg      sync.WaitGroup
}

func (f *Feed) gate(g *gate) {
	g.changed.L = &g.mu
	f.gates = append(f.gates, g)
}

// over says that nobody waits any more; the lock is held.
func (g *gate) over() bool { return g.stopped || g.closed }

func (g *gate) cancel() {
	g.mu.Lock()
	g.stopped = true
	g.changed.Broadcast()
	g.mu.Unlock()
}

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.changed.Broadcast()
	g.mu.Unlock()
}

// spawn starts a goroutine that Close waits for, and wg's owner, if there is
// one; false when the feed is closed.
func (f *Feed) spawn(wg *sync.WaitGroup, fn func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	if wg == nil {
		f.wg.Go(fn)
		return true
	}
	wg.Add(1)
	f.wg.Go(func() {
		defer wg.Done()
		fn()
	})
	return true
}
