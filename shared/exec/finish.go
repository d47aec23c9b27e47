package exec

import (
	"tideline/protocol/event"
	"tideline/shared/program"
)

func (c *compiler) finish() {
	p := c.plan
	for i := range p.tensors {
		t := &p.tensors[i]
		if t.kind == variableTensor && c.p.Variables[c.p.Values[t.value].Variable].Slot {
			t.category = event.OptimizerState
		}
	}
	c.edges()
	if !p.eager {
		c.prefetch()
	}
	p.needs = make([]int32, len(p.nodes))
	for i := range p.nodes {
		p.needs[i] = p.nodes[i].needs
		if p.nodes[i].needs == 0 {
			p.roots = append(p.roots, int32(i))
		}
	}
	p.waiting = make([]int32, len(p.nodes))
	p.slot = make([]bufferID, p.slots)
	p.buf = make([]bufferID, len(p.tensors))
	p.ready.ring = make([]int32, len(p.nodes)+1)
}

// prefetch lets a swap back to the device that nothing holds up begin in time:
// when so much work, by the cost model, is left before its first reader as the
// copy takes. Without this a queue of ready nodes would bring it back at once.
func (c *compiler) prefetch() {
	p := c.plan
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.kind != swapNode || c.p.Nodes[n.src].Op != program.OpSwapIn || len(c.p.Nodes[n.src].Control) > 0 {
			continue
		}
		t := &p.tensors[n.out[0]]
		if t.n == 0 {
			continue
		}
		at := p.edges[t.first].node
		for _, e := range p.edges[t.first : t.first+t.n] {
			at = min(at, e.node)
		}
		after := p.tensors[n.in[0]].producer
		left := c.r.cfg.Devices[n.device].Model.Upload(t.bytes, c.r.pinnedSpace != noSpace)
		for at--; at > after && left > 0; at-- {
			if k := &p.nodes[at]; k.kind == opNode && k.kernel.Device == n.device {
				left -= k.kernel.Nanos
			}
		}
		for at > after && (p.nodes[at].kind != opNode || len(p.nodes[at].in) == 0) {
			at-- // constants and variables are there from the beginning
		}
		if at > after {
			p.nodes[at].control = append(p.nodes[at].control, n.id)
			n.needs++
		}
	}
}

// edges lists every tensor's out-edges in order of creation.
func (c *compiler) edges() {
	p := c.plan
	p.edges = make([]edge, p.slots)
	for i := range p.nodes {
		for _, t := range p.nodes[i].in {
			p.tensors[t].n++
		}
	}
	sum := int32(0)
	for i := range p.tensors {
		t := &p.tensors[i]
		t.first = sum
		sum += t.n
		t.n = 0
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		for k, in := range n.in {
			t := &p.tensors[in]
			p.edges[t.first+t.n] = edge{int32(i), n.firstSlot + int32(k)}
			t.n++
		}
	}
}

// tellPlacement tells where each op went, in program order.
func (c *compiler) tellPlacement() {
	if c.plan.eager && c.r.placed {
		return // eager kernels are kept by op and type: another shape is nothing new
	}
	c.r.placed = true
	for i := range c.p.Nodes {
		if !c.keep[i] {
			continue
		}
		c.r.ev = event.Event{
			Kind: event.Placement, Device: c.where[i].Device, Op: c.r.strings.ID(c.p.Nodes[i].Name),
			Text: c.r.strings.ID(c.where[i].Reason), Step: c.r.step,
		}
		c.r.out.host(&c.r.ev)
	}
}
