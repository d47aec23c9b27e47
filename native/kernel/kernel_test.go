package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// node builds a program of one op on inputs of the given kinds and returns a
// machine with random inputs, and the op's call.
func node(tb testing.TB, o program.Op, a attrs, in ...program.Spec) (*machine, *kernel.Call) {
	tb.Helper()
	b := program.NewBuilder("t", 1)
	var ids []value
	for i, s := range in {
		ids = append(ids, b.Input(fmt.Sprint("in", i), s.DType, s.Shape))
	}
	b.Op(o, a, ids...)
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	m := newMachine(tb, p, 1)
	r := rand.New(rand.NewPCG(11, 2))
	for _, id := range ids {
		if p.Values[id].DType == program.Float32 {
			f := m.floats(id)
			for i := range f {
				f[i] = r.Float32()*2 - 1
			}
		}
	}
	return m, &m.calls[0]
}

func f32(s ...int64) program.Spec { return program.Spec{DType: program.Float32, Shape: s} }

func run(tb testing.TB, c *kernel.Call) {
	tb.Helper()
	if err := kernel.Run(c); err != nil {
		tb.Fatal(err)
	}
}

func near(a, b []float32, tol float64) error {
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); !(d <= tol*(1+math.Abs(float64(b[i])))) { // NaN too
			return fmt.Errorf("element %d: %v, want %v", i, a[i], b[i])
		}
	}
	return nil
}

func TestMatMulEqualsTheDefinition(t *testing.T) {
	for _, n := range []int64{1, 3, 17, 70, 210} {
		for i := range 4 {
			a := attrs{TransposeA: i&1 != 0, TransposeB: i&2 != 0}
			x, y := f32(n, n+2), f32(n+2, 5)
			if a.TransposeA {
				x = f32(n+2, n)
			}
			if a.TransposeB {
				y = f32(5, n+2)
			}
			m, c := node(t, program.OpMatMul, a, x, y)
			run(t, c)
			want := make([]float32, n*5)
			xs, ys := m.floats(0), m.floats(1)
			for r := range n {
				for col := range int64(5) {
					var s float64
					for k := range n + 2 {
						xi, yi := r*(n+2)+k, k*5+col
						if a.TransposeA {
							xi = k*n + r
						}
						if a.TransposeB {
							yi = col*(n+2) + k
						}
						s += float64(xs[xi]) * float64(ys[yi])
					}
					want[r*5+col] = float32(s)
				}
			}
			if err := near(m.floats(2), want, 1e-5); err != nil {
				t.Errorf("n %d, %+v: %v", n, a, err)
			}
		}
	}
}

var convolutions = []struct {
	image, filter shape
	at            attrs
}{
	{shape{3, 8, 7, 2}, shape{3, 3, 2, 5}, attrs{Strides: [2]int64{1, 1}}},
	{shape{3, 8, 7, 2}, shape{5, 5, 2, 4}, attrs{Strides: [2]int64{2, 3}, Padding: program.Same}},
	{shape{4, 5, 5, 6}, shape{1, 1, 6, 3}, attrs{Strides: [2]int64{2, 2}}},
	{shape{2, 4, 4, 3}, shape{4, 4, 3, 8}, attrs{Strides: [2]int64{1, 1}}},
}

// The unrolled way, with room for all samples, for one and for two, must give
// what the direct way gives, which the gradient tests hold to mathematics.
func TestConvolutionsAreTheSameWithAnyWorkspace(t *testing.T) {
	for _, cv := range convolutions {
		b := program.NewBuilder("t", 1)
		x, w := b.Input("x", program.Float32, cv.image), b.Input("w", program.Float32, cv.filter)
		out := b.Shape(b.Op(program.OpConv2D, cv.at, x, w))
		for _, o := range []program.Op{program.OpConv2D, program.OpConv2DBackpropInput, program.OpConv2DBackpropFilter} {
			at, in := cv.at, []program.Spec{f32(cv.image...), f32(cv.filter...)}
			switch o {
			case program.OpConv2DBackpropInput:
				at.Shape, in = cv.image, []program.Spec{f32(cv.filter...), f32(out...)}
			case program.OpConv2DBackpropFilter:
				at.Shape, in = cv.filter, []program.Spec{f32(cv.image...), f32(out...)}
			default:
			}
			m, c := node(t, o, at, in...)
			full := c.Temp
			c.Temp = nil
			run(t, c)
			want := slices.Clone(m.floats(2))
			for _, size := range []int{len(full), len(full) / int(cv.image[0]), len(full)/int(cv.image[0])*2 + 3} {
				c.Temp = full[:min(size, len(full))]
				fillNaN(kernel.Floats(full[:len(full)/4*4]))
				fillNaN(m.floats(2))
				run(t, c)
				if err := near(m.floats(2), want, 1e-5); err != nil {
					t.Errorf("%s %v %v, workspace %d: %v", o, cv.image, cv.filter, size, err)
				}
			}
		}
	}
}

func fillNaN(s []float32) {
	for i := range s {
		s[i] = float32(math.NaN())
	}
}

func TestForwardableKernelsAreRightInPlace(t *testing.T) {
	tried := 0
	for _, c := range []struct {
		op program.Op
		a  attrs
		in []program.Spec
	}{
		{program.OpBiasAdd, attrs{}, []program.Spec{f32(3, 4), f32(4)}},
		{program.OpTanh, attrs{}, []program.Spec{f32(3, 4)}},
		{program.OpRelu, attrs{}, []program.Spec{f32(3, 4)}},
		{program.OpTanhGrad, attrs{}, []program.Spec{f32(3, 4), f32(3, 4)}},
		{program.OpReluGrad, attrs{}, []program.Spec{f32(3, 4), f32(3, 4)}},
		{program.OpAdd, attrs{}, []program.Spec{f32(3, 4), f32(3, 4)}},
		{program.OpAdd, attrs{}, []program.Spec{f32(3, 4), f32(4)}},
		{program.OpSub, attrs{}, []program.Spec{f32(4), f32(3, 4)}},
		{program.OpMul, attrs{}, []program.Spec{f32(3, 1), f32(3, 4)}},
		{program.OpMul, attrs{}, []program.Spec{f32(3, 4), f32()}},
		{program.OpAddN, attrs{}, []program.Spec{f32(3, 4), f32(3, 4), f32(3, 4)}},
		{program.OpAddN, attrs{}, []program.Spec{f32(3, 4), f32(3, 4)}},
		{program.OpSparseXent, attrs{}, []program.Spec{f32(3, 4), {DType: program.Int64, Shape: shape{3}}}},
	} {
		def, err := program.Lookup(c.op)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range def.Forwardable {
			m, call := node(t, c.op, c.a, c.in...)
			run(t, call)
			want := slices.Clone(call.Out[def.ForwardOutput])
			if len(call.In[i]) != len(want) {
				continue // an executor would not forward it either
			}
			call.Out[def.ForwardOutput] = call.In[i]
			run(t, call)
			n := m.p.Values[call.Node.Outputs[def.ForwardOutput]].Bytes()
			if !slices.Equal(call.In[i][:n], want[:n]) {
				t.Errorf("%s over its input %d gives another result", c.op, i)
			}
			tried++
		}
	}
	if tried < 15 {
		t.Errorf("only %d ways of working in place were tried", tried)
	}
}

func TestEveryForwardableOpHasAKernel(t *testing.T) {
	for _, o := range kernel.Ops() {
		if def, err := program.Lookup(o); err != nil || !kernel.Supported(o) {
			t.Errorf("%s: %v", o, err)
		} else if def.Alias && len(def.Forwardable) > 0 {
			t.Errorf("%s both aliases and forwards", o)
		}
	}
}

func TestCrossEntropyByHand(t *testing.T) {
	m, c := node(t, program.OpSparseXent, attrs{}, f32(2, 3), program.Spec{DType: program.Int32, Shape: shape{2}})
	copy(m.floats(0), []float32{1000, 1000, 1000, 0, float32(math.Log(2)), float32(math.Log(5))})
	c.In[1][0], c.In[1][4] = 2, 1
	run(t, c)
	if err := near(m.floats(2), []float32{float32(math.Log(3)), float32(math.Log(4))}, 1e-6); err != nil {
		t.Error("loss:", err)
	}
	third := float32(1) / 3
	if err := near(m.floats(3), []float32{third, third, third - 1, 0.125, 0.25 - 1, 0.625}, 1e-6); err != nil {
		t.Error("gradient:", err)
	}
}

func TestAccuracyOps(t *testing.T) {
	m, c := node(t, program.OpArgMax, attrs{}, f32(3, 4))
	copy(m.floats(0), []float32{0, 1, 1, 0, -5, -6, -7, -5, 1, 2, 3, 4})
	run(t, c)
	if got := kernel.Ints(c.Out[0])[:3]; !slices.Equal(got, []int64{1, 0, 3}) {
		t.Errorf("indexes of the first maxima: %v", got)
	}
	_, c = node(t, program.OpEqual, attrs{}, program.Spec{DType: program.Int64, Shape: shape{3}}, program.Spec{DType: program.Int64, Shape: shape{3}})
	copy(kernel.Ints(c.In[0]), []int64{4, 5, 6})
	copy(kernel.Ints(c.In[1]), []int64{4, 0, 6})
	run(t, c)
	if !slices.Equal(c.Out[0][:3], []byte{1, 0, 1}) {
		t.Errorf("equal: %v", c.Out[0][:3])
	}
	_, k := node(t, program.OpCast, attrs{DType: program.Float32}, program.Spec{DType: program.Bool, Shape: shape{3}})
	copy(k.In[0], []byte{1, 0, 1})
	run(t, k)
	if got := kernel.Floats(k.Out[0])[:3]; !slices.Equal(got, []float32{1, 0, 1}) {
		t.Errorf("cast: %v", got)
	}
}

func TestAdamTakesTheFirstStepsThatTheFormulaGives(t *testing.T) {
	b := program.NewBuilder("t", 1)
	w := b.Variable("w", shape{2}, program.Init{Kind: program.InitConstant, Scale: 1})
	g := b.Input("g", program.Float32, shape{2})
	b.Adam(0.1, []value{w}, []value{g})
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, p, 1)
	x, mom, vel := 1.0, 0.0, 0.0
	for step := 1; step <= 3; step++ {
		d := 0.5 * float64(step)
		copy(m.floats(g), []float32{float32(d), 0})
		m.step(t)
		mom += (d - mom) * 0.1
		vel += (d*d - vel) * 0.001
		x -= 0.1 * math.Sqrt(1-math.Pow(0.999, float64(step))) / (1 - math.Pow(0.9, float64(step))) * mom / (math.Sqrt(vel) + 1e-7)
		if got := float64(m.vars[0][0]); math.Abs(got-x) > 1e-5 {
			t.Errorf("step %d: %v, want %v", step, got, x)
		}
		if m.vars[0][1] != 1 {
			t.Errorf("step %d: a weight without gradient moved to %v", step, m.vars[0][1])
		}
	}
}

func TestTanhIsExactToAFloat(t *testing.T) {
	m, c := node(t, program.OpTanh, attrs{}, f32(4001))
	x := m.floats(0)
	for i := range x {
		x[i] = float32(i-2000) / 200 * float32(math.Pow(10, -float64(i%7)))
	}
	run(t, c)
	for i, y := range m.floats(1) {
		if want := math.Tanh(float64(x[i])); math.Abs(float64(y)-want) > 1.2e-7*math.Abs(want) {
			t.Errorf("tanh(%v) = %v, want %v", x[i], y, want)
		}
	}
}

func TestRunRefusesBuffersThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(c *kernel.Call)
		want  string
	}{
		"short input":    {func(c *kernel.Call) { c.In[0] = c.In[0][:7] }, "input 0 has 7 bytes"},
		"short output":   {func(c *kernel.Call) { c.Out[0] = nil }, "output 0 has 0 bytes"},
		"missing output": {func(c *kernel.Call) { c.Out = nil }, "1 inputs and 0 outputs given"},
		"misaligned":     {func(c *kernel.Call) { c.In[0] = append(make([]byte, 1, 65), c.In[0]...)[1:] }, "not aligned"},
	} {
		_, call := node(t, program.OpTanh, attrs{}, f32(4))
		c.spoil(call)
		if err := kernel.Run(call); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
	_, call := node(t, program.OpSparseXent, attrs{}, f32(2, 3), program.Spec{DType: program.Int64, Shape: shape{2}})
	kernel.Ints(call.In[1])[1] = 3
	if err := kernel.Run(call); err == nil || !strings.Contains(err.Error(), "label 3 of sample 1 is outside of [0,3)") {
		t.Errorf("label out of range: error %v", err)
	}
}

func TestSmallStepsAllocateNothing(t *testing.T) {
	p, err := zoo.Program("lenet5", zoo.Options{Batch: 2, Train: true, Optimizer: "adam"})
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, p, 1)
	m.step(t)
	for i := range m.calls {
		c := &m.calls[i]
		if n := testing.AllocsPerRun(5, func() { run(t, c) }); n > 0 {
			t.Errorf("%s: %v allocations", c.Node.Name, n)
		}
	}
}

// A product large enough for all cores starts a goroutine for each, whatever
// the number of its tiles.
func TestLargeProductsAllocateLittle(t *testing.T) {
	_, c := node(t, program.OpMatMul, attrs{}, f32(640, 128), f32(128, 640))
	run(t, c)
	if n := testing.AllocsPerRun(5, func() { run(t, c) }); n > float64(2*runtime.GOMAXPROCS(0)) {
		t.Errorf("%v allocations", n)
	}
}

// The result must not depend on how many cores share the tiles.
func TestProductsAreTheSameOnAnyNumberOfCores(t *testing.T) {
	for _, a := range []attrs{{}, {TransposeA: true}, {TransposeB: true}, {TransposeA: true, TransposeB: true}} {
		x, y := f32(300, 200), f32(200, 410)
		if a.TransposeA {
			x = f32(200, 300)
		}
		if a.TransposeB {
			y = f32(410, 200)
		}
		_, c := node(t, program.OpMatMul, a, x, y)
		var want []byte
		for _, cores := range []int{1, 2, 5} {
			was := runtime.GOMAXPROCS(cores)
			run(t, c)
			runtime.GOMAXPROCS(was)
			if want == nil {
				want = slices.Clone(c.Out[0])
			}
			if !slices.Equal(c.Out[0], want) {
				t.Errorf("%+v: another result on %d cores", a, cores)
			}
		}
	}
}

func benchmarkStep(b *testing.B, model string, batch int) {
	b.Helper()
	p, err := zoo.Program(model, zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
	if err != nil {
		b.Fatal(err)
	}
	m := newMachine(b, p, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.step(b)
	}
	work := p.TotalCost(program.Forward).FLOPs + p.TotalCost(program.Backward).FLOPs + p.TotalCost(program.Update).FLOPs
	b.ReportMetric(float64(work)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkStepMLP32(b *testing.B)   { benchmarkStep(b, "mlp", 32) }
func BenchmarkStepLeNet32(b *testing.B) { benchmarkStep(b, "lenet5", 32) }

func benchmarkOp(b *testing.B, o program.Op, a attrs, in ...program.Spec) {
	b.Helper()
	m, c := node(b, o, a, in...)
	b.ReportAllocs()
	for b.Loop() {
		run(b, c)
	}
	b.ReportMetric(float64(m.p.Cost(c.Node).FLOPs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkMatMul512(b *testing.B) {
	benchmarkOp(b, program.OpMatMul, attrs{}, f32(512, 512), f32(512, 512))
}

func BenchmarkConv2DLeNet1(b *testing.B) {
	benchmarkOp(b, program.OpConv2D, attrs{Strides: [2]int64{1, 1}}, f32(32, 32, 32, 1), f32(5, 5, 1, 6))
}

func BenchmarkConv2DLeNet2(b *testing.B) {
	benchmarkOp(b, program.OpConv2D, attrs{Strides: [2]int64{1, 1}}, f32(32, 14, 14, 6), f32(5, 5, 6, 16))
}

func BenchmarkConv2DBackpropInputLeNet2(b *testing.B) {
	benchmarkOp(b, program.OpConv2DBackpropInput, attrs{Strides: [2]int64{1, 1}, Shape: shape{32, 14, 14, 6}}, f32(5, 5, 6, 16), f32(32, 10, 10, 16))
}

func BenchmarkConv2DBackpropFilterLeNet2(b *testing.B) {
	benchmarkOp(b, program.OpConv2DBackpropFilter, attrs{Strides: [2]int64{1, 1}, Shape: shape{5, 5, 6, 16}}, f32(32, 14, 14, 6), f32(32, 10, 10, 16))
}

func BenchmarkTanhLeNet(b *testing.B) {
	benchmarkOp(b, program.OpTanh, attrs{}, f32(32, 28, 28, 6))
}
