package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

type (
	shape = program.Shape
	attrs = program.Attrs
	value = program.ValueID
)

// gradientCase is an op, or a few, on variables of the given shapes.
type gradientCase struct {
	name string
	vars []shape
	make func(b *program.Builder, v []value) value
}

func op(o program.Op, a attrs) func(b *program.Builder, v []value) value {
	return func(b *program.Builder, v []value) value { return b.Op(o, a, v...) }
}

var strided = attrs{Strides: [2]int64{2, 1}, Padding: program.Same}

var gradientCases = []gradientCase{
	{"matmul", []shape{{3, 4}, {4, 5}}, op(program.OpMatMul, attrs{})},
	{"matmul, first transposed", []shape{{4, 3}, {4, 5}}, op(program.OpMatMul, attrs{TransposeA: true})},
	{"matmul, second transposed", []shape{{3, 4}, {5, 4}}, op(program.OpMatMul, attrs{TransposeB: true})},
	{"matmul, both transposed", []shape{{4, 3}, {5, 4}}, op(program.OpMatMul, attrs{TransposeA: true, TransposeB: true})},
	{"bias add", []shape{{2, 3, 2, 4}, {4}}, op(program.OpBiasAdd, attrs{})},
	{"conv valid", []shape{{2, 6, 5, 3}, {3, 2, 3, 4}}, op(program.OpConv2D, attrs{Strides: [2]int64{1, 1}})},
	{"conv same, strided", []shape{{2, 5, 4, 2}, {3, 3, 2, 3}}, op(program.OpConv2D, strided)},
	{"conv pointwise", []shape{{2, 3, 3, 4}, {1, 1, 4, 2}}, op(program.OpConv2D, attrs{Strides: [2]int64{1, 1}})},
	{"average pool", []shape{{2, 4, 6, 3}}, op(program.OpAvgPool, attrs{Window: [2]int64{2, 3}, Strides: [2]int64{2, 3}})},
	{"average pool, same, overlapping", []shape{{1, 5, 4, 2}}, op(program.OpAvgPool, attrs{Window: [2]int64{3, 3}, Strides: [2]int64{2, 1}, Padding: program.Same})},
	{"max pool", []shape{{2, 4, 4, 3}}, op(program.OpMaxPool, attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}})},
	{"max pool, same, overlapping", []shape{{1, 5, 4, 2}}, op(program.OpMaxPool, attrs{Window: [2]int64{3, 2}, Strides: [2]int64{1, 2}, Padding: program.Same})},
	{"tanh", []shape{{3, 4}}, op(program.OpTanh, attrs{})},
	{"relu", []shape{{3, 4}}, op(program.OpRelu, attrs{})},
	{"reshape", []shape{{3, 4}}, op(program.OpReshape, attrs{Shape: shape{2, 6}})},
	{"identity", []shape{{3, 4}}, op(program.OpIdentity, attrs{})},
	{"broadcast to", []shape{{3, 1, 2}}, op(program.OpBroadcastTo, attrs{Shape: shape{2, 3, 4, 2}})},
	{"add", []shape{{3, 4}, {3, 4}}, op(program.OpAdd, attrs{})},
	{"add, broadcast", []shape{{2, 1, 4}, {3, 1}}, op(program.OpAdd, attrs{})},
	{"sub, broadcast", []shape{{4}, {3, 4}}, op(program.OpSub, attrs{})},
	{"mul", []shape{{3, 4}, {3, 4}}, op(program.OpMul, attrs{})},
	{"mul by a column", []shape{{3, 1}, {3, 4}}, op(program.OpMul, attrs{})},
	{"mul by a scalar", []shape{{3, 4}, nil}, op(program.OpMul, attrs{})},
	{"add of three", []shape{{5}, {5}, {5}}, op(program.OpAddN, attrs{})},
	{"sum of an axis", []shape{{3, 4, 2}}, op(program.OpSum, attrs{Axes: []int64{1}})},
	{"mean of two axes", []shape{{3, 4, 2}}, op(program.OpMean, attrs{Axes: []int64{0, 2}})},
	{"mean of all", []shape{{3, 4}}, op(program.OpMean, attrs{})},
	{"one value used three times", []shape{{4, 4}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpMatMul, attrs{}, v[0], b.Op(program.OpMul, attrs{}, v[0], v[0]))
	}},
	{"cross entropy", []shape{{4, 5}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpSparseXent, attrs{}, v[0], b.Const("label", program.Int64, shape{4}, 3))
	}},
}

// distinct fills s with numbers that lie 2/len apart and never near 0, so that
// a small change crosses no kink of relu or of a maximum.
func distinct(s []float32, r *rand.Rand) {
	for i, j := range r.Perm(len(s)) {
		s[i] = (float32(j)-float32(len(s))/2)*2/float32(len(s)) + 1/float32(len(s))
		if len(s)%2 == 1 {
			s[i] += 0.5 / float32(len(s))
		}
	}
}

// scalar makes a loss that depends on every element of y differently.
func scalar(b *program.Builder, y value) value {
	w := b.Variable("probe", b.Shape(y), program.Init{})
	return b.Op(program.OpSum, attrs{}, b.Op(program.OpMul, attrs{}, y, w))
}

func TestGradientsEqualFiniteDifferences(t *testing.T) {
	for _, c := range gradientCases {
		t.Run(c.name, func(t *testing.T) {
			b := program.NewBuilder("t", 1)
			var vars []value
			for i, s := range c.vars {
				vars = append(vars, b.Variable(string(rune('a'+i)), s, program.Init{}))
			}
			loss := scalar(b, c.make(b, vars))
			for i, g := range b.Gradients(loss, vars) {
				b.Fetch(string(rune('a'+i)), g)
			}
			b.Fetch("loss", loss)
			p, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			checkGradients(t, newMachine(t, p, 1), len(c.vars))
		})
	}
}

func checkGradients(t *testing.T, m *machine, vars int) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	for _, v := range m.vars {
		distinct(v, r)
	}
	m.step(t)
	var analytic [][]float32
	for i := range vars {
		analytic = append(analytic, append([]float32(nil), m.fetch(t, string(rune('a'+i)))...))
	}
	for i, grads := range analytic {
		for j, got := range grads {
			if want := slope(t, m, &m.vars[i][j], 5e-3); !(math.Abs(float64(got)-want) <= 2e-3*(1+math.Abs(want))) {
				t.Errorf("variable %d, element %d: gradient %v, finite difference %v", i, j, got, want)
			}
		}
	}
}

// slope is the central difference of the loss in x.
func slope(t *testing.T, m *machine, x *float32, h float32) float64 {
	t.Helper()
	was := *x
	defer func() { *x = was }()
	*x = was + h
	m.step(t)
	up := m.fetch(t, "loss")[0]
	*x = was - h
	m.step(t)
	return float64(up-m.fetch(t, "loss")[0]) / (2 * float64(h))
}

// Every op with a gradient must be in the cases above.
func TestGradientCasesAreComplete(t *testing.T) {
	have := map[program.Op]bool{}
	for _, c := range gradientCases {
		b := program.NewBuilder("t", 1)
		var vars []value
		for i, s := range c.vars {
			vars = append(vars, b.Variable(string(rune('a'+i)), s, program.Init{}))
		}
		c.make(b, vars)
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Nodes {
			have[p.Nodes[i].Op] = true
		}
	}
	for _, o := range kernel.Ops() {
		def, err := program.Lookup(o)
		if err != nil {
			t.Errorf("a kernel for %s, which has no definition", o)
		} else if def.Grad != nil && !have[o] {
			t.Errorf("%s has a gradient that nothing checks", o)
		}
	}
}

func TestGradientsOfWholeModels(t *testing.T) {
	for _, model := range []string{"mlp", "lenet5"} {
		p, err := zoo.Program(model, zoo.Options{Batch: 3, Train: true, Optimizer: "sgd"})
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(t, p, 5)
		m.freeze()
		r := rand.New(rand.NewPCG(3, 1))
		for i := range m.floats(p.Inputs[0]) {
			m.floats(p.Inputs[0])[i] = r.Float32()
		}
		copy(kernel.Ints(m.values[p.Inputs[1]]), []int64{3, 0, 9})
		m.step(t)
		grads := map[program.VariableID][]float32{}
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == program.OpApplySGD {
				grads[n.Attrs.Variable] = append([]float32(nil), m.floats(n.Inputs[2])...)
			}
		}
		for id, g := range grads {
			for range 4 {
				j := r.IntN(len(g))
				want := slope(t, m, &m.vars[id][j], 1e-2)
				if !(math.Abs(float64(g[j])-want) <= 2e-3*(1+10*math.Abs(want))) {
					t.Errorf("%s: %s[%d]: gradient %v, finite difference %v", model, p.Variables[id].Name, j, g[j], want)
				}
			}
		}
	}
}

// freeze drops the calls that change variables.
func (m *machine) freeze() {
	kept := m.calls[:0]
	for _, c := range m.calls {
		if c.Node.Phase != program.Update {
			kept = append(kept, c)
		}
	}
	m.calls = kept
}
