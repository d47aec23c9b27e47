package zoo

import (
	"math"
	"strconv"

	"tideline/shared/program"
)

// net is a model under construction.
type net struct {
	*program.Builder
	model   *Model
	train   bool
	dropped bool  // dropout is left out
	samples int64 // per step
	extent  int64 // side of the images, features, or tokens of a sample
	classes int64 // that the head tells apart
	blocks  []string
	seeds   int64 // given to random ops so far
}

// numbered is a name with a number: "conv", 3 is "conv3".
func numbered(name string, i int) string { return name + strconv.Itoa(i) }

// block notes a repeated block for Built.Blocks and gives its scope; a number
// of 0 is none.
func (n *net) block(name string, number int) string {
	if number > 0 {
		name = numbered(name, number)
	}
	n.blocks = append(n.blocks, name)
	return name
}

// uniform is the usual first distribution of a weight with this many inputs
// and outputs per unit (Glorot): half-width sqrt(6/(in+out)).
func uniform(in, out int64) program.Init {
	return program.Init{Kind: program.InitUniform, Scale: math.Sqrt(6 / float64(in+out))}
}

func ones() program.Init { return program.Init{Kind: program.InitConstant, Scale: 1} }

// activate adds an activation; "" is none.
func (n *net) activate(op program.Op, x program.ValueID) program.ValueID {
	if op == "" {
		return x
	}
	return n.Op(op, program.Attrs{}, x)
}

// last is the extent of x's last dimension, 0 after an error.
func (n *net) last(x program.ValueID) int64 {
	if s := n.Shape(x); len(s) > 0 {
		return s[len(s)-1]
	}
	return 0
}

// dense adds a fully connected layer over [m,features].
func (n *net) dense(name string, x program.ValueID, units int64, act program.Op) program.ValueID {
	defer n.Scope(name)()
	in := n.last(x)
	init := uniform(in, units)
	if n.model.Kind == Tokens {
		init = tokenInit
	}
	w := n.Weight("kernel", program.Shape{in, units}, init)
	bias := n.Weight("bias", program.Shape{units}, program.Init{})
	x = n.Op(program.OpMatMul, program.Attrs{}, x, w)
	return n.activate(act, n.Op(program.OpBiasAdd, program.Attrs{}, x, bias))
}

// window is a convolution: filters of size x size pixels.
type window struct {
	filters, size, stride int64
	pad                   program.Padding
}

func (w window) attrs() program.Attrs {
	return program.Attrs{Strides: [2]int64{w.stride, w.stride}, Padding: w.pad}
}

// conv adds a convolution, with a bias or without.
func (n *net) conv(name string, x program.ValueID, w window, bias bool, act program.Op) program.ValueID {
	defer n.Scope(name)()
	in := n.last(x)
	area := w.size * w.size
	kernel := n.Weight("kernel", program.Shape{w.size, w.size, in, w.filters}, uniform(area*in, area*w.filters))
	var b program.ValueID
	if bias {
		b = n.Weight("bias", program.Shape{w.filters}, program.Init{})
	}
	x = n.Op(program.OpConv2D, w.attrs(), x, kernel)
	if bias {
		x = n.Op(program.OpBiasAdd, program.Attrs{}, x, b)
	}
	return n.activate(act, x)
}

// convNorm adds a convolution and a batch normalisation, as "conv" and "norm"
// behind which a number may stand.
func (n *net) convNorm(number string, x program.ValueID, w window, bias bool, act program.Op) program.ValueID {
	x = n.conv("conv"+number, x, w, bias, "")
	return n.activate(act, n.batchNorm("norm"+number, x))
}

// convTwice adds U-Net's two convolutions.
func (n *net) convTwice(x program.ValueID, filters int64) program.ValueID {
	for i := range 2 {
		x = n.conv(numbered("conv", i+1), x, window{filters, 3, 1, program.Same}, true, program.OpRelu)
	}
	return x
}

// convTransposed adds a transposed convolution that doubles the sides: the
// gradient of a convolution of 2x2 pixels with stride 2 by its input.
func (n *net) convTransposed(name string, x program.ValueID, filters int64) program.ValueID {
	defer n.Scope(name)()
	s := n.Shape(x)
	if len(s) != 4 {
		return x // after an error
	}
	w := window{filters, 2, 2, program.Same}
	kernel := n.Weight("kernel", program.Shape{2, 2, filters, s[3]}, uniform(4*s[3], 4*filters))
	bias := n.Weight("bias", program.Shape{filters}, program.Init{})
	at := w.attrs()
	at.Shape = program.Shape{s[0], 2 * s[1], 2 * s[2], filters}
	return n.Op(program.OpBiasAdd, program.Attrs{}, n.Op(program.OpConv2DBackpropInput, at, kernel, x), bias)
}

// The constants of batch and layer normalisation, Keras's and the papers'.
const (
	batchNormEpsilon = 1.001e-5
	movingDecay      = 0.99
	layerNormEpsilon = 1e-5
)

// batchNorm adds a batch normalisation over [n,h,w,c]. Its scale, offset and
// statistics are float32 where the arithmetic is on half the bits. In training
// the moving statistics follow the batch's.
func (n *net) batchNorm(name string, x program.ValueID) program.ValueID {
	defer n.Scope(name)()
	s := program.Shape{n.last(x)}
	wide := n.wide()
	gamma := n.asWide(n.Variable("gamma", s, ones()))
	beta := n.asWide(n.Variable("beta", s, program.Init{}))
	mean := n.State("moving_mean", wide, s, program.Init{})
	variance := n.State("moving_variance", wide, s, ones())
	at := program.Attrs{Value: batchNormEpsilon, Training: n.train}
	out := n.Node(program.OpFusedBatchNorm, at, x, gamma, beta, mean, variance)
	if n.train {
		decay := program.Attrs{Value: movingDecay}
		n.Op(program.OpAssignMovingAverage, decay, mean, out[1])
		n.Op(program.OpAssignMovingAverage, decay, variance, out[2])
	}
	return out[0]
}

// wide is the type of statistics and losses: at least float32.
func (n *net) wide() program.DType {
	if n.ComputeType() == program.Float64 {
		return program.Float64
	}
	return program.Float32
}

// asWide gives v in the type of statistics.
func (n *net) asWide(v program.ValueID) program.ValueID { return n.cast(v, n.wide()) }

func (n *net) cast(v program.ValueID, d program.DType) program.ValueID {
	if n.DType(v) == d {
		return v
	}
	return n.Op(program.OpCast, program.Attrs{DType: d}, v)
}

// pool adds a pooling op with square windows.
func (n *net) pool(name string, op program.Op, x program.ValueID, size, stride int64) program.ValueID {
	defer n.Scope(name)()
	at := program.Attrs{Window: [2]int64{size, size}, Strides: [2]int64{stride, stride}}
	if size > stride {
		at.Padding = program.Same
	}
	return n.Op(op, at, x)
}

// mean averages the pixels of each channel.
func (n *net) mean(name string, x program.ValueID) program.ValueID {
	defer n.Scope(name)()
	return n.Op(program.OpMean, program.Attrs{Axes: []int64{1, 2}}, x)
}

func (n *net) reshape(x program.ValueID, s program.Shape) program.ValueID {
	if n.Shape(x).Equal(s) {
		return x
	}
	return n.Op(program.OpReshape, program.Attrs{Shape: s}, x)
}

// flatten gives x as [n,features].
func (n *net) flatten(name string, x program.ValueID) program.ValueID {
	defer n.Scope(name)()
	return n.reshape(x, program.Shape{n.samples, n.Shape(x).Elements() / max(1, n.samples)})
}

func (n *net) add(x, y program.ValueID) program.ValueID {
	return n.Op(program.OpAdd, program.Attrs{}, x, y)
}

func (n *net) mul(x, y program.ValueID) program.ValueID {
	return n.Op(program.OpMul, program.Attrs{}, x, y)
}

// number is a scalar constant in the type of x.
func (n *net) number(x program.ValueID, value float64) program.ValueID {
	return n.Const("Const", n.DType(x), nil, value)
}

func (n *net) times(x program.ValueID, factor float64) program.ValueID {
	return n.mul(x, n.number(x, factor))
}
