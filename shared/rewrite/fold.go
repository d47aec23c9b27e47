package rewrite

import (
	"math"
	"slices"

	"tideline/shared/program"
)

// foldLimit is the size up to which a constant may be larger than what it is
// made from: a folded constant is held for the life of the graph.
const foldLimit = 10 << 20

// FoldConstants evaluates what depends on constants alone. A result stays an
// op if it is larger than its inputs together and than 10 MiB. Our constants
// are tensors of one number, so only ops that keep them so can be folded, and
// only those whose float result every host rounds alike. It gives the number
// of nodes folded and of those left for their size.
func FoldConstants(p *program.Program) (out *program.Program, folded, large int, err error) {
	if !look(p).foldable() {
		return p, 0, 0, nil
	}
	g := edit(p)
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		x, ok := g.evaluate(n)
		if !ok {
			continue
		}
		if g.tooLarge(n) {
			large++
			continue
		}
		v := g.value(n.Outputs[0])
		n.Op, n.Inputs = program.OpConst, nil
		n.Attrs = program.Attrs{Variable: program.None, Slots: program.NoSlots, DType: v.DType, Shape: v.Shape, Value: x}
		v.Role = program.RoleConstant
		folded++
	}
	if folded == 0 {
		return p, 0, large, nil
	}
	g.prune()
	out, err = g.finish()
	return out, folded, large, err
}

// foldable says whether there is anything to look at more closely.
func (g *graph) foldable() bool {
	for i := range g.p.Nodes {
		if _, ok := g.evaluate(&g.p.Nodes[i]); ok {
			return true
		}
	}
	return false
}

func (g *graph) tooLarge(n *program.Node) bool {
	var in int64
	for _, v := range n.Inputs {
		in += g.value(v).Bytes()
	}
	out := g.value(n.Outputs[0]).Bytes()
	return out > in && out > foldLimit
}

// constant gives the number that v is full of.
func (g *graph) constant(v program.ValueID) (float64, bool) {
	if n := g.producer(v); n != nil && n.Op == program.OpConst {
		return n.Attrs.Value, true
	}
	return 0, false
}

// evaluate gives the number that n's output is full of, if that is known.
func (g *graph) evaluate(n *program.Node) (float64, bool) {
	if len(n.Outputs) != 1 || len(n.Control) > 0 || g.value(n.Outputs[0]).Role == program.RoleOutput {
		return 0, false
	}
	if n.Op == program.OpShape {
		return g.evaluateShape(n)
	}
	if len(n.Inputs) == 0 {
		return 0, false
	}
	for _, v := range n.Inputs {
		if _, ok := g.constant(v); !ok {
			return 0, false
		}
	}
	in := make([]float64, len(n.Inputs))
	for i, v := range n.Inputs {
		x, _ := g.constant(v)
		in[i] = round(g.value(v).DType, x)
	}
	out := g.value(n.Outputs[0]).DType
	if moves(n.Op) {
		return in[0], true
	}
	if out != program.Bool && !exact(out) {
		return 0, false
	}
	for _, v := range n.Inputs {
		if d := g.value(v).DType; d != program.Bool && !exact(d) {
			return 0, false
		}
	}
	x, ok := calculate(n, in, out)
	return round(out, x), ok
}

// evaluateShape is for the shapes that a constant of one number can say.
func (g *graph) evaluateShape(n *program.Node) (float64, bool) {
	s := g.value(n.Inputs[0]).Shape
	if len(s) == 0 || slices.ContainsFunc(s, func(d int64) bool { return d != s[0] }) {
		return 0, false
	}
	return float64(s[0]), true
}

// exact types are those whose sums, products and quotients are the correctly
// rounded ones on every host.
func exact(d program.DType) bool { return d == program.Float32 || d == program.Float64 }

func round(d program.DType, x float64) float64 {
	if d == program.Float32 {
		return float64(float32(x))
	}
	return x
}

// moves says whether an op only puts its first input's elements elsewhere.
func moves(op program.Op) bool {
	switch op {
	case program.OpIdentity, program.OpReshape, program.OpBroadcastTo, program.OpTranspose, program.OpTile,
		program.OpSlice, program.OpStopGradient, program.OpMax:
		return true
	default:
		return false
	}
}

// calculate does an op on numbers that have their types' precision. A float32
// result is right when the float64 one is rounded once more: 53 bits are more
// than twice 24 and two.
func calculate(n *program.Node, in []float64, out program.DType) (float64, bool) {
	truth := func(b bool) (float64, bool) {
		if b {
			return 1, true
		}
		return 0, true
	}
	x, y := in[0], in[0]
	if len(in) > 1 {
		y = in[1]
	}
	switch n.Op {
	case program.OpAdd:
		return x + y, true
	case program.OpSub:
		return x - y, true
	case program.OpMul:
		return x * y, true
	case program.OpDiv:
		return x / y, true
	case program.OpNeg:
		return -x, true
	case program.OpAbs:
		return math.Abs(x), true
	case program.OpSquare:
		return x * x, true
	case program.OpSqrt:
		return math.Sqrt(x), true
	case program.OpReciprocal:
		return 1 / x, true
	case program.OpRelu:
		return max(x, 0), x == x && x != 0 // kernels differ in the sign of zero
	case program.OpMaximum:
		return max(x, y), x == x && y == y && x != y
	case program.OpMinimum:
		return min(x, y), x == x && y == y && x != y
	case program.OpAddN:
		sum := x
		for _, a := range in[1:] {
			sum = round(out, sum+a)
		}
		return sum, true
	case program.OpSelect:
		if x != 0 {
			return y, true
		}
		return in[2], true
	case program.OpCast:
		return x, out.Float() || out == program.Bool && (x == 0 || x == 1)
	case program.OpEqual:
		return truth(x == y)
	case program.OpGreater:
		return truth(x > y)
	case program.OpGreaterEqual:
		return truth(x >= y)
	case program.OpLess:
		return truth(x < y)
	case program.OpLogicalAnd:
		return truth(x != 0 && y != 0)
	case program.OpLogicalNot:
		return truth(x == 0)
	case program.OpIsFinite:
		return truth(!math.IsInf(x, 0) && x == x)
	default:
		return 0, false
	}
}
