package runtime

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// segment computes gradients through a run of recorded ops: it derives them as
// one program and runs the backward nodes eagerly, one by one.
type segment struct {
	tape    *Tape
	entries []entry
	b       *program.Builder
	ids     map[uint64]program.ValueID
	held    map[program.ValueID]*handle // forward values that the tape holds, and gradients from outside
}

// root is a value of the segment that the loss depends on: by its gradient, or
// as the loss itself where there is none.
type root struct {
	value recorded
	grad  *handle
}

// derive gives the gradients of the sum of the roots by values of the segment.
func (g *segment) derive(roots []root, wrt []uint64) ([]*handle, error) {
	g.b = program.NewBuilder("tape", 1)
	g.ids, g.held = map[uint64]program.ValueID{}, map[program.ValueID]*handle{}
	g.record()
	loss := program.ValueID(program.None)
	for _, r := range roots {
		term := g.value(&r.value)
		if r.grad != nil {
			up := g.b.Input("gradient of "+g.name(r.value.uid), r.value.dtype, r.value.shape)
			g.held[up] = r.grad
			term = g.b.Op(program.OpMul, plain, term, up)
		}
		if len(r.value.shape) > 0 {
			term = g.b.Op(program.OpSum, plain, term)
		}
		if loss == program.None {
			loss = term
		} else {
			loss = g.b.Op(program.OpAdd, plain, loss, term)
		}
	}
	ids := make([]program.ValueID, len(wrt))
	for i, uid := range wrt {
		ids[i] = g.ids[uid]
	}
	grads := g.b.Derive(loss, program.None, ids)
	values := make([]program.ValueID, len(grads))
	leave := g.b.Enter(program.Backward)
	for i, x := range grads {
		values[i] = g.b.Densify(x, g.b.Shape(ids[i]))
	}
	leave()
	p, err := g.b.Build()
	if err != nil {
		return nil, &Error{Kind: device.InvalidArgument, Op: "gradient", Message: err.Error(), Cause: err}
	}
	return g.execute(p, values)
}

func (g *segment) name(uid uint64) string { return fmt.Sprintf("value%d", uid) }

func (g *segment) value(r *recorded) program.ValueID {
	v, ok := g.ids[r.uid]
	if !ok {
		v = g.b.Input(g.name(r.uid), r.dtype, r.shape)
		g.ids[r.uid] = v
	}
	if r.h != nil {
		g.held[v] = r.h
	}
	return v
}

// record puts the segment's ops into the builder.
func (g *segment) record() {
	for i := range g.entries {
		e := &g.entries[i]
		var in []program.ValueID
		for j := range e.in {
			in = append(in, g.value(&e.in[j]))
		}
		for j, v := range g.b.Node(e.op, e.attrs, in...)[:len(e.out)] {
			g.ids[e.out[j].uid] = v
			if e.out[j].h != nil {
				g.held[v] = e.out[j].h
			}
		}
	}
}

// execute runs the backward nodes in order. A value dies after its last use,
// as the locals of a gradient function do.
func (g *segment) execute(p *program.Program, results []program.ValueID) ([]*handle, error) {
	c := g.tape.rt.core
	last := make([]int, len(p.Values))
	for i, n := range p.Nodes {
		for _, v := range n.Inputs {
			last[v] = i
		}
	}
	for _, v := range results {
		last[v] = len(p.Nodes)
	}
	live := map[program.ValueID]*handle{}
	drop := func(v program.ValueID) {
		if h := live[v]; h != nil {
			delete(live, v)
			c.drop(h)
		}
	}
	fail := func(err error) ([]*handle, error) {
		for v := range p.Values {
			drop(program.ValueID(v))
		}
		return nil, err
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Phase != program.Backward {
			continue
		}
		if err := g.node(p, n, live); err != nil {
			return fail(err)
		}
		for _, v := range n.Inputs {
			if last[v] != i {
				continue
			}
			drop(v)
			if c.o.FreeTapeGradually && !g.tape.persistent {
				g.letGo(v)
			}
		}
		for _, v := range n.Outputs {
			if last[v] == 0 {
				drop(v)
			}
		}
	}
	out := make([]*handle, len(results))
	for i, v := range results {
		h := live[v]
		if h == nil {
			h = g.held[v]
		}
		if h == nil {
			return fail(&Error{Kind: device.Internal, Op: "gradient", Message: "no value for the gradient " + p.Values[v].Name})
		}
		h.refs++
		out[i] = h
	}
	for _, v := range results {
		drop(v)
	}
	return out, nil
}

// letGo gives up what the tape holds of a value.
func (g *segment) letGo(v program.ValueID) {
	h := g.held[v]
	if h == nil {
		return
	}
	delete(g.held, v)
	for i := range g.tape.entries {
		e := &g.tape.entries[i]
		for _, list := range [][]recorded{e.in, e.out} {
			for j := range list {
				if list[j].h != nil && list[j].uid == h.uid {
					g.tape.rt.drop(list[j].h)
					list[j].h = nil
				}
			}
		}
	}
}

func (g *segment) node(p *program.Program, n *program.Node, live map[program.ValueID]*handle) error {
	rt := g.tape.rt
	if n.Op == program.OpConst {
		h, err := rt.constHandle(n)
		live[n.Outputs[0]] = h
		return err
	}
	in := make([]*handle, len(n.Inputs))
	for i, v := range n.Inputs {
		if in[i] = live[v]; in[i] == nil {
			in[i] = g.held[v]
		}
		if in[i] == nil {
			return &Error{Kind: device.Internal, Op: string(n.Op), Message: "the tape does not hold " + p.Values[v].Name}
		}
	}
	var out [maxOut]*handle
	x := call{op: n.Op, attrs: &n.Attrs, phase: program.Backward, in: in}
	if len(n.Outputs) > 0 {
		x.role = p.Values[n.Outputs[0]].Role
	}
	if _, err := rt.dispatch(&x, &out); err != nil {
		return err
	}
	for i, v := range n.Outputs {
		live[v] = out[i]
	}
	return nil
}

// scalar is a number that the runtime made a tensor of: TensorFlow's eager
// context keeps such tensors, so that 1.0 crosses to a device once.
type scalar struct {
	value  float64
	dtype  program.DType
	device string
}

// constHandle is a constant of a gradient function.
func (rt *Runtime) constHandle(n *program.Node) (*handle, error) {
	dev, _, err := rt.place(nil, n, rt.request(), nil, nil)
	if err != nil {
		return nil, err
	}
	key := scalar{n.Attrs.Value, n.Attrs.DType, rt.devices[dev].Name.String()}
	h := rt.scalars[key]
	if h == nil || len(n.Attrs.Shape) > 0 {
		h, err = rt.fill("Const", dev, n.Attrs.DType, n.Attrs.Shape, event.Constant, func(dst []byte) { exec.FillConst(dst, n.Attrs.DType, n.Attrs.Value) })
		if err != nil || len(n.Attrs.Shape) > 0 {
			return h, err
		}
		rt.scalars[key] = h
	}
	h.refs++
	return h, nil
}
