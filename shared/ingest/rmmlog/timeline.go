package rmmlog

import (
	"io"
	"strconv"

	"tideline/protocol/event"
)

// Timeline reads a log and tells it as events: one allocator a device, its
// allocations and frees at the logged times, failures as such. The rows have no
// trace of the upstream pool, so each block is a region of its own, as if it
// came from the driver directly.
func Timeline(r io.Reader, strs *event.Strings, sink event.Sink) (*Log, error) {
	w := NewTeller(strs, sink)
	log, err := Read(r, w.Row)
	if err != nil {
		return log, err
	}
	w.End()
	return log, nil
}

// Teller is Timeline for a caller that has the rows from a Parser.
type Teller struct {
	strs  *event.Strings
	sink  event.Sink
	live  map[key]int64
	known map[int64]bool
	first int64
	begun bool
	last  int64 // the row's time before
	day   int64 // passed midnights, in nanoseconds
	now   int64
}

// NewTeller begins a timeline without a row.
func NewTeller(strs *event.Strings, sink event.Sink) *Teller {
	return &Teller{strs: strs, sink: sink, live: map[key]int64{}, known: map[int64]bool{}}
}

// End tells that no row follows.
func (w *Teller) End() {
	w.emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone), Text: w.strs.ID("end of the log")})
}

const day = int64(24 * 3600 * 1e9)

// maxDevices keeps ids small for a log that makes up numbers.
const maxDevices = 256

func (w *Teller) emit(e event.Event) {
	e.Time, e.Step = w.now, event.NoStep
	w.sink.Emit(&e)
}

// clock turns a time of day, which wraps, into time since the first row, which
// never runs backwards.
func (w *Teller) clock(r *Row) {
	if r.Start < 0 {
		return
	}
	if !w.begun {
		w.begun, w.first, w.last = true, r.Start, r.Start
	}
	if !r.Old && r.Start < day && w.last-r.Start > day/2 {
		w.day += day
	}
	w.last = r.Start
	w.now = max(w.now, r.Start+w.day-w.first)
}

// Row tells the next row.
func (w *Teller) Row(r *Row) {
	dev := max(r.Device, 0) % maxDevices
	if !w.known[dev] {
		w.known[dev] = true
		w.facts(dev)
	}
	w.clock(r)
	id, al := event.DeviceID(dev), event.AllocatorID(dev)
	k := key{dev, r.Pointer}
	switch r.Action {
	case Allocate:
		if size, ok := w.live[k]; ok {
			w.free(id, al, r.Pointer, size)
		}
		if len(w.live) >= maxLive || r.Size == 0 {
			return
		}
		w.live[k] = r.Size
		w.emit(event.Event{Kind: event.RegionAdd, Device: id, Allocator: al, Address: r.Pointer, Size: r.Size, Requested: r.Size})
		w.emit(event.Event{Kind: event.Alloc, Device: id, Allocator: al, Address: r.Pointer, Size: r.Size, Requested: r.Size})
	case Free:
		size, ok := w.live[k]
		if !ok {
			return
		}
		delete(w.live, k)
		w.free(id, al, r.Pointer, size)
	case Fail:
		w.emit(event.Event{Kind: event.OutOfMemory, Device: id, Allocator: al, Size: r.Size, Requested: r.Size, Flags: event.Retryable})
	}
}

func (w *Teller) free(dev event.DeviceID, al event.AllocatorID, at uint64, size int64) {
	w.emit(event.Event{Kind: event.Free, Device: dev, Allocator: al, Address: at, Size: size})
	w.emit(event.Event{Kind: event.RegionRemove, Device: dev, Allocator: al, Address: at, Size: size})
}

func (w *Teller) facts(dev int64) {
	n := strconv.FormatInt(dev, 10)
	w.emit(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(dev), Text: w.strs.ID(event.Fields{
		{Key: "name", Value: "/GPU:" + n}, {Key: "kind", Value: "gpu"},
	}.Encode())})
	w.emit(event.Event{Kind: event.AllocatorFacts, Device: event.DeviceID(dev), Allocator: event.AllocatorID(dev), Text: w.strs.ID(event.Fields{
		{Key: "name", Value: "rmm_" + n}, {Key: "kind", Value: "rmm"},
	}.Encode())})
}
