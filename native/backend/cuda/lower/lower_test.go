package lower

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tideline/native/backend/cuda/ptx/interpret"
	"tideline/native/kernel"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

type (
	shape = program.Shape
	attrs = program.Attrs
	spec  = program.Spec
)

func f32(s ...int64) spec { return spec{DType: program.Float32, Shape: s} }
func i64(s ...int64) spec { return spec{DType: program.Int64, Shape: s} }

// card is a device's memory with a module, as simple as can be: addresses are
// handed out and never taken back, with gaps that nothing may touch.
type card struct {
	module *interpret.Module
	mem    interpret.Memory
	next   uint64
}

const base = 1 << 20

func newCard(tb testing.TB, bytes int64) *card {
	tb.Helper()
	m, err := interpret.Parse(Text())
	if err != nil {
		tb.Fatal(err)
	}
	return &card{module: m, mem: interpret.Memory{Base: base, Bytes: make([]byte, bytes)}}
}

// hold gives memory for some bytes, with a copy of what is given.
func (c *card) hold(tb testing.TB, content []byte, bytes int64) exec.Ref {
	tb.Helper()
	c.next += 256
	r := exec.Ref{Address: base + c.next, Bytes: bytes, Device: 1}
	c.next += uint64(bytes+255) &^ 255
	if c.next > uint64(len(c.mem.Bytes)) {
		tb.Fatal("the test's card is full")
	}
	copy(c.bytes(r), content)
	return r
}

func (c *card) bytes(r exec.Ref) []byte { return c.mem.Bytes[r.Address-base:][:r.Bytes] }

func (c *card) run(tb testing.TB, l *Lowering, k *exec.Kernel) []Command {
	tb.Helper()
	list, err := l.Kernel(k, func(r exec.Ref) (uint64, error) { return r.Address, nil })
	if err != nil {
		tb.Fatal(err)
	}
	for i := range list {
		if err := c.do(&list[i]); err != nil {
			tb.Fatalf("%s: %v", k.Node.Op, err)
		}
	}
	return list
}

func (c *card) do(x *Command) error {
	piece := func(addr uint64, n int64) []byte { return c.mem.Bytes[addr-base:][:n] }
	switch x.Kind {
	case Launch, Product:
		return c.module.Launch(&c.mem, Kernels()[x.Kernel].Name, x.Grid, x.Block, x.Args[:x.NArgs])
	case Fill32:
		b := piece(x.Dst, 4*x.Count)
		for i := 0; i < len(b); i += 4 {
			b[i], b[i+1], b[i+2], b[i+3] = byte(x.Value), byte(x.Value>>8), byte(x.Value>>16), byte(x.Value>>24)
		}
	case Fill8:
		b := piece(x.Dst, x.Count)
		for i := range b {
			b[i] = byte(x.Value)
		}
	case Move:
		copy(piece(x.Dst, x.Count), piece(x.Src, x.Count))
	}
	return nil
}

// both runs one op by the CPU's kernel and by the card's and compares.
func both(t *testing.T, op program.Op, a attrs, work float64, fill func(i int, b []byte, v *program.Value), in ...spec) {
	t.Helper()
	b := program.NewBuilder("t", 1)
	var ids []program.ValueID
	for i, s := range in {
		ids = append(ids, b.Input(fmt.Sprint("in", i), s.DType, s.Shape))
	}
	b.Op(op, a, ids...)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, &p.Nodes[len(p.Nodes)-1], work, fill)
}

func compare(t *testing.T, p *program.Program, n *program.Node, work float64, fill func(i int, b []byte, v *program.Value)) {
	t.Helper()
	def, err := program.Lookup(n.Op)
	if err != nil {
		t.Fatal(err)
	}
	c := newCard(t, 8<<20)
	call := kernel.Call{Program: p, Node: n}
	k := exec.Kernel{Program: p, Node: n, Device: 1}
	r := rand.New(rand.NewPCG(5, 9))
	for i, id := range n.Inputs {
		v := &p.Values[id]
		buf := kernel.Bytes(make([]int64, (v.Bytes()+7)/8))[:v.Bytes()]
		if v.DType == program.Float32 {
			for j, f := 0, kernel.Floats(buf); j < len(f); j++ {
				f[j] = r.Float32()*2 - 1
			}
		}
		if fill != nil {
			fill(i, buf, v)
		}
		call.In = append(call.In, buf)
		k.In = append(k.In, c.hold(t, buf, v.Bytes()))
	}
	for _, id := range n.Outputs {
		v := &p.Values[id]
		call.Out = append(call.Out, kernel.Bytes(make([]int64, (v.Bytes()+7)/8))[:v.Bytes()])
		k.Out = append(k.Out, c.hold(t, nil, v.Bytes()))
	}
	if def.Workspace != nil && work > 0 {
		size := int64(float64(def.Workspace(p, n)) * work)
		call.Temp = kernel.Bytes(make([]int64, (size+7)/8))
		k.Workspace = c.hold(t, nil, size)
	}
	if err := kernel.Run(&call); err != nil {
		t.Fatal(err)
	}
	c.run(t, new(Lowering), &k)
	for i, id := range n.Inputs { // Apply ops write into their inputs
		near(t, fmt.Sprintf("%s input %d", n.Op, i), &p.Values[id], c.bytes(k.In[i]), call.In[i])
	}
	for i, id := range n.Outputs {
		near(t, fmt.Sprintf("%s output %d", n.Op, i), &p.Values[id], c.bytes(k.Out[i]), call.Out[i])
	}
}

const tolerance = 2e-5

func near(t *testing.T, what string, v *program.Value, got, want []byte) {
	t.Helper()
	if v.DType != program.Float32 {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: byte %d is %d, want %d", what, i, got[i], want[i])
				return
			}
		}
		return
	}
	// The card's memory is aligned to 256 within a slice that is aligned too.
	g, w := kernel.Floats(got), kernel.Floats(want)
	for i := range w {
		if d := math.Abs(float64(g[i] - w[i])); !(d <= tolerance*(1+math.Abs(float64(w[i])))) {
			t.Errorf("%s: element %d of %s is %v, want %v", what, i, v.Shape, g[i], w[i])
			return
		}
	}
}

func TestKernelsComputeWhatTheCPUsDo(t *testing.T) {
	for _, c := range []struct {
		op program.Op
		a  attrs
		in []spec
	}{
		{program.OpConst, attrs{DType: program.Float32, Shape: shape{7, 3}, Value: -2.5}, nil},
		{program.OpConst, attrs{DType: program.Int32, Shape: shape{5}, Value: -3}, nil},
		{program.OpConst, attrs{DType: program.Bool, Shape: shape{5}, Value: 1}, nil},
		{program.OpTanh, attrs{}, []spec{f32(300, 3)}},
		{program.OpRelu, attrs{}, []spec{f32(17, 31)}},
		{program.OpTanhGrad, attrs{}, []spec{f32(17, 31), f32(17, 31)}},
		{program.OpReluGrad, attrs{}, []spec{f32(17, 31), f32(17, 31)}},
		{program.OpBiasAdd, attrs{}, []spec{f32(17, 5), f32(5)}},
		{program.OpBiasAdd, attrs{}, []spec{f32(3, 4, 5, 6), f32(6)}},
		{program.OpBiasAddGrad, attrs{}, []spec{f32(300, 5)}},
		{program.OpBiasAddGrad, attrs{}, []spec{f32(3, 20, 20, 6)}},
		{program.OpAdd, attrs{}, []spec{f32(4, 5), f32(4, 5)}},
		{program.OpSub, attrs{}, []spec{f32(4, 5), f32(5)}},
		{program.OpMul, attrs{}, []spec{f32(4, 1, 6), f32(3, 1, 5, 1)}},
		{program.OpMul, attrs{}, []spec{f32(), f32(3, 5)}},
		{program.OpMul, attrs{}, []spec{f32(), f32()}},
		{program.OpAddN, attrs{}, []spec{f32(9, 9)}},
		{program.OpAddN, attrs{}, []spec{f32(9, 9), f32(9, 9)}},
		{program.OpAddN, attrs{}, []spec{f32(9, 9), f32(9, 9), f32(9, 9)}},
		{program.OpBroadcastTo, attrs{Shape: shape{4, 3, 5}}, []spec{f32(3, 1)}},
		{program.OpBroadcastTo, attrs{Shape: shape{400}}, []spec{f32()}},
		{program.OpSum, attrs{}, []spec{f32(31, 30)}},
		{program.OpSum, attrs{Axes: []int64{0}}, []spec{f32(31, 30)}},
		{program.OpSum, attrs{Axes: []int64{1, 2}}, []spec{f32(3, 4, 5, 6)}},
		{program.OpMean, attrs{}, []spec{f32(700)}},
		{program.OpMean, attrs{Axes: []int64{1}}, []spec{f32(7, 300)}},
		{program.OpArgMax, attrs{}, []spec{f32(40, 10)}},
		{program.OpEqual, attrs{}, []spec{f32(40), f32(40)}},
		{program.OpEqual, attrs{}, []spec{i64(40), i64(40)}},
		{program.OpReshape, attrs{Shape: shape{20}}, []spec{f32(4, 5)}},
		{program.OpCast, attrs{DType: program.Int32}, []spec{f32(40)}},
		{program.OpCast, attrs{DType: program.Int64}, []spec{f32(40)}},
		{program.OpCast, attrs{DType: program.Float32}, []spec{i64(40)}},
		{program.OpCast, attrs{DType: program.Float32}, []spec{{DType: program.Int32, Shape: shape{40}}}},
		{program.OpCast, attrs{DType: program.Float32}, []spec{{DType: program.Bool, Shape: shape{40}}}},
	} {
		both(t, c.op, c.a, 1, func(i int, b []byte, v *program.Value) {
			switch v.DType {
			case program.Int64:
				for j, x := 0, kernel.Ints(b); j < len(x); j++ {
					x[j] = int64(j%3)*int64(i+1) - 2
				}
			case program.Bool:
				for j := range b {
					b[j] = byte(j % 2)
				}
			case program.Float32:
				if c.op == program.OpTanh { // large and tiny ones too
					for j, x := 0, kernel.Floats(b); j < len(x); j++ {
						x[j] *= float32(math.Pow(10, float64(j%9)-6))
					}
				}
			default:
				for j := range b {
					b[j] = byte(j * 37)
				}
			}
		}, c.in...)
	}
}

func TestProductsComputeWhatTheCPUsDo(t *testing.T) {
	for _, n := range [][3]int64{{1, 1, 1}, {3, 5, 4}, {16, 16, 16}, {17, 33, 40}, {40, 9, 65}} {
		for i := range 4 {
			a := attrs{TransposeA: i&1 != 0, TransposeB: i&2 != 0}
			x, y := f32(n[0], n[2]), f32(n[2], n[1])
			if a.TransposeA {
				x = f32(n[2], n[0])
			}
			if a.TransposeB {
				y = f32(n[1], n[2])
			}
			both(t, program.OpMatMul, a, 0, nil, x, y)
		}
	}
}

// With room for all samples, for two, for one and for none.
func TestConvolutionsComputeWhatTheCPUsDo(t *testing.T) {
	for _, cv := range []struct {
		image, filter shape
		at            attrs
	}{
		{shape{4, 8, 7, 2}, shape{3, 3, 2, 5}, attrs{Strides: [2]int64{1, 1}}},
		{shape{4, 8, 7, 2}, shape{5, 5, 2, 4}, attrs{Strides: [2]int64{2, 3}, Padding: program.Same}},
		{shape{4, 5, 5, 6}, shape{1, 1, 6, 3}, attrs{Strides: [2]int64{1, 1}}},
		{shape{4, 5, 5, 6}, shape{1, 1, 6, 3}, attrs{Strides: [2]int64{2, 2}}},
		{shape{2, 4, 4, 3}, shape{4, 4, 3, 8}, attrs{Strides: [2]int64{1, 1}}},
	} {
		b := program.NewBuilder("t", 1)
		x, w := b.Input("x", program.Float32, cv.image), b.Input("w", program.Float32, cv.filter)
		out := b.Shape(b.Op(program.OpConv2D, cv.at, x, w))
		for _, work := range []float64{1, 0.5, 0.26, 0} {
			both(t, program.OpConv2D, cv.at, work, nil, f32(cv.image...), f32(cv.filter...))
			at := cv.at
			at.Shape = cv.image
			both(t, program.OpConv2DBackpropInput, at, work, nil, f32(cv.filter...), f32(out...))
			at.Shape = cv.filter
			both(t, program.OpConv2DBackpropFilter, at, work, nil, f32(cv.image...), f32(out...))
		}
	}
}

func TestPoolsComputeWhatTheCPUsDo(t *testing.T) {
	for _, a := range []attrs{
		{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}},
		{Window: [2]int64{3, 2}, Strides: [2]int64{2, 1}},
		{Window: [2]int64{3, 3}, Strides: [2]int64{2, 2}, Padding: program.Same},
	} {
		image := shape{2, 7, 6, 3}
		// A few values only, so that maxima are equal.
		coarse := func(_ int, b []byte, _ *program.Value) {
			for i, x := 0, kernel.Floats(b); i < len(x); i++ {
				x[i] = float32(math.Round(float64(x[i]) * 2))
			}
		}
		for _, op := range []program.Op{program.OpAvgPool, program.OpMaxPool} {
			both(t, op, a, 0, coarse, f32(image...))
		}
		b := program.NewBuilder("t", 1)
		out := b.Shape(b.Op(program.OpAvgPool, a, b.Input("x", program.Float32, image)))
		g := a
		g.Shape = image
		both(t, program.OpAvgPoolGrad, g, 0, nil, f32(out...))
		both(t, program.OpMaxPoolGrad, a, 0, coarse, f32(image...), f32(out...), f32(out...))
	}
}

func TestCrossEntropyComputesWhatTheCPUsDoes(t *testing.T) {
	for _, d := range []program.DType{program.Int32, program.Int64} {
		both(t, program.OpSparseXent, attrs{}, 1, func(i int, b []byte, v *program.Value) {
			if i == 0 {
				for j, x := 0, kernel.Floats(b); j < len(x); j++ {
					x[j] *= 20
				}
				return
			}
			for j := range v.Shape[0] {
				b[j*v.DType.Size()] = byte(j % 10)
			}
		}, f32(37, 10), spec{DType: d, Shape: shape{37}})
	}
}

// A kernel has nobody to tell that a label is no class, so the row is no number.
func TestLabelOutsideOfTheClassesGivesNoNumber(t *testing.T) {
	c := newCard(t, 1<<16)
	b := program.NewBuilder("t", 1)
	x, y := b.Input("x", program.Float32, shape{2, 3}), b.Input("y", program.Int64, shape{2})
	b.Op(program.OpSparseXent, attrs{}, x, y)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	k := exec.Kernel{Program: p, Node: &p.Nodes[0], In: []exec.Ref{
		c.hold(t, nil, 24), c.hold(t, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 16),
	}, Out: []exec.Ref{c.hold(t, nil, 8), c.hold(t, nil, 24)}}
	c.run(t, new(Lowering), &k)
	loss := kernel.Floats(c.bytes(k.Out[0]))
	if loss[0] == loss[0] || math.Abs(float64(loss[1])-math.Log(3)) > 1e-6 {
		t.Errorf("losses %v, want NaN and log 3", loss)
	}
}

// Updates write into their variables.
func TestUpdatesComputeWhatTheCPUsDo(t *testing.T) {
	for _, optimizer := range []string{"sgd", "adam"} {
		b := program.NewBuilder("t", 1)
		w := b.Variable("w", shape{30, 20}, program.Init{Kind: program.InitUniform, Scale: 1})
		g := b.Input("g", program.Float32, shape{30, 20})
		if optimizer == "sgd" {
			b.SGD(0.1, []program.ValueID{w}, []program.ValueID{g})
		} else {
			b.Adam(0.1, []program.ValueID{w}, []program.ValueID{g})
		}
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		scalars := []float32{0, 0, 0, 0.729, 0.997, 0.01, 0.9, 0.999, 1e-7}
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if n.Op != program.OpApplySGD && n.Op != program.OpApplyAdam && n.Op != program.OpAssign {
				continue
			}
			compare(t, p, n, 0, func(i int, b []byte, v *program.Value) {
				x := kernel.Floats(b)
				switch {
				case len(v.Shape) == 0 && i < len(scalars):
					x[0] = scalars[i]
					if n.Op == program.OpApplySGD {
						x[0] = 0.1
					}
				case i == 2 && n.Op == program.OpApplyAdam: // v is a mean of squares
					for j := range x {
						x[j] *= x[j]
					}
				}
			})
		}
	}
}

// What MLP and LeNet need is all there, and every model of the zoo that has an
// op without a kernel is named.
func TestModelsHaveAllTheirKernels(t *testing.T) {
	for _, model := range []string{"mlp", "lenet5"} {
		for _, optimizer := range []string{"sgd", "adam"} {
			p, err := zoo.Program(model, zoo.Options{Batch: 2, Train: true, Optimizer: optimizer})
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Nodes {
				if !Supported(p.Nodes[i].Op) {
					t.Errorf("%s: no kernel for %s", model, p.Nodes[i].Op)
				}
			}
		}
	}
}
