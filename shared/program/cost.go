package program

// flopsTanh counts a hyperbolic tangent as a rational function of this size;
// the op is bound by memory on every device, so the figure matters little.
const flopsTanh = 10

// traffic is the bytes of all inputs and outputs, each moved once.
func traffic(p *Program, n *Node) int64 {
	var b int64
	for _, v := range n.Inputs {
		b += p.Values[v].Bytes()
	}
	for _, v := range n.Outputs {
		b += p.Values[v].Bytes()
	}
	return b
}

func costNone(*Program, *Node) Cost { return Cost{} }

func costMove(p *Program, n *Node) Cost { return Cost{Bytes: traffic(p, n)} }

func costElementwise(flops int64) func(*Program, *Node) Cost {
	return func(p *Program, n *Node) Cost {
		return Cost{FLOPs: flops * p.Values[n.Outputs[0]].Shape.Elements(), Bytes: traffic(p, n)}
	}
}

func costAddN(p *Program, n *Node) Cost {
	return Cost{FLOPs: int64(len(n.Inputs)-1) * p.Values[n.Outputs[0]].Shape.Elements(), Bytes: traffic(p, n)}
}

func costReduce(p *Program, n *Node) Cost {
	return Cost{FLOPs: in(p, n, 0).Shape.Elements(), Bytes: traffic(p, n)}
}

func costMatMul(p *Program, n *Node) Cost {
	k := in(p, n, 0).Shape[1]
	if n.Attrs.TransposeA {
		k = in(p, n, 0).Shape[0]
	}
	return Cost{FLOPs: 2 * k * p.Values[n.Outputs[0]].Shape.Elements(), Bytes: traffic(p, n)}
}

// costConv2D holds for all three convolution ops: each is one matrix product
// of the same extents.
func costConv2D(p *Program, n *Node) Cost {
	w := p.ConvWindow(n)
	return Cost{FLOPs: 2 * w.N * w.Columns() * w.OutC, Bytes: traffic(p, n)}
}

func costPool(p *Program, n *Node) Cost {
	w := p.PoolWindow(n)
	return Cost{FLOPs: w.KH * w.KW * p.Values[n.Outputs[0]].Shape.Elements(), Bytes: traffic(p, n)}
}

func costPoolGrad(p *Program, n *Node) Cost {
	w := p.PoolWindow(n)
	return Cost{FLOPs: w.N * w.Columns(), Bytes: traffic(p, n)}
}

func costSparseXent(p *Program, n *Node) Cost {
	return Cost{FLOPs: (flopsTanh + 4) * in(p, n, 0).Shape.Elements(), Bytes: traffic(p, n)}
}

// The variable is read and written, so it counts twice.

func costApplySGD(p *Program, n *Node) Cost {
	v := in(p, n, 0)
	return Cost{FLOPs: 2 * v.Shape.Elements(), Bytes: traffic(p, n) + v.Bytes()}
}

func costApplyAdam(p *Program, n *Node) Cost {
	v := in(p, n, 0)
	return Cost{FLOPs: 12 * v.Shape.Elements(), Bytes: traffic(p, n) + 3*v.Bytes()}
}

// workspaceLimit bounds the workspace of one convolution. TensorFlow's own
// limit for the search of an algorithm is 4 GiB; a smaller one keeps the
// unrolled images of a big batch from dwarfing what they are made of.
const workspaceLimit = 32 << 20

// workspaceConv2D is the memory for images unrolled into a matrix (im2col):
// as many samples at a time as fit workspaceLimit, at least one. A 1x1 window
// with stride 1 needs none, its image already is that matrix.
func workspaceConv2D(p *Program, n *Node) int64 {
	w := p.ConvWindow(n)
	if w.Pointwise() {
		return 0
	}
	sample := w.Columns() * in(p, n, 0).DType.Size()
	return sample * max(1, min(w.N, workspaceLimit/sample))
}

// Pointwise says whether the unrolled image is the image itself.
func (w *Window) Pointwise() bool {
	return w.KH == 1 && w.KW == 1 && w.SH == 1 && w.SW == 1
}

// workspaceSparseXent is one number per sample: the row's maximum, then the
// sum of its exponentials.
func workspaceSparseXent(p *Program, n *Node) int64 {
	return in(p, n, 0).Shape[0] * in(p, n, 0).DType.Size()
}

// Cost is the work of node n, zero for an unknown op.
func (p *Program) Cost(n *Node) Cost {
	if d := defs[n.Op]; d != nil {
		return d.Cost(p, n)
	}
	return Cost{}
}

// TotalCost is the work of all nodes of a phase.
func (p *Program) TotalCost(ph Phase) Cost {
	var sum Cost
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Phase == ph {
			c := p.Cost(n)
			sum.FLOPs += c.FLOPs
			sum.Bytes += c.Bytes
		}
	}
	return sum
}

// Parameters is the number of the model's parameters, trained or not: the
// elements of all variables that are not the optimizer's.
func (p *Program) Parameters() int64 {
	return p.count(func(v *Variable) bool { return !v.Slot && !v.Training })
}

// TrainedParameters is the number of parameters that an optimizer changes.
func (p *Program) TrainedParameters() int64 { return p.count((*Variable).Trained) }

func (p *Program) count(which func(*Variable) bool) int64 {
	var sum int64
	for i := range p.Variables {
		if v := &p.Variables[i]; which(v) {
			sum += v.Shape.Elements()
		}
	}
	return sum
}
