package fit

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

func lenet(batch ...int) *api.Workload {
	return &api.Workload{
		Model: "lenet5", Train: &api.Train{Optimizer: "adam"}, Batch: batch, Steps: max(2, len(batch)),
		Devices: []api.Device{{Kind: "gpu", Preset: "lab-256m"}},
	}
}

func passes(t *testing.T, w *api.Workload, changes []Change) bool {
	t.Helper()
	x := w.Clone()
	for _, c := range changes {
		if err := x.Set(c.Field, c.Value); err != nil {
			t.Fatal(err)
		}
	}
	res, err := launch.Run(*x, launch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Reason == event.EndDone
}

// TestWhatIsOfferedFits: a change whose rerun does not fit is never offered,
// each offer has a run of its own, and the batch is the largest: one more
// fails.
func TestWhatIsOfferedFits(t *testing.T) {
	w := lenet(8192)
	p := &Prober{Device: "/GPU:0"}
	a, ok := p.Ask(Question{Workload: w}, nil)
	if !ok || a.Base.Passed || len(a.Good) < 2 || a.Cut {
		t.Fatalf("%v %+v", ok, a)
	}
	ids := map[uint64]bool{}
	for _, x := range a.Good {
		if !passes(t, w, x.Changes) {
			t.Errorf("%s is offered and fails", x.Text())
		}
		if x.ID == 0 || ids[x.ID] {
			t.Errorf("%s: run %x is not its own", x.Text(), x.ID)
		}
		ids[x.ID] = true
		if x.Peak > x.Limit || x.Peak <= 0 {
			t.Errorf("%s: peak %d of %d", x.Text(), x.Peak, x.Limit)
		}
	}
	for _, x := range a.Bad {
		if passes(t, w, x.Changes) {
			t.Errorf("%s passes and is not offered", x.Text())
		}
	}
	n := a.Batch.Value
	if n == 0 || !passes(t, w, []Change{Batch.At(w, n)}) || passes(t, w, []Change{Batch.At(w, n+1)}) {
		t.Errorf("largest batch %d", n)
	}
	if a.Need == nil || a.Need.Peak <= a.Base.Limit {
		t.Errorf("without a limit: %+v", a.Need)
	}
	rest := a.Good
	for i := 1; i < len(rest); i++ {
		if rest[i].NanosPerSample() < rest[i-1].NanosPerSample() {
			t.Errorf("%s before %s, which is cheaper", rest[i-1].Text(), rest[i].Text())
		}
	}
}

// TestPairsAreRunsOfTheirOwn: where no single change helps, two may, and what
// they save together is not the sum of what each does.
func TestPairsAreRunsOfTheirOwn(t *testing.T) {
	w := &api.Workload{
		Model: "unet", Train: &api.Train{Optimizer: "adam"}, Batch: []int{1}, Steps: 2,
		Devices: []api.Device{{Kind: "gpu", Preset: "t4-16g", Logical: []int64{740 << 20}}},
	}
	a, ok := (&Prober{Device: "/GPU:0"}).Ask(Question{Workload: w}, nil)
	if !ok || a.Base.Passed || a.Need == nil {
		t.Fatalf("%v %+v", ok, a)
	}
	saved := map[string]int64{}
	for _, x := range a.Bad {
		if n, ok := (&Prober{Device: "/GPU:0"}).Need(w, x.Changes...); ok {
			saved[x.Text()] = a.Need.Peak - n.Peak
		}
	}
	pairs := 0
	for _, x := range a.Good {
		if len(x.Changes) == 1 {
			t.Errorf("%s passes alone: this limit tests no pair", x.Text())
			continue
		}
		pairs++
		if !passes(t, w, x.Changes) {
			t.Errorf("%s is offered and fails", x.Text())
		}
		one, other := Trial{Changes: x.Changes[:1]}, Trial{Changes: x.Changes[1:]}
		t.Logf("%s saves %d; alone they save %d and %d", x.Text(), a.Need.Peak-x.Peak, saved[one.Text()], saved[other.Text()])
		if a.Need.Peak-x.Peak == saved[one.Text()]+saved[other.Text()] {
			t.Errorf("%s: the savings add up to the byte, as if it had not been run", x.Text())
		}
	}
	if pairs == 0 {
		t.Errorf("no pair passes: %+v", a)
	}
}

func TestALeakIsOnlyPutOff(t *testing.T) {
	w := lenet(256)
	w.Mode, w.Keep, w.Steps = api.Eager, []string{"conv1/Tanh"}, 60
	p := &Prober{Device: "/GPU:0"}
	a, ok := p.Ask(Question{Workload: w, Leak: true, First: []Change{{Field: "keep"}}}, nil)
	if !ok || a.Base.Passed || len(a.Good) == 0 {
		t.Fatalf("%+v", a)
	}
	if c := a.Good[0].Changes; len(c) != 1 || c[0] != (Change{Field: "keep"}) {
		t.Errorf("first: %v", c)
	}
	if !a.Postponed || a.Batch.Value == 0 || a.Batch.Value >= 256 {
		t.Errorf("batch %+v, postponed %v", a.Batch, a.Postponed)
	}
	for _, x := range slices.Concat(a.Good, a.Bad) {
		if f := x.Changes[0].Field; f != "keep" && f != "batch" {
			t.Errorf("%s was tried on a leak", x.Text())
		}
	}
}

func TestBoundsEndTheSearch(t *testing.T) {
	w := lenet(8192)
	told := 0
	p := &Prober{Device: "/GPU:0"}
	a, ok := p.Ask(Question{Workload: w}, func(*Trial) bool { told++; return told < 2 })
	if !ok || told != 2 || !a.Cut || len(a.Good)+len(a.Bad) != 2 {
		t.Errorf("told %d times: %+v", told, a)
	}
	if _, ok := (&Prober{Device: "/GPU:0", MaxEvents: 10}).Ask(Question{Workload: w}, nil); ok {
		t.Error("ten events suffice for a run")
	}
	if _, ok := (&Prober{Device: "/GPU:0", Stop: func() bool { return true }}).Ask(Question{Workload: w}, nil); ok {
		t.Error("it ran although it was stopped")
	}
}

// TestOnlyWhatHelpsIsCombined: the pair of changes that help is a rerun too.
func TestOnlyWhatHelpsIsCombined(t *testing.T) {
	w := lenet(64)
	w.Steps, w.Input = 10, api.Input{Map: api.Map{Parallel: 1, Cost: 300_000}}
	p := &Prober{Device: "/GPU:0"}
	faster := func(base, x *Trial) bool { return Helps("input_bound", base, x) }
	base, list, ok := p.Compare(w, []Change{{Field: "input.map.parallel", Value: "8"}, {Field: "input.prefetch", Value: "auto"}, {Field: "seed", Value: "7"}}, faster)
	if !ok || !base.Passed || len(list) != 4 {
		t.Fatalf("%v %d", ok, len(list))
	}
	if last := list[3]; len(last.Changes) != 2 || last.Changes[0].Field != "input.map.parallel" || last.Changes[1].Field != "input.prefetch" || !faster(base, last) {
		t.Errorf("together: %s, %d ns of %d", last.Text(), last.Nanos, base.Nanos)
	}
	if _, ok := p.Try(w, Change{Field: "input.map.parallel", Value: "1"}); ok {
		t.Error("a change that changes nothing was run")
	}
	if _, ok := p.Try(w, Change{Field: "input.map.parallel", Value: "-5"}); ok {
		t.Error("an impossible change was run")
	}
	if _, ok := p.Try(w, Change{Field: "no.such.field", Value: "1"}); ok {
		t.Error("an unknown field was run")
	}
}

func TestEntriesOfDevices(t *testing.T) {
	w := &api.Workload{Devices: []api.Device{
		{Kind: "gpu", Hidden: true}, {Kind: "gpu", Logical: []int64{1 << 30, 1 << 30}}, {Kind: "tpu"}, {Kind: "gpu"}, {Virtual: 3},
	}}
	for name, want := range map[string]int{
		"/GPU:0": 1, "/device:GPU:1": 1, "/GPU:2": 3, "/GPU:3": 4, "/GPU:5": 4, "/GPU:6": -1, "/TPU:0": 2, "/CPU:0": -1, "": -1, "GPU": -1,
		"/job:localhost/replica:0/task:0/device:GPU:2": 3,
	} {
		if got := Entry(w, name); got != want {
			t.Errorf("%q is entry %d, want %d", name, got, want)
		}
	}
}

func TestListsKeepTheirRatios(t *testing.T) {
	w := lenet(32, 64, 7)
	if c := Batch.At(w, 128); c.Value != "[64,128,14]" {
		t.Errorf("%s", c)
	}
	if c := Batch.At(lenet(32), 5); c.Value != "5" {
		t.Errorf("%s", c)
	}
	if n := Batch.Of(w); n != 64 {
		t.Errorf("%d", n)
	}
}

// TestAllocatorsCompeteUnderOneLimit: an allocator that gets all that is free
// where nothing limits it is not offered for that.
func TestAllocatorsCompeteUnderOneLimit(t *testing.T) {
	for _, growth := range []bool{false, true} {
		w := lenet(1024)
		w.Devices[0].Growth, w.Devices[0].Held = growth, 200<<20
		a, ok := (&Prober{Device: "/GPU:0"}).Ask(Question{Workload: w}, nil)
		if !ok || a.Base.Passed {
			t.Fatalf("%v %+v", ok, a)
		}
		tried := false
		for _, x := range append(slices.Clone(a.Good), a.Bad...) {
			if !slices.Contains(x.Changes, Change{Field: "devices.0.allocator", Value: "torch"}) {
				continue
			}
			tried = true
			if x.Limit != a.Base.Limit || x.Passed && x.Peak > a.Base.Limit {
				t.Errorf("%s: peak %d under a limit of %d, was %d", x.Text(), x.Peak, x.Limit, a.Base.Limit)
			}
		}
		if !tried {
			t.Error("torch was not tried")
		}
	}
}

// TestALimitBelowThePeakIsExplained: the figures are those of the two runs, and
// a workload that does not fit, or whose limit is its peak, has none.
func TestALimitBelowThePeakIsExplained(t *testing.T) {
	p := &Prober{Device: "/GPU:0", MaxEvents: 50_000_000}
	w := lenet(1024)
	e, ok := p.Estimate(w, Batch, 2048)
	if !ok {
		t.Fatal("no estimate")
	}
	b, ok := e.Below()
	if e.SmallestLimit >= e.Asked.Peak || !ok || e.Smallest == nil || e.Smallest.Limit != e.SmallestLimit {
		t.Fatalf("limit %d, peak %d: %+v %v", e.SmallestLimit, e.Asked.Peak, b, ok)
	}
	if e.Asked.Unasked <= 0 || e.Asked.Unasked >= e.Asked.Peak || b.Enough != (e.Asked.Unasked >= e.Asked.Peak-e.SmallestLimit) {
		t.Errorf("%d bytes unasked for of %d: %+v", e.Asked.Unasked, e.Asked.Peak, b)
	}
	if want := float64(e.Smallest.Nanos) / float64(e.Asked.Nanos); b.Slower != want || b.Falls != (e.Smallest.Workspace < e.Asked.Workspace || want > 1.001) {
		t.Errorf("%+v, want %v times as long", b, want)
	}
	e.SmallestLimit = e.Asked.Peak
	if b, ok := e.Below(); ok {
		t.Errorf("at the peak: %+v", b)
	}
}

// TestTheSmallestLimitIsOfTheWorkloadAsWritten: a pool that grows needs a limit
// of its own, which is not that of the same workload without growth, and each
// is a run that passes, whose neighbour fails.
func TestTheSmallestLimitIsOfTheWorkloadAsWritten(t *testing.T) {
	text, err := os.ReadFile("../../examples/fragmentation.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, problems := workfile.Parse(text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := &Prober{Device: "/GPU:0", MaxEvents: 200_000_000}
	e, ok := p.Estimate(w, Batch, 400)
	if !ok || e.Asked.Passed {
		t.Fatalf("no estimate, or the example fits: %+v", e)
	}
	if e.Smallest == nil || e.SmallestLimit <= e.Asked.Limit {
		t.Fatalf("as written it fails with %d bytes, and is said to run with %d", e.Asked.Limit, e.SmallestLimit)
	}
	if e.Whole == nil || e.Whole.SmallestLimit >= e.SmallestLimit {
		t.Fatalf("without growth: %+v, with it %d", e.Whole, e.SmallestLimit)
	}
	for _, c := range e.Set {
		if c.Field == "devices.0.growth" {
			t.Errorf("as written it grows: %v", e.Set)
		}
	}
	for _, l := range []Least{e.Least, *e.Whole} {
		if l.Smallest.Limit != l.SmallestLimit || !passes(t, w, l.Set) {
			t.Errorf("%v: a limit of %d, want %d", l.Set, l.Smallest.Limit, l.SmallestLimit)
		}
	}
	if passes(t, w, fractionOf(w, e.SmallestLimit-mib, 256*mib)) {
		t.Error("it runs with 1 MiB less")
	}
}

func TestAFractionIsExactlyTheBytes(t *testing.T) {
	w := lenet(1)
	for _, total := range []int64{256 << 20, 15104 << 20, 79<<30 + 12345, 1_000_000_007} {
		for limit := int64(1); limit <= total>>20; limit += 1 + limit/7 {
			list := fractionOf(w, limit<<20, total)
			f, err := strconv.ParseFloat(list[0].Value, 64)
			if got := int64(float64(total) * f); err != nil || got != limit<<20 {
				t.Fatalf("%d MiB of %d: %s is %d bytes, %v", limit, total, list[0], got, err)
			}
		}
	}
	if list := fractionOf(w, 2, 1); list != nil {
		t.Errorf("more than the card: %v", list)
	}
}
