package rewrite

import (
	"slices"

	"tideline/shared/program"
)

// Prune leaves out what neither a fetch nor an op that changes a variable
// needs. Inputs stay: the pipeline feeds them whether they are read or not.
func Prune(p *program.Program) (*program.Program, int, error) {
	if look(p).prune() == 0 {
		return p, 0, nil
	}
	g := edit(p)
	removed := g.prune()
	out, err := g.finish()
	return out, removed, err
}

// prune marks what is not needed as dead and gives its number.
func (g *graph) prune() int {
	needed := make([]bool, len(g.p.Nodes))
	var stack []program.NodeID
	need := func(n program.NodeID) {
		if n != program.None && !needed[n] {
			needed[n] = true
			stack = append(stack, n)
		}
	}
	for i := range g.p.Nodes {
		if !g.dead[i] && stateful(g.node(program.NodeID(i))) {
			need(program.NodeID(i))
		}
	}
	for _, f := range g.p.Fetches {
		need(g.value(f.Value).Producer)
	}
	for len(stack) > 0 {
		n := g.node(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		for _, v := range n.Inputs {
			need(g.value(v).Producer)
		}
		if stateful(n) {
			// A node that only a change of a variable waits for need not run.
			continue
		}
		for _, c := range n.Control {
			need(c)
		}
	}
	removed := 0
	for i := range needed {
		if !needed[i] && !g.dead[i] {
			g.dead[i] = true
			removed++
		}
	}
	return removed
}

// Dependencies leaves out control edges that say nothing new: those to a node
// that must have run anyway, because an input or another edge leads to it.
func Dependencies(p *program.Program) (*program.Program, int, error) {
	if !slices.ContainsFunc(p.Nodes, func(n program.Node) bool { return len(n.Control) > 0 }) {
		return p, 0, nil
	}
	g := edit(p)
	seen := make([]int32, len(p.Nodes)) // by node: the last walk that reached it
	removed := 0
	for i := range g.p.Nodes {
		n := &g.p.Nodes[i]
		if len(n.Control) == 0 {
			continue
		}
		before := len(n.Control)
		slices.Sort(n.Control)
		n.Control = slices.Compact(n.Control)
		g.reach(program.NodeID(i), n.Control[0], seen)
		n.Control = slices.DeleteFunc(n.Control, func(c program.NodeID) bool { return seen[c] == int32(i)+1 })
		removed += before - len(n.Control)
	}
	if removed == 0 {
		return p, 0, nil
	}
	out, err := g.finish()
	return out, removed, err
}

// reach marks what must have run before node id for another reason than a
// direct control edge of its own; nodes before lowest are of no interest.
func (g *graph) reach(id, lowest program.NodeID, seen []int32) {
	mark := int32(id) + 1
	var stack []program.NodeID
	visit := func(n program.NodeID) {
		if n >= lowest && seen[n] != mark {
			seen[n] = mark
			stack = append(stack, n)
		}
	}
	behind := func(n *program.Node) {
		for _, v := range n.Inputs {
			visit(g.value(v).Producer)
		}
		for _, c := range n.Control {
			visit(c)
		}
	}
	for _, v := range g.node(id).Inputs {
		visit(g.value(v).Producer)
	}
	for _, c := range g.node(id).Control {
		behind(g.node(c))
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		behind(g.node(n))
	}
}
