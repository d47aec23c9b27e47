package ingest

import (
	"testing"

	"tideline/protocol/event"
)

func TestTheOpsOfAHistoryThatHoldMostAreGroups(t *testing.T) {
	strs := new(event.Strings)
	g := newGrouping(strs)
	var out []event.Event
	facts := event.Event{Kind: event.AllocatorFacts, Allocator: 1, Text: strs.ID(event.Fields{{Key: "name", Value: "GPU_0_bfc"}}.Encode())}
	tell := func() {
		g.Emit(&facts)
		for i, op := range []string{"a", "b", "c", "d", "e", "f", "g", "", "h"} {
			g.Emit(&event.Event{Kind: event.Alloc, Allocator: 1, Address: uint64(i), Size: int64(100 + i), Op: strs.ID(op)})
		}
		for range 100 { // often, but never much at a time
			g.Emit(&event.Event{Kind: event.Free, Allocator: 1, Address: 0})
			g.Emit(&event.Event{Kind: event.Alloc, Allocator: 1, Address: 0, Size: 100, Op: strs.ID("a")})
		}
		g.Emit(&event.Event{Kind: event.Alloc, Allocator: 2, Address: 1, Size: 100, Op: strs.ID("a")})
	}
	tell()
	g.pass(event.SinkFunc(func(e *event.Event) { out = append(out, *e) }))
	tell()
	f, err := event.ParseFields(strs.At(out[0].Text))
	if err != nil || f.Text("name") != "GPU_0_bfc" {
		t.Fatalf("the facts are %v, %v", f, err)
	}
	for i, want := range []string{"h", "g", "f", "e", "d", "c"} {
		if got := f.Text(event.GroupKey(i)); got != want {
			t.Errorf("group %d is %q, not %q", i+1, got, want)
		}
	}
	for _, e := range out {
		if e.Kind != event.Alloc || e.Allocator != 1 {
			continue
		}
		op, want := strs.At(e.Op), "other"
		if op >= "c" {
			want = op
		}
		if got := e.Category.In(f); got != want {
			t.Errorf("a block of %q is in %q, not %q", op, got, want)
		}
	}
	if last := out[len(out)-1]; last.Category != event.Group1 {
		t.Errorf("another allocator's only op has category %v", last.Category)
	}
}
