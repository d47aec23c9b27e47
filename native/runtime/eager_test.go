package runtime

import (
	"math"
	"math/rand/v2"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

const mebibyte = 1 << 20

// inUse is the bytes in use of GPU:0 beside the scratch buffer, and the peak.
func inUse(t *testing.T, rt *Runtime) (current, peak int64) {
	t.Helper()
	m := info(t, rt, "GPU:0")
	return m.Current - baseline, m.Peak - baseline
}

func TestEagerChainHeldIsThreeBuffers(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	a := mebi(t, rt, 1)
	b := Must(rt.Relu(a))
	c := Must(rt.Relu(b))
	if now, peak := inUse(t, rt); now != 3*mebibyte || peak != now {
		t.Errorf("%d bytes, peak %d, want three buffers", now, peak)
	}
	if a.Address() == b.Address() || b.Address() == c.Address() {
		t.Error("an eager op took its input's buffer over")
	}
}

func TestEagerChainOfWhichTheLastIsHeldPeaksAtTwo(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := mebi(t, rt, 1)
	for range 2 {
		y := Must(rt.Relu(x))
		x.Release()
		x = y
	}
	if now, peak := inUse(t, rt); now != mebibyte || peak != 2*mebibyte {
		t.Errorf("%d bytes, peak %d, want 1 and 2 buffers", now, peak)
	}
}

func TestTidyReleasesLocals(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	kept, err := rt.Tidy(func() ([]*Tensor, error) {
		a := mebi(t, rt, 1)
		b := Must(rt.Relu(a))
		_, err := rt.Tidy(func() ([]*Tensor, error) { Must(rt.Relu(b)); return nil, nil })
		return []*Tensor{b}, err
	})
	ok(t, err)
	if now, peak := inUse(t, rt); now != mebibyte || peak != 3*mebibyte || len(kept) != 1 {
		t.Errorf("%d bytes, peak %d", now, peak)
	}
	_, err = rt.Relu(kept[0])
	ok(t, err)
}

func TestWhatSharesABuffer(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := mebi(t, rt, 1)
	y := Must(rt.Reshape(x, 512, 512))
	z := Must(rt.Identity(y))
	v, err := rt.NewVariable("v", VariableOptions{Shape: program.Shape{1 << 18}})
	ok(t, err)
	r := Must(rt.Read(v))
	if x.Address() != y.Address() || y.Address() != z.Address() || r.Address() == 0 {
		t.Error("reshape or identity copied")
	}
	if now, _ := inUse(t, rt); now != 2*mebibyte {
		t.Errorf("%d bytes in use, want two buffers", now)
	}
	x.Release()
	y.Release()
	if now, _ := inUse(t, rt); now != 2*mebibyte {
		t.Error("the buffer went before its last holder")
	}
	z.Release()
	if now, _ := inUse(t, rt); now != mebibyte {
		t.Error("the buffer did not go with its last holder")
	}
}

func TestAnEmptyTensorAllocatesNothing(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	x := floats(t, rt, nil, 0, 5)
	y := Must(rt.Relu(x))
	w.settle(t)
	if n := w.count(event.Alloc, 1) + w.count(event.Alloc, 0); n > 1 || y.Bytes() != 0 { // the scratch buffer at most
		t.Errorf("%d allocations", n)
	}
	if got, err := Read[float32](y); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func TestOutOfMemoryNamesShapeTypeDeviceAndAllocatorAndTheProgramGoesOn(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	ok(t, rt.SetLogical(rt.PhysicalDevices("GPU")[0], device.LogicalConfig{Limit: device.MiB(16)}))
	a, b, c := mebi(t, rt, 4), mebi(t, rt, 4), mebi(t, rt, 4)
	before, _ := inUse(t, rt)
	_, err := rt.Add(a, b)
	refused(t, err, device.ResourceExhausted, "AddV2", "shape[1048576]", "type float", "/job:localhost/replica:0/task:0/device:GPU:0", "GPU_0_bfc")
	if now, _ := inUse(t, rt); now != before {
		t.Errorf("%d bytes in use after the failure, %d before", now, before)
	}
	c.Release()
	_, err = rt.Add(a, b)
	ok(t, err)
	if w.count(event.OutOfMemory, 1) != 1 {
		t.Error("the failure is not on the timeline")
	}
}

func TestReleasedAndForeignTensorsAreRefused(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	other, _ := newRuntime(t, gpus(0))
	x, y := floats(t, rt, []float32{1}), floats(t, other, []float32{1})
	_, err := rt.Add(x, y)
	refused(t, err, device.InvalidArgument, "another runtime")
	_, err = rt.Add(x, nil)
	refused(t, err, device.ValueError, "nil")
	x.Release()
	_, err = rt.Relu(x)
	refused(t, err, device.FailedPrecondition, "released")
	_, err = Read[float32](x)
	refused(t, err, device.FailedPrecondition, "released")
}

func TestBadInput(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	_, err := Constant(rt, []float32{1, 2}, 3)
	refused(t, err, device.ValueError, "[3]")
	_, err = rt.Fill(program.Float32, 0, -1)
	refused(t, err, device.ValueError, "[-1]")
	x, y := floats(t, rt, make([]float32, 6), 2, 3), floats(t, rt, make([]float32, 4), 2, 2)
	_, err = rt.MatMul(x, y)
	refused(t, err, device.InvalidArgument, "MatMul", "[2,3]", "[2,2]")
	_, err = rt.Op("Abacus", plain, x)
	refused(t, err, device.NotFound, "Abacus")
	_, err = Read[int64](x)
	refused(t, err, device.InvalidArgument, "float32", "int64")
	_, err = x.Scalar()
	refused(t, err, device.ValueError, "[2,3]")
}

// Eager placement: the statements about ops, of the checklist of placement.

func TestEagerPlacement(t *testing.T) {
	rt, _ := newRuntime(t, gpus(2))
	x := floats(t, rt, []float32{1, 2, 3, 4}, 2, 2)
	at := func(where string) (string, error) {
		var dev string
		err := rt.On(where, func() error {
			y, err := rt.MatMul(x, x)
			if err == nil {
				dev = rt.devices[y.h.device].Name.Short()
			}
			return err
		})
		return dev, err
	}
	y := Must(rt.MatMul(x, x))
	if d := rt.devices[y.h.device].Name.Short(); d != "/GPU:0" {
		t.Errorf("without request: %s", d)
	}
	for where, want := range map[string]string{"/device:GPU:1": "/GPU:1", "/device:GPU:2": "/GPU:0", "cpu": "/CPU:0", "gpu": "/GPU:0"} {
		if d, err := at(where); d != want || err != nil {
			t.Errorf("%s: %s, %v", where, d, err)
		}
	}
	rt.SetSoftPlacement(false)
	_, err := at("/device:GPU:2")
	refused(t, err, device.InvalidArgument, "MatMul", "GPU:2", "device:CPU:0", "device:GPU:0", "device:GPU:1")
}

func TestAVariableDecidesWhereItsOpsRun(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	rt.SetSoftPlacement(false)
	var v *Variable
	ok(t, rt.On("/CPU:0", func() (err error) { v, err = rt.NewVariable("v", VariableOptions{}); return err }))
	ok(t, rt.On("/GPU:0", func() error { return rt.AssignAdd(v, floats(t, rt, []float32{2})) }))
	w.settle(t)
	if w.ran("AssignAdd") != 0 || v.Device() != "/job:localhost/replica:0/task:0/device:CPU:0" {
		t.Errorf("AssignAdd ran on device %d", w.ran("AssignAdd"))
	}
	if x, err := Must(rt.Read(v)).Scalar(); x != 2 || err != nil {
		t.Error(x, err)
	}
}

func TestACopyStaysWithItsTensor(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	var x *Tensor
	ok(t, rt.On("/CPU:0", func() error { x = mebi(t, rt, 1); return nil }))
	a := Must(rt.Relu(x))
	b := Must(rt.Relu(x))
	w.settle(t)
	if n := w.copies(0, 1); n != 1 {
		t.Errorf("%d copies to the GPU, want one", n)
	}
	if x.Device() != "/job:localhost/replica:0/task:0/device:CPU:0" {
		t.Error("the copy changed the tensor's device:", x.Device())
	}
	a.Release()
	b.Release()
	if now, _ := inUse(t, rt); now != mebibyte {
		t.Errorf("%d bytes in use, want the mirror", now)
	}
	x.Release()
	ok(t, rt.run.Sync())
	if now, _ := inUse(t, rt); now != 0 {
		t.Errorf("the mirror outlived its tensor: %d bytes", now)
	}
}

func TestInt32OfTheGPULivesOnTheHost(t *testing.T) {
	for _, pin := range []bool{false, true} {
		o := gpus(1)
		o.PinSmallIntegers = pin
		rt, w := newRuntime(t, o)
		var x *Tensor
		ok(t, rt.On("/CPU:0", func() (err error) { x, err = Constant(rt, make([]int32, 10), 10); return err }))
		y := Must(rt.Add(x, x))
		w.settle(t)
		want := "GPU:0"
		if pin {
			want = "CPU:0"
		}
		if d := y.Device(); d[len(d)-5:] != want || w.copies(0, 1)+w.copies(1, 0) != 0 {
			t.Errorf("pinning %v: on %s, %d copies", pin, d, w.copies(0, 1))
		}
	}
}

func TestScopesMustBeLeftInOrder(t *testing.T) {
	rt, _ := newRuntime(t, gpus(2))
	outer, err := rt.Enter("/GPU:1")
	ok(t, err)
	inner, err := rt.Enter("/CPU:0")
	ok(t, err)
	refused(t, outer.Leave(), device.RuntimeError, "/GPU:1", "/CPU:0")
	ok(t, inner.Leave())
	ok(t, outer.Leave())
	refused(t, outer.Leave(), device.RuntimeError, "none is open")
	_, err = rt.Enter("/device:GPU")
	refused(t, err, device.ValueError, "/device:GPU")
	_, err = rt.Enter("/CPU:0/GPU:0")
	refused(t, err, device.ValueError, "two device types")
	ok(t, rt.On("/GPU:1", func() error {
		none := rt.EnterNone()
		if d := rt.devices[Must(rt.Fill(program.Float32, 1)).h.device].Name.Short(); d != "/GPU:0" {
			t.Error("a scope of nothing:", d)
		}
		return none.Leave()
	}))
}

// TestAnInheritedNumberIsWarnedOf: "/CPU" within "/GPU:1" means /CPU:1, which
// rarely exists.
func TestAnInheritedNumberIsWarnedOf(t *testing.T) {
	rt, _ := newRuntime(t, gpus(2))
	within := func(outer, inner string) {
		ok(t, rt.On(outer, func() error { return rt.On(inner, func() error { return nil }) }))
	}
	for _, fine := range [][2]string{{"/GPU:0", "/CPU"}, {"/GPU:1", "/CPU:0"}, {"/GPU:1", "/GPU"}, {"/GPU:1", "/job:localhost"}, {"/CPU:0", "/GPU"}} {
		within(fine[0], fine[1])
	}
	if w := rt.Warnings(); len(w) != 0 {
		t.Fatalf("%q", w)
	}
	within("/GPU:1", "/CPU")
	within("/GPU:1", "/CPU") // is said once
	if w := rt.Warnings(); len(w) != 1 || !strings.Contains(w[0], "/CPU:1") || !strings.Contains(w[0], "/CPU:0") {
		t.Errorf("%q", w)
	}
}

func TestPlacementIsLoggedOncePerKernel(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	rt.SetLogPlacement(true)
	x := floats(t, rt, []float32{1})
	for range 3 {
		Must(rt.Relu(x))
	}
	n := 0
	for i := range w.events {
		if e := &w.events[i]; e.Kind == event.Log && w.text.At(e.Text) == "Executing op Relu in device /job:localhost/replica:0/task:0/device:GPU:0" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// Variables.

func TestAssigningWhileAReaderHoldsTheValueCopies(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	v, err := rt.NewVariable("v", VariableOptions{Shape: program.Shape{1 << 18}})
	ok(t, err)
	one := mebi(t, rt, 1)
	ok(t, rt.AssignAdd(v, one)) // sole owner: in place
	if now, peak := inUse(t, rt); now != 2*mebibyte || peak != now {
		t.Errorf("in place: %d bytes, peak %d", now, peak)
	}
	old := Must(rt.Read(v))
	ok(t, rt.Assign(v, Must(rt.Add(one, one))))
	if old.Address() == Must(rt.Read(v)).Address() {
		t.Error("the value was overwritten under its reader")
	}
	if x, _ := Read[float32](old); x[0] != 1 {
		t.Errorf("the reader sees %v", x[0])
	}
	goNow, _ := inUse(t, rt)
	old.Release()
	if now, _ := inUse(t, rt); goNow-now != mebibyte {
		t.Errorf("the old buffer did not go with its reader: %d", goNow-now)
	}
	ok(t, rt.AssignSub(v, one))
	if x, _ := Read[float32](Must(rt.Read(v))); x[0] != 1 {
		t.Errorf("2 - 1 = %v", x[0])
	}
}

func TestAssignAddCopiesWhereAReaderHoldsTheValue(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	v, err := rt.NewVariable("v", VariableOptions{Init: program.Init{Kind: program.InitConstant, Scale: 3}})
	ok(t, err)
	old := Must(rt.Read(v))
	ok(t, rt.AssignAdd(v, floats(t, rt, []float32{4})))
	a, _ := old.Scalar()
	b, _ := Must(rt.Read(v)).Scalar()
	if a != 3 || b != 7 {
		t.Error(a, b)
	}
}

func TestAssigningAnotherShapePeaksBySizeOfTheNewValue(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	v, err := rt.NewVariable("v", VariableOptions{Shape: program.Shape{1 << 18}, AnyShape: true})
	ok(t, err)
	two := mebi(t, rt, 2)
	ok(t, rt.ResetPeak("GPU:0"))
	ok(t, rt.Assign(v, two))
	if now, peak := inUse(t, rt); now != 4*mebibyte || peak != 5*mebibyte {
		t.Errorf("%d bytes, peak %d: the new buffer comes before the old one goes", now, peak)
	}
	fixed, err := rt.NewVariable("fixed", VariableOptions{})
	ok(t, err)
	refused(t, rt.Assign(fixed, two), device.ValueError, "fixed", "[524288]")
	refused(t, rt.Assign(nil, two), device.ValueError, "nil")
	fixed.Release()
	fixed.Release()
	_, err = rt.Read(fixed)
	refused(t, err, device.FailedPrecondition, "fixed")
}

func TestCategoriesOfVariables(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	_, err := rt.NewVariable("w", VariableOptions{Shape: program.Shape{64}})
	ok(t, err)
	_, err = rt.NewVariable("w/m", VariableOptions{Shape: program.Shape{64}, Slot: true})
	ok(t, err)
	var got []event.Category
	for i := range w.events {
		if e := &w.events[i]; e.Kind == event.Alloc && e.Device == 1 && e.Size == 256 {
			got = append(got, e.Category)
		}
	}
	if !slices.Equal(got, []event.Category{event.Parameter, event.OptimizerState}) {
		t.Error(got)
	}
}

// Tapes.

func TestATapeHoldsWhatGradientsRead(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(rt *Runtime, x *Tensor) *Tensor
		want int64 // buffers in use when all but the result was released
	}{
		// The target alone where nothing is read.
		{"add", func(rt *Runtime, x *Tensor) *Tensor { return Must(rt.Add(x, x)) }, 1},
		{"relu reads its output", func(rt *Runtime, x *Tensor) *Tensor { return Must(rt.Relu(x)) }, 1},
		{"mul reads its inputs", func(rt *Runtime, x *Tensor) *Tensor { return Must(rt.Mul(x, x)) }, 2},
		{"matmul reads its inputs", func(rt *Runtime, x *Tensor) *Tensor {
			y := Must(rt.Reshape(x, 512, 512))
			defer y.Release()
			return Must(rt.MatMul(y, y))
		}, 2},
	} {
		rt, _ := newRuntime(t, gpus(1))
		x := mebi(t, rt, 1)
		tape := rt.Tape(true)
		tape.Watch(x)
		y := c.run(rt, x)
		x.Release()
		if now, _ := inUse(t, rt); now != c.want*mebibyte {
			t.Errorf("%s: %d bytes, want %d buffers", c.name, now, c.want)
		}
		y.Release()
		tape.Release()
		if now, _ := inUse(t, rt); now != 0 {
			t.Errorf("%s: %d bytes are held after the tape went", c.name, now)
		}
	}
}

func TestAPlainTapeLetsGoWithItsGradient(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	x := floats(t, rt, []float32{1, 2}, 2)
	tape := rt.Tape(false)
	tape.Watch(x)
	y := Must(rt.Square(x))
	g, err := tape.Gradient(y, x)
	ok(t, err)
	if got, _ := Read[float32](g[0]); !slices.Equal(got, []float32{2, 4}) {
		t.Error(got)
	}
	_, err = tape.Gradient(y, x)
	refused(t, err, device.RuntimeError, "persistent")
	for _, r := range []*Tensor{x, y, g[0]} {
		r.Release()
	}
	if now, _ := inUse(t, rt); now > 2*256 { // the numbers 1 and 2, kept for reuse
		t.Errorf("%d bytes are held", now)
	}
}

func TestAPersistentTapeAnswersAgain(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	x := floats(t, rt, []float32{3})
	tape := rt.Tape(true)
	tape.Watch(x)
	y := Must(rt.Mul(x, x))
	z := Must(rt.Mul(y, y))
	for range 2 {
		gz, err := tape.Gradient(z, x)
		ok(t, err)
		gy, err := tape.Gradient(y, x)
		ok(t, err)
		a, _ := gz[0].Scalar()
		b, _ := gy[0].Scalar()
		if a != 108 || b != 6 {
			t.Error(a, b)
		}
	}
	tape.Release()
}

func TestGradientOfWhatDoesNotMatterIsNil(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	x, other := floats(t, rt, []float32{3}), floats(t, rt, []float32{4})
	tape := rt.Tape(false)
	tape.Watch(x)
	tape.Watch(other)
	y := Must(rt.Square(x))
	g, err := tape.Gradient(y, x, other)
	ok(t, err)
	if g[0] == nil || g[1] != nil {
		t.Error(g)
	}
}

func TestGradientsOfAVariableThatChangedUnderTheTapeAddUp(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	v, err := rt.NewVariable("v", VariableOptions{Init: program.Init{Kind: program.InitConstant, Scale: 3}})
	ok(t, err)
	tape := rt.Tape(false)
	a := Must(rt.Square(Must(rt.Read(v))))
	ok(t, rt.AssignAdd(v, floats(t, rt, []float32{1})))
	b := Must(rt.Square(Must(rt.Read(v))))
	g, err := tape.Gradient(Must(rt.Add(a, b)), v)
	ok(t, err)
	if x, _ := g[0].Scalar(); x != 2*3+2*4 {
		t.Error(x)
	}
}

// line fits y = 2x + 1 and gives the losses.
func line(t *testing.T, rt *Runtime, step func(x, y *Tensor, w, b *Variable) *Tensor) []float64 {
	t.Helper()
	w, err := rt.NewVariable("w", VariableOptions{Shape: program.Shape{1, 1}})
	ok(t, err)
	b, err := rt.NewVariable("b", VariableOptions{Shape: program.Shape{1}})
	ok(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	var xs, ys []float32
	for range 64 {
		x := rng.Float32()
		xs, ys = append(xs, x), append(ys, 2*x+1)
	}
	x, y := floats(t, rt, xs, 64, 1), floats(t, rt, ys, 64, 1)
	var losses []float64
	for range 40 {
		_, err := rt.Tidy(func() ([]*Tensor, error) {
			l, err := step(x, y, w, b).Scalar()
			losses = append(losses, l)
			return nil, err
		})
		ok(t, err)
	}
	return losses
}

// descend is one step of gradient descent, eager or traced.
func descend(rt *Runtime, x, y *Tensor, w, b *Variable) (*Tensor, error) {
	tape := rt.Tape(false)
	h := Must(rt.MatMul(x, Must(rt.Read(w))))
	h = Must(rt.binary(program.OpBiasAdd, h, Must(rt.Read(b))))
	loss := Must(rt.Mean(Must(rt.Square(Must(rt.Sub(h, y))))))
	g, err := tape.Gradient(loss, w, b)
	if err != nil {
		return nil, err
	}
	rate := Must(rt.Fill(program.Float32, 0.5))
	for i, v := range []*Variable{w, b} {
		if err := rt.Update(program.OpApplySGD, plain, []*Variable{v}, rate, g[i]); err != nil {
			return nil, err
		}
	}
	return loss, nil
}

func TestTrainingEagerlyAndAsAFunctionGivesTheSameLosses(t *testing.T) {
	eager, _ := newRuntime(t, gpus(1))
	a := line(t, eager, func(x, y *Tensor, w, b *Variable) *Tensor { return Must(descend(eager, x, y, w, b)) })
	rt, _ := newRuntime(t, gpus(1))
	var f *Function
	b := line(t, rt, func(x, y *Tensor, w, b *Variable) *Tensor {
		if f == nil {
			f = rt.Function("step", func(args ...any) ([]*Tensor, error) {
				loss, err := descend(rt, args[0].(*Tensor), args[1].(*Tensor), args[2].(*Variable), args[3].(*Variable))
				return []*Tensor{loss}, err
			})
		}
		out, err := f.Call(x, y, w, b)
		ok(t, err)
		return out[0]
	})
	if !slices.Equal(a, b) {
		t.Errorf("eager %v\nfunction %v", a, b)
	}
	if last := a[len(a)-1]; last > a[0]/50 || math.IsNaN(last) {
		t.Errorf("the loss went from %g to %g", a[0], last)
	}
	if f.Traces() != 1 {
		t.Error(f.Traces(), "traces")
	}
}

// Garbage.

func TestWhatTheCollectorFindsIsReleasedAndTold(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	func() { mebi(t, rt, 1) }()
	for range 100 {
		goruntime.GC()
		if n, _ := rt.Garbage(); n > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if n, bytes := rt.Garbage(); n != 1 || bytes != mebibyte {
		t.Fatalf("%d tensors of %d bytes", n, bytes)
	}
	if now, _ := inUse(t, rt); now != 0 {
		t.Errorf("%d bytes are still held", now)
	}
	told := slices.ContainsFunc(w.events, func(e event.Event) bool {
		return e.Kind == event.Annotation && len(w.text.At(e.Text)) > 15 && w.text.At(e.Text)[:15] == "held by garbage"
	})
	if !told {
		t.Error("nothing was remarked")
	}
}

// Kernels.

func TestTheKernelKeyCoversEveryAttribute(t *testing.T) {
	base := program.Attrs{Variable: program.None, Slots: program.NoSlots}
	none := string(appendAttrs(nil, &base))
	v := reflect.ValueOf(&base).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name == "Variable" || name == "Slots" {
			continue // follow from the inputs
		}
		changed := base
		f := reflect.ValueOf(&changed).Elem().Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Float64:
			f.SetFloat(0.5)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Array:
			f.Index(0).SetInt(3)
		default:
			t.Fatalf("attribute %s is a %s", name, f.Kind())
		}
		if string(appendAttrs(nil, &changed)) == none {
			t.Errorf("attribute %s does not count", name)
		}
	}
}

func TestRandomOpsNeedASeedUnderDeterminism(t *testing.T) {
	rt, _ := newRuntime(t, Options{})
	rt.EnableOpDeterminism()
	_, err := rt.RandomUniform(program.Float32, 0, 4)
	refused(t, err, device.RuntimeError, "seed")
	_, err = rt.RandomUniform(program.Float32, 7, 4)
	ok(t, err)
}

// The same program gives the same events.
func TestRunsRepeat(t *testing.T) {
	var first []event.Event
	for i := range 2 {
		rt, w := newRuntime(t, gpus(2))
		line(t, rt, func(x, y *Tensor, a, b *Variable) *Tensor { return Must(descend(rt, x, y, a, b)) })
		w.settle(t)
		if i == 0 {
			first = w.events
		} else if !slices.Equal(first, w.events) {
			t.Error("two runs differ")
		}
	}
}

// The peak of a chain in training: all activations while the forward pass
// runs; a gradient of an activation dies when the next op back has used it.
func TestPeakOfAChainInEagerTraining(t *testing.T) {
	const n = 6
	for _, gradually := range []bool{false, true} {
		o := gpus(1)
		o.FreeTapeGradually = gradually
		rt, _ := newRuntime(t, o)
		x := mebi(t, rt, 1)
		tape := rt.Tape(false)
		tape.Watch(x)
		y, err := rt.Tidy(func() ([]*Tensor, error) {
			y := x
			for range n {
				y = Must(rt.Mul(y, y)) // reads both inputs
			}
			return []*Tensor{Must(rt.Sum(y))}, nil
		})
		ok(t, err)
		if now, _ := inUse(t, rt); now != n*mebibyte+256 { // x and n-1 results; the last is read by nobody
			t.Errorf("after the forward pass %d bytes", now)
		}
		ok(t, rt.ResetPeak("GPU:0"))
		g, err := tape.Gradient(y[0], x)
		ok(t, err)
		now, peak := inUse(t, rt)
		if now > 2*mebibyte+1024 {
			t.Errorf("gradually %v: %d bytes after the gradient", gradually, now)
		}
		if most := int64(n+4) * mebibyte; !gradually && (peak < (n+2)*mebibyte || peak > most) || gradually && peak >= most {
			t.Errorf("gradually %v: peak %d", gradually, peak)
		}
		if got, err := Read[float32](g[0]); err != nil || got[0] != 1<<n {
			t.Error(got[0], err)
		}
	}
}

// Kernels of a GPU are asynchronous: the host goes on, and waits for values.
func TestTheHostWaitsForValuesOnly(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	x, err := rt.Fill(program.Float32, 1, 256, 256)
	ok(t, err)
	ok(t, rt.Wait())
	for range 20 {
		x = Must(rt.MatMul(x, x))
	}
	if rt.run.Now() >= rt.o.Backend.Idle(1) {
		t.Error("the host waited for a kernel")
	}
	_, err = Read[float32](x)
	ok(t, err)
	if rt.run.Now() < rt.o.Backend.Idle(1) {
		t.Error("the host did not wait for the value")
	}
	var kernels, begin int64
	for i := range w.events {
		e := &w.events[i]
		if e.Kind == event.OpEnd && e.Device == 1 {
			kernels = e.Time
		}
		if e.Kind == event.TransferBegin && e.Device == 1 && e.Peer == 0 {
			begin = e.Time
		}
	}
	if begin < kernels {
		t.Errorf("the copy began at %d, before the kernel ended at %d", begin, kernels)
	}
}

// The scratch buffer is the first chunk of every GPU's pool.
func TestTheScratchBufferIsTheFirstChunk(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	x := floats(t, rt, []float32{1})
	var region uint64
	var first *event.Event
	for i := range w.events {
		e := &w.events[i]
		switch {
		case e.Device != 1:
		case e.Kind == event.RegionAdd && region == 0:
			region = e.Address
		case e.Kind == event.Alloc && first == nil:
			first = e
		}
	}
	if first == nil || first.Address != region || first.Requested != 1028 || first.Size != 1280 || x.Address() != region+1280 {
		t.Errorf("%+v in a region at %#x", first, region)
	}
}

func TestStepsAreOnTheTimeline(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	for i := range 2 {
		ok(t, rt.Step(i, 32, func() error { floats(t, rt, []float32{1}); return nil }))
	}
	var steps []int32
	for i := range w.events {
		switch e := &w.events[i]; {
		case e.Kind == event.StepBegin, e.Kind == event.StepEnd:
			steps = append(steps, e.Step)
		case e.Kind == event.Alloc && e.Device == 1 && e.Size == 256:
			steps = append(steps, 10+e.Step)
		}
	}
	if !slices.Equal(steps, []int32{0, 10, 0, 1, 11, 1}) {
		t.Error(steps)
	}
}
