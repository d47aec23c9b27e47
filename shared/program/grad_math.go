package program

import (
	"math"
	"slices"
)

// gradOf is the gradient by an op of its own, which takes the forward op's
// output or its input, and the incoming gradient first or last.
func gradOf(op Op, output, gradientFirst bool) func(*Builder, NodeID, []ValueID) []ValueID {
	return func(b *Builder, n NodeID, g []ValueID) []ValueID {
		kept := b.input(n, 0)
		if output {
			kept = b.output(n, 0)
		}
		at := Attrs{Value: b.p.Nodes[n].Attrs.Value}
		if gradientFirst {
			return []ValueID{b.Op(op, at, g[0], kept)}
		}
		return []ValueID{b.Op(op, at, kept, g[0])}
	}
}

func gradExp(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpMul, g[0], b.output(n, 0))}
}

func gradLog(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpDiv, g[0], b.input(n, 0))}
}

func gradSquare(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpMul, g[0], b.scaled(b.input(n, 0), 2))}
}

func gradNeg(b *Builder, _ NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpNeg, g[0])}
}

// gradAbs takes the slope at 0 for 1.
func gradAbs(b *Builder, n NodeID, g []ValueID) []ValueID {
	x := b.input(n, 0)
	up := b.do(OpGreaterEqual, x, b.zero(x))
	return []ValueID{b.do(OpSelect, up, g[0], b.do(OpNeg, g[0]))}
}

func gradErf(b *Builder, n NodeID, g []ValueID) []ValueID {
	bell := b.do(OpExp, b.do(OpNeg, b.do(OpSquare, b.input(n, 0))))
	return []ValueID{b.do(OpMul, g[0], b.scaled(bell, 2/math.Sqrt(math.Pi)))}
}

func gradDiv(b *Builder, n NodeID, g []ValueID) []ValueID {
	x, y := b.input(n, 0), b.input(n, 1)
	gx, gy := ValueID(None), ValueID(None)
	if b.wants(x) {
		gx = b.towards(n, 0, b.do(OpDiv, g[0], y))
	}
	if b.wants(y) {
		slope := b.do(OpDiv, b.do(OpDiv, b.do(OpNeg, x), y), y)
		gy = b.towards(n, 1, b.do(OpMul, g[0], slope))
	}
	return []ValueID{gx, gy}
}

// gradPow takes the logarithm of a base of 0 or less for 0, as TensorFlow does.
func gradPow(b *Builder, n NodeID, g []ValueID) []ValueID {
	x, y := b.input(n, 0), b.input(n, 1)
	gx, gy := ValueID(None), ValueID(None)
	if b.wants(x) {
		less := b.do(OpSub, y, b.Const("Const", b.DType(y), nil, 1))
		slope := b.do(OpMul, y, b.do(OpPow, x, less))
		gx = b.towards(n, 0, b.do(OpMul, g[0], slope))
	}
	if b.wants(y) {
		log := b.do(OpSelect, b.do(OpGreater, x, b.zero(x)), b.do(OpLog, x), b.zero(x))
		gy = b.towards(n, 1, b.do(OpMul, g[0], b.do(OpMul, b.output(n, 0), log)))
	}
	return []ValueID{gx, gy}
}

// gradLarger is of Maximum and Minimum: input 0 has the gradient where it is
// chosen, also where both are equal.
func gradLarger(b *Builder, n NodeID, g []ValueID) []ValueID {
	large, small := b.input(n, 0), b.input(n, 1)
	if b.p.Nodes[n].Op == OpMinimum {
		large, small = small, large
	}
	return b.choose(n, 0, b.do(OpGreaterEqual, large, small), g[0])
}

func gradSelect(b *Builder, n NodeID, g []ValueID) []ValueID {
	return append([]ValueID{None}, b.choose(n, 1, b.input(n, 0), g[0])...)
}

// choose gives the gradients of inputs i and i+1, one of which the output is.
func (b *Builder) choose(n NodeID, i int, first, g ValueID) []ValueID {
	out := []ValueID{None, None}
	if b.wants(b.input(n, i)) {
		out[0] = b.towards(n, i, b.do(OpSelect, first, g, b.zero(g)))
	}
	if b.wants(b.input(n, i+1)) {
		out[1] = b.towards(n, i+1, b.do(OpSelect, first, b.zero(g), g))
	}
	return out
}

func gradSquaredDifference(b *Builder, n NodeID, g []ValueID) []ValueID {
	diff := b.do(OpSub, b.input(n, 0), b.input(n, 1))
	slope := b.do(OpMul, g[0], b.scaled(diff, 2))
	gy := ValueID(None)
	if b.wants(b.input(n, 1)) {
		gy = b.towards(n, 1, b.do(OpNeg, slope))
	}
	return []ValueID{b.towards(n, 0, slope), gy}
}

// zero is a scalar of v's type.
func (b *Builder) zero(v ValueID) ValueID { return b.Const("Const", b.DType(v), nil, 0) }

// gradMax shares the gradient among those that are equally large.
func gradMax(b *Builder, n NodeID, g []ValueID) []ValueID {
	x := b.input(n, 0)
	largest := b.cast(b.do(OpEqual, x, b.keep(n, b.output(n, 0))), b.DType(x))
	count := b.Op(OpSum, Attrs{Axes: b.p.Nodes[n].Attrs.Axes, KeepDims: true}, largest)
	return []ValueID{b.do(OpMul, largest, b.do(OpDiv, b.keep(n, g[0]), count))}
}

func gradL2Loss(b *Builder, n NodeID, g []ValueID) []ValueID {
	return []ValueID{b.do(OpMul, b.input(n, 0), g[0])}
}

// gradTopK adds the gradients to zeros at the places that the second output
// tells, counted through the whole tensor.
func gradTopK(b *Builder, n NodeID, g []ValueID) []ValueID {
	s, picked := b.shape(b.input(n, 0)), b.shape(g[0])
	last := len(s) - 1
	count := s[:last].Elements()
	row := b.Op(OpRange, Attrs{DType: Int64, Shape: Shape{count}})
	start := b.do(OpMul, row, b.Const("Const", Int64, nil, float64(s[last])))
	start = b.Op(OpReshape, Attrs{Shape: append(slices.Clone(s[:last]), 1)}, start)
	at := b.do(OpAdd, b.cast(b.output(n, 1), Int64), start)
	flat := Attrs{Shape: Shape{picked.Elements()}}
	sum := b.Op(OpUnsortedSegmentSum, Attrs{Shape: Shape{s.Elements()}}, b.Op(OpReshape, flat, g[0]), b.Op(OpReshape, flat, at))
	return []ValueID{b.Op(OpReshape, Attrs{Shape: s}, sum)}
}

func gradLogSoftmax(b *Builder, n NodeID, g []ValueID) []ValueID {
	last := int64(len(b.shape(g[0])) - 1)
	sum := b.Op(OpSum, Attrs{Axes: []int64{last}, KeepDims: true}, g[0])
	return []ValueID{b.do(OpSub, g[0], b.do(OpMul, sum, b.do(OpExp, b.output(n, 0))))}
}
