package store

import (
	"testing"

	"tideline/protocol/event"
)

// A graph's blocks may come and go at one time: what is asked for at a peak is
// the peak, block by block.
func TestFullestAtShowsThePeakOfItsInstant(t *testing.T) {
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
		if got := p.FullestAt(c.at); got.InUse != c.fullest || got.ByCategory.Total() != c.fullest || got.Time != c.at {
			t.Errorf("fullest at %d: %+v, want %d in use", c.at, got, c.fullest)
		}
		if got := p.At(c.at).InUse; got != c.after {
			t.Errorf("at %d: %d in use, want %d", c.at, got, c.after)
		}
		live := p.LiveAtFullest(nil, c.at)
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
	if got := p.FullestAt(peak).InUse; got != bytes {
		t.Errorf("at the peak: %d in use, want %d", got, bytes)
	}
}
