package exec

import (
	"tideline/protocol/event"
)

// flight is a copy whose end the host has not seen yet. It holds its source
// and, if it went through one, the pinned staging buffer.
type flight struct {
	serial  uint32
	source  bufferID
	staging bufferID
	end     int64
	// Of a swap to the host: the modelled kernel time that passes until the
	// host waits for the copy, so that the memory is had back while the step
	// still runs; 0 for other copies.
	left   int64
	device event.DeviceID
}

// copyTo makes a tensor in its memory from a buffer in another: destination
// first, so that both exist during the copy; then, for pageable host memory, a
// staging buffer in the pinned pool; then the copy is ordered.
func (r *Runtime) copyTo(p *Plan, from bufferID, id tensorID, op event.StringID) (bufferID, bool) {
	var q request
	r.request(&q, p, id, op)
	return r.copied(from, &q, p.tensors[id].cause)
}

// copied makes a buffer as requested, of equal size, and copies from to it.
func (r *Runtime) copied(from bufferID, q *request, cause event.TransferCause) (bufferID, bool) {
	q.arriving = r.cfg.Devices[r.spaces[from.of(r)].device].IsHost()
	to, ok := r.allocate(q)
	if !ok {
		return 0, false
	}
	if q.bytes == 0 {
		return to, true
	}
	if !r.transfer(from, to, cause, q.op, q.tensor) {
		r.drop(to)
		return 0, false
	}
	return to, true
}

// transfer orders a copy between two buffers of equal size.
func (r *Runtime) transfer(from, to bufferID, cause event.TransferCause, op, name event.StringID) bool {
	src, dst := r.ref(from), r.ref(to)
	up, down := r.cfg.Devices[src.Device].IsHost(), r.cfg.Devices[dst.Device].IsHost()
	c := &r.copy // one for all, so that a step allocates nothing
	*c = Copy{From: src, To: dst}
	owner := src.Device
	var staging bufferID
	switch {
	case up && down || src.Device == dst.Device:
		r.moveLocally(c)
	case up:
		owner, c.Stream = dst.Device, event.StreamH2D
		staging = r.stage(from, op, name)
		c.Pinned = staging != 0 || r.buffers[from].pinned
		c.Nanos = r.cfg.Devices[owner].Model.Upload(src.Bytes, c.Pinned)
		if staging != 0 {
			c.From = r.ref(staging)
		}
	case down:
		c.Stream, c.Pinned = event.StreamD2H, r.buffers[to].pinned
		c.Nanos = r.cfg.Devices[owner].Model.Download(src.Bytes, c.Pinned)
	default:
		c.Stream = event.StreamD2D
		m := &r.cfg.Devices[owner].Model
		if r.cfg.Devices[src.Device].Card == r.cfg.Devices[dst.Device].Card {
			c.Nanos = m.Local(src.Bytes) // two logical devices of one card
		} else {
			c.Nanos, c.Staged = m.ToPeer(src.Bytes)
		}
	}
	c.After, c.Safe = r.buffers[from].ready, up && r.buffers[to].safe
	if r.failed != nil {
		return false
	}
	span, err := r.backend.Copy(c)
	if err != nil {
		r.fail(err)
		return false
	}
	r.tellCopy(c, owner, span, src.Device, cause, op, name)
	r.fly(from, staging, to, span.End)
	if cause == event.CauseSwap && down {
		f := &r.flights[len(r.flights)-1]
		f.left, f.device = c.Nanos, owner
		r.swapping++
	}
	if up != down && !c.Pinned {
		r.seen(to) // a pageable copy blocks the host
	}
	return true
}

// moveLocally is a copy within one memory: in order with all other work there.
func (r *Runtime) moveLocally(c *Copy) {
	d := r.cfg.Devices[c.From.Device]
	c.Stream = event.StreamCompute
	if c.Nanos = d.Model.Local(c.From.Bytes); d.IsHost() {
		c.Nanos = d.Model.HostMove(c.From.Bytes)
	}
}

// stage copies pageable host memory into a buffer of the pinned pool, or gives
// 0 when the source is pinned already or the pool has no room: the driver then
// stages by itself, more slowly.
func (r *Runtime) stage(from bufferID, op, name event.StringID) bufferID {
	if r.pinnedSpace == noSpace || r.buffers[from].pinned {
		return 0
	}
	bytes := r.buffers[from].requested
	s, ok := r.allocate(&request{
		bytes: bytes, op: op, tensor: name, space: r.pinnedSpace, category: event.Temporary, noRetry: true,
	})
	if !ok {
		return 0
	}
	r.backend.Spend(r.cfg.Devices[0].Model.HostMove(bytes))
	if dst := r.backend.Bytes(r.ref(s)); dst != nil {
		copy(dst, r.backend.Bytes(r.ref(from)))
	}
	return s
}

func (r *Runtime) tellCopy(c *Copy, owner event.DeviceID, s Span, src event.DeviceID, cause event.TransferCause, op, name event.StringID) {
	if r.dry != nil {
		return
	}
	r.copyID++
	e := r.event(event.TransferBegin)
	e.Device, e.Peer, e.Size, e.ID = src, c.To.Device, c.To.Bytes, r.copyID
	e.Stream, e.Cause, e.Op, e.Tensor, e.Flags = c.Stream, uint8(cause), op, name, r.modelled
	if c.Pinned {
		e.Flags |= event.Pinned
	}
	if c.Staged {
		e.Flags |= event.DriverStaged
	}
	r.out.later(owner, c.Stream, e, s)
}

// fly notes a copy under way. With a staging buffer the source itself is not
// needed any more.
func (r *Runtime) fly(source, staging, to bufferID, end int64) {
	if staging != 0 {
		source = 0
	} else {
		r.hold(source, 1)
	}
	r.serial++
	r.flights = append(r.flights, flight{serial: r.serial, source: source, staging: staging, end: end})
	b := &r.buffers[to]
	b.ready, b.flight = end, r.serial
}

// await lets the host wait for the copies that fill what a host kernel reads.
// On an accelerator the stream waits, not the host.
func (r *Runtime) await(dev event.DeviceID, in []bufferID) {
	if !r.cfg.Devices[dev].IsHost() || len(r.flights) == 0 {
		return
	}
	for _, id := range in {
		if id == 0 || r.buffers[id].flight == 0 {
			continue
		}
		r.seen(id)
	}
}

// seen lets the host wait for the copy into a buffer and drop what it held.
func (r *Runtime) seen(id bufferID) {
	for i, f := range r.flights {
		if f.serial == r.buffers[id].flight {
			r.backend.WaitUntil(f.end)
			r.removeFlight(i)
			break
		}
	}
	r.buffers[id].flight = 0
}

// removeFlight drops what a copy held; the host has waited for it.
func (r *Runtime) removeFlight(i int) {
	f := r.flights[i]
	r.flights = append(r.flights[:i], r.flights[i+1:]...)
	r.settle(f)
}

func (r *Runtime) settle(f flight) {
	if f.left > 0 {
		r.swapping--
	}
	if f.source != 0 {
		r.dropLater(f.source)
	}
	if f.staging != 0 {
		r.dropLater(f.staging)
	}
}

// dropLater drops the reference of a finished copy, or gathers it with others
// as TensorFlow of 2019 did.
func (r *Runtime) dropLater(id bufferID) {
	if r.cfg.DeferredDeletion == 0 {
		r.drop(id)
		return
	}
	r.deferred = append(r.deferred, id)
	r.deferredSum += r.buffers[id].size
	if r.deferredSum > r.cfg.DeferredDeletion {
		r.dropDeferred()
	}
}

func (r *Runtime) dropDeferred() {
	for _, id := range r.deferred {
		r.drop(id)
	}
	r.deferred, r.deferredSum = r.deferred[:0], 0
}

// swapped counts a kernel towards the ends of swaps to the host on its device.
// The count is of the model's time and not of a clock, so that the same memory
// comes back at the same op on every Backend.
func (r *Runtime) swapped(dev event.DeviceID, nanos int64) {
	for i := 0; i < len(r.flights); {
		f := &r.flights[i]
		if f.left > 0 && f.device == dev {
			if f.left -= nanos; f.left <= 0 {
				f.left = 0
				r.swapping--
				r.backend.WaitUntil(f.end)
				r.removeFlight(i)
				continue
			}
		}
		i++
	}
}

// Land lets the host see the end of all copies ordered so far, and drops what
// they held.
func (r *Runtime) Land() {
	for len(r.flights) > 0 {
		r.backend.WaitUntil(r.flights[0].end)
		r.removeFlight(0)
	}
}

// land drops what all copies in flight hold; the host has waited for them.
func (r *Runtime) land() {
	for len(r.flights) > 0 {
		f := r.flights[0]
		r.flights = r.flights[:copy(r.flights, r.flights[1:])]
		r.settle(f)
	}
	r.dropDeferred()
}

// wakeUp is the host time from a device's completion to the thread that waited
// for it running again, in nanoseconds; assumed.
const wakeUp = 20_000

// constantBuffer makes the lasting memory of a constant: its number is written
// in host memory and, for an accelerator, sent there.
func (r *Runtime) constantBuffer(p *Plan, t *tensor, op event.StringID, fill func([]byte)) (bufferID, bool) {
	return r.initial(request{
		bytes: t.bytes, op: op, tensor: t.name, value: &p.p.Values[t.value], space: t.space, category: event.Constant,
	}, fill)
}

// initial makes memory with first values from the host.
func (r *Runtime) initial(q request, fill func([]byte)) (bufferID, bool) {
	b, ok := r.allocate(&q)
	if !ok || q.bytes == 0 {
		return b, ok
	}
	if r.cfg.Devices[r.spaces[q.space].device].IsHost() {
		r.write(b, fill)
		return b, true
	}
	host := q
	host.space, host.category = r.hostSpace, event.Temporary
	if q.category == event.Constant && r.cfg.Mode != Eager && r.pinnedSpace != noSpace {
		host.space = r.pinnedSpace // a graph unpacks its constants where they can be copied from
	}
	h, ok := r.allocate(&host)
	if !ok {
		r.drop(b)
		return 0, false
	}
	r.write(h, fill)
	ok = r.transfer(h, b, event.CauseInitial, q.op, q.tensor)
	r.drop(h)
	if !ok {
		r.drop(b)
		return 0, false
	}
	return b, true
}

func (r *Runtime) write(b bufferID, fill func([]byte)) {
	if dst := r.backend.Bytes(r.ref(b)); dst != nil {
		fill(dst)
	}
}
