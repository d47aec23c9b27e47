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

// TestWhatAnAllocatorCosts: the peaks have times of their own, the floor is what
// was asked for at most, and what is held beyond it is the allocator's.
func TestWhatAnAllocatorCosts(t *testing.T) {
	s := tell(new(event.Strings),
		event.Event{Kind: event.RegionAdd, Time: 1, Address: 4096, Size: 100},
		event.Event{Kind: event.Alloc, Time: 2, Address: 4096, Size: 40, Requested: 33},
		event.Event{Kind: event.Alloc, Time: 3, Address: 4136, Size: 40, Requested: 40},
		event.Event{Kind: event.Forward, Time: 4, Address: 4136, Size: 40, Requested: 7},
		event.Event{Kind: event.Free, Time: 5, Address: 4096, Size: 40},
		event.Event{Kind: event.RegionRefused, Time: 6, Size: 400},
		event.Event{Kind: event.RegionAdd, Time: 7, Address: 8192, Size: 60},
		event.Event{Kind: event.Alloc, Time: 8, Address: 8192, Size: 20, Requested: 1},
		event.Event{Kind: event.RegionRemove, Time: 9, Address: 4096, Size: 100},
	)
	a := s.Allocators[0]
	if a.PeakAt != 3 || a.PeakReserved != 160 || a.PeakReservedAt != 7 || a.Floor != 73 || a.Cost() != 87 || a.DriverCalls != 4 || a.Utilisation() != 0.5 {
		t.Errorf("%+v, cost %d, utilisation %g", a, a.Cost(), a.Utilisation())
	}
	if n := (&AllocatorSummary{}).Utilisation(); n != 1 {
		t.Errorf("utilisation of nothing: %g", n)
	}
}

// TestRegionsThatLittleKeepsHaveTheirHolder: of a failure, by the op of the
// largest block.
func TestRegionsThatLittleKeepsHaveTheirHolder(t *testing.T) {
	strs := new(event.Strings)
	s := tell(strs,
		event.Event{Kind: event.AllocatorFacts, Size: 300, Text: strs.ID("name=GPU_0_bfc\nkind=bfc\n")},
		event.Event{Kind: event.RegionAdd, Address: 0x100, Size: 100},
		event.Event{Kind: event.RegionAdd, Address: 0x1000, Size: 200},
		event.Event{Kind: event.Alloc, Address: 0x100, Size: 90, Requested: 90, Op: strs.ID("batch")},
		event.Event{Kind: event.Alloc, Address: 0x1000, Size: 10, Requested: 10, Op: strs.ID("step")},
		event.Event{Kind: event.Alloc, Address: 0x100a, Size: 20, Requested: 20, Op: strs.ID("kernel")},
		event.Event{Kind: event.OutOfMemory, Size: 180, Requested: 180, Text: strs.ID("r 100 100\nu 100 90 90\nf 15a 10 0\nr 1000 200\nu 1000 10 10\nu 100a 20 20\nf 101e 170 0\n")},
	)
	if r := s.Failures[0].Reading; r.Packed().N != 180 || r.Shortfall().N != 0 || r.LargestFree.N != 170 {
		t.Errorf("packed %+v, short %+v, largest %+v", r.Packed(), r.Shortfall(), r.LargestFree)
	}
	p := s.Failures[0].Pins
	if len(p) != 2 || p[0].Address != 0x1000 || p[0].Idle != 170 || p[0].Live != 30 || p[0].Blocks != 2 || p[0].Holder != "kernel" || p[1].Holder != "batch" {
		t.Errorf("%+v", p)
	}
}
