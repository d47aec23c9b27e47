package finding_test

import (
	"slices"
	"strings"
	"testing"

	"tideline/examples"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// run runs an example with modelled times; set are fields and values to change.
func run(t *testing.T, name string, set ...string) (*store.Timeline, launch.Result) {
	t.Helper()
	text, err := examples.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, problems := workfile.Read(text, launch.Known())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for i := 0; i < len(set); i += 2 {
		if err := w.Set(set[i], set[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	strs := new(event.Strings)
	tl := store.New(strs)
	one := make([]event.Event, 1)
	res, err := launch.Run(*w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
		one[0] = *e
		tl.Append(one)
	})})
	if err != nil {
		t.Fatal(err)
	}
	return tl, res
}

func find(list []finding.Finding, id finding.ID) *finding.Finding {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// must is a finding that has to be there, with what it suggests.
func must(t *testing.T, list []finding.Finding, id finding.ID, try ...string) *finding.Finding {
	t.Helper()
	f := find(list, id)
	if f == nil {
		t.Fatalf("no %s among %+v", id, list)
	}
	for _, want := range try {
		if !slices.ContainsFunc(f.Try, func(c finding.Change) bool { return c.String() == want }) {
			t.Errorf("%s does not suggest %s: %v", id, want, f.Try)
		}
	}
	return f
}

// TestEveryExampleShowsItsFinding: for each kind of trouble there is a workload
// that provokes it, and it is called by its name.
func TestEveryExampleShowsItsFinding(t *testing.T) {
	for name, want := range map[string]struct {
		id   finding.ID
		kind string
		sev  finding.Severity
	}{
		"oom-model":          {finding.OutOfMemory, "model", finding.Serious},
		"oom-batch":          {finding.OutOfMemory, "batch", finding.Serious},
		"oom-resnet":         {finding.OutOfMemory, "batch", finding.Serious},
		"wasteful-dtype":     {finding.OutOfMemory, "dtype", finding.Serious},
		"fragmentation":      {finding.OutOfMemory, "fragmentation", finding.Serious},
		"unet-fragmentation": {finding.OutOfMemory, "fragmentation", finding.Serious},
		"leak":               {finding.OutOfMemory, "leak", finding.Serious},
		"cpu-bottleneck":     {finding.InputBound, "highly_input_bound", finding.Serious},
		"stall":              {finding.InputBound, "highly_input_bound", finding.Serious},
		"copies":             {finding.Copies, "", finding.Serious},
		"transfers":          {finding.Copies, "", finding.Serious},
	} {
		tl, _ := run(t, name)
		list := finding.Of(tl)
		f := must(t, list, want.id)
		if f.Kind != want.kind || f.Severity != want.sev {
			t.Errorf("%s: %s/%s, %s; want %s, %s", name, f.ID, f.Kind, f.Severity, want.kind, want.sev)
		}
		if list[0].Severity != finding.Serious {
			t.Errorf("%s: the weightiest is not first", name)
		}
		for i := range list {
			for _, s := range list[i].Text {
				if !strings.HasSuffix(s, ".") || strings.Contains(s, "  ") {
					t.Errorf("%s: %q is no sentence", name, s)
				}
			}
		}
	}
}

// TestFineRunsHaveNoSeriousFinding: what is well is not complained about.
func TestFineRunsHaveNoSeriousFinding(t *testing.T) {
	for _, name := range []string{"resnet50", "planned", "lstm", "mlp", "mixed-precision", "bert-checkpoint", "swap", "demo", "lenet-eager"} {
		tl, _ := run(t, name)
		for _, f := range finding.Of(tl) {
			if f.Severity == finding.Serious {
				t.Errorf("%s: %s: %v", name, f.Title, f.Text)
			}
			if f.ID == finding.Leak || f.ID == finding.Copies || f.ID == finding.WastefulDType || f.ID == finding.OutOfMemory {
				t.Errorf("%s has %s: %v", name, f.ID, f.Text)
			}
		}
	}
}

// conv1 is what an op of the first layer of LeNet-5 makes of a batch of 256.
const conv1 = 256 * 28 * 28 * 6 * 4

func TestALeakIsTracedToItsOp(t *testing.T) {
	for _, c := range []struct {
		keep, culprit string
		each          int64 // tensors a step
	}{
		{"conv1/Tanh", "conv1/Tanh", 1},
		{"conv1/*", "conv1/", 3},
	} {
		tl, res := run(t, "leak", "keep", c.keep, "steps", "12")
		if res.Reason != event.EndDone {
			t.Fatal(res.Message)
		}
		f := must(t, finding.Of(tl), finding.Leak, "keep=")
		if !strings.HasPrefix(f.Culprit, c.culprit) || f.Device != "/GPU:0" || f.Severity != finding.Warning {
			t.Errorf("%s on %s, %s", f.Culprit, f.Device, f.Severity)
		}
		if f.Number("blocks") != 12*c.each || f.Number("steps") != 12 {
			t.Errorf("%d blocks of %d steps", f.Number("blocks"), f.Number("steps"))
		}
		// Chunks are handed out whole up to twice the request, no more.
		if g := f.Number("growth_bytes_per_step"); g < c.each*conv1 || g >= 2*c.each*conv1 {
			t.Errorf("%d bytes a step, want %d and unused tails", g, c.each*conv1)
		}
		if !strings.Contains(strings.Join(f.Text, " "), "4816896 bytes") {
			t.Errorf("the size of each is not told: %v", f.Text)
		}
		// What is foretold comes true: the limit is reached within a few steps.
		tl, res = run(t, "leak", "keep", c.keep, "steps", "100")
		told := 12 + f.Number("steps_to_the_limit")
		if d := int64(res.Steps) - told; d < -6 || d > 6 {
			t.Errorf("%d steps were foretold, %d ran", told, res.Steps)
		}
		if o := must(t, finding.Of(tl), finding.OutOfMemory, "keep="); o.Kind != "leak" || !strings.HasPrefix(o.Culprit, c.culprit) {
			t.Errorf("%s by %s", o.Kind, o.Culprit)
		}
	}
}

// TestBuffersAreNoLeak: what holds batches of several steps but never more of
// them, the same run without what it keeps, and one too short to tell.
func TestBuffersAreNoLeak(t *testing.T) {
	for _, set := range [][]string{
		{"keep", ""},
		{"keep", "", "input.prefetch_to_device", "5"},
		{"keep", "", "mode", "graph", "input.prefetch", "auto"},
		{"steps", "3"},
	} {
		tl, _ := run(t, "leak", set...)
		if f := find(finding.Of(tl), finding.Leak); f != nil {
			t.Errorf("%v: %v", set, f.Text)
		}
	}
}

// TestACopyIsNamedByWhoMadeTheTensor: not by the op that waits for it, which is
// what an eager run's copy is for.
func TestACopyIsNamedByWhoMadeTheTensor(t *testing.T) {
	tl, _ := run(t, "guide-pinned")
	text := strings.Join(must(t, finding.Of(tl), finding.Copies, "placement.rules=none").Text, "\n")
	for _, want := range []string{"To the host go the results of flatten/Reshape.", "Back come those of dense1/Relu."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

func TestCopiesAreTracedToTheirRule(t *testing.T) {
	tl, _ := run(t, "copies")
	f := must(t, finding.Of(tl), finding.Copies, "placement.rules=none")
	if f.Culprit != "rule block5/* on /CPU:0" {
		t.Errorf("culprit %q", f.Culprit)
	}
	// Five tensors of block5's shape at a batch of 16 each way in all, and the
	// two numbers of the optimizer.
	const tensor = 16 * 56 * 56 * 128 * 4
	if n := f.Number("copied_bytes_per_step"); n != 5*tensor+8 {
		t.Errorf("%d bytes a step, want %d", n, 5*tensor+8)
	}
	if n := f.Number("copies_per_step"); n != 7 {
		t.Errorf("%d copies a step", n)
	}
	text := strings.Join(f.Text, " ")
	for _, op := range []string{"block4/Relu_2", "gradients/AddN_10", "block5/Relu_2", "gradients/block5/conv1/Conv2DBackpropInput"} {
		if !strings.Contains(text, op) {
			t.Errorf("%s is not named: %s", op, text)
		}
	}
	if tl, _ = run(t, "copies", "placement.rules", "none"); find(finding.Of(tl), finding.Copies) != nil {
		t.Error("without the rule there are still too many copies")
	}
}

func TestTheInputsStageIsNamed(t *testing.T) {
	tl, _ := run(t, "cpu-bottleneck")
	f := must(t, finding.Of(tl), finding.InputBound, "input.map.parallel=2")
	if f.Culprit != "map" || f.Number("stage_calls_per_step") != 32 || f.Number("parallel_calls_needed") != 2 {
		t.Errorf("%s, %+v", f.Culprit, f.Numbers)
	}
	if n := f.Number("stage_ns_per_step"); n < 31*12e6 || n > 32*12e6 {
		t.Errorf("%d ns of work a step, want 32 calls of 12 ms", n)
	}
	step, wait := f.Number("step_ns"), f.Number("wait_ns_per_step")
	if got := f.Number("input_percent"); got < 10000*wait/step || got > 10000*(wait+f.Number("input_copy_ns_per_step"))/step+1 {
		t.Errorf("%d of 10000, %d of %d ns", got, wait, step)
	}
	// As many calls as are said to be needed keep up.
	if tl, _ = run(t, "cpu-bottleneck", "input.map.parallel", "2"); find(finding.Of(tl), finding.InputBound) != nil {
		t.Error("two calls at once do not keep up")
	}
	tl, _ = run(t, "stall")
	must(t, finding.Of(tl), finding.InputBound, "input.prefetch=auto", "input.map.parallel=8")
}

func TestFloat64IsHalfWasted(t *testing.T) {
	tl, _ := run(t, "wasteful-dtype", "batch", "32")
	f := must(t, finding.Of(tl), finding.WastefulDType, "train.precision=float32", "train.precision=mixed_float16")
	single, res := run(t, "wasteful-dtype", "batch", "32", "train.precision", "float32")
	if find(finding.Of(single), finding.WastefulDType) != nil {
		t.Error("float32 is called wasteful")
	}
	peak, saved := f.Number("peak_bytes"), f.Number("saved_in_float32_bytes")
	// What is said to be saved is, within the input and temporaries, which do
	// not change, and the chunks' tails.
	if got := peak - res.Devices[1].PeakInUse; saved < got*9/10 || saved > got*11/10 {
		t.Errorf("%d bytes are said to be saved, a rerun saves %d", saved, got)
	}
	if f.Severity != finding.Warning {
		t.Errorf("%s although it fits", f.Severity)
	}
}

func TestFragmentationIsFollowedOverTime(t *testing.T) {
	tl, res := run(t, "fragmentation")
	f := must(t, finding.Of(tl), finding.Fragmentation, "batch=360")
	if f.Number("free_bytes") != res.OOM.Free || f.Number("largest_hole_bytes") != res.OOM.Largest || f.Number("requested_bytes") != res.OOM.Requested {
		t.Errorf("%+v; the run says %+v", f.Numbers, res.OOM)
	}
	if got, want := f.Number("fragmentation_percent"), 10000-10000*res.OOM.Largest/res.OOM.Free; got < want-1 || got > want+1 {
		t.Errorf("%d, want %d", got, want)
	}
	for _, p := range tl.Pools() {
		if p.Name != "GPU_0_bfc" {
			continue
		}
		curve := finding.Over(tl, p, 10)
		if len(curve) != 10 {
			t.Fatalf("%d instants", len(curve))
		}
		for i, c := range curve {
			if c.Free+c.InUse != c.Reserved || c.LargestFree > c.Free || i > 0 && c.Time <= curve[i-1].Time {
				t.Errorf("%+v", c)
			}
		}
	}
}

// TestThePeakIsWholeInEveryMode: categories sum to the peak, planned arenas
// opened and not counted twice.
func TestThePeakIsWholeInEveryMode(t *testing.T) {
	for _, mode := range []string{"eager", "graph", "planned"} {
		tl, res := run(t, "resnet50", "mode", mode, "steps", "3", "batch", "8")
		f := must(t, finding.Of(tl), finding.Peak)
		var sum int64
		for _, n := range f.Numbers {
			switch n.Name {
			case "peak_bytes", "reserved_bytes", "limit_bytes":
			default:
				sum += n.Value
			}
		}
		if peak := res.Devices[1].PeakInUse; f.Number("peak_bytes") != peak || sum != peak {
			t.Errorf("%s: peak %d, parts sum to %d, the run says %d", mode, f.Number("peak_bytes"), sum, peak)
		}
		if f.Number("activation_bytes") < res.Devices[1].PeakInUse/2 {
			t.Errorf("%s: activations are %d of %d", mode, f.Number("activation_bytes"), res.Devices[1].PeakInUse)
		}
	}
}
