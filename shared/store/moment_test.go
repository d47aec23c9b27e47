package store

import (
	"testing"

	"tideline/protocol/event"
)

// A graph's blocks may come and go at one time: what is asked for at a peak is
// the peak, block by block.
func TestFullestIsThePeakOfItsInstant(t *testing.T) {
	tl := New(nil)
	at := func(time int64, kind event.Kind, address uint64, size int64) event.Event {
		return event.Event{Kind: kind, Time: time, Device: 1, Address: address, Size: size, Requested: size}
	}
	tl.Append([]event.Event{
		at(10, event.Alloc, 0x1000, 100),
		at(20, event.Alloc, 0x2000, 50),
		at(20, event.Alloc, 0x3000, 70),
		at(20, event.Free, 0x2000, 0),
		at(20, event.Free, 0x1000, 0),
		at(30, event.Free, 0x3000, 0),
	})
	p := tl.Pools()[0]
	for _, c := range []struct {
		at, fullest, after int64
		live               []int32
	}{{5, 0, 0, nil}, {10, 100, 100, []int32{0}}, {15, 100, 100, []int32{0}}, {20, 220, 70, []int32{0, 1, 2}}, {25, 70, 70, []int32{2}}, {30, 0, 0, nil}} {
		if got := p.In(p.Fullest(c.at)); got.InUse != c.fullest || got.ByCategory.Total() != c.fullest || got.Time != c.at {
			t.Errorf("fullest at %d: %+v, want %d in use", c.at, got, c.fullest)
		}
		if got := p.At(c.at).InUse; got != c.after {
			t.Errorf("at %d: %d in use, want %d", c.at, got, c.after)
		}
		live := p.LiveIn(nil, p.Fullest(c.at))
		if len(live) != len(c.live) {
			t.Errorf("live at %d: %v, want %v", c.at, live, c.live)
			continue
		}
		for i := range live {
			if live[i] != c.live[i] {
				t.Errorf("live at %d: %v, want %v", c.at, live, c.live)
			}
		}
	}
	peak, bytes := p.PeakPoint(0, 31)
	if got := p.In(p.Fullest(peak)).InUse; got != bytes {
		t.Errorf("at the peak: %d in use, want %d", got, bytes)
	}
}

// A failed step is unwound in the nanosecond of its failure: what held the
// memory is what was alive before that.
func TestAFailureIsSeenAsItWasAndNotUnwound(t *testing.T) {
	tl := New(nil)
	at := func(time int64, kind event.Kind, address uint64, size int64) event.Event {
		return event.Event{Kind: kind, Time: time, Device: 1, Address: address, Size: size, Requested: size}
	}
	tl.Append([]event.Event{
		at(5, event.RegionAdd, 0x1000, 0x1000),
		at(10, event.Alloc, 0x1000, 100),
		at(20, event.RegionAdd, 0x2000, 0x1000),
		at(20, event.Alloc, 0x2000, 300),
		at(20, event.Free, 0x2000, 0),
		at(20, event.Alloc, 0x1200, 50),
		at(20, event.OutOfMemory, 0, 4096),
		at(20, event.Free, 0x1200, 0),
		at(20, event.Free, 0x1000, 0),
		at(20, event.RegionRemove, 0x2000, 0x1000),
		at(20, event.Alloc, 0x1400, 7),
	})
	p, o := tl.Pools()[0], tl.OOMs()[0]
	for _, c := range []struct {
		name            string
		m               Moment
		inUse, reserved int64
		live            int
	}{
		{"the failure", o.Moment, 150, 0x2000, 2},
		{"what the time means", tl.Seen(p, 20), 150, 0x2000, 2},
		{"the fullest", p.Fullest(20), 400, 0x2000, 2},
		{"before", tl.Seen(p, 19), 100, 0x1000, 1},
		{"after", p.After(20), 7, 0x1000, 1},
		{"nothing", Moment{}, 0, 0, 0},
	} {
		s, m := p.In(c.m), p.ChunkMapIn(c.m)
		held, used, _, _ := m.Totals()
		if s.InUse != c.inUse || used != c.inUse || s.Reserved != c.reserved || held != c.reserved || len(p.LiveIn(nil, c.m)) != c.live {
			t.Errorf("%s: %d in use, %d in the map, of %d reserved, %d in the map, %d blocks; want %+v",
				c.name, s.InUse, used, s.Reserved, held, len(p.LiveIn(nil, c.m)), c)
		}
	}
}

// One op may hold a result and workspace: neither is told as the other.
func TestTotalsByOpKeepCategoriesApart(t *testing.T) {
	tl := New(nil)
	op := tl.Strings().ID("conv")
	for i, c := range []event.Category{event.Gradient, event.Temporary, event.Temporary} {
		tl.Append([]event.Event{{Kind: event.Alloc, Address: uint64(i+1) << 12, Size: 100, Requested: 90, Op: op, Category: c}})
	}
	got := tl.Pools()[0].TotalsByOp([]int32{0, 1, 2}, 0)
	if len(got) != 2 || got[0].Category != event.Temporary || got[0].Bytes != 200 || got[0].Count != 2 || got[1].Category != event.Gradient || got[1].Waste != 10 {
		t.Errorf("summed as %+v", got)
	}
}
