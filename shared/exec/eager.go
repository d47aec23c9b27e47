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
	lastBackward, lastUpdate := c.phaseEnds()
	lives := c.readers()
	dies := make([]int32, len(p.tensors)) // the node after which each tensor dies, or one of the below
	for t := range p.tensors {
		dies[t] = c.death(tensorID(t), lives, lastBackward, lastUpdate)
		if dies[t] == diesAtEnd {
			p.atEnd = append(p.atEnd, tensorID(t))
		}
	}
	p.dies = make([]int32, len(p.nodes)+1)
	for _, n := range dies {
		if n >= 0 {
			p.dies[n+1]++
		}
	}
	for i := range p.nodes {
		p.dies[i+1] += p.dies[i]
	}
	p.dying = make([]tensorID, p.dies[len(p.nodes)])
	next := append([]int32(nil), p.dies[:len(p.nodes)]...)
	for t, n := range dies {
		if n >= 0 {
			p.dying[next[n]] = tensorID(t)
			next[n]++
		}
	}
}

// What is not let go of after a node.
const (
	diesNever = -1 // owned by the runtime or held by the loop
	diesAtEnd = -2 // when the host has read what the step returns
)

// phaseEnds finds the last backward and the last update node, and the first
// update node, where missing optimizer slots are made.
func (c *compiler) phaseEnds() (lastBackward, lastUpdate int32) {
	p := c.plan
	lastBackward, lastUpdate = -1, -1
	p.firstSlot = int32(len(p.nodes))
	for i := range p.nodes {
		switch c.phase(int32(i)) {
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
	return lastBackward, lastUpdate
}

// noPhase is that of nodes that stand for no op.
const noPhase program.Phase = 255

func (c *compiler) phase(node int32) program.Phase {
	if node < 0 || c.plan.nodes[node].src == program.None {
		return noPhase
	}
	return c.p.Nodes[c.plan.nodes[node].src].Phase
}

// reading is who reads a value, in any memory.
type reading struct {
	last                      int32
	backward, update, fetched bool
}

// readers sums up the readers of every value, at its original tensor. An op
// that only writes over a variable reads nothing.
func (c *compiler) readers() []reading {
	p := c.plan
	out := make([]reading, len(p.tensors))
	for i := range out {
		out[i].last = -1
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		for k, t := range n.in {
			if n.writesInput(k) {
				continue
			}
			x := &out[p.origin(t)]
			x.last = max(x.last, int32(i))
			x.fetched = x.fetched || n.kind == fetchNode
			x.backward = x.backward || c.phase(int32(i)) == program.Backward
			x.update = x.update || c.phase(int32(i)) == program.Update
		}
	}
	return out
}

func (n *node) writesInput(i int) bool {
	for _, w := range n.writes {
		if w.input == i {
			return true
		}
	}
	return false
}

// origin is the tensor that t is a copy of, or t.
func (p *Plan) origin(t tensorID) tensorID {
	if x := &p.tensors[t]; x.kind == copied {
		return x.from // a mirror lives as long as the handle it belongs to
	}
	return t
}

// death is the node after which a tensor dies.
func (c *compiler) death(t tensorID, lives []reading, lastBackward, lastUpdate int32) int32 {
	p := c.plan
	origin := p.origin(t)
	o, l := &p.tensors[origin], &lives[origin]
	switch {
	case o.kind == variableTensor && origin == t && !o.read:
		return diesNever
	case o.kind == constant && origin == t && len(c.p.Values[o.value].Shape) == 0:
		return diesNever // kept by the context; tensors are made anew by every execution
	case o.kind == inputTensor:
		return diesNever // held by the loop, see eagerStep
	case l.fetched:
		return diesAtEnd
	}
	last := max(o.producer, l.last, 0)
	if c.r.cfg.Async {
		return last // the program has let go long since, the queue lets go now
	}
	if l.backward && c.phase(o.producer) == program.Forward && !c.r.cfg.FreeTapeGradually {
		last = max(last, lastBackward)
	}
	if l.update && (o.kind != variableTensor || origin != t) {
		last = max(last, lastUpdate)
	}
	return last
}

// eagerStep runs the nodes in program order.
func (r *Runtime) eagerStep(p *Plan, batch []bufferID) error {
	for i, t := range p.inputs {
		p.buf[t] = batch[i]
	}
	if r.cfg.Async && !r.enqueue(p) {
		return r.failed
	}
	for i := range p.nodes {
		if int32(i) == p.firstSlot && !r.makeVariables(p, true) {
			return r.failed
		}
		if n := &p.nodes[i]; !r.cfg.Async || n.kind == opNode || n.kind == swapNode {
			r.eagerNode(p, n)
		}
		if r.failed != nil {
			return r.failed
		}
		for _, t := range p.dying[p.dies[i]:p.dies[i+1]] {
			r.letGo(p, t)
		}
	}
	return nil
}

// asyncDispatch is the program's host time to put an op into the queue of an
// asynchronous executor, in nanoseconds; assumed. The rest of an eager op's
// time is the executor's.
const asyncDispatch = 4_000

// enqueue is the program's part of a step with an asynchronous executor: it
// runs ahead as far as it can, which is to the end of the step, where it reads
// results. Ops go into the queue, which holds their inputs. What the program
// itself makes from numbers it makes at once, so that all of it is alive before
// the first op has run.
func (r *Runtime) enqueue(p *Plan) bool {
	for i := range p.nodes {
		if int32(i) == p.firstSlot && !r.makeVariables(p, true) {
			return false
		}
		switch n := &p.nodes[i]; n.kind {
		case opNode, swapNode:
			r.backend.Spend(asyncDispatch)
		default:
			r.eagerNode(p, n)
		}
		if r.failed != nil {
			return false
		}
	}
	return true
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
		// Reading a variable gives a tensor that shares its buffer.
		if p.tensors[n.out[0]].read {
			b := r.variables[p.p.Nodes[n.src].Attrs.Variable].buffer
			r.hold(b, 1)
			p.buf[n.out[0]] = b
		}
	case constNode:
		r.eagerConst(p, n)
	case opNode:
		r.eagerOp(p, n)
	case swapNode:
		r.eagerSwap(p, n)
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
	in := p.slot[n.firstSlot : n.firstSlot+int32(len(n.in))]
	for i, t := range n.in {
		switch {
		case n.writesInput(i):
			in[i] = r.variables[p.p.Values[p.tensors[t].value].Variable].buffer
			continue
		case p.buf[t] == 0 && !r.mirror(p, n, i):
			return
		}
		in[i] = p.buf[t]
	}
	if len(n.writes) > 0 && !r.own(p, n, in) {
		return
	}
	if n.alias {
		r.hold(in[0], 1)
		p.buf[n.out[0]] = in[0]
		r.keep(p, n, in[:1])
		return
	}
	outs := p.outs[:len(n.out)]
	for o := range n.out {
		b, ok := r.output(p, n, o)
		if !ok {
			r.dropAll(outs[:o])
			return
		}
		outs[o] = b
	}
	if !r.run(p, n, in, outs) {
		r.dropAll(outs)
		return
	}
	for o, t := range n.out {
		p.buf[t] = outs[o]
	}
	r.keep(p, n, outs)
}

// eagerSwap copies a tensor to the host or back, as the program asks.
func (r *Runtime) eagerSwap(p *Plan, n *node) {
	if r.stopped() {
		return
	}
	r.backend.Spend(n.dispatch)
	if p.buf[n.in[0]] == 0 && !r.mirror(p, n, 0) {
		return
	}
	b, ok := r.copyTo(p, p.buf[n.in[0]], n.out[0], n.name)
	if ok {
		p.buf[n.out[0]] = b
		r.keep(p, n, []bufferID{b})
	}
}

// mirror copies input i to the op's device, where later ops find it, if the
// policy on copies allows that.
func (r *Runtime) mirror(p *Plan, n *node, i int) bool {
	t := n.in[i]
	x := &p.tensors[t]
	if x.from == noTensor || p.buf[x.from] == 0 {
		r.fail(errNoInput(p, n, x))
		return false
	}
	if !r.mayCopy(p, n, i) {
		return false
	}
	b, ok := r.copyTo(p, p.buf[x.from], t, n.name)
	p.buf[t] = b
	return ok
}
