// Package csv writes a timeline's allocations as a table, a row each, for
// spreadsheets and data frames; or as the table of buffers that planners of
// static memory read.
//
// A row is written when its block comes back, so that only living blocks are
// kept; those that never come back follow at the end, with an empty end. Sort
// by alloc_ns for the order of the requests. Times are nanoseconds since the
// beginning of the timeline, sizes bytes.
package csv

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/export"
)

// Header is the first row of the table of allocations.
var Header = []string{
	"device", "allocator", "address", "size", "requested", "tensor", "op", "category", "step", "stream",
	"alloc_ns", "free_ns", "begun_by", "ended_by", "within",
}

// Writer writes the table. It is an event.Sink; Close it.
type Writer struct {
	out    *csv.Writer
	strs   *event.Strings
	places export.Places
	live   export.Live
	row    []string
	begun  bool
}

// NewWriter writes to w; strs is the table of the events that will follow.
func NewWriter(w io.Writer, strs *event.Strings) *Writer {
	return &Writer{out: csv.NewWriter(w), strs: strs, row: make([]string, 0, len(Header))}
}

// Emit implements event.Sink.
func (w *Writer) Emit(e *event.Event) {
	w.head()
	switch e.Kind {
	case event.DeviceFacts, event.AllocatorFacts:
		w.places.Note(e, w.strs)
	case event.Alloc, event.Free, event.Forward:
		how := "free"
		switch e.Kind {
		case event.Forward:
			how = "forward"
		case event.Alloc:
			how = "lost" // its free is missing: the address was handed out again
		default:
		}
		w.live.Take(e, func(k export.Key, b *export.Block) { w.block(k, b, strconv.FormatInt(e.Time, 10), how) }, nothing)
	default:
	}
}

func nothing(export.Key, *export.Block) {}

func (w *Writer) head() {
	if !w.begun {
		w.begun = true
		_ = w.out.Write(Header) // Close returns the first error
	}
}

func (w *Writer) block(k export.Key, b *export.Block, end, how string) {
	pool := w.places.Pool(k.Pool)
	step := ""
	if b.Step != event.NoStep {
		step = strconv.FormatInt(int64(b.Step), 10)
	}
	begun := "alloc"
	if b.Taken {
		begun = "forward"
	}
	w.row = append(w.row[:0], text(w.places.Device(b.Device).Name), text(pool.Name), "0x"+strconv.FormatUint(k.Address, 16),
		number(b.Size), number(b.Requested), text(w.strs.At(b.Tensor)), text(w.strs.At(b.Op)), b.Category.String(), step,
		strconv.Itoa(int(b.Stream)), number(b.Begin), end, begun, how, text(pool.Within))
	_ = w.out.Write(w.row)
}

// Close writes the blocks that were never freed, and returns the first error
// of all writing.
func (w *Writer) Close() error {
	w.head()
	for _, k := range w.live.Rest() {
		b := w.live.Block(k)
		w.block(k, &b, "", "")
	}
	w.out.Flush()
	if err := w.out.Error(); err != nil {
		return fmt.Errorf("write the table of allocations: %w", err)
	}
	return nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// text keeps a spreadsheet from taking a name for a formula.
func text(s string) string {
	if s == "" {
		return s
	}
	switch s[0] {
	case '=', '+', '-', '@', '\t', '\r':
		return "'" + s
	}
	return s
}
