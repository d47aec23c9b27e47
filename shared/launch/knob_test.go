package launch

import (
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/pipeline"
)

// ran is a run with what it told.
type ran struct {
	Result
	log     []string // lines, warnings begin with "! "
	traces  int
	kernels int
	facts   []event.Fields
	held    map[string]int64 // host memory of the pipeline's buffers, by name
}

func run(t *testing.T, w api.Workload) ran {
	t.Helper()
	r, err := try(w)
	if err != nil {
		t.Fatalf("%s: %v", w.Model, err)
	}
	return r
}

func try(w api.Workload) (ran, error) {
	table := new(event.Strings)
	out := ran{held: map[string]int64{}}
	res, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		switch e.Kind {
		case event.Log:
			line := table.At(e.Text)
			if e.Flags&event.Warning != 0 {
				line = "! " + line
			}
			out.log = append(out.log, line)
		case event.Annotation:
			out.traces++
		case event.OpBegin:
			out.kernels++
		case event.DeviceFacts:
			f, _ := event.ParseFields(table.At(e.Text))
			out.facts = append(out.facts, f)
		case event.Alloc:
			if n := table.At(e.Tensor); strings.HasSuffix(n, " buffer") {
				out.held[n] += e.Requested
			}
		default:
		}
	})})
	out.Result = res
	return out, err
}

func (r *ran) logged(part string) bool {
	for _, l := range r.log {
		if strings.Contains(l, part) {
			return true
		}
	}
	return false
}

func lenet(edit func(w *api.Workload)) api.Workload {
	w := api.Workload{Model: "lenet5", Train: &api.Train{}, Batch: []int{16}, Steps: 3, Devices: []api.Device{{Preset: "lab-256m"}}}
	edit(&w)
	return w
}

// Every switch does something: it changes what the run does or holds.
func TestEverySwitchHasAnEffect(t *testing.T) {
	on := true
	resnet := func(edit func(w *api.Workload)) api.Workload {
		w := api.Workload{Model: "resnet18", Train: &api.Train{}, Batch: []int{4}, Image: []int{96}, Steps: 2, Devices: []api.Device{{Preset: "t4-16g"}}}
		edit(&w)
		return w
	}
	large := func(parts int) api.Workload {
		return resnet(func(w *api.Workload) { w.Batch, w.Image, w.Train.Microbatches = []int{32}, []int{224}, parts })
	}
	large1 := run(t, large(1))
	plain, small := run(t, resnet(func(*api.Workload) {})), run(t, lenet(func(*api.Workload) {}))
	swapped := run(t, resnet(func(w *api.Workload) { w.Train.Swap = "activations" }))
	rms := run(t, resnet(func(w *api.Workload) { w.Train.Optimizer = "rmsprop" }))
	eager := run(t, resnet(func(w *api.Workload) { w.Mode = api.Eager }))
	host := func(r ran) int64 { return r.Devices[0].PeakInUse }
	peak := func(r ran) int64 { return r.Devices[1].PeakInUse }
	within := large(1)
	within.Train.Checkpoint = strconv.FormatInt(peak(large1)*9/10>>20, 10) + "MiB"
	for _, c := range []struct {
		name string
		w    api.Workload
		base ran
		want func(got, base ran) bool
	}{
		{"eager", lenet(func(w *api.Workload) { w.Mode = api.Eager }), small, func(g, b ran) bool { return g.traces == 0 && peak(g) > peak(b) }},
		{"planned", lenet(func(w *api.Workload) { w.Mode = api.Planned }), small, func(g, b ran) bool { return g.Events != b.Events }},
		{"optimize", lenet(func(w *api.Workload) { w.Optimize = &on }), small, func(g, b ran) bool { return g.kernels < b.kernels && g.logged("constant folding") }},
		{"checkpoint every block", resnet(func(w *api.Workload) { w.Train.Checkpoint = "1" }), plain, func(g, b ran) bool { return g.kernels > b.kernels && g.Nanos > b.Nanos }},
		{"checkpoint sqrt", resnet(func(w *api.Workload) { w.Train.Checkpoint = "sqrt" }), plain, func(g, b ran) bool { return g.kernels > b.kernels }},
		{"checkpoint selective", resnet(func(w *api.Workload) { w.Train.Checkpoint = "selective" }), plain, func(g, b ran) bool { return g.kernels > b.kernels && peak(g) < peak(b) }},
		{"swap", resnet(func(w *api.Workload) { w.Train.Swap = "activations" }), plain, func(g, b ran) bool { return peak(g) < peak(b) && g.logged("wait in host memory") }},
		{"swap auto, all fits", resnet(func(w *api.Workload) { w.Train.Swap = "auto" }), plain, func(g, b ran) bool { return g.Events == b.Events }},
		{"float64", resnet(func(w *api.Workload) { w.Train.Precision = "float64" }), plain, func(g, b ran) bool { return peak(g) > peak(b)*19/10 }},
		{"mixed_float16", resnet(func(w *api.Workload) { w.Train.Precision = "mixed_float16" }), plain, func(g, b ran) bool { return g.kernels > b.kernels }},
		{"microbatches", large(4), large1, func(g, b ran) bool { return g.kernels > 3*b.kernels && peak(g) < peak(b)*2/3 }},
		{"clip", resnet(func(w *api.Workload) { w.Train.Clip = 1 }), plain, func(g, b ran) bool { return g.kernels > b.kernels }},
		{"sgd", resnet(func(w *api.Workload) { w.Train.Optimizer = "sgd" }), plain, func(g, b ran) bool { return peak(g) < peak(b) }},
		{"amsgrad", resnet(func(w *api.Workload) { w.Train.Optimizer = "amsgrad" }), plain, func(g, b ran) bool { return peak(g) > peak(b) }},
		{"keep", lenet(func(w *api.Workload) { w.Keep = []string{"*/Tanh"} }), small, func(g, b ran) bool { return peak(g) > peak(b) }},
		{"prefetch to device", lenet(func(w *api.Workload) { w.Input.PrefetchToDevice = 2 }), small, func(g, b ran) bool { return peak(g) >= peak(b)+2*16*32*32*4 }},
		{"no workspace", resnet(func(w *api.Workload) { w.Env = []string{"TF_CUDNN_WORKSPACE_LIMIT_IN_MB=0"} }), plain, func(g, b ran) bool { return g.Nanos > b.Nanos && g.Events < b.Events }},
		{"checkpoint within a budget", within, large1, func(g, b ran) bool { return g.kernels > b.kernels && peak(g) < peak(b)*95/100 }},
		{"rmsprop with momentum", resnet(func(w *api.Workload) { w.Train.Optimizer, w.Train.Momentum = "rmsprop", 0.9 }), rms, func(g, b ran) bool { return g.kernels < b.kernels }},
		{"rmsprop, centered", resnet(func(w *api.Workload) { w.Train.Optimizer, w.Train.Centered = "rmsprop", true }), rms, func(g, b ran) bool { return peak(g) > peak(b) }},
		{"async", resnet(func(w *api.Workload) { w.Mode, w.Runtime.Async = api.Eager, true }), eager, func(g, b ran) bool { return peak(g) != peak(b) }},
		{"free tape gradually", resnet(func(w *api.Workload) { w.Mode, w.Runtime.FreeTapeGradually = api.Eager, true }), eager, func(g, b ran) bool { return peak(g) < peak(b) }},
		{"deferred deletion", resnet(func(w *api.Workload) { w.Train.Swap, w.Runtime.DeferredDeletion = "activations", 64<<20 }), swapped, func(g, b ran) bool { return peak(g) > peak(b) }},
		{"autotune", resnet(func(w *api.Workload) { w.Runtime.Autotune = true }), plain, func(g, b ran) bool { return g.Events > b.Events && g.Nanos > b.Nanos }},
		{"autotune by the environment", resnet(func(w *api.Workload) { w.Env = []string{"TF_CUDNN_USE_AUTOTUNE=1"} }), plain, func(g, b ran) bool { return g.Events > b.Events }},
		{"workspace limit", resnet(func(w *api.Workload) { w.Runtime.WorkspaceLimit = 1 }), plain, func(g, b ran) bool { return g.Nanos > b.Nanos && g.Events < b.Events }},
		{"timestamped allocator", lenet(func(w *api.Workload) { w.Runtime.TimestampedAllocator = true }), small, func(g, b ran) bool { return peak(g) > peak(b) || g.Nanos < b.Nanos }},
		{"force GPU compatible", lenet(func(w *api.Workload) { w.Runtime.ForceGPUCompatible = true }), small, func(g, b ran) bool { return host(g) != host(b) }},
		{"image", resnet(func(w *api.Workload) { w.Image = []int{128} }), plain, func(g, b ran) bool { return peak(g) > peak(b) }},
		{"inference in float16", resnet(func(w *api.Workload) { w.Train, w.Precision = nil, "float16" }), plain, func(g, b ran) bool { return peak(g) < peak(b)/4 }},
	} {
		if got := run(t, c.w); got.Reason != event.EndDone || !c.want(got, c.base) {
			t.Errorf("%s: %s, %d events (without: %d), %d kernels (%d), peak %d (%d), log %q",
				c.name, got.Reason, got.Events, c.base.Events, got.kernels, c.base.kernels, peak(got), peak(c.base), got.log)
		}
	}
}

func TestEveryShapeIsTracedOnce(t *testing.T) {
	w := api.Workload{
		Model: "lstm", Train: &api.Train{}, Batch: []int{2, 3}, Sequence: []int{4, 5, 6}, Steps: 13,
		Devices: []api.Device{{Preset: "t4-16g"}},
	}
	if r := run(t, w); r.traces != 6 {
		t.Errorf("%d traces of two batches and three lengths in turn, want 6", r.traces)
	}
	w = lenet(func(w *api.Workload) { w.Image, w.Steps = []int{32, 28, 32}, 9 })
	if r := run(t, w); r.traces != 2 {
		t.Errorf("%d traces of two sides, want 2", r.traces)
	}
}

// A leak grows by the same bytes each step, for as long as the run goes.
func TestKeepGrowsEachStep(t *testing.T) {
	for _, mode := range []api.Mode{api.Eager, api.Graph, api.Planned} {
		var last int64
		for _, steps := range []int{4, 6, 8} {
			r := run(t, lenet(func(w *api.Workload) { w.Mode, w.Keep, w.Steps = mode, []string{"conv1/Tanh"}, steps }))
			const kept = 2 * 16 * 28 * 28 * 6 * 4 // two steps' results
			if grown := r.Devices[1].PeakInUse - last; last > 0 && grown != kept {
				t.Errorf("%s: two more steps hold %d bytes more, want %d", mode, grown, kept)
			}
			last = r.Devices[1].PeakInUse
		}
	}
	if r := run(t, lenet(func(w *api.Workload) { w.Keep = []string{"nothing*"} })); !r.logged(`! keep "nothing*": no op`) {
		t.Errorf("log %q", r.log)
	}
}

func TestDevicesAreMadeAsConfigured(t *testing.T) {
	gib := int64(1 << 30)
	two := []api.Device{{Preset: "t4-16g"}, {Preset: "t4-16g"}}
	const free = 15104 - 250
	for _, c := range []struct {
		name string
		edit func(w *api.Workload)
		want []int64 // limits in MiB
	}{
		{"as they are", func(w *api.Workload) {}, []int64{free - 1050, free - 1050}},
		{"the first is hidden", func(w *api.Workload) { w.Devices[0].Hidden = true }, []int64{free - 1050}},
		{"both are hidden", func(w *api.Workload) { w.Devices[0].Hidden, w.Devices[1].Hidden = true, true }, nil},
		{"CUDA_VISIBLE_DEVICES", func(w *api.Workload) {
			w.Env, w.Devices[1].MemoryLimit = []string{"CUDA_VISIBLE_DEVICES=1"}, gib
		}, []int64{1024}},
		{"none visible", func(w *api.Workload) { w.Env = []string{"CUDA_VISIBLE_DEVICES=-1"} }, nil},
		{"two on one card", func(w *api.Workload) { w.Devices[0].Logical = []int64{gib, gib} }, []int64{1024, 1024, free - 1050}},
		{"fraction", func(w *api.Workload) { w.Devices[0].Fraction, w.Devices[1].Fraction = 0.5, 0.5 }, []int64{7552, 7552}},
		{"virtual", func(w *api.Workload) { w.Devices[0].Virtual, w.Devices[1].Virtual = 2, 2 }, []int64{(free - 1050) / 2, (free - 1050) / 2, (free - 1050) / 2, (free - 1050) / 2}},
		{"old reserve", func(w *api.Workload) { w.Devices[0].ReserveRule, w.Devices[1].ReserveRule = "tf2.1", "tf2.1" }, []int64{free - free/20 - 1, free - free/20 - 1}},
		{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB", func(w *api.Workload) { w.Env = []string{"TF_DEVICE_MIN_SYS_MEMORY_IN_MB=2000"} }, []int64{free - 2000, free - 2000}},
		{"more than the card has", func(w *api.Workload) { w.Devices[0].Fraction, w.Devices[1].Fraction = 1.5, 1.5 }, []int64{22656, 22656}},
	} {
		w := lenet(func(w *api.Workload) { w.Devices = append([]api.Device(nil), two...); c.edit(w) })
		r := run(t, w)
		if len(r.Devices)-1 != len(c.want) {
			t.Errorf("%s: %d accelerators, want %d", c.name, len(r.Devices)-1, len(c.want))
			continue
		}
		for i, d := range r.Devices[1:] {
			if got := d.Limit >> 20; got != c.want[i] {
				t.Errorf("%s: %s has %d MiB, want %d", c.name, d.Name, got, c.want[i])
			}
		}
	}
}

func TestEnvironmentOverridesGrowth(t *testing.T) {
	for value, want := range map[string]string{"true": "true", "false": "false"} {
		r := run(t, lenet(func(w *api.Workload) {
			w.Env, w.Devices[0].Growth = []string{"TF_FORCE_GPU_ALLOW_GROWTH=" + value}, value == "false"
		}))
		if got := r.facts[1].Text("growth"); got != want || !r.logged("! memory growth") {
			t.Errorf("forced %s: growth %s, log %q", value, got, r.log)
		}
	}
}

func TestTPUIsADeviceOfItsOwn(t *testing.T) {
	w := lenet(func(w *api.Workload) {
		w.Devices = []api.Device{{Preset: "lab-256m"}, {Kind: "tpu", Preset: "tpu-v3"}}
		w.Placement.Rules = []api.Rule{{Match: "dense*", Device: "/TPU:0"}}
	})
	r := run(t, w)
	if len(r.Devices) != 3 || r.Devices[2].Name != "/TPU:0" || r.Devices[2].PeakInUse == 0 {
		t.Errorf("devices %+v", r.Devices)
	}
}

func TestCopyPolicyOfARun(t *testing.T) {
	for policy, want := range map[api.CopyPolicy]string{
		api.CopySilent: "", api.CopyWarn: "is copied", api.CopyExplicit: "conflicting devices", api.CopySilentForInt32: "conflicting devices",
	} {
		r, err := try(lenet(func(w *api.Workload) { w.Mode, w.CopyPolicy = api.Eager, policy }))
		switch {
		case strings.HasPrefix(want, "conflict"):
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "input #0") || r.Reason != event.EndFailed {
				t.Errorf("%s: %v", policy, err)
			}
		case err != nil || r.Reason != event.EndDone:
			t.Errorf("%s: %v %s", policy, err, r.Message)
		case want != "" && !r.logged(want):
			t.Errorf("%s: log %q", policy, r.log)
		}
	}
}

func TestPlacementIsLogged(t *testing.T) {
	r := run(t, lenet(func(w *api.Workload) { w.Placement.Log = true }))
	if !r.logged("conv1/Conv2D: (Conv2D): /job:localhost/replica:0/task:0/device:GPU:0") {
		t.Errorf("log %q", r.log)
	}
}

func TestRulesWithoutEffectAreTold(t *testing.T) {
	r := run(t, lenet(func(w *api.Workload) {
		w.Placement.Rules = []api.Rule{{Match: "conv9/*", Device: "/CPU:0"}, {Match: "conv1/*", Device: "/GPU:0"}}
	}))
	if !r.logged(`! placement rule 0 ("conv9/*" on /CPU:0) matches no op`) {
		t.Errorf("log %q", r.log)
	}
	_, err := try(lenet(func(w *api.Workload) {
		w.Placement.Rules = []api.Rule{{Match: "conv1/*", Device: "/CPU:0"}, {Match: "conv1/**", Device: "/GPU:0"}}
	}))
	if err == nil || !strings.Contains(err.Error(), "disagree") {
		t.Errorf("two rules that disagree: %v", err)
	}
}

// Model parallelism: layers on two cards by rules, and nothing else crosses
// than what one layer hands to the next.
func TestModelParallelismByRules(t *testing.T) {
	w := api.Workload{
		Model: "resnet18", Train: &api.Train{}, Batch: []int{2}, Image: []int{64}, Steps: 2,
		Devices:   []api.Device{{Preset: "v100-16g"}, {Preset: "v100-16g"}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "block5/*", Device: "/GPU:1"}, {Match: "block6/*", Device: "/GPU:1"}, {Match: "block7/*", Device: "/GPU:1"}, {Match: "block8/*", Device: "/GPU:1"}}},
	}
	r := run(t, w)
	if a, b := r.Devices[1].PeakInUse, r.Devices[2].PeakInUse; a == 0 || b < 30<<20 {
		t.Errorf("peaks %d and %d, want both cards in use; log %q", a, b, r.log)
	}
}

func TestInputStages(t *testing.T) {
	steps := func(edit func(w *api.Workload)) int {
		return run(t, lenet(func(w *api.Workload) { w.Batch, w.Steps = []int{100}, 1000; edit(w) })).Steps
	}
	for _, c := range []struct {
		name string
		edit func(w *api.Workload)
		want int
	}{
		{"one epoch", func(w *api.Workload) { w.Input.Repeat = 1 }, 15},
		{"whole batches", func(w *api.Workload) { w.Input.Repeat, w.Input.DropRemainder = 1, true }, 14},
		{"two epochs", func(w *api.Workload) { w.Input.Repeat = 2 }, 29},
		{"take", func(w *api.Workload) { w.Input.Repeat, w.Input.Take = 1, 250 }, 3},
		{"skip", func(w *api.Workload) { w.Input.Repeat, w.Input.Skip = 1, 1400 }, 1},
		{"skip and take", func(w *api.Workload) { w.Input.Repeat, w.Input.Skip, w.Input.Take = 1, 1338, 200 }, 1},
		{"nothing left", func(w *api.Workload) { w.Input.Skip = 5000 }, 0},
	} {
		if got := steps(c.edit); got != c.want {
			t.Errorf("%s: %d steps, want %d", c.name, got, c.want)
		}
	}
	r := run(t, lenet(func(w *api.Workload) { w.Batch, w.Steps, w.Input.Repeat = []int{100}, 1000, 1 }))
	if r.traces != 2 || !strings.Contains(r.Message, "exhausted") {
		t.Errorf("%d traces, want one more for the batch of 38; %s", r.traces, r.Message)
	}
	auto := run(t, lenet(func(w *api.Workload) { w.Input.Map = api.Map{Parallel: api.Auto, Cost: 1000} }))
	if got := auto.held["map buffer"]; got != pipeline.DefaultCores*(32*32*4+8) {
		t.Errorf("where maps are what costs, the map buffer holds %d bytes, want a result for each core", got)
	}
	slow := func(w *api.Workload) {
		w.Steps, w.Batch, w.Input.Take, w.Input.FetchCost, w.Input.Map.Cost = 12, []int{100}, 400, 50_000, 50_000
	}
	base := run(t, lenet(slow))
	for name, edit := range map[string]func(w *api.Workload){
		"cache":      func(w *api.Workload) { slow(w); w.Input.Cache = true },
		"interleave": func(w *api.Workload) { slow(w); w.Input.Interleave = api.Interleave{Cycle: 4, Block: 10, Parallel: 4} },
		"auto":       func(w *api.Workload) { slow(w); w.Input.Map.Parallel = api.Auto },
	} {
		r := run(t, lenet(edit))
		if r.Nanos > base.Nanos*8/10 {
			t.Errorf("%s: %d ms, without it %d", name, r.Nanos/1e6, base.Nanos/1e6)
		}
		if name == "cache" && r.held["cache buffer"] < 400*(32*32*4+8) {
			t.Errorf("the cache holds %d bytes: %v", r.held["cache buffer"], r.held)
		}
	}
}

func TestSourceFitsTheModel(t *testing.T) {
	if r := run(t, api.Workload{Model: "bert-2layer", Train: &api.Train{}, Batch: []int{2}, Steps: 2}); r.Reason != event.EndDone {
		t.Error(r.Message)
	}
	for _, c := range []struct {
		edit func(w *api.Workload)
		want string
	}{
		{func(w *api.Workload) { w.Model, w.Input.Source = "bert-2layer", "digits" }, "input.source: digits is nothing"},
		{func(w *api.Workload) { w.Input.Source = "text" }, "input.source: text is nothing"},
		{func(w *api.Workload) { w.Model, w.Image = "bert-2layer", []int{64} }, "image: "},
		{func(w *api.Workload) { w.Sequence = []int{64} }, "sequence: "},
		{func(w *api.Workload) { w.Model, w.Image = "unet", []int{60} }, "image: "},
	} {
		_, err := try(lenet(c.edit))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestHeavyRunsAreOnlyModelled(t *testing.T) {
	for _, c := range []struct {
		w    api.Workload
		want string
	}{
		{lenet(func(w *api.Workload) { w.Batch = []int{1024} }), ""},
		{api.Workload{Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 100}, ""},
		{api.Workload{Model: "resnet50", Train: &api.Train{}, Batch: []int{32}}, "holds"},
		{api.Workload{Model: "vgg16", Batch: []int{4}, Steps: 1}, "GFLOP"},
		{api.Workload{Model: "lenet5", Batch: []int{1024}, Steps: 1_000_000}, "GFLOP"},
		{api.Workload{Model: "nothing"}, ""},
	} {
		if got := Heavy(&c.w); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s at %v: %q, want %q", c.w.Model, c.w.Batch, got, c.want)
		}
	}
}

func TestRemarkIsLogged(t *testing.T) {
	table := new(event.Strings)
	found := false
	_, err := Run(lenet(func(*api.Workload) {}), Options{Strings: table, Remark: "as agreed", Sink: event.SinkFunc(func(e *event.Event) {
		found = found || e.Kind == event.Log && table.At(e.Text) == "as agreed"
	})})
	if err != nil || !found {
		t.Errorf("%v, logged %v", err, found)
	}
}

// With optimize a sum of many gradients is accumulated where the step would
// take more than 80 % of the device, as TensorFlow's scheduling heuristic has
// it, and not where there is room, or where XLA plans the memory.
func TestSumsAreAccumulatedWhereMemoryIsShort(t *testing.T) {
	on := true
	bert := func(limit int64, mode api.Mode) ran {
		return run(t, api.Workload{
			Model: "bert-2layer", Mode: mode, Train: &api.Train{}, Batch: []int{32}, Steps: 2, Optimize: &on,
			Devices: []api.Device{{Preset: "t4-16g", MemoryLimit: limit}},
		})
	}
	roomy := bert(0, api.Graph)
	peak := roomy.Devices[1].PeakInUse
	if roomy.logged("accumulated") {
		t.Error("sums are accumulated where there is room")
	}
	if tight := bert(peak*21/20, api.Graph); tight.Reason != event.EndDone || !tight.logged("sums are accumulated") {
		t.Errorf("within 21/20 of the peak %d: %s, peak %d, log %q", peak, tight.Reason, tight.Devices[1].PeakInUse, tight.log)
	}
	if planned := bert(peak*21/20, api.Planned); planned.logged("accumulated") {
		t.Error("sums are accumulated where the memory is planned")
	}
}
