//go:build cuda

package cuda

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"tideline/native/backend/cpu"
	"tideline/native/backend/cuda/lower"
	"tideline/native/kernel"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
)

const host event.DeviceID = 0

// Backend is one run on the cards of a Driver.
type Backend struct {
	driver *Driver
	clock  cpu.Clock
	memory cpu.Memory // of the host, page by page
	pinned regions
	mapped []regions // by logical device
	lanes  []*lane   // by logical device; nil for the host
	lower  lower.Lowering
	call   kernel.Call

	tickets  map[int64]*ticket // by promised end, until seen done
	copies   []*ticket         // not seen done
	promised int64             // the last end that was promised
	timed    *timed            // nil when nobody asked for true times

	mu     sync.Mutex
	err    error
	orders []*order
}

var (
	_ exec.Backend = (*Backend)(nil)
	_ exec.Driver  = (*Backend)(nil)
)

// Backend returns a run's backend. A nil clock is cpu.WallClock.
func (d *Driver) Backend(clock cpu.Clock) *Backend {
	if clock == nil {
		clock = cpu.WallClock()
	}
	return &Backend{driver: d, clock: clock, tickets: map[int64]*ticket{}}
}

// Open implements exec.Backend. The workload's cards are ours in order, or the
// ones that its presets name as cuda:0, cuda:1.
func (b *Backend) Open(devices []*device.Logical) error {
	b.memory.Open(1)
	b.mapped = make([]regions, len(devices))
	b.lanes = make([]*lane, len(devices))
	seen := map[*device.Card]*gpu{}
	for i, l := range devices {
		if l.IsHost() {
			continue
		}
		if seen[l.Card] == nil {
			d, err := b.driver.pick(l.Card.Preset.Name, len(seen))
			if err == nil {
				err = d.acquire()
			}
			if err != nil {
				b.Close()
				return fmt.Errorf("%s: %w", l.Name.Short(), err)
			}
			seen[l.Card] = d
		}
		n := &lane{d: seen[l.Card], b: b}
		b.lanes[i] = n
		if err := n.d.do(func() error { return n.open(b.clock.Now) }); err != nil {
			b.Close()
			return fmt.Errorf("%s: %w", l.Name.Short(), err)
		}
	}
	return nil
}

// presetPrefix begins the names of presets that are real cards.
const presetPrefix = "cuda:"

func (d *Driver) pick(preset string, next int) (*gpu, error) {
	if s, ok := strings.CutPrefix(preset, presetPrefix); ok {
		if n, err := strconv.Atoi(s); err == nil {
			next = n
		}
	}
	if next < 0 || next >= len(d.devices) {
		return nil, fmt.Errorf("the workload asks for card %d, this machine has %d", next, len(d.devices))
	}
	return d.devices[next], nil
}

// Close implements exec.Backend.
func (b *Backend) Close() {
	used := map[*gpu]bool{}
	for i, l := range b.lanes {
		if l == nil {
			continue
		}
		for len(b.mapped[i]) > 0 {
			b.put(event.DeviceID(i), b.mapped[i][0].addr, b.mapped[i][0].bytes)
		}
	}
	for len(b.pinned) > 0 {
		b.put(host, b.pinned[0].addr, b.pinned[0].bytes)
	}
	for _, l := range b.lanes {
		if l != nil {
			l.close()
			used[l.d] = true
		}
	}
	for d := range used {
		d.release()
	}
	b.lanes = nil
	b.memory.Close()
}

// fail keeps the first error of work that was ordered.
func (b *Backend) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
}

// Err implements exec.Driver.
func (b *Backend) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Modelled implements exec.Backend.
func (b *Backend) Modelled() bool { return false }

// Now implements exec.Backend.
func (b *Backend) Now() int64 { return b.clock.Now() }

// Spend implements exec.Backend: the time has passed already.
func (b *Backend) Spend(int64) {}

// WaitUntil implements exec.Backend. A time that was promised as the end of
// some work stands for that work.
func (b *Backend) WaitUntil(t int64) {
	if k := b.tickets[t]; k != nil {
		k.lane.wait(k)
		b.sweep()
		return
	}
	if d := t - b.clock.Now(); d > 0 {
		b.clock.Sleep(d)
	}
}

// Idle implements exec.Backend: it is idle when this returns.
func (b *Backend) Idle(dev event.DeviceID) int64 {
	if l := b.lanes[dev]; l != nil {
		l.idle(b.clock.Now)
		b.sweep()
	}
	return b.clock.Now()
}

// sweep forgets work that is done.
func (b *Backend) sweep() {
	for end, t := range b.tickets {
		if t.done.Load() {
			delete(b.tickets, end)
		}
	}
	kept := b.copies[:0]
	for _, t := range b.copies {
		if !t.done.Load() {
			kept = append(kept, t)
		}
	}
	clear(b.copies[len(kept):])
	b.copies = kept
	if b.timed != nil {
		b.timed.release()
	}
}

// sweepAt is how much work may be known at a time before the done is forgotten.
const sweepAt = 1024

// ticket promises an end to a piece of work and hands it over.
func (b *Backend) ticket(l *lane, s event.StreamID, name string) *ticket {
	if len(b.tickets) >= sweepAt {
		b.sweep()
	}
	now := b.clock.Now()
	b.promised = max(b.promised+1, now)
	t := &ticket{lane: l, stream: s, name: name, issued: now, end: b.promised}
	b.tickets[t.end] = t
	return t
}

func (b *Backend) order(t *ticket) *order {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.orders); n > 0 {
		o := b.orders[n-1]
		b.orders = b.orders[:n-1]
		o.t, o.waits, o.cmds, o.move = t, o.waits[:0], o.cmds[:0], transfer{}
		return o
	}
	return &order{t: t}
}

// reuse takes an order back from the card's goroutine.
func (b *Backend) reuse(o *order) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.orders = append(b.orders, o)
}

// post hands an order over and answers for it.
func (b *Backend) post(o *order) exec.Span {
	t := o.t
	t.lane.latest[t.stream] = t
	if b.timed != nil {
		b.timed.expect(t)
	}
	t.lane.d.work <- o
	return exec.Span{Begin: t.end, End: t.end}
}

// hazards calls f with every copy under way that touches memory in a way that
// does not go with what is about to be done with it. Memory counts, not what
// the executor says of times: it may have been freed and handed out again
// since a copy of it was ordered, and the precise copies to wait for are fewer
// than all that end before a time.
func (b *Backend) hazards(r exec.Ref, writes bool, f func(*ticket)) {
	for _, t := range b.copies {
		if !t.done.Load() && (overlap(t.to, r) || writes && overlap(t.from, r)) {
			f(t)
		}
	}
}

func overlap(a, b exec.Ref) bool {
	return a.Device == b.Device && a.Address < b.Address+uint64(b.Bytes) && b.Address < a.Address+uint64(a.Bytes)
}

// kernelHazards does so for all that a kernel touches. An update writes into
// inputs, so that they all count as written.
func (b *Backend) kernelHazards(k *exec.Kernel, f func(*ticket)) {
	for _, r := range k.In {
		b.hazards(r, true, f)
	}
	for _, r := range k.Out {
		b.hazards(r, true, f)
	}
	b.hazards(k.Workspace, true, f)
}

// Launch implements exec.Backend. An error that only the card finds comes with
// a later call, and from Err.
func (b *Backend) Launch(k *exec.Kernel) (exec.Span, error) {
	if err := b.Err(); err != nil {
		return exec.Span{}, err
	}
	l := b.lanes[k.Device]
	if l == nil {
		return b.onHost(k)
	}
	cmds, err := b.lower.Kernel(k, b.pointer)
	if err != nil {
		return exec.Span{}, err
	}
	o := b.order(b.ticket(l, event.StreamCompute, k.Node.Name))
	o.cmds = append(o.cmds, cmds...)
	b.kernelHazards(k, func(t *ticket) { o.waits = append(o.waits, t) })
	return b.post(o), nil
}

// onHost computes on the CPU, in memory that may be page-locked.
func (b *Backend) onHost(k *exec.Kernel) (exec.Span, error) {
	c := &b.call
	c.Program, c.Node, c.Temp = k.Program, k.Node, nil
	var err error
	if c.In, err = b.views(c.In[:0], k.In, k.Node.Name); err != nil {
		return exec.Span{}, err
	}
	if c.Out, err = b.views(c.Out[:0], k.Out, k.Node.Name); err != nil {
		return exec.Span{}, err
	}
	if k.Workspace.Bytes > 0 {
		c.Temp = b.Bytes(k.Workspace)
	}
	b.kernelHazards(k, func(t *ticket) { t.lane.wait(t) })
	if err := b.Err(); err != nil {
		return exec.Span{}, err
	}
	begin := b.clock.Now()
	if err := kernel.Run(c); err != nil {
		return exec.Span{}, err
	}
	return exec.Span{Begin: begin, End: b.clock.Now()}, nil
}

func (b *Backend) views(dst [][]byte, refs []exec.Ref, op string) ([][]byte, error) {
	for _, r := range refs {
		v := b.Bytes(r)
		if v == nil && r.Bytes > 0 {
			return dst, fmt.Errorf("op %s: %d bytes at %#x of device %d are not mapped", op, r.Bytes, r.Address, r.Device)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// Copy implements exec.Backend. A copy waits for the compute streams at both
// ends, because it reads what they write or overwrites what they read.
func (b *Backend) Copy(c *exec.Copy) (exec.Span, error) {
	if err := b.Err(); err != nil {
		return exec.Span{}, err
	}
	from, to := b.lanes[c.From.Device], b.lanes[c.To.Device]
	if from == nil && to == nil {
		return b.hostCopy(c)
	}
	owner, name := from, "copy to the host"
	switch {
	case from == nil:
		owner, name = to, "copy to "+to.d.card.Name
	case to != nil:
		name = "copy to another device"
	}
	m, err := b.transfer(c, from, to)
	if err != nil {
		return exec.Span{}, err
	}
	t := b.ticket(owner, c.Stream, name)
	t.from, t.to = c.From, c.To
	o := b.order(t)
	o.move = m
	for _, end := range []*lane{from, to} {
		if end == nil {
			continue
		}
		if last := end.latest[event.StreamCompute]; last != nil && !last.done.Load() {
			o.waits = append(o.waits, last)
		}
	}
	wait := func(t *ticket) { o.waits = append(o.waits, t) }
	b.hazards(c.From, false, wait)
	b.hazards(c.To, true, wait)
	span := b.post(o)
	b.copies = append(b.copies, t)
	return span, nil
}

func (b *Backend) transfer(c *exec.Copy, from, to *lane) (transfer, error) {
	m := transfer{bytes: c.From.Bytes}
	var err error
	if from != nil {
		if m.src, err = b.pointer(c.From); err != nil {
			return m, err
		}
	}
	if to != nil {
		if m.dst, err = b.pointer(c.To); err != nil {
			return m, err
		}
	}
	switch {
	case from == nil:
		m.kind, m.host = up, pointerTo(b.Bytes(c.From))
	case to == nil:
		m.kind, m.host = down, pointerTo(b.Bytes(c.To))
	case from.d == to.d:
		m.kind = inside
		return m, nil
	default:
		m.kind, m.peer = across, to
		return m, nil
	}
	if m.host == nil {
		return m, fmt.Errorf("copy of %d bytes between %#x of device %d and %#x of device %d: the host's end is not mapped",
			c.From.Bytes, c.From.Address, c.From.Device, c.To.Address, c.To.Device)
	}
	return m, nil
}

func pointerTo(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func (b *Backend) hostCopy(c *exec.Copy) (exec.Span, error) {
	from, to := b.Bytes(c.From), b.Bytes(c.To)
	if from == nil || len(from) != len(to) {
		return exec.Span{}, fmt.Errorf("copy of %d bytes from %#x to %#x of the host: not mapped", c.From.Bytes, c.From.Address, c.To.Address)
	}
	begin := b.clock.Now()
	copy(to, from)
	return exec.Span{Begin: begin, End: b.clock.Now()}, nil
}
