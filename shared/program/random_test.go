package program

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomShape has few dimensions, mostly small, some of them empty.
func randomShape(rng *rand.Rand) Shape {
	s := make(Shape, rng.IntN(5))
	for i := range s {
		s[i] = int64(rng.IntN(5))
	}
	return s
}

// randomNumbers are what Attrs hold: mostly small, some negative or huge.
func randomNumbers(rng *rand.Rand) []int64 {
	if rng.IntN(4) == 0 {
		return nil
	}
	out := make([]int64, rng.IntN(5))
	for i := range out {
		out[i] = int64(rng.IntN(6)) - 1
		if rng.IntN(20) == 0 {
			out[i] = []int64{-1 << 63, 1<<63 - 1, 1 << 40, -7}[rng.IntN(4)]
		}
	}
	return out
}

func randomAttrs(rng *rand.Rand) Attrs {
	pair := func() [2]int64 { return [2]int64{int64(rng.IntN(5)) - 1, int64(rng.IntN(5)) - 1} }
	return Attrs{
		DType: DType(rng.IntN(int(numDTypes) + 1)), Strides: pair(), Window: pair(), Padding: Padding(rng.IntN(3)),
		TransposeA: rng.IntN(2) == 0, TransposeB: rng.IntN(2) == 0,
		Axes: randomNumbers(rng), Begin: randomNumbers(rng), End: randomNumbers(rng), Shape: randomNumbers(rng),
		Value: []float64{0, 0.5, 1, 2, -1, 1e30}[rng.IntN(6)], KeepDims: rng.IntN(2) == 0,
		Training: rng.IntN(2) == 0, Nesterov: rng.IntN(2) == 0, Guarded: rng.IntN(4) == 0,
	}
}

// mutate changes a case that is right in a few places.
func mutate(rng *rand.Rand, c opCase) opCase {
	c.in = with(c.in, floatTypes[rng.IntN(4)])
	if rng.IntN(2) == 0 {
		c.a = randomAttrs(rng)
	}
	for range rng.IntN(3) {
		if len(c.in) == 0 {
			break
		}
		switch i := rng.IntN(len(c.in)); rng.IntN(4) {
		case 0:
			c.in[i].DType = DType(rng.IntN(int(numDTypes)))
		case 1:
			c.in[i].Shape = randomShape(rng)
		case 2:
			c.in = slices.Delete(c.in, i, i+1)
		default: // one extent, such as none
			if s := slices.Clone(c.in[i].Shape); len(s) > 0 {
				s[rng.IntN(len(s))] = int64(rng.IntN(3))
				c.in[i].Shape = s
			}
		}
	}
	return c
}

// tryOp builds one op of whatever it is given, with gradients if it takes
// them, and asks for all that is known of it. It says whether it was accepted.
func tryOp(t *testing.T, c opCase) bool {
	t.Helper()
	b := NewBuilder("t", 1)
	var in []ValueID
	for _, s := range c.in {
		in = append(in, b.variable(Variable{Name: "v", DType: s.DType, Shape: s.Shape}))
	}
	out := b.Node(c.op, c.a, in...)
	if b.err != nil {
		return false
	}
	p := &b.p
	if p.Validate() != nil {
		return false // an attribute of another op
	}
	n := &p.Nodes[b.last()]
	if cost := p.Cost(n); cost.FLOPs < 0 || cost.Bytes < 0 {
		t.Errorf("%s%v %+v: work %+v", c.op, c.in, c.a, cost)
	}
	if w := defs[c.op].Workspace; w != nil && w(p, n) < 0 {
		t.Errorf("%s%v %+v: workspace %d", c.op, c.in, c.a, w(p, n))
	}
	for i := range n.Inputs {
		p.HostInput(n, i)
	}
	for i := range out {
		p.HostOutput(n, i)
	}
	if defs[c.op].Grad == nil || len(out) == 0 || !b.DType(out[0]).Float() || len(in) == 0 || !b.DType(in[0]).Float() {
		return true
	}
	b.Gradients(b.Op(OpSum, Attrs{}, out[0]), in[:1])
	if _, err := b.Build(); err != nil && c.op != OpLSTMCell { // whose gates have none
		t.Errorf("%s%v %+v: %v", c.op, c.in, c.a, err)
	}
	return true
}

// Whatever an op is given, it is taken or refused by an error: no panic, no
// negative work, and a gradient for what is taken.
func TestOpsTakeOrRefuseWhateverTheyAreGiven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	taken := map[Op]int{}
	for range 100 {
		for _, c := range opCases {
			if tryOp(t, mutate(rng, c)) {
				taken[c.op]++
			}
			if t.Failed() {
				return
			}
		}
	}
	for _, op := range slices.Sorted(maps.Keys(defs)) {
		if taken[op] == 0 && op != OpVariable {
			t.Errorf("%s: never taken", op)
		}
	}
}

// Tensors without elements have no work worth a panic.
func TestEmptyTensorsAreTensors(t *testing.T) {
	stride := Attrs{Strides: [2]int64{1, 1}}
	for name, c := range map[string]opCase{
		"no channels":  {op: OpConv2D, a: stride, in: r(Shape{2, 8, 8, 0}, Shape{3, 3, 0, 5})},
		"no filters":   {op: OpConv2D, a: stride, in: r(nhwc, Shape{3, 3, 3, 0})},
		"no images":    {op: OpMaxPool, a: pool2, in: r(Shape{0, 8, 8, 3})},
		"no rows":      {op: OpMatMul, in: r(Shape{0, 3}, Shape{3, 4})},
		"nothing":      {op: OpMean, in: r(Shape{0})},
		"no samples":   {op: OpSparseXent, in: []Spec{{float, Shape{0, 3}}, {Int64, Shape{0}}}},
		"no indices":   {op: OpGather, in: []Spec{{float, x23}, {Int64, Shape{0}}}},
		"no batch":     {op: OpBatchMatMul, in: r(Shape{0, 2, 3}, Shape{0, 3, 4})},
		"no statistic": {op: OpFusedBatchNorm, in: r(Shape{2, 8, 8, 0}, Shape{0}, Shape{0}, Shape{0}, Shape{0})},
		"no row":       {op: OpLayerNorm, in: r(Shape{0, 3}, x3, x3)},
		"no largest":   {op: OpMax, a: Attrs{Axes: []int64{0}}, in: r(Shape{0, 3})},
	} {
		b, _, grads := differentiate(c, Float32)
		if _, err := b.Build(); err != nil && c.op != OpFusedBatchNorm {
			t.Errorf("%s: %v, %d gradients", name, err, len(grads))
		}
		for i := range b.p.Nodes {
			n := &b.p.Nodes[i]
			if w := defs[n.Op].Workspace; w != nil && w(&b.p, n) < 0 {
				t.Errorf("%s: %s asks for %d bytes", name, n.Name, w(&b.p, n))
			}
			b.p.Cost(n)
		}
	}
}
