package contest_test

import (
	"testing"

	"tideline/shared/alloc/contest"
)

// What builds a state up is replayed, but what it asked for in passing counts
// neither as wanted nor as a peak in use.
func TestAStateIsBuiltUpBeforeAnythingCounts(t *testing.T) {
	const mib = 1 << 20
	b := contest.NewBuilder(&contest.Trace{Name: "x", Kind: "torch"})
	for slot := range int32(3) {
		b.Add(contest.Call{Kind: contest.Allocate, Bytes: 30 * mib, Slot: slot})
	}
	b.Add(contest.Call{Kind: contest.Free, Slot: 1})
	b.Add(contest.Call{Kind: contest.Free, Slot: 2})
	b.Begin()
	b.Add(contest.Call{Kind: contest.Allocate, Bytes: 28 * mib, Slot: 1})
	b.Add(contest.Call{Kind: contest.GiveBack})
	b.Add(contest.Call{Kind: contest.Allocate, Bytes: 1 << 40, Slot: 2, Fails: true})
	x := b.Trace()
	if x.Allocs != 2 || x.Floor != 58*mib || x.Begins != 5 || x.Len() != 8 || x.OutOfMem != 1 || x.Slots != 3 {
		t.Errorf("%+v", x)
	}
	r := x.Run(entry(t, "torch"), contest.Options{Limit: 100 * mib})
	// The small request leaves one of the two idle segments to be given back.
	if r.PeakReserved != 90*mib || r.PeakInUse != 58*mib || r.Reserved != 60*mib || r.OutOfMemory != 1 || r.FirstFailed != 8 || r.PeakCall != 6 {
		t.Errorf("%+v", r)
	}
}
