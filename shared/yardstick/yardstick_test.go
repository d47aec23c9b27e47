package yardstick_test

import (
	"errors"
	"slices"
	"testing"

	"tideline/protocol/api"
	"tideline/shared/alloc/torch/random"
	"tideline/shared/yardstick"
)

func TestEveryTaskRunsTwiceAndNamesWhatIsThere(t *testing.T) {
	tasks, err := yardstick.Portable()
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, x := range tasks {
		if slices.Contains(seen, x.Name) {
			t.Errorf("two tasks are named %q", x.Name)
		}
		if x.To != "" && !slices.Contains(seen, x.To) {
			t.Errorf("%s is compared with %q, which does not come before it", x.Name, x.To)
		}
		seen = append(seen, x.Name)
		if x.N <= 0 || x.Per == "" {
			t.Errorf("%s: %d of %q", x.Name, x.N, x.Per)
		}
		for range 2 {
			if x.Prepare != nil {
				if err := x.Prepare(); err != nil {
					t.Fatalf("%s: %v", x.Name, err)
				}
			}
			if err := x.Run(); err != nil {
				t.Fatalf("%s: %v", x.Name, err)
			}
		}
		if x.Laps != nil {
			laps := 0
			if err := errors.Join(x.Prepare(), x.Laps(func() { laps++ })); err != nil || laps < x.N/10_000 || laps == 0 {
				t.Errorf("%s, stretch by stretch: %d, %v", x.Name, laps, err)
			}
		}
		if x.Note != nil && x.Note() == "" {
			t.Errorf("%s has nothing to note", x.Name)
		}
		if testing.Short() && len(seen) >= 8 {
			break
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %v", seen)
	}
}

// A trace frees what it allocated, and only that.
func TestTracesAreWhole(t *testing.T) {
	recorded, err := yardstick.Record("lenet5", api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{8, 4}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := yardstick.Random(random.Shape{Ops: 5000, Live: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*yardstick.Trace{recorded, drawn} {
		held := make([]bool, x.Slots)
		for i, op := range x.Ops {
			if held[op.Slot] == (op.Bytes > 0) {
				t.Fatalf("%s, operation %d: %+v while the slot is held: %v", x.Name, i, op, held[op.Slot])
			}
			held[op.Slot] = op.Bytes > 0
		}
		if len(x.Ops) < 77 {
			t.Errorf("%s has %d operations", x.Name, len(x.Ops))
		}
	}
	if last := recorded.Ops[len(recorded.Ops)-1]; last.Bytes != 0 {
		t.Errorf("a run that ends with %+v has not given everything back", last)
	}
}
