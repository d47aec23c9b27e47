package runtime

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// The checklist of the configuration, through the runtime: what an op freezes,
// what a list of logical devices finds wrong.

func TestGrowthIsFrozenByTheFirstOp(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	gpu := rt.PhysicalDevices("GPU")[0]
	rt.PhysicalDevices("GPU")
	ok(t, rt.SetMemoryGrowth(gpu, true))
	if rt.Initialized() {
		t.Fatal("initialised by listing physical devices")
	}
	floats(t, rt, []float32{1})
	err := rt.SetMemoryGrowth(gpu, false)
	refused(t, err, device.RuntimeError, gpu.Name, "memory growth")
	if !errors.Is(err, ErrInitialized) {
		t.Error("not ErrInitialized")
	}
	ok(t, rt.SetMemoryGrowth(gpu, true))
}

func TestWhatInitialises(t *testing.T) {
	for name, use := range map[string]func(*Runtime) error{
		"LogicalDevices": func(rt *Runtime) error { _, err := rt.LogicalDevices("CPU"); return err },
		"MemoryInfo":     func(rt *Runtime) error { _, err := rt.MemoryInfo("GPU:0"); return err },
		"ResetPeak":      func(rt *Runtime) error { return rt.ResetPeak("GPU:0") },
		"an op":          func(rt *Runtime) error { _, err := rt.RandomUniform(program.Float32, 1, 4); return err },
		"a variable":     func(rt *Runtime) error { _, err := rt.NewVariable("v", VariableOptions{}); return err },
	} {
		rt, _ := newRuntime(t, gpus(1))
		if rt.Initialized() {
			t.Fatal("initialised at once")
		}
		ok(t, use(rt))
		if !rt.Initialized() {
			t.Errorf("%s does not initialise", name)
		}
	}
	rt, _ := newRuntime(t, gpus(1))
	rt.Visible("")
	rt.Threads()
	rt.SoftPlacement()
	_, _ = rt.Details(rt.PhysicalDevices("GPU")[0])
	if rt.Initialized() {
		t.Error("a question about settings initialises")
	}
}

func TestGrowthThatDiffersIsFoundByTheFirstUse(t *testing.T) {
	rt, _ := newRuntime(t, gpus(2))
	two := rt.PhysicalDevices("GPU")
	ok(t, rt.SetMemoryGrowth(two[0], true))
	_, err := rt.LogicalDevices("GPU")
	refused(t, err, device.ValueError, "cannot differ")
	_, err = Constant(rt, []float32{1})
	refused(t, err, device.ValueError, "cannot differ")
	ok(t, rt.SetVisible("GPU", two[0])) // and may be tried again
	if l, err := rt.LogicalDevices("GPU"); err != nil || len(l) != 1 || !l[0].Growth {
		t.Error(l, err)
	}
}

func TestLogicalDevicesTakeTheirWholeLimitAtOnce(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	gpu := rt.PhysicalDevices("GPU")[0]
	ok(t, rt.SetMemoryGrowth(gpu, true)) // is dropped
	ok(t, rt.SetLogical(gpu, device.LogicalConfig{Limit: device.MiB(64)}, device.LogicalConfig{Limit: device.MiB(32)}))
	for i := range 2 {
		ok(t, rt.On(fmt.Sprintf("/GPU:%d", i), func() error { floats(t, rt, []float32{1}); return nil }))
	}
	for dev, want := range map[event.DeviceID]int64{1: 64 << 20, 2: 32 << 20} {
		first := int64(0)
		for _, e := range w.events {
			if e.Kind == event.RegionAdd && e.Device == dev && first == 0 {
				first = e.Size
			}
		}
		if first != want {
			t.Errorf("device %d: first region of %d bytes, want %d", dev, first, want)
		}
	}
}

func TestTwoSmallLogicalGPUsWorkForScalars(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	ten := device.LogicalConfig{Limit: device.MiB(10)}
	ok(t, rt.SetLogical(rt.PhysicalDevices("GPU")[0], ten, ten))
	for i := range 2 {
		ok(t, rt.On(fmt.Sprintf("/GPU:%d", i), func() error {
			x := floats(t, rt, []float32{2})
			y, err := rt.Mul(x, x)
			ok(t, err)
			if v, err := y.Scalar(); v != 4 || err != nil || y.Device() != fmt.Sprintf("/job:localhost/replica:0/task:0/device:GPU:%d", i) {
				t.Error(v, err, y.Device())
			}
			return nil
		}))
	}
}

func TestFourLogicalCPUs(t *testing.T) {
	rt, w := newRuntime(t, gpus(0))
	ok(t, rt.SetLogical(rt.PhysicalDevices("CPU")[0], make([]device.LogicalConfig, 4)...))
	l, err := rt.LogicalDevices("CPU")
	ok(t, err)
	if len(l) != 4 {
		t.Fatal(len(l))
	}
	var x *Tensor
	ok(t, rt.On("/CPU:3", func() error { x = floats(t, rt, []float32{1, 2}, 2); return nil }))
	y := Must(rt.Add(x, x)) // on CPU:0: one memory, no copy
	if got, err := Read[float32](y); err != nil || got[1] != 4 || x.Device()[len(x.Device())-5:] != "CPU:3" {
		t.Error(got, err, x.Device())
	}
	if n := w.count(event.TransferBegin, 0); n != 0 {
		t.Errorf("%d copies between logical CPUs", n)
	}
}

func TestMemoryInfo(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := floats(t, rt, make([]float32, 1000), 1000)
	if m := info(t, rt, "GPU:0"); m.Current != 4096+1280 || m.Peak != m.Current {
		t.Errorf("%+v, want current and peak 5376", m)
	}
	x.Release()
	x.Release() // twice is once
	ok(t, rt.ResetPeak("GPU:0"))
	if m := info(t, rt, "GPU:0"); m.Current != 1280 || m.Peak != 1280 {
		t.Errorf("%+v, want 1280", m)
	}
	if n, err := rt.MemoryUsage("/GPU:0"); n != 1280 || err != nil {
		t.Error(n, err)
	}
	for _, s := range []string{"GPU:0", "/GPU:0", "/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0"} {
		info(t, rt, s)
	}
	for s, word := range map[string]string{
		"GPU": "parsed", "CPU:GPU": "parsed", "CPU:": "parsed", "unknown text": "parsed", "GPU:7": "no matching device", "CPU:0": "statistics", "": "type",
	} {
		_, err := rt.MemoryInfo(s)
		refused(t, err, device.ValueError, word)
		refused(t, rt.ResetPeak(s), device.ValueError, word)
	}
}

func TestMemoryInfoOfTheCPUIsASetting(t *testing.T) {
	o := gpus(0)
	o.CPUMemoryStats = true
	rt, _ := newRuntime(t, o)
	x := floats(t, rt, make([]float32, 256), 256)
	if m := info(t, rt, "CPU:0"); m.Current < 1024 {
		t.Errorf("%+v", m)
	}
	x.Release()
}

func TestCurrentExceedsTheTensorsByRounding(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := floats(t, rt, []float32{1})
	if m := info(t, rt, "GPU:0"); m.Current != baseline+256 || x.Bytes() != 4 || x.Rounded() != 256 {
		t.Errorf("%+v, %d in %d", m, x.Bytes(), x.Rounded())
	}
}

func TestIntraOpThreads(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	ok(t, rt.SetIntraOp(4))
	_, err := rt.LogicalDevices("")
	ok(t, err)
	refused(t, rt.SetIntraOp(2), device.RuntimeError, "intra-op")
	refused(t, rt.SetInterOp(2), device.RuntimeError, "inter-op")
	ok(t, rt.SetIntraOp(4))
}

func TestATensorOnAMissingDeviceIsARuntimeError(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	for _, d := range []string{"/device:GPU:1", "/CPU:1"} {
		for _, soft := range []bool{true, false} {
			rt.SetSoftPlacement(soft)
			err := rt.On(d, func() error { _, err := Constant(rt, []float32{1}); return err })
			refused(t, err, device.RuntimeError, "unknown device", d[len(d)-5:])
		}
	}
}

func TestHidingAllGPUsByShowingTheCPUOnly(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	cpu, gpu := rt.PhysicalDevices("CPU"), rt.PhysicalDevices("GPU")
	ok(t, rt.SetVisible("", cpu...))
	if l, err := rt.LogicalDevices("GPU"); err != nil || len(l) != 0 {
		t.Error(l, err)
	}
	ok(t, rt.SetVisible("", cpu...))
	refused(t, rt.SetVisible("", gpu...), device.RuntimeError, "visible devices")
}

func TestHidingTheCPUFails(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	ok(t, rt.SetVisible("", rt.PhysicalDevices("GPU")...))
	_, err := rt.LogicalDevices("")
	refused(t, err, device.NotFound, "CPU")
}

func TestCopyPolicies(t *testing.T) {
	_, err := ParseCopyPolicy("loud")
	refused(t, err, device.ValueError, "loud")
	for s, want := range map[string]CopyPolicy{"": Silent, "silent": Silent, "warn": Warn, "explicit": Explicit, "silent_for_int32": SilentForInt32} {
		if p, err := ParseCopyPolicy(s); err != nil || p != want {
			t.Error(s, p, err)
		}
	}
	rt, _ := newRuntime(t, gpus(1))
	var x *Tensor
	ok(t, rt.On("/CPU:0", func() error { x = floats(t, rt, []float32{1}); return nil }))
	strict := rt.WithCopyPolicy(Explicit)
	_, err = strict.Relu(x)
	refused(t, err, device.InvalidArgument, "Relu", "input #0", "CPU:0", "GPU:0", "conflicting devices")
	_, err = rt.WithCopyPolicy(SilentForInt32).Relu(x)
	refused(t, err, device.InvalidArgument, "input #0")
	loud := rt.WithCopyPolicy(Warn)
	Must(loud.Relu(x))
	if w := rt.Warnings(); len(w) != 1 {
		t.Errorf("%q", w)
	}
	if rt.CopyPolicy() != Silent {
		t.Error("a policy leaked into another context")
	}
}

// A policy belongs to one goroutine's context.
func TestAPolicyDoesNotReachOtherGoroutines(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	var x *Tensor
	ok(t, rt.On("/CPU:0", func() error { x = floats(t, rt, []float32{1}); return nil }))
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, p := range []CopyPolicy{Explicit, Silent} {
		wg.Go(func() {
			mine := rt.Fork()
			mine.SetCopyPolicy(p)
			for range 50 {
				y, err := mine.Square(x)
				y.Release()
				if p == Explicit || err != nil {
					errs[i] = err
				}
			}
		})
	}
	wg.Wait()
	// The explicit one is refused until the other's copy lies with the tensor.
	if errs[1] != nil {
		t.Error(errs[1])
	}
	if errs[0] != nil {
		refused(t, errs[0], device.InvalidArgument, "input #0")
	}
}

func TestTheOrderOfTheRawVisibleListIsKept(t *testing.T) {
	rt, _ := newRuntime(t, Options{GPUs: []string{"t4-16g", "v100-16g"}})
	ok(t, rt.Import(device.Options{VisibleDeviceList: "1"}))
	l, err := rt.LogicalDevices("GPU")
	ok(t, err)
	if len(l) != 1 || l[0].Card.Preset.Name != "v100-16g" {
		t.Error(l)
	}
}

func TestFractionIsOfTheWholeCard(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	rt.GPUOptions().Fraction = 0.25
	l, err := rt.LogicalDevices("GPU")
	ok(t, err)
	if l[0].Limit != 64<<20 {
		t.Error(l[0].Limit)
	}
}

func TestTwoLimitsThatExceedTheCard(t *testing.T) {
	small := &device.Preset{Name: "small", Major: 7, Total: device.Figure{Value: 48 << 20}}
	card, err := device.NewMachine(nil).Card("small", small)
	ok(t, err)
	rt, w := newRuntime(t, Options{Hardware: device.Hardware{GPUs: []*device.Card{card}}})
	most := device.LogicalConfig{Limit: device.MiB(32)}
	ok(t, rt.SetLogical(rt.PhysicalDevices("GPU")[0], most, most))
	_, err = rt.LogicalDevices("") // no error
	ok(t, err)
	nothing := make([]byte, 4<<20)
	fill := func(dev string, n int) error {
		return rt.On(dev, func() error {
			for range n {
				if _, err := rt.NewVariable("x", VariableOptions{DType: program.Uint8, Shape: program.Shape{4 << 20}, Values: nothing}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	ok(t, fill("/GPU:0", 6))
	refused(t, fill("/GPU:1", 6), device.ResourceExhausted, "GPU_1_bfc", "GPU:1")
	if w.count(event.RegionRefused, 2) == 0 {
		t.Error("it was not the driver that refused")
	}
}

func TestADeviceThatDoesNotComeUpLeavesTheSettingsOpen(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	rt.GPUOptions().Fraction = 0.5
	gpu := rt.PhysicalDevices("GPU")[0]
	ok(t, rt.SetLogical(gpu, device.LogicalConfig{Limit: 1 << 20}))
	_, err := rt.LogicalDevices("")
	refused(t, err, device.InvalidArgument, "virtual_devices", "fraction")
	rt.GPUOptions().Fraction = 0
	_, err = rt.LogicalDevices("")
	ok(t, err)
}

func TestAClosedRuntimeRefuses(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := floats(t, rt, []float32{1})
	rt.Close()
	rt.Close()
	x.Release()
	_, err := rt.Relu(x)
	if err == nil {
		t.Error("an op ran after Close")
	}
	_, err = rt.LogicalDevices("")
	refused(t, err, device.FailedPrecondition, "closed")
}

func TestCloseGivesTheCardBack(t *testing.T) {
	p, _ := device.Find("lab-256m")
	card, err := device.NewMachine(nil).Card("shared", p)
	ok(t, err)
	for range 2 {
		rt, _ := newRuntime(t, Options{Hardware: device.Hardware{GPUs: []*device.Card{card}}})
		floats(t, rt, []float32{1})
		if card.Free() == card.Total() {
			t.Error("nothing was taken")
		}
		rt.Close()
		if card.Free() != card.Total() {
			t.Errorf("%d bytes are still held", card.Total()-card.Free())
		}
	}
}

func TestUnknownPreset(t *testing.T) {
	_, err := New(Options{GPUs: []string{"abacus"}})
	refused(t, err, device.ValueError, "abacus")
}

// A limit is a number: nothing is taken before the first tensor. What other
// programs see of the card is then context and pool, not what is in use.
func TestWhatIsTakenOfTheCard(t *testing.T) {
	for _, growth := range []bool{false, true} {
		p, _ := device.Find("lab-256m")
		card, err := device.NewMachine(nil).Card("card", p)
		ok(t, err)
		rt, w := newRuntime(t, Options{Hardware: device.Hardware{GPUs: []*device.Card{card}}})
		ok(t, rt.SetMemoryGrowth(rt.PhysicalDevices("GPU")[0], growth))
		l, err := rt.LogicalDevices("GPU")
		ok(t, err)
		if used := card.Total() - card.Free(); used != p.Context.Value || w.count(event.RegionAdd, 1) != 0 {
			t.Errorf("growth %v: %d bytes are taken by making devices", growth, used)
		}
		floats(t, rt, []float32{1})
		want := l[0].Limit
		if growth {
			want = 2 << 20
		}
		if used := card.Total() - card.Free() - p.Context.Value; used != want {
			t.Errorf("growth %v: a pool of %d bytes, want %d", growth, used, want)
		}
	}
}

func TestSettingsOfTheGraphOptimizerCountForLaterTraces(t *testing.T) {
	rt, w := newRuntime(t, gpus(0))
	rewritten := func() int {
		n := 0
		for i := range w.events {
			if e := &w.events[i]; e.Kind == event.Annotation && strings.HasPrefix(w.text.At(e.Text), "graph of ") {
				n++
			}
		}
		return n
	}
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		x := args[0].(*Tensor)
		y := Must(rt.Add(Must(rt.Square(x)), Must(rt.Square(x)))) // computed twice
		return []*Tensor{Must(rt.Add(y, Must(rt.Fill(program.Float32, 1))))}, nil
	})
	for _, off := range []bool{true, false} {
		before := rewritten()
		rt.SetOptimizer(map[string]bool{"disable_meta_optimizer": off})
		x := floats(t, rt, []float32{3, 3}[:1])
		if off {
			x = floats(t, rt, []float32{3}, 1)
		}
		out, err := f.Call(x)
		ok(t, err)
		if n, err := out[0].Scalar(); n != 19 || err != nil {
			t.Error(n, err)
		}
		if (rewritten() == before) != off {
			t.Errorf("optimizer off %v: %d notes", off, rewritten()-before)
		}
	}
}
