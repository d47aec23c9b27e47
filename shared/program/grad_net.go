package program

import (
	"fmt"
	"slices"
)

// only says whether output 0 has a gradient; one of another output is an
// error, as those only serve the backward pass and statistics.
func (b *Builder) only(n NodeID, g []ValueID) bool {
	for i := 1; i < len(g); i++ {
		if g[i] != None {
			b.fail(fmt.Errorf("node %s: %s has no gradient through its output %d", b.p.Nodes[n].Name, b.p.Nodes[n].Op, i))
			return false
		}
	}
	return g[0] != None
}

func gradBatchNorm(b *Builder, n NodeID, g []ValueID) []ValueID {
	if !b.only(n, g) {
		return nil
	}
	at := Attrs{Value: b.p.Nodes[n].Attrs.Value, Training: b.p.Nodes[n].Attrs.Training}
	d := b.Node(OpFusedBatchNormGrad, at, g[0], b.input(n, 0), b.input(n, 1), b.output(n, 3), b.output(n, 4))
	return []ValueID{d[0], d[1], d[2], None, None}
}

func gradLayerNorm(b *Builder, n NodeID, g []ValueID) []ValueID {
	if !b.only(n, g) {
		return nil
	}
	return b.Node(OpLayerNormGrad, Attrs{}, g[0], b.input(n, 0), b.input(n, 1), b.output(n, 1), b.output(n, 2))[:3]
}

func gradDropout(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.Op(OpDropoutGrad, Attrs{Value: b.p.Nodes[n].Attrs.Value}, g[0], b.output(n, 1))}
}

// gradLSTM takes a state that nothing came back for as zero.
func gradLSTM(b *Builder, n NodeID, g []ValueID) []ValueID {
	if g[0] != None {
		b.fail(fmt.Errorf("node %s: %s has no gradient through its gates", b.p.Nodes[n].Name, b.p.Nodes[n].Op))
		return nil
	}
	dc, dh := b.orZeros(g[1], b.output(n, 1)), b.orZeros(g[2], b.output(n, 2))
	return b.Node(OpLSTMCellGrad, Attrs{}, b.output(n, 0), b.input(n, 1), b.output(n, 1), dc, dh)[:2]
}

// orZeros is g, or zeros like v where g is None.
func (b *Builder) orZeros(g, v ValueID) ValueID {
	if g == None {
		g = b.Const("zeros", b.DType(v), b.shape(v), 0)
	}
	return g
}

// gradXent scales the gradient that the forward op left as its second output
// by what comes in for each sample. Label distributions have one, too.
func gradXent(b *Builder, n NodeID, g []ValueID) []ValueID {
	if !b.only(n, g) {
		return nil
	}
	out := []ValueID{None, None}
	column := b.Op(OpReshape, Attrs{Shape: Shape{b.shape(g[0])[0], 1}}, g[0])
	if b.wants(b.input(n, 0)) {
		out[0] = b.do(OpMul, column, b.output(n, 1))
	}
	if b.wants(b.input(n, 1)) {
		out[1] = b.do(OpMul, b.do(OpNeg, column), b.do(OpLogSoftmax, b.input(n, 0)))
	}
	return out
}

func gradTranspose(b *Builder, n NodeID, g []ValueID) []ValueID {
	axes := b.p.Nodes[n].Attrs.Axes
	back := make([]int64, len(axes))
	for i, a := range axes {
		back[a] = int64(i)
	}
	return []ValueID{b.Op(OpTranspose, Attrs{Axes: back}, g[0])}
}

func gradConcat(b *Builder, n NodeID, g []ValueID) []ValueID {
	inputs, axis := b.p.Nodes[n].Inputs, b.p.Nodes[n].Attrs.Axes[0]
	out := make([]ValueID, len(inputs))
	begin := make([]int64, len(b.shape(g[0])))
	for i, v := range inputs {
		out[i] = None
		if b.wants(v) {
			out[i] = b.Op(OpSlice, Attrs{Begin: slices.Clone(begin), Shape: b.shape(v)}, g[0])
		}
		if b.err == nil {
			begin[axis] += b.shape(v)[axis]
		}
	}
	return out
}

func gradSplit(b *Builder, n NodeID, g []ValueID) []ValueID {
	parts := make([]ValueID, len(g))
	for i := range g {
		parts[i] = b.orZeros(g[i], b.output(n, i))
	}
	return []ValueID{b.Op(OpConcat, Attrs{Axes: b.p.Nodes[n].Attrs.Axes[:1]}, parts...)}
}

func gradSlice(b *Builder, n NodeID, g []ValueID) []ValueID {
	at, end := b.p.Nodes[n].Attrs, slices.Clone(b.shape(b.input(n, 0)))
	for d := range end {
		end[d] -= at.Begin[d] + at.Shape[d]
	}
	return []ValueID{b.Op(OpPad, Attrs{Begin: at.Begin, End: end}, g[0])}
}

func gradPad(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.Op(OpSlice, Attrs{Begin: b.p.Nodes[n].Attrs.Begin, Shape: b.shape(b.input(n, 0))}, g[0])}
}

// gradTile splits each dimension into repeats and what is repeated, and sums
// over the repeats.
func gradTile(b *Builder, n NodeID, g []ValueID) []ValueID {
	var split Shape
	var axes []int64
	for d, e := range b.shape(b.input(n, 0)) {
		axes = append(axes, int64(len(split)))
		split = append(split, b.p.Nodes[n].Attrs.Axes[d], e)
	}
	if axes == nil { // a scalar: nothing is repeated
		return g
	}
	return []ValueID{b.Op(OpSum, Attrs{Axes: axes}, b.Op(OpReshape, Attrs{Shape: split}, g[0]))}
}

// gradGather is sparse: the rows that were gathered, each with its index.
func gradGather(b *Builder, n NodeID, g []ValueID) []ValueID {
	table, ids := b.shape(b.input(n, 0)), b.input(n, 1)
	count := b.shape(ids).Elements()
	rows := b.Op(OpReshape, Attrs{Shape: append(Shape{count}, table[1:]...)}, g[0])
	b.rows[rows] = b.cast(b.Op(OpReshape, Attrs{Shape: Shape{count}}, ids), Int64)
	return []ValueID{rows, None}
}

func gradSegmentSum(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpGather, g[0], b.input(n, 1)), None}
}
