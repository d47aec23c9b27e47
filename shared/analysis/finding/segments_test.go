package finding_test

import (
	"slices"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// TestSegmentsThatCannotJoinAreNamed: PyTorch's allocator reserves far more than
// it uses where batches grow, and what is suggested is its own setting for that,
// which helps.
func TestSegmentsThatCannotJoinAreNamed(t *testing.T) {
	run := func(options ...string) (*store.Timeline, int64) {
		w := api.Workload{
			Model: "lenet5", Train: &api.Train{}, Batch: []int{200, 400, 700, 1100, 1600, 2200, 2900}, Steps: 7,
			Devices: []api.Device{{Preset: "lab-1g", Allocator: "torch", AllocatorOptions: options}},
		}
		strs := new(event.Strings)
		var batch []event.Event
		res, err := launch.Run(w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) { batch = append(batch, *e) })})
		if err != nil || res.Reason != event.EndDone {
			t.Fatal(err, res.Message)
		}
		tl := store.New(strs)
		tl.Append(batch)
		return tl, res.Devices[1].PeakReserved
	}
	tl, reserved := run()
	found := finding.Of(tl)
	i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.ID == finding.Fragmentation })
	if i < 0 {
		t.Fatalf("no finding; %d reserved", reserved)
	}
	f := &found[i]
	if !strings.Contains(strings.Join(f.Text, " "), "segments cannot join") || !slices.Contains(f.Try, finding.Change{Field: "devices.0.allocator_options", Value: "expandable_segments=true"}) {
		t.Fatalf("%q, %v", f.Text, f.Try)
	}
	joined, less := run("expandable_segments=true")
	if less >= reserved {
		t.Errorf("%d reserved, with expandable segments %d", reserved, less)
	}
	for _, f := range finding.Of(joined) {
		if slices.ContainsFunc(f.Try, func(c finding.Change) bool { return c.Field == "devices.0.allocator_options" }) {
			t.Errorf("what is on already is suggested: %v", f.Try)
		}
	}
}
