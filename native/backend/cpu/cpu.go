package cpu

import (
	"fmt"
	"time"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
)

// Clock is a source of time, injected so that tests can turn it.
type Clock interface {
	// Now is nanoseconds since the run began; it never goes backwards.
	Now() int64
	// Sleep blocks for so many nanoseconds.
	Sleep(nanos int64)
}

type wallClock struct{ start time.Time }

// WallClock is the system's monotonic clock, starting now.
func WallClock() Clock { return wallClock{time.Now()} }

func (c wallClock) Now() int64        { return int64(time.Since(c.start)) }
func (c wallClock) Sleep(nanos int64) { time.Sleep(time.Duration(nanos)) }

// Backend computes on the host. It serves one run.
type Backend struct {
	clock  Clock
	memory Memory
	last   int64 // end of the last work
}

var _ exec.Backend = (*Backend)(nil)

// New returns a backend; a nil clock is the WallClock.
func New(c Clock) *Backend {
	if c == nil {
		c = WallClock()
	}
	return &Backend{clock: c}
}

// Set says how to compute, before the run begins.
func (b *Backend) Set(a Arithmetic) { b.memory.Arithmetic = a }

// Open implements exec.Backend. Accelerators are refused.
func (b *Backend) Open(devices []*device.Logical) error {
	for _, d := range devices {
		if !d.IsHost() {
			return fmt.Errorf("the CPU backend cannot drive %s: run it on the virtual GPU, or leave devices out", d.Name.Short())
		}
	}
	b.memory.Open(len(devices))
	return nil
}

// Close implements exec.Backend.
func (b *Backend) Close() { b.memory.Close() }

// Modelled implements exec.Backend.
func (b *Backend) Modelled() bool { return false }

// Map implements exec.Backend.
func (b *Backend) Map(dev event.DeviceID, addr uint64, bytes int64) error {
	return b.memory.Map(dev, addr, bytes)
}

// Unmap implements exec.Backend.
func (b *Backend) Unmap(dev event.DeviceID, addr uint64, bytes int64) {
	b.memory.Unmap(dev, addr, bytes)
}

// Bytes implements exec.Backend.
func (b *Backend) Bytes(r exec.Ref) []byte { return b.memory.Bytes(r) }

// Now implements exec.Backend.
func (b *Backend) Now() int64 { return b.clock.Now() }

// Spend implements exec.Backend: the time has passed already.
func (b *Backend) Spend(int64) {}

// WaitUntil implements exec.Backend.
func (b *Backend) WaitUntil(t int64) {
	if d := t - b.clock.Now(); d > 0 {
		b.clock.Sleep(d)
	}
}

// Launch implements exec.Backend: the work is done when it returns.
func (b *Backend) Launch(k *exec.Kernel) (exec.Span, error) {
	return b.timed(func() error { return b.memory.Run(k) })
}

// Copy implements exec.Backend.
func (b *Backend) Copy(c *exec.Copy) (exec.Span, error) {
	return b.timed(func() error { return b.memory.Copy(c) })
}

func (b *Backend) timed(work func() error) (exec.Span, error) {
	begin := b.clock.Now()
	err := work()
	b.last = b.clock.Now()
	return exec.Span{Begin: begin, End: b.last}, err
}

// Idle implements exec.Backend.
func (b *Backend) Idle(event.DeviceID) int64 { return b.last }
