package chrome

import (
	"bufio"
	"fmt"
	"io"

	"tideline/protocol/event"
	"tideline/shared/export"
)

// Writer writes a trace. It is an event.Sink; Close it.
type Writer struct {
	out     *bufio.Writer
	strs    *event.Strings
	places  export.Places
	live    export.Live
	buf     []byte
	begun   bool
	comma   bool
	named   map[int64]bool // processes that have their name
	tracks  map[trackKey]*track
	open    map[spanKey]span
	stages  int64 // rows of the pipeline so far
	pools   []pool
	devices []deviceBytes
	dirty   []event.AllocatorID
	now     int64 // of the memory's changes that are not written
	last    int64
	other   event.Fields
}

// NewWriter writes to w; strs is the table of the events that will follow.
func NewWriter(w io.Writer, strs *event.Strings) *Writer {
	return &Writer{
		out: bufio.NewWriterSize(w, 64<<10), strs: strs, named: map[int64]bool{},
		tracks: map[trackKey]*track{}, open: map[spanKey]span{},
	}
}

// Emit implements event.Sink.
func (w *Writer) Emit(e *event.Event) {
	w.begin()
	w.last = max(w.last, e.Time)
	switch e.Kind {
	case event.DeviceFacts, event.AllocatorFacts:
		w.places.Note(e, w.strs)
	case event.Alloc, event.Free, event.Forward, event.RegionAdd, event.RegionRemove:
		w.memory(e)
	case event.RegionRefused:
		w.instant(e, w.device(e.Device), "the driver refused", "t", func() { w.number("Bytes", e.Size) })
	case event.TransferBegin, event.OpBegin, event.StepBegin, event.StallBegin, event.StageBegin:
		w.beginSpan(e)
	case event.TransferEnd, event.OpEnd, event.StepEnd, event.StallEnd, event.StageEnd:
		w.endSpan(e)
	case event.QueueDepth:
		w.counter(pipelineProcess, e.Time, w.strs.At(e.Op)+" buffered", "elements", e.Size)
	case event.Sample:
		w.counter(w.device(e.Device), e.Time, w.strs.At(e.Op), "value", e.Size)
	case event.Metric:
		w.metric(e)
	case event.OutOfMemory:
		w.failure(e)
	case event.Log, event.Annotation:
		w.instant(e, runProcess, firstLine(w.strs.At(e.Text)), "p", func() { w.text("text", w.strs.At(e.Text)) })
	case event.Lost:
		w.instant(e, runProcess, "events are missing", "g", func() { w.number("count", e.Size); w.text("why", w.strs.At(e.Text)) })
	case event.Settings:
		w.other, _ = event.ParseFields(w.strs.At(e.Text)) // what cannot be read is left out
	case event.End:
		w.instant(e, runProcess, "end: "+event.EndReason(e.Cause).String(), "g", func() { w.text("text", w.strs.At(e.Text)) })
	default: // placements have no time
	}
}

// Close ends the trace and returns the first error of all writing.
func (w *Writer) Close() error {
	w.begin()
	w.flushMemory()
	w.endOpen()
	w.buf = append(w.buf[:0], "\n],\n\"otherData\":{\"writer\":\"Tideline\""...)
	for _, f := range w.other {
		w.buf = append(w.buf, ',')
		w.buf = quoted(w.buf, f.Key)
		w.buf = append(w.buf, ':')
		w.buf = quoted(w.buf, f.Value)
	}
	w.buf = append(w.buf, "}}\n"...)
	_, _ = w.out.Write(w.buf) // Flush returns the first error
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

func (w *Writer) begin() {
	if !w.begun {
		w.begun = true
		_, _ = w.out.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[") // Flush returns the first error
		w.process(runProcess, "run", 0)
	}
}

// failure is an instant across the whole picture.
func (w *Writer) failure(e *event.Event) {
	pool := w.places.Pool(e.Allocator)
	w.instant(e, w.device(e.Device), "out of memory: "+event.FormatBytes(e.Requested), "g", func() {
		w.text("allocator", pool.Name)
		w.number("Bytes", e.Requested)
		w.number("rounded", e.Size)
		w.text("op", w.strs.At(e.Op))
		w.text("tensor", w.strs.At(e.Tensor))
		w.text("cause", event.OOMCause(e.Cause).String())
		if e.Step != event.NoStep {
			w.number("step", int64(e.Step)+1)
		}
	})
}

func firstLine(s string) string {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i]
		}
	}
	return s
}
