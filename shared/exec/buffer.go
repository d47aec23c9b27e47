package exec

import (
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/program"
)

// bufferID indexes Runtime.buffers; 0 is no buffer.
type bufferID int32

// buffer is memory that tensors share by counting references. It goes back to
// its allocator at the moment when the last reference drops, on the host,
// although the device may not have run the work yet: one compute stream runs
// everything in order.
type buffer struct {
	address   uint64
	size      int64 // as the allocator rounded it
	requested int64
	ready     int64 // when a copy into it arrives; 0: in stream order
	refs      int32
	flight    uint32 // the copy that fills it, until the host has seen its end
	space     spaceID
	pinned    bool     // the attribute gpu_compatible
	safe      bool     // no kernel may still use the memory, see Config.Timestamps
	life      int32    // in a dry run: the record of its life, counted from 1
	next      bufferID // of a free slot: the free one after it
}

// newBuffer takes a slot of the table; the caller fills it.
func (r *Runtime) newBuffer() bufferID {
	if id := r.freeBuffer; id != 0 {
		r.freeBuffer = r.buffers[id].next
		return id
	}
	r.buffers = append(r.buffers, buffer{})
	return bufferID(len(r.buffers) - 1)
}

// recycle puts a slot back, the next to be taken.
func (r *Runtime) recycle(id bufferID) {
	r.buffers[id].next = r.freeBuffer
	r.freeBuffer = id
}

// request is what a new buffer is for.
type request struct {
	bytes    int64
	op       event.StringID
	tensor   event.StringID
	value    *program.Value // what it is to hold, for the message of a failure; nil: bytes
	space    spaceID
	category event.Category
	noRetry  bool
	lasting  bool // stays for the whole run
	// unit numbers what a plan has a place for, from 1; 0 for anything else.
	// offset is that place, where space is an arena.
	unit   int32
	offset int64
	// arriving is set for the destination of a copy from the host: with
	// Config.Timestamps it takes memory that is free in the device's time.
	arriving bool
}

// keeper is an allocator that may take what stays for the whole run from
// elsewhere.
type keeper interface {
	AllocateParameter(r alloc.Request) (alloc.Block, bool)
}

// allocate makes a buffer with one reference. Zero bytes take no memory. ok is
// false when there was none; unless the caller can do without, that ends the
// run and is told as an event.
func (r *Runtime) allocate(q *request) (bufferID, bool) {
	if r.dry != nil {
		return r.dry.allocate(r, q), true
	}
	s := &r.spaces[q.space]
	if s.within != noSpace {
		return r.allocatePlanned(s, q), true
	}
	if !s.begun && q.bytes > 0 {
		r.begin(q.space)
	}
	id := r.newBuffer()
	b := &r.buffers[id]
	*b = buffer{}
	b.refs, b.space, b.pinned = 1, q.space, s.pinned
	if q.bytes == 0 {
		return id, true
	}
	r.current = q.op
	s.ask.Bytes, s.ask.NoRetry, s.ask.FreedBy = q.bytes, q.noRetry, nil
	if t := s.tracker; t != nil {
		t.advance(r.backend.Now())
		if q.arriving {
			s.ask.FreedBy = t.safe
		}
	}
	block, ok := s.ofMemory(q.lasting)
	if !ok {
		r.recycle(id)
		if !r.broken() && !q.noRetry {
			r.outOfMemory(q)
		}
		return 0, false
	}
	if r.failed != nil {
		r.recycle(id)
		return 0, false
	}
	// The table may not have grown since: nothing else makes buffers here.
	if s.tracker != nil {
		s.tracker.bytes += block.Size
		b.safe = q.arriving
	}
	b.address, b.size, b.requested = block.Address, block.Size, block.Requested
	r.tellAlloc(s, b, q)
	return id, true
}

func (r *Runtime) tellAlloc(s *space, b *buffer, q *request) {
	e := r.event(event.Alloc)
	e.Device, e.Allocator = s.device, s.id
	e.Address, e.Size, e.Requested = b.address, b.size, b.requested
	e.Tensor, e.Op, e.Category = q.tensor, q.op, q.category
	r.out.host(e)
}

// event is the record of all events that are told at once, for one of kind k in
// the step under way. What the kind does not use is zero: the record is emptied
// where it lies and its fields are written there, as a literal would be made
// elsewhere and copied.
func (r *Runtime) event(k event.Kind) *event.Event {
	e := &r.ev
	*e = event.Event{}
	e.Kind, e.Step = k, r.step
	return e
}

// ofMemory asks the allocator for what s.ask says.
func (s *space) ofMemory(lasting bool) (alloc.Block, bool) {
	if lasting {
		if m, ok := s.memory.(keeper); ok {
			return m.AllocateParameter(s.ask)
		}
	}
	return s.memory.Allocate(s.ask)
}

// hold adds n references.
func (r *Runtime) hold(id bufferID, n int32) { r.buffers[id].refs += n }

// drop removes a reference, and frees the buffer with the last.
func (r *Runtime) drop(id bufferID) {
	b := &r.buffers[id]
	b.refs--
	if b.refs > 0 {
		return
	}
	r.recycle(id)
	switch {
	case r.dry != nil:
		r.dry.free(b)
	case b.size > 0:
		r.free(b)
	}
}

func (r *Runtime) free(b *buffer) {
	s := &r.spaces[b.space]
	e := r.event(event.Free)
	e.Device, e.Allocator, e.Address, e.Size = s.device, s.id, b.address, b.size
	r.out.host(e)
	if s.within != noSpace {
		s.inUse -= b.size
		return
	}
	if err := s.memory.Free(b.address); err != nil {
		r.fail(err)
	}
}

// ref is where the buffer lies.
func (r *Runtime) ref(id bufferID) Ref {
	b := &r.buffers[id]
	return Ref{Address: b.address, Bytes: b.requested, Device: r.spaces[b.space].device}
}
