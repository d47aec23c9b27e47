package program

// The ops, by TensorFlow's names. What each takes, which Attrs it reads and
// what it gives is said at its line; the definitions stand in table.go.
//
// Where no types are named, all tensors of an op have one floating type; ops
// that only move elements take any. Add, Sub, Mul, Maximum, Minimum, Neg, Abs,
// Square, SquaredDifference, AddN, Pad, Sum, Max, ArgMax, TopK and the
// comparisons also take int32 and int64, Equal and Select bool as well.
// "Statistics" are of type float32 where activations are halves, and of the
// activations' type otherwise.
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

	// Element by element, one input.
	OpTanh       Op = "Tanh"
	OpRelu       Op = "Relu"
	OpRelu6      Op = "Relu6"
	OpLeakyRelu  Op = "LeakyRelu" // Attrs.Value: the slope below 0
	OpSigmoid    Op = "Sigmoid"
	OpGelu       Op = "Gelu" // the form with tanh
	OpExp        Op = "Exp"
	OpLog        Op = "Log"
	OpSqrt       Op = "Sqrt"
	OpRsqrt      Op = "Rsqrt"
	OpSquare     Op = "Square"
	OpNeg        Op = "Neg"
	OpAbs        Op = "Abs"
	OpReciprocal Op = "Reciprocal"
	OpErf        Op = "Erf"
	// OpIsFinite and OpLogicalNot give bool.
	OpIsFinite   Op = "IsFinite"
	OpLogicalNot Op = "LogicalNot"

	// Gradients that read the output y: inputs y, dy, in this order.
	OpTanhGrad       Op = "TanhGrad"
	OpSigmoidGrad    Op = "SigmoidGrad"
	OpSqrtGrad       Op = "SqrtGrad"
	OpRsqrtGrad      Op = "RsqrtGrad"
	OpReciprocalGrad Op = "ReciprocalGrad"
	// OpReluGrad and its kin take the gradient and the output, in this order
	// (TensorFlow's). LeakyReluGrad reads the output too, whose sign is the input's.
	OpReluGrad      Op = "ReluGrad"
	OpRelu6Grad     Op = "Relu6Grad"
	OpLeakyReluGrad Op = "LeakyReluGrad"
	// OpGeluGrad takes the gradient and the input.
	OpGeluGrad Op = "GeluGrad"

	// Element by element, two inputs, which broadcast as NumPy's do.
	OpAdd               Op = "AddV2"
	OpSub               Op = "Sub"
	OpMul               Op = "Mul"
	OpDiv               Op = "RealDiv"
	OpMaximum           Op = "Maximum"
	OpMinimum           Op = "Minimum"
	OpPow               Op = "Pow"
	OpSquaredDifference Op = "SquaredDifference"
	// OpEqual to OpLogicalAnd give bool.
	OpEqual        Op = "Equal"
	OpGreater      Op = "Greater"
	OpGreaterEqual Op = "GreaterEqual"
	OpLess         Op = "Less"
	OpLogicalAnd   Op = "LogicalAnd"
	// OpSelect takes a bool condition and two tensors; all broadcast.
	OpSelect Op = "SelectV2"
	// OpAddN sums inputs of one shape: gradients that meet.
	OpAddN Op = "AddN"

	// Reductions over Attrs.Axes (nil: all); reduced dimensions vanish unless
	// Attrs.KeepDims.
	OpSum  Op = "Sum"
	OpMean Op = "Mean"
	OpMax  Op = "Max"
	OpAll  Op = "All"
	// OpArgMax gives the int64 index of the largest along the last dimension.
	OpArgMax Op = "ArgMax"
	// OpTopK gives the Attrs.Value largest along the last dimension and their
	// int32 indices.
	OpTopK Op = "TopKV2"
	// OpL2Loss gives half the sum of squares, a scalar.
	OpL2Loss Op = "L2Loss"

	// OpBatchMatMul multiplies [...,m,k] and [...,k,n]; leading dimensions are
	// equal. Attrs.TransposeA, TransposeB.
	OpBatchMatMul Op = "BatchMatMulV2"
	// OpSoftmax and OpLogSoftmax go over the last dimension.
	OpSoftmax    Op = "Softmax"
	OpLogSoftmax Op = "LogSoftmax"
	// OpSoftmaxGrad takes the output and its gradient.
	OpSoftmaxGrad Op = "SoftmaxGrad"

	// OpFusedBatchNorm takes x [n,h,w,c], and, statistics [c] like all outputs but
	// y, scale, offset, mean and variance.
	// Attrs.Value is epsilon. With Attrs.Training the batch's statistics count
	// and the last two inputs only lend their shape. Outputs: y, batch mean,
	// batch variance, and what the gradient wants: mean, inverse deviation.
	OpFusedBatchNorm Op = "FusedBatchNormV3"
	// OpFusedBatchNormGrad takes dy, x, scale and the last two outputs above;
	// gives dx, dscale, doffset. Attrs.Value, Training as above.
	OpFusedBatchNormGrad Op = "FusedBatchNormGradV3"
	// OpLayerNorm normalises x over the last dimension: x, gamma, beta; gives y
	// and, one a row, mean and inverse deviation. Attrs.Value is epsilon. All
	// but x and y are statistics.
	OpLayerNorm Op = "LayerNorm"
	// OpLayerNormGrad takes dy, x, gamma, mean and inverse deviation; gives dx,
	// dgamma, dbeta.
	OpLayerNormGrad Op = "LayerNormGrad"

	// OpDropout drops a fraction Attrs.Value of x and scales the rest up; gives
	// y and the mask, uint8, 1 for what is kept. Attrs.Seed and the step decide which.
	OpDropout Op = "Dropout"
	// OpDropoutGrad takes dy and the mask. Attrs.Value.
	OpDropoutGrad Op = "DropoutGrad"
	// OpRandomUniform gives numbers in [0,1). Attrs.DType, Shape, Seed.
	OpRandomUniform Op = "RandomUniform"

	// OpTranspose reorders dimensions: output i is input Attrs.Axes[i].
	OpTranspose Op = "Transpose"
	// OpConcat joins its inputs along Attrs.Axes[0].
	OpConcat Op = "ConcatV2"
	// OpSplit cuts input 0 along Attrs.Axes[0] into Attrs.Axes[1] equal parts, as
	// many outputs.
	OpSplit Op = "Split"
	// OpSlice takes Attrs.Shape elements from Attrs.Begin on.
	OpSlice Op = "Slice"
	// OpPad adds zeros: Attrs.Begin before, Attrs.End after each dimension.
	OpPad Op = "Pad"
	// OpTile repeats input 0 Attrs.Axes[i] times along dimension i.
	OpTile Op = "Tile"
	// OpGather takes rows of a table [rows,...] by an index tensor: [index...,...].
	OpGather Op = "GatherV2"
	// OpUnsortedSegmentSum adds rows of input 0 to the rows of zeros that input 1
	// names; Attrs.Shape is the result's: a sparse gradient made dense.
	OpUnsortedSegmentSum Op = "UnsortedSegmentSum"
	// OpOneHot gives Attrs.DType vectors of Attrs.Shape[0] elements from indices.
	OpOneHot Op = "OneHot"
	// OpRange gives 0,1,…; Attrs.Shape [n], Attrs.DType.
	OpRange Op = "Range"
	// OpShape gives input 0's shape as int32 in host memory.
	OpShape Op = "Shape"
	// OpStopGradient is Identity without a gradient.
	OpStopGradient Op = "StopGradient"

	// OpLSTMCell takes the gates' pre-activations [n,4h] (input, candidate,
	// forget, output) and c [n,h]; gives the activated gates [n,4h], the new c
	// and h.
	OpLSTMCell Op = "LSTMCell"
	// OpLSTMCellGrad takes the gates, the old c, the new c, dc and dh; gives the
	// pre-activations' gradient and the old c's.
	OpLSTMCellGrad Op = "LSTMCellGrad"

	// OpSparseXent takes logits [n,c] and labels [n]; gives the loss of each
	// sample [n] and the gradient of its sum [n,c].
	OpSparseXent Op = "SparseSoftmaxCrossEntropyWithLogits"
	// OpXent takes logits and label distributions [n,c]; outputs as above.
	OpXent Op = "SoftmaxCrossEntropyWithLogits"

	// OpAssignAdd and OpAssignSub change the variable whose value is input 0 by
	// input 1. Attrs.Variable. No outputs.
	OpAssignAdd Op = "AssignAdd"
	OpAssignSub Op = "AssignSub"
	// OpAssignMovingAverage moves the variable towards input 1: v = v*d + x*(1-d)
	// with d = Attrs.Value. Attrs.Variable. No outputs.
	OpAssignMovingAverage Op = "AssignMovingAverage"

	// Apply ops take the variable, its slots, their numbers (scalars) and the
	// gradient last; they write into their variable inputs and have no outputs.
	// Attrs.Variable, Slots, Guarded. All numbers have the variable's type.

	// OpApplySGD takes variable, learning rate and gradient.
	OpApplySGD Op = "ApplyGradientDescent"
	// OpApplyMomentum takes variable, accumulator, learning rate, momentum and
	// gradient. Attrs.Nesterov.
	OpApplyMomentum Op = "ApplyMomentum"
	// OpApplyAdagrad takes variable, accumulator, learning rate, epsilon, gradient.
	OpApplyAdagrad Op = "ApplyAdagradV2"
	// OpApplyRMSProp takes variable, mean square, momentum, learning rate, rho,
	// momentum factor, epsilon, gradient.
	OpApplyRMSProp Op = "ApplyRMSProp"
	// OpApplyCenteredRMSProp has the mean gradient as first slot.
	OpApplyCenteredRMSProp Op = "ApplyCenteredRMSProp"
	// OpApplyAdam takes variable, m, v, beta1 power, beta2 power, learning
	// rate, beta1, beta2, epsilon and gradient. Attrs.Value is a decoupled
	// weight decay (AdamW), 0 for none.
	OpApplyAdam Op = "ApplyAdam"
	// OpApplyAMSGrad has the largest v as third slot.
	OpApplyAMSGrad Op = "ApplyAdamWithAmsgrad"
	// Sparse twins take the gradient's rows and, last, their int64 indices: only
	// those rows of the variable and its slots change, as for an embedding table.
	// An index may come several times: the gradients of its rows add up. There is
	// no sparse weight decay.
	OpSparseApplySGD      Op = "SparseApplyGradientDescent"
	OpSparseApplyMomentum Op = "SparseApplyMomentum"
	OpSparseApplyAdagrad  Op = "SparseApplyAdagradV2"
	OpSparseApplyAdam     Op = "SparseApplyAdam"

	// OpUpdateLossScale takes the scale variable, the counter variable and a
	// bool: were all gradients finite. It doubles the scale after Attrs.Value
	// good steps and halves it after a bad one. Attrs.Variable, Slots (counter).
	// The scale is float32 and never below 1, the counter int64.
	OpUpdateLossScale Op = "UpdateLossScale"

	// OpSwapOut copies input 0 to host memory, OpSwapIn back to the device:
	// TensorFlow's _CopyFromGpuToHost and _CopyFromHostToGpu.
	OpSwapOut Op = "_CopyFromGpuToHost"
	OpSwapIn  Op = "_CopyFromHostToGpu"
)
