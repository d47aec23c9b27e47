package store

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
)

// Ops are found by their ids however many run at a time, and whether their ids
// take each other's places or come again.
func TestOpsEndWhateverTheirIDs(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 4))
		ids := []uint64{3, 20, 200, 5000}[seed%4]
		step := 1 + 15*(seed/4) // 16: all in one place
		tl := New(nil)
		var spans [2][]Span         // by device
		open := map[uint64][2]int{} // id -> device and span
		var skipped int64
		for i := range 6000 {
			e := event.Event{
				Kind: event.OpBegin, Time: int64(10 * i), Device: event.DeviceID(r.IntN(2)), ID: r.Uint64N(ids) * step,
				Op: event.StringID(i), Category: event.Category(r.IntN(4)), Step: event.NoStep,
			}
			was, running := open[e.ID]
			if r.IntN(2) == 0 {
				e.Kind = event.OpEnd
				if running {
					spans[was[0]][was[1]].End = e.Time
					delete(open, e.ID)
				} else {
					skipped++
				}
			} else {
				if running {
					skipped++ // its end was lost: it stays open
				}
				open[e.ID] = [2]int{int(e.Device), len(spans[e.Device])}
				spans[e.Device] = append(spans[e.Device], Span{
					Index: len(spans[e.Device]), Begin: e.Time, End: Alive, Op: e.Op, Step: e.Step, Class: uint8(e.Category),
				})
			}
			tl.Append([]event.Event{e})
		}
		if tl.Skipped() != skipped {
			t.Errorf("seed %d: %d events skipped, want %d", seed, tl.Skipped(), skipped)
		}
		for _, k := range tl.Tracks() {
			var busy Sums
			for i, want := range spans[k.Device] {
				if got := k.Span(i); got != want {
					t.Fatalf("seed %d, device %d: got %+v, want %+v", seed, k.Device, got, want)
				}
				if want.End != Alive {
					busy[want.Class] += want.End - want.Begin
				}
			}
			if got, _, n := k.Sum(0, 1<<40); got != busy || n != len(spans[k.Device]) {
				t.Errorf("seed %d, device %d: %d spans with %v busy, want %d with %v", seed, k.Device, n, got, len(spans[k.Device]), busy)
			}
		}
	}
}
