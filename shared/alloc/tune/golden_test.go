package tune_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/tune"
	"tideline/shared/golden"
)

// torchTrace is a recorded program of PyTorch's golden data.
func torchTrace(tb testing.TB, name string) *contest.Trace {
	tb.Helper()
	f, err := os.Open(filepath.Join(golden.Dir(tb, "pytorch-allocator"), name+".trace.csv"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	rec.Emit(&event.Event{Kind: event.AllocatorFacts})
	in := bufio.NewScanner(f)
	in.Scan() // the names of the columns
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return n
	}
	for in.Scan() {
		row := strings.Split(in.Text(), ",")
		e := event.Event{Kind: event.Free}
		if row[0] == "e" {
			continue
		}
		e.Address = uint64(number(row[1])+1) << 20 // only names the block
		if row[0] == "a" {
			e.Kind, e.Size, e.Requested, e.Stream = event.Alloc, number(row[2]), number(row[2]), event.StreamID(number(row[3]))
		}
		rec.Emit(&e)
	}
	return rec.Traces()[0]
}

// What PyTorch's own code reserved for the recorded programs is what a replay
// without a limit reserves, and where the proof of the smallest limit begins.
func TestThePeaksOfPyTorchsGoldens(t *testing.T) {
	for name, want := range map[string][2]int64{ // by default, and with expandable segments where known
		"small-then-large":       {268435456, 0},
		"large-then-small":       {134217728, 0},
		"size-boundaries":        {205520896, 0},
		"random-small":           {29360128, 0},
		"training-growing-batch": {3143630848, 933232640},
	} {
		x := torchTrace(t, name)
		for i, set := range []string{"expandable_segments=false", "expandable_segments=true"} {
			r := x.Run(entry(t, "torch", set), contest.Options{Unlimited: true})
			if want[i] != 0 && r.PeakReserved != want[i] {
				t.Errorf("%s %s: %d reserved, want %d", name, set, r.PeakReserved, want[i])
			}
		}
	}
}

// The recorded program whose batch grows: PyTorch's default reserves 3.14 GB for
// 0.91 GB; what is found is no worse than what expandable segments are known to
// reach, and is held true by a replay of the answer and its neighbour.
func TestTheBestSettingForAGrowingBatch(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds, and the same elsewhere")
	}
	x := torchTrace(t, "training-growing-batch")
	e := entry(t, "torch")
	a := tune.Best(x, e.Kind, tune.Options{Limit: 4 << 30, Calls: 4_000_000})
	if a.Default.At.PeakReserved != 3143630848 || !a.Default.Least.Proven || !a.Default.Least.Complete() {
		t.Errorf("default %+v", a.Default)
	}
	best := contest.Entry{Kind: e.Kind, Settings: a.Best.Settings}
	if a.Best.Least.Limit > 933232640 || a.Best.At.PeakReserved > 3143630848 || !a.Best.Least.Complete() {
		t.Errorf("best %v %+v", a.Best.Settings, a.Best)
	}
	if best.Title() != "torch" && (!tune.Serves(x, best, a.Best.Least.Limit) || tune.Serves(x, best, a.Best.Least.Below)) {
		t.Errorf("%s: %+v is not so", best.Title(), a.Best.Least)
	}
	t.Logf("default %d, reserves %d; %s %d, reserves %d; %d tried in %d replays, %s",
		a.Default.Least.Limit, a.Default.At.PeakReserved, best.Title(), a.Best.Least.Limit, a.Best.At.PeakReserved, a.Tried, a.Replays, a.Scope)
}
