package rewrite

import (
	"slices"
	"strconv"

	"tideline/shared/program"
)

// graph is a program that is being changed. Nodes and values keep their ids
// until finish, which drops what is dead and numbers the rest anew.
type graph struct {
	p     program.Program
	order []program.NodeID // the order in which finish emits; a node that an earlier one needs comes earlier
	dead  []bool           // by node
	names map[string]bool  // of all nodes; made when the first is added
}

// edit makes a copy of p that can be changed.
func edit(p *program.Program) *graph {
	g := &graph{p: *p}
	g.p.Nodes = slices.Clone(p.Nodes)
	g.p.Values = slices.Clone(p.Values)
	g.p.Fetches = slices.Clone(p.Fetches)
	g.order = make([]program.NodeID, len(p.Nodes))
	g.dead = make([]bool, len(p.Nodes))
	lists := listsFor(p)
	for i := range g.p.Nodes {
		n := &g.p.Nodes[i]
		n.Inputs = append(lists.values(len(n.Inputs)), n.Inputs...)
		n.Control = append(lists.nodes(len(n.Control)), n.Control...)
		g.order[i] = program.NodeID(i)
	}
	return g
}

// look is a graph over p itself, which must not be changed.
func look(p *program.Program) *graph {
	return &graph{p: *p, dead: make([]bool, len(p.Nodes))}
}

// lists cuts the short lists of nodes from two long ones.
type lists struct {
	v []program.ValueID
	n []program.NodeID
}

// listsFor has room for the inputs, outputs and control edges of p.
func listsFor(p *program.Program) *lists {
	values, nodes := 0, 0
	for i := range p.Nodes {
		values += len(p.Nodes[i].Inputs) + len(p.Nodes[i].Outputs)
		nodes += len(p.Nodes[i].Control)
	}
	return &lists{make([]program.ValueID, values), make([]program.NodeID, nodes)}
}

func (l *lists) values(n int) []program.ValueID {
	if n > len(l.v) {
		return make([]program.ValueID, 0, n)
	}
	out := l.v[:0:n]
	l.v = l.v[n:]
	return out
}

func (l *lists) nodes(n int) []program.NodeID {
	if n > len(l.n) {
		return make([]program.NodeID, 0, n)
	}
	out := l.n[:0:n]
	l.n = l.n[n:]
	return out
}

func (g *graph) node(id program.NodeID) *program.Node { return &g.p.Nodes[id] }

func (g *graph) value(id program.ValueID) *program.Value { return &g.p.Values[id] }

// producer is the node that makes v, nil for an input of the program.
func (g *graph) producer(v program.ValueID) *program.Node {
	if n := g.value(v).Producer; n != program.None {
		return g.node(n)
	}
	return nil
}

// unique makes a name that no node has yet.
func (g *graph) unique(name string) string {
	if g.names == nil {
		g.names = make(map[string]bool, 2*len(g.p.Nodes))
		for i := range g.p.Nodes {
			g.names[g.p.Nodes[i].Name] = true
		}
	}
	full := name
	for i := 1; g.names[full]; i++ {
		full = name + "_" + strconv.Itoa(i)
	}
	g.names[full] = true
	return full
}

// add makes a node; its outputs are what its op infers. It is emitted just
// before the first node that needs it, unless it is put in the order.
func (g *graph) add(n program.Node, role program.Role) (program.NodeID, error) {
	def, err := program.Lookup(n.Op)
	if err != nil {
		return program.None, err
	}
	n.Name = g.unique(n.Name)
	specs, err := def.Infer(&g.p, &n)
	if err != nil {
		return program.None, err
	}
	id := program.NodeID(len(g.p.Nodes))
	n.Outputs = nil
	for i, s := range specs {
		v := program.Value{Name: n.Name, DType: s.DType, Shape: s.Shape, Producer: id, Index: i, Variable: program.None, Role: role}
		if i > 0 {
			v.Name += ":" + strconv.Itoa(i)
		}
		n.Outputs = append(n.Outputs, program.ValueID(len(g.p.Values)))
		g.p.Values = append(g.p.Values, v)
	}
	g.p.Nodes = append(g.p.Nodes, n)
	g.dead = append(g.dead, false)
	return id, nil
}

// after puts a new node into the order behind another one.
func (g *graph) after(id, behind program.NodeID) {
	g.order = slices.Insert(g.order, slices.Index(g.order, behind)+1, id)
}

// readers lists, by value, the living nodes that take it, in program order, a
// node once for each input.
func (g *graph) readers() [][]program.NodeID {
	out := make([][]program.NodeID, len(g.p.Values))
	for i := range g.p.Nodes {
		if g.dead[i] {
			continue
		}
		for _, v := range g.p.Nodes[i].Inputs {
			out[v] = append(out[v], program.NodeID(i))
		}
	}
	return out
}

// fetched says, by value, whether the host reads it.
func (g *graph) fetched() []bool {
	out := make([]bool, len(g.p.Values))
	for _, f := range g.p.Fetches {
		out[f.Value] = true
	}
	return out
}

// root is the value whose buffer v is: v itself unless an alias made it.
func root(p *program.Program, v program.ValueID) program.ValueID {
	for p.Values[v].Producer != program.None {
		n := &p.Nodes[p.Values[v].Producer]
		if def, err := program.Lookup(n.Op); err != nil || !def.Alias {
			return v
		}
		v = n.Inputs[0]
	}
	return v
}

// ofVariable says whether v is a variable's own buffer, or an alias of it.
func (g *graph) ofVariable(v program.ValueID) bool {
	return g.value(root(&g.p, v)).Variable != program.None
}

func stateful(n *program.Node) bool {
	def, err := program.Lookup(n.Op)
	return err == nil && def.Stateful
}

// renaming collects what stands in for removed nodes and values, and is
// applied to the whole graph at once.
type renaming struct {
	value map[program.ValueID]program.ValueID
	node  map[program.NodeID]program.NodeID // None: nobody needs to wait any more
}

func newRenaming() *renaming {
	return &renaming{map[program.ValueID]program.ValueID{}, map[program.NodeID]program.NodeID{}}
}

func (r *renaming) of(v program.ValueID) program.ValueID {
	for {
		to, ok := r.value[v]
		if !ok {
			return v
		}
		v = to
	}
}

func (r *renaming) ofNode(n program.NodeID) program.NodeID {
	for n != program.None {
		to, ok := r.node[n]
		if !ok {
			break
		}
		n = to
	}
	return n
}

// apply lets everybody read and wait for the stand-ins.
func (r *renaming) apply(g *graph) {
	if len(r.node) == 0 {
		return
	}
	for i := range g.p.Nodes {
		n := &g.p.Nodes[i]
		for j, v := range n.Inputs {
			n.Inputs[j] = r.of(v)
		}
		kept := n.Control[:0]
		for _, c := range n.Control {
			if c = r.ofNode(c); c != program.None && !slices.Contains(kept, c) {
				kept = append(kept, c)
			}
		}
		n.Control = kept
		if n.Of != program.None {
			n.Of = r.ofNode(n.Of)
		}
	}
	for i := range g.p.Fetches {
		f := &g.p.Fetches[i]
		if to := r.of(f.Value); to != f.Value {
			f.Value = to
			g.value(to).Role = program.RoleOutput
		}
	}
}

// bypass removes node n, whose only output is the same as value to.
func (r *renaming) bypass(g *graph, n program.NodeID, to program.ValueID) {
	r.value[g.node(n).Outputs[0]] = to
	r.node[n] = g.value(to).Producer
	g.dead[n] = true
}

// merge removes node n, whose outputs are those of node to.
func (r *renaming) merge(g *graph, n, to program.NodeID) {
	for i, v := range g.node(n).Outputs {
		r.value[v] = g.node(to).Outputs[i]
	}
	r.node[n] = to
	g.dead[n] = true
}
