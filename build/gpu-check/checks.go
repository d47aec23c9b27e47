//go:build cuda

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"

	"tideline/native/backend/cpu"
	"tideline/native/backend/cuda"
	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/launch"
)

// tolerance of a float32's arithmetic in another order, relative to 1 + |want|.
const tolerance = 2e-3

func workload(model string, mode api.Mode, batch, steps int) api.Workload {
	return api.Workload{
		Model: model, Mode: mode, Train: &api.Train{}, Batch: []int{batch}, Steps: steps, Seed: 5,
		Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	}
}

func data() (launch.Data, error) {
	d, err := dataset.Training()
	if err != nil {
		return nil, fmt.Errorf("load the digits: %w", err)
	}
	return d, nil
}

// numerics trains the same on the card and on the host and compares.
func numerics(d *cuda.Driver, r *report) error {
	digits, err := data()
	if err != nil {
		return err
	}
	for _, model := range []string{"mlp", "lenet5"} {
		for _, mode := range []api.Mode{api.Eager, api.Graph} {
			w := workload(model, mode, 32, 10)
			got, err := launch.Run(w, launch.Options{Backend: d.Backend(nil), Data: digits})
			if err != nil {
				return err
			}
			w.Devices = nil
			want, err := launch.Run(w, launch.Options{Backend: cpu.New(nil), Data: digits})
			if err != nil {
				return err
			}
			name := fmt.Sprintf("%s, %s, loss after 10 steps, card and CPU", model, mode)
			a, b := got.Metrics[0].Value, want.Metrics[0].Value
			if !(math.Abs(a-b) <= tolerance*(1+math.Abs(b))) {
				r.fail(name, fmt.Errorf("%.6f and %.6f", a, b))
				continue
			}
			r.note(name, "%.6f and %.6f", a, b)
		}
	}
	return nil
}

// memoryOnly hashes what does not depend on time.
func memoryOnly(w api.Workload, o launch.Options, timed func(event.Sink) event.Sink) (uint64, uint64, error) {
	table := new(event.Strings)
	h := eventhash.New(table)
	var sink event.Sink = event.SinkFunc(func(e *event.Event) {
		if e.Kind != event.TransferBegin {
			h.Emit(e)
		}
	})
	o.Strings, o.Sink = table, timed(sink)
	_, err := launch.Run(w, o)
	return h.Sum64(), h.Events(), err
}

// events compares what a run does to memory with what it does on a virtual
// card.
func events(d *cuda.Driver, r *report) error {
	digits, err := data()
	if err != nil {
		return err
	}
	for _, c := range launch.HashCases() {
		b := d.Backend(nil)
		got, n, err := memoryOnly(c.Workload, launch.Options{Backend: b, Data: digits}, b.Timed)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		want, _, err := memoryOnly(c.Workload, launch.Options{Backend: vgpu.New(), Data: digits}, func(s event.Sink) event.Sink { return s })
		if err != nil {
			return err
		}
		if got != want {
			r.fail(c.Name, fmt.Errorf("%016x on the card, %016x on the virtual one", got, want))
			continue
		}
		r.note(c.Name+", memory events equal", "%d events, %016x", n, got)
	}
	return nil
}

func lenet(d *cuda.Driver, r *report) error {
	training, heldOut, err := dataset.Load()
	if err != nil {
		return err
	}
	w := workload("lenet5", api.Graph, 32, 110)
	w.Train = &api.Train{Optimizer: "adam", LearningRate: 0.002}
	w.Input = api.Input{Source: "digits", Shuffle: 512, Prefetch: 2}
	run, err := launch.Start(w, launch.Options{Backend: d.Backend(nil), Data: dataset.Of(training)})
	if err != nil {
		return err
	}
	for run.Step() {
	}
	m, err := run.Evaluate(dataset.Of(heldOut), dataset.HeldOutCount)
	res, err2 := run.Finish()
	if err != nil || err2 != nil {
		return fmt.Errorf("%w, %w", err, err2)
	}
	for _, x := range m {
		if x.Name == "accuracy" && x.Value <= 0.95 {
			return fmt.Errorf("held-out accuracy %.4f, want more than 0.95", x.Value)
		}
		r.note("LeNet, 110 steps of 32, held-out "+x.Name, "%.4f", x.Value)
	}
	r.note("LeNet, 110 steps of 32, time", "%.3f s", float64(res.Nanos)/1e9)
	return nil
}

func bandwidth(d *cuda.Driver, r *report) error {
	for _, mib := range []int64{1, 16, 256} {
		for _, pinned := range []bool{true, false} {
			up, down, err := d.Bandwidth(0, mib<<20, pinned)
			if err != nil {
				return err
			}
			kind := map[bool]string{true: "pinned", false: "pageable"}[pinned]
			r.note(fmt.Sprintf("copy of %d MiB, %s", mib, kind), "up %.2f GB/s, down %.2f GB/s", up/1e9, down/1e9)
		}
	}
	return nil
}

// products measures and checks products of matrices on both ways.
func products(d *cuda.Driver, r *report) error {
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{256, 1024} {
		a, b := make([]float32, n*n), make([]float32, n*n)
		for i := range a {
			a[i], b[i] = random.Float32()-0.5, random.Float32()-0.5
		}
		for _, ours := range []bool{true, false} {
			if !ours && !cuda.HasBLAS() {
				continue
			}
			c, seconds, err := d.Product(0, n, a, b, ours)
			if err != nil {
				return err
			}
			way := map[bool]string{true: "our kernel", false: "cuBLAS"}[ours]
			if err := sample(n, a, b, c, random); err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			r.note(fmt.Sprintf("product of %dx%d, %s", n, n, way), "%.1f GFLOP/s", 2*float64(n*n*n)/seconds/1e9)
		}
	}
	return nil
}

// sample compares some elements of a product with the definition.
func sample(n int64, a, b, c []float32, random *rand.Rand) error {
	for range 200 {
		i, j := random.Int64N(n), random.Int64N(n)
		var want float64
		for k := range n {
			want += float64(a[i*n+k]) * float64(b[k*n+j])
		}
		if got := float64(c[i*n+j]); !(math.Abs(got-want) < 1e-3) {
			return fmt.Errorf("element (%d,%d) is %v, want %v", i, j, got, want)
		}
	}
	return nil
}

// What a second program is told to be.
const (
	secondGrowing = "second-growing"
	secondWhole   = "second-whole"
)

// sharing starts a program beside a run on the card: with growth both have
// room, without it the first has taken all that a program may and the second
// gets what the rule leaves of the rest, which need not be enough.
func sharing(d *cuda.Driver, r *report) error {
	digits, err := data()
	if err != nil {
		return err
	}
	for _, growth := range []bool{true, false} {
		m, err := d.Machine(nil)
		if err != nil {
			return err
		}
		w := workload("mlp", api.Graph, 32, 3)
		w.Devices = []api.Device{{Preset: "cuda:0", Growth: growth}}
		run, err := launch.Start(w, launch.Options{Backend: d.Backend(nil), Data: digits, Machine: m})
		if err != nil {
			return err
		}
		run.Step()
		arg := map[bool]string{true: secondGrowing, false: secondWhole}[growth]
		out, code := child(arg)
		for run.Step() {
		}
		if _, err := run.Finish(); err != nil {
			return err
		}
		name := fmt.Sprintf("second program beside one with growth %v", growth)
		switch {
		case growth && code != 0, !growth && code != 3:
			r.fail(name, fmt.Errorf("exit code %d: %s", code, out))
		default:
			r.note(name, "%s", out)
		}
	}
	return nil
}

func child(arg string) (string, int) {
	self, err := os.Executable()
	if err != nil {
		return err.Error(), -1
	}
	c := exec.Command(self, arg)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil && c.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), c.ProcessState.ExitCode()
}

// secondBatch needs over a GiB on the card, and more than the rule leaves of one
// that another program has taken its share of.
const secondBatch = 131_072

// batchEnv carries another batch to the second program: a fake card computes
// slowly and can be small.
const batchEnv = "TIDELINE_GPU_CHECK_BATCH"

func batchOfSecond() int {
	if n, err := strconv.Atoi(os.Getenv(batchEnv)); err == nil && n > 0 {
		return n
	}
	return secondBatch
}

// second is the program beside the first. It exits with 0 when it found room,
// with 3 when it did not.
func second(growth bool) int {
	d, err := cuda.Open()
	if err != nil {
		fmt.Print(err)
		if growth {
			return 1
		}
		return 3 // not even a context fits
	}
	defer d.Close()
	m, err := d.Machine(nil)
	if err != nil {
		fmt.Print(err)
		return 1
	}
	w := workload("mlp", api.Graph, batchOfSecond(), 1)
	w.Devices = []api.Device{{Preset: "cuda:0", Growth: growth}}
	w.Input = api.Input{Source: "synthetic"}
	res, err := launch.Run(w, launch.Options{Backend: d.Backend(nil), Data: dataset.Synthetic(60_000), Machine: m})
	switch {
	case err != nil:
		fmt.Print(err)
		return 1
	case res.Reason == event.EndOutOfMemory:
		fmt.Print("out of memory, as expected; limit ", event.FormatBytes(res.Devices[1].Limit))
		return 3
	}
	fmt.Print("ran, peak ", event.FormatBytes(res.Devices[1].PeakInUse))
	return 0
}
