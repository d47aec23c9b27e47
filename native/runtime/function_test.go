package runtime

import (
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

func invoke(t *testing.T, f *Function, args ...any) []*Tensor {
	t.Helper()
	out, err := f.Call(args...)
	ok(t, err)
	return out
}

// twice doubles its first argument, if that is a tensor.
func twice(rt *Runtime) *Function {
	return rt.Function("twice", func(args ...any) ([]*Tensor, error) {
		x, isTensor := args[0].(*Tensor)
		if !isTensor {
			x = Must(rt.Fill(program.Float32, 1))
		}
		return []*Tensor{Must(rt.Add(x, x))}, nil
	})
}

func TestNumbersAreTracedByValueAndTensorsByType(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	f := twice(rt)
	for _, n := range []int{1, 2, 3, 1, 2, 3} {
		invoke(t, f, n)
	}
	if f.Traces() != 3 {
		t.Errorf("numbers 1, 2, 3: %d traces", f.Traces())
	}
	g := twice(rt)
	for _, n := range []float32{1, 2, 3} {
		if x, err := invoke(t, g, floats(t, rt, []float32{n}))[0].Scalar(); err != nil || x != float64(2*n) {
			t.Error(x, err)
		}
	}
	if g.Traces() != 1 || !slices.Equal(g.Signatures(), []string{"float32[]"}) {
		t.Errorf("tensors 1, 2, 3: %d traces, %q", g.Traces(), g.Signatures())
	}
}

func TestWhatMakesAnotherTrace(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	f := rt.Function("f", func(...any) ([]*Tensor, error) { return nil, nil })
	v, err := rt.NewVariable("v", VariableOptions{})
	ok(t, err)
	w, err := rt.NewVariable("w", VariableOptions{})
	ok(t, err)
	x := floats(t, rt, []float32{1})
	d, err := Constant(rt, []float64{1})
	ok(t, err)
	shared := &struct{ int }{1}
	for i, args := range [][]any{
		{x},
		{d},                                 // type
		{floats(t, rt, []float32{1, 2}, 2)}, // shape
		{v},                                 // identity
		{w},
		{1},
		{2},
		{1.0},
		{"a"},
		{true},
		{false},
		{nil},                                // value
		{x, x},                               // count
		{[]any{x, 1}},                        // structure
		{[]*Tensor{x}},                       //
		{map[string]any{"a": x, "b": 1}},     //
		{map[string]any{"a": x, "b": "one"}}, //
		{shared},
		{&struct{ int }{1}},
	} {
		invoke(t, f, args...)
		if f.Traces() != i+1 {
			t.Errorf("call %d, %v: %d traces", i, args, f.Traces())
		}
		invoke(t, f, args...)
		if f.Traces() != i+1 {
			t.Errorf("call %d again, %v: %d traces", i, args, f.Traces())
		}
	}
	n := f.Traces()
	invoke(t, f, map[string]any{"b": 1, "a": x}) // the order of keywords does not count
	if f.Traces() != n {
		t.Error("the order of keywords counts")
	}
	ok(t, rt.On("/CPU:0", func() error { invoke(t, f, x); return nil })) // the device scope counts
	if f.Traces() != n+1 {
		t.Error("the device scope does not count")
	}
}

func TestReducedRetracingMakesExtentsUnknown(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	f := twice(rt)
	f.ReduceRetracing = true
	for n := range int64(3) {
		out := invoke(t, f, floats(t, rt, make([]float32, n+2), n+2))
		if !out[0].Shape().Equal(program.Shape{n + 2}) {
			t.Error(out[0].Shape())
		}
	}
	if !slices.Equal(f.Signatures(), []string{"float32[2]", "float32[None]"}) {
		t.Errorf("%q", f.Signatures())
	}
	invoke(t, f, floats(t, rt, make([]float32, 2), 2))    // the most specific fits
	invoke(t, f, floats(t, rt, make([]float32, 6), 3, 2)) // another rank does not
	invoke(t, f, floats(t, rt, make([]float32, 9), 9))    // fits
	if s := f.Signatures(); len(s) != 3 || s[2] != "float32[3,2]" {
		t.Errorf("%q", s)
	}
}

func TestFrequentRetracingWarnsTwiceAtMost(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	f := twice(rt)
	for i := range 4 {
		invoke(t, f, i)
	}
	if len(rt.Warnings()) != 0 {
		t.Error("a warning after four traces")
	}
	invoke(t, f, 4)
	if w := rt.Warnings(); len(w) != 1 || !strings.Contains(w[0], "twice") {
		t.Errorf("%q", w)
	}
	for i := range 20 {
		invoke(t, f, 100+i)
	}
	if w := rt.Warnings(); len(w) != 2 {
		t.Errorf("%d warnings", len(w))
	}
}

func TestRareRetracingDoesNotWarn(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	f := twice(rt)
	for i := range 12 {
		invoke(t, f, i)
		for range 2 {
			invoke(t, f, i) // 4 of 10 calls retrace
		}
	}
	if w := rt.Warnings(); len(w) != 0 {
		t.Errorf("%q", w)
	}
}

func TestVariablesAreMadeInTheFirstCallOnly(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	var v *Variable
	bodies := 0
	f := rt.Function("counter", func(args ...any) ([]*Tensor, error) {
		bodies++
		if v == nil {
			var err error
			if v, err = rt.NewVariable("count", VariableOptions{}); err != nil {
				return nil, err
			}
		}
		if err := rt.AssignAdd(v, args[0].(*Tensor)); err != nil {
			return nil, err
		}
		x, err := rt.Read(v)
		return []*Tensor{x}, err
	})
	one := floats(t, rt, []float32{1})
	for want := 1.0; want <= 3; want++ {
		if x, err := invoke(t, f, one)[0].Scalar(); x != want || err != nil {
			t.Errorf("%v, want %v: %v", x, want, err)
		}
	}
	if bodies != 2 || f.Traces() != 1 {
		t.Errorf("the body ran %d times for %d traces; the first call traces twice", bodies, f.Traces())
	}

	bad := rt.Function("bad", func(args ...any) ([]*Tensor, error) {
		_, err := rt.NewVariable("again", VariableOptions{})
		return nil, err
	})
	_, err := bad.Call() // even the second trace of the first call
	refused(t, err, device.ValueError, "bad", "again")

	var later *Variable
	second := rt.Function("second", func(args ...any) (out []*Tensor, err error) {
		if args[0].(int) == 2 && later == nil {
			later, err = rt.NewVariable("late", VariableOptions{})
		}
		return nil, err
	})
	invoke(t, second, 1)
	_, err = second.Call(2)
	refused(t, err, device.ValueError, "second", "late")
	if second.Traces() != 1 {
		t.Error("a failed trace counts")
	}
}

func TestArgumentsHeldOutsideAreNeitherFreedNorTakenOver(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		return []*Tensor{Must(rt.Relu(Must(rt.Relu(args[0].(*Tensor)))))}, nil
	})
	x := mebi(t, rt, 1)
	y := invoke(t, f, x)[0]
	if x.Address() == y.Address() {
		t.Error("an argument was overwritten")
	}
	if now, peak := inUse(t, rt); now != 2*mebibyte || peak != now {
		t.Errorf("%d bytes, peak %d: the second op works in place", now, peak)
	}
	forwards := w.count(event.Forward, 1)
	if forwards != 1 {
		t.Errorf("%d buffers taken over, want one", forwards)
	}
	if got, err := Read[float32](x); err != nil || got[0] != 1 {
		t.Error(got[:1], err)
	}
}

// The chain relu(relu(a)) with a computed within: one buffer.
func TestAChainInAFunctionIsOneBuffer(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		a := Must(rt.RandomUniform(program.Float32, 3, 1<<18))
		return []*Tensor{Must(rt.Relu(Must(rt.Relu(a))))}, nil
	})
	invoke(t, f)
	if now, peak := inUse(t, rt); now != mebibyte || peak != now {
		t.Errorf("%d bytes, peak %d", now, peak)
	}
}

// x has two input slots in add(x, x): its count is 2, so it is not taken over.
func TestAddingATensorToItselfIsTwoBuffers(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		a := Must(rt.RandomUniform(program.Float32, 3, 1<<18))
		return []*Tensor{Must(rt.Add(a, a))}, nil
	})
	invoke(t, f)
	if _, peak := inUse(t, rt); peak != 2*mebibyte {
		t.Errorf("peak %d", peak)
	}
}

func TestConstantsOfAFunctionLiveAsLongAsIt(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	big := make([]float32, 1<<18)
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		c := Must(Constant(rt, big, 1<<18)) // an array captured in the body
		return []*Tensor{Must(rt.Sum(Must(rt.Mul(c, args[0].(*Tensor)))))}, nil
	})
	x := floats(t, rt, []float32{1})
	out := invoke(t, f, x)[0]
	out.Release()
	x.Release()
	if now, _ := inUse(t, rt); now < mebibyte {
		t.Errorf("%d bytes: the constant was not kept", now)
	}
	invoke(t, f, floats(t, rt, []float32{1, 1}[:1], 1))[0].Release() // another shape: another graph, another constant
	if now, _ := inUse(t, rt); now < 2*mebibyte {
		t.Errorf("%d bytes: two graphs share a constant", now)
	}
	f.Release()
	if now, _ := inUse(t, rt); now >= mebibyte {
		t.Errorf("%d bytes are held after the function went", now)
	}
}

func TestAFunctionFailsCleanlyAndASmallerCallSucceeds(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	ok(t, rt.SetLogical(rt.PhysicalDevices("GPU")[0], device.LogicalConfig{Limit: device.MiB(16)}))
	v, err := rt.NewVariable("v", VariableOptions{})
	ok(t, err)
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		x := args[0].(*Tensor)
		y := Must(rt.Add(Must(rt.Add(x, x)), x))
		if err := rt.AssignAdd(v, Must(rt.Sum(y))); err != nil {
			return nil, err
		}
		return []*Tensor{Must(rt.Mul(y, Must(rt.Mul(x, x))))}, nil
	})
	x := mebi(t, rt, 6)
	before, _ := inUse(t, rt)
	_, err = f.Call(x)
	refused(t, err, device.ResourceExhausted, "f", "shape[1572864]", "type float", "GPU:0", "GPU_0_bfc")
	if now, _ := inUse(t, rt); now != before {
		t.Errorf("%d bytes in use after the failure, %d before", now, before)
	}
	x.Release()
	out := invoke(t, f, mebi(t, rt, 1))
	if y, err := Read[float32](out[0]); err != nil || y[0] != 3 {
		t.Error(y[:1], err)
	}
	if _, err := Must(rt.Read(v)).Scalar(); err != nil {
		t.Error("the variable is gone:", err)
	}
}

func TestReadsAndWritesInAFunctionKeepTheirOrder(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	v, err := rt.NewVariable("v", VariableOptions{Init: program.Init{Kind: program.InitConstant, Scale: 1}})
	ok(t, err)
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		before := Must(rt.Read(v))
		ok(t, rt.AssignAdd(v, args[0].(*Tensor)))
		between := Must(rt.Read(v))
		ok(t, rt.Assign(v, Must(rt.Mul(between, between))))
		return []*Tensor{before, between, Must(rt.Read(v))}, nil
	})
	two := floats(t, rt, []float32{2})
	for _, want := range [][]float64{{1, 3, 9}, {9, 11, 121}} {
		var got []float64
		for _, x := range invoke(t, f, two) {
			n, err := x.Scalar()
			ok(t, err)
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A variable that is given its own value, read before: the reader's buffer is
// not the one that is written.
func TestAssigningAVariableItsOwnValue(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	v, err := rt.NewVariable("v", VariableOptions{Init: program.Init{Kind: program.InitConstant, Scale: 5}})
	ok(t, err)
	f := rt.Function("f", func(...any) ([]*Tensor, error) {
		x := Must(rt.Read(v))
		ok(t, rt.Assign(v, x))
		ok(t, rt.AssignAdd(v, x))
		return []*Tensor{x, Must(rt.Read(v))}, nil
	})
	out := invoke(t, f)
	a, _ := out[0].Scalar()
	b, _ := out[1].Scalar()
	if a != 5 || b != 10 {
		t.Error(a, b)
	}
}

func TestFunctionsInsideFunctionsAreInlined(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	inner := twice(rt)
	outer := rt.Function("outer", func(args ...any) ([]*Tensor, error) {
		y, err := inner.Call(args...)
		if err != nil {
			return nil, err
		}
		return inner.Call(y[0])
	})
	if x, err := invoke(t, outer, floats(t, rt, []float32{3}))[0].Scalar(); x != 12 || err != nil {
		t.Error(x, err)
	}
	if inner.Traces() != 0 || outer.Traces() != 1 {
		t.Error(inner.Traces(), outer.Traces())
	}
}

func TestFunctionsCanRunEagerly(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	rt.RunFunctionsEagerly(true)
	f := twice(rt)
	x := invoke(t, f, floats(t, rt, []float32{3}))[0]
	if n, err := x.Scalar(); n != 6 || err != nil || f.Traces() != 0 || x.Symbolic() {
		t.Error(n, err, f.Traces())
	}
}

func TestTracingIsOnTheTimeline(t *testing.T) {
	rt, w := newRuntime(t, gpus(1))
	f := twice(rt)
	invoke(t, f, floats(t, rt, []float32{1, 2}, 2))
	invoke(t, f, floats(t, rt, []float32{1, 2}, 2))
	invoke(t, f, floats(t, rt, []float32{1, 2, 3}, 3))
	var told []string
	for i := range w.events {
		if e := &w.events[i]; e.Kind == event.Annotation && strings.HasPrefix(w.text.At(e.Text), "tracing: twice") {
			told = append(told, w.text.At(e.Text))
		}
	}
	if !slices.Equal(told, []string{"tracing: twice(float32[2])", "tracing: twice(float32[3])"}) {
		t.Errorf("%q", told)
	}
}

func TestGraphValuesStayInTheirGraph(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	var leaked *Tensor
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		leaked = Must(rt.Relu(args[0].(*Tensor)))
		return nil, nil
	})
	invoke(t, f, floats(t, rt, []float32{1}))
	_, err := rt.Relu(leaked)
	refused(t, err, device.InvalidArgument, "graph")
	_, err = Read[float32](leaked)
	refused(t, err, device.InvalidArgument, "graph")
	if !leaked.Symbolic() || leaked.Device() != "" || leaked.Address() != 0 {
		t.Error("a value of a graph has a place")
	}
}

// A tape outside looks into functions: gradients are those of the same ops
// without one.
func TestATapeSeesIntoFunctions(t *testing.T) {
	var reference []float32
	for _, traced := range []bool{false, true} {
		rt, _ := newRuntime(t, gpus(1))
		rt.RunFunctionsEagerly(!traced)
		w, err := rt.NewVariable("w", VariableOptions{Shape: program.Shape{2, 2}, Values: BytesOf([]float32{1, 2, 3, 4})})
		ok(t, err)
		layer := rt.Function("layer", func(args ...any) ([]*Tensor, error) {
			return []*Tensor{Must(rt.Tanh(Must(rt.MatMul(args[0].(*Tensor), Must(rt.Read(w))))))}, nil
		})
		mean := rt.Function("mean", func(args ...any) ([]*Tensor, error) {
			return []*Tensor{Must(rt.Mean(Must(rt.Square(args[0].(*Tensor)))))}, nil
		})
		x := floats(t, rt, []float32{0.1, -0.2, 0.3, 0.4}, 2, 2)
		tape := rt.Tape(true)
		tape.Watch(x)
		h := invoke(t, layer, x)[0]
		h = invoke(t, layer, Must(rt.Add(h, x)))[0] // ops and calls in turn; x is used twice, w three times
		h = Must(rt.Mul(h, Must(rt.Mean(Must(rt.Read(w))))))
		loss := invoke(t, mean, h)[0]
		doubled := Must(rt.Add(loss, loss))
		g, err := tape.Gradient(doubled, x, w, h)
		ok(t, err)
		var got []float32
		for i := range g {
			v, err := Read[float32](g[i])
			ok(t, err)
			got = append(got, v...)
		}
		if !traced {
			reference = got
		} else if !close32(got, reference) {
			t.Errorf("with functions %v, without %v", got, reference)
		}
		// By finite differences, for one element of w.
		value := func() float64 {
			h := invoke(t, layer, x)[0]
			h = invoke(t, layer, Must(rt.Add(h, x)))[0]
			h = Must(rt.Mul(h, Must(rt.Mean(Must(rt.Read(w))))))
			l, err := Must(rt.Add(invoke(t, mean, h)[0], invoke(t, mean, h)[0])).Scalar()
			ok(t, err)
			return l
		}
		tape.Release()
		const step = 1.0 / 256
		before := value()
		ok(t, rt.AssignAdd(w, floats(t, rt, []float32{0, 0, step, 0}, 2, 2)))
		if slope := (value() - before) / step; slope-float64(got[4+2]) > 0.01 || float64(got[4+2])-slope > 0.01 {
			t.Errorf("traced %v: gradient %v, slope %v", traced, got[4+2], slope)
		}
	}
}

func close32(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return x-y < 1e-5 && y-x < 1e-5 })
}

// What a tape holds of a call is what its backward graph reads.
func TestATapeHoldsWhatAFunctionSaves(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		x := args[0].(*Tensor)
		return []*Tensor{Must(rt.Sum(Must(rt.Relu(Must(rt.Add(x, x))))))}, nil // relu reads its output
	})
	x := mebi(t, rt, 1)
	tape := rt.Tape(false)
	tape.Watch(x)
	y := invoke(t, f, x)[0]
	if now, _ := inUse(t, rt); now != 2*mebibyte+256 {
		t.Errorf("%d bytes: want x, the rectifier's output and the result", now)
	}
	g, err := tape.Gradient(y, x)
	ok(t, err)
	if v, err := Read[float32](g[0]); err != nil || v[0] != 2 {
		t.Error(v[0], err)
	}
	for _, r := range []*Tensor{x, y, g[0]} {
		r.Release()
	}
	f.Release()
	if now, _ := inUse(t, rt); now != 0 {
		t.Errorf("%d bytes are held", now)
	}
}

func TestABodyThatFailsLeavesTheRuntimeUsable(t *testing.T) {
	rt, _ := newRuntime(t, gpus(0))
	x := floats(t, rt, make([]float32, 6), 2, 3)
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		y, err := rt.MatMul(args[0].(*Tensor), args[0].(*Tensor))
		return []*Tensor{y}, err
	})
	_, err := f.Call(x)
	refused(t, err, device.InvalidArgument, "MatMul", "[2,3]")
	if _, err := rt.Relu(x); err != nil {
		t.Error(err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = rt.Function("panics", func(...any) ([]*Tensor, error) { panic("mine") }).Call()
	}()
	if y, err := rt.Relu(x); err != nil || y.Symbolic() {
		t.Error("still tracing after a panic:", err)
	}
}

func TestAFunctionOverTwoDevices(t *testing.T) {
	rt, w := newRuntime(t, gpus(2))
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		x := args[0].(*Tensor)
		var y *Tensor
		err := rt.On("/GPU:1", func() (err error) { y, err = rt.Square(x); return err })
		if err != nil {
			return nil, err
		}
		return []*Tensor{y}, rt.On("/CPU:0", func() (err error) { y, err = rt.Relu(y); return err })
	})
	x := floats(t, rt, []float32{-3})
	if n, err := invoke(t, f, x)[0].Scalar(); n != 9 || err != nil {
		t.Error(n, err)
	}
	w.settle(t)
	if w.ran("Square") != 2 {
		t.Errorf("Square ran on device %d", w.ran("Square"))
	}
	if w.copies(1, 2) != 1 {
		t.Errorf("%d copies from GPU:0 to GPU:1", w.copies(1, 2))
	}
	// The same function with an argument on the host needs no trace.
	var h *Tensor
	ok(t, rt.On("/CPU:0", func() error { h = floats(t, rt, []float32{-4}); return nil }))
	if n, err := invoke(t, f, h)[0].Scalar(); n != 16 || err != nil || f.Traces() != 1 {
		t.Error(n, err, f.Traces())
	}
}
