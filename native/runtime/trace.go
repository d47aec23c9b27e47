package runtime

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// trace is a function's body becoming a graph. Every value from outside enters
// as a variable of the program, whose memory is bound for each call: the
// program's variables, the arguments, and tensors that the body captured.
type trace struct {
	rt     *Runtime
	f      *Function
	b      *program.Builder
	create bool // the body may make variables
	made   int  // how many it made

	binds    []bind                // by the program's own variable number
	reads    map[*Variable]*Tensor // the value of each variable now
	captured map[*handle]*Tensor   // outside tensors that entered already
	devices  []asked               // where values were asked for
	ops      []traced              // for finding what depends on what
	writes   []*Variable
}

// bind is what stands behind a variable of the traced program.
type bind struct {
	v     *Variable // one of the program's variables,
	h     *handle   // or a tensor from outside, which the function holds,
	arg   int       // or argument number arg
	value program.ValueID
}

type asked struct {
	value  program.ValueID
	device device.Name
}

type traced struct {
	op      program.Op
	in, out []program.ValueID
}

func newTrace(rt *Runtime, f *Function, create bool) *trace {
	return &trace{
		rt: rt, f: f, b: program.NewBuilder(f.name, 1), create: create,
		reads: map[*Variable]*Tensor{}, captured: map[*handle]*Tensor{},
	}
}

func (t *trace) symbol(v program.ValueID, d program.DType, s program.Shape) *Tensor {
	return &Tensor{c: t.rt.core, graph: t, value: v, dtype: d, shape: s}
}

// enter adds a value that comes from outside.
func (t *trace) enter(name string, d program.DType, s program.Shape, b bind) *Tensor {
	v := t.b.State(name, d, s, program.Init{})
	b.value = v
	t.binds = append(t.binds, b)
	return t.symbol(v, d, s)
}

func (t *trace) argument(i int, d program.DType, s program.Shape) *Tensor {
	return t.enter(fmt.Sprintf("arg%d", i), d, s, bind{arg: i})
}

// capture lets a tensor from outside in, which the function then holds for
// good. take says that the caller gives its reference away.
func (t *trace) capture(x *Tensor, take bool) (*Tensor, error) {
	if s, ok := t.captured[x.h]; ok {
		return s, nil
	}
	if take {
		x.released = true
	} else {
		x.h.refs++
	}
	s := t.enter("captured", x.dtype, x.shape, bind{h: x.h})
	t.captured[x.h] = s
	return s, nil
}

func (t *trace) release() {
	for h := range t.captured {
		t.rt.drop(h)
	}
	t.captured = nil
}

// read is a variable's value: read once until something changes it.
func (t *trace) read(v *Variable) *Tensor {
	s, ok := t.reads[v]
	if !ok {
		s = t.enter(v.name, v.dtype, v.shape, bind{v: v})
		t.reads[v] = s
	}
	return s
}

func (t *trace) constant(d program.DType, s program.Shape, x float64) (*Tensor, error) {
	v := t.b.Const("Const", d, slices.Clone(s), x)
	t.ask(v)
	return t.symbol(v, d, s), t.check("Const")
}

// ask notes the scope's device for the node that makes a value.
func (t *trace) ask(v program.ValueID) {
	if want := t.rt.request(); want != device.Anywhere {
		t.devices = append(t.devices, asked{v, want})
	}
}

func (t *trace) check(op string) error {
	if err := t.b.Err(); err != nil {
		return &Error{Kind: device.InvalidArgument, Op: op, Message: err.Error(), Cause: err}
	}
	return nil
}

func (t *trace) inputs(in []*Tensor) ([]program.ValueID, error) {
	ids := make([]program.ValueID, len(in))
	for i, x := range in {
		if x.graph == nil {
			s, err := t.capture(x, false)
			if err != nil {
				return nil, err
			}
			x = s
		}
		ids[i] = x.value
	}
	return ids, nil
}

func (t *trace) op(op program.Op, a program.Attrs, in []*Tensor) ([]*Tensor, error) {
	ids, err := t.inputs(in)
	if err != nil {
		return nil, err
	}
	out := t.b.Node(op, a, ids...)
	if err := t.check(string(op)); err != nil {
		return nil, err
	}
	t.ops = append(t.ops, traced{op, ids, out})
	ts := make([]*Tensor, len(out))
	for i, v := range out {
		ts[i] = t.symbol(v, t.b.DType(v), t.b.Shape(v))
	}
	if len(out) > 0 {
		t.ask(out[0])
	}
	return ts, nil
}

// update adds an op that changes variables; reads after it see the new values.
func (t *trace) update(op program.Op, a program.Attrs, vars []*Variable, in []*Tensor) error {
	rest, err := t.inputs(in)
	if err != nil {
		return err
	}
	for i, x := range rest {
		// The value of a variable that changes here: what is written and what is
		// read must not be one input to the executor.
		if slices.ContainsFunc(t.binds, func(b bind) bool { return b.value == x && b.v != nil && slices.Contains(vars, b.v) }) {
			rest[i] = t.b.Op(program.OpIdentity, plain, x)
		}
	}
	var ids []program.ValueID
	for _, v := range vars {
		ids = append(ids, t.enter(v.name, v.dtype, v.shape, bind{v: v}).value)
		delete(t.reads, v)
		if !slices.Contains(t.writes, v) {
			t.writes = append(t.writes, v)
		}
	}
	leave := t.b.Enter(program.Update)
	t.b.Node(op, a, append(ids, rest...)...)
	leave()
	return t.check(string(op))
}

// gradient adds the backward pass to the graph.
func (t *trace) gradient(target *Tensor, sources []Source) ([]*Tensor, error) {
	if err := t.rt.usable(target, "gradient"); err != nil {
		return nil, err
	}
	if target.graph == nil {
		return make([]*Tensor, len(sources)), nil
	}
	need := map[program.ValueID]bool{target.value: true}
	t.reach(need)
	var wrt []program.ValueID
	out := make([]*Tensor, len(sources))
	at := make([]int, len(sources))
	for i, s := range sources {
		at[i] = -1
		var x *Tensor
		switch s := s.(type) {
		case *Tensor:
			if x = s; s.graph == nil {
				x = t.captured[s.h]
			}
		case *Variable:
			x = t.reads[s]
		}
		if x != nil && need[x.value] && x.value != target.value {
			at[i] = len(wrt)
			wrt = append(wrt, x.value)
		}
	}
	if len(wrt) == 0 {
		return out, nil
	}
	loss := target.value
	if len(target.shape) > 0 {
		loss = t.b.Op(program.OpSum, plain, loss)
	}
	grads := t.b.Gradients(loss, wrt)
	if err := t.check("gradient"); err != nil {
		return nil, err
	}
	for i, k := range at {
		if k >= 0 {
			out[i] = t.symbol(grads[k], t.b.DType(grads[k]), t.b.Shape(grads[k]))
		}
	}
	return out, nil
}

// graph is a traced program, before it is bound to memory and devices.
type graph struct {
	name    string
	p       *program.Program
	t       *trace // holds what the body captured
	binds   []bind
	devices []asked
	writes  []*Variable
	outputs []spec
	args    int
	ready   map[string]*instance // by where the arguments lie
}

// finish makes the program of what the body returned.
func (t *trace) finish(results []*Tensor, args int) (*graph, error) {
	g := &graph{name: t.f.name, t: t, args: args, ready: map[string]*instance{}}
	if err := t.fetch(g, results); err != nil {
		return nil, err
	}
	p, err := t.build()
	if err != nil {
		return nil, err
	}
	g.p, g.binds, g.devices, g.writes = p, t.binds, t.devices, t.writes
	return g, nil
}

// fetch makes the results outputs; those from outside enter first.
func (t *trace) fetch(g *graph, results []*Tensor) error {
	for i, x := range results {
		if err := t.rt.usable(x, t.f.name); err != nil {
			return err
		}
		if x.graph == nil {
			s, err := t.capture(x, false)
			if err != nil {
				return err
			}
			results[i], x = s, s
		}
		t.b.Fetch(fmt.Sprintf("output%d", i), x.value)
		g.outputs = append(g.outputs, spec{x.dtype, x.shape})
	}
	return nil
}

// build is the finished program, in the order of the body.
func (t *trace) build() (*program.Program, error) {
	p, err := t.b.Build()
	if err != nil {
		return nil, &Error{Kind: device.InvalidArgument, Op: t.f.name, Message: err.Error(), Cause: err}
	}
	t.order(p)
	return p, nil
}

// order adds the control edges that keep reads and writes of one variable in
// the order of the body: a write runs after all that came before it, a read
// after the last write.
func (t *trace) order(p *program.Program) {
	written := map[*Variable]program.NodeID{}
	touched := map[*Variable][]program.NodeID{}
	holder := make([]*Variable, len(p.Values)) // whose buffer a value is
	after := func(n *program.Node, ids ...program.NodeID) {
		for _, id := range ids {
			if !slices.Contains(n.Control, id) {
				n.Control = append(n.Control, id)
			}
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		id := program.NodeID(i)
		if n.Op == program.OpVariable {
			v := t.binds[n.Attrs.Variable].v
			if v == nil {
				continue
			}
			holder[n.Outputs[0]] = v
			if w, ok := written[v]; ok {
				after(n, w)
			}
			continue
		}
		def, err := program.Lookup(n.Op)
		if err != nil {
			continue
		}
		writes := 0
		if def.Stateful {
			writes = 1 + def.Slots
		}
		for k, in := range n.Inputs {
			v := holder[in]
			switch {
			case v == nil:
			case k < writes:
				after(n, touched[v]...)
				written[v], touched[v] = id, []program.NodeID{id}
			default:
				touched[v] = append(touched[v], id)
			}
		}
		if def.Alias && len(n.Outputs) > 0 {
			holder[n.Outputs[0]] = holder[n.Inputs[0]]
		}
	}
}

// instance is a graph on devices, with memory of its own for nothing but its
// constants: what a concrete function runs.
type instance struct {
	plan     *exec.Plan
	args     []program.VariableID // by argument: what its memory is bound to
	captures []program.VariableID
	used     []bool // by argument: the graph reads it
}

// instantiate places a graph for arguments that lie in this memory.
func (rt *Runtime) instantiate(g *graph, at []event.DeviceID) (*instance, error) {
	c := rt.core
	in := &instance{args: make([]program.VariableID, len(at)), used: make([]bool, len(at))}
	global := make([]program.VariableID, len(g.binds))
	where := make([]event.DeviceID, len(g.binds))
	for i, b := range g.binds {
		desc := g.p.Variables[i]
		desc.Slot = false // nothing here makes variables
		switch {
		case b.v != nil:
			global[i], where[i] = b.v.id, c.run.Memory(c.run.Bound(b.v.id)).Device
		case b.h != nil:
			global[i], where[i] = c.newID(desc), c.run.Memory(b.h.mem).Device
			c.run.Hold(b.h.mem)
			c.run.Bind(global[i], b.h.mem)
			in.captures = append(in.captures, global[i])
		default:
			global[i], where[i] = c.newID(desc), at[b.arg]
			in.args[b.arg], in.used[b.arg] = global[i], true
		}
	}
	p := *g.p
	p.Nodes, p.Values = slices.Clone(p.Nodes), slices.Clone(p.Values)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == program.OpVariable {
			n.Device = c.devices[where[n.Attrs.Variable]].Name.String()
		}
		if n.Attrs.Variable != program.None && (n.Op == program.OpVariable || isUpdate(n.Op)) {
			n.Attrs.Variable = global[n.Attrs.Variable]
		}
		for k, s := range n.Attrs.Slots {
			if s != program.None && isUpdate(n.Op) {
				n.Attrs.Slots[k] = global[s]
			}
		}
	}
	for i := range p.Values {
		if v := p.Values[i].Variable; v != program.None {
			p.Values[i].Variable = global[v]
		}
	}
	for _, a := range g.devices {
		if int(a.value) >= len(p.Values) {
			continue // of a part that this graph does not have
		}
		if n := p.Values[a.value].Producer; n != program.None {
			p.Nodes[n].Device = a.device.String()
		}
	}
	p.Variables = slices.Clone(c.variables)
	better, notes, err := rewrite.Optimize(&p, c.rewrites())
	if err != nil {
		return nil, &Error{Kind: device.Internal, Op: g.p.Name, Message: err.Error(), Cause: err}
	}
	for _, n := range notes {
		c.run.Annotate("graph of " + g.p.Name + ": " + n.String())
	}
	plan, err := c.run.Compile(better, nil, c.config.SoftPlacement(false))
	if err != nil {
		if device.KindOf(err) == 0 {
			err = &Error{Kind: device.InvalidArgument, Op: g.p.Name, Message: err.Error(), Cause: err}
		}
		return nil, err
	}
	in.plan = plan
	return in, nil
}

func isUpdate(op program.Op) bool {
	d, err := program.Lookup(op)
	return err == nil && d.Stateful
}

// rewrites are the graph passes that the optimizer's options leave on.
func (c *core) rewrites() rewrite.Options {
	set := c.config.Optimizer()
	off := func(name string) bool { on, ok := set[name]; return ok && !on }
	return rewrite.Options{
		Disabled: set["disable_meta_optimizer"], DisableModelPruning: set["disable_model_pruning"],
		DisableConstantFolding: off("constant_folding"), DisableRemapping: off("remapping"),
		DisableArithmetic: off("arithmetic_optimization"), DisableDependency: off("dependency_optimization"),
	}
}
