package exec

import "tideline/protocol/event"

// graphStep runs a plan as TensorFlow's executor does: a queue of ready nodes,
// first in first out; inputs dropped as soon as their last consumer has taken
// them; buffers taken over in place where nobody else holds them.
func (r *Runtime) graphStep(p *Plan, batch []bufferID) error {
	copy(p.waiting, p.needs)
	p.ready.reset()
	for _, n := range p.roots {
		p.ready.push(n)
	}
	inputs := 0
	for {
		id, ok := p.ready.pop()
		if !ok {
			return nil
		}
		n := &p.nodes[id]
		switch n.kind {
		case inputNode:
			// The caller holds its arguments for the whole call. A batch that was
			// sent ahead may not be here any more.
			b := batch[inputs]
			inputs++
			if b != 0 {
				r.hold(b, 1)
			}
			r.handOn(p, n.out[0], b)
		case variableNode:
			b := r.variables[p.p.Nodes[n.src].Attrs.Variable].buffer
			r.hold(b, 1)
			r.handOn(p, n.out[0], b)
		case constNode:
			b := p.buf[n.out[0]]
			r.hold(b, 1)
			r.handOn(p, n.out[0], b)
		case copyNode, swapNode:
			r.graphCopy(p, n)
		case fetchNode:
			continue // its slot holds the value until the host has read it
		default:
			r.graphOp(p, n)
		}
		if r.failed != nil {
			return r.failed
		}
		r.release(p, n)
	}
}

// graphOp is the life of one op, in the order of the specification: outputs,
// then workspace; launch; workspace dropped; input slots cleared in order;
// outputs handed on.
func (r *Runtime) graphOp(p *Plan, n *node) {
	if r.stopped() {
		return
	}
	r.backend.Spend(n.dispatch)
	in := p.slot[n.firstSlot : n.firstSlot+int32(len(n.in))]
	if len(n.writes) > 0 && !r.own(p, n, in) {
		return
	}
	outs := p.outs[:len(n.out)]
	if n.alias {
		outs[0] = in[0]
		r.hold(in[0], 1)
	} else {
		for o := range n.out {
			b := r.forward(p, n, in, o)
			if b == 0 {
				var ok bool
				if b, ok = r.output(p, n, o); !ok {
					r.dropAll(outs[:o])
					return
				}
			}
			outs[o] = b
		}
		if !r.run(p, n, in, outs) {
			r.dropAll(outs)
			return
		}
	}
	if n.kept {
		r.keep(p, n, outs)
	}
	r.clear(in)
	for o, t := range n.out {
		r.handOn(p, t, outs[o])
	}
}

func (r *Runtime) dropAll(bs []bufferID) {
	for _, b := range bs {
		if b != 0 {
			r.drop(b)
		}
	}
}

// clear drops the input slots in index order.
func (r *Runtime) clear(in []bufferID) {
	for i, b := range in {
		if b != 0 {
			in[i] = 0
			r.drop(b)
		}
	}
}

func (r *Runtime) output(p *Plan, n *node, o int) (bufferID, bool) {
	var q request
	r.request(&q, p, n.out[o], n.name)
	return r.allocate(&q)
}

// request fills q, which is empty, for a new tensor: at its place in the arena
// where the plan has one, of the tensor's allocator otherwise.
func (r *Runtime) request(q *request, p *Plan, id tensorID, op event.StringID) {
	t := &p.tensors[id]
	q.bytes, q.op, q.tensor, q.value = t.bytes, op, t.name, &p.p.Values[t.value]
	q.space, q.category = t.space, t.category
	if t.kind != copied || p.tensors[t.from].kind != inputTensor {
		p.put(r, q, int32(id)) // an entry parameter has no place in an arena
	}
}

// forward gives output o the buffer of an input that nobody else holds, or 0.
// An input counts if it has the same type and number of elements, lies in the
// same memory, and has at least the attributes that the output needs. The slot
// gives its reference away, so that no later output can take it again.
func (r *Runtime) forward(p *Plan, n *node, in []bufferID, o int) bufferID {
	if o != n.forwardTo {
		return 0
	}
	t := &p.tensors[n.out[o]]
	for _, i := range n.forward {
		if i >= len(in) || in[i] == 0 {
			continue
		}
		b := &r.buffers[in[i]]
		v := &p.tensors[n.in[i]]
		if b.refs != 1 || b.size == 0 || v.dtype != t.dtype || v.elements != t.elements || !r.compatible(b, t) {
			continue
		}
		id := in[i]
		in[i] = 0
		r.tellForward(b, t, n)
		// The kernel still reads the input, from where its output will lie.
		n.kernel.In[i] = r.ref(id)
		return id
	}
	return 0
}

func (r *Runtime) compatible(b *buffer, t *tensor) bool {
	have, want := &r.spaces[b.space], &r.spaces[t.space]
	return have.device == want.device && (b.pinned || !want.pinned)
}

func (r *Runtime) tellForward(b *buffer, t *tensor, n *node) {
	s := &r.spaces[b.space]
	e := r.event(event.Forward)
	e.Device, e.Allocator = s.device, s.id
	e.Address, e.Size, e.Requested = b.address, b.size, b.requested
	e.Tensor, e.Op, e.Category = t.name, n.name, t.category
	r.out.host(e)
}

// run asks for the workspace, launches the kernel and tells it. in may have
// lost slots to outputs in place.
func (r *Runtime) run(p *Plan, n *node, in, out []bufferID) bool {
	k := &n.kernel
	k.After = 0
	for i, b := range in {
		if b != 0 {
			k.In[i] = r.ref(b)
			k.After = max(k.After, r.buffers[b].ready)
		}
	}
	for o, b := range out {
		k.Out[o] = r.ref(b)
		k.After = max(k.After, r.buffers[b].ready)
		r.buffers[b].ready = 0 // from now on in stream order
	}
	k.Step, k.Workspace = r.step, Ref{}
	var work bufferID
	nanos := k.Nanos
	if n.workspace > 0 {
		if r.cfg.Autotune && !n.tuned && r.dry == nil && !r.tune(n, in) {
			return false
		}
		q := request{
			bytes: n.workspace, op: n.name, tensor: n.workName, space: r.memory[n.device],
			category: event.Temporary, noRetry: true,
		}
		p.put(r, &q, int32(len(p.tensors))+n.id)
		work, _ = r.allocate(&q)
		if work != 0 {
			k.Workspace = r.ref(work)
		} else {
			k.Nanos *= withoutWorkspace
		}
	}
	if r.failed != nil {
		return false
	}
	if n.metadata {
		k.After = 0 // nothing is read
	} else if len(r.flights) > 0 {
		r.await(n.kernel.Device, in)
	}
	tracker := r.trackerOf(k.Device)
	if tracker != nil {
		r.pause(k.Device)
	}
	span, err := r.backend.Launch(k)
	if tracker != nil {
		tracker.launched(span.End)
	}
	if r.swapping > 0 {
		r.swapped(n.device, k.Nanos)
	}
	k.Nanos = nanos
	if work != 0 {
		r.drop(work)
	}
	if err != nil {
		r.fail(err)
		return false
	}
	r.tellOp(n, span)
	return true
}

func (r *Runtime) tellOp(n *node, s Span) {
	if r.dry != nil {
		return
	}
	r.opID++
	e := r.event(event.OpBegin)
	e.Device = n.kernel.Device // the host for metadata ops
	e.Op, e.ID, e.Category, e.Stream, e.Flags = n.name, r.opID, n.phase, event.StreamCompute, r.modelled
	r.out.later(e.Device, event.StreamCompute, e, s)
}

// handOn gives a tensor's buffer to its consumers in edge order: earlier edges
// copy the reference, the last one moves it. Without consumers it is freed.
func (r *Runtime) handOn(p *Plan, t tensorID, b bufferID) {
	x := &p.tensors[t]
	switch {
	case b == 0:
	case x.n == 0:
		r.drop(b)
		return
	default:
		r.hold(b, x.n-1)
	}
	for _, e := range p.edges[x.first : x.first+x.n] {
		p.slot[e.slot] = b
		r.arrive(p, e.node)
	}
}

func (r *Runtime) arrive(p *Plan, n int32) {
	p.waiting[n]--
	if p.waiting[n] == 0 {
		p.ready.push(n)
	}
}

// release lets the nodes go that waited for n alone.
func (r *Runtime) release(p *Plan, n *node) {
	for _, next := range n.control {
		r.arrive(p, next)
	}
}

func (r *Runtime) stopped() bool {
	if r.cfg.Stop != nil && r.cfg.Stop() {
		r.fail(ErrStopped)
		return true
	}
	return false
}

// graphCopy is a pair of send and receive.
func (r *Runtime) graphCopy(p *Plan, n *node) {
	if r.stopped() {
		return
	}
	from := p.slot[n.firstSlot]
	if to := p.buf[n.out[0]]; to != 0 { // sent ahead
		p.buf[n.out[0]], p.slot[n.firstSlot] = 0, 0
		if from != 0 {
			r.drop(from)
		}
		r.handOn(p, n.out[0], to)
		return
	}
	r.backend.Spend(graphDispatch)
	to, ok := r.copyTo(p, from, n.out[0], n.name)
	p.slot[n.firstSlot] = 0
	r.drop(from) // a copy in flight has its own reference
	if ok {
		if n.kept {
			r.keep(p, n, []bufferID{to})
		}
		r.handOn(p, n.out[0], to)
	}
}
