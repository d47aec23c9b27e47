package api

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"tideline/protocol/event"
)

func TestFlatFormIsReadable(t *testing.T) {
	no := false
	w := &Workload{
		Model: "lenet5", Mode: Graph, Train: &Train{Optimizer: "adam", LearningRate: 0.002},
		Batch: []int{32, 48}, Steps: 20, Seed: 1,
		Input:     Input{Source: "digits", Map: Map{Parallel: 4, Cost: 300_000}, Prefetch: Auto},
		Devices:   []Device{{Preset: "t4-16g", Growth: true}, {Kind: "gpu", Preset: "t4-16g", Logical: []int64{1 << 30, 1000}, Held: 1536}},
		Placement: Placement{Soft: &no, Rules: []Rule{{"a/*", "/GPU:1"}, {}}},
	}
	want := `model=lenet5
mode=graph
train=on
train.optimizer=adam
train.learning_rate=0.002
batch=32,48
steps=20
seed=1
input.source=digits
input.map.parallel=4
input.map.cost=300us
input.prefetch=auto
devices.0.kind=
devices.0.preset=t4-16g
devices.0.growth=true
devices.1.kind=gpu
devices.1.preset=t4-16g
devices.1.logical=1GiB,1000
devices.1.held=1536
placement.soft=false
placement.rules.0.match=a/*
placement.rules.0.device=/GPU:1
placement.rules.1.match=
placement.rules.1.device=
`
	if got := w.Fields().Encode(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFlatFormAndBack(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		w := randomWorkload(rng)
		text := w.Fields().Encode()
		f, err := event.ParseFields(text)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := FromFields(f)
		if len(problems) > 0 || !reflect.DeepEqual(got, w) {
			t.Fatalf("seed %d, case %d: %v\n%s\ngot  %+v\nwant %+v", seed, i, problems, text, got, w)
		}
	}
}

func randomWorkload(rng *rand.Rand) *Workload {
	pick := func(s ...string) string { return s[rng.IntN(len(s))] }
	flip := func() bool { return rng.IntN(2) == 0 }
	maybe := func() *bool {
		b := flip()
		if flip() {
			return nil
		}
		return &b
	}
	w := &Workload{
		Name: pick("", "a\nb", "\"quoted\"", "x=y"), Model: pick("mlp", "lenet5"), Mode: Mode(pick("", "eager", "graph", "planned")),
		Steps: rng.IntN(3), Seed: rng.Uint64N(3), Precision: pick("", "float16"), Optimize: maybe(), CopyPolicy: CopyPolicy(pick("", "warn")),
		Input: Input{
			Source: pick("", "digits"), OpenCost: rng.Int64N(2) * 1500, FetchCost: rng.Int64N(5_000_000), Skip: rng.IntN(3), Take: rng.IntN(3),
			Interleave: Interleave{rng.IntN(3), rng.IntN(3), rng.IntN(3)}, Cache: flip(), Map: Map{rng.IntN(4) - 1, rng.Int64N(5_000_000)},
			Shuffle: rng.IntN(9), Repeat: rng.IntN(3), DropRemainder: flip(), Prefetch: rng.IntN(4) - 1, PrefetchToDevice: rng.IntN(3),
			RAMBudget: rng.Int64N(3) << 20,
		},
	}
	for range rng.IntN(3) {
		w.Batch = append(w.Batch, 1+rng.IntN(99))
		w.Image = append(w.Image, 1+rng.IntN(99))
		w.Sequence = append(w.Sequence, 1+rng.IntN(99))
		w.Keep = append(w.Keep, pick("*/Relu", "a", "b,c"))
		w.Env = append(w.Env, pick("A=1", "CUDA_VISIBLE_DEVICES=1,0", "TF=", "x"))
	}
	w.Runtime = Runtime{flip(), flip(), rng.Int64N(3) << 20, flip(), flip(), rng.Int64N(3) << 30, flip()}
	if flip() {
		w.Train = &Train{
			Momentum: float64(rng.IntN(3)) / 7, Nesterov: flip(), Centered: flip(),
			Optimizer: pick("", "sgd", "adam"), LearningRate: float64(rng.IntN(3)) / 7, Precision: pick("", "float32"),
			Checkpoint: pick("", "sqrt", "4"), Swap: pick("", "auto"), Microbatches: rng.IntN(3), Clip: float64(rng.IntN(3)) / 7,
		}
	}
	for range rng.IntN(4) {
		d := Device{
			Kind: pick("", "gpu", "tpu"), Preset: pick("", "t4"), Card: pick("", "c#1"), Hidden: flip(), Growth: flip(),
			MemoryLimit: rng.Int64N(3) << 30, Held: rng.Int64N(1 << 40), Virtual: rng.IntN(3), Fraction: float64(rng.IntN(3)) / 7,
			Unified: flip(), ReserveRule: pick("", "tf2.1"), Peer: pick("", "nvlink"),
		}
		for range rng.IntN(3) {
			d.AllocatorOptions = append(d.AllocatorOptions, pick("a=b", "divisions=[256:1,>:4]"))
			d.Logical = append(d.Logical, 1+rng.Int64N(1<<32))
		}
		w.Devices = append(w.Devices, d)
	}
	for range rng.IntN(3) {
		w.Placement.Rules = append(w.Placement.Rules, Rule{pick("", "a*"), pick("", "/GPU:0")})
	}
	w.Placement.Soft, w.Placement.Log = maybe(), flip()
	return w
}

func TestFromFieldsReportsEverything(t *testing.T) {
	f := event.Fields{
		{Key: "model", Value: "mlp"},
		{Key: "model", Value: "mlp"},
		{Key: "batches", Value: "3"},
		{Key: "devices.1.preset", Value: "x"},
		{Key: "devices.0.prest", Value: "x"},
		{Key: "devices.a.preset", Value: "x"},
		{Key: "steps", Value: "-1"},
		{Key: "", Value: ""},
		{Key: "devices", Value: "x"},
		{Key: "placement.rules.0", Value: "x"},
		{Key: "placement.rulesX", Value: "x"},
		{Key: "train.optimiser", Value: "adam"},
	}
	_, problems := FromFields(f)
	want := []string{
		"model: given twice", `batches: no field of this name: did you mean "batch"`, "devices.1.preset: there is no device 1",
		`devices.0.prest: no field of this name: did you mean "preset"`, `devices.a.preset: "a" is not the number`,
		`steps: "-1" is not`, "no field of this name", "devices: expected a list", "placement.rules.0: expected a rule",
		"placement.rulesX:", `train.optimiser: no field of this name: did you mean "optimizer"`,
	}
	if len(problems) != len(want) {
		t.Fatalf("got\n%v", problems)
	}
	for i := range want {
		if !strings.Contains(problems[i].String(), want[i]) {
			t.Errorf("got %q, want %q", problems[i], want[i])
		}
	}
}

func TestSetIsAllOrNothing(t *testing.T) {
	w := &Workload{Model: "mlp", Batch: []int{8}, Devices: []Device{{Preset: "a"}, {Preset: "b"}}}
	before := w.Clone()
	for _, path := range []string{"batch", "steps", "devices.0.growth", "devices.2.growth", "devices.5.preset", "train.learning_rate", "nothing"} {
		if err := w.Set(path, "bad"); err == nil {
			t.Errorf("Set(%s) accepted nonsense", path)
		}
		if !reflect.DeepEqual(w, before) {
			t.Fatalf("failing Set(%s) changed the workload", path)
		}
	}
}

func TestSetAddsAndRemoves(t *testing.T) {
	w := &Workload{Model: "mlp", Devices: []Device{{Preset: "a"}}}
	shallow := *w
	steps := [][2]string{
		{"devices.1.preset", "b"},
		{"devices.0.growth", "on"},
		{"devices.0", "none"},
		{"placement.rules.0.match", "*"},
		{"placement.rules.0.device", "/CPU:0"},
		{"train.optimizer", "sgd"},
		{"batch", "[1, 2]"},
		{"input.prefetch", "auto"},
		{"devices.0.logical", "1GiB,2GiB"},
		{"devices.0.logical", ""},
	}
	for _, s := range steps {
		if err := w.Set(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := &Workload{
		Model: "mlp", Devices: []Device{{Preset: "b", Logical: []int64{}}}, Train: &Train{Optimizer: "sgd"}, Batch: []int{1, 2},
		Input: Input{Prefetch: Auto}, Placement: Placement{Rules: []Rule{{"*", "/CPU:0"}}},
	}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("got  %+v\nwant %+v", w, want)
	}
	if shallow.Devices[0].Growth {
		t.Error("a copy of the workload changed with it")
	}
	for _, s := range [][2]string{{"train", "off"}, {"devices", "none"}, {"placement.rules", "none"}} {
		if err := w.Set(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	if w.Train != nil || w.Devices != nil || w.Placement.Rules != nil {
		t.Errorf("left over: %+v", w)
	}
}

func TestEveryPathIsSettable(t *testing.T) {
	for _, p := range Paths() {
		w := new(Workload)
		path := strings.ReplaceAll(p, ".N.", ".0.")
		worked := 0
		for _, v := range []string{"graph", "1", "1GiB", "on", "1ms", "2"} {
			if w.Set(path, v) == nil {
				worked++
				if got, ok := w.Fields().Get(path); path != "train" && (!ok || got == "") {
					t.Errorf("%s set to %s is not in the flat form", path, v)
				}
			}
		}
		if worked == 0 {
			t.Errorf("%s takes no value", path)
		}
	}
}

func TestDefaultsAreValidAndStable(t *testing.T) {
	w := &Workload{Model: "mlp", Train: &Train{}, Devices: []Device{{Preset: "t4"}, {Preset: "t4"}}}
	w.Defaults()
	if p := w.Validate(Known{}); len(p) > 0 {
		t.Error(p)
	}
	if w.Devices[1].Card != "t4#1" || w.Train.LearningRate != 0.002 || !*w.Placement.Soft || w.Name != "mlp" {
		t.Errorf("got %+v", w)
	}
	again := w.Clone()
	again.Defaults()
	if !reflect.DeepEqual(again, w) {
		t.Error("Defaults of a complete workload changed it")
	}
}

// An old timeline's settings still mean what they meant.
func TestOldFlatFormStillDecodes(t *testing.T) {
	const old = `name=demo
model=lenet5
mode=graph
train=on
train.optimizer=adam
train.learning_rate=0.002
train.precision=float32
batch=1024
steps=14
seed=1
input.source=digits
input.map.parallel=4
input.map.cost=4us
input.shuffle=512
input.prefetch=2
devices.0.kind=gpu
devices.0.preset=lab-256m
devices.0.card=lab-256m#0
devices.0.growth=true
devices.0.allocator=bfc
placement.soft=true
`
	f, err := event.ParseFields(old)
	if err != nil {
		t.Fatal(err)
	}
	w, problems := FromFields(f)
	if problems = append(problems, w.Validate(Known{})...); len(problems) > 0 {
		t.Fatal(problems)
	}
	w.Defaults()
	if got := w.Fields().Encode(); got != old {
		t.Errorf("defaults that old files lack would be written into them:\n%s", got)
	}
}

func TestAcceleratorsCountByKind(t *testing.T) {
	w := &Workload{Devices: []Device{
		{Logical: []int64{1, 2}}, {Hidden: true, Logical: []int64{1, 2}}, {Virtual: 3}, {Kind: "tpu"}, {},
	}}
	if all, gpus, tpus := w.Accelerators(), w.accelerators("GPU"), w.accelerators("TPU"); all != 7 || gpus != 6 || tpus != 1 {
		t.Errorf("%d accelerators, %d GPUs, %d TPUs", all, gpus, tpus)
	}
	if l := w.deviceList(); !strings.HasSuffix(l, "/GPU:5, /TPU:0") {
		t.Error(l)
	}
}

func TestParseDevice(t *testing.T) {
	tests := []struct {
		name, kind string
		id         int
		ok         bool
	}{
		{"/GPU:1", "GPU", 1, true},
		{"GPU:1", "GPU", 1, true},
		{"/gpu:0", "GPU", 0, true},
		{"/device:GPU:2", "GPU", 2, true},
		{"/job:localhost/replica:0/task:0/device:CPU:0", "CPU", 0, true},
		{"/GPU", "GPU", -1, true},
		{"/GPU:*", "GPU", -1, true},
		{"/job:worker/device:GPU:0", "", 0, false},
		{"/TPU:0", "TPU", 0, true},
		{"/XPU:0", "", 0, false},
		{"/GPU:x", "", 0, false},
		{"/GPU:-1", "", 0, false},
		{"/GPU:0/CPU:0", "", 0, false},
		{"", "", 0, false},
		{"/device", "", 0, false},
		{"/task:1/GPU:0", "", 0, false},
	}
	for _, tt := range tests {
		kind, id, ok := parseDevice(tt.name)
		if ok != tt.ok || ok && (kind != tt.kind || id != tt.id) {
			t.Errorf("parseDevice(%q) = %q, %d, %v", tt.name, kind, id, ok)
		}
	}
}

func FuzzFromFields(f *testing.F) {
	f.Add("model=mlp\ndevices.0.preset=t4\nbatch=1,2\n")
	f.Add("train=on\ntrain.learning_rate=1e-3\nplacement.rules.0.match=*\ninput.map.cost=3ms\n")
	f.Add("keep=a* b/c\nenv=CUDA_VISIBLE_DEVICES=1,0\nimage=[512,572]\noptimize=off\ninput.map.parallel=auto\n")
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := event.ParseFields(text)
		if err != nil {
			return
		}
		w, problems := FromFields(fields)
		if len(problems) > 0 {
			return
		}
		w.Validate(Known{})
		again, problems := FromFields(w.Fields())
		if len(problems) > 0 {
			t.Fatalf("own flat form refused: %v\n%s", problems, w.Fields().Encode())
		}
		if a, b := w.Fields().Encode(), again.Fields().Encode(); a != b {
			t.Fatalf("changed on the way:\n%s\n%s", a, b)
		}
	})
}
