package launch

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
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
	holdTo(t, "testdata/hashes.txt", HashCases(), func(c HashCase, res Result) string {
		if res.Reason != event.EndDone {
			t.Fatalf("%s: %s", c.Name, res.Message)
		}
		return ""
	})
}

// TestPairwiseHashes does the same for every model, mode and switch with every
// other. A case may run out of memory, always at the same request.
func TestPairwiseHashes(t *testing.T) {
	ends := map[event.EndReason]int{}
	holdTo(t, "testdata/pairwise.txt", PairwiseCases(), func(c HashCase, res Result) string {
		ends[res.Reason]++
		return " " + res.Reason.String()
	})
	t.Logf("%d cases on %s/%s end: %v", len(PairwiseCases()), runtime.GOOS, runtime.GOARCH, ends)
	if ends[event.EndDone] < len(PairwiseCases())*3/4 {
		t.Errorf("most cases should end well: %v", ends)
	}
}

func holdTo(t *testing.T, file string, cases []HashCase, end func(HashCase, Result) string) {
	t.Helper()
	var b strings.Builder
	for _, c := range cases {
		table := new(event.Strings)
		h := eventhash.New(table)
		res, err := Run(c.Workload, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
			h.Emit(e)
			if e.Kind == event.Log && strings.HasPrefix(table.At(e.Text), "placement rule") {
				t.Errorf("%s: %s", c.Name, table.At(e.Text)) // the case does not do what its name says
			}
		})})
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		fmt.Fprintf(&b, "%s%s %016x\n", c.Name, end(c, res), h.Sum64())
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	for line := range strings.SplitSeq(b.String(), "\n") {
		if !slices.Contains(was, line) {
			t.Errorf("changed; if that is meant, renew %s with -update: %s", file, line)
		}
	}
	if got := strings.Count(b.String(), "\n"); got != len(was)-1 {
		t.Errorf("%d cases, %s has %d", got, file, len(was)-1)
	}
}

// Every two values that can meet do.
func TestPairwiseCoversAllPairs(t *testing.T) {
	rows := pairwise(pairFactors)
	pairs := 0
	for f := range pairFactors {
		for g := f + 1; g < len(pairFactors); g++ {
			for v, vs := range pairFactors[f].values {
				for w, ws := range pairFactors[g].values {
					met := slices.ContainsFunc(rows, func(r []int) bool { return r[f] == v && r[g] == w })
					if met != canMeet(f, vs, g, ws) {
						t.Errorf("%s=%s with %s=%s: met %v", pairFactors[f].name, vs, pairFactors[g].name, ws, met)
					}
					pairs++
				}
			}
		}
	}
	t.Logf("%d cases for %d pairs", len(rows), pairs)
}

// TestJudgeFindsNothing lets the judge, which knows only the rules, watch
// every case and some harder ones.
func TestJudgeFindsNothing(t *testing.T) {
	cases := HashCases()
	for i, c := range PairwiseCases() {
		if i%8 == 1 {
			cases = append(cases, c)
		}
	}
	cases = append(cases, HashCase{Name: "out of memory", Workload: api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{256, 8192}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	}}, HashCase{Name: "two logical devices", Workload: api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 4,
		Devices:   []api.Device{{Preset: "lab-256m", Logical: []int64{32 << 20, 64 << 20}}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:1"}}},
	}}, HashCase{Name: "CPU only", Workload: api.Workload{Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 4}})
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
