package program

import (
	"slices"
	"strings"
	"testing"
)

// keeps lists the values of the forward pass that backward nodes read, by
// name, the buffers of aliases under the name of what they are of.
func keeps(p *Program) []string {
	forward := func(v ValueID) bool {
		n := p.Values[v].Producer
		return n == None || p.Nodes[n].Phase == Forward
	}
	root := func(v ValueID) ValueID {
		for n := p.Values[v].Producer; n != None && defs[p.Nodes[n].Op].Alias; n = p.Values[v].Producer {
			v = p.Nodes[n].Inputs[0]
		}
		return v
	}
	var names []string
	for i := range p.Nodes {
		if p.Nodes[i].Phase != Backward {
			continue
		}
		for _, v := range p.Nodes[i].Inputs {
			name, constant := p.Values[root(v)].Name, p.Values[root(v)].Role == RoleConstant
			if !constant && forward(v) && forward(root(v)) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// What a backward pass keeps decides the peak of a training step: the table of
// section 3 of the specification of workloads, op by op. Weights are listed
// where the backward pass reads them; they live anyway.
func TestKeptForBackward(t *testing.T) {
	one := func(op Op) func(b *Builder, x ValueID) ValueID {
		return func(b *Builder, x ValueID) ValueID { return b.Op(op, Attrs{}, x) }
	}
	stride := Attrs{Strides: [2]int64{1, 1}, Padding: Same}
	up := Attrs{Strides: [2]int64{2, 2}, Padding: Same, Shape: Shape{2, 16, 16, 5}}
	for name, c := range map[string]struct {
		shape Shape // of x
		build func(b *Builder, x ValueID) ValueID
		want  string
	}{
		"conv": {nhwc, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpConv2D, stride, x, b.Variable("w", Shape{3, 3, 3, 5}, Init{}))
		}, "w x"},
		"dense": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpMatMul, Attrs{}, x, b.Variable("w", Shape{3, 4}, Init{}))
		}, "w x"},
		"transposed conv": {nhwc, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpConv2DBackpropInput, up, b.Variable("w", Shape{2, 2, 5, 3}, Init{}), x)
		}, "w x"},
		"bias add": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpBiasAdd, Attrs{}, x, b.Variable("w", x3, Init{}))
		}, ""},
		"add": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpAdd, Attrs{}, x, b.Variable("w", x3, Init{}))
		}, ""},
		"sub":       {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpSub, Attrs{}, b.Variable("w", x3, Init{}), x) }, ""},
		"add n":     {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpAddN, Attrs{}, x, x, x) }, ""},
		"reshape":   {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpReshape, Attrs{Shape: Shape{6}}, x) }, ""},
		"transpose": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpTranspose, Attrs{Axes: []int64{1, 0}}, x) }, ""},
		"concat":    {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpConcat, Attrs{Axes: []int64{0}}, x, x) }, ""},
		"split":     {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpSplit, Attrs{Axes: []int64{0, 2}}, x) }, ""},
		"pad": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpPad, Attrs{Begin: []int64{1, 1}, End: []int64{1, 1}}, x)
		}, ""},
		"slice": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpSlice, Attrs{Begin: []int64{1, 1}, Shape: Shape{1, 1}}, x)
		}, ""},
		"tile": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpTile, Attrs{Axes: []int64{2, 2}}, x) }, ""},
		"cast": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpCast, Attrs{DType: Float16}, x) }, ""},
		"sum":  {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpSum, Attrs{Axes: []int64{1}}, x) }, ""},
		"mean": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpMean, Attrs{Axes: []int64{0}}, x) }, ""},
		"batch norm": {nhwc, func(b *Builder, x ValueID) ValueID {
			w := b.Variable("w", c3, Init{})
			return b.Op(OpFusedBatchNorm, Attrs{Training: true}, x, w, w, b.State("m", Float32, c3, Init{}), b.State("v", Float32, c3, Init{}))
		}, "FusedBatchNormV3:3 FusedBatchNormV3:4 w x"},
		"layer norm": {x23, func(b *Builder, x ValueID) ValueID { return layerNorm(b, x)[0] }, "LayerNorm:1 LayerNorm:2 gamma x"},
		"relu":       {x23, one(OpRelu), "Relu"},
		"relu6":      {x23, one(OpRelu6), "Relu6"},
		"leaky relu": {x23, one(OpLeakyRelu), "LeakyRelu"},
		"gelu":       {x23, one(OpGelu), "x"},
		"tanh":       {x23, one(OpTanh), "Tanh"},
		"sigmoid":    {x23, one(OpSigmoid), "Sigmoid"},
		"exp":        {x23, one(OpExp), "Exp"},
		"softmax":    {x23, one(OpSoftmax), "Softmax"},
		"log softmax": {
			x23, one(OpLogSoftmax), "LogSoftmax",
		},
		"sqrt":       {x23, one(OpSqrt), "Sqrt"},
		"reciprocal": {x23, one(OpReciprocal), "Reciprocal"},
		"log":        {x23, one(OpLog), "x"},
		"square":     {x23, one(OpSquare), "x"},
		"neg":        {x23, one(OpNeg), ""},
		"max pool":   {nhwc, func(b *Builder, x ValueID) ValueID { return b.Op(OpMaxPool, pool2, x) }, "MaxPool x"},
		"avg pool":   {nhwc, func(b *Builder, x ValueID) ValueID { return b.Op(OpAvgPool, pool2, x) }, ""},
		"dropout":    {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpDropout, Attrs{Value: 0.1}, x) }, "Dropout:1"},
		"embedding lookup": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpGather, Attrs{}, x, b.Input("ids", Int64, Shape{7}))
		}, "ids"},
		"sparse cross entropy": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpSparseXent, Attrs{}, x, b.Input("labels", Int64, Shape{2}))
		}, "SparseSoftmaxCrossEntropyWithLogits:1"},
		"cross entropy": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpXent, Attrs{}, x, b.Input("labels", Float32, x23))
		}, "SoftmaxCrossEntropyWithLogits:1"},
		"mul": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpMul, Attrs{}, x, b.Variable("w", x3, Init{})) }, "w x"},
		"div": {x23, func(b *Builder, x ValueID) ValueID { return b.Op(OpDiv, Attrs{}, x, b.Variable("w", x3, Init{})) }, "w x"},
		"select": {x23, func(b *Builder, x ValueID) ValueID {
			return b.Op(OpSelect, Attrs{}, b.Input("which", Bool, x23), x, b.zero(x))
		}, "which"},
		// The mixture of values is a product, which keeps its inputs: the dropped
		// softmax and the values.
		"attention scores": {Shape{2, 4, 5, 6}, attention, "Dropout Dropout:1 Softmax k v x"},
		"lstm cell": {Shape{2, 12}, func(b *Builder, x ValueID) ValueID {
			return b.Node(OpLSTMCell, Attrs{}, x, b.Input("c", Float32, x23))[2]
		}, "LSTMCell LSTMCell:1 c"},
	} {
		b := NewBuilder("t", 1)
		y := c.build(b, b.Input("x", Float32, c.shape))
		if b.DType(y) != Float32 {
			y = b.Op(OpCast, Attrs{}, y)
		}
		wrt := b.Weights()
		for _, v := range b.p.Inputs {
			if b.DType(v).Float() && b.p.Values[v].Name != "labels" {
				wrt = append(wrt, v)
			}
		}
		b.Derive(b.Op(OpMean, Attrs{}, y), None, wrt)
		p, err := b.Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := strings.Join(keeps(p), " "); got != c.want {
			t.Errorf("%s keeps %q, want %q", name, got, c.want)
		}
	}
}

// attention mixes values by queries, which x is, and keys.
func attention(b *Builder, x ValueID) ValueID {
	k, v := b.Input("k", Float32, b.Shape(x)), b.Input("v", Float32, b.Shape(x))
	scores := b.scaled(b.Op(OpBatchMatMul, Attrs{TransposeB: true}, x, k), 0.4)
	return b.Op(OpBatchMatMul, Attrs{}, b.Node(OpDropout, Attrs{Value: 0.1}, b.Op(OpSoftmax, Attrs{}, scores))[0], v)
}

// What is kept beside activations is small, or as large as the table says.
func TestSizesOfWhatIsKeptBeside(t *testing.T) {
	b := NewBuilder("t", 1)
	x := b.Input("x", Float16, Shape{6, 5, 4, 32})
	c := Shape{32}
	stat := func() ValueID { return b.State("s", Float32, c, Init{}) }
	norm := b.Node(OpFusedBatchNorm, Attrs{Training: true}, x, stat(), stat(), stat(), stat())
	rows := b.Node(OpLayerNorm, Attrs{}, x, stat(), stat())
	drop := b.Node(OpDropout, Attrs{Value: 0.1}, x)
	logits := b.Input("logits", Float32, Shape{8, 1000})
	loss := b.Node(OpSparseXent, Attrs{}, logits, b.Input("labels", Int64, Shape{8}))
	for name, got := range map[string][2]int64{
		"batch norm, mean":       {b.p.Values[norm[3]].Bytes(), 32 * 4},
		"batch norm, deviation":  {b.p.Values[norm[4]].Bytes(), 32 * 4},
		"layer norm, two a row":  {b.p.Values[rows[1]].Bytes() + b.p.Values[rows[2]].Bytes(), 2 * 6 * 5 * 4 * 4},
		"dropout, a byte each":   {b.p.Values[drop[1]].Bytes(), 6 * 5 * 4 * 32},
		"cross entropy's tensor": {b.p.Values[loss[1]].Bytes(), b.p.Values[logits].Bytes()},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d bytes, want %d", name, got[0], got[1])
		}
	}
}
