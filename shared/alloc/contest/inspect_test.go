package contest_test

import (
	"fmt"
	"strings"
	"testing"

	"tideline/shared/alloc/contest"
)

// Fifty holes of 2 MiB: there are 100 MiB, and none of it for 3 MiB.
func TestInspectTellsWhatStillFits(t *testing.T) {
	var b strings.Builder
	b.WriteString("bfc-trace 1\no limit 209715200\n")
	for i := range 100 {
		fmt.Fprintf(&b, "a %d 2097152\n", i)
	}
	for i := 0; i < 100; i += 2 {
		fmt.Fprintf(&b, "f %d\n", i)
	}
	b.WriteString("a 200 3145728\n")
	x := parse(t, b.String())
	e := entry(t, "bfc")
	r := x.Run(e, contest.Options{})
	h := x.Inspect(e, contest.Options{}, &r)
	if h.Peak == nil || h.Peak.InUse != 200<<20 || h.Peak.Usable != 0 || h.Peak.NeverUsed != 0 || h.Peak.Call != 101 || h.Peak.Pinned != 0 {
		t.Errorf("at the peak: %+v", h.Peak)
	}
	f := h.Failure
	if f == nil || f.InUse != 100<<20 || f.For != 3<<20 || f.Usable != 0 || f.Pinned != 100<<20 || f.PinnedBySmall != 0 || f.Call != 151 ||
		len(f.Pins) != 1 || f.Pins[0].Blocks != 50 || f.Pins[0].Idle != 100<<20 {
		t.Errorf("at the failure: %+v", f)
	}
}

func TestInspectCountsWhatFitsByAllocatingIt(t *testing.T) {
	x := parse(t, "bfc-trace 1\no limit 10485760\na 0 3145728\na 1 1048576\na 2 1048576\nf 1\n")
	e := entry(t, "bfc")
	r := x.Run(e, contest.Options{})
	p := x.Inspect(e, contest.Options{}, &r).Peak
	// 5 of 10 MiB are in use: one more of 3 MiB fits; 5 MiB were in no block yet.
	if p.Usable != 1 || p.For != 3<<20 || p.NeverUsed != 5<<20 || p.Reserved != 10<<20 {
		t.Errorf("%+v", p)
	}
	// What growth is not asked for does not count, and other pools do not either:
	// PyTorch's segment of 2 MiB for small blocks serves no 3 MiB.
	small := parse(t, "bfc-trace 1\no limit 104857600\na 0 1000\na 1 3145728\n")
	e = entry(t, "torch")
	r = small.Run(e, contest.Options{})
	p = small.Inspect(e, contest.Options{}, &r).Peak
	if p.Reserved != 22<<20 || p.Usable != 5 { // of the 17 MiB that are left of the segment of 20
		t.Errorf("%+v", p)
	}
}

// The segment that one small block keeps: without that block it goes back, with
// exactly the bytes that were named.
func TestWithoutThePinTheRegionGoesBack(t *testing.T) {
	with := "bfc-trace 1\no limit 209715200\na 0 1000\na 1 1000000\nf 1\na 2 100000000\nf 2\na 3 209715200\n"
	x := parse(t, with)
	e := entry(t, "torch")
	r := x.Run(e, contest.Options{})
	f := x.Inspect(e, contest.Options{}, &r).Failure
	if f == nil || f.PinnedBySmall != 2<<20-1024 || len(f.Pins) != 1 || f.Pins[0].Live != 1024 || f.Pins[0].Size != 2<<20 {
		t.Fatalf("%+v %+v", r, f)
	}
	without := parse(t, strings.Replace(with, "a 0 1000\n", "a 0 1000\nf 0\n", 1))
	if r := without.Run(e, contest.Options{}); r.OutOfMemory != 0 {
		t.Errorf("the segment did not go back: %+v", r)
	}
}

func TestInspectIsTheSameForEveryAllocatorTwice(t *testing.T) {
	x := load(t, "oom-fragmented")
	for _, e := range contest.Matrix() {
		r := x.Run(e, contest.Options{})
		if r.Err != nil {
			continue
		}
		a, b := x.Inspect(e, contest.Options{}, &r), x.Inspect(e, contest.Options{}, &r)
		if a.Peak == nil || fmt.Sprint(*a.Peak) != fmt.Sprint(*b.Peak) || (a.Failure == nil) != (r.OutOfMemory == 0) {
			t.Errorf("%s: %+v %+v", e.Title(), a.Peak, b.Peak)
		}
		if p := a.Peak; p.NeverUsed < 0 || p.NeverUsed > p.Reserved || p.Pinned > p.Reserved-p.InUse && e.Kind.Name != "async" {
			t.Errorf("%s: %+v", e.Title(), p)
		}
		if a.Failure != nil && a.Failure.Usable != 0 && r.Refused == 0 {
			t.Errorf("%s fails a request that would be served: %+v", e.Title(), a.Failure)
		}
	}
}
