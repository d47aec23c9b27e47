package runtime

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// backward computes gradients of a tape: it derives the recorded ops as one
// program and runs the backward nodes eagerly, one by one.
type backward struct {
	tape *Tape
	b    *program.Builder
	ids  map[uint64]program.ValueID
	held map[program.ValueID]*handle // forward values that the tape holds
}

func (g *backward) run(target *Tensor, sources []Source) ([]*Tensor, error) {
	t := g.tape
	need := t.reachable(target.h.uid)
	var wrt []program.ValueID
	uses := make([][]int, len(sources)) // by source: indices of wrt
	g.b = program.NewBuilder("tape", 1)
	loss := g.record(target, need)
	for i, s := range sources {
		for _, uid := range t.uids(s) {
			if v, ok := g.ids[uid]; ok && need[uid] && uid != target.h.uid && t.tracked[uid] {
				uses[i] = append(uses[i], len(wrt))
				wrt = append(wrt, v)
			}
		}
	}
	out := make([]*Tensor, len(sources))
	if len(wrt) == 0 {
		return out, nil
	}
	grads := g.b.Derive(loss, program.None, wrt)
	values := make([]program.ValueID, len(grads))
	for i, x := range grads {
		values[i] = g.b.Densify(x, g.b.Shape(wrt[i]))
	}
	p, err := g.b.Build()
	if err != nil {
		return nil, &Error{Kind: device.InvalidArgument, Op: "gradient", Message: err.Error(), Cause: err}
	}
	results, err := g.execute(p, values)
	if err != nil {
		return nil, err
	}
	for i := range sources {
		if len(uses[i]) == 0 {
			continue
		}
		h := results[uses[i][0]]
		if len(uses[i]) > 1 { // a variable that changed under the tape
			if h, err = g.sum(results, uses[i]); err != nil {
				return nil, err
			}
		}
		out[i] = t.rt.own(h)
	}
	return out, nil
}

func (g *backward) sum(results []*handle, which []int) (*handle, error) {
	var in []*handle
	for _, i := range which {
		in = append(in, results[i])
	}
	var out [maxOut]*handle
	_, err := g.tape.rt.dispatch(&call{op: program.OpAddN, attrs: &plain, phase: program.Backward, role: program.RoleGradient, in: in}, &out)
	for _, h := range in {
		g.tape.rt.drop(h)
	}
	return out[0], err
}

// record puts the tape's ops that the target needs into the builder, and gives
// the loss: the target, or its sum.
func (g *backward) record(target *Tensor, need map[uint64]bool) program.ValueID {
	value := func(r *recorded) program.ValueID {
		v, ok := g.ids[r.uid]
		if !ok {
			v = g.b.Input(fmt.Sprintf("value%d", r.uid), r.dtype, r.shape)
			g.ids[r.uid] = v
		}
		if r.h != nil {
			g.held[v] = r.h
		}
		return v
	}
	for i := range g.tape.entries {
		e := &g.tape.entries[i]
		wanted := false
		for j := range e.out {
			wanted = wanted || need[e.out[j].uid]
		}
		if !wanted {
			continue
		}
		var in []program.ValueID
		for j := range e.in {
			in = append(in, value(&e.in[j]))
		}
		for j, v := range g.b.Node(e.op, e.attrs, in...)[:len(e.out)] {
			g.ids[e.out[j].uid] = v
			if e.out[j].h != nil {
				g.held[v] = e.out[j].h
			}
		}
	}
	loss := value(&recorded{uid: target.h.uid, dtype: target.dtype, shape: target.shape})
	if len(target.shape) > 0 {
		loss = g.b.Op(program.OpSum, plain, loss)
	}
	return loss
}

// execute runs the backward nodes in order. A value dies after its last use,
// as the locals of a gradient function do.
func (g *backward) execute(p *program.Program, results []program.ValueID) ([]*handle, error) {
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
func (g *backward) letGo(v program.ValueID) {
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

func (g *backward) node(p *program.Program, n *program.Node, live map[program.ValueID]*handle) error {
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
