package analysis

import (
	"testing"

	"tideline/protocol/event"
)

// planned tells a run of two executions: an arena in the pool, tensors in it.
func planned(strs *event.Strings, before int64) []event.Event {
	outer, inner := strs.ID("name=GPU_0_bfc\n"), strs.ID("name=GPU_0_planned\nkind=planned\nwithin=GPU_0_bfc\n")
	list := []event.Event{
		{Kind: event.AllocatorFacts, Allocator: 0, Text: outer},
		{Kind: event.AllocatorFacts, Allocator: 1, Text: inner},
		{Kind: event.RegionAdd, Address: 4096, Size: 10_000},
		{Kind: event.Alloc, Address: 4096, Size: 100, Category: event.Parameter},
	}
	if before > 0 {
		list = append(list,
			event.Event{Kind: event.Alloc, Address: 9000, Size: before, Category: event.Temporary},
			event.Event{Kind: event.Free, Address: 9000, Size: before})
	}
	for _, arena := range []int64{500, 800} {
		list = append(list,
			event.Event{Kind: event.Alloc, Address: 5000, Size: arena, Category: event.Temporary},
			event.Event{Kind: event.RegionAdd, Allocator: 1, Address: 5000, Size: arena},
			event.Event{Kind: event.Alloc, Allocator: 1, Address: 5000, Size: arena - 200, Category: event.Activation},
			event.Event{Kind: event.Alloc, Allocator: 1, Address: 5000 + uint64(arena) - 200, Size: 150, Category: event.Gradient},
			event.Event{Kind: event.Free, Allocator: 1, Address: 5000, Size: arena - 200},
			event.Event{Kind: event.Free, Allocator: 1, Address: 5000 + uint64(arena) - 200, Size: 150},
			event.Event{Kind: event.RegionRemove, Allocator: 1, Address: 5000, Size: arena},
			event.Event{Kind: event.Free, Address: 5000, Size: arena})
	}
	return list
}

// TestAnArenaIsTakenApartAndNotCountedTwice: the arena is one temporary block
// of the pool; its tensors are another allocator's.
func TestAnArenaIsTakenApartAndNotCountedTwice(t *testing.T) {
	strs := new(event.Strings)
	s := tell(strs, planned(strs, 0)...)
	if len(s.Allocators) != 2 || s.Allocators[1].Within != "GPU_0_bfc" {
		t.Fatalf("%+v", s.Allocators)
	}
	a := s.Allocators[0]
	want := [event.NumCategories]int64{event.Parameter: 100, event.Activation: 600, event.Gradient: 150}
	if a.PeakInUse != 900 || a.PeakByCategory != want || a.ArenaUnused != 50 {
		t.Errorf("peak %d, %v, %d unused", a.PeakInUse, a.PeakByCategory, a.ArenaUnused)
	}
}

// TestAPeakWithoutAnArenaStaysAsItIs: what an arena held is nothing of a peak
// that was reached before.
func TestAPeakWithoutAnArenaStaysAsItIs(t *testing.T) {
	strs := new(event.Strings)
	a := tell(strs, planned(strs, 5000)...).Allocators[0]
	if want := [event.NumCategories]int64{event.Parameter: 100, event.Temporary: 5000}; a.PeakByCategory != want || a.ArenaUnused != 0 {
		t.Errorf("%v, %d unused", a.PeakByCategory, a.ArenaUnused)
	}
}

// TestAFailureInsideAnExecutionNamesItsTensors: not the arena as a whole.
func TestAFailureInsideAnExecutionNamesItsTensors(t *testing.T) {
	strs := new(event.Strings)
	list := planned(strs, 0)[:8] // up to the first execution's tensors
	list[7].Op = strs.ID("dense/MatMul")
	list[6].Op = strs.ID("dense/Relu")
	m := event.ChunkMap{{Address: 4096, Size: 10_000, Chunks: []event.Chunk{{Address: 4096, Size: 10_000, Requested: 10_000, InUse: true}}}}
	list = append(list, event.Event{Kind: event.OutOfMemory, Size: 99_999, Requested: 99_999, Text: strs.ID(m.Encode())})
	f := tell(strs, list...).Failures[0]
	var sum int64
	for _, h := range f.ByKind {
		if h.Name == event.Temporary.String() {
			t.Errorf("the arena itself is told: %+v", f.ByKind)
		}
		sum += h.Bytes
	}
	if sum != 600 || f.ByOp[0].Name != "dense/Relu" || f.ByOp[0].Bytes != 300 {
		t.Errorf("%d bytes by category, by op %+v", sum, f.ByOp)
	}
}
