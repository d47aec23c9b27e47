package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// gradientCase is an op, or a few, on float64 variables of the given shapes.
type gradientCase struct {
	name     string
	vars     []shape
	make     func(b *program.Builder, v []value) value
	positive bool // what the variables hold
}

func op(o program.Op, a attrs) func(b *program.Builder, v []value) value {
	return func(b *program.Builder, v []value) value { return b.Op(o, a, v...) }
}

// outputs joins some outputs of an op into one vector, so that all of them
// have gradients at once.
func outputs(b *program.Builder, all []value, which ...int) value {
	var flat []value
	for _, i := range which {
		flat = append(flat, b.Op(program.OpReshape, attrs{Shape: shape{b.Shape(all[i]).Elements()}}, all[i]))
	}
	return b.Op(program.OpConcat, attrs{Axes: []int64{0}}, flat...)
}

func elementwise(o program.Op, a attrs, positive bool) gradientCase {
	return gradientCase{name: string(o), vars: []shape{{3, 4}}, make: op(o, a), positive: positive}
}

func twoInputs(o program.Op, positive bool) []gradientCase {
	var out []gradientCase
	for i, s := range [][]shape{{{3, 4}, {3, 4}}, {{2, 1, 4}, {3, 1}}, {{4}, {3, 4}}, {{3, 4}, nil}} {
		out = append(out, gradientCase{fmt.Sprint(o, i), s, op(o, attrs{}), positive})
	}
	return out
}

// rowsOfThree gives indices 0,0,…,1,1,…,2: made of a range, since a constant
// has one number only.
func rowsOfThree(b *program.Builder, n int64) value {
	at := attrs{DType: program.Float32, Shape: shape{n}}
	scaled := b.Op(program.OpMul, attrs{}, b.Op(program.OpRange, at), b.Const("Const", program.Float32, nil, 2.99/float64(n)))
	return b.Op(program.OpCast, attrs{DType: program.Int64}, scaled)
}

func normOf(training bool) func(b *program.Builder, v []value) value {
	return func(b *program.Builder, v []value) value {
		mean := b.Const("mean", program.Float64, shape{3}, 0.1)
		variance := b.Const("variance", program.Float64, shape{3}, 0.7)
		return b.Op(program.OpFusedBatchNorm, attrs{Value: 1e-3, Training: training}, v[0], v[1], v[2], mean, variance)
	}
}

var gradientCases = slices.Concat([]gradientCase{
	{"matmul", []shape{{3, 4}, {4, 5}}, op(program.OpMatMul, attrs{}), false},
	{"matmul, first transposed", []shape{{4, 3}, {4, 5}}, op(program.OpMatMul, attrs{TransposeA: true}), false},
	{"matmul, second transposed", []shape{{3, 4}, {5, 4}}, op(program.OpMatMul, attrs{TransposeB: true}), false},
	{"matmul, both transposed", []shape{{4, 3}, {5, 4}}, op(program.OpMatMul, attrs{TransposeA: true, TransposeB: true}), false},
	{"batch matmul", []shape{{2, 3, 4}, {2, 4, 5}}, op(program.OpBatchMatMul, attrs{}), false},
	{"batch matmul, first transposed", []shape{{2, 4, 3}, {2, 4, 5}}, op(program.OpBatchMatMul, attrs{TransposeA: true}), false},
	{"batch matmul, second transposed", []shape{{2, 3, 4}, {2, 5, 4}}, op(program.OpBatchMatMul, attrs{TransposeB: true}), false},
	{"batch matmul, both transposed", []shape{{2, 2, 4, 3}, {2, 2, 5, 4}}, op(program.OpBatchMatMul, attrs{TransposeA: true, TransposeB: true}), false},
	{"bias add", []shape{{2, 3, 2, 4}, {4}}, op(program.OpBiasAdd, attrs{}), false},
	{"conv valid", []shape{{2, 6, 5, 3}, {3, 2, 3, 4}}, op(program.OpConv2D, attrs{Strides: one}), false},
	{"conv same, strided", []shape{{2, 5, 4, 2}, {3, 3, 2, 3}}, op(program.OpConv2D, smeared), false},
	{"conv pointwise", []shape{{2, 3, 3, 4}, {1, 1, 4, 2}}, op(program.OpConv2D, attrs{Strides: one}), false},
	{"transposed conv", []shape{{2, 2, 2, 3}, {2, 3, 3, 3}}, op(program.OpConv2DBackpropInput, attrs{Strides: [2]int64{2, 2}, Shape: shape{2, 6, 6, 2}, Padding: program.Same}), false},
	{"average pool", []shape{{2, 4, 6, 3}}, op(program.OpAvgPool, attrs{Window: [2]int64{2, 3}, Strides: [2]int64{2, 3}}), false},
	{"average pool, same, overlapping", []shape{{1, 5, 4, 2}}, op(program.OpAvgPool, attrs{Window: [2]int64{3, 3}, Strides: [2]int64{2, 1}, Padding: program.Same}), false},
	{"max pool", []shape{{2, 4, 4, 3}}, op(program.OpMaxPool, attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}}), false},
	{"max pool, same, overlapping", []shape{{1, 5, 4, 2}}, op(program.OpMaxPool, attrs{Window: [2]int64{3, 2}, Strides: [2]int64{1, 2}, Padding: program.Same}), false},
	elementwise(program.OpTanh, attrs{}, false),
	elementwise(program.OpRelu, attrs{}, false),
	elementwise(program.OpRelu6, attrs{}, false),
	elementwise(program.OpLeakyRelu, attrs{Value: 0.2}, false),
	elementwise(program.OpSigmoid, attrs{}, false),
	elementwise(program.OpGelu, attrs{}, false),
	elementwise(program.OpExp, attrs{}, false),
	elementwise(program.OpLog, attrs{}, true),
	elementwise(program.OpSqrt, attrs{}, true),
	elementwise(program.OpRsqrt, attrs{}, true),
	elementwise(program.OpSquare, attrs{}, false),
	elementwise(program.OpNeg, attrs{}, false),
	elementwise(program.OpAbs, attrs{}, false),
	elementwise(program.OpReciprocal, attrs{}, true),
	elementwise(program.OpErf, attrs{}, false),
	elementwise(program.OpReshape, attrs{Shape: shape{2, 6}}, false),
	elementwise(program.OpIdentity, attrs{}, false),
	{"relu6 beyond 6", []shape{{3, 4}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpRelu6, attrs{}, b.Op(program.OpMul, attrs{}, v[0], b.Const("Const", program.Float64, nil, 9)))
	}, false},
	{"cast there and back", []shape{{3, 4}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpCast, attrs{DType: program.Float64}, v[0])
	}, false},
	{"broadcast to", []shape{{3, 1, 2}}, op(program.OpBroadcastTo, attrs{Shape: shape{2, 3, 4, 2}}), false},
	{"select", []shape{{3, 4}, {3, 4}, {3, 4}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpSelect, attrs{}, b.Op(program.OpGreater, attrs{}, v[0], v[1]), v[1], v[2])
	}, false},
	{"select, broadcast", []shape{{3, 1}, {4}, {3, 4}}, func(b *program.Builder, v []value) value {
		zero := b.Const("Const", program.Float64, nil, 0)
		return b.Op(program.OpAdd, attrs{}, b.Op(program.OpSelect, attrs{}, b.Op(program.OpLess, attrs{}, v[0], zero), v[1], v[2]), v[0])
	}, false},
	{"add of three", []shape{{5}, {5}, {5}}, op(program.OpAddN, attrs{}), false},
	{"sum of an axis", []shape{{3, 4, 2}}, op(program.OpSum, axes(1)), false},
	{"sum, dimensions kept", []shape{{3, 4, 2}}, op(program.OpSum, attrs{Axes: []int64{0, 2}, KeepDims: true}), false},
	{"mean of two axes", []shape{{3, 4, 2}}, op(program.OpMean, axes(0, 2)), false},
	{"mean of all", []shape{{3, 4}}, op(program.OpMean, attrs{}), false},
	{"max of an axis", []shape{{3, 4, 2}}, op(program.OpMax, axes(1)), false},
	{"max, dimensions kept", []shape{{3, 4, 2}}, op(program.OpMax, attrs{Axes: []int64{0}, KeepDims: true}), false},
	{"top k", []shape{{2, 3, 7}}, func(b *program.Builder, v []value) value { return b.Node(program.OpTopK, attrs{Value: 3}, v[0])[0] }, false},
	{"half the sum of squares", []shape{{3, 4}}, op(program.OpL2Loss, attrs{}), false},
	{"softmax", []shape{{3, 4}}, op(program.OpSoftmax, attrs{}), false},
	{"log softmax", []shape{{2, 3, 4}}, op(program.OpLogSoftmax, attrs{}), false},
	{"batch norm, training", []shape{{2, 3, 2, 3}, {3}, {3}}, normOf(true), false},
	{"batch norm, inference", []shape{{2, 3, 2, 3}, {3}, {3}}, normOf(false), false},
	{"layer norm", []shape{{2, 3, 5}, {5}, {5}}, op(program.OpLayerNorm, attrs{Value: 1e-3}), false},
	{"dropout", []shape{{5, 4}}, op(program.OpDropout, attrs{Value: 0.4, Seed: 3}), false},
	{"transpose", []shape{{2, 3, 4}}, op(program.OpTranspose, axes(2, 0, 1)), false},
	{"concat", []shape{{2, 3, 2}, {2, 1, 2}, {2, 2, 2}}, op(program.OpConcat, axes(1)), false},
	{"split, one part unused", []shape{{2, 6, 2}}, func(b *program.Builder, v []value) value {
		parts := b.Node(program.OpSplit, attrs{Axes: []int64{1, 3}}, v[0])
		return b.Op(program.OpMul, attrs{}, parts[0], parts[2])
	}, false},
	{"slice", []shape{{4, 3, 5}}, op(program.OpSlice, attrs{Begin: []int64{1, 0, 2}, Shape: shape{2, 3, 2}}), false},
	{"pad", []shape{{2, 3}}, op(program.OpPad, attrs{Begin: []int64{1, 0}, End: []int64{0, 2}}), false},
	{"tile", []shape{{2, 3, 2}}, op(program.OpTile, axes(2, 1, 3)), false},
	{"gather", []shape{{4, 3}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpGather, attrs{}, b.Op(program.OpIdentity, attrs{}, v[0]), rowsOfThree(b, 7))
	}, false},
	{"gather of a variable", []shape{{4, 3}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpGather, attrs{}, v[0], rowsOfThree(b, 7))
	}, false},
	{"segment sum", []shape{{7, 3}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpUnsortedSegmentSum, attrs{Shape: shape{4, 3}}, v[0], rowsOfThree(b, 7))
	}, false},
	{"lstm cell, state and output", []shape{{3, 8}, {3, 2}}, func(b *program.Builder, v []value) value {
		return outputs(b, b.Node(program.OpLSTMCell, attrs{}, v...), 1, 2)
	}, false},
	{"lstm cell, output alone", []shape{{3, 8}, {3, 2}}, func(b *program.Builder, v []value) value {
		return b.Node(program.OpLSTMCell, attrs{}, v...)[2]
	}, false},
	{"cross entropy", []shape{{4, 5}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpSparseXent, attrs{}, v[0], b.Const("label", program.Int64, shape{4}, 3))
	}, false},
	{"cross entropy of distributions", []shape{{4, 5}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpXent, attrs{}, v[0], b.Const("label", program.Float64, shape{4, 5}, 0.2))
	}, false},
	{"stopped on one way", []shape{{4}}, func(b *program.Builder, v []value) value {
		// d(x*stop(x))/dx is x, which finite differences cannot tell, so the
		// stopped factor is a function of nothing.
		stopped := b.Op(program.OpStopGradient, attrs{}, b.Const("Const", program.Float64, shape{4}, 2))
		return b.Op(program.OpMul, attrs{}, v[0], stopped)
	}, false},
	{"one value used three times", []shape{{4, 4}}, func(b *program.Builder, v []value) value {
		return b.Op(program.OpMatMul, attrs{}, v[0], b.Op(program.OpMul, attrs{}, v[0], v[0]))
	}, false},
},
	twoInputs(program.OpAdd, false),
	twoInputs(program.OpSub, false),
	twoInputs(program.OpMul, false),
	twoInputs(program.OpDiv, true),
	twoInputs(program.OpMaximum, false),
	twoInputs(program.OpMinimum, false),
	twoInputs(program.OpPow, true),
	twoInputs(program.OpSquaredDifference, false),
)

// distinct fills s with numbers from -1 to 1, or from 0.5 to 2, that lie apart
// and never near 0, so that a small change crosses no kink of relu or of a
// maximum.
func distinct(s []float64, positive bool, r *rand.Rand) {
	n := float64(len(s))
	shift := r.Float64() / 4 // or two variables would hold the same numbers
	for i, j := range r.Perm(len(s)) {
		u := (float64(j) + 0.25 + shift) / n
		s[i] = 2*u - 1
		if positive {
			s[i] = 0.5 + 1.5*u
		} else if math.Abs(s[i]) < 1e-3 {
			s[i] = 1e-2
		}
	}
}

// scalar makes a loss that depends on every element of y differently.
func scalar(b *program.Builder, y value) value {
	w := b.Variable("probe", b.Shape(y), program.Init{})
	return b.Op(program.OpSum, attrs{}, b.Op(program.OpMul, attrs{}, y, w))
}

// build makes the program of a case: gradients fetched as a, b, …, and the
// loss.
func (c *gradientCase) build(tb testing.TB) *program.Program {
	tb.Helper()
	b := program.NewBuilder("t", 1)
	b.Float(program.Float64)
	var vars []value
	for i, s := range c.vars {
		vars = append(vars, b.Variable(string(rune('a'+i)), s, program.Init{}))
	}
	loss := scalar(b, c.make(b, vars))
	var wanted []value
	for i := range vars {
		if c.name == "select" && i == 0 {
			continue // only its order counts
		}
		wanted = append(wanted, vars[i])
	}
	for i, g := range b.Derive(loss, b.Const("Const", program.Float64, nil, 1), wanted) {
		b.Fetch(string(rune('a'+int(wanted[i]-vars[0]))), b.Densify(g, b.Shape(wanted[i])))
	}
	b.Fetch("loss", loss)
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func TestGradientsEqualFiniteDifferences(t *testing.T) {
	for i := range gradientCases {
		c := &gradientCases[i]
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, c.build(t), 1)
			r := rand.New(rand.NewPCG(7, 7))
			for _, v := range m.vars {
				distinct(kernel.Doubles(v), c.positive, r)
			}
			m.step(t)
			checked := 0
			for v := range c.vars {
				name := string(rune('a' + v))
				if !slices.ContainsFunc(m.p.Fetches, func(f program.Fetch) bool { return f.Name == name }) {
					continue
				}
				for j, got := range slices.Clone(m.numbers(t, name)) {
					want := m.slope(t, &kernel.Doubles(m.vars[v])[j])
					if !(math.Abs(got-want) <= 1e-7*(1+math.Abs(want))) {
						t.Errorf("variable %d, element %d: gradient %v, finite difference %v", v, j, got, want)
					}
					checked++
				}
			}
			if checked == 0 {
				t.Error("nothing was checked")
			}
		})
	}
}

// slope is the central difference of the loss in x.
func (m *machine) slope(t *testing.T, x *float64) float64 {
	t.Helper()
	const h = 1e-5
	was := *x
	*x = was + h
	m.step(t)
	up := m.numbers(t, "loss")[0]
	*x = was - h
	m.step(t)
	down := m.numbers(t, "loss")[0]
	*x = was
	m.step(t) // for those who read gradients next
	return (up - down) / (2 * h)
}

// Every op with a gradient must be in the cases above.
func TestGradientCasesAreComplete(t *testing.T) {
	have := map[program.Op]bool{}
	for i := range gradientCases {
		p := gradientCases[i].build(t)
		for k := range p.Nodes {
			if p.Nodes[k].Phase == program.Forward {
				have[p.Nodes[k].Op] = true
			}
		}
	}
	for _, o := range programOps(t) {
		def, err := program.Lookup(o)
		if err != nil {
			t.Errorf("%s: %v", o, err)
		} else if def.Grad != nil && !have[o] {
			t.Errorf("%s has a gradient that nothing checks", o)
		}
	}
}

func TestGradientsOfWholeModels(t *testing.T) {
	for _, model := range []string{"mlp", "lenet5"} {
		p, err := zoo.Program(model, zoo.Options{Batch: 3, Train: true, Optimizer: "sgd", Precision: "float64"})
		if err != nil {
			t.Fatal(err)
		}
		// The loss is handed out as float32, which is too coarse for differences.
		for i, f := range p.Fetches {
			if n := p.Values[f.Value].Producer; p.Nodes[n].Op == program.OpCast && f.Name == "loss" {
				p.Fetches[i].Value = p.Nodes[n].Inputs[0]
			}
		}
		m := newMachine(t, p, 5)
		m.freeze()
		r := rand.New(rand.NewPCG(3, 1))
		for i := range m.floats(p.Inputs[0]) {
			m.floats(p.Inputs[0])[i] = r.Float32()
		}
		copy(kernel.Ints(m.values[p.Inputs[1]]), []int64{3, 0, 9})
		m.step(t)
		grads := map[program.VariableID][]float64{}
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == program.OpApplySGD {
				grads[n.Attrs.Variable] = slices.Clone(kernel.Doubles(m.values[n.Inputs[2]]))
			}
		}
		for id, g := range grads {
			for range 4 {
				j := r.IntN(len(g))
				want := m.slope(t, &kernel.Doubles(m.vars[id])[j])
				if !(math.Abs(g[j]-want) <= 1e-6*(1+math.Abs(want))) {
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
