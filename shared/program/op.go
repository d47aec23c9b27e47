package program

// The ops, by TensorFlow's names. What each takes, which Attrs it reads and
// what it gives is said at its line; the definitions stand in table.go.
const (
	// OpVariable gives a variable's own buffer. Attrs.Variable. No inputs.
	OpVariable Op = "Variable"
	// OpConst gives a tensor filled with one number. Attrs.DType, Shape, Value.
	OpConst Op = "Const"
	// OpAssign copies input 1 into the variable whose value is input 0.
	// Attrs.Variable. No outputs.
	OpAssign Op = "Assign"

	// OpIdentity and OpReshape (Attrs.Shape) give input 0's buffer.
	OpIdentity Op = "Identity"
	OpReshape  Op = "Reshape"
	// OpBroadcastTo repeats input 0 along extents of 1. Attrs.Shape.
	OpBroadcastTo Op = "BroadcastTo"
	// OpCast converts to Attrs.DType.
	OpCast Op = "Cast"

	// OpMatMul multiplies [m,k] and [k,n]. Attrs.TransposeA, TransposeB.
	OpMatMul Op = "MatMul"
	// OpBiasAdd adds a [c] bias to the last dimension of input 0.
	OpBiasAdd Op = "BiasAdd"
	// OpBiasAddGrad sums input 0 over all dimensions but the last.
	OpBiasAddGrad Op = "BiasAddGrad"

	// OpConv2D convolves [n,h,w,ci] with a [kh,kw,ci,co] filter. Attrs.Strides,
	// Padding, as in all window ops.
	OpConv2D Op = "Conv2D"
	// OpConv2DBackpropInput takes the filter and the output's gradient;
	// Attrs.Shape is the input's shape.
	OpConv2DBackpropInput Op = "Conv2DBackpropInput"
	// OpConv2DBackpropFilter takes the input and the output's gradient;
	// Attrs.Shape is the filter's shape.
	OpConv2DBackpropFilter Op = "Conv2DBackpropFilter"

	// OpAvgPool and OpMaxPool. Attrs.Window, Strides, Padding.
	OpAvgPool Op = "AvgPool"
	OpMaxPool Op = "MaxPool"
	// OpAvgPoolGrad takes the output's gradient; Attrs.Shape is the input's shape.
	OpAvgPoolGrad Op = "AvgPoolGrad"
	// OpMaxPoolGrad takes the input, the output and the output's gradient.
	OpMaxPoolGrad Op = "MaxPoolGrad"

	// OpTanh and OpRelu, element by element.
	OpTanh Op = "Tanh"
	OpRelu Op = "Relu"
	// OpTanhGrad takes the output y and its gradient, in this order.
	OpTanhGrad Op = "TanhGrad"
	// OpReluGrad takes the gradient and the output, in this order (TensorFlow's).
	OpReluGrad Op = "ReluGrad"

	// OpAdd, OpSub and OpMul broadcast their inputs as NumPy does.
	OpAdd Op = "AddV2"
	OpSub Op = "Sub"
	OpMul Op = "Mul"
	// OpAddN sums inputs of one shape: gradients that meet.
	OpAddN Op = "AddN"

	// OpSum and OpMean reduce over Attrs.Axes (nil: all); reduced dimensions vanish.
	OpSum  Op = "Sum"
	OpMean Op = "Mean"
	// OpArgMax gives the int64 index of the largest along the last dimension.
	OpArgMax Op = "ArgMax"
	// OpEqual compares two tensors of one shape.
	OpEqual Op = "Equal"
	// OpSparseXent takes logits [n,c] and labels [n]; gives the loss of each
	// sample [n] and the gradient of its sum [n,c].
	OpSparseXent Op = "SparseSoftmaxCrossEntropyWithLogits"

	// OpApplySGD takes variable, learning rate and gradient. Attrs.Variable.
	// Like all Apply ops it writes into its variable inputs and has no outputs.
	OpApplySGD Op = "ApplyGradientDescent"
	// OpApplyAdam takes variable, m, v, beta1 power, beta2 power, learning
	// rate, beta1, beta2, epsilon and gradient. Attrs.Variable, Slots (m, v).
	OpApplyAdam Op = "ApplyAdam"
)
