package explain

import (
	"bytes"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis"
	"tideline/shared/launch"
)

// tooMuch are workloads that run out of memory on a small card.
var tooMuch = map[string]api.Workload{
	"batch too large, growth": {
		Model: "lenet5", Train: &api.Train{}, Batch: []int{256, 8192}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	},
	"batch too large, preallocated": {
		Model: "lenet5", Train: &api.Train{}, Batch: []int{256, 8192}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m"}},
	},
	"limit too low": {
		Model: "lenet5", Train: &api.Train{}, Batch: []int{2048}, Steps: 2, Devices: []api.Device{{Preset: "lab-256m", MemoryLimit: 16 << 20}},
	},
	"eager": {
		Model: "lenet5", Mode: api.Eager, Train: &api.Train{}, Batch: []int{16384}, Steps: 2, Devices: []api.Device{{Preset: "lab-256m"}},
	},
}

// TestRunsOutOfMemoryAreExplained runs for real, and holds the verdict that
// is worked out of the recorded events alone to the one of the moment.
func TestRunsOutOfMemoryAreExplained(t *testing.T) {
	for name, w := range tooMuch {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			strs := new(event.Strings)
			tw := timeline.NewWriter(&file, timeline.Options{Strings: strs})
			blind := analysis.NewTimeline(strs) // does not see the recorded cause
			said := event.OOMUndetermined
			res, err := launch.Run(w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
				tw.Emit(e)
				x := *e
				if x.Kind == event.OutOfMemory {
					said, x.Cause = event.OOMCause(x.Cause), 0
				}
				blind.Emit(&x)
			})})
			if err != nil || res.Reason != event.EndOutOfMemory {
				t.Fatalf("%v %v %s", res.Reason, err, res.Message)
			}
			if err := tw.Close(); err != nil {
				t.Fatal(err)
			}
			fails := blind.Summary().Failures
			if len(fails) != 1 || fails[0].Reading == nil {
				t.Fatalf("%+v", fails)
			}
			r := fails[0].Reading
			if r.Decision.Cause != said {
				t.Errorf("worked out: %v, at the moment: %v", r.Decision.Cause, said)
			}
			if r.Free.N != res.OOM.Free || r.LargestFree.N != res.OOM.Largest {
				t.Errorf("free %d, largest %d; the allocator says %d, %d", r.Free.N, r.LargestFree.N, res.OOM.Free, res.OOM.Largest)
			}
			got := explain(t, name, file.Bytes(), Options{})
			t.Logf("\n%s", got)
			for _, want := range []string{said.String() + ": ", "largest hole", "by op", "Held at that moment", "peak in use"} {
				if !strings.Contains(got, want) {
					t.Errorf("the report lacks %q:\n%s", want, got)
				}
			}
		})
	}
}
