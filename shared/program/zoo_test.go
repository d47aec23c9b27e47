package program

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func build(tb testing.TB, name string, opt Options) *Program {
	tb.Helper()
	p, err := Build(name, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestParameterCountsAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		model  string
		total  int64
		layers []int64 // kernel + bias
	}{
		{"mlp", 669706, []int64{401920, 262656, 5130}},
		{"lenet5", 61706, []int64{156, 2416, 48120, 10164, 850}},
	} {
		for _, opt := range []Options{{Batch: 1}, {Batch: 32, Train: true, Optimizer: "sgd"}, {Batch: 7, Train: true, Optimizer: "adam"}} {
			p := build(t, c.model, opt)
			if got := p.Parameters(); got != c.total {
				t.Errorf("%s %+v: %d parameters, want %d", c.model, opt, got, c.total)
			}
			for i, want := range c.layers {
				got := p.Variables[2*i].Shape.Elements() + p.Variables[2*i+1].Shape.Elements()
				if got != want {
					t.Errorf("%s layer %d: %d parameters, want %d", c.model, i, got, want)
				}
			}
		}
	}
}

func TestLeNetShapes(t *testing.T) {
	p := build(t, "lenet5", Options{Batch: 3})
	want := map[string]string{
		"conv1/Conv2D": "[3,28,28,6]", "pool1/AvgPool": "[3,14,14,6]", "conv2/Conv2D": "[3,10,10,16]",
		"pool2/AvgPool": "[3,5,5,16]", "flatten/Reshape": "[3,400]", "dense1/Tanh": "[3,120]",
		"dense2/Tanh": "[3,84]", "logits/BiasAdd": "[3,10]", "loss/Mean": "[]", "accuracy/Mean": "[]",
	}
	for _, v := range p.Values {
		if s, ok := want[v.Name]; ok {
			if s != v.Shape.String() {
				t.Errorf("%s: %s, want %s", v.Name, v.Shape, s)
			}
			delete(want, v.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no values named %v", want)
	}
}

// The work of a forward pass by hand: two per multiply-add of each layer.
func TestForwardWorkOfTheProducts(t *testing.T) {
	for _, c := range []struct {
		model string
		want  int64
	}{
		{"mlp", 2 * (784*512 + 512*512 + 512*10)},
		{"lenet5", 2 * (28*28*25*6 + 10*10*150*16 + 400*120 + 120*84 + 84*10)},
	} {
		p := build(t, c.model, Options{Batch: 5})
		var got int64
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == OpMatMul || n.Op == OpConv2D {
				got += p.Cost(n).FLOPs
			}
		}
		if got != 5*c.want {
			t.Errorf("%s: %d operations, want %d", c.model, got, 5*c.want)
		}
		if total := p.TotalCost(Forward).FLOPs; total <= got {
			t.Errorf("%s: total %d is not above the products' %d", c.model, total, got)
		}
	}
}

func TestTrainingStepHoldsWhatItShould(t *testing.T) {
	p := build(t, "lenet5", Options{Batch: 4, Train: true, Optimizer: "adam"})
	var slots, slotBytes, applies, grads int64
	for _, v := range p.Variables {
		if v.Slot {
			slots++
			slotBytes += v.Bytes()
		}
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == OpApplyAdam {
			applies++
		}
	}
	for i := range p.Values {
		if v := &p.Values[i]; v.Role == RoleGradient {
			grads += v.Shape.Elements()
		}
	}
	if slots != 2*10+2 || slotBytes != 2*4*61706+8 || applies != 10 || grads != 61706 {
		t.Errorf("%d slots of %d bytes, %d updates, %d gradient elements", slots, slotBytes, applies, grads)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Name == "gradients/conv1/Conv2DBackpropInput" {
			t.Error("a gradient of the images is computed, though nobody asked")
		}
		if (n.Phase == Backward && n.Of == None && n.Op != OpConst) || (n.Phase != Backward && n.Of != None) {
			t.Errorf("%s: phase %d, backward of %d", n.Name, n.Phase, n.Of)
		}
	}
}

func TestUpdatesWaitForAllReadersOfTheVariable(t *testing.T) {
	for _, optimizer := range []string{"sgd", "adam"} {
		p := build(t, "lenet5", Options{Batch: 2, Train: true, Optimizer: optimizer})
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if n.Op != OpApplySGD && n.Op != OpApplyAdam {
				continue
			}
			for j := range p.Nodes {
				for _, v := range p.Nodes[j].Inputs {
					if v == n.Inputs[0] && j != i && !slices.Contains(n.Control, NodeID(j)) {
						t.Errorf("%s may run before %s has read the variable", n.Name, p.Nodes[j].Name)
					}
				}
			}
		}
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	opt := Options{Batch: 9, Train: true, Optimizer: "adam"}
	a, b := build(t, "lenet5", opt), build(t, "lenet5", opt)
	if !reflect.DeepEqual(a, b) {
		t.Error("two builds differ")
	}
	if fmt.Sprintf("%+v", *a) != fmt.Sprintf("%+v", *b) {
		t.Error("two builds print differently")
	}
}

func TestBuildErrorsNameWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		model string
		opt   Options
		want  string
	}{
		{"lenet", Options{Batch: 1}, `"lenet" is not in the zoo: choose one of mlp, lenet5`},
		{"mlp", Options{}, "batch 0"},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "lion"}, `optimizer "lion" is unknown`},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "sgd", LearningRate: -1}, "learning rate -1"},
	} {
		if _, err := Build(c.model, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: error %v, want %q in it", c.model, c.opt, err, c.want)
		}
	}
}

func TestFillDependsOnSeedAndVariableOnly(t *testing.T) {
	p := build(t, "lenet5", Options{Batch: 1})
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
		"wrong number of args": func(p *Program) { p.Nodes[2].Inputs = p.Nodes[2].Inputs[:1] },
	} {
		p := build(t, "lenet5", Options{Batch: 2})
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
		p := build(t, "lenet5", Options{Batch: int(c.batch)})
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

func BenchmarkBuildLeNetAdam(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build("lenet5", Options{Batch: 32, Train: true, Optimizer: "adam"}); err != nil {
			b.Fatal(err)
		}
	}
}
