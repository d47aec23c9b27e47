package exec

import (
	"tideline/protocol/event"
	"tideline/shared/program"
)

// variable is state that outlives steps.
type variable struct {
	buffer bufferID
	made   bool
}

// scalar is a number that the program handed to an eager op. TensorFlow's
// eager context keeps such tensors for reuse, so that 1.0 crosses to the
// device once and not with every op.
type scalar struct {
	value float64
	dtype program.DType
	space spaceID
	b     bufferID
}

// makeVariables makes those variables of the plan that do not exist yet: with
// slots the optimizer's, without them the model's.
func (r *Runtime) makeVariables(p *Plan, slots bool) bool {
	if n := len(p.p.Variables); len(r.variables) < n {
		r.variables = append(r.variables, make([]variable, n-len(r.variables))...)
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind != variableNode {
			continue
		}
		id := p.p.Nodes[n.src].Attrs.Variable
		if v := &p.p.Variables[id]; r.variables[id].made || v.Slot != slots {
			continue
		}
		if !r.makeVariable(p, n, id) {
			return false
		}
	}
	return true
}

func (r *Runtime) makeVariable(p *Plan, n *node, id program.VariableID) bool {
	t := &p.tensors[n.out[0]]
	v := &p.p.Variables[id]
	q := request{bytes: t.bytes, op: n.name, tensor: t.name, value: &p.p.Values[t.value], space: t.space, category: t.category, lasting: !v.Slot}
	var b bufferID
	var ok bool
	if v.Slot {
		b, ok = r.onDevice(p, n, q, v)
	} else {
		b, ok = r.initial(q, func(dst []byte) {
			if v.DType == program.Float64 {
				first := make([]float64, v.Shape.Elements())
				p.p.Fill64(first, id, r.cfg.Seed)
				put(dst, v.DType, first)
				return
			}
			first := make([]float32, v.Shape.Elements())
			p.p.Fill(first, id, r.cfg.Seed)
			put(dst, v.DType, first)
		})
	}
	if ok {
		r.variables[id] = variable{b, true}
	}
	return ok
}

// own sees to it that nobody else holds the variables that an op is about to
// change. Where a reader does, the variable gets a new buffer, the old value
// is copied unless it is written over whole, and the reader keeps the old one.
func (r *Runtime) own(p *Plan, n *node, in []bufferID) bool {
	for _, w := range n.writes {
		v := &r.variables[w.variable]
		old, mine := v.buffer, int32(1)
		if !p.eager && in[w.input] == old {
			mine = 2 // the input slot's
		}
		if r.buffers[old].refs > mine || in[w.input] != old {
			if !r.replace(p, n, w, in) {
				return false
			}
		}
	}
	return true
}

// replace gives a variable a buffer of its own.
func (r *Runtime) replace(p *Plan, n *node, w write, in []bufferID) bool {
	v := &r.variables[w.variable]
	old := v.buffer
	if r.buffers[old].refs > 1 {
		var q request
		r.request(&q, p, n.in[w.input], n.name)
		q.unit = 0
		b, ok := r.allocate(&q)
		if !ok {
			return false
		}
		if p.p.Nodes[n.src].Op != program.OpAssign && q.bytes > 0 && !r.copyVariable(n, old, b) {
			r.drop(b)
			return false
		}
		v.buffer = b
		r.drop(old)
	}
	if !p.eager {
		r.hold(v.buffer, 1)
		r.drop(in[w.input])
	}
	in[w.input] = v.buffer
	return true
}

// copyVariable copies a value within its memory, as part of the op.
func (r *Runtime) copyVariable(n *node, from, to bufferID) bool {
	c := &r.copy
	*c = Copy{From: r.ref(from), To: r.ref(to), After: r.buffers[from].ready}
	r.moveLocally(c)
	span, err := r.backend.Copy(c)
	if err != nil {
		r.fail(err)
		return false
	}
	r.tellOp(n, span)
	return true
}

// onDevice makes an optimizer's slot: filled by a kernel where it lies.
func (r *Runtime) onDevice(p *Plan, n *node, q request, v *program.Variable) (bufferID, bool) {
	b, ok := r.allocate(&q)
	if !ok {
		return 0, false
	}
	value := 0.0
	if v.Init.Kind == program.InitConstant {
		value = v.Init.Scale
	}
	fill := program.Node{
		Name: v.Name + "/Initializer", Op: program.OpConst, Phase: program.Update, Outputs: []program.ValueID{p.tensors[n.out[0]].value}, Of: program.None,
		Attrs: program.Attrs{DType: v.DType, Shape: v.Shape, Value: value, Variable: program.None},
	}
	k := Kernel{
		Program: p.p, Node: &fill, Device: n.device, Out: []Ref{r.ref(b)}, Step: r.step,
		Nanos: r.cfg.Devices[n.device].Model.Kernel(0, v.Bytes()),
	}
	r.backend.Spend(n.dispatch)
	span, err := r.backend.Launch(&k)
	if err != nil {
		r.fail(err)
		return 0, false
	}
	r.tellOp(&node{name: r.strings.ID(fill.Name), phase: event.OpUpdate, kernel: Kernel{Device: n.device}}, span)
	return b, true
}

// makeConstants makes a graph's constants, which its kernels hold for as long
// as the graph lives.
func (r *Runtime) makeConstants(p *Plan) bool {
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind != constNode || p.buf[n.out[0]] != 0 {
			continue
		}
		at := p.p.Nodes[n.src].Attrs
		b, ok := r.constantBuffer(p, &p.tensors[n.out[0]], n.name, func(dst []byte) { FillConst(dst, at.DType, at.Value) })
		if !ok {
			return false
		}
		p.buf[n.out[0]] = b
	}
	return true
}

// eagerScalar is the tensor of a number, made when it is first used.
func (r *Runtime) eagerScalar(p *Plan, n *node) (bufferID, bool) {
	t := &p.tensors[n.out[0]]
	at := p.p.Nodes[n.src].Attrs
	for _, s := range r.scalars {
		if s.value == at.Value && s.dtype == at.DType && s.space == t.space {
			return s.b, true
		}
	}
	b, ok := r.constantBuffer(p, t, n.name, func(dst []byte) { FillConst(dst, at.DType, at.Value) })
	if ok {
		r.scalars = append(r.scalars, scalar{at.Value, at.DType, t.space, b})
	}
	return b, ok
}
