// Package pprof writes what lives in a timeline at one moment as a profile
// that go tool pprof and its relatives read: bytes, requested bytes and counts
// by the stack that owns them, labelled with device, allocator and category.
//
// The moment is the accelerators' fullest, found in one pass: what each stack
// holds is kept twice, now and at the highest peak so far, and a new peak
// copies only what changed since the last. So memory grows with the stacks
// that there are and with the blocks that live, not with the timeline.
package pprof

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/export"
)

// Options say what is written.
type Options struct {
	// At is the moment in nanoseconds since the timeline began: what lives after
	// all that happened up to then. Negative: the fullest moment.
	At int64
	// Device is the name of the only device that counts; "" for all, where the
	// fullest moment is that of all accelerators together, or of the host when
	// there are none.
	Device string
}

// site is one line of the profile: who holds, and where.
type site struct {
	op, tensor event.StringID
	pool       event.AllocatorID
	device     event.DeviceID
	category   event.Category
	size       int64 // of each block, so that a reader can tell them apart
}

type amount struct{ count, bytes, requested int64 }

func (a *amount) add(b *export.Block, sign int64) {
	a.count += sign
	a.bytes += sign * b.Size
	a.requested += sign * b.Requested
}

type holder struct {
	site
	now, then amount
	dirty     bool // now differs from then
}

// Writer writes the profile when it is closed. It is an event.Sink.
type Writer struct {
	w       io.Writer
	strs    *event.Strings
	o       Options
	places  export.Places
	live    export.Live
	index   map[site]int
	holders []holder
	dirty   []int
	total   int64 // of what makes the peak
	host    int64 // of the host's memory
	peak    int64
	hostMax int64
	at      int64
	past    bool // the moment is over
	last    int64
}

// NewWriter writes to w; strs is the table of the events that will follow.
func NewWriter(w io.Writer, strs *event.Strings, o Options) *Writer {
	return &Writer{w: w, strs: strs, o: o, index: map[site]int{}}
}

// Emit implements event.Sink.
func (w *Writer) Emit(e *event.Event) {
	w.last = max(w.last, e.Time)
	switch e.Kind {
	case event.DeviceFacts, event.AllocatorFacts:
		w.places.Note(e, w.strs)
	case event.Alloc, event.Free, event.Forward:
		if w.o.At >= 0 && e.Time > w.o.At {
			w.past = true
		}
		if w.past || !w.wanted(e) {
			return
		}
		w.live.Take(e, w.ended, w.began)
		w.moment(e)
	default:
	}
}

// wanted leaves out other devices, and planned arenas' insides: their bytes
// are those of the arena.
func (w *Writer) wanted(e *event.Event) bool {
	if w.places.Pool(e.Allocator).Within != "" {
		return false
	}
	return w.o.Device == "" || w.places.Device(e.Device).Name == w.o.Device
}

func (w *Writer) ended(k export.Key, b *export.Block) { w.change(k, b, -1) }
func (w *Writer) began(k export.Key, b *export.Block) { w.change(k, b, 1) }

func (w *Writer) change(k export.Key, b *export.Block, sign int64) {
	s := site{b.Op, b.Tensor, k.Pool, b.Device, b.Category, b.Size}
	i, ok := w.index[s]
	if !ok {
		i = len(w.holders)
		w.index[s] = i
		w.holders = append(w.holders, holder{site: s})
	}
	h := &w.holders[i]
	h.now.add(b, sign)
	if !h.dirty {
		h.dirty = true
		w.dirty = append(w.dirty, i)
	}
	if w.o.Device == "" && w.places.Device(b.Device).Host {
		w.host += sign * b.Size
	} else {
		w.total += sign * b.Size
	}
}

// moment keeps what lives now if it is the moment, as far as is known.
func (w *Writer) moment(e *event.Event) {
	switch {
	case w.o.At >= 0:
		return // Close takes what is there then
	case w.total > w.peak:
	case w.peak == 0 && w.host > w.hostMax: // as long as no accelerator holds anything
	default:
		return
	}
	w.peak, w.hostMax, w.at = w.total, w.host, e.Time
	w.settle()
}

// settle makes then equal to now, at the cost of what changed.
func (w *Writer) settle() {
	for _, i := range w.dirty {
		w.holders[i].then, w.holders[i].dirty = w.holders[i].now, false
	}
	w.dirty = w.dirty[:0]
}

// Close writes the profile.
func (w *Writer) Close() error {
	if w.o.At >= 0 {
		w.at = min(w.o.At, w.last)
		w.settle()
	}
	if w.o.Device != "" && !w.known() {
		return fmt.Errorf("no device %q is in it; there are %s", w.o.Device, w.names())
	}
	z := gzip.NewWriter(w.w)
	p := newProfile(z)
	w.write(p)
	err := p.flush()
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	return nil
}

func (w *Writer) known() bool {
	for i := range w.places.Devices() {
		if w.places.Devices()[i].Name == w.o.Device {
			return true
		}
	}
	return false
}

func (w *Writer) names() string {
	names := make([]string, 0, len(w.places.Devices()))
	for _, d := range w.places.Devices() {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (w *Writer) write(p *profile) {
	p.sampleType("allocations", "count")
	p.sampleType("space", "bytes")
	p.sampleType("requested", "bytes")
	p.defaultType("space")
	p.comment(fmt.Sprintf("Written by Tideline: what lives %d ns after the beginning of the timeline.", w.at))
	var frames []export.Frame
	for i := range w.holders {
		h := &w.holders[i]
		if h.then.count <= 0 {
			continue
		}
		frames = export.Stack(frames[:0], w.strs.At(h.op), w.strs.At(h.tensor), h.category)
		p.sample(frames, [3]int64{h.then.count, h.then.bytes, h.then.requested}, [][2]string{
			{"kind", "buffer"},
			{"device", w.places.Device(h.device).Name},
			{"allocator", w.places.Pool(h.pool).Name},
			{"category", h.category.String()},
		}, h.size)
	}
}
