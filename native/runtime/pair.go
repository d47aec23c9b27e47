package runtime

import (
	"fmt"
	"slices"

	"tideline/shared/device"
	"tideline/shared/program"
)

// pair is a function that a tape looks into: a forward graph, which returns
// beside the results what the backward graph reads, and a backward graph, from
// that and the results' gradients to the sources'.
type pair struct {
	forward, backward *graph
	results           int   // how many outputs of forward are the function's
	floats            []int // the results that have gradients
	sources           []bind
}

// watched says whether a tape follows anything that goes into a graph.
func (rt *Runtime) watched(g *graph, args []*handle) bool {
	if len(rt.tapes) == 0 {
		return false
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	follows := false
	for _, t := range rt.tapes {
		for _, b := range g.binds {
			if b.v != nil && !slices.Contains(g.writes, b.v) {
				t.readVariable(b.v)
			}
			uid, ok := b.uid(args)
			follows = follows || ok && t.tracked[uid]
		}
	}
	return follows
}

// uid is the value that stands behind a bind in a call.
func (b *bind) uid(args []*handle) (uint64, bool) {
	switch {
	case b.v != nil:
		return b.v.uid, !b.v.frozen
	case b.h != nil:
		return b.h.uid, true
	case b.arg < len(args):
		return args[b.arg].uid, true
	}
	return 0, false
}

// underTape calls a function so that its gradient can be taken.
func (f *Function) underTape(c *concrete, s *signature, args []any, in []*handle) ([]*Tensor, error) {
	key := s.shapes()
	p, ok := c.pairs[key]
	if !ok {
		var err error
		if p, err = f.pair(args); err != nil {
			return nil, err
		}
		c.pairs[key] = p
	}
	rt := f.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	sources := make([]recorded, len(p.sources))
	for i, b := range p.sources {
		uid, _ := b.uid(in)
		v := &p.forward.p.Values[b.value]
		sources[i] = recorded{uid: uid, dtype: v.DType, shape: v.Shape}
	}
	out, err := rt.callGraph(p.forward, in, c)
	if err != nil {
		return nil, err
	}
	results, saved := out[:p.results], out[p.results:]
	for _, t := range rt.tapes {
		t.recordCall(p, sources, results, saved)
	}
	for _, h := range saved {
		rt.drop(h)
	}
	return rt.ownAll(results), nil
}

// recordCall notes a function call.
func (t *Tape) recordCall(p *pair, sources []recorded, results, saved []*handle) {
	if !slices.ContainsFunc(sources, func(r recorded) bool { return t.tracked[r.uid] }) {
		return
	}
	e := entry{pair: p, in: slices.Clone(sources)}
	for _, h := range results {
		e.out = append(e.out, recorded{uid: h.uid, dtype: h.dtype, shape: h.shape})
		if h.dtype.Float() {
			t.tracked[h.uid] = true
		}
	}
	for _, h := range saved {
		h.refs++
		e.saved = append(e.saved, recorded{uid: h.uid, h: h})
	}
	t.entries = append(t.entries, e)
}

// pair traces the body once more and derives it.
func (f *Function) pair(args []any) (*pair, error) {
	p := new(pair)
	_, err := f.trace(args, false, func(t *trace, results []*Tensor, n int) error {
		p.forward = &graph{name: f.name, t: t, args: n, ready: map[string]*instance{}}
		p.results = len(results)
		if err := t.fetch(p.forward, results); err != nil {
			return err
		}
		return t.derive(p, results)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// derive adds the backward pass to a traced body and cuts the program in two.
func (t *trace) derive(p *pair, results []*Tensor) error {
	need := map[program.ValueID]bool{}
	for i, x := range results {
		if x.dtype.Float() {
			p.floats = append(p.floats, i)
			need[x.value] = true
		}
	}
	t.reach(need)
	var wrt []program.ValueID
	for _, b := range t.binds {
		if need[b.value] && t.b.DType(b.value).Float() && (b.v == nil || !b.v.frozen) {
			p.sources = append(p.sources, b)
			wrt = append(wrt, b.value)
		}
	}
	if len(wrt) == 0 {
		return &Error{Kind: device.InvalidArgument, Op: t.f.name, Message: "its results do not depend on what the tape watches"}
	}
	binds := len(t.binds)
	var upstream []program.ValueID
	for k, i := range p.floats {
		upstream = append(upstream, t.enter(fmt.Sprintf("gradient%d", k), results[i].dtype, results[i].shape, bind{arg: k}).value)
	}
	loss, initial := t.loss(results, p.floats, upstream)
	grads := t.b.Derive(loss, initial, wrt)
	leave := t.b.Enter(program.Backward)
	out := make([]program.ValueID, len(grads))
	for i, g := range grads {
		out[i] = t.b.Densify(g, t.b.Shape(wrt[i]))
	}
	leave()
	whole, err := t.build()
	if err != nil {
		return err
	}
	p.forward.binds, p.forward.devices, p.forward.writes = t.binds[:binds:binds], t.devices, t.writes
	c := cut{whole: whole, at: whole.Values[upstream[0]].Producer, upstream: upstream}
	return c.split(p, upstream[0], out)
}

// loss is what the backward pass begins with: the one scalar result, whose
// gradient comes from outside, or the sum of all results times theirs.
func (t *trace) loss(results []*Tensor, floats []int, upstream []program.ValueID) (loss, initial program.ValueID) {
	if first := results[floats[0]]; len(floats) == 1 && len(first.shape) == 0 {
		return first.value, upstream[0]
	}
	for k, i := range floats {
		term := t.b.Op(program.OpSum, plain, t.b.Op(program.OpMul, plain, results[i].value, upstream[k]))
		if k == 0 {
			loss = term
		} else {
			loss = t.b.Op(program.OpAdd, plain, loss, term)
		}
	}
	return loss, program.None
}

// reach adds to need everything that what is in it depends on.
func (t *trace) reach(need map[program.ValueID]bool) {
	for i := len(t.ops) - 1; i >= 0; i-- {
		o := &t.ops[i]
		if o.op != program.OpStopGradient && slices.ContainsFunc(o.out, func(v program.ValueID) bool { return need[v] }) {
			for _, v := range o.in {
				need[v] = true
			}
		}
	}
}

// cut divides a program before a node.
type cut struct {
	whole    *program.Program
	at       program.NodeID
	upstream []program.ValueID

	p     program.Program // the backward program
	ids   map[program.ValueID]program.ValueID
	binds []bind
	saved []program.ValueID
}

func (c *cut) split(p *pair, values program.ValueID, grads []program.ValueID) error {
	c.ids = map[program.ValueID]program.ValueID{}
	c.p = program.Program{Name: c.whole.Name + "/gradients", Batch: c.whole.Batch}
	var nodes []program.Node
	for _, n := range c.whole.Nodes[c.at:] {
		if n.Phase == program.Backward {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		for _, v := range n.Inputs {
			if c.whole.Values[v].Producer < c.at && !slices.Contains(c.saved, v) {
				c.saved = append(c.saved, v)
			}
		}
	}
	for i, v := range append(slices.Clone(c.saved), c.upstream...) {
		c.enter(v, i)
	}
	for _, n := range nodes {
		if err := c.add(n); err != nil {
			return err
		}
	}
	p.backward = &graph{
		name: p.forward.name + " gradient", p: &c.p, t: &trace{rt: p.forward.t.rt}, binds: c.binds, args: len(c.binds), ready: map[string]*instance{},
	}
	for i, v := range grads {
		id, ok := c.ids[v]
		if !ok {
			return &Error{Kind: device.Internal, Op: p.forward.name, Message: "the gradient " + c.whole.Values[v].Name + " is made by no backward op"}
		}
		c.p.Fetches = append(c.p.Fetches, program.Fetch{Name: fmt.Sprintf("gradient%d", i), Value: id})
		x := &c.p.Values[id]
		p.backward.outputs = append(p.backward.outputs, spec{x.DType, x.Shape})
	}
	front := *c.whole
	front.Nodes, front.Values = slices.Clone(front.Nodes[:c.at]), slices.Clone(front.Values[:values])
	front.Fetches = slices.Clone(front.Fetches)
	for i, v := range c.saved {
		front.Fetches = append(front.Fetches, program.Fetch{Name: fmt.Sprintf("saved%d", i), Value: v})
		p.forward.outputs = append(p.forward.outputs, spec{front.Values[v].DType, front.Values[v].Shape})
	}
	p.forward.p = &front
	return nil
}

// enter makes a value argument i of the backward program.
func (c *cut) enter(v program.ValueID, i int) {
	x := c.whole.Values[v]
	id := program.VariableID(len(c.p.Variables))
	name := fmt.Sprintf("arg%d", i)
	c.p.Variables = append(c.p.Variables, program.Variable{Name: name, DType: x.DType, Shape: x.Shape, Frozen: true})
	to := program.ValueID(len(c.p.Values))
	c.p.Values = append(c.p.Values, program.Value{
		Name: name, DType: x.DType, Shape: x.Shape, Producer: program.NodeID(len(c.p.Nodes)), Variable: id, Role: program.RoleVariable,
	})
	c.p.Nodes = append(c.p.Nodes, program.Node{
		Name: name, Op: program.OpVariable, Attrs: program.Attrs{Variable: id, Slots: program.NoSlots}, Outputs: []program.ValueID{to}, Of: program.None,
	})
	c.ids[v] = to
	c.binds = append(c.binds, bind{arg: i, value: to})
}

// add copies a backward node.
func (c *cut) add(n program.Node) error {
	id := program.NodeID(len(c.p.Nodes))
	in, out := n.Inputs, n.Outputs
	n.Inputs, n.Outputs, n.Control, n.Colocate, n.Of = nil, nil, nil, nil, program.None
	for _, v := range in {
		to, ok := c.ids[v]
		if !ok {
			return &Error{Kind: device.Internal, Op: n.Name, Message: "the backward pass reads " + c.whole.Values[v].Name + ", which is no part of it"}
		}
		n.Inputs = append(n.Inputs, to)
	}
	for _, v := range out {
		x := c.whole.Values[v]
		x.Producer = id
		c.ids[v] = program.ValueID(len(c.p.Values))
		n.Outputs = append(n.Outputs, c.ids[v])
		c.p.Values = append(c.p.Values, x)
	}
	c.p.Nodes = append(c.p.Nodes, n)
	return nil
}
