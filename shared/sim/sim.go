// Package sim is the backend that computes nothing: it moves a modelled clock
// by what the cost model says and otherwise lets the executor do what it would
// do on real hardware. A run on it makes the same allocations, frees and
// transfers as on any other backend.
//
// It models one host thread that issues work, and per device four streams that
// each run in order. It has no memory, so it answers nothing about contents.
package sim

import (
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
)

const streams = 4

// Backend is the modelled clock. The zero value is ready; it serves one run.
type Backend struct {
	now  int64
	host []bool
	free [][streams]int64 // when each stream has done what was ordered
}

var _ exec.Backend = (*Backend)(nil)

// New returns a backend at time 0.
func New() *Backend { return new(Backend) }

// Open implements exec.Backend.
func (b *Backend) Open(devices []*device.Logical) error {
	b.host = make([]bool, len(devices))
	b.free = make([][streams]int64, len(devices))
	for i, d := range devices {
		b.host[i] = d.IsHost()
	}
	return nil
}

// Close implements exec.Backend.
func (b *Backend) Close() {}

// Modelled implements exec.Backend.
func (b *Backend) Modelled() bool { return true }

// Map implements exec.Backend: an address is enough.
func (b *Backend) Map(event.DeviceID, uint64, int64) error { return nil }

// Unmap implements exec.Backend.
func (b *Backend) Unmap(event.DeviceID, uint64, int64) {}

// Bytes implements exec.Backend: there are none.
func (b *Backend) Bytes(exec.Ref) []byte { return nil }

// Now implements exec.Backend.
func (b *Backend) Now() int64 { return b.now }

// Spend implements exec.Backend.
func (b *Backend) Spend(nanos int64) { b.now += max(0, nanos) }

// WaitUntil implements exec.Backend.
func (b *Backend) WaitUntil(t int64) { b.now = max(b.now, t) }

// Launch implements exec.Backend. The host itself works on CPU:0; elsewhere it
// only issues, and the compute stream gets to the kernel in its turn.
func (b *Backend) Launch(k *exec.Kernel) (exec.Span, error) {
	if b.host[k.Device] {
		b.WaitUntil(k.After)
		s := exec.Span{Begin: b.now, End: b.now + k.Nanos}
		b.now = s.End
		b.free[k.Device][event.StreamCompute] = s.End
		return s, nil
	}
	compute := &b.free[k.Device][event.StreamCompute]
	begin := max(b.now, *compute, k.After)
	*compute = begin + k.Nanos
	return exec.Span{Begin: begin, End: *compute}, nil
}

// Copy implements exec.Backend. A copy waits for the compute streams at both
// ends, because it reads what they write or overwrites what they read, and for
// the copy before it on its own stream.
func (b *Backend) Copy(c *exec.Copy) (exec.Span, error) {
	owner := c.From.Device
	if b.host[owner] {
		owner = c.To.Device
	}
	stream := &b.free[owner][c.Stream]
	begin := max(b.now, *stream, c.After)
	if !b.host[c.From.Device] {
		begin = max(begin, b.free[c.From.Device][event.StreamCompute])
	}
	if !b.host[c.To.Device] && !c.Safe {
		begin = max(begin, b.free[c.To.Device][event.StreamCompute])
	}
	*stream = begin + c.Nanos
	return exec.Span{Begin: begin, End: *stream}, nil
}

// Idle implements exec.Backend.
func (b *Backend) Idle(dev event.DeviceID) int64 {
	var t int64
	for _, f := range b.free[dev] {
		t = max(t, f)
	}
	return t
}
