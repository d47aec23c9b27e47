package launch

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/alloc/check"
)

var update = flag.Bool("update", false, "renew testdata")

// TestHashes holds the memory events of the modelled backend to the recorded
// hashes. The same test runs under GOOS=js, and native/backend/vgpu holds the
// virtual GPU with arithmetic to the same file.
func TestHashes(t *testing.T) {
	var b strings.Builder
	for _, c := range HashCases() {
		table := new(event.Strings)
		h := eventhash.New(table)
		res, err := Run(c.Workload, Options{Strings: table, Sink: h})
		if err != nil || res.Reason != event.EndDone {
			t.Fatalf("%s: %v %s", c.Name, err, res.Message)
		}
		t.Logf("%-28s %s/%s %016x", c.Name, runtime.GOOS, runtime.GOARCH, h.Sum64())
		fmt.Fprintf(&b, "%s %016x\n", c.Name, h.Sum64())
	}
	const file = "testdata/hashes.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("hashes changed; if that is meant, renew them with -update\ngot\n%swant\n%s", b.String(), want)
	}
}

// TestJudgeFindsNothing lets the judge, which knows only the rules, watch
// every case and some harder ones.
func TestJudgeFindsNothing(t *testing.T) {
	cases := HashCases()
	cases = append(cases, HashCase{"out of memory", api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{256, 8192}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	}}, HashCase{"two logical devices", api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 4,
		Devices:   []api.Device{{Preset: "lab-256m", Logical: []int64{32 << 20, 64 << 20}}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:1"}}},
	}}, HashCase{"CPU only", api.Workload{Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 4}})
	for _, c := range cases {
		table := new(event.Strings)
		limits := map[event.AllocatorID]check.Rules{}
		j := check.New(func(_ event.DeviceID, a event.AllocatorID) check.Rules { return limits[a] }, table)
		_, err := Run(c.Workload, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
			if e.Kind == event.AllocatorFacts && strings.Contains(table.At(e.Text), "kind=bfc") {
				limits[e.Allocator] = check.BFC(e.Size)
			}
			j.Emit(e)
		})})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if err := j.Err(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
