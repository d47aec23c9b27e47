package analysis

import (
	"testing"

	"tideline/protocol/event"
)

// tell feeds events to a Timeline.
func tell(strs *event.Strings, events ...event.Event) *Summary {
	tl := NewTimeline(strs)
	for i := range events {
		tl.Emit(&events[i])
	}
	return tl.Summary()
}

func TestThePeakIsTakenApartAsItWas(t *testing.T) {
	s := tell(new(event.Strings),
		event.Event{Kind: event.RegionAdd, Address: 4096, Size: 100},
		event.Event{Kind: event.Alloc, Time: 1, Address: 4096, Size: 10, Category: event.Parameter},
		event.Event{Kind: event.Alloc, Time: 2, Address: 4106, Size: 10, Category: event.Activation},
		event.Event{Kind: event.Free, Time: 3, Address: 4106, Size: 10},
		event.Event{Kind: event.Alloc, Time: 4, Address: 4106, Size: 15, Category: event.Activation},
		event.Event{Kind: event.Forward, Time: 5, Address: 4106, Size: 15, Category: event.Gradient},
		event.Event{Kind: event.Alloc, Time: 6, Address: 4130, Size: 1, Category: event.Input},
		event.Event{Kind: event.Free, Time: 7, Address: 4106, Size: 15},
		event.Event{Kind: event.RegionRemove, Time: 8, Address: 4096, Size: 100},
		event.Event{Kind: event.Free, Time: 9, Address: 77, Size: 1},
	)
	if len(s.Allocators) != 1 {
		t.Fatalf("%+v", s)
	}
	a := s.Allocators[0]
	want := [event.NumCategories]int64{event.Parameter: 10, event.Gradient: 15, event.Input: 1}
	if a.PeakByCategory != want || a.PeakInUse != 26 || a.PeakAt != 6 || a.InUse != 11 || a.PeakReserved != 100 || a.Reserved != 0 {
		t.Errorf("%+v", a)
	}
	if a.Allocs != 4 || a.Frees != 2 || a.UnknownAddresses != 1 {
		t.Errorf("%d allocations, %d frees, %d unknown", a.Allocs, a.Frees, a.UnknownAddresses)
	}
}

func TestDriverMemoryIsSharedByTheDevicesOfACard(t *testing.T) {
	strs := new(event.Strings)
	card := strs.ID("name=/GPU:0\ncard=a\ntotal=1000\nfree=900\n")
	tl := NewTimeline(strs)
	for _, e := range []event.Event{
		{Kind: event.DeviceFacts, Device: 0, Text: card},
		{Kind: event.DeviceFacts, Device: 1, Text: card},
		{Kind: event.RegionAdd, Device: 0, Allocator: 0, Address: 1, Size: 300},
		{Kind: event.RegionAdd, Device: 1, Allocator: 1, Address: 1, Size: 200},
	} {
		tl.Emit(&e)
	}
	if got := tl.driverFree(tl.device(0)); got.N != 400 || !got.Known {
		t.Errorf("%+v left, want 400", got)
	}
}

// TestHostileIdsTakeNoMemory: ids of a damaged file are not trusted.
func TestHostileIdsTakeNoMemory(t *testing.T) {
	s := tell(new(event.Strings),
		event.Event{Kind: event.Alloc, Device: 65535, Allocator: 65535, Address: 1, Size: 1, Category: 255},
		event.Event{Kind: event.Free, Device: 65535, Allocator: 65535, Address: 1},
		event.Event{Kind: event.TransferBegin, Cause: 255},
		event.Event{Kind: event.OutOfMemory, Device: 65535, Allocator: 65535, Text: 99},
		event.Event{Kind: 200},
	)
	if s.Events != 5 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkTimeline(b *testing.B) {
	b.ReportAllocs()
	tl := NewTimeline(new(event.Strings))
	e := event.Event{Kind: event.Alloc, Size: 256, Category: event.Activation}
	i := uint64(0)
	for b.Loop() {
		e.Kind, e.Address = event.Alloc, 4096+256*(i%1000)
		tl.Emit(&e)
		if i >= 500 {
			e.Kind, e.Address = event.Free, 4096+256*((i-500)%1000)
			tl.Emit(&e)
		}
		i++
	}
}
