package zoo

import (
	"math"

	"tideline/shared/program"
)

// table adds the rows of an embedding, as variables are stored.
func (n *net) table(name string, rows, width int64) program.ValueID {
	return n.Variable(name, program.Shape{rows, width}, tokenInit)
}

// lookup gives the rows of a table that ids name, in the type of the arithmetic.
func (n *net) lookup(name string, table, ids program.ValueID) program.ValueID {
	defer n.Scope(name + "_lookup")()
	return n.cast(n.Op(program.OpGather, program.Attrs{}, table, ids), n.ComputeType())
}

func (n *net) embedding(name string, ids program.ValueID, rows, width int64) program.ValueID {
	return n.lookup(name, n.table(name, rows, width), ids)
}

// position adds the embedding of the positions: its first s rows, for all
// samples.
func (n *net) position(name string, rows, s, width int64) program.ValueID {
	x := n.Weight(name, program.Shape{rows, width}, tokenInit)
	if s < rows {
		x = n.Op(program.OpSlice, program.Attrs{Begin: []int64{0, 0}, Shape: program.Shape{s, width}}, x)
	}
	return n.reshape(x, program.Shape{1, s, width})
}

// row gives token i of each sample: [n*s,h] to [n,h].
func (n *net) row(x program.ValueID, s, i int64) program.ValueID {
	h := n.last(x)
	x = n.reshape(x, program.Shape{n.samples, s, h})
	x = n.Op(program.OpSlice, program.Attrs{Begin: []int64{0, i, 0}, Shape: program.Shape{n.samples, 1, h}}, x)
	return n.reshape(x, program.Shape{n.samples, h})
}

// causal is what is added to attention scores so that no token sees a later
// one: [s,s], 0 up to the diagonal, far below 0 above it.
func (n *net) causal(s int64) program.ValueID {
	defer n.Scope("mask")()
	d := n.ComputeType()
	far := -1e9
	if d == program.Float16 {
		far = -3e4
	}
	at := program.Attrs{Shape: program.Shape{s}, DType: program.Float32}
	from := n.reshape(n.Op(program.OpRange, at), program.Shape{s, 1})
	later := n.Op(program.OpLess, program.Attrs{}, from, n.Op(program.OpRange, at))
	return n.times(n.cast(later, d), far)
}

// attend adds self attention over x [n*s,h]: queries, keys and values of each
// head, softmax of their products, the mixture of the values, and a product
// back to h. mask is added to the scores; None is none.
func (n *net) attend(t transformer, x, mask program.ValueID) program.ValueID {
	defer n.Scope("attention")()
	q := n.heads(t, n.dense("query", x, t.width, ""))
	k := n.heads(t, n.dense("key", x, t.width, ""))
	v := n.heads(t, n.dense("value", x, t.width, ""))
	scores := n.Op(program.OpBatchMatMul, program.Attrs{TransposeB: true}, q, k)
	scores = n.times(scores, 1/math.Sqrt(float64(t.width/t.heads)))
	if mask != program.None {
		scores = n.add(scores, mask)
	}
	p := n.dropout(t, n.Op(program.OpSoftmax, program.Attrs{}, scores))
	y := n.Op(program.OpTranspose, swap, n.Op(program.OpBatchMatMul, program.Attrs{}, p, v))
	y = n.reshape(y, program.Shape{n.Shape(y).Elements() / t.width, t.width})
	return n.dropout(t, n.dense("output", y, t.width, ""))
}

// swap exchanges the dimensions of tokens and heads.
var swap = program.Attrs{Axes: []int64{0, 2, 1, 3}}

// heads gives [n*s,h] as [n,heads,s,h/heads].
func (n *net) heads(t transformer, x program.ValueID) program.ValueID {
	return n.Op(program.OpTranspose, swap, n.reshape(x, program.Shape{n.samples, n.extent, t.heads, t.width / t.heads}))
}

// feedForward adds the two dense layers of a block, through 4h and gelu.
func (n *net) feedForward(t transformer, x program.ValueID) program.ValueID {
	defer n.Scope("feed_forward")()
	x = n.gelu(t, n.dense("inner", x, 4*t.width, ""))
	return n.dropout(t, n.dense("outer", x, t.width, ""))
}

// preNorm adds a block that normalises what its parts read, not what they give.
func (n *net) preNorm(t transformer, name string, x, mask program.ValueID) program.ValueID {
	defer n.Scope(name)()
	x = n.add(x, n.attend(t, n.layerNorm(t, "attention/norm", x), mask))
	return n.add(x, n.feedForward(t, n.layerNorm(t, "feed_forward/norm", x)))
}

// gelu adds the activation in one of its three forms.
func (n *net) gelu(t transformer, x program.ValueID) program.ValueID {
	switch {
	case t.simpleOps:
		return n.geluOfProducts(x)
	case t.longGelu:
		return n.geluOfErf(x)
	}
	return n.Op(program.OpGelu, program.Attrs{}, x)
}

// geluOfErf is x * (1+erf(x/sqrt 2))/2, which keeps x, its scaled copy and the
// second factor for the backward pass.
func (n *net) geluOfErf(x program.ValueID) program.ValueID {
	defer n.Scope("gelu")()
	e := n.Op(program.OpErf, program.Attrs{}, n.times(x, math.Sqrt2/2))
	return n.mul(x, n.times(n.add(e, n.number(x, 1)), 0.5))
}

// geluOfProducts is x/2 * (1+tanh(sqrt(2/pi)*(x + 0.044715*x*x*x))), one
// product at a time: six tensors of x's size are kept.
func (n *net) geluOfProducts(x program.ValueID) program.ValueID {
	defer n.Scope("gelu")()
	cube := n.mul(n.mul(n.times(x, 0.044715), x), x)
	y := n.Op(program.OpTanh, program.Attrs{}, n.times(n.add(x, cube), math.Sqrt(2/math.Pi)))
	return n.mul(n.times(x, 0.5), n.add(y, n.number(x, 1)))
}

// layerNorm adds a layer normalisation over the last dimension.
func (n *net) layerNorm(t transformer, name string, x program.ValueID) program.ValueID {
	defer n.Scope(name)()
	s := program.Shape{n.last(x)}
	gamma := n.Variable("gamma", s, ones())
	beta := n.Variable("beta", s, program.Init{})
	at := program.Attrs{Value: layerNormEpsilon}
	if !t.simpleOps {
		return n.Op(program.OpLayerNorm, at, x, n.asWide(gamma), n.asWide(beta))
	}
	return n.layerNormOfMoments(x, n.Read(gamma), n.Read(beta))
}

// layerNormOfMoments computes mean and deviation of each row, then one scale
// and one offset for each element.
func (n *net) layerNormOfMoments(x, gamma, beta program.ValueID) program.ValueID {
	rows := program.Attrs{Axes: []int64{int64(len(n.Shape(x)) - 1)}, KeepDims: true}
	mean := n.Op(program.OpMean, rows, x)
	apart := n.Op(program.OpSquaredDifference, program.Attrs{}, x, n.Op(program.OpStopGradient, program.Attrs{}, mean))
	variance := n.Op(program.OpMean, rows, apart)
	inverse := n.Op(program.OpRsqrt, program.Attrs{}, n.add(variance, n.number(x, layerNormEpsilon)))
	scale := n.mul(inverse, gamma)
	offset := n.Op(program.OpSub, program.Attrs{}, beta, n.mul(mean, scale))
	return n.add(n.mul(x, scale), offset)
}

// dropRate is the dropout of all transformers here.
const dropRate = 0.1

// dropout adds dropout where a model trains with it.
func (n *net) dropout(t transformer, x program.ValueID) program.ValueID {
	if !n.train || n.dropped {
		return x
	}
	n.seeds++
	if !t.simpleOps {
		return n.Op(program.OpDropout, program.Attrs{Value: dropRate, Seed: n.seeds}, x)
	}
	defer n.Scope("dropout")()
	r := n.Op(program.OpRandomUniform, program.Attrs{DType: n.DType(x), Shape: n.Shape(x), Seed: n.seeds})
	keep := n.cast(n.Op(program.OpGreaterEqual, program.Attrs{}, r, n.number(x, dropRate)), n.DType(x))
	return n.mul(n.times(x, 1/(1-dropRate)), keep)
}
