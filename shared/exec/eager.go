package exec

import (
	"tideline/shared/program"
)

// lifetimes works out when the Python program lets go of each tensor. A value
// that a backward op will read is recorded by the gradient tape and lives
// until gradient() has returned. Other values die when the variable that held
// them is bound to the next op's result, so after their last reader. The list
// of gradients lives until all of them are applied. What is fetched lives
// until the host has read it, and a batch until the loop has got the next.
func (c *compiler) lifetimes() {
	p := c.plan
	p.dies = make([][]tensorID, len(p.nodes))
	lastBackward, lastUpdate := int32(-1), int32(-1)
	p.firstSlot = int32(len(p.nodes))
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.src == program.None {
			continue
		}
		switch c.p.Nodes[n.src].Phase {
		case program.Backward:
			lastBackward = int32(i)
		case program.Update:
			if lastUpdate < 0 {
				p.firstSlot = int32(i)
			}
			lastUpdate = int32(i)
		default:
		}
	}
	fetched := make([]bool, len(p.tensors))
	for _, f := range p.fetches {
		fetched[f.tensor] = true
	}
	for t := range p.tensors {
		c.lifetime(tensorID(t), fetched, lastBackward, lastUpdate)
	}
}

// lifetime puts one tensor on the list of the node after which it dies.
func (c *compiler) lifetime(t tensorID, fetched []bool, lastBackward, lastUpdate int32) {
	p := c.plan
	x := &p.tensors[t]
	origin := t
	if x.kind == copied {
		origin = x.from // a mirror lives as long as the handle it belongs to
	}
	o := &p.tensors[origin]
	switch {
	case o.kind == variableTensor && x.kind != copied, o.kind == constant && x.kind != copied:
		if o.kind == constant && len(c.p.Values[o.value].Shape) > 0 {
			break // made anew by every execution
		}
		return // owned by the runtime
	case o.kind == inputTensor:
		return // held by the loop, see eagerStep
	case fetched[origin]:
		p.atEnd = append(p.atEnd, t)
		return
	}
	last := max(o.producer, 0)
	backward, update := false, false
	for u := range p.tensors {
		if tensorID(u) != origin && (p.tensors[u].kind != copied || p.tensors[u].from != origin) {
			continue
		}
		for _, e := range p.edges[p.tensors[u].first : p.tensors[u].first+p.tensors[u].n] {
			last = max(last, e.node)
			if n := p.nodes[e.node].src; n != program.None {
				backward = backward || c.p.Nodes[n].Phase == program.Backward
				update = update || c.p.Nodes[n].Phase == program.Update
			}
		}
	}
	forward := o.producer >= 0 && p.nodes[o.producer].src != program.None && c.p.Nodes[p.nodes[o.producer].src].Phase == program.Forward
	if backward && forward {
		last = max(last, lastBackward)
	}
	if update {
		last = max(last, lastUpdate)
	}
	p.dies[last] = append(p.dies[last], t)
}

// eagerStep runs the nodes in program order.
func (r *Runtime) eagerStep(p *Plan, batch []bufferID) error {
	clear(p.buf)
	for i, t := range p.inputs {
		p.buf[t] = batch[i]
	}
	for i := range p.nodes {
		if int32(i) == p.firstSlot && !r.makeVariables(p, true) {
			return r.failed
		}
		r.eagerNode(p, &p.nodes[i])
		if r.failed != nil {
			return r.failed
		}
		for _, t := range p.dies[i] {
			r.letGo(p, t)
		}
	}
	return nil
}

func (r *Runtime) letGo(p *Plan, t tensorID) {
	if b := p.buf[t]; b != 0 {
		p.buf[t] = 0
		r.drop(b)
	}
}

func (r *Runtime) eagerNode(p *Plan, n *node) {
	switch n.kind {
	case variableNode:
		p.buf[n.out[0]] = r.variables[p.p.Nodes[n.src].Attrs.Variable].buffer
	case constNode:
		r.eagerConst(p, n)
	case opNode:
		r.eagerOp(p, n)
	default:
	}
}

func (r *Runtime) eagerConst(p *Plan, n *node) {
	if p.p.Values[p.tensors[n.out[0]].value].Shape.Elements() == 1 && len(p.p.Nodes[n.src].Attrs.Shape) == 0 {
		p.buf[n.out[0]], _ = r.eagerScalar(p, n)
		return
	}
	r.eagerOp(p, n)
}

// eagerOp brings the inputs to where the kernel reads them, makes the outputs,
// always new ones, and launches. Inputs stay: the program holds them.
func (r *Runtime) eagerOp(p *Plan, n *node) {
	if r.stopped() {
		return
	}
	r.backend.Spend(n.dispatch)
	for i, t := range n.in {
		if p.buf[t] == 0 && !r.mirror(p, n, t) {
			return
		}
		p.slot[n.firstSlot+int32(i)] = p.buf[t]
	}
	in := p.slot[n.firstSlot : n.firstSlot+int32(len(n.in))]
	if n.alias {
		r.hold(in[0], 1)
		p.buf[n.out[0]] = in[0]
		return
	}
	var outs [maxOutputs]bufferID
	for o := range n.out {
		b, ok := r.output(p, n, o)
		if !ok {
			r.dropAll(outs[:o])
			return
		}
		outs[o] = b
	}
	if !r.run(p, n, in, outs[:len(n.out)]) {
		r.dropAll(outs[:len(n.out)])
		return
	}
	for o, t := range n.out {
		p.buf[t] = outs[o]
	}
}

// mirror copies an input to the op's device, where later ops find it.
func (r *Runtime) mirror(p *Plan, n *node, t tensorID) bool {
	x := &p.tensors[t]
	if x.from == noTensor || p.buf[x.from] == 0 {
		r.fail(errNoInput(p, n, x))
		return false
	}
	b, ok := r.copyTo(p.buf[x.from], x, n.name)
	p.buf[t] = b
	return ok
}
