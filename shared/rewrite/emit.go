package rewrite

import (
	"fmt"
	"slices"

	"tideline/shared/program"
)

// finish gives the changed program, in an order in which everything is made
// before it is used.
func (g *graph) finish() (*program.Program, error) {
	e := emitter{g: g, node: make([]program.NodeID, len(g.p.Nodes)), value: make([]program.ValueID, len(g.p.Values))}
	e.out = &program.Program{Name: g.p.Name, Batch: g.p.Batch, Variables: g.p.Variables}
	e.lists = listsFor(&g.p)
	e.out.Nodes = make([]program.Node, 0, len(g.p.Nodes))
	e.out.Values = make([]program.Value, 0, len(g.p.Values))
	for i := range e.node {
		e.node[i] = waiting
	}
	for _, v := range g.p.Inputs {
		e.out.Inputs = append(e.out.Inputs, e.emitValue(v, program.None))
	}
	for _, id := range g.order {
		if g.dead[id] {
			continue
		}
		if err := e.emit(id); err != nil {
			return nil, fmt.Errorf("rewrite %s: %w", g.p.Name, err)
		}
	}
	for _, f := range g.p.Fetches {
		e.out.Fetches = append(e.out.Fetches, program.Fetch{Name: f.Name, Value: e.value[f.Value]})
	}
	return e.out, nil
}

// States of a node on its way out, besides its new id.
const (
	waiting  program.NodeID = -2 - iota
	emitting                // what it needs is being emitted
)

type emitter struct {
	g     *graph
	out   *program.Program
	node  []program.NodeID  // by old id
	value []program.ValueID // by old id
	lists *lists
}

func (e *emitter) emitValue(v program.ValueID, producer program.NodeID) program.ValueID {
	x := e.g.p.Values[v]
	x.Producer = producer
	e.value[v] = program.ValueID(len(e.out.Values))
	e.out.Values = append(e.out.Values, x)
	return e.value[v]
}

// emit writes a node after all that it needs.
func (e *emitter) emit(id program.NodeID) error {
	switch e.node[id] {
	case waiting:
	case emitting:
		return fmt.Errorf("node %s waits for itself", e.g.node(id).Name)
	default:
		return nil
	}
	e.node[id] = emitting
	n := *e.g.node(id)
	if e.g.dead[id] {
		return fmt.Errorf("node %s is needed but was removed", n.Name)
	}
	for _, v := range n.Inputs {
		if p := e.g.value(v).Producer; p != program.None {
			if err := e.emit(p); err != nil {
				return err
			}
		}
	}
	control := e.lists.nodes(len(n.Control))
	for _, c := range n.Control {
		if e.g.dead[c] {
			continue // it does not run
		}
		if err := e.emit(c); err != nil {
			return err
		}
		control = append(control, e.node[c])
	}
	e.node[id] = program.NodeID(len(e.out.Nodes))
	n.Control = slices.Clip(control)
	inputs, outputs := e.lists.values(len(n.Inputs)), e.lists.values(len(n.Outputs))
	for _, v := range n.Inputs {
		inputs = append(inputs, e.value[v])
	}
	for _, v := range n.Outputs {
		outputs = append(outputs, e.emitValue(v, e.node[id]))
	}
	n.Inputs, n.Outputs = inputs, outputs
	if n.Of != program.None {
		n.Of = max(e.node[n.Of], program.None) // gone, or not yet there: of nothing
		if n.Of >= e.node[id] {
			n.Of = program.None
		}
	}
	e.out.Nodes = append(e.out.Nodes, n)
	return nil
}
