package rewrite

import (
	"slices"

	"tideline/shared/program"
)

// Remap fuses what the op table has one op for: a square of a difference. The
// fusions that Grappler is known for (convolution or matrix product with bias
// and activation, batch norm of inference folded into them) have no op here.
// It gives the number of intermediates that went.
func Remap(p *program.Program) (*program.Program, int, error) {
	if !slices.ContainsFunc(p.Nodes, func(n program.Node) bool { return n.Op == program.OpSub }) {
		return p, 0, nil
	}
	g := edit(p)
	reads, fetched := g.readers(), g.fetched()
	fused := 0
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		square := n.Op == program.OpSquare || n.Op == program.OpMul && n.Inputs[0] == n.Inputs[1]
		if !square || len(n.Control) > 0 {
			continue
		}
		v := n.Inputs[0]
		sub := g.producer(v)
		if sub == nil || sub.Op != program.OpSub || sub.Device != n.Device || len(sub.Control) > 0 || fetched[v] || len(reads[v]) != len(n.Inputs) {
			continue
		}
		if d := g.value(v).DType; !exact(d) || g.ofVariable(sub.Inputs[0]) || g.ofVariable(sub.Inputs[1]) {
			continue
		}
		n.Op, n.Inputs = program.OpSquaredDifference, sub.Inputs
		g.dead[g.value(v).Producer] = true
		fused++
	}
	if fused == 0 {
		return p, 0, nil
	}
	out, err := g.finish()
	return out, fused, err
}
