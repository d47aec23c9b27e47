package program

// flopsTanh counts a hyperbolic tangent, an exponential or a logarithm as a
// rational function of this size; such ops are bound by memory on every
// device, so the figure matters little.
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
	s := in(p, n, 0).Shape
	k := s[len(s)-1]
	if n.Attrs.TransposeA {
		k = s[len(s)-2]
	}
	return Cost{FLOPs: 2 * k * out(p, n, 0).Shape.Elements(), Bytes: traffic(p, n)}
}

// out is the value of output i.
func out(p *Program, n *Node, i int) *Value { return &p.Values[n.Outputs[i]] }

// costGather moves the rows that it gives, not the whole of what it takes from.
func costGather(p *Program, n *Node) Cost {
	b := 2 * out(p, n, 0).Bytes()
	for _, v := range n.Inputs[1:] {
		b += p.Values[v].Bytes() // indices
	}
	return Cost{Bytes: b}
}

// costSegmentSum reads and writes the rows that it adds to, once more than it
// writes the zeros.
func costSegmentSum(p *Program, n *Node) Cost {
	rows := in(p, n, 0)
	return Cost{FLOPs: rows.Shape.Elements(), Bytes: traffic(p, n) + 2*rows.Bytes()}
}

// costPasses is of ops that go over input i, the activations, this many times
// more than once, with flops an element.
func costPasses(flops, more int64, i int) func(*Program, *Node) Cost {
	return func(p *Program, n *Node) Cost {
		x := in(p, n, i)
		return Cost{FLOPs: flops * x.Shape.Elements(), Bytes: traffic(p, n) + more*x.Bytes()}
	}
}

// costApply is of updates with flops an element of the variable. What they
// change, the variable and its slots, is read and written, so it counts twice.
func costApply(flops int64, slots int) func(*Program, *Node) Cost {
	return func(p *Program, n *Node) Cost {
		b := traffic(p, n)
		for _, v := range n.Inputs[:1+slots] {
			b += p.Values[v].Bytes()
		}
		return Cost{FLOPs: flops * in(p, n, 0).Shape.Elements(), Bytes: b}
	}
}

// costSparseApply is of updates of some rows only.
func costSparseApply(flops int64, slots int64) func(*Program, *Node) Cost {
	return func(p *Program, n *Node) Cost {
		last := len(n.Inputs) - 1
		if n.Attrs.Guarded {
			last--
		}
		g := in(p, n, last-1)
		return Cost{FLOPs: flops * g.Shape.Elements(), Bytes: in(p, n, last).Bytes() + g.Bytes()*(3+2*slots)}
	}
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
	return sample * max(1, min(w.N, workspaceLimit/max(1, sample)))
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

// workspaceSoftmax is a maximum and a sum per row, as TensorFlow's kernel keeps
// them.
func workspaceSoftmax(p *Program, n *Node) int64 {
	x := in(p, n, 0)
	rows := x.Shape[:len(x.Shape)-1].Elements()
	return rows * (x.DType.Size() + statistics(x.DType).Size())
}

// The sizes at which TensorFlow's reductions change their way (reduction_gpu_kernels).
const (
	reduceOneBlock   = 4096    // elements: one block of threads, no scratch
	reduceFewBlocks  = 1 << 18 // elements: up to a warp of blocks, one number each
	reduceWarp       = 32
	reduceMostBlocks = 3200 // beyond: what a card of 80 processors runs at once (modelled)
	reduceLongRow    = 1024 // columns: segments of the library, which asks for one byte
	reduceWide       = 4096 // columns: one thread each, no scratch
)

// workspaceReduce is the scratch of a reduction: partial results of blocks.
func workspaceReduce(p *Program, n *Node) int64 {
	x := in(p, n, 0).Shape
	size, all := in(p, n, 0).DType.Size(), x.Elements()
	columns := int64(1) // extent of what is kept behind what is reduced
	d := len(x) - 1
	for ; d >= 0 && !n.reduces(d); d-- {
		columns *= x[d]
	}
	row := int64(1) // extent of what is reduced
	for ; d >= 0 && n.reduces(d); d-- {
		row *= x[d]
	}
	switch {
	case row == all:
		return size * scalarBlocks(all)
	case columns > 1 && row*columns == all:
		if columns >= reduceWide {
			return 0
		}
		if blocks := min(reduceWarp, (row+reduceWarp-1)/reduceWarp); blocks > 1 {
			return size * columns * blocks
		}
	case columns == 1 && row >= reduceLongRow:
		return 1
	}
	return 0
}

// reduces says whether a reduction removes dimension d; L2Loss removes all.
func (n *Node) reduces(d int) bool { return reducesAxis(n.Attrs.Axes, d) }

// scalarBlocks is the partial results of a reduction of this many elements to
// one.
func scalarBlocks(elements int64) int64 {
	switch {
	case elements <= reduceOneBlock:
		return 0
	case elements <= reduceFewBlocks:
		return reduceWarp
	default:
		return reduceMostBlocks
	}
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
