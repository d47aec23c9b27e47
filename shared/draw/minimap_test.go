package draw

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// waiting is a run of 100 µs whose last request waits ten seconds; tail goes on
// for as long after it.
func waiting(tail int64) *store.Timeline {
	tl := store.New(nil)
	es := []event.Event{
		{Kind: event.DeviceFacts, Text: tl.Strings().ID("name=/GPU:0\nkind=gpu\n")},
		{Kind: event.AllocatorFacts, Size: 64 << 20, Text: tl.Strings().ID("name=GPU_0_bfc\nkind=bfc\n")},
		{Kind: event.RegionAdd, Address: 1 << 20, Size: 64 << 20},
	}
	for i := range 50 {
		es = append(es, event.Event{Kind: event.Alloc, Time: int64(i) * 2000, Address: uint64(i+1) << 20, Size: 1 << 20, Requested: 1 << 20})
	}
	es = append(es,
		event.Event{Kind: event.OutOfMemory, Time: 10e9 + 100_000, Size: 1 << 30, Requested: 1 << 30},
		event.Event{Kind: event.End, Time: 10e9 + 100_000 + tail, Cause: uint8(event.EndOutOfMemory)})
	tl.Append(es)
	return tl
}

// TestTheOverviewLeavesAWaitOut: the run's own time has most of the columns, a
// column's time lies in it, and the failure at the end is seen.
func TestTheOverviewLeavesAWaitOut(t *testing.T) {
	for _, tail := range []int64{0, 50_000} {
		tl := waiting(tail)
		v := &View{T0: 0, T1: 100_000, W: 400, H: 40, Theme: Light()}
		for _, l := range []Lane{{Kind: MinimapLane, H: 40}, {Kind: MinimapLane, H: 40, Idle0: 98_000, Idle1: 10e9 + 100_000}} {
			a := axisOf(tl, v, &l)
			for x := range v.W - 1 {
				now, next := a.timeAt(x), a.timeAt(x+1)
				if back := a.x(now); next < now || back < x-1 || back > x+1 {
					t.Fatalf("tail %d, idle %d: column %d begins at %d, which is in column %d; the next at %d", tail, l.Idle1, x, now, back, next)
				}
			}
			broken := l.Idle1 > 0
			if busy := a.x(98_000); broken && (busy < 200 || a.gap != 24) || !broken && busy > 1 {
				t.Errorf("tail %d: the run's own time ends in column %d, the gap has %d", tail, busy, a.gap)
			}
			if first, last := tl.Span(); a.x(first) != 0 || a.x(last) < v.W-2 || a.x(last) > v.W {
				t.Errorf("tail %d: %d to %d", tail, a.x(first), a.x(last))
			}
			v.T0, v.T1 = tl.Span() // what lies outside of the view is dimmed
			img := NewImage(v.W, v.H)
			v.Lanes = []Lane{l}
			var r Renderer
			r.Frame(img, tl, v)
			if warned := warnings(img, &r); warned != 1 {
				t.Errorf("tail %d, idle %d: the failure is seen in %d columns", tail, l.Idle1, warned)
			}
		}
	}
}

// warnings counts the columns that begin with the colour of failures.
func warnings(img *Image, r *Renderer) (n int) {
	c := img.canvas(Rect{0, 0, img.W, img.H})
	for x := range img.W {
		if c.get(x, 0) == r.palette.warning {
			n++
		}
	}
	return n
}
