package whatif_test

import (
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis/input"
	"tideline/shared/analysis/input/whatif"
	"tideline/shared/launch"
	"tideline/shared/pipeline"
)

func read(t *testing.T, w api.Workload) input.Reading {
	t.Helper()
	table := new(event.Strings)
	r := input.NewRun(table)
	res, err := launch.Run(w, launch.Options{Strings: table, Sink: r})
	if err != nil || res.Reason != event.EndDone {
		t.Fatalf("%v: %v %s", err, res.Reason, res.Message)
	}
	return r.Reading()
}

// A whole run that waits for its map stage, in each mode: the reading names the
// stage, and reruns with what may help show what it brings.
func TestTheFindingIsVerifiedByReruns(t *testing.T) {
	for _, mode := range []api.Mode{api.Eager, api.Graph, api.Planned} {
		w := api.Workload{
			Model: "lenet5", Mode: mode, Train: &api.Train{Optimizer: "sgd"}, Batch: []int{32}, Steps: 60,
			Input:   api.Input{Source: "digits", Shuffle: 64, Map: api.Map{Cost: 60_000}},
			Devices: []api.Device{{Kind: "gpu", Preset: "t4-16g"}},
		}
		before := read(t, w)
		if before.Summary.Verdict != input.HighlyBound || len(before.Stages) == 0 || before.Stages[0].Stage != pipeline.StageMap || before.WarmStall <= before.Stalled/59 {
			t.Errorf("%s: %v, %+v, warm-up %d", mode, before.Summary.Verdict, before.Stages, before.WarmStall)
		}
		all := w
		for _, c := range whatif.ForWorkload(&w, before.Stages[0].Stage) {
			one := w
			for _, set := range c.Set {
				path, value, _ := strings.Cut(set, "=")
				if err := one.Set(path, value); err != nil {
					t.Fatal(err)
				}
				if err := all.Set(path, value); err != nil {
					t.Fatal(err)
				}
			}
			after := read(t, one)
			if after.Time.Nanos >= before.Time.Nanos && c.Set[0] != "input.prefetch=auto" {
				t.Errorf("%s, %v: %d ms, %d before", mode, c.Set, after.Time.Nanos/1_000_000, before.Time.Nanos/1_000_000)
			}
		}
		after := read(t, all)
		if after.StalledFraction() >= before.StalledFraction()/4 || after.Time.Nanos >= before.Time.Nanos*3/4 {
			t.Errorf("%s: all changes: stalled %.0f %% in %d ms, %.0f %% in %d ms before", mode,
				100*after.StalledFraction(), after.Time.Nanos/1_000_000, 100*before.StalledFraction(), before.Time.Nanos/1_000_000)
		}
		t.Logf("%s: step %d us, %v, waits %.1f %%; with all changes %d us, %v, %.1f %%", mode, before.Time.Nanos/59_000, before.Summary.Verdict,
			100*before.StalledFraction(), after.Time.Nanos/59_000, after.Summary.Verdict, 100*after.StalledFraction())
	}
}
