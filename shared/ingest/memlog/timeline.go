package memlog

import (
	"io"
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// moment is the made-up distance between two records: the lines' times are
// those of the log, not of the allocations, and often missing.
const moment = int64(1000) // nanoseconds

// Timeline reads a log and tells it as events: a device and an allocator for
// each allocator's name, allocations and frees in the order of the lines. The
// times are made up. The log knows no regions, so each buffer is one of its own.
// A buffer without an address gets its id as one.
func Timeline(r io.Reader, strs *event.Strings, sink event.Sink) (*Log, error) {
	w := NewTeller(strs, sink)
	log, err := Read(r, w.Record)
	if err != nil {
		return log, err
	}
	w.End()
	return log, nil
}

// Teller is Timeline for a caller that has the records from a Parser.
type Teller struct {
	strs  *event.Strings
	sink  event.Sink
	names []string
	live  map[buffer]block
	now   int64
}

// NewTeller begins a timeline without a record.
func NewTeller(strs *event.Strings, sink event.Sink) *Teller {
	return &Teller{strs: strs, sink: sink, live: map[buffer]block{}}
}

// End tells that no record follows.
func (w *Teller) End() {
	w.emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone), Step: event.NoStep, Text: w.strs.ID("end of the log")})
}

type block struct {
	at   uint64
	size int64
}

func (w *Teller) emit(e event.Event) {
	e.Time = w.now
	w.sink.Emit(&e)
}

func (w *Teller) allocator(name string) int {
	for i, n := range w.names {
		if n == name {
			return i
		}
	}
	if len(w.names) >= maxNames {
		return maxNames - 1
	}
	i := len(w.names)
	w.names = append(w.names, strings.Clone(name))
	kind, device := "cpu", "/CPU:0 ("+name+")"
	if rest, ok := strings.CutPrefix(name, "GPU_"); ok {
		kind, device = "gpu", "/GPU:"+strings.TrimSuffix(rest, "_bfc")
	}
	w.emit(event.Event{Kind: event.DeviceFacts, Step: event.NoStep, Device: event.DeviceID(i), Text: w.strs.ID(event.Fields{
		{Key: "name", Value: device}, {Key: "kind", Value: kind},
	}.Encode())})
	w.emit(event.Event{Kind: event.AllocatorFacts, Step: event.NoStep, Device: event.DeviceID(i), Allocator: event.AllocatorID(i), Text: w.strs.ID(event.Fields{
		{Key: "name", Value: name}, {Key: "kind", Value: "log"},
	}.Encode())})
	return i
}

// Record tells the next record.
func (w *Teller) Record(r *Record) {
	w.now += moment
	switch r.Kind {
	case TensorAllocation, RawAllocation:
		if (r.Kind == RawAllocation || r.HasBuffer) && r.Allocated > 0 {
			w.allocate(r)
		}
	case TensorFree, RawFree:
		w.release(r)
	}
}

func step(n int64) int32 {
	if n < 0 || n > 1<<30 {
		return event.NoStep
	}
	return int32(n)
}

func (w *Teller) allocate(r *Record) {
	i := w.allocator(r.Allocator)
	k := buffer{i, r.ID}
	w.drop(k, r)
	if len(w.live) >= maxLive {
		return
	}
	at := r.Pointer
	if at == 0 {
		at = uint64(r.ID)
	}
	w.live[k] = block{at, r.Allocated}
	w.emit(event.Event{
		Kind: event.RegionAdd, Device: event.DeviceID(i), Allocator: event.AllocatorID(i), Step: step(r.Step), Address: at,
		Size: r.Allocated, Requested: r.Allocated,
	})
	w.emit(event.Event{
		Kind: event.Alloc, Device: event.DeviceID(i), Allocator: event.AllocatorID(i), Step: step(r.Step), Address: at,
		Size: r.Allocated, Requested: r.Requested, Op: w.strs.ID(strings.Clone(r.Kernel)), Tensor: w.strs.ID(tensor(r)),
	})
}

func (w *Teller) release(r *Record) { w.drop(buffer{w.allocator(r.Allocator), r.ID}, r) }

func (w *Teller) drop(k buffer, r *Record) {
	b, ok := w.live[k]
	if !ok {
		return
	}
	delete(w.live, k)
	for _, kind := range []event.Kind{event.Free, event.RegionRemove} {
		w.emit(event.Event{
			Kind: kind, Device: event.DeviceID(k.allocator), Allocator: event.AllocatorID(k.allocator), Step: step(r.Step),
			Address: b.at, Size: b.size,
		})
	}
}

// tensor writes a type and shape: float[64,3].
func tensor(r *Record) string {
	if !r.HasShape {
		return ""
	}
	b := []byte(strings.ToLower(strings.TrimPrefix(r.DType, "DT_")))
	b = append(b, '[')
	for i, n := range r.Dims {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}
