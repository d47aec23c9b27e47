package rewrite

import (
	"slices"

	"tideline/shared/program"
)

// cheapProduct is the FLOPs for each byte of output up to which a matrix
// product counts as cheap to run again: those of attention, whose inner extent
// is one head's, are; those of a layer's weights are not.
const cheapProduct = 64

// cheap says whether selective checkpointing may run a node again.
func (g *graph) cheap(n *program.Node) bool {
	switch n.Op {
	case program.OpSoftmax, program.OpLogSoftmax, program.OpDropout, program.OpFusedBatchNorm, program.OpLayerNorm,
		program.OpTanh, program.OpRelu, program.OpRelu6, program.OpLeakyRelu, program.OpSigmoid, program.OpGelu,
		program.OpExp, program.OpLog, program.OpSqrt, program.OpRsqrt, program.OpSquare, program.OpNeg, program.OpAbs,
		program.OpReciprocal, program.OpErf, program.OpBiasAdd, program.OpCast, program.OpTranspose, program.OpTile,
		program.OpReshape, program.OpIdentity, program.OpBroadcastTo, program.OpStopGradient:
		return true
	case program.OpMul, program.OpAdd, program.OpSub, program.OpDiv:
		// With a number or a weight it is a step of a chain; a sum of two
		// activations would tie all residual blocks into one.
		return slices.ContainsFunc(n.Inputs, func(v program.ValueID) bool {
			m := g.producer(v)
			return m != nil && (m.Op == program.OpConst || m.Op == program.OpVariable)
		})
	case program.OpBatchMatMul:
		return g.p.Cost(n).FLOPs <= cheapProduct*g.value(n.Outputs[0]).Bytes()
	default:
		return false
	}
}

// recomputeSelected runs cheap nodes again whose results the backward pass
// reads, where that frees more than the inputs it must keep for it.
func recomputeSelected(p *program.Program) (*program.Program, int, error) {
	g := edit(p)
	group := noGroup(g)
	for i, may := range g.recomputable() {
		if may && g.cheap(g.node(program.NodeID(i))) {
			group[i] = int32(i)
		}
	}
	g.connect(group)
	g.dropUnprofitable(group)
	r := recomputer{g: g, group: group, keep: make([]bool, len(g.p.Values))}
	for _, f := range g.p.Fetches {
		r.keep[f.Value] = true
	}
	return r.finish(p)
}

// connect gives nodes of groups that read each other's values one group: the
// lowest id of any of them.
func (g *graph) connect(group []int32) {
	var find func(int32) int32
	find = func(n int32) int32 {
		if group[n] != n {
			group[n] = find(group[n])
		}
		return group[n]
	}
	for i := range group {
		if group[i] < 0 {
			continue
		}
		for _, v := range g.p.Nodes[i].Inputs {
			if m := g.value(v).Producer; m != program.None && group[m] >= 0 {
				a, b := find(int32(i)), find(int32(m))
				group[max(a, b)] = min(a, b)
			}
		}
	}
	for i := range group {
		if group[i] >= 0 {
			group[i] = find(int32(i))
		}
	}
}

// dropUnprofitable leaves groups alone that would have to keep as much as they
// free: the relu of a residual sum, whose sum is kept by nobody else.
func (g *graph) dropUnprofitable(group []int32) {
	gain := make([]int64, len(group))
	kept := make([]bool, len(g.p.Values)) // by buffer: a backward node reads it
	for i := range group {
		n := g.node(program.NodeID(i))
		if n.Phase != program.Backward {
			continue
		}
		for _, v := range n.Inputs {
			b := root(&g.p, v)
			m := g.value(b).Producer
			if !kept[b] && m != program.None && group[m] >= 0 {
				gain[group[m]] += g.value(b).Bytes()
			}
			kept[b] = true
		}
	}
	for i := range group {
		if group[i] < 0 {
			continue
		}
		for _, v := range g.p.Nodes[i].Inputs {
			b := root(&g.p, v)
			m := g.value(b).Producer
			if m == program.None || group[m] >= 0 || g.value(b).Variable != program.None || g.node(m).Op == program.OpConst {
				continue
			}
			if !kept[b] {
				kept[b] = true
				gain[group[i]] -= g.value(b).Bytes()
			}
		}
	}
	for i := range group {
		if group[i] >= 0 && gain[group[i]] <= 0 {
			group[i] = -1
		}
	}
}

// RecomputeMode is Grappler's choice of what to recompute.
type RecomputeMode uint8

// The modes.
const (
	// RecomputeOff recomputes nothing.
	RecomputeOff RecomputeMode = iota
	// RecomputeHeuristics takes the cheap ops of Grappler's list that feed the
	// backward pass.
	RecomputeHeuristics
	// RecomputeManual takes the nodes whose names match a pattern, in place of
	// the attribute _recompute_hint.
	RecomputeManual
)

// cheapToGrappler is the list of its memory optimizer.
func cheapToGrappler(op program.Op) bool {
	switch op {
	case program.OpAdd, program.OpAddN, program.OpBiasAdd, program.OpCast, program.OpFusedBatchNorm, program.OpLeakyRelu,
		program.OpMul, program.OpNeg, program.OpDiv, program.OpReciprocal, program.OpRelu, program.OpRelu6,
		program.OpReshape, program.OpRsqrt, program.OpSigmoid, program.OpSqrt, program.OpSquare,
		program.OpSquaredDifference, program.OpSub, program.OpTile, program.OpTranspose:
		return true
	default:
		return false
	}
}

// Recompute is Grappler's recomputation. Unlike Selective it does not weigh
// what a copy frees against what must be kept for it. In patterns * stands for
// any text. It gives the number of nodes that run twice.
func Recompute(p *program.Program, mode RecomputeMode, patterns []string) (*program.Program, int, error) {
	if mode == RecomputeOff {
		return p, 0, nil
	}
	g := edit(p)
	group := noGroup(g)
	for i, may := range g.recomputable() {
		n := g.node(program.NodeID(i))
		if may && (mode == RecomputeHeuristics && cheapToGrappler(n.Op) || mode == RecomputeManual && matchAny(patterns, n.Name)) {
			group[i] = int32(i)
		}
	}
	g.connect(group)
	r := recomputer{g: g, group: group, keep: make([]bool, len(g.p.Values))}
	for _, f := range g.p.Fetches {
		r.keep[f.Value] = true
	}
	return r.finish(p)
}
