package rewrite

import (
	"slices"
	"strings"

	"tideline/shared/program"
)

// recomputer lets backward nodes read copies of forward nodes that run in the
// backward pass, so that what the forward nodes gave can die early.
//
// The executor runs what is ready, first in first out, and all that a copy
// reads is there long before: so a control edge holds each group of copies
// until the gradient that the group's first reader waits for is there.
type recomputer struct {
	g     *graph
	group []int32 // by node: which copies run together; -1 is never copied
	keep  []bool  // by value: is read as it is although its node is in a group

	late    []bool // by node: cannot run before the forward pass is over
	last    program.NodeID
	trigger map[int32][]program.NodeID
	copyOf  map[program.NodeID]program.NodeID
	copies  int
}

// noGroup gives every node to no group.
func noGroup(g *graph) []int32 {
	out := make([]int32, len(g.p.Nodes))
	for i := range out {
		out[i] = -1
	}
	return out
}

// recomputable says which nodes may run twice: forward ops that change nothing
// and read no variable that is changed before the backward pass.
func (g *graph) recomputable() []bool {
	out := make([]bool, len(g.p.Nodes))
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		out[i] = n.Phase == program.Forward && n.Op != program.OpVariable && n.Op != program.OpConst && !stateful(n)
	}
	for i := range g.p.Nodes {
		n := g.node(program.NodeID(i))
		if !stateful(n) || n.Phase == program.Update {
			continue
		}
		for _, c := range n.Control {
			// Batch norm in training only asks the moving average for its shape.
			if at := g.node(c); at.Op != program.OpFusedBatchNorm || !at.Attrs.Training {
				out[c] = false
			}
		}
	}
	return out
}

// run makes the copies and gives their number.
func (r *recomputer) run() (int, error) {
	g := r.g
	r.trigger, r.copyOf = map[int32][]program.NodeID{}, map[program.NodeID]program.NodeID{}
	r.findLate()
	for i := range r.group { // copies are appended behind
		n := g.node(program.NodeID(i))
		if n.Phase != program.Backward {
			continue
		}
		for j, v := range g.node(program.NodeID(i)).Inputs {
			c, err := r.stand(v, program.NodeID(i))
			if err != nil {
				return 0, err
			}
			g.node(program.NodeID(i)).Inputs[j] = c
		}
	}
	r.guard()
	return r.copies, nil
}

// findLate finds the last forward node that the backward pass reads from, and
// what depends on it.
func (r *recomputer) findLate() {
	g := r.g
	r.last = program.None
	for i := range r.group {
		n := g.node(program.NodeID(i))
		if n.Phase != program.Backward {
			continue
		}
		for _, v := range n.Inputs {
			if p := g.value(v).Producer; p != program.None && g.node(p).Phase == program.Forward {
				r.last = max(r.last, p)
			}
		}
	}
	r.late = make([]bool, len(r.group))
	for i := range r.group {
		id := program.NodeID(i)
		r.late[i] = id == r.last || r.last != program.None &&
			slices.ContainsFunc(g.node(id).Inputs, func(v program.ValueID) bool {
				p := g.value(v).Producer
				return p != program.None && r.late[p]
			})
	}
}

// stand gives what backward node reader reads in place of v.
func (r *recomputer) stand(v program.ValueID, reader program.NodeID) (program.ValueID, error) {
	n := r.g.value(v).Producer
	if n == program.None || int(n) >= len(r.group) || r.group[n] < 0 || r.keep[v] {
		return v, nil
	}
	if _, ok := r.trigger[r.group[n]]; !ok {
		r.trigger[r.group[n]] = r.triggers(reader)
	}
	c, err := r.copy(n)
	if err != nil {
		return v, err
	}
	return r.g.node(c).Outputs[r.g.value(v).Index], nil
}

// triggers are the nodes that reader waits for and that come after the forward
// pass, or that pass's end where there is none.
func (r *recomputer) triggers(reader program.NodeID) []program.NodeID {
	var out []program.NodeID
	for _, v := range r.g.node(reader).Inputs {
		p := r.g.value(v).Producer
		if p != program.None && int(p) < len(r.late) && r.late[p] && r.g.node(p).Phase == program.Backward && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if out == nil && r.last != program.None {
		out = append(out, r.last)
	}
	return out
}

// copy makes node n once more, and before it what it needs of its kind.
func (r *recomputer) copy(n program.NodeID) (program.NodeID, error) {
	if c, ok := r.copyOf[n]; ok {
		return c, nil
	}
	g := r.g
	c := *g.node(n)
	c.Inputs, c.Control = slices.Clone(c.Inputs), slices.Clone(c.Control)
	held := false // by an input that is a copy itself
	for i, v := range c.Inputs {
		m := g.value(v).Producer
		if m == program.None || r.group[m] < 0 || r.keep[v] {
			continue
		}
		before, err := r.copy(m)
		if err != nil {
			return program.None, err
		}
		c.Inputs[i] = g.node(before).Outputs[g.value(v).Index]
		held = held || r.group[m] == r.group[n]
	}
	if !held {
		c.Control = append(c.Control, r.trigger[r.group[n]]...)
	}
	scope, name := split(c.Name)
	c.Name, c.Phase, c.Of = scope+"recompute/"+name, program.Backward, n
	id, err := g.add(c, program.RoleActivation)
	if err != nil {
		return program.None, err
	}
	r.copyOf[n] = id
	r.copies++
	return id, nil
}

// split cuts a node's name behind its scope.
func split(name string) (scope, last string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}

// guard lets what changes a variable wait for the copies that read it, as it
// does for the nodes that were copied.
func (r *recomputer) guard() {
	for i := range r.group {
		n := r.g.node(program.NodeID(i))
		if !stateful(n) || n.Phase != program.Update {
			continue
		}
		for _, c := range slices.Clone(n.Control) {
			if again, ok := r.copyOf[c]; ok {
				n.Control = append(n.Control, again)
			}
		}
	}
}

// keepCrossing marks the values of groups that must stay because a forward
// node outside of the value's group reads them, or the host, and everything
// that lies in the same buffer.
func (g *graph) keepCrossing(group []int32) []bool {
	keep := make([]bool, len(g.p.Values))
	mark := func(v program.ValueID) { keep[root(&g.p, v)] = true }
	for i := range group {
		n := g.node(program.NodeID(i))
		if n.Phase != program.Forward || stateful(n) {
			continue
		}
		for _, v := range n.Inputs {
			if p := g.value(v).Producer; p != program.None && group[p] != group[i] {
				mark(v)
			}
		}
	}
	for _, f := range g.p.Fetches {
		mark(f.Value)
	}
	for v := range keep {
		keep[v] = keep[root(&g.p, program.ValueID(v))]
	}
	return keep
}
