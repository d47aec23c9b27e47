package program

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// noGradient has the ops that have none and why.
var noGradient = map[Op]string{
	OpVariable: "a leaf", OpConst: "a leaf", OpRandomUniform: "a leaf", OpRange: "a leaf",
	OpStopGradient: "by its meaning", OpSwapOut: "is put in when gradients exist", OpSwapIn: "is put in when gradients exist",
	OpShape: "gives integers", OpArgMax: "gives integers", OpOneHot: "takes integers",
	OpIsFinite: "gives bools", OpLogicalNot: "gives bools", OpLogicalAnd: "gives bools", OpAll: "gives bools",
	OpEqual: "gives bools", OpGreater: "gives bools", OpGreaterEqual: "gives bools", OpLess: "gives bools",
}

func TestEveryDifferentiableOpHasAGradient(t *testing.T) {
	for op, d := range defs {
		switch {
		case d.Stateful || noGradient[op] != "":
			if d.Grad != nil {
				t.Errorf("%s has a gradient", op)
			}
		case secondOrder(op):
			// Op of a backward pass: there are no gradients of gradients.
		case d.Grad == nil:
			t.Errorf("%s has no gradient", op)
		}
	}
}

// secondOrder has the ops that only a backward pass has.
func secondOrder(op Op) bool {
	return op == OpConv2DBackpropFilter || strings.Contains(string(op), "Grad")
}

// differentiate adds the gradients of the mean of all outputs of a case that
// are real numbers, with respect to all its inputs that are.
func differentiate(c opCase, d DType) (b *Builder, wrt, grads []ValueID) {
	b, in, out := applied(c, d, true)
	if b.err != nil {
		return b, nil, nil
	}
	for _, v := range in {
		if b.DType(v).Float() {
			wrt = append(wrt, v)
		}
	}
	outputs := out[:1]
	switch c.op {
	case OpSplit:
		outputs = out[:2] // the rest has no gradient
	case OpLSTMCell:
		outputs = out[2:] // nor has c
	default:
	}
	var terms []ValueID
	for _, v := range outputs {
		if b.DType(v).Float() {
			terms = append(terms, b.Op(OpMean, Attrs{}, v))
		}
	}
	return b, wrt, b.Gradients(b.Op(OpAddN, Attrs{}, terms...), wrt)
}

func TestGradientsHaveTheTypeAndShapeOfWhatTheyAreOf(t *testing.T) {
	seen := map[Op]bool{}
	for _, c := range opCases {
		if defs[c.op].Grad == nil || len(c.in) == 0 || !c.in[0].DType.Float() && c.op != OpSelect || c.op == OpCast {
			continue
		}
		seen[c.op] = true
		for _, d := range floatTypes {
			if c.op == OpFusedBatchNorm {
				continue // the two statistics have no gradient: below
			}
			b, wrt, grads := differentiate(c, d)
			p, err := b.Build()
			if err != nil {
				t.Errorf("%s of %s: %v", c.op, d, err)
				continue
			}
			for i, g := range grads {
				x, v := p.Values[g], p.Values[wrt[i]]
				if x.DType != v.DType || !x.Shape.Equal(v.Shape) || x.Role != RoleGradient {
					t.Errorf("%s: gradient %d is %s%s of role %d, its tensor %s%s", c.op, i, x.DType, x.Shape, x.Role, v.DType, v.Shape)
				}
			}
			checkBackward(t, p, c.op)
		}
	}
	for op, d := range defs {
		if d.Grad != nil && !seen[op] && op != OpCast {
			t.Errorf("%s: gradient not tried", op)
		}
	}
}

// checkBackward holds the backward nodes against what placers rely on.
func checkBackward(t *testing.T, p *Program, op Op) {
	t.Helper()
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if back := strings.HasPrefix(n.Name, "gradients/"); back != (n.Phase == Backward) {
			t.Errorf("%s: %s has phase %d", op, n.Name, n.Phase)
		}
		if n.Of != None && p.Nodes[n.Of].Phase != Forward {
			t.Errorf("%s: %s belongs to %s", op, n.Name, p.Nodes[n.Of].Name)
		}
	}
}

func TestBatchNormHasThreeGradients(t *testing.T) {
	for _, d := range floatTypes {
		b := NewBuilder("t", 1)
		b.Float(d)
		x := b.Variable("x", nhwc, Init{})
		stats := statistics(d)
		scale := b.variable(Variable{Name: "scale", DType: stats, Shape: c3})
		offset := b.variable(Variable{Name: "offset", DType: stats, Shape: c3})
		mean, variance := b.State("mean", stats, c3, Init{}), b.State("variance", stats, c3, Init{})
		out := b.Node(OpFusedBatchNorm, Attrs{Value: 1e-3, Training: true}, x, scale, offset, mean, variance)
		b.Node(OpAssignMovingAverage, Attrs{Value: 0.99}, mean, out[1])
		loss := b.Op(OpMean, Attrs{}, out[0])
		if w := b.Weights(); !slices.Equal(w, []ValueID{x, scale, offset}) {
			t.Errorf("weights %v: statistics are not trained", w)
		}
		for i, g := range b.Gradients(loss, b.Weights()) {
			if v := b.Weights()[i]; b.DType(g) != b.DType(v) || !b.Shape(g).Equal(b.Shape(v)) {
				t.Errorf("gradient %d is %s%s", i, b.DType(g), b.Shape(g))
			}
		}
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Parameters(); got != nhwc.Elements()+12 || p.TrainedParameters() != got-6 {
			t.Errorf("%d parameters, %d trained", got, p.TrainedParameters())
		}
	}
}

func TestNoGradientWhereNoneIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *Builder, x ValueID) ValueID // the loss
		want  string
	}{
		"stopped":           {func(b *Builder, x ValueID) ValueID { return b.Op(OpStopGradient, Attrs{}, x) }, "does not depend on x"},
		"through integers":  {func(b *Builder, x ValueID) ValueID { return cast(b, b.Op(OpArgMax, Attrs{}, x)) }, "does not depend on x"},
		"through bools":     {func(b *Builder, x ValueID) ValueID { return cast(b, b.Op(OpIsFinite, Attrs{}, x)) }, "does not depend on x"},
		"of a gradient":     {func(b *Builder, x ValueID) ValueID { return b.Op(OpTanhGrad, Attrs{}, x, x) }, "TanhGrad has no gradient"},
		"through gates":     {func(b *Builder, x ValueID) ValueID { return b.Op(OpLSTMCell, Attrs{}, x, b.Input("c", Float32, x23)) }, "no gradient through its gates"},
		"of the statistics": {func(b *Builder, x ValueID) ValueID { return layerNorm(b, x)[1] }, "no gradient through its output 1"},
		"of a mask":         {func(b *Builder, x ValueID) ValueID { return cast(b, b.Node(OpDropout, Attrs{}, x)[1]) }, "does not depend on x"},
	} {
		b := NewBuilder("t", 1)
		x := b.Variable("x", Shape{2, 12}, Init{})
		b.Gradients(b.Op(OpMean, Attrs{}, c.build(b, x)), []ValueID{x})
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func cast(b *Builder, v ValueID) ValueID { return b.Op(OpCast, Attrs{}, v) }

func layerNorm(b *Builder, x ValueID) []ValueID {
	s := b.Shape(x)
	last := s[len(s)-1:]
	return b.Node(OpLayerNorm, Attrs{Value: 1e-5}, x, b.variable(Variable{Name: "gamma", Shape: last}), b.variable(Variable{Name: "beta", Shape: last}))
}

// lookups is a model that takes rows of a table by ids, n times.
func lookups(n int) (b *Builder, table ValueID, rows []ValueID) {
	b = NewBuilder("t", 1)
	table = b.Variable("table", Shape{100, 8}, Init{})
	for range n {
		ids := b.Input("ids", Int32, Shape{2, 5})
		rows = append(rows, b.Op(OpMean, Attrs{}, b.Op(OpGather, Attrs{}, table, ids)))
	}
	return b, table, rows
}

func ops(b *Builder, ph Phase) map[Op]int {
	count := map[Op]int{}
	for i := range b.p.Nodes {
		if n := &b.p.Nodes[i]; n.Phase == ph {
			count[n.Op]++
		}
	}
	return count
}

func TestGradientOfALookupIsItsRows(t *testing.T) {
	b, table, rows := lookups(1)
	g := b.Derive(rows[0], None, []ValueID{table})[0]
	if !g.Sparse() || !b.Shape(g.Value).Equal(Shape{10, 8}) || !b.Shape(g.Indices).Equal(Shape{10}) || b.DType(g.Indices) != Int64 {
		t.Errorf("gradient %v of shape %s", g, b.Shape(g.Value))
	}
	if ops(b, Backward)[OpUnsortedSegmentSum] > 0 {
		t.Error("made dense, though nobody asked")
	}
}

func TestSparseGradientsThatMeetAreJoined(t *testing.T) {
	b, table, rows := lookups(3)
	g := b.Derive(b.Op(OpAddN, Attrs{}, rows...), None, []ValueID{table})[0]
	if !g.Sparse() || !b.Shape(g.Value).Equal(Shape{30, 8}) || !b.Shape(g.Indices).Equal(Shape{30}) {
		t.Errorf("gradient of shape %s, indices %s", b.Shape(g.Value), b.Shape(g.Indices))
	}
	if n := ops(b, Backward); n[OpConcat] != 2 || n[OpUnsortedSegmentSum] != 0 {
		t.Errorf("backward ops %v", n)
	}
}

// GPT-2's embedding is read by row and as a matrix.
func TestSparseGradientThatMeetsADenseOneIsMadeDense(t *testing.T) {
	b, table, rows := lookups(1)
	dense := b.Op(OpL2Loss, Attrs{}, table)
	g := b.Derive(b.Op(OpAdd, Attrs{}, rows[0], dense), None, []ValueID{table})[0]
	if g.Sparse() || !b.Shape(g.Value).Equal(Shape{100, 8}) {
		t.Errorf("gradient %v of shape %s", g, b.Shape(g.Value))
	}
	if n := ops(b, Backward); n[OpAddN] != 1 || n[OpUnsortedSegmentSum] != 1 {
		t.Errorf("backward ops %v", n)
	}
}

func TestSparseGradientOfATensorIsMadeDense(t *testing.T) {
	b := NewBuilder("t", 1)
	table := b.Variable("table", Shape{100, 8}, Init{})
	ids := b.Input("ids", Int64, Shape{5})
	b.Derive(b.Op(OpMean, Attrs{}, b.Op(OpGather, Attrs{}, b.Op(OpTanh, Attrs{}, table), ids)), None, []ValueID{table})
	if n := ops(b, Backward); n[OpUnsortedSegmentSum] != 1 || n[OpTanhGrad] != 1 || n[OpCast] != 0 {
		t.Errorf("backward ops %v", n)
	}
}

func TestGradientBeginsWithWhatIsAskedFor(t *testing.T) {
	b := NewBuilder("t", 1)
	x := b.Variable("x", x23, Init{})
	scale := b.Input("scale", Float32, nil)
	b.Derive(b.Op(OpL2Loss, Attrs{}, x), scale, []ValueID{x})
	n := &b.p.Nodes[b.last()]
	if n.Op != OpMul || !slices.Equal(n.Inputs, []ValueID{x, scale}) {
		t.Errorf("backward node %s of %v", n.Op, n.Inputs)
	}
}

func TestReadCastsAVariableOnce(t *testing.T) {
	for _, c := range []struct {
		compute DType
		casts   int
	}{{Float32, 0}, {Float16, 1}, {BFloat16, 1}, {Float64, 1}} {
		b := NewBuilder("t", 1)
		b.Compute(c.compute)
		w := b.Variable("w", Shape{3, 3}, Init{})
		y := b.Op(OpMatMul, Attrs{}, b.Read(w), b.Read(w))
		if b.DType(w) != Float32 || b.DType(y) != c.compute || ops(b, Forward)[OpCast] != c.casts {
			t.Errorf("%s: variable %s, product %s, %v", c.compute, b.DType(w), b.DType(y), ops(b, Forward))
		}
		g := b.Gradients(b.Op(OpMean, Attrs{}, y), []ValueID{w})[0]
		if b.DType(g) != Float32 {
			t.Errorf("%s: gradient is %s", c.compute, b.DType(g))
		}
		if _, err := b.Build(); err != nil {
			t.Error(err)
		}
	}
}

func TestUpdatesWaitForAllReadersOfTheBuffer(t *testing.T) {
	b := NewBuilder("t", 1)
	v := b.Variable("v", x23, Init{})
	flat := b.Op(OpReshape, Attrs{Shape: Shape{6}}, v)
	b.Op(OpTanh, Attrs{}, flat) // reads v's buffer under another name
	b.Op(OpMul, Attrs{}, v, v)
	tanh, mul := NodeID(2), NodeID(3)
	b.Node(OpAssignAdd, Attrs{}, v, b.Input("x", Float32, x23))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Nodes[4].Control; !slices.Equal(got, []NodeID{1, tanh, mul}) || p.Nodes[4].Attrs.Variable != 0 {
		t.Errorf("waits for %v, changes variable %d", got, p.Nodes[4].Attrs.Variable)
	}
}

func TestAfterAddsControlEdgesOnce(t *testing.T) {
	b := NewBuilder("t", 1)
	x := b.Input("x", Float32, x23)
	y := b.Op(OpTanh, Attrs{}, x)
	b.Op(OpExp, Attrs{}, x)
	b.After(x, y, y)
	if got := fmt.Sprint(b.p.Nodes[1].Control); got != "[0]" {
		t.Errorf("control edges from %s", got)
	}
}
