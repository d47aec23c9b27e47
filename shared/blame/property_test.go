package blame

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
)

// TestAnyEventsAddUp: whatever comes, in whatever order, tables sum to what is
// in use, and that is what counting by hand gives.
func TestAnyEventsAddUp(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test
		var strs event.Strings
		r := NewRecorder(&strs)
		live := map[uint64]int64{}
		var inUse, most, now int64
		names := []event.StringID{0, strs.ID("a"), strs.ID("b"), strs.ID("before the trace")}
		stacks := []event.StringID{0, strs.ID("float[3]"), strs.ID("m /x/m.py:1\na /x/a.py:2")}
		for range rng.IntN(400) {
			e := event.Event{Time: now, Address: uint64(rng.IntN(40)), Op: names[rng.IntN(len(names))], Tensor: stacks[rng.IntN(len(stacks))]}
			now += int64(rng.IntN(3))
			switch rng.IntN(7) {
			case 0, 1, 2:
				e.Kind, e.Size = event.Alloc, int64(rng.IntN(1000))-5
				e.Requested = e.Size
				inUse -= live[e.Address]
				delete(live, e.Address)
				if e.Size > 0 {
					live[e.Address] = e.Size
					inUse += e.Size
				}
			case 3, 4, 5:
				e.Kind = event.Free
				inUse -= live[e.Address]
				delete(live, e.Address)
			default:
				e.Kind = event.Forward
			}
			most = max(most, inUse)
			r.Emit(&e)
		}
		r.Growth()
		for _, h := range r.Held() {
			sum, blocks := h.Unknown+h.MoreBytes, h.UnknownBlocks
			for _, x := range h.Holders {
				sum, blocks = sum+x.Bytes, blocks+x.Blocks
			}
			want := most
			if h.At == "end" {
				want = inUse
			}
			if sum != want || h.Bytes != want || blocks != h.Blocks || h.At == "end" && h.Blocks != int64(len(live)) {
				t.Fatalf("seed %d, %s: %d in the table, %d in all, want %d; %d blocks of %d", seed, h.At, sum, h.Bytes, want, blocks, h.Blocks)
			}
		}
	}
}
