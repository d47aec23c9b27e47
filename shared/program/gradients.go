package program

import (
	"fmt"
	"strings"
)

// wants says, while Gradients runs, whether the gradient of v leads anywhere.
func (b *Builder) wants(v ValueID) bool {
	return b.err == nil && v >= 0 && int(v) < len(b.reach) && b.reach[v]
}

// Gradients adds the backward pass: the nodes that compute the gradient of
// the scalar loss with respect to each of wrt, in reverse program order under
// the scope "gradients/". It returns one value for each of wrt.
//
// Only what is needed is added: no gradient of an image, nothing behind a
// constant. Where several gradients meet in one value they are summed by AddN
// at the moment all of them exist.
func (b *Builder) Gradients(loss ValueID, wrt []ValueID) []ValueID {
	if b.err != nil {
		return nil
	}
	if s := b.shape(loss); len(s) != 0 {
		b.fail(fmt.Errorf("gradients of %s: the loss must be a scalar, has shape %s", b.p.Values[loss].Name, s))
		return nil
	}
	defer b.enter(Backward)()
	defer b.Scope("gradients")()
	forward := NodeID(len(b.p.Nodes))
	b.markReach(wrt)
	pending := make([][]ValueID, len(b.p.Values)) // gradients that arrived, by value
	pending[loss] = []ValueID{b.Const("Const", b.p.Values[loss].DType, nil, 1)}
	for n := forward - 1; n >= 0 && b.err == nil; n-- {
		b.backward(n, pending)
	}
	out := make([]ValueID, len(wrt))
	for i, v := range wrt {
		out[i] = b.gather(v, pending)
		if out[i] == None {
			b.fail(fmt.Errorf("gradients: the loss does not depend on %s", b.p.Values[v].Name))
			return nil
		}
		b.p.Values[out[i]].Role = RoleGradient
	}
	b.reach = nil
	return out
}

// enter switches to a phase until the returned function is called.
func (b *Builder) enter(ph Phase) (leave func()) {
	was := b.phase
	b.phase = ph
	return func() { b.phase = was }
}

// markReach finds the values that depend on one of wrt.
func (b *Builder) markReach(wrt []ValueID) {
	b.reach = make([]bool, len(b.p.Values))
	for _, v := range wrt {
		b.reach[v] = true
	}
	for i := range b.p.Nodes {
		n := &b.p.Nodes[i]
		for _, v := range n.Inputs {
			if b.reach[v] {
				for _, o := range n.Outputs {
					b.reach[o] = true
				}
				break
			}
		}
	}
}

// backward adds the backward nodes of forward node n, if gradients of its
// outputs arrived.
func (b *Builder) backward(n NodeID, pending [][]ValueID) {
	outs := b.p.Nodes[n].Outputs
	grads := make([]ValueID, len(outs))
	arrived := false
	for i, v := range outs {
		grads[i] = None
		if b.reach[v] && b.p.Values[v].Variable == None {
			grads[i] = b.gather(v, pending)
		}
		arrived = arrived || grads[i] != None
	}
	if !arrived {
		return
	}
	node := &b.p.Nodes[n]
	def := b.defs[node.Op]
	if def.Grad == nil {
		b.fail(fmt.Errorf("node %s: %s has no gradient", node.Name, node.Op))
		return
	}
	b.of = n
	defer func() { b.of = None }()
	defer b.Scope(parent(node.Name))()
	inputs := node.Inputs // the node may move when nodes are added
	for i, g := range def.Grad(b, n, grads) {
		if v := inputs[i]; g != None && b.wants(v) {
			pending[v] = append(pending[v], g)
		}
	}
}

// gather gives the whole gradient of v: None, the only one, or their sum.
func (b *Builder) gather(v ValueID, pending [][]ValueID) ValueID {
	g := pending[v]
	switch len(g) {
	case 0:
		return None
	case 1:
		return g[0]
	}
	sum := b.Op(OpAddN, Attrs{}, g...)
	pending[v] = []ValueID{sum}
	return sum
}

// parent is the scope that a name stands in.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return name
}
