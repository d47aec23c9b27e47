package csv

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/export"
)

// Buffers writes one allocator's blocks as buffers of a plan, in the columns
// that shared/plan and other planners read: id,lower,upper,size. The time is
// the count of the allocator's allocations and frees, since what matters to a
// plan is who lives together, and many happen at one nanosecond. A tensor that
// takes a block over in place goes on as the same buffer.
type Buffers struct {
	out    *csv.Writer
	strs   *event.Strings
	places export.Places
	live   export.Live
	of     string
	pool   event.AllocatorID
	found  bool
	now    int64
	begins map[export.Key]int64
	rows   int64
}

// NewBuffers writes to w the blocks of the allocator named of, or, with "", of
// the first on an accelerator that lies within no other.
func NewBuffers(w io.Writer, strs *event.Strings, of string) *Buffers {
	b := &Buffers{out: csv.NewWriter(w), strs: strs, of: of, begins: map[export.Key]int64{}}
	_ = b.out.Write([]string{"id", "lower", "upper", "size"}) // Close returns the first error
	return b
}

// Emit implements event.Sink.
func (b *Buffers) Emit(e *event.Event) {
	switch e.Kind {
	case event.DeviceFacts, event.AllocatorFacts:
		b.places.Note(e, b.strs)
		if e.Kind == event.AllocatorFacts && !b.found && b.wanted(e.Allocator) {
			b.found, b.pool = true, e.Allocator
		}
	case event.Alloc, event.Free:
		if !b.found || e.Allocator != b.pool {
			return
		}
		b.now++
		b.live.Take(e, func(k export.Key, x *export.Block) { b.row(k, x, b.now) },
			func(k export.Key, _ *export.Block) { b.begins[k] = b.now })
	default:
	}
}

func (b *Buffers) wanted(id event.AllocatorID) bool {
	p := b.places.Pool(id)
	if b.of != "" {
		return p.Name == b.of
	}
	return p.Within == "" && !b.places.Device(p.Device).Host
}

func (b *Buffers) row(k export.Key, x *export.Block, upper int64) {
	name := b.strs.At(x.Tensor)
	if name == "" || export.IsStack(name) {
		name = b.strs.At(x.Op)
	}
	b.rows++
	id := text(name) + "#" + strconv.FormatInt(x.Order+1, 10)
	_ = b.out.Write([]string{id, number(b.begins[k]), number(upper), number(x.Size)})
	delete(b.begins, k)
}

// Close writes the buffers that live to the end. It is an error when the
// allocator asked for is not in the timeline.
func (b *Buffers) Close() error {
	b.now++
	for _, k := range b.live.Rest() {
		x := b.live.Block(k)
		b.row(k, &x, b.now)
	}
	b.out.Flush()
	if err := b.out.Error(); err != nil {
		return fmt.Errorf("write the table of buffers: %w", err)
	}
	if b.found {
		return nil
	}
	if b.of == "" {
		return fmt.Errorf("no allocator of an accelerator is in it: say whose buffers with --of NAME (%s)", b.names())
	}
	return fmt.Errorf("no allocator %q is in it; there are %s", b.of, b.names())
}

func (b *Buffers) names() string {
	names := make([]string, 0, len(b.places.Pools()))
	for _, p := range b.places.Pools() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
