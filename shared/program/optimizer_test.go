package program

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// trained is a model of two dense weights and a table, trained by o; loss in
// float32, arithmetic in type compute.
func trained(tb testing.TB, o Optimizer, compute DType) (*Program, *Builder) {
	tb.Helper()
	b := NewBuilder("t", 1)
	if compute == Float64 {
		b.Float(Float64)
	}
	b.Compute(compute)
	table := b.Variable("table", Shape{1000, 16}, Init{})
	x := b.Op(OpGather, Attrs{}, table, b.Input("ids", Int64, Shape{4}))
	if compute != b.FloatType() {
		x = b.Op(OpCast, Attrs{DType: compute}, x)
	}
	x = b.Op(OpTanh, Attrs{}, b.Op(OpMatMul, Attrs{}, x, b.Weight("dense1/kernel", Shape{16, 32}, Init{})))
	x = b.Op(OpMatMul, Attrs{}, x, b.Weight("dense2/kernel", Shape{32, 8}, Init{}))
	b.State("frozen", Float32, Shape{77}, Init{})
	b.Minimize(o, b.cast(b.Op(OpMean, Attrs{}, x), b.FloatType()), b.Weights())
	p, err := b.Build()
	if err != nil {
		tb.Fatalf("%+v: %v", o, err)
	}
	return p, b
}

const parameters = 1000*16 + 16*32 + 32*8

// The bytes of state for each byte of weights: section 4 of the specification
// of workloads.
func TestOptimizerStateIsAMultipleOfTheWeights(t *testing.T) {
	for _, c := range []struct {
		o     Optimizer
		times int64
		rest  int64 // scalars
	}{
		{Optimizer{Name: "sgd"}, 0, 0},
		{Optimizer{Name: "momentum"}, 1, 0},
		{Optimizer{Name: "momentum", Nesterov: true}, 1, 0},
		{Optimizer{Name: "adagrad"}, 1, 0},
		{Optimizer{Name: "rmsprop"}, 1, 0},
		{Optimizer{Name: "rmsprop", Centered: true}, 2, 0},
		{Optimizer{Name: "rmsprop", Momentum: 0.9}, 2, 0},
		{Optimizer{Name: "rmsprop", Momentum: 0.9, Centered: true}, 3, 0},
		{Optimizer{Name: "adam"}, 2, 2},
		{Optimizer{Name: "adamw"}, 2, 2},
		{Optimizer{Name: "amsgrad"}, 3, 2},
	} {
		for _, d := range []DType{Float32, Float64, Float16, BFloat16} {
			c.o.LossScale = d == Float16
			p, b := trained(t, c.o, d)
			var state int64
			for i := range p.Variables {
				if p.Variables[i].Slot {
					state += p.Variables[i].Bytes()
				}
			}
			if want := (c.times*parameters + c.rest) * b.FloatType().Size(); state != want {
				t.Errorf("%+v in %s: %d bytes of state, want %d", c.o, d, state, want)
			}
			if p.TrainedParameters() != parameters || p.Parameters() != parameters+77 {
				t.Errorf("%+v: %d parameters, %d trained", c.o, p.Parameters(), p.TrainedParameters())
			}
		}
	}
}

// A table's gradient stays rows where there is a sparse twin, and only there.
func TestSparseUpdatesWhereThereIsATwin(t *testing.T) {
	for name, want := range map[string]Op{
		"sgd": OpSparseApplySGD, "momentum": OpSparseApplyMomentum, "adagrad": OpSparseApplyAdagrad, "adam": OpSparseApplyAdam,
		"rmsprop": OpAssignSub, "adamw": OpApplyAdam, "amsgrad": OpApplyAMSGrad,
	} {
		_, b := trained(t, Optimizer{Name: name}, Float32)
		n := ops(b, Update)
		sparse := strings.HasPrefix(string(want), "Sparse")
		if (sparse && n[want] != 1) || (!sparse && n[want] != 3) {
			t.Errorf("%s: updates %v", name, n)
		}
		if dense := n[OpUnsortedSegmentSum] + ops(b, Backward)[OpUnsortedSegmentSum]; (dense == 0) != sparse {
			t.Errorf("%s: %d sparse gradients made dense", name, dense)
		}
	}
}

func TestSlotsAreMadeOncePerVariable(t *testing.T) {
	for _, name := range Optimizers() {
		b := NewBuilder("t", 1)
		v := b.Variable("v", x23, Init{})
		g := Gradient{b.Input("g", Float32, x23), None}
		b.Optimize(Optimizer{Name: name}, []ValueID{v}, []Gradient{g})
		slots := len(b.p.Variables)
		b.Optimize(Optimizer{Name: name}, []ValueID{v}, []Gradient{g})
		if _, err := b.Build(); err != nil || len(b.p.Variables) != slots {
			t.Errorf("%s: %d variables after one update, %d after two; %v", name, slots, len(b.p.Variables), err)
		}
		for i := range b.p.Variables[1:] {
			if s := &b.p.Variables[1+i]; !s.Slot || s.Trained() {
				t.Errorf("%s: %s is no slot", name, s.Name)
			}
		}
	}
}

// The control edges of a program let nobody read what changes after the change
// began, unless a reader asks to run after it.
func TestEveryUpdateWaitsForThoseWhoReadBefore(t *testing.T) {
	for _, name := range Optimizers() {
		for _, o := range []Optimizer{
			{Name: name},
			{Name: name, LossScale: true, ClipNorm: 1},
			{Name: name, Momentum: 0.5, Centered: true, Nesterov: true},
		} {
			p, _ := trained(t, o, Float32)
			before := ancestors(p)
			for i := range p.Nodes {
				n := &p.Nodes[i]
				if !defs[n.Op].Stateful {
					continue
				}
				for _, w := range n.Inputs[:1+defs[n.Op].Slots] {
					for j := range i {
						if slices.Contains(p.Nodes[j].Inputs, w) && !before[i][j] {
							t.Errorf("%+v: %s may run before %s has read the variable", o, n.Name, p.Nodes[j].Name)
						}
					}
				}
			}
		}
	}
}

// ancestors says for each node which others run before it.
func ancestors(p *Program) [][]bool {
	out := make([][]bool, len(p.Nodes))
	for i := range p.Nodes {
		out[i] = make([]bool, len(p.Nodes))
		add := func(j NodeID) {
			out[i][j] = true
			for k := range j {
				out[i][k] = out[i][k] || out[j][k]
			}
		}
		for _, v := range p.Nodes[i].Inputs {
			if n := p.Values[v].Producer; n != None {
				add(n)
			}
		}
		for _, n := range p.Nodes[i].Control {
			add(n)
		}
	}
	return out
}

func TestLossScaleGuardsEveryUpdate(t *testing.T) {
	for _, name := range Optimizers() {
		p, b := trained(t, Optimizer{Name: name, LossScale: true}, Float16)
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if !defs[n.Op].Stateful || n.Op == OpUpdateLossScale {
				continue
			}
			guarded := n.Attrs.Guarded
			if !guarded { // by what it is given
				guarded = p.Nodes[p.Values[n.Inputs[1]].Producer].Op == OpSelect
			}
			if !guarded {
				t.Errorf("%s: %s changes its variable whatever the gradients are", name, n.Name)
			}
		}
		if n := ops(b, Update); n[OpUpdateLossScale] != 1 {
			t.Errorf("%s: %v", name, n)
		}
		if n := ops(b, Backward); n[OpIsFinite] != 3 || n[OpAll] != 3 || n[OpLogicalAnd] != 2 {
			t.Errorf("%s: %v", name, n)
		}
		var scale, steps *Variable
		for i := range p.Variables {
			switch v := &p.Variables[i]; v.Name {
			case "loss_scale/current":
				scale = v
			case "loss_scale/good_steps":
				steps = v
			}
		}
		if scale == nil || scale.Init.Scale != 1<<15 || scale.DType != Float32 || scale.Slot || scale.Trained() || steps == nil || steps.DType != Int64 {
			t.Errorf("%s: scale %+v, steps %+v", name, scale, steps)
		}
	}
}

// Gradients that reach an optimizer of a mixed-precision program are float32
// and divided by the scale there.
func TestUnscaledGradientsAreFloat32(t *testing.T) {
	p, _ := trained(t, Optimizer{Name: "adam", LossScale: true}, Float16)
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == OpApplyAdam {
			g := p.Values[n.Inputs[9]]
			if g.DType != Float32 || !strings.HasPrefix(g.Name, "loss_scale/Mul") || g.Role != RoleGradient {
				t.Errorf("%s updates by %s %s of role %d", n.Name, g.DType, g.Name, g.Role)
			}
		}
	}
}

// Clipping needs all gradients before the first update.
func TestClippingScalesAllGradientsByOneNumber(t *testing.T) {
	p, b := trained(t, Optimizer{Name: "sgd", ClipNorm: 0.5}, Float32)
	if n := ops(b, Backward); n[OpL2Loss] != 3 || n[OpSqrt] != 1 || n[OpMaximum] != 1 {
		t.Errorf("backward ops %v", n)
	}
	before := ancestors(p)
	var norms []int
	for i := range p.Nodes {
		if p.Nodes[i].Op == OpL2Loss {
			norms = append(norms, i)
		}
	}
	for i := range p.Nodes {
		if op := p.Nodes[i].Op; op != OpApplySGD && op != OpSparseApplySGD {
			continue
		}
		for _, j := range norms {
			if !before[i][j] {
				t.Errorf("%s may run before %s", p.Nodes[i].Name, p.Nodes[j].Name)
			}
		}
	}
}

func TestOptimizerErrorsSayWhatThereIs(t *testing.T) {
	for want, o := range map[string]Optimizer{
		`optimizer "lion" is unknown: choose one of sgd, momentum, adagrad, rmsprop, adam, adamw, amsgrad`: {Name: "lion"},
		"learning rate -1: must be above 0":  {Name: "sgd", Rate: -1},
		"learning rate NaN: must be above 0": {Name: "adam", Rate: math.NaN()},
	} {
		b := NewBuilder("t", 1)
		v := b.Variable("v", x23, Init{})
		b.Minimize(o, b.Op(OpL2Loss, Attrs{}, v), []ValueID{v})
		if _, err := b.Build(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestWeightDecayIsOfAdamWAlone(t *testing.T) {
	for name, want := range map[string]float64{"adam": 0, "adamw": 0.004} {
		p, _ := trained(t, Optimizer{Name: name}, Float32)
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == OpApplyAdam && n.Attrs.Value != want {
				t.Errorf("%s: decay %v", name, n.Attrs.Value)
			}
		}
	}
}
