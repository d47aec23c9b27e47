package workfile

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/api"
)

var known = api.Known{Presets: []string{"t4-16g", "a100-40g"}, Models: []string{"mlp", "lenet5"}, Allocators: []string{"bfc", "torch"}}

const whole = `# everything
name: my run
model: lenet5
mode: eager
train: {optimizer: momentum, momentum: 0.5, nesterov: true, learning_rate: 0.05, precision: float32, checkpoint: 4, swap: auto, microbatches: 16, clip: 1.5}
batch: [32, 48]
image: [512, 572]
sequence: 128
optimize: false
keep: ["*/Relu", "fc*"]
copy_policy: silent_for_int32
env: ["CUDA_VISIBLE_DEVICES=1,0", TF_FORCE_GPU_ALLOW_GROWTH=true]
runtime: {async: true, free_tape_gradually: true, deferred_deletion: 8MiB, autotune: true, workspace_limit: 1GiB, force_gpu_compatible: true}
steps: 7
seed: 9
input:
  source: digits
  open_cost: 2ms
  fetch_cost: 1us
  skip: 5
  take: 1000
  interleave: {cycle: 4, block: 16, parallel: 2}
  cache: true
  map: {parallel: auto, cost: 300us}
  shuffle: 1024
  repeat: 3
  drop_remainder: true
  prefetch: auto
  prefetch_to_device: 1
  ram_budget: 64MiB
devices:
  - {kind: gpu, preset: t4-16g, memory_limit: 4GiB, held: 1536, allocator: torch, allocator_options: ["divisions=[1:4,>:8]", a=b], unified: true, reserve_rule: tf2.1, peer: pcie}
  - preset: a100-40g
    card: mine
    logical: [1GiB, 512 MiB]
    unified: true
    reserve_rule: tf2.1
    peer: pcie
  - {preset: a100-40g, hidden: true, virtual: 2, fraction: 0.5}
placement:
  soft: false
  log: true
  rules:
    - {match: "conv2/*", device: "/GPU:2"}
    - match: "fc*"
      device: /CPU:0
`

func wholeWorkload() *api.Workload {
	no := false
	return &api.Workload{
		Name: "my run", Model: "lenet5", Mode: api.Eager,
		Train: &api.Train{Optimizer: "momentum", Momentum: 0.5, Nesterov: true, LearningRate: 0.05, Precision: "float32", Checkpoint: "4", Swap: "auto", Microbatches: 16, Clip: 1.5},
		Batch: []int{32, 48}, Image: []int{512, 572}, Sequence: []int{128}, Steps: 7, Seed: 9, Optimize: &no,
		Keep: []string{"*/Relu", "fc*"}, CopyPolicy: api.CopySilentForInt32,
		Env:     []string{"CUDA_VISIBLE_DEVICES=1,0", "TF_FORCE_GPU_ALLOW_GROWTH=true"},
		Runtime: api.Runtime{Async: true, FreeTapeGradually: true, DeferredDeletion: 8 << 20, Autotune: true, WorkspaceLimit: 1 << 30, ForceGPUCompatible: true},
		Input: api.Input{
			Source: "digits", OpenCost: 2_000_000, FetchCost: 1000, Skip: 5, Take: 1000, Interleave: api.Interleave{Cycle: 4, Block: 16, Parallel: 2},
			Cache: true, Map: api.Map{Parallel: api.Auto, Cost: 300_000}, Shuffle: 1024, Repeat: 3, DropRemainder: true,
			Prefetch: api.Auto, PrefetchToDevice: 1, RAMBudget: 64 << 20,
		},
		Devices: []api.Device{
			{Kind: "gpu", Preset: "t4-16g", MemoryLimit: 4 << 30, Held: 1536, Allocator: "torch", AllocatorOptions: []string{"divisions=[1:4,>:8]", "a=b"}, Unified: true, ReserveRule: "tf2.1", Peer: "pcie"},
			{Preset: "a100-40g", Card: "mine", Logical: []int64{1 << 30, 512 << 20}, Unified: true, ReserveRule: "tf2.1", Peer: "pcie"},
			{Preset: "a100-40g", Hidden: true, Virtual: 2, Fraction: 0.5},
		},
		Placement: api.Placement{Soft: &no, Log: true, Rules: []api.Rule{{Match: "conv2/*", Device: "/GPU:2"}, {Match: "fc*", Device: "/CPU:0"}}},
	}
}

func TestReadsEveryField(t *testing.T) {
	w, problems := Read([]byte(whole), known)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if want := wholeWorkload(); !reflect.DeepEqual(w, want) {
		t.Errorf("read %+v\nwant %+v", w, want)
	}
}

func TestReadsJSON(t *testing.T) {
	w, problems := Read([]byte(`{"model":"mlp","train":{},"batch":16,"devices":[{"preset":"t4-16g","growth":true}],
	"input":{"prefetch":2}}`), known)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if w.Train == nil || w.Batch[0] != 16 || !w.Devices[0].Growth || w.Input.Prefetch != 2 {
		t.Errorf("read %+v", w)
	}
}

func TestEmptyValuesMeanDefaults(t *testing.T) {
	w, problems := Read([]byte("model: mlp\nbatch:\ntrain: ~\ninput:\ndevices: []\nplacement: {}\n"), known)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if want := (&api.Workload{Model: "mlp"}); !reflect.DeepEqual(w, want) {
		t.Errorf("read %+v", w)
	}
}

func TestProblemsNameLineAndFix(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // line: path: part of the message
	}{
		{"empty", "", []string{"0::empty"}},
		{"only a comment", "# hello\n", []string{"0::empty"}},
		{"not a mapping", "- a\n", []string{"1::list of fields"}},
		{"syntax", "model: mlp\n  x: [\n", []string{"2::not readable as YAML"}},
		{"tab", "model: mlp\ninput:\n\tsource: digits\n", []string{"3::not readable as YAML"}},
		{"two documents", "model: mlp\n---\nmodel: mlp\n", []string{"2::second document"}},
		{"unknown field", "model: mlp\nmodee: graph\n", []string{`2:modee:did you mean "mode"`}},
		{"unknown nested field", "model: mlp\ntrain: {optimiser: adam}\n", []string{`2:train.optimiser:did you mean "optimizer"`}},
		{"field in the wrong place", "model: mlp\noptimizer: adam\n", []string{`2:optimizer:did you mean "train.optimizer"`}},
		{"unknown device field", "model: mlp\ndevices:\n  - preset: t4-16g\n    limit: 4GiB\n", []string{`4:devices.0.limit:did you mean "memory_limit"`}},
		{"twice", "model: mlp\nsteps: 1\nsteps: 2\n", []string{"3:steps:first on line 2"}},
		{"unknown model", "model: lenet\n", []string{`1:model:did you mean "lenet5"`}},
		{"no model", "steps: 3\n", []string{"1:model:missing"}},
		{"unknown preset", "model: mlp\ndevices:\n  - {preset: t4}\n", []string{`3:devices.0.preset:did you mean "t4-16g"`}},
		{"no preset", "model: mlp\ndevices:\n  - {growth: true}\n", []string{`3:devices.0.preset:missing`}},
		{"growth and limit", "model: mlp\ndevices:\n  - preset: t4-16g\n    growth: true\n    memory_limit: 4GiB\n", []string{"4:devices.0.growth:TensorFlow"}},
		{"growth and logical", "model: mlp\ndevices:\n  - preset: t4-16g\n    logical: [1GiB]\n    growth: on\n", []string{"5:devices.0.growth:drops it silently"}},
		{"limit and logical", "model: mlp\ndevices:\n  - {preset: t4-16g, logical: [1GiB], memory_limit: 1GiB}\n", []string{"3:devices.0.memory_limit:single logical device"}},
		{"growth differs", "model: mlp\ndevices:\n  - {preset: t4-16g, growth: true}\n  - {preset: t4-16g}\n", []string{"4:devices.1.growth:cannot differ"}},
		{"growth beside a limit", "model: mlp\ndevices:\n  - {preset: t4-16g, growth: true}\n  - {preset: t4-16g, memory_limit: 1GiB}\n", []string{"3:devices.0.growth:no effect"}},
		{"a card twice", "model: mlp\ndevices:\n  - {preset: t4-16g, card: a}\n  - {preset: t4-16g, card: a}\n", []string{"4:devices.1.card:logical: [1GiB, 1GiB]"}},
		{"missing device", "model: mlp\ndevices:\n  - {preset: t4-16g}\nplacement:\n  rules:\n    - {match: a, device: /GPU:1}\n", []string{"6:placement.rules.0.device:/CPU:0, /GPU:0"}},
		{"growth on a visible one", "model: mlp\ndevices:\n  - {preset: t4-16g, growth: true}\n  - {preset: t4-16g, hidden: true}\n", nil},
		{"hidden device in a rule", "model: mlp\ndevices:\n  - {preset: t4-16g}\n  - {preset: t4-16g, hidden: true}\nplacement:\n  rules:\n    - {match: a, device: /GPU:1}\n", []string{"7:placement.rules.0.device:does not exist"}},
		{"rules that disagree", "model: mlp\ndevices: [{preset: t4-16g}]\nplacement:\n  rules:\n    - {match: a, device: /GPU:0}\n    - {match: a, device: /CPU:0}\n", []string{"6:placement.rules.1.match:disagree"}},
		{"optimizer", "model: mlp\ntrain: {optimizer: adm}\n", []string{`2:train.optimizer:did you mean "adam"`}},
		{"precision", "model: mlp\ntrain: {precision: float16}\n", []string{`2:train.precision:did you mean "mixed_float16"`}},
		{"two precisions", "model: mlp\nprecision: float16\ntrain: {}\n", []string{"2:precision:train: {precision"}},
		{"precision of inference", "model: mlp\nprecision: float8\n", []string{"2:precision:float16"}},
		{"checkpoint zero", "model: mlp\ntrain: {checkpoint: 0}\n", []string{"2:train.checkpoint:every k-th block"}},
		{"checkpoint a word", "model: mlp\ntrain: {checkpoint: sqr}\n", []string{`2:train.checkpoint:did you mean "sqrt"`}},
		{"checkpoint a size", "model: mlp\ntrain: {checkpoint: 4 Gigs}\n", []string{"2:train.checkpoint:4GiB"}},
		{"momentum of adam", "model: mlp\ntrain: {momentum: 0.9}\n", []string{"2:train.momentum:rmsprop"}},
		{"too much momentum", "model: mlp\ntrain: {optimizer: rmsprop, momentum: 2}\n", []string{"2:train.momentum:at most 1"}},
		{"nesterov of rmsprop", "model: mlp\ntrain: {optimizer: rmsprop, nesterov: true}\n", []string{"2:train.nesterov:momentum"}},
		{"centered of adam", "model: mlp\ntrain: {centered: true}\n", []string{"2:train.centered:rmsprop"}},
		{"async graph", "model: mlp\nruntime: {async: true}\n", []string{"2:runtime.async:mode: eager"}},
		{"tape of a graph", "model: mlp\nruntime: {free_tape_gradually: true}\n", []string{"2:runtime.free_tape_gradually:mode: eager"}},
		{"workspace twice", "model: mlp\nenv: TF_CUDNN_WORKSPACE_LIMIT_IN_MB=1\nruntime: {workspace_limit: 1MiB}\n", []string{"3:runtime.workspace_limit:one of the two"}},
		{"autotune both ways", "model: mlp\nenv: TF_CUDNN_USE_AUTOTUNE=0\nruntime: {autotune: true}\n", []string{"3:runtime.autotune:opposite"}},
		{"timestamps of torch", "model: mlp\nruntime: {timestamped_allocator: true}\ndevices: [{preset: t4-16g, allocator: torch}]\n", []string{"2:runtime.timestamped_allocator:only bfc"}},
		{"unknown switch", "model: mlp\nruntime: {asynch: true}\n", []string{`2:runtime.asynch:did you mean "runtime.async"`}},
		{"runtime a word", "model: mlp\nruntime: fast\n", []string{"2:runtime:autotune: true"}},
		{"swap", "model: mlp\ntrain: {swap: all}\n", []string{"2:train.swap:activations"}},
		{"microbatches", "model: mlp\nbatch: [32, 30]\ntrain: {microbatches: 4}\n", []string{"3:train.microbatches:batch of 30"}},
		{"clip", "model: mlp\ntrain: {clip: -1}\n", []string{"2:train.clip:above 0"}},
		{"image", "model: mlp\nimage: [512, 0]\n", []string{"2:image:at least 1"}},
		{"image too large", "model: mlp\nimage: 100000\n", []string{"2:image:4096"}},
		{"sequence empty", "model: mlp\nsequence: []\n", []string{"2:sequence:empty list"}},
		{"optimize eager", "model: mlp\nmode: eager\noptimize: true\n", []string{"3:optimize:no graph"}},
		{"copy policy", "model: mlp\nmode: eager\ncopy_policy: loud\n", []string{"3:copy_policy:unknown copy_policy"}},
		{"copy policy of a graph", "model: mlp\ncopy_policy: warn\n", []string{"2:copy_policy:only eager"}},
		{"keep", "model: mlp\nkeep: [\"a b\"]\n", []string{"2:keep:single values"}},
		{"env", "model: mlp\nenv: [TF_FORCE_GPU_ALOW_GROWTH=1]\n", []string{`2:env:did you mean "TF_FORCE_GPU_ALLOW_GROWTH"`}},
		{"env without value", "model: mlp\nenv: TF_FORCE_GPU_ALLOW_GROWTH\n", []string{"2:env:NAME=VALUE"}},
		{"env twice", "model: mlp\nenv: [TF_FORCE_GPU_ALLOW_GROWTH=1, TF_FORCE_GPU_ALLOW_GROWTH=0]\n", []string{"2:env:twice"}},
		{"fraction and limit", "model: mlp\ndevices: [{preset: t4-16g, fraction: 0.5, memory_limit: 1GiB}]\n", []string{"2:devices.0.fraction:exclude each other"}},
		{"fraction and logical", "model: mlp\ndevices: [{preset: t4-16g, fraction: 0.5, logical: [1GiB]}]\n", []string{"2:devices.0.fraction:InvalidArgument"}},
		{"fraction differs", "model: mlp\ndevices:\n  - {preset: t4-16g, fraction: 0.5}\n  - {preset: t4-16g}\n", []string{"4:devices.1.fraction:cannot differ"}},
		{"peer differs", "model: mlp\ndevices:\n  - {preset: t4-16g, peer: nvlink}\n  - {preset: t4-16g, unified: true}\n", []string{"4:devices.1.unified:cannot differ", "4:devices.1.peer:one for the process"}},
		{"virtual and limit", "model: mlp\ndevices: [{preset: t4-16g, virtual: 2, memory_limit: 1GiB}]\n", []string{"2:devices.0.virtual:exclude each other"}},
		{"virtual too many", "model: mlp\ndevices: [{preset: t4-16g, virtual: 99}]\n", []string{"2:devices.0.virtual:impossible"}},
		{"allocator", "model: mlp\ndevices:\n  - preset: t4-16g\n    allocator: torhc\n", []string{`4:devices.0.allocator:did you mean "torch"`}},
		{"allocator options", "model: mlp\ndevices:\n  - preset: t4-16g\n    allocator_options: growth\n", []string{"4:devices.0.allocator_options:NAME=VALUE"}},
		{"allocator of a TPU", "model: mlp\ndevices: [{kind: tpu, preset: t4-16g, allocator: torch}]\n", []string{"2:devices.0.kind:is a GPU", "2:devices.0.allocator:of its own"}},
		{"growth of a TPU", "model: mlp\ndevices: [{kind: tpu, preset: t4-16g, growth: true}]\n", []string{"2:devices.0.kind:is a GPU", "2:devices.0.growth:for GPUs"}},
		{"reserve rule", "model: mlp\ndevices: [{preset: t4-16g, reserve_rule: old}]\n", []string{"2:devices.0.reserve_rule:tf2.1"}},
		{"peer", "model: mlp\ndevices: [{preset: t4-16g, peer: nvl}]\n", []string{`2:devices.0.peer:did you mean "nvlink"`}},
		{"interleave without cycle", "model: mlp\ninput: {interleave: {block: 3}}\n", []string{"2:input.interleave.cycle:missing"}},
		{"interleave calls", "model: mlp\ninput: {interleave: {cycle: 2, parallel: 3}}\n", []string{"2:input.interleave.parallel:InvalidArgument"}},
		{"prefetch to nowhere", "model: mlp\ninput: {prefetch_to_device: 2}\n", []string{"2:input.prefetch_to_device:no accelerator"}},
		{"map parallel", "model: mlp\ninput: {map: {parallel: some}}\n", []string{`2:input.map.parallel:"auto"`}},
		{"no such CPU", "model: mlp\nplacement: {rules: [{match: a, device: \"/CPU:1\"}]}\n", []string{"2:placement.rules.0.device:does not exist"}},
		{"no device name", "model: mlp\nplacement: {rules: [{match: a, device: /XPU:0}]}\n", []string{"2:placement.rules.0.device:not a device name"}},
		{"batch zero", "model: mlp\nbatch: 0\n", []string{"2:batch:at least 1"}},
		{"batch in a list", "model: mlp\nbatch: [32, -1]\n", []string{"2:batch:at least 1"}},
		{"batch a word", "model: mlp\nbatch: many\n", []string{"2:batch:whole number"}},
		{"batch empty", "model: mlp\nbatch: []\n", []string{"2:batch:empty list"}},
		{"batch too large", "model: mlp\nbatch: 1000000\n", []string{"2:batch:65536"}},
		{"batch nested", "model: mlp\nbatch: [[1]]\n", []string{"2:batch:single values"}},
		{"list where one value goes", "model: [mlp]\n", []string{"1:model:single value", "1:model:"}[:1]},
		{"fields where one value goes", "model: {a: b}\n", []string{"1:model:single value"}},
		{"value where fields go", "model: mlp\ninput: digits\n", []string{"2:input:expected fields"}},
		{"value where a list goes", "model: mlp\ndevices: gpu\n", []string{"2:devices:expected a list"}},
		{"fields where a list goes", "model: mlp\ndevices: {preset: t4-16g}\n", []string{"2:devices:expected a list"}},
		{"word in the list", "model: mlp\ndevices: [gpu]\n", []string{"2:devices.0:expected fields"}},
		{"train a word", "model: mlp\ntrain: adam\n", []string{"2:train:optimizer: adam"}},
		{"duration without unit", "model: mlp\ninput: {map: {cost: 300}}\n", []string{"2:input.map.cost:300us"}},
		{"size with a wrong unit", "model: mlp\ndevices: [{preset: t4-16g, memory_limit: 4 Gigs}]\n", []string{"2:devices.0.memory_limit:4GiB"}},
		{"soft", "model: mlp\nplacement: {soft: maybe}\n", []string{"2:placement.soft:neither true nor false"}},
		{"prefetch", "model: mlp\ninput: {prefetch: lots}\n", []string{`2:input.prefetch:"auto"`}},
		{"negative prefetch", "model: mlp\ninput: {prefetch: -1}\n", []string{`2:input.prefetch:"auto"`}},
		{"mode", "model: mlp\nmode: grpah\n", []string{`2:mode:did you mean "graph"`}},
		{"learning rate", "model: mlp\ntrain: {learning_rate: .nan}\n", []string{"2:train.learning_rate:above 0"}},
		{"merge key", "model: mlp\n<<: {steps: 3}\n", []string{"2:<<:merge keys"}},
		{"tag", "model: !!binary bWxw\n", []string{"1:model:tag"}},
		{"dotted key", "model: mlp\ninput.source: digits\n", []string{"2::name of a field"}},
		{"self-containing alias", "model: mlp\ninput: &a\n  map: *a\n", []string{"3:input.map"}},
		{"all of them", "model: lenet\nbatch: 0\nsteps: -4\ndevices: [{preset: x9}]\n", []string{"1:model", "2:batch", "3:steps", "4:devices.0.preset"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := Read([]byte(tt.text), known)
			if tt.name == "self-containing alias" {
				if len(got) == 0 || !strings.HasPrefix(got[0].Path, "input.map") {
					t.Fatalf("got %v", got)
				}
				return
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(got), len(tt.want), got)
			}
			for i, want := range tt.want {
				f := strings.SplitN(want, ":", 3)
				line, _ := strconv.Atoi(f[0])
				if got[i].Line != line || got[i].Path != f[1] || len(f) > 2 && !strings.Contains(got[i].Message, f[2]) {
					t.Errorf("got  %v\nwant %s", got[i], want)
				}
			}
		})
	}
}

// Cards that may be there are accepted and not named to people who misspell.
func TestUnlistedPresets(t *testing.T) {
	k := known
	k.Unlisted = []string{"cuda:0"}
	if _, p := Read([]byte("model: mlp\ndevices: [{preset: \"cuda:0\"}]\n"), k); len(p) > 0 {
		t.Error(p)
	}
	if _, p := Read([]byte("model: mlp\ndevices: [{preset: \"cuda:x\"}]\n"), k); len(p) != 1 || strings.Contains(p[0].Message, "cuda:0") {
		t.Error(p)
	}
}

// What the program finds on its own has its line, too.
func TestMoreProblemsNameTheirLine(t *testing.T) {
	k := known
	k.More = func(w *api.Workload) api.Problems { return api.Problems{{Path: "image", Message: "too odd"}} }
	if _, p := Read([]byte("model: mlp\nimage: 7\n"), k); len(p) != 1 || p[0].String() != "line 2: image: too odd" {
		t.Error(p)
	}
}

func TestHostileTextIsBounded(t *testing.T) {
	laughs := "a: &a [1,1,1,1,1,1,1,1,1]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		laughs += string(c) + ": &" + string(c) + " [*" + strings.Repeat(p+",*", 8) + p + "]\n"
	}
	tests := map[string]string{
		"laughs":       laughs + "batch: *j\n",
		"devices":      "model: mlp\nx: &x {preset: t4-16g}\ndevices: [" + strings.Repeat("*x,", 50_000) + "]\n",
		"depth":        "model: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"deep groups":  "input: " + strings.Repeat("{map: ", 2_000) + "1" + strings.Repeat("}", 2_000),
		"large":        "model: " + strings.Repeat("x", MaxSize),
		"many unknown": strings.Repeat("q", 1) + ": 1\n" + manyKeys(5_000),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			w, problems := Read([]byte(text), known)
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			if len(w.Devices) > api.MaxListed || len(problems) > 2*maxFound {
				t.Errorf("%d devices, %d problems", len(w.Devices), len(problems))
			}
			for _, p := range problems {
				if len(p.Message) > 2_000 {
					t.Errorf("message of %d bytes", len(p.Message))
				}
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("k" + strconv.Itoa(i) + ": 1\n")
	}
	return b.String()
}

func TestWriteThenReadIsTheSame(t *testing.T) {
	no := false
	tests := []*api.Workload{
		{Model: "mlp"},
		{Model: "mlp", Train: &api.Train{}},
		{Name: "true", Model: "mlp", Batch: []int{1}},
		{Name: "a: b # c \"d\"", Model: "mlp", Devices: []api.Device{{Preset: "t4-16g", Card: "12"}, {Preset: "a100-40g", Held: 1 << 30}}},
		{Model: "mlp", Placement: api.Placement{Soft: &no, Rules: []api.Rule{{Match: "*", Device: "/CPU:0"}}}},
		wholeWorkload(),
	}
	for _, w := range tests {
		text, err := Write(w)
		if err != nil {
			t.Fatal(err)
		}
		got, problems := Read(text, known)
		if len(problems) > 0 || !reflect.DeepEqual(got, w) {
			t.Errorf("%v\nwrote\n%s\nread %+v\nfrom %+v", problems, text, got, w)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"model":"mlp","devices":[{"preset":"t4-16g","logical":["1GiB"]}]}`))
	f.Add([]byte("a: &a [*a]\nmodel: *a\n"))
	f.Add([]byte("train: {}\nbatch: [1,2]\n? [x]\n: y\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, problems := Read(text, known)
		if len(problems) > 0 {
			return
		}
		out, err := Write(w)
		if err != nil {
			t.Fatalf("a valid workload cannot be written: %v", err)
		}
		if len(out) > MaxSize {
			return // aliases and escapes make a small text long
		}
		again, problems := Read(out, known)
		if len(problems) > 0 || !reflect.DeepEqual(normal(w), normal(again)) {
			t.Fatalf("%v\nwrote\n%s\nread %+v\nfrom %+v", problems, out, again, w)
		}
	})
}

// normal takes the difference between no list and an empty one away.
func normal(w *api.Workload) *api.Workload {
	c := w.Clone()
	if len(c.Devices) == 0 {
		c.Devices = nil
	}
	if len(c.Keep) == 0 {
		c.Keep = nil
	}
	if len(c.Env) == 0 {
		c.Env = nil
	}
	for i := range c.Devices {
		if len(c.Devices[i].Logical) == 0 {
			c.Devices[i].Logical = nil
		}
	}
	return c
}
