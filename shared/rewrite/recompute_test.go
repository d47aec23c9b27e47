package rewrite_test

import (
	"slices"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// Which ops Grappler makes again in the backward pass, one by one: the result
// of each is read by the gradient of a square, nothing else is to be had.
func TestRecomputedAreTheOpsThatGrapplerCallsCheap(t *testing.T) {
	one := func(op program.Op, a program.Attrs) func(*program.Builder, program.ValueID, program.ValueID) program.ValueID {
		return func(b *program.Builder, x, _ program.ValueID) program.ValueID { return b.Op(op, a, x) }
	}
	two := func(op program.Op) func(*program.Builder, program.ValueID, program.ValueID) program.ValueID {
		return func(b *program.Builder, x, y program.ValueID) program.ValueID { return b.Op(op, program.Attrs{}, x, y) }
	}
	for _, c := range []struct {
		op    program.Op
		build func(b *program.Builder, x, y program.ValueID) program.ValueID
		cheap bool
	}{
		{program.OpAdd, two(program.OpAdd), true},
		{program.OpAddN, two(program.OpAddN), true},
		{program.OpMul, two(program.OpMul), true},
		{program.OpDiv, two(program.OpDiv), true},
		{program.OpSub, two(program.OpSub), true},
		{program.OpSquaredDifference, two(program.OpSquaredDifference), true},
		{program.OpNeg, one(program.OpNeg, program.Attrs{}), true},
		{program.OpReciprocal, one(program.OpReciprocal, program.Attrs{}), true},
		{program.OpRelu, one(program.OpRelu, program.Attrs{}), true},
		{program.OpRelu6, one(program.OpRelu6, program.Attrs{}), true},
		{program.OpLeakyRelu, one(program.OpLeakyRelu, program.Attrs{Value: 0.2}), true},
		{program.OpRsqrt, one(program.OpRsqrt, program.Attrs{}), true},
		{program.OpSqrt, one(program.OpSqrt, program.Attrs{}), true},
		{program.OpSigmoid, one(program.OpSigmoid, program.Attrs{}), true},
		{program.OpSquare, one(program.OpSquare, program.Attrs{}), true},
		{program.OpCast, one(program.OpCast, program.Attrs{DType: program.Float64}), true},
		{program.OpReshape, one(program.OpReshape, program.Attrs{Shape: program.Shape{64}}), true},
		{program.OpTile, one(program.OpTile, program.Attrs{Axes: []int64{2, 1}}), true},
		{program.OpTranspose, one(program.OpTranspose, program.Attrs{Axes: []int64{1, 0}}), true},
		{program.OpBiasAdd, func(b *program.Builder, x, _ program.ValueID) program.ValueID {
			return b.Op(program.OpBiasAdd, program.Attrs{}, x, b.Variable("bias", program.Shape{8}, program.Init{}))
		}, true},
		{program.OpTanh, one(program.OpTanh, program.Attrs{}), false},
		{program.OpExp, one(program.OpExp, program.Attrs{}), false},
		{program.OpLog, one(program.OpLog, program.Attrs{}), false},
		{program.OpGelu, one(program.OpGelu, program.Attrs{}), false},
		{program.OpSoftmax, one(program.OpSoftmax, program.Attrs{}), false},
		{program.OpMatMul, two(program.OpMatMul), false},
	} {
		b := program.NewBuilder("cheap", 8)
		w := b.Variable("w", program.Shape{8, 8}, program.Init{Kind: program.InitUniform, Scale: 1})
		x := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, b.Input("x", program.Float32, program.Shape{8, 8}), w))
		y := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, w))
		z := c.build(b, x, y)
		loss := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpExp, program.Attrs{}, b.Op(program.OpSquare, program.Attrs{}, z)))
		b.Fetch("loss", loss)
		b.SGD(0.1, []program.ValueID{w}, b.Gradients(loss, []program.ValueID{w}))
		p, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.op, err)
		}
		q, _, err := rewrite.Recompute(p, rewrite.RecomputeHeuristics, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.op, err)
		}
		maker := p.Nodes[p.Values[z].Producer].Name
		again := slices.ContainsFunc(q.Nodes, func(n program.Node) bool { return n.Name == "recompute/"+maker })
		if again != c.cheap {
			t.Errorf("%s is made again: %v, want %v", c.op, again, c.cheap)
		}
	}
}
