package program

import (
	"fmt"
	"strings"
)

// Gradient is the gradient of one variable. A dense one has the variable's
// shape and no Indices. A sparse one, of a table that rows were gathered from,
// is rows [n,...] and the int64 indices [n] of the table's rows that they
// belong to; one row may come several times.
type Gradient struct {
	Value, Indices ValueID
}

// Sparse says whether the gradient is rows and indices.
func (g Gradient) Sparse() bool { return g.Indices != None }

// wants says, while Gradients runs, whether the gradient of v leads anywhere.
func (b *Builder) wants(v ValueID) bool {
	return b.err == nil && v >= 0 && int(v) < len(b.reach) && b.reach[v]
}

// Gradients adds the backward pass and gives the gradient of the scalar loss
// with respect to each of wrt as a dense tensor. See Derive.
func (b *Builder) Gradients(loss ValueID, wrt []ValueID) []ValueID {
	grads := b.Derive(loss, None, wrt)
	defer b.Enter(Backward)()
	defer b.Scope("gradients")()
	out := make([]ValueID, len(grads))
	for i, g := range grads {
		out[i] = b.dense(g, b.shape(wrt[i]))
	}
	return out
}

// Derive adds the backward pass: the nodes that compute the gradient of the
// scalar loss with respect to each of wrt, in reverse program order under the
// scope "gradients/". It returns one gradient for each of wrt. The pass begins
// with the gradient initial, a scalar such as a loss scale, or with 1 for None.
//
// Only what is needed is added: no gradient of an image or of an integer,
// nothing behind a constant or a StopGradient. Where several gradients meet in
// one value they are summed by AddN at the moment all of them exist; where all
// of them are sparse they are joined, else made dense.
func (b *Builder) Derive(loss, initial ValueID, wrt []ValueID) []Gradient {
	if b.err != nil {
		return nil
	}
	if s := b.shape(loss); len(s) != 0 {
		b.fail(fmt.Errorf("gradients of %s: the loss must be a scalar, has shape %s", b.p.Values[loss].Name, s))
		return nil
	}
	defer b.Enter(Backward)()
	defer b.Scope("gradients")()
	forward := NodeID(len(b.p.Nodes))
	b.markReach(wrt)
	if initial == None {
		initial = b.Const("Const", b.p.Values[loss].DType, nil, 1)
	}
	pending := make([][]Gradient, len(b.p.Values)) // gradients that arrived, by value
	pending[loss] = []Gradient{{initial, None}}
	for n := forward - 1; n >= 0 && b.err == nil; n-- {
		b.backward(n, pending)
	}
	out := make([]Gradient, len(wrt))
	for i, v := range wrt {
		out[i] = b.gather(v, pending)
		if b.err != nil {
			return nil
		}
		if out[i].Value == None {
			b.fail(fmt.Errorf("gradients: the loss does not depend on %s", b.p.Values[v].Name))
			return nil
		}
		if b.holds[out[i].Value] == None {
			b.p.Values[out[i].Value].Role = RoleGradient
		}
	}
	b.reach = nil
	return out
}

// Densify gives a gradient as a tensor of shape s, its variable's: itself, or
// the sum of its rows.
func (b *Builder) Densify(g Gradient, s Shape) ValueID {
	if !g.Sparse() || b.err != nil {
		return g.Value
	}
	return b.Op(OpUnsortedSegmentSum, Attrs{Shape: s}, g.Value, g.Indices)
}

// dense is Densify for the whole gradient of a variable.
func (b *Builder) dense(g Gradient, s Shape) ValueID {
	v := b.Densify(g, s)
	if g.Sparse() {
		b.role(v, RoleGradient)
	}
	return v
}

// markReach finds the values that depend on one of wrt in a way that has a
// gradient.
func (b *Builder) markReach(wrt []ValueID) {
	b.reach = make([]bool, len(b.p.Values))
	for _, v := range wrt {
		b.reach[v] = true
	}
	for i := range b.p.Nodes {
		if n := &b.p.Nodes[i]; n.Op != OpStopGradient && b.reaches(n) {
			for _, o := range n.Outputs {
				b.reach[o] = b.p.Values[o].DType.Float()
			}
		}
	}
}

func (b *Builder) reaches(n *Node) bool {
	for _, v := range n.Inputs {
		if b.reach[v] {
			return true
		}
	}
	return false
}

// backward adds the backward nodes of forward node n, if gradients of its
// outputs arrived.
func (b *Builder) backward(n NodeID, pending [][]Gradient) {
	outs := b.p.Nodes[n].Outputs
	grads := make([]ValueID, len(outs))
	arrived := false
	for i, v := range outs {
		grads[i] = None
		if b.reach[v] && b.p.Values[v].Variable == None {
			grads[i] = b.Densify(b.gather(v, pending), b.shape(v))
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
			pending[v] = append(pending[v], Gradient{g, b.indices(g)})
		}
	}
}

// indices says which rows a gradient function's answer holds, None for a dense
// one.
func (b *Builder) indices(g ValueID) ValueID {
	if i, ok := b.rows[g]; ok {
		return i
	}
	return None
}

// gather gives the whole gradient of v: nothing, the only one, or the sum.
func (b *Builder) gather(v ValueID, pending [][]Gradient) Gradient {
	g := pending[v]
	switch len(g) {
	case 0:
		return Gradient{None, None}
	case 1:
		return g[0]
	}
	pending[v] = []Gradient{b.sum(g, b.shape(v))}
	return pending[v][0]
}

// sum adds up gradients that meet, as TensorFlow's AddN and its counterpart
// for sparse ones do.
func (b *Builder) sum(g []Gradient, s Shape) Gradient {
	values, indices := make([]ValueID, len(g)), make([]ValueID, len(g))
	sparse := true
	for i := range g {
		values[i], indices[i] = g[i].Value, g[i].Indices
		sparse = sparse && g[i].Sparse()
	}
	if sparse {
		at := Attrs{Axes: []int64{0}}
		return Gradient{b.Op(OpConcat, at, values...), b.Op(OpConcat, at, indices...)}
	}
	for i := range g {
		values[i] = b.Densify(g[i], s)
	}
	return Gradient{b.do(OpAddN, values...), None}
}

// parent is the scope that a name stands in.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return name
}

// do is Op without Attrs, which are large to hand over in every call.
func (b *Builder) do(op Op, inputs ...ValueID) ValueID { return b.Op(op, Attrs{}, inputs...) }
