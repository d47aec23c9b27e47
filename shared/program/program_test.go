package program

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// lenet is LeNet-5, trained by Adam or not at all: a program for the tests of
// this package, which cannot ask the zoo for one.
func lenet(tb testing.TB, batch int, train bool) *Program {
	tb.Helper()
	b := NewBuilder("lenet5", batch)
	x := b.Input("images", Float32, Shape{int64(batch), 32, 32, 1})
	y := b.Input("labels", Int64, Shape{int64(batch)})
	pool := Attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}}
	layer := func(name string, op Op, a Attrs, s Shape) {
		defer b.Scope(name)()
		w := b.Variable("kernel", s, Init{Kind: InitUniform, Scale: math.Sqrt(6.0 / 175)})
		bias := b.Variable("bias", s[len(s)-1:], Init{})
		x = b.Op(OpTanh, Attrs{}, b.Op(OpBiasAdd, Attrs{}, b.Op(op, a, x, w), bias))
	}
	stride := Attrs{Strides: [2]int64{1, 1}}
	layer("conv1", OpConv2D, stride, Shape{5, 5, 1, 6})
	x = b.Op(OpAvgPool, pool, x)
	layer("conv2", OpConv2D, stride, Shape{5, 5, 6, 16})
	x = b.Op(OpReshape, Attrs{Shape: Shape{int64(batch), 400}}, b.Op(OpAvgPool, pool, x))
	layer("dense1", OpMatMul, Attrs{}, Shape{400, 120})
	layer("dense2", OpMatMul, Attrs{}, Shape{120, 84})
	layer("logits", OpMatMul, Attrs{}, Shape{84, 10})
	loss := b.Op(OpMean, Attrs{}, b.Op(OpSparseXent, Attrs{}, x, y))
	b.Fetch("loss", loss)
	if train {
		weights := b.Weights()
		b.Adam(0.002, weights, b.Gradients(loss, weights))
	}
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestFillDependsOnSeedAndVariableOnly(t *testing.T) {
	p := lenet(t, 1, false)
	a, b := make([]float32, 150), make([]float32, 150)
	p.Fill(a, 0, 1)
	p.Fill(b, 0, 1)
	if !reflect.DeepEqual(a, b) {
		t.Fatal("same seed, other numbers")
	}
	p.Fill(b, 0, 2)
	if reflect.DeepEqual(a, b) {
		t.Error("another seed, same numbers")
	}
	scale, sum := float32(p.Variables[0].Init.Scale), 0.0
	for _, x := range a {
		if x < -scale || x >= scale {
			t.Errorf("%v is outside of ±%v", x, scale)
		}
		sum += float64(x)
	}
	if sum == 0 || sum/150 > float64(scale)/4 || sum/150 < -float64(scale)/4 {
		t.Errorf("mean %v of a distribution around 0", sum/150)
	}
	if a[0] != 0.09380736 { // the same on every host
		t.Errorf("first number is %v", a[0])
	}
}

func TestValidateFindsWhatIsBroken(t *testing.T) {
	for name, breakIt := range map[string]func(p *Program){
		"input out of range":   func(p *Program) { p.Nodes[4].Inputs = []ValueID{9999} },
		"negative input":       func(p *Program) { p.Nodes[4].Inputs = []ValueID{None} },
		"used before made":     func(p *Program) { p.Nodes[3].Inputs = []ValueID{ValueID(len(p.Values) - 1)} },
		"order":                func(p *Program) { p.Nodes[2], p.Nodes[3] = p.Nodes[3], p.Nodes[2] },
		"unknown op":           func(p *Program) { p.Nodes[2].Op = "Conv3D" },
		"shape":                func(p *Program) { p.Values[p.Nodes[2].Outputs[0]].Shape = Shape{1} },
		"type":                 func(p *Program) { p.Values[p.Nodes[2].Outputs[0]].DType = Int32 },
		"variable":             func(p *Program) { p.Nodes[0].Attrs.Variable = 77 },
		"control from later":   func(p *Program) { p.Nodes[1].Control = []NodeID{5} },
		"same name":            func(p *Program) { p.Nodes[1].Name = p.Nodes[0].Name },
		"fetch of nothing":     func(p *Program) { p.Fetches[0].Value = -7 },
		"value nobody makes":   func(p *Program) { p.Values = append(p.Values, Value{}) },
		"input with producer":  func(p *Program) { p.Inputs[0] = p.Nodes[0].Outputs[0] },
		"output made twice":    func(p *Program) { p.Nodes[1].Outputs = p.Nodes[0].Outputs },
		"missing output":       func(p *Program) { p.Nodes[0].Outputs = nil },
		"backward of no node":  func(p *Program) { p.Nodes[1].Of = 1000 },
		"input of no type":     func(p *Program) { p.Values[p.Inputs[0]].DType = numDTypes },
		"input of no size":     func(p *Program) { p.Values[p.Inputs[0]].Shape = Shape{1 << 40, 1 << 40} },
		"input that holds":     func(p *Program) { p.Values[p.Inputs[0]].Variable = 0 },
		"role":                 func(p *Program) { p.Values[0].Role = 99 },
		"variable of no type":  func(p *Program) { p.Variables[0].DType = 99 },
		"variable of no size":  func(p *Program) { p.Variables[0].Shape = Shape{-1} },
		"variable's first":     func(p *Program) { p.Variables[0].Init.Kind = 99 },
		"holds a variable":     func(p *Program) { p.Values[p.Nodes[2].Outputs[0]].Variable = 0 },
		"holds no variable":    func(p *Program) { p.Values[p.Nodes[0].Outputs[0]].Variable = None },
		"phase":                func(p *Program) { p.Nodes[1].Phase = 3 },
		"guard":                func(p *Program) { p.Nodes[1].Attrs.Guarded = true },
		"padding":              func(p *Program) { p.Nodes[1].Attrs.Padding = 2 },
		"wrong number of args": func(p *Program) { p.Nodes[2].Inputs = p.Nodes[2].Inputs[:1] },
	} {
		p := lenet(t, 2, false)
		breakIt(p)
		if err := p.Validate(); err == nil {
			t.Errorf("%s: not found", name)
		} else if msg := err.Error(); msg == "" {
			t.Errorf("%s: empty message", name)
		}
	}
}

func TestInferErrorsNameNodeOpAndShapes(t *testing.T) {
	for name, c := range map[string]struct {
		op Op
		a  Attrs
		in []Spec
	}{
		"matmul inner":      {OpMatMul, Attrs{}, []Spec{{Float32, Shape{2, 3}}, {Float32, Shape{4, 5}}}},
		"matmul rank":       {OpMatMul, Attrs{}, []Spec{{Float32, Shape{2}}, {Float32, Shape{4, 5}}}},
		"matmul types":      {OpMatMul, Attrs{}, []Spec{{Float32, Shape{2, 4}}, {Float64, Shape{4, 5}}}},
		"bias length":       {OpBiasAdd, Attrs{}, []Spec{{Float32, Shape{2, 3}}, {Float32, Shape{2}}}},
		"conv channels":     {OpConv2D, Attrs{Strides: [2]int64{1, 1}}, []Spec{{Float32, Shape{1, 8, 8, 3}}, {Float32, Shape{3, 3, 4, 8}}}},
		"conv stride":       {OpConv2D, Attrs{}, []Spec{{Float32, Shape{1, 8, 8, 3}}, {Float32, Shape{3, 3, 3, 8}}}},
		"conv too small":    {OpConv2D, Attrs{Strides: [2]int64{1, 1}}, []Spec{{Float32, Shape{1, 2, 2, 3}}, {Float32, Shape{3, 3, 3, 8}}}},
		"pool rank":         {OpAvgPool, Attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}}, []Spec{{Float32, Shape{8, 8}}}},
		"pool grad":         {OpAvgPoolGrad, Attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}, Shape: Shape{1, 8, 8, 3}}, []Spec{{Float32, Shape{1, 3, 4, 3}}}},
		"reshape":           {OpReshape, Attrs{Shape: Shape{5}}, []Spec{{Float32, Shape{2, 3}}}},
		"broadcast":         {OpAdd, Attrs{}, []Spec{{Float32, Shape{2, 3}}, {Float32, Shape{2}}}},
		"broadcast to less": {OpBroadcastTo, Attrs{Shape: Shape{1}}, []Spec{{Float32, Shape{2}}}},
		"axis":              {OpSum, Attrs{Axes: []int64{2}}, []Spec{{Float32, Shape{2, 3}}}},
		"xent labels":       {OpSparseXent, Attrs{}, []Spec{{Float32, Shape{2, 3}}, {Float32, Shape{2}}}},
		"xent length":       {OpSparseXent, Attrs{}, []Spec{{Float32, Shape{2, 3}}, {Int64, Shape{3}}}},
		"equal types":       {OpEqual, Attrs{}, []Spec{{Int64, Shape{2}}, {Int32, Shape{2}}}},
		"tanh of ints":      {OpTanh, Attrs{}, []Spec{{Int32, Shape{2}}}},
		"sgd, no variable":  {OpApplySGD, Attrs{}, []Spec{{Float32, Shape{2}}, {Float32, nil}, {Float32, Shape{2}}}},
	} {
		b := NewBuilder("t", 1)
		var in []ValueID
		var first string
		for i, s := range c.in {
			in = append(in, b.Input(fmt.Sprint("in", i), s.DType, s.Shape))
			if i == 0 {
				first = s.Shape.String()
			}
		}
		b.Op(c.op, c.a, in...)
		_, err := b.Build()
		if !errors.Is(err, ErrShape) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if !strings.Contains(err.Error(), string(c.op)) || !strings.Contains(err.Error(), first) {
			t.Errorf("%s: %q names not op and shapes", name, err)
		}
	}
}

func TestWindowExtents(t *testing.T) {
	for _, c := range []struct {
		size, k, stride int64
		pad             Padding
		out, before     int64
	}{
		{28, 5, 1, Valid, 24, 0},
		{28, 5, 1, Same, 28, 2},
		{224, 7, 2, Same, 112, 2},
		{5, 2, 2, Valid, 2, 0},
		{5, 2, 2, Same, 3, 0},
		{4, 5, 1, Valid, 0, 0},
		{7, 1, 3, Same, 3, 0},
	} {
		if out, before := extent(c.size, c.k, c.stride, c.pad); out != c.out || before != c.before {
			t.Errorf("extent(%d,%d,%d,%d) = %d, %d; want %d, %d", c.size, c.k, c.stride, c.pad, out, before, c.out, c.before)
		}
	}
}

func TestConvolutionWorkspaceIsCapped(t *testing.T) {
	for _, c := range []struct{ batch, want int64 }{
		{1, 28 * 28 * 25 * 4},
		{32, 32 * 28 * 28 * 25 * 4},
		{100000, 427 * 28 * 28 * 25 * 4}, // 32 MiB hold 427 samples of 78400 bytes
	} {
		p := lenet(t, int(c.batch), false)
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Name == "conv1/Conv2D" {
				d, _ := Lookup(n.Op)
				if got := d.Workspace(p, n); got != c.want {
					t.Errorf("batch %d: workspace %d, want %d", c.batch, got, c.want)
				}
			}
		}
	}
}

func TestEveryOpOfTheTableHasInferenceAndCost(t *testing.T) {
	for op, d := range defs {
		if d.Infer == nil || d.Cost == nil {
			t.Errorf("%s: incomplete definition", op)
		}
	}
	if _, err := Lookup("Nope"); err == nil {
		t.Error("unknown op found")
	}
}

func TestBuilderRefusesTensorsThatCannotBe(t *testing.T) {
	for name, add := range map[string]func(b *Builder) ValueID{
		"input's type":     func(b *Builder) ValueID { return b.Input("x", numDTypes, nil) },
		"input's shape":    func(b *Builder) ValueID { return b.Input("x", Float32, Shape{-3}) },
		"variable's type":  func(b *Builder) ValueID { return b.State("v", 77, nil, Init{}) },
		"variable's shape": func(b *Builder) ValueID { return b.Variable("v", Shape{1 << 30, 1 << 30}, Init{}) },
	} {
		b := NewBuilder("t", 1)
		v := add(b)
		b.Op(OpTanh, Attrs{}, v) // of no account any more
		if _, err := b.Build(); !errors.Is(err, ErrInvalid) || b.Err() == nil || v != None {
			t.Errorf("%s: error %v, value %d", name, err, v)
		}
	}
}

func TestMethodsAfterAnErrorDoNothing(t *testing.T) {
	b := NewBuilder("t", 1)
	b.Fail(errors.New("first"))
	b.Fail(errors.New("second"))
	out := b.Node(OpSplit, Attrs{}, 7)
	v := b.Weight("v", x23, Init{})
	b.After(v)
	b.Fetch("v", v)
	b.Minimize(Optimizer{Name: "adam"}, v, []ValueID{v})
	b.Optimize(Optimizer{Name: "adam"}, []ValueID{v}, []Gradient{{v, None}})
	b.Minimize(Optimizer{Name: "adam", LossScale: true}, v, b.Weights())
	if len(out) != MaxOutputs || out[MaxOutputs-1] != None || v != None || b.Shape(v) != nil {
		t.Errorf("outputs %v, value %d", out, v)
	}
	if _, err := b.Build(); err == nil || err.Error() != "first" || len(b.p.Nodes)+len(b.p.Variables) > 0 {
		t.Errorf("error %v, %d nodes", err, len(b.p.Nodes))
	}
}

func TestFill64IsFillInFloat64(t *testing.T) {
	p := lenet(t, 1, false)
	a, b := make([]float32, 150), make([]float64, 150)
	p.Fill(a, 0, 3)
	p.Fill64(b, 0, 3)
	for i := range a {
		if float64(a[i]) != b[i] {
			t.Fatalf("element %d is %v and %v", i, a[i], b[i])
		}
	}
}
