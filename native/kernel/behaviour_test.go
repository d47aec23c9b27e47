package kernel_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

// firstMask is how the mask of seed 1, step 0, node 5 begins at a rate of 0.3.
var firstMask = []byte{1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1}

var nan, inf = math.NaN(), math.Inf(1)

func list(v ...float64) arg { return arg{shape: shape{int64(len(v))}, list: v} }

// results runs an op and gives its first output.
func results(t *testing.T, d program.DType, o program.Op, at attrs, in ...arg) []float64 {
	t.Helper()
	r := (&opCase{op: o, at: at, in: in}).prepare(t, d)
	run(t, r.c)
	v := &r.p.Values[r.c.Node.Outputs[0]]
	return loadFloats(r.c.Out[0], v.DType, v.Shape.Elements())
}

func TestNaNIsNotHidden(t *testing.T) {
	row := func(v ...float64) arg { return arg{shape: shape{1, int64(len(v))}, list: v} }
	image := arg{shape: shape{1, 2, 2, 1}, list: []float64{1, nan, 3, 2}}
	two := attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}}
	for _, c := range []struct {
		name string
		op   program.Op
		at   attrs
		in   []arg
		want []float64
	}{
		{"relu", program.OpRelu, attrs{}, []arg{list(nan, -1, inf)}, []float64{nan, 0, inf}},
		{"relu6", program.OpRelu6, attrs{}, []arg{list(nan, -1, inf)}, []float64{nan, 0, 6}},
		{"leaky relu", program.OpLeakyRelu, attrs{Value: 0.5}, []arg{list(nan, -1, inf)}, []float64{nan, -0.5, inf}},
		{"maximum", program.OpMaximum, attrs{}, []arg{list(nan, 1, 2), list(1, nan, 1)}, []float64{nan, nan, 2}},
		{"minimum", program.OpMinimum, attrs{}, []arg{list(nan, 1, 2), list(1, nan, 1)}, []float64{nan, nan, 1}},
		{"tanh at the ends", program.OpTanh, attrs{}, []arg{list(inf, -inf, nan)}, []float64{1, -1, nan}},
		{"sigmoid at the ends", program.OpSigmoid, attrs{}, []arg{list(inf, -inf, nan, -800)}, []float64{1, 0, nan, 0}},
		{"gelu", program.OpGelu, attrs{}, []arg{list(nan, inf)}, []float64{nan, inf}},
		{"log of nothing", program.OpLog, attrs{}, []arg{list(0, -1)}, []float64{-inf, nan}},
		{"max", program.OpMax, attrs{}, []arg{list(1, nan, 3)}, []float64{nan}},
		{"max of a column", program.OpMax, axes(0), []arg{{shape: shape{2, 2}, list: []float64{1, nan, 3, 4}}}, []float64{3, nan}},
		{"max of nothing", program.OpMax, axes(0), []arg{{shape: shape{0, 2}, list: []float64{}}}, []float64{-inf, -inf}},
		{"sum of nothing", program.OpSum, axes(0), []arg{{shape: shape{0, 2}, list: []float64{}}}, []float64{0, 0}},
		{"argmax, the first NaN", program.OpArgMax, attrs{}, []arg{row(5, nan, 9, nan)}, []float64{1}},
		{"argmax, equal", program.OpArgMax, attrs{}, []arg{row(5, 9, 9)}, []float64{1}},
		{"argmax, all the least", program.OpArgMax, attrs{}, []arg{row(-inf, -inf)}, []float64{0}},
		{"top k", program.OpTopK, attrs{Value: 3}, []arg{row(5, nan, inf, 7)}, []float64{nan, inf, 7}},
		{"max pool", program.OpMaxPool, two, []arg{image}, []float64{nan}},
		{"max pool gradient", program.OpMaxPoolGrad, two, []arg{image, x(1, 1, 1, 1), {shape: shape{1, 1, 1, 1}, list: []float64{4}}}, []float64{0, 4, 0, 0}},
		{"average pool", program.OpAvgPool, two, []arg{image}, []float64{nan}},
		{"softmax of large numbers", program.OpSoftmax, attrs{}, []arg{row(60000, 60000)}, []float64{0.5, 0.5}},
		{"softmax with a masked place", program.OpSoftmax, attrs{}, []arg{row(1, -inf, 1)}, []float64{0.5, 0, 0.5}},
		{"softmax with NaN", program.OpSoftmax, attrs{}, []arg{row(1, nan)}, []float64{nan, nan}},
		{"log softmax of large numbers", program.OpLogSoftmax, attrs{}, []arg{row(60000, 60000)}, []float64{-math.Ln2, -math.Ln2}},
		{"a NaN is not equal", program.OpEqual, attrs{}, []arg{list(nan, 1), list(nan, 1)}, []float64{0, 1}},
		{"a NaN is not less", program.OpLess, attrs{}, []arg{list(nan, 1), list(1, nan)}, []float64{0, 0}},
		{"segments that nothing names", program.OpUnsortedSegmentSum, attrs{Shape: shape{2}}, []arg{list(3), list(-1).typed(program.Int64)}, []float64{0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range floatTypes {
				if err := close64(results(t, f.t, c.op, c.at, c.in...), c.want, program.Float32, max(f.tol, 1e-6)); err != nil {
					t.Errorf("%s: %v", f.t, err)
				}
			}
		})
	}
}

func TestCastsOfOddNumbers(t *testing.T) {
	from := list(nan, inf, -inf, 1e30, -1e30, -1.9, 1.9, 300, -0.4)
	for d, want := range map[program.DType][]float64{
		program.Int32: {0, math.MaxInt32, math.MinInt32, math.MaxInt32, math.MinInt32, -1, 1, 300, 0},
		program.Int64: {0, 1 << 63, -1 << 63, 1 << 63, -1 << 63, -1, 1, 300, 0},
		program.Uint8: {0, 255, 0, 255, 0, 0, 1, 255, 0},
		program.Bool:  {1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		if got := results(t, program.Float64, program.OpCast, attrs{DType: d}, from); !slices.Equal(got, want) {
			t.Errorf("to %s: %v, want %v", d, got, want)
		}
	}
	ints := list(-5, 1<<40, 256, 7).typed(program.Int64)
	for d, want := range map[program.DType][]float64{
		program.Int32:    {-5, math.MaxInt32, 256, 7},
		program.Uint8:    {0, 255, 255, 7},
		program.Bool:     {1, 1, 1, 1},
		program.Float16:  {-5, inf, 256, 7},
		program.BFloat16: {-5, 1 << 40, 256, 7},
		program.Float64:  {-5, 1 << 40, 256, 7},
	} {
		if got := results(t, program.Float64, program.OpCast, attrs{DType: d}, ints); !slices.Equal(got, want) {
			t.Errorf("int64 to %s: %v, want %v", d, got, want)
		}
	}
}

// A sum of halves is rounded after every addition: what is less than half of the
// last place is lost each time, though together it is a whole one.
func TestSumsOfHalvesAreRoundedAtEveryStep(t *testing.T) {
	for d, tiny := range map[program.DType]float64{program.Float16: 1.0 / (1 << 11), program.BFloat16: 1.0 / (1 << 8), program.Float32: 1.0 / (1 << 11)} {
		want := 1.0
		if d == program.Float32 {
			want = 1 + 2*tiny
		}
		if got := results(t, d, program.OpAddN, attrs{}, list(1), list(tiny), list(tiny)); !slices.Equal(got, []float64{want}) {
			t.Errorf("%s: %v, want %v", d, got, want)
		}
	}
}

// Every pair of types: numbers that all of them hold survive.
func TestCastsBetweenAllTypes(t *testing.T) {
	types := []program.DType{
		program.Float32, program.Float64, program.Float16, program.BFloat16, program.Int32, program.Int64, program.Uint8, program.Bool,
	}
	for _, from := range types {
		for _, to := range types {
			want := []float64{0, 1, 2, 200}
			if from == program.Bool || to == program.Bool {
				want = []float64{0, 1, 1, 0}
			}
			if got := results(t, program.Float32, program.OpCast, attrs{DType: to}, list(want...).typed(from)); !slices.Equal(got, want) {
				t.Errorf("%s to %s: %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestRunRefusesBuffersThatDoNotFit(t *testing.T) {
	four := opCase{op: program.OpTanh, in: []arg{x(4)}}
	for name, c := range map[string]struct {
		spoil func(c *kernel.Call)
		want  string
	}{
		"short input":    {func(c *kernel.Call) { c.In[0] = c.In[0][:7] }, "input 0 has 7 bytes"},
		"short output":   {func(c *kernel.Call) { c.Out[0] = nil }, "output 0 has 0 bytes"},
		"missing output": {func(c *kernel.Call) { c.Out = nil }, "1 inputs and 0 outputs given"},
		"misaligned":     {func(c *kernel.Call) { c.In[0] = append(make([]byte, 1, 65), c.In[0]...)[1:] }, "not aligned"},
		"unknown op":     {func(c *kernel.Call) { n := *c.Node; n.Op = "Frobnicate"; c.Node = &n }, "no CPU kernel for Frobnicate"},
	} {
		r := four.prepare(t, program.Float32)
		call := *r.c
		call.In, call.Out = slices.Clone(call.In), slices.Clone(call.Out)
		c.spoil(&call)
		if err := kernel.Run(&call); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func TestBadIndicesAreRefused(t *testing.T) {
	sgd := optimizer(program.OpApplySGD, program.OpSparseApplySGD, attrs{}, 0, []float64{0.1}, nil)[1]
	sgd.in[3].list = []float64{0, 1, 8, 2, 3}
	for _, c := range []struct {
		oc   opCase
		want string
	}{
		{opCase{op: program.OpSparseXent, in: []arg{x(2, 3), list(0, 3).typed(program.Int64)}}, "label 3 of sample 1 is outside of [0,3)"},
		{opCase{op: program.OpSparseXent, in: []arg{x(2, 3), list(-1, 3).typed(program.Int32)}}, "label -1 of sample 0 is outside of [0,3)"},
		{opCase{op: program.OpGather, in: []arg{x(3, 2), list(1, 3).typed(program.Int32)}}, "index 3, at position 1, is outside of [0,3)"},
		{opCase{op: program.OpUnsortedSegmentSum, at: attrs{Shape: shape{2, 2}}, in: []arg{x(2, 2), list(1, 2).typed(program.Int64)}}, "segment 2, at position 1, is outside of [0,2)"},
		{sgd, "index 8, at position 2, is outside of [0,8)"},
	} {
		r := c.oc.prepare(t, program.Float32)
		if err := kernel.Run(r.c); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "node "+r.c.Node.Name) {
			t.Errorf("%s: error %v, want %q in it", c.oc.op, err, c.want)
		}
	}
}

func TestAPanicInAKernelIsAnError(t *testing.T) {
	r := (&opCase{op: program.OpTanh, in: []arg{x(4)}}).prepare(t, program.Float32)
	n := *r.c.Node
	n.Op = "Failing"
	r.c.Node = &n
	err := kernel.FailingCall(r.c)
	if err == nil || !strings.Contains(err.Error(), "node Tanh: Failing: the kernel failed: index out of reach") {
		t.Errorf("error %v", err)
	}
}

func TestCheckNumericsNamesTheFirst(t *testing.T) {
	for _, f := range floatTypes {
		r := (&opCase{op: program.OpLog, in: []arg{list(1, 0.5, -1, 0)}}).prepare(t, f.t)
		run(t, r.c)
		r.c.CheckNumerics = true
		err := kernel.Run(r.c)
		want := "node Log: Log: output 0: element 2 of " + f.t.String() + "[4] is NaN: not a finite number"
		if !errors.Is(err, kernel.ErrNotFinite) || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	grown := opCase{op: program.OpAssignAdd, in: []arg{list(1, 3e38).kept(), list(1, 3e38)}}
	r := grown.prepare(t, program.Float32)
	r.c.CheckNumerics = true
	if err := kernel.Run(r.c); !errors.Is(err, kernel.ErrNotFinite) || !strings.Contains(err.Error(), "variable v0: element 1 of float32[2] is +Inf") {
		t.Errorf("error %v", err)
	}
	// A mask and an index are no numbers to look at, and what is finite passes.
	r = (&opCase{op: program.OpIsFinite, in: []arg{list(nan)}}).prepare(t, program.Float16)
	r.c.CheckNumerics = true
	run(t, r.c)
}

func TestDropoutDependsOnSeedStepAndNodeAlone(t *testing.T) {
	oc := opCase{op: program.OpDropout, at: attrs{Value: 0.3, Seed: 5}, in: []arg{x(10000).of(1, 2)}}
	mask := func(seed uint64, step int64, node int64, d program.DType) []byte {
		oc.at.Seed = node
		r := oc.prepare(t, d)
		r.c.Seed, r.c.Step = seed, step
		run(t, r.c)
		x, y := loadFloats(r.c.In[0], d, 10000), loadFloats(r.c.Out[0], d, 10000)
		for i, m := range r.c.Out[1][:10000] {
			if want := x[i] / 0.7 * float64(m); m > 1 || math.Abs(y[i]-want) > 2e-2 {
				t.Fatalf("element %d: %v of %v, mask %d", i, y[i], x[i], m)
			}
		}
		return slices.Clone(r.c.Out[1][:10000])
	}
	first := mask(1, 0, 5, program.Float32)
	// What every host must draw.
	if got, want := first[:24], firstMask; !slices.Equal(got, want) {
		t.Errorf("the mask begins %v, want %v", got, want)
	}
	if !slices.Equal(first, mask(1, 0, 5, program.BFloat16)) {
		t.Error("another type draws another mask")
	}
	for name, other := range map[string][]byte{
		"seed": mask(2, 0, 5, program.Float32), "step": mask(1, 1, 5, program.Float32), "node": mask(1, 0, 6, program.Float32),
	} {
		same := 0
		for i := range first {
			if first[i] == other[i] {
				same++
			}
		}
		// Independent masks agree in 0.7² + 0.3² of the places.
		if same < 5600 || same > 6000 {
			t.Errorf("%d of 10000 places are the same with another %s", same, name)
		}
	}
	kept := 0
	for _, m := range first {
		kept += int(m)
	}
	if kept < 6850 || kept > 7150 {
		t.Errorf("%d of 10000 are kept, want about 7000", kept)
	}
}

func TestRandomUniform(t *testing.T) {
	for _, f := range floatTypes {
		y := results(t, f.t, program.OpRandomUniform, attrs{DType: f.t, Shape: shape{20000}, Seed: 9})
		var sum, squares float64
		for _, v := range y {
			if v < 0 || v >= 1 {
				t.Fatalf("%s: %v is not in [0,1)", f.t, v)
			}
			sum += v
			squares += v * v
		}
		mean, square := sum/20000, squares/20000
		if math.Abs(mean-0.5) > 0.01 || math.Abs(square-1.0/3) > 0.01 {
			t.Errorf("%s: mean %v, mean square %v", f.t, mean, square)
		}
	}
}

// All float16 there are go out and come back; every float32 between two of
// them goes to the nearer, at the middle to the even one.
func TestFloat16RoundsToTheNearest(t *testing.T) {
	for h := range 1 << 16 {
		x := kernel.FromFloat16(uint16(h))
		if x != x {
			if h&0x7c00 != 0x7c00 || h&0x3ff == 0 {
				t.Fatalf("%#x is NaN", h)
			}
			if back := kernel.ToFloat16(x); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("NaN %#x comes back as %#x", h, back)
			}
			continue
		}
		exp, frac := h>>10&31, float64(h&0x3ff)
		want := math.Ldexp(1+frac/1024, exp-15)
		switch exp {
		case 0:
			want = math.Ldexp(frac/1024, -14)
		case 31:
			want = inf
		}
		if h >= 0x8000 {
			want = -want
		}
		if float64(x) != want || math.Signbit(float64(x)) != (h >= 0x8000) {
			t.Fatalf("%#x is %v, want %v", h, x, want)
		}
		if back := kernel.ToFloat16(x); back != uint16(h) {
			t.Fatalf("%#x, %v, comes back as %#x", h, x, back)
		}
		if h&0x7fff >= 0x7bff { // the last finite one and infinity
			continue
		}
		next := kernel.FromFloat16(uint16(h + 1))
		middle := (x + next) / 2 // exact
		even := uint16(h + h&1)
		for v, want := range map[float32]uint16{
			middle: even, math.Nextafter32(middle, x): uint16(h), math.Nextafter32(middle, next): uint16(h + 1),
		} {
			if got := kernel.ToFloat16(v); got != want {
				t.Fatalf("%v is rounded to %#x, want %#x", v, got, want)
			}
		}
	}
	for x, want := range map[float32]uint16{65519.996: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, -65520: 0xfc00, 2.9802322e-08: 0, 2.98023242e-08: 1} {
		if got := kernel.ToFloat16(x); got != want {
			t.Errorf("%v is rounded to %#x, want %#x", x, got, want)
		}
	}
}

func TestBFloat16RoundsToTheNearest(t *testing.T) {
	for x, want := range map[uint32]uint16{
		0x3f800000: 0x3f80, 0x3f807fff: 0x3f80, 0x3f808000: 0x3f80, 0x3f808001: 0x3f81, 0x3f818000: 0x3f82,
		0x7f7fffff: 0x7f80, 0x7f800000: 0x7f80, 0xff800000: 0xff80, 0x80000000: 0x8000, 0x00008001: 0x0001,
		0x7f800001: 0x7fc0, 0xffc00000: 0xffc0,
	} {
		if got := kernel.ToBFloat16(math.Float32frombits(x)); got != want {
			t.Errorf("%#x is rounded to %#x, want %#x", x, got, want)
		}
	}
}

// A float64 goes to a half in one rounding, not in two.
func TestDoublesAreRoundedOnce(t *testing.T) {
	x := 1 + 1.0/2048 + 1e-12 // float32 would round it to the middle, and that to 1
	if got := results(t, program.Float64, program.OpCast, attrs{DType: program.Float16}, list(x, -x)); got[0] != 1+1.0/1024 || got[1] != -got[0] {
		t.Errorf("%v is rounded to %v", x, got)
	}
	if f := kernel.ToOdd(1e300); f != math.MaxFloat32 {
		t.Errorf("1e300 becomes %v", f)
	}
}

func TestConvolutionsAreTheSameWithAnyWorkspace(t *testing.T) {
	for i := range productCases {
		oc := &productCases[i]
		if !strings.HasPrefix(string(oc.op), "Conv2D") {
			continue
		}
		for _, d := range oc.types() {
			r := oc.prepare(t, d)
			full, want := r.c.Temp, oc.expect(r)
			n := int(oc.in[0].shape[0])
			for _, size := range []int{0, len(full), len(full) / n, len(full)/n*2 + 3} {
				r.c.Temp = full[:min(size, len(full))]
				fillWith(r.c.Temp, 0xff)
				fillWith(r.c.Out[0], 0xff)
				run(t, r.c)
				if err := r.differs(want, 10*tolerance(d)); err != nil {
					t.Errorf("%s %s, workspace %d: %v", oc, d, size, err)
				}
			}
		}
	}
}
