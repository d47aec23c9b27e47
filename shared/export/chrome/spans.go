package chrome

import (
	"slices"
	"strconv"

	"tideline/protocol/event"
)

// trackKind says what a row shows; the rows of a process stand in this order.
type trackKind uint8

const (
	steps trackKind = iota
	ops
	copies
	waiting
	stages
	allocations
	remarks
)

type trackKey struct {
	pid  int64
	kind trackKind
	sub  int64
}

// track is a row, with as many lanes as it has spans at once.
type track struct {
	w     *Writer
	key   trackKey
	name  string
	row   int64   // among those of its kind
	lanes []int64 // thread numbers
	busy  []bool
}

func (w *Writer) track(k trackKey, name string) *track {
	t := w.tracks[k]
	if t == nil {
		if k.pid == pipelineProcess {
			w.process(k.pid, "input pipeline", 1)
		}
		t = &track{w: w, key: k, name: name, row: k.sub}
		if k.kind == stages {
			t.row, w.stages = w.stages, w.stages+1
		}
		w.tracks[k] = t
	}
	return t
}

// lane is the thread number of a lane, named when it is first used.
func (t *track) lane(i int) int64 {
	for len(t.lanes) <= i {
		n := int64(len(t.lanes))
		// Sparse on purpose: viewers sort rows by kind, then row, then lane.
		tid := int64(t.key.kind)*1_000_000 + t.row*2*maxLanes + n + 1
		name := t.name
		if n > 0 {
			name += " +" + strconv.FormatInt(n, 10)
		}
		t.lanes = append(t.lanes, tid)
		t.busy = append(t.busy, false)
		t.w.meta("thread_name", t.key.pid, tid, name)
		t.w.sortIndex("thread_sort_index", t.key.pid, tid, tid)
	}
	return t.lanes[i]
}

func (t *track) take() int {
	if i := slices.Index(t.busy, false); i >= 0 {
		t.busy[i] = true
		return i
	}
	i := min(len(t.lanes), maxLanes-1)
	t.lane(i)
	t.busy[i] = true
	return i
}

// maxLanes bounds the lanes of a row; what is more at once shares the last.
const maxLanes = 256

// spanKey pairs a begin with its end. A step has no id but its number.
type spanKey struct {
	kind event.Kind // of the begin
	id   uint64
}

type span struct {
	e    event.Event
	t    *track
	lane int
}

func keyOf(begin event.Kind, e *event.Event) spanKey {
	if begin == event.StepBegin {
		return spanKey{begin, uint64(uint32(e.Step))}
	}
	return spanKey{begin, e.ID}
}

// maxOpen bounds what a file without ends may cost.
const maxOpen = 1 << 20

func (w *Writer) beginSpan(e *event.Event) {
	if len(w.open) >= maxOpen {
		return
	}
	t := w.trackOf(e)
	w.open[keyOf(e.Kind, e)] = span{*e, t, t.take()}
}

func (w *Writer) endSpan(e *event.Event) {
	k := keyOf(e.Kind-1, e) // an end is numbered after its begin
	s, ok := w.open[k]
	if !ok {
		return
	}
	delete(w.open, k)
	s.t.busy[s.lane] = false
	w.span(&s, e.Time, false)
}

// endOpen writes what never ended, in the order of its beginnings.
func (w *Writer) endOpen() {
	rest := make([]span, 0, len(w.open))
	for _, s := range w.open {
		rest = append(rest, s)
	}
	slices.SortFunc(rest, func(a, b span) int {
		if a.e.Time != b.e.Time {
			return int(min(max(a.e.Time-b.e.Time, -1), 1))
		}
		if a.e.Kind != b.e.Kind {
			return int(a.e.Kind) - int(b.e.Kind)
		}
		return int(min(max(int64(a.e.ID-b.e.ID), -1), 1))
	})
	for i := range rest {
		w.span(&rest[i], w.last, true)
	}
}

func (w *Writer) trackOf(e *event.Event) *track {
	switch e.Kind {
	case event.StepBegin:
		return w.track(trackKey{runProcess, steps, 0}, "steps")
	case event.OpBegin:
		return w.track(trackKey{w.device(e.Device), ops, int64(e.Stream)}, "ops, stream "+strconv.Itoa(int(e.Stream)))
	case event.StallBegin:
		return w.track(trackKey{w.device(e.Device), waiting, 0}, "waiting for input")
	case event.StageBegin:
		return w.track(trackKey{pipelineProcess, stages, int64(e.Op)}, w.strs.At(e.Op))
	default:
		name, dev, sub := w.copyName(e)
		return w.track(trackKey{w.device(dev), copies, sub}, name)
	}
}

// copyName is a copy's kind as TensorFlow's traces have it, the device on
// whose rows it stands, and a number for the kind.
func (w *Writer) copyName(e *event.Event) (name string, dev event.DeviceID, n int64) {
	from, to := w.places.Device(e.Device).Host, w.places.Device(e.Peer).Host
	switch {
	case from && to:
		return "copy on the host", e.Peer, 0
	case from:
		return "MemcpyH2D", e.Peer, 1
	case to:
		return "MemcpyD2H", e.Device, 2
	case e.Device == e.Peer:
		return "MemcpyD2D", e.Device, 3
	default:
		return "MemcpyP2P", e.Device, 4
	}
}

func (w *Writer) span(s *span, end int64, cut bool) {
	e := &s.e
	name := w.strs.At(e.Op)
	switch e.Kind {
	case event.StepBegin:
		name = "step " + strconv.Itoa(int(e.Step)+1) // people count from 1
	case event.TransferBegin:
		name, _, _ = w.copyName(e)
	case event.StallBegin:
		name = "waiting for " + name
	default:
	}
	w.item('X', s.t.key.pid, s.t.lane(s.lane), name)
	w.micros("ts", e.Time)
	w.micros("dur", max(end-e.Time, 0))
	w.args()
	w.spanArgs(e)
	if cut {
		w.key("never ended")
		w.buf = append(w.buf, "true"...)
	}
	w.endArgs()
	w.put()
}

var parts = [...]string{"forward", "backward", "update", "input", "copy"}

func (w *Writer) spanArgs(e *event.Event) {
	switch e.Kind {
	case event.StepBegin:
		w.number("batch", e.Size)
	case event.TransferBegin:
		w.number("bytes", e.Size)
		w.text("cause", event.TransferCause(e.Cause).String())
		w.text("op", w.strs.At(e.Op))
		w.text("tensor", w.strs.At(e.Tensor))
		if e.Flags&event.Pinned != 0 {
			w.text("host memory", "pinned")
		}
		if e.Flags&event.DriverStaged != 0 {
			w.text("route", "through the host")
		}
	case event.OpBegin:
		if int(e.Category) < len(parts) {
			w.text("part", parts[e.Category])
		}
	case event.StageBegin:
		w.number("bytes", e.Size)
		w.number("worker", int64(e.Stream))
	default:
	}
	if e.Step != event.NoStep && e.Kind != event.StepBegin {
		w.number("step", int64(e.Step)+1)
	}
	if e.Flags&event.Modelled != 0 {
		w.text("time", "modelled")
	}
}
