package explain

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
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
			holdToReruns(t, w, verify(blind.Summary(), nil, &Options{}))
			got := explain(t, name, file.Bytes(), Options{})
			t.Logf("\n%s", got)
			for _, want := range []string{common.Phrase(said.String()) + ": ", "largest hole", "by op", "Held at that moment", "peak in use", "Verified by rerun"} {
				if !strings.Contains(got, want) {
					t.Errorf("the report lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

// holdToReruns runs every change that is said to have been tried, on its own:
// what is offered fits, what is said not to help does not.
func holdToReruns(t *testing.T, w api.Workload, v *verifier) {
	t.Helper()
	if v == nil || v.answer == nil || len(v.answer.Good)+len(v.answer.Bad) == 0 {
		t.Fatalf("nothing was tried: %+v", v)
	}
	seen := map[uint64]bool{}
	for i, x := range slices.Concat(v.answer.Good, v.answer.Bad) {
		changed := w.Clone()
		for _, c := range x.Changes {
			if err := changed.Set(c.Field, c.Value); err != nil {
				t.Fatal(err)
			}
		}
		res, err := launch.Run(*changed, launch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if x.Passed != (res.Reason == event.EndDone) || x.Passed != (i < len(v.answer.Good)) ||
			x.Steps != res.Steps || x.Nanos != res.Nanos || x.Peak != res.Devices[1].PeakInUse {
			t.Errorf("said %+v; a run came to %+v", x, res)
		}
		var sum int64
		for _, n := range x.ByCategory {
			sum += n
		}
		// The stream-ordered pool counts what is asked for, not what it takes.
		if sum+x.ArenaUnused != x.Peak && x.Text() != "devices.0.allocator=async" {
			t.Errorf("%s: categories sum to %d, peak %d", x.Text(), sum, x.Peak)
		}
		if x.ID == 0 || x.Passed && seen[x.ID] {
			t.Errorf("%s: run %x is not one of its own", x.Text(), x.ID)
		}
		seen[x.ID] = x.Passed
	}
}

// TestNothingIsVerifiedByAnotherRun: where the settings do not lead to the
// failure that was recorded, reruns would prove nothing about it.
func TestNothingIsVerifiedByAnotherRun(t *testing.T) {
	var strs event.Strings
	fine := api.Workload{Model: "mlp", Batch: []int{8}, Steps: 2, Devices: []api.Device{{Preset: "lab-256m"}}}
	tl := analysis.NewTimeline(&strs)
	tl.Emit(&event.Event{Kind: event.Settings, Text: strs.ID(fine.Fields().Encode()), Step: event.NoStep})
	growing(&strs, tl.Emit)
	v := verify(tl.Summary(), nil, &Options{})
	if v == nil || v.unknown == "" || v.answer != nil {
		t.Errorf("%+v", v)
	}
	fine.Devices[0].Preset = "another build's"
	tl = analysis.NewTimeline(&strs)
	tl.Emit(&event.Event{Kind: event.Settings, Text: strs.ID(fine.Fields().Encode()), Step: event.NoStep})
	growing(&strs, tl.Emit)
	if v := verify(tl.Summary(), nil, &Options{}); v == nil || !strings.Contains(v.unknown, "another build's") {
		t.Errorf("%+v", v)
	}
}

// TestAFailedRunSaysWhy: the end's message is there, in the text and as JSON.
func TestAFailedRunSaysWhy(t *testing.T) {
	strs := new(event.Strings)
	const why = "node dense1/MatMul: MatMul: output 0: not a finite number"
	end := []*event.Event{{Kind: event.End, Step: event.NoStep, Cause: uint8(event.EndFailed), Text: strs.ID(why)}}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		if err := FromEvents("nan.tideline", slices.Values(end), strs, &out, Options{JSON: asJSON, Width: 200}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), why) {
			t.Errorf("the report does not say why:\n%s", out.String())
		}
	}
}

// TestALeaksFailureNamesTheLeakFirst: before the state of the pool, and before
// advice on that.
func TestALeaksFailureNamesTheLeakFirst(t *testing.T) {
	got := example(t, "leak", Options{NoReruns: true, Width: 2000})
	_, failure, ok := strings.Cut(got, "ran out of memory\n\n")
	if !ok || !strings.HasPrefix(failure, "A leak filled the memory: ") || !strings.Contains(failure, "What to do (not verified by a rerun)\n  - Find what keeps the results of conv1/Conv2D") {
		t.Error(got)
	}
}
