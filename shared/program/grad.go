package program

import "slices"

// The gradient functions of the op table. Each adds backward nodes for those
// inputs whose gradient is wanted and returns one value per input. They name
// the tensors that a backward pass keeps alive, so what they take (the output
// for tanh and relu, the input for a product) decides a step's peak.

func gradIdentity(_ *Builder, _ NodeID, g []ValueID) []ValueID { return []ValueID{g[0]} }

func gradCast(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.Op(OpCast, Attrs{DType: b.DType(b.input(n, 0))}, g[0])}
}

func gradReshape(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.Op(OpReshape, Attrs{Shape: b.shape(b.input(n, 0))}, g[0])}
}

func gradBroadcastTo(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.reduceTo(g[0], b.shape(b.input(n, 0)))}
}

func gradMatMul(b *Builder, n NodeID, g []ValueID) []ValueID {
	x, y, at, op := b.input(n, 0), b.input(n, 1), b.p.Nodes[n].Attrs, b.p.Nodes[n].Op
	gx, gy := ValueID(None), ValueID(None)
	if b.wants(x) {
		switch {
		case !at.TransposeA:
			gx = b.Op(op, Attrs{TransposeB: !at.TransposeB}, g[0], y)
		default:
			gx = b.Op(op, Attrs{TransposeA: at.TransposeB, TransposeB: true}, y, g[0])
		}
	}
	if b.wants(y) {
		switch {
		case !at.TransposeB:
			gy = b.Op(op, Attrs{TransposeA: !at.TransposeA}, x, g[0])
		default:
			gy = b.Op(op, Attrs{TransposeA: true, TransposeB: at.TransposeA}, g[0], x)
		}
	}
	return []ValueID{gx, gy}
}

func gradBiasAdd(b *Builder, n NodeID, g []ValueID) []ValueID {
	bias := ValueID(None)
	if b.wants(b.input(n, 1)) {
		bias = b.do(OpBiasAddGrad, g[0])
	}
	return []ValueID{g[0], bias}
}

func gradConv2D(b *Builder, n NodeID, g []ValueID) []ValueID {
	x, w := b.input(n, 0), b.input(n, 1)
	at := Attrs{Strides: b.p.Nodes[n].Attrs.Strides, Padding: b.p.Nodes[n].Attrs.Padding}
	gx, gw := ValueID(None), ValueID(None)
	if b.wants(x) {
		at.Shape = b.shape(x)
		gx = b.Op(OpConv2DBackpropInput, at, w, g[0])
	}
	if b.wants(w) {
		at.Shape = b.shape(w)
		gw = b.Op(OpConv2DBackpropFilter, at, x, g[0])
	}
	return []ValueID{gx, gw}
}

// gradTransposedConv is of the convolution's gradient as an op of its own, the
// transposed convolution: inputs filter and images.
func gradTransposedConv(b *Builder, n NodeID, g []ValueID) []ValueID {
	w, x := b.input(n, 0), b.input(n, 1)
	at := Attrs{Strides: b.p.Nodes[n].Attrs.Strides, Padding: b.p.Nodes[n].Attrs.Padding}
	gx, gw := ValueID(None), ValueID(None)
	if b.wants(x) {
		gx = b.Op(OpConv2D, at, g[0], w)
	}
	if b.wants(w) {
		at.Shape = b.shape(w)
		gw = b.Op(OpConv2DBackpropFilter, at, g[0], x)
	}
	return []ValueID{gw, gx}
}

func gradAvgPool(b *Builder, n NodeID, g []ValueID) []ValueID {
	at := b.p.Nodes[n].Attrs
	at.Shape = b.shape(b.input(n, 0))
	return []ValueID{b.Op(OpAvgPoolGrad, at, g[0])}
}

func gradMaxPool(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.Op(OpMaxPoolGrad, b.p.Nodes[n].Attrs, b.input(n, 0), b.output(n, 0), g[0])}
}

func gradAdd(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.towards(n, 0, g[0]), b.towards(n, 1, g[0])}
}

func gradSub(b *Builder, n NodeID, g []ValueID) []ValueID {
	neg := ValueID(None)
	if b.wants(b.input(n, 1)) {
		neg = b.towards(n, 1, b.do(OpNeg, g[0]))
	}
	return []ValueID{b.towards(n, 0, g[0]), neg}
}

func gradMul(b *Builder, n NodeID, g []ValueID) []ValueID {
	x, y := b.input(n, 0), b.input(n, 1)
	gx, gy := ValueID(None), ValueID(None)
	if b.wants(x) {
		gx = b.towards(n, 0, b.do(OpMul, g[0], y))
	}
	if b.wants(y) {
		gy = b.towards(n, 1, b.do(OpMul, g[0], x))
	}
	return []ValueID{gx, gy}
}

func gradAddN(b *Builder, n NodeID, g []ValueID) []ValueID {
	out := make([]ValueID, len(b.p.Nodes[n].Inputs))
	for i := range out {
		out[i] = g[0]
	}
	return out
}

func gradSum(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.spread(n, g[0])}
}

func gradMean(b *Builder, n NodeID, g []ValueID) []ValueID {
	count := b.shape(b.input(n, 0)).Elements() / max(1, b.shape(b.output(n, 0)).Elements())
	return []ValueID{b.scaled(b.spread(n, g[0]), 1/float64(max(1, count)))}
}

// scaled multiplies v by a constant.
func (b *Builder) scaled(v ValueID, by float64) ValueID {
	return b.do(OpMul, v, b.Const("Const", b.DType(v), nil, by))
}

// spread undoes a reduction's shape: it repeats g over the reduced dimensions.
func (b *Builder) spread(n NodeID, g ValueID) ValueID {
	if len(b.shape(g)) > 0 {
		g = b.keep(n, g)
	}
	return b.Op(OpBroadcastTo, Attrs{Shape: b.shape(b.input(n, 0))}, g)
}

// keep gives v, of a reduction's result, the dimensions that were reduced,
// with extent 1.
func (b *Builder) keep(n NodeID, v ValueID) ValueID {
	kept := slices.Clone(b.shape(b.input(n, 0)))
	for d := range kept {
		if b.p.Nodes[n].reduces(d) {
			kept[d] = 1
		}
	}
	if b.shape(v).Equal(kept) {
		return v
	}
	return b.Op(OpReshape, Attrs{Shape: kept}, v)
}

// towards brings a gradient of the output to the shape of input i, if that
// gradient is wanted.
func (b *Builder) towards(n NodeID, i int, g ValueID) ValueID {
	if !b.wants(b.input(n, i)) {
		return None
	}
	return b.reduceTo(g, b.shape(b.input(n, i)))
}

// reduceTo undoes broadcasting: it sums g over the dimensions along which a
// tensor of shape s was repeated.
func (b *Builder) reduceTo(g ValueID, s Shape) ValueID {
	from := b.shape(g)
	if from.Equal(s) {
		return g
	}
	var axes []int64
	off := len(from) - len(s)
	for d, e := range from {
		if d < off || (s[d-off] == 1 && e != 1) {
			axes = append(axes, int64(d))
		}
	}
	if axes != nil {
		g = b.Op(OpSum, Attrs{Axes: axes}, g)
	}
	if !b.shape(g).Equal(s) {
		g = b.Op(OpReshape, Attrs{Shape: s}, g)
	}
	return g
}
