package rewrite

import (
	"strconv"

	"tideline/shared/program"
)

// Arithmetic removes ops that change nothing (identities, reshapes to the same
// shape, transposes that cancel, a product with 1), gives cheaper forms where
// they are the same to the bit, and merges nodes that compute the same from
// the same. It gives the number of nodes that went.
func Arithmetic(p *program.Program) (*program.Program, int, error) {
	g := edit(p)
	r := newRenaming()
	fetched := g.fetched()
	for i := range g.p.Nodes {
		g.shorten(r, program.NodeID(i), fetched)
	}
	gone := len(r.node)
	r.apply(g)
	gone += g.mergeEqual()
	gone += g.prune()
	if gone == 0 && !g.squares() {
		return p, 0, nil
	}
	g.squares()
	out, err := g.finish()
	return out, gone, err
}

// shorten removes node id if it changes nothing.
func (g *graph) shorten(r *renaming, id program.NodeID, fetched []bool) {
	n := g.node(id)
	if len(n.Outputs) != 1 || len(n.Inputs) == 0 || len(n.Control) > 0 || n.Device != "" || len(n.Colocate) > 0 {
		return
	}
	for i, v := range n.Inputs {
		n.Inputs[i] = r.of(v)
	}
	if n.Op == program.OpReshape {
		// Of a reshape's input the first shape does not matter.
		if inner := g.producer(n.Inputs[0]); inner != nil && inner.Op == program.OpReshape && len(inner.Control) == 0 && !g.ofVariable(inner.Inputs[0]) {
			n.Inputs[0] = r.of(inner.Inputs[0])
		}
	}
	to, ok := g.same(r, n)
	if !ok || g.ofVariable(to) {
		return // a reader of the variable must be known to who changes it
	}
	if fetched[n.Outputs[0]] {
		if m := g.producer(to); m == nil || m.Op == program.OpConst || fetched[to] {
			return
		}
		fetched[to] = true
	}
	r.bypass(g, id, to)
}

// same gives the value that n's output equals.
func (g *graph) same(r *renaming, n *program.Node) (program.ValueID, bool) {
	x := n.Inputs[0]
	in, out := g.value(x), g.value(n.Outputs[0])
	equal := in.DType == out.DType && in.Shape.Equal(out.Shape)
	switch n.Op {
	case program.OpIdentity, program.OpStopGradient:
		return x, true
	case program.OpReshape, program.OpCast, program.OpBroadcastTo, program.OpTile, program.OpSlice, program.OpPad:
		return x, equal
	case program.OpAddN, program.OpConcat:
		return x, len(n.Inputs) == 1
	case program.OpTranspose:
		return g.untransposed(r, n)
	case program.OpMul:
		if g.is(x, 1) && g.value(n.Inputs[1]).Shape.Equal(out.Shape) {
			return n.Inputs[1], true
		}
		return x, equal && g.is(n.Inputs[1], 1)
	case program.OpDiv:
		return x, equal && g.is(n.Inputs[1], 1)
	case program.OpSub:
		return x, equal && g.is(n.Inputs[1], 0)
	default:
		return x, false
	}
}

func (g *graph) is(v program.ValueID, x float64) bool {
	c, ok := g.constant(v)
	return ok && c == x
}

// untransposed gives the value that a transpose comes back to.
func (g *graph) untransposed(r *renaming, n *program.Node) (program.ValueID, bool) {
	x, axes := n.Inputs[0], n.Attrs.Axes
	if ordered(axes) {
		return x, true
	}
	inner := g.producer(x)
	if inner == nil || inner.Op != program.OpTranspose || len(inner.Control) > 0 {
		return x, false
	}
	whole := make([]int64, len(axes))
	for i, a := range axes {
		whole[i] = inner.Attrs.Axes[a]
	}
	return r.of(inner.Inputs[0]), ordered(whole)
}

func ordered(axes []int64) bool {
	for i, a := range axes {
		if a != int64(i) {
			return false
		}
	}
	return true
}

// squares gives x*x the form that has one input, which it may take over.
func (g *graph) squares() bool {
	changed := false
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		if !g.dead[i] && n.Op == program.OpMul && n.Inputs[0] == n.Inputs[1] && g.value(n.Inputs[0]).DType.Float() {
			n.Op, n.Inputs = program.OpSquare, n.Inputs[:1]
			changed = true
		}
	}
	return changed
}

// mergeEqual merges nodes with one op, the same inputs and the same arguments.
func (g *graph) mergeEqual() int {
	r := newRenaming()
	fetched := g.fetched()
	first := make(map[string][]program.NodeID, len(g.p.Nodes))
	var key []byte
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		if g.dead[i] || !mergeable(n) {
			continue
		}
		key = append(append(key[:0], n.Op...), n.Device...)
		for j, v := range n.Inputs {
			n.Inputs[j] = r.of(v)
			key = append(strconv.AppendInt(key, int64(n.Inputs[j]), 36), ',')
		}
		if n.Op == program.OpConst {
			key = strconv.AppendFloat(key, n.Attrs.Value, 'g', -1, 64)
		}
		to := program.NodeID(program.None)
		for _, o := range first[string(key)] {
			if g.equal(n, g.node(o), fetched) {
				to = o
				break
			}
		}
		if to == program.None {
			first[string(key)] = append(first[string(key)], program.NodeID(i))
			continue
		}
		r.merge(g, program.NodeID(i), to)
	}
	r.apply(g)
	return len(r.node)
}

// mergeable nodes give the same whenever they run. Draws of random numbers
// would, too, by their seeds, but whoever wrote two wants two.
func mergeable(n *program.Node) bool {
	switch n.Op {
	case program.OpVariable, program.OpDropout, program.OpRandomUniform, program.OpSwapOut, program.OpSwapIn:
		return false
	default:
		return len(n.Control) == 0 && len(n.Colocate) == 0 && !stateful(n)
	}
}

func (g *graph) equal(a, b *program.Node, fetched []bool) bool {
	if a.Op != b.Op || a.Device != b.Device || len(a.Outputs) != len(b.Outputs) || !a.Attrs.Equal(&b.Attrs) {
		return false
	}
	for i := range a.Outputs {
		x, y := g.value(a.Outputs[i]), g.value(b.Outputs[i])
		if fetched[a.Outputs[i]] || x.DType != y.DType || !x.Shape.Equal(y.Shape) {
			return false
		}
	}
	return true
}
