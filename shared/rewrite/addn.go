package rewrite

import (
	"slices"

	"tideline/shared/program"
)

// AccumulateSums turns every sum of more than two tensors into a chain of
// additions into one buffer, so that a summand can die when it is added, not
// when all are there. Grappler does so on a device whose modelled peak exceeds
// 80 % of its memory, for the types that it has a temporary variable of. Half
// precision is rounded at every step then, as there. It gives the number of
// sums.
func AccumulateSums(p *program.Program, deviceBytes int64) (*program.Program, int, error) {
	if peak, _ := LiveBytes(p); deviceBytes <= 0 || peak <= deviceBytes-deviceBytes/5 {
		return p, 0, nil
	}
	g := edit(p)
	sums := 0
	for i := range p.Nodes {
		n := g.node(program.NodeID(i))
		if n.Op != program.OpAddN || len(n.Inputs) <= 2 || !accumulates(g.value(n.Outputs[0]).DType) {
			continue
		}
		inputs := slices.Clone(n.Inputs)
		sum := inputs[0]
		role := g.value(n.Outputs[0]).Role
		if role == program.RoleOutput {
			role = program.RoleActivation
		}
		for _, v := range inputs[1 : len(inputs)-1] {
			add := *g.node(program.NodeID(i))
			add.Name, add.Op, add.Inputs, add.Control = add.Name+"/accumulate", program.OpAdd, []program.ValueID{sum, v}, nil
			id, err := g.add(add, role)
			if err != nil {
				return nil, 0, err
			}
			sum = g.node(id).Outputs[0]
		}
		n = g.node(program.NodeID(i))
		n.Op, n.Inputs = program.OpAdd, []program.ValueID{sum, inputs[len(inputs)-1]}
		sums++
	}
	if sums == 0 {
		return p, 0, nil
	}
	out, err := g.finish()
	return out, sums, err
}

func accumulates(d program.DType) bool {
	return d == program.Float16 || d == program.Float32 || d == program.Float64 || d == program.Int64
}
