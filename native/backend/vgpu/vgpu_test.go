package vgpu_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"tideline/native/backend/cpu"
	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/exec"
	"tideline/shared/launch"
)

func load(t *testing.T) (train, heldOut launch.Data) {
	t.Helper()
	a, b, err := dataset.Load()
	if err != nil {
		t.Fatal(err)
	}
	if a.Len() != launch.DigitsElements {
		t.Fatalf("%d digits to train on, the modelled pipeline has %d", a.Len(), launch.DigitsElements)
	}
	return dataset.Of(a), dataset.Of(b)
}

func hash(t *testing.T, w api.Workload, b exec.Backend, d launch.Data) (uint64, launch.Result) {
	t.Helper()
	table := new(event.Strings)
	h := eventhash.New(table)
	res, err := launch.Run(w, launch.Options{Strings: table, Sink: h, Backend: b, Data: d})
	if err != nil {
		t.Fatal(err)
	}
	return h.Sum64(), res
}

// The same workload makes the same allocations, addresses, frees, forwards and
// transfers whether it computes or only counts time. shared/launch holds the
// same hashes natively and, under its wasm test, in WebAssembly.
func TestArithmeticChangesNoMemoryEvent(t *testing.T) {
	golden, err := os.ReadFile("../../../shared/launch/testdata/hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	train, _ := load(t)
	for _, c := range launch.HashCases() {
		a, computed := hash(t, c.Workload, vgpu.New(), train)
		b, modelled := hash(t, c.Workload, nil, nil)
		line := fmt.Sprintf("%s %016x", c.Name, a)
		t.Logf("%-28s virtual GPU %016x  modelled %016x", c.Name, a, b)
		if a != b {
			t.Errorf("%s: virtual GPU %016x, modelled %016x", c.Name, a, b)
		}
		if !strings.Contains(string(golden), line+"\n") {
			t.Errorf("%s: %016x is not the hash in shared/launch/testdata/hashes.txt, which WebAssembly is held to", c.Name, a)
		}
		if computed.Nanos != modelled.Nanos {
			t.Errorf("%s: %d ns on the virtual GPU, %d modelled", c.Name, computed.Nanos, modelled.Nanos)
		}
		if len(computed.Metrics) == 0 || len(modelled.Metrics) != 0 {
			t.Errorf("%s: metrics %v and %v", c.Name, computed.Metrics, modelled.Metrics)
		}
	}
}

func TestTrainingLearnsTheDigits(t *testing.T) {
	train, heldOut := load(t)
	for _, c := range []struct {
		model        string
		mode         api.Mode
		rate         float64
		batch, steps int
		gpu          bool
	}{
		{"mlp", api.Eager, 0.0005, 64, 150, false},
		{"lenet5", api.Graph, 0.002, 32, 110, true},
	} {
		w := api.Workload{
			Model: c.model, Mode: c.mode, Train: &api.Train{Optimizer: "adam", LearningRate: c.rate}, Batch: []int{c.batch}, Steps: c.steps,
			Input: api.Input{Source: "digits", Shuffle: 512, Prefetch: 2},
		}
		var b exec.Backend = cpu.New(nil)
		if c.gpu {
			w.Devices = []api.Device{{Preset: "lab-256m", Growth: true}}
			b = vgpu.New()
		}
		r, err := launch.Start(w, launch.Options{Backend: b, Data: train})
		if err != nil {
			t.Fatal(err)
		}
		for r.Step() {
		}
		m, err := r.Evaluate(heldOut, dataset.HeldOutCount)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		for _, x := range m {
			t.Logf("%s %s, virtual GPU %v: held-out %s %.4f", c.model, c.mode, c.gpu, x.Name, x.Value)
			if x.Name == "accuracy" && x.Value <= 0.95 {
				t.Errorf("%s %s: held-out accuracy %.4f, want more than 0.95", c.model, c.mode, x.Value)
			}
		}
		if len(m) < 2 {
			t.Errorf("%s %s: metrics %v", c.model, c.mode, m)
		}
	}
}

// A pool as large as a real card's costs nothing until it is touched.
func TestPoolOfARealCardCostsNothing(t *testing.T) {
	train, _ := load(t)
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{8}, Steps: 2,
		Devices: []api.Device{{Preset: "t4-16g"}},
	}
	_, res := hash(t, w, vgpu.New(), train)
	if res.Reason != event.EndDone {
		t.Fatalf("ended: %s %s", res.Reason, res.Message)
	}
	if got := res.Devices[1].PeakReserved; got < 13<<30 {
		t.Errorf("pool of %s, want nearly all of the card", event.FormatBytes(got))
	}
}

// Eager and graph execution keep tensors for different times and compute the
// same numbers.
func TestModesAgreeOnTheLoss(t *testing.T) {
	train, _ := load(t)
	var want []launch.Metric
	for _, mode := range []api.Mode{api.Eager, api.Graph, api.Planned} {
		for _, gpu := range []bool{true, false} {
			w := api.Workload{Model: "lenet5", Mode: mode, Train: &api.Train{Optimizer: "sgd"}, Batch: []int{8, 16}, Steps: 6}
			var b exec.Backend = cpu.New(nil)
			if gpu {
				w.Devices = []api.Device{{Preset: "lab-256m", Growth: true}}
				w.Placement.Rules = []api.Rule{{Match: "conv2/*", Device: "/CPU:0"}}
				b = vgpu.New()
			}
			_, res := hash(t, w, b, train)
			if want == nil {
				want = res.Metrics
			}
			// On the host convolutions have no workspace and sum in another order.
			for i, m := range res.Metrics {
				if d := m.Value - want[i].Value; d > 1e-3 || d < -1e-3 {
					t.Errorf("%s, virtual GPU %v: %s %.6f, want %.6f", mode, gpu, m.Name, m.Value, want[i].Value)
				}
			}
		}
	}
}

// On the CPU everything can be real: memory, arithmetic, clock and the input
// pipeline's goroutines. What memory is asked for stays the same as modelled.
func TestRealInputDeliversTheModelledBatches(t *testing.T) {
	train, _, err := dataset.Load()
	if err != nil {
		t.Fatal(err)
	}
	w := api.Workload{
		Model: "mlp", Train: &api.Train{Optimizer: "sgd"}, Batch: []int{16, 8}, Steps: 12,
		Input: api.Input{Source: "digits", Shuffle: 64, Prefetch: 2, Map: api.Map{Parallel: 2}},
	}
	modelled, res := hash(t, w, cpu.New(nil), dataset.Of(train))
	table := new(event.Strings)
	h := eventhash.New(table)
	stages, last := 0, int64(0)
	b := cpu.New(nil)
	got, err := launch.Run(w, launch.Options{Strings: table, Backend: b, Input: b.Input(dataset.Of(train)), Sink: event.SinkFunc(func(e *event.Event) {
		h.Emit(e)
		if e.Kind == event.StageBegin {
			stages++
		}
		if e.Time < last {
			t.Errorf("%s at %d after %d", e.Kind, e.Time, last)
		}
		last = e.Time
	})})
	if err != nil || got.Reason != event.EndDone {
		t.Fatalf("%v %s", err, got.Message)
	}
	if h.Sum64() != modelled {
		t.Errorf("memory events %016x with real input, %016x with modelled", h.Sum64(), modelled)
	}
	for i, m := range got.Metrics {
		if m != res.Metrics[i] {
			t.Errorf("%s %v with real input, %v with the same data modelled", m.Name, m.Value, res.Metrics[i].Value)
		}
	}
	if stages == 0 {
		t.Error("the real pipeline told no stage")
	}
}

// The weights begin with the same numbers in every precision, so that the first
// loss differs by rounding alone, and the steps after it follow.
func TestPrecisionsBeginWithTheSameLoss(t *testing.T) {
	train, _ := load(t)
	losses := func(precision string) (out []float64) {
		for _, steps := range []int{1, 6} {
			_, res := hash(t, api.Workload{
				Model: "lenet5", Train: &api.Train{Optimizer: "sgd", LearningRate: 0.01, Precision: precision}, Batch: []int{32}, Steps: steps,
				Input: api.Input{Shuffle: 64},
			}, cpu.New(nil), train)
			for _, x := range res.Metrics {
				if x.Name == "loss" {
					out = append(out, x.Value)
				}
			}
		}
		return out
	}
	want := losses("float32")
	if len(want) != 2 || want[0] < 1 || want[1] == want[0] {
		t.Fatalf("float32: losses %v", want)
	}
	for precision, within := range map[string]float64{"float64": 1e-5, "mixed_float16": 0.02, "mixed_bfloat16": 0.05} {
		got := losses(precision)
		if len(got) != len(want) {
			t.Fatalf("%s: losses %v", precision, got)
		}
		for i := range want {
			if d := math.Abs(got[i] - want[i]); !(d <= within*want[i]) {
				t.Errorf("%s, after 1 and 6 steps: losses %v, float32 has %v", precision, got, want)
			}
		}
	}
}

// An evaluation between steps takes nothing of what waits on the device.
func TestEvaluationLeavesWhatIsSentAhead(t *testing.T) {
	train, heldOut := load(t)
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{100}, Steps: 40, Devices: []api.Device{{Preset: "lab-256m"}},
		Input: api.Input{PrefetchToDevice: 2, Repeat: 1},
	}
	r, err := launch.Start(w, launch.Options{Backend: vgpu.New(), Data: train})
	if err != nil {
		t.Fatal(err)
	}
	for r.Step() {
		if m, err := r.Evaluate(heldOut, 20); err != nil || len(m) < 2 {
			t.Fatal(m, err)
		}
	}
	res, err := r.Finish()
	if want := (launch.DigitsElements + 99) / 100; err != nil || res.Steps != want {
		t.Errorf("%d steps, want %d: %v", res.Steps, want, err)
	}
}
