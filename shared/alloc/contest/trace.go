package contest

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/trace"
)

// CallKind is what a program asks of its allocator.
type CallKind uint8

// The kinds of calls.
const (
	Allocate CallKind = iota
	Free
	EndStep  // a step is over: the host has waited for the device
	GiveBack // the program gives idle memory back, where its allocator lets it (empty_cache)
)

// Call is one call. It holds no pointers.
type Call struct {
	Bytes     int64 // as requested
	Align     int64
	Slot      int32 // pairs an allocation with its free; reused afterwards
	Stream    stream.ID
	Kind      CallKind
	Parameter bool   // stays for the whole run
	Fails     bool   // failed in the original; freed at once where it does not
	Pool      uint16 // number in Trace.Pools
}

// Trace is a program's calls of one allocator.
type Trace struct {
	Name   string // of the allocator
	Kind   string // as its facts tell; "" when unknown
	Device event.DeviceID
	Limit  int64 // of the original; 0 when there was none, or none is known
	// Held says that memory was held when the recording began: several regions
	// were there before the first block. What happened before is not known.
	Held     bool
	Allocs   int64
	Slots    int   // most blocks alive at once
	Streams  int   // highest stream number and 1
	Floor    int64 // the most requested bytes that were alive at once
	OutOfMem int64 // failures in the original
	// Begins is how many calls come first that build up the state in which the
	// recording began, holes included. They count among neither Allocs nor
	// Floor, except for what is live after them, and no peak of the blocks in
	// use is taken before their end.
	Begins int
	// Pools are PyTorch's private pools by Call.Pool; number 0 is the default
	// one. nil where there are none.
	Pools []torch.PoolID
	// Original is what the events tell of the allocator that was recorded; nil
	// where only calls are known.
	Original  *Result
	chunks    [][]Call
	n         int
	requested int64
}

const chunkCalls = 4096

func (t *Trace) add(c Call) {
	if t.n%chunkCalls == 0 {
		t.chunks = append(t.chunks, make([]Call, 0, chunkCalls))
	}
	last := &t.chunks[len(t.chunks)-1]
	*last = append(*last, c)
	t.n++
	t.Streams = max(t.Streams, int(c.Stream)+1)
	t.Slots = max(t.Slots, int(c.Slot)+1)
}

// Len is the number of calls.
func (t *Trace) Len() int { return t.n }

// Each calls f for every call in order.
func (t *Trace) Each(f func(c *Call)) {
	for _, chunk := range t.chunks {
		for i := range chunk {
			f(&chunk[i])
		}
	}
}

func (t *Trace) allocated(bytes int64) {
	t.Allocs++
	t.requested += bytes
	t.Floor = max(t.Floor, t.requested)
}

// Recorder is an event.Sink that keeps the calls of every allocator of a run.
type Recorder struct {
	strings *event.Strings
	spaces  []*space // in the order in which they were first heard of
	last    *space
}

type space struct {
	Trace
	allocator event.AllocatorID
	live      map[uint64]held
	slots     slots
	was       Result
	inUse     int64
	regions   int // before the first block
}

type held struct {
	slot      int32
	requested int64
	size      int64
}

// NewRecorder returns an empty recorder for events with that table.
func NewRecorder(strings *event.Strings) *Recorder { return &Recorder{strings: strings} }

func (r *Recorder) space(d event.DeviceID, a event.AllocatorID) *space {
	if s := r.last; s != nil && s.Device == d && s.allocator == a {
		return s
	}
	for _, s := range r.spaces {
		if s.Device == d && s.allocator == a {
			r.last = s
			return s
		}
	}
	s := &space{Trace: Trace{Device: d}, allocator: a, live: map[uint64]held{}}
	s.Name = fmt.Sprintf("device %d, allocator %d", d, a)
	r.spaces = append(r.spaces, s)
	r.last = s
	return s
}

// Emit implements event.Sink.
func (r *Recorder) Emit(e *event.Event) {
	switch e.Kind {
	case event.AllocatorFacts:
		s := r.space(e.Device, e.Allocator)
		s.Limit = e.Size
		if f, err := event.ParseFields(r.strings.At(e.Text)); err == nil {
			if name, ok := f.Get("name"); ok {
				s.Name = name
			}
			s.Kind, _ = f.Get("kind")
			if text, ok := f.Get("capacity"); ok && s.Limit == 0 {
				if n, err := strconv.ParseInt(text, 10, 64); err == nil {
					s.Limit = max(0, n)
				}
			}
		}
	case event.Alloc:
		r.space(e.Device, e.Allocator).alloc(e)
	case event.Free:
		r.space(e.Device, e.Allocator).free(e)
	case event.OutOfMemory:
		s := r.space(e.Device, e.Allocator)
		s.OutOfMem++
		s.was.Missing += e.Requested
		x := s.slots.take()
		s.add(Call{Kind: Allocate, Bytes: e.Requested, Slot: x, Stream: stream.ID(e.Stream), Fails: true})
		s.slots.give(x)
	case event.RegionAdd:
		s := r.space(e.Device, e.Allocator)
		s.was.Reserved += e.Size
		s.was.PeakReserved = max(s.was.PeakReserved, s.was.Reserved)
		s.was.DriverCalls++
		if s.n == 0 {
			s.regions++
			s.Held = s.regions > 1
		}
	case event.RegionRemove:
		s := r.space(e.Device, e.Allocator)
		s.was.Reserved -= e.Size
		s.was.DriverCalls++
	case event.RegionRefused:
		s := r.space(e.Device, e.Allocator)
		s.was.Refused++
		s.was.DriverCalls++
	case event.StepEnd:
		for _, s := range r.spaces {
			s.add(Call{Kind: EndStep})
		}
	default: // the other kinds ask for no memory
	}
}

// slots numbers live blocks densely.
type slots struct {
	spare []int32
	next  int32
}

func (s *slots) take() int32 {
	if n := len(s.spare); n > 0 {
		x := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return x
	}
	s.next++
	return s.next - 1
}

func (s *slots) give(x int32) { s.spare = append(s.spare, x) }

func (s *space) alloc(e *event.Event) {
	x := s.slots.take()
	s.live[e.Address] = held{x, e.Requested, e.Size}
	s.allocated(e.Requested)
	if s.inUse += e.Size; s.inUse > s.was.PeakInUse {
		s.was.PeakInUse, s.was.Requested = s.inUse, s.requested
	}
	s.add(Call{Kind: Allocate, Bytes: e.Requested, Slot: x, Stream: stream.ID(e.Stream), Parameter: e.Category == event.Parameter})
}

func (s *space) free(e *event.Event) {
	h, ok := s.live[e.Address]
	if !ok {
		return // its allocation was before the recording
	}
	delete(s.live, e.Address)
	s.requested -= h.requested
	s.inUse -= h.size
	s.slots.give(h.slot)
	s.add(Call{Kind: Free, Slot: h.slot, Stream: stream.ID(e.Stream)})
}

// Traces are the allocators that were asked for memory, in the order in which
// they were first heard of.
func (r *Recorder) Traces() []*Trace {
	var list []*Trace
	for _, s := range r.spaces {
		if s.Allocs > 0 || s.OutOfMem > 0 {
			s.was.Kind, s.was.OutOfMemory = s.Kind, s.OutOfMem
			s.Original = &s.was
			list = append(list, &s.Trace)
		}
	}
	return list
}

// Trace is that of one allocator; nil where it was not asked for memory.
func (r *Recorder) Trace(d event.DeviceID, a event.AllocatorID) *Trace {
	list := r.Traces()
	for _, s := range r.spaces {
		if s.Device == d && s.allocator == a && len(list) > 0 && s.Original != nil {
			return &s.Trace
		}
	}
	return nil
}

// FromTrace reads an allocation trace ("bfc-trace 1"). Its counters and queries
// mean something to one allocator only and are left out.
func FromTrace(r io.Reader) (*Trace, error) {
	in, err := trace.NewReader(r)
	if err != nil {
		return nil, err
	}
	t := &Trace{Name: in.Options.Name, Kind: "bfc", Limit: in.Options.Limit}
	if c := in.Options.Capacity; c > 0 && (t.Limit == 0 || c < t.Limit) {
		t.Limit = c
	}
	live := map[uint32]held{}
	var slots slots
	for {
		op, err := in.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		switch op.Kind {
		case trace.Alloc, trace.AllocNoRetry:
			h := held{slot: slots.take(), requested: max(0, op.Bytes)}
			live[op.ID] = h
			t.allocated(h.requested)
			t.add(Call{Kind: Allocate, Bytes: op.Bytes, Align: op.Align, Slot: h.slot})
		case trace.Free:
			h := live[op.ID]
			delete(live, op.ID)
			slots.give(h.slot)
			t.requested -= h.requested
			t.add(Call{Kind: Free, Slot: h.slot})
		default:
		}
	}
}
