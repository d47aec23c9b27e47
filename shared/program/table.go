package program

// defs is the table of op definitions. It is only ever looked up by name,
// never walked, so its order reaches no output. What an op takes and gives is
// said in op.go.
var defs = byOp()

func byOp() map[Op]*Def {
	m := make(map[Op]*Def, len(table))
	for i := range table {
		m[table[i].op] = &table[i].def
	}
	return m
}

// table is a list, as the compiler lays that out as data. What fills a map of this
// kind is code, 36 KB more of the browser's module.
var table = [...]struct {
	op  Op
	def Def
}{
	{OpVariable, Def{Infer: inferVariable, Cost: costNone}},
	{OpConst, Def{Infer: inferConst, Cost: costNone, HostInt32: true}},
	{OpAssign, Def{Infer: inferAssign, Cost: costMove, Stateful: true}},

	{OpIdentity, Def{Infer: inferSame, Cost: costNone, Grad: gradIdentity, Alias: true, HostInt32: true}},
	{OpStopGradient, Def{Infer: inferSame, Cost: costNone, Alias: true, HostInt32: true}},
	{OpReshape, Def{Infer: inferReshape, Cost: costNone, Grad: gradReshape, Alias: true, HostInt32: true}},
	{OpBroadcastTo, Def{Infer: inferBroadcastTo, Cost: costMove, Grad: gradBroadcastTo, HostInt32: true}},
	{OpCast, Def{Infer: inferCast, Cost: costMove, Grad: gradCast}},
	{OpShape, Def{Infer: inferShape, Cost: costNone, HostOutputs: []int{0}}},

	{OpMatMul, Def{Infer: inferMatMul, Cost: costMatMul, Grad: gradMatMul}},
	{OpBatchMatMul, Def{Infer: inferMatMul, Cost: costMatMul, Grad: gradMatMul}},
	{OpBiasAdd, Def{Infer: inferBiasAdd, Cost: costElementwise(1), Grad: gradBiasAdd, Forwardable: inPlace}},
	{OpBiasAddGrad, Def{Infer: inferBiasAddGrad, Cost: costReduce}},

	{OpConv2D, Def{Infer: inferConv2D, Cost: costConv2D, Grad: gradConv2D, Workspace: workspaceConv2D}},
	{OpConv2DBackpropInput, Def{Infer: inferConv2DBackpropInput, Cost: costConv2D, Grad: gradTransposedConv, Workspace: workspaceConv2D}},
	{OpConv2DBackpropFilter, Def{Infer: inferConv2DBackpropFilter, Cost: costConv2D, Workspace: workspaceConv2D}},

	{OpAvgPool, Def{Infer: inferPool, Cost: costPool, Grad: gradAvgPool}},
	{OpMaxPool, Def{Infer: inferPool, Cost: costPool, Grad: gradMaxPool}},
	{OpAvgPoolGrad, Def{Infer: inferAvgPoolGrad, Cost: costPoolGrad}},
	{OpMaxPoolGrad, Def{Infer: inferMaxPoolGrad, Cost: costPoolGrad}},

	// One input. Their gradients say what they keep: the output where that is
	// enough, so that the op can work in place in training as well.
	{OpTanh, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradOf(OpTanhGrad, true, false), Forwardable: inPlace}},
	{OpRelu, Def{Infer: inferFloat, Cost: costElementwise(1), Grad: gradOf(OpReluGrad, true, true), Forwardable: inPlace}},
	{OpRelu6, Def{Infer: inferFloat, Cost: costElementwise(2), Grad: gradOf(OpRelu6Grad, true, true), Forwardable: inPlace}},
	{OpLeakyRelu, Def{Infer: inferFloat, Cost: costElementwise(2), Grad: gradOf(OpLeakyReluGrad, true, true), Forwardable: inPlace}},
	{OpSigmoid, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradOf(OpSigmoidGrad, true, false), Forwardable: inPlace}},
	{OpGelu, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh + 7), Grad: gradOf(OpGeluGrad, false, true), Forwardable: inPlace}},
	{OpExp, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradExp, Forwardable: inPlace}},
	{OpLog, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradLog, Forwardable: inPlace}},
	{OpSqrt, Def{Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpSqrtGrad, true, false), Forwardable: inPlace}},
	{OpRsqrt, Def{Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpRsqrtGrad, true, false), Forwardable: inPlace}},
	{OpSquare, Def{Infer: inferNumber, Cost: costElementwise(1), Grad: gradSquare, Forwardable: inPlace, HostInt32: true}},
	{OpNeg, Def{Infer: inferNumber, Cost: costElementwise(1), Grad: gradNeg, Forwardable: inPlace, HostInt32: true}},
	{OpAbs, Def{Infer: inferNumber, Cost: costElementwise(1), Grad: gradAbs, Forwardable: inPlace, HostInt32: true}},
	{OpReciprocal, Def{Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpReciprocalGrad, true, false), Forwardable: inPlace}},
	{OpErf, Def{Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradErf, Forwardable: inPlace}},
	{OpIsFinite, Def{Infer: inferIsFinite, Cost: costElementwise(1)}},
	{OpLogicalNot, Def{Infer: inferNot, Cost: costElementwise(1), Forwardable: inPlace}},

	{OpTanhGrad, Def{Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both}},
	{OpSigmoidGrad, Def{Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both}},
	{OpSqrtGrad, Def{Infer: inferSamePair, Cost: costElementwise(5), Forwardable: both}},
	{OpRsqrtGrad, Def{Infer: inferSamePair, Cost: costElementwise(4), Forwardable: both}},
	{OpReciprocalGrad, Def{Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both}},
	{OpReluGrad, Def{Infer: inferSamePair, Cost: costElementwise(1), Forwardable: both}},
	{OpRelu6Grad, Def{Infer: inferSamePair, Cost: costElementwise(2), Forwardable: both}},
	{OpLeakyReluGrad, Def{Infer: inferSamePair, Cost: costElementwise(2), Forwardable: both}},
	{OpGeluGrad, Def{Infer: inferSamePair, Cost: costElementwise(2*flopsTanh + 5), Forwardable: both}},

	// Two inputs and more.
	{OpAdd, Def{Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradAdd, Forwardable: both, HostInt32: true}},
	{OpSub, Def{Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradSub, Forwardable: both, HostInt32: true}},
	{OpMul, Def{Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradMul, Forwardable: both, HostInt32: true}},
	{OpDiv, Def{Infer: inferBroadcastFloat, Cost: costElementwise(4), Grad: gradDiv, Forwardable: both}},
	{OpMaximum, Def{Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradLarger, Forwardable: both, HostInt32: true}},
	{OpMinimum, Def{Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradLarger, Forwardable: both, HostInt32: true}},
	{OpPow, Def{Infer: inferBroadcastFloat, Cost: costElementwise(2 * flopsTanh), Grad: gradPow, Forwardable: both}},
	{OpSquaredDifference, Def{Infer: inferBroadcast, Cost: costElementwise(2), Grad: gradSquaredDifference, Forwardable: both, HostInt32: true}},
	{OpEqual, Def{Infer: inferEqual, Cost: costElementwise(1), HostInt32: true}},
	{OpGreater, Def{Infer: inferCompare, Cost: costElementwise(1), HostInt32: true}},
	{OpGreaterEqual, Def{Infer: inferCompare, Cost: costElementwise(1), HostInt32: true}},
	{OpLess, Def{Infer: inferCompare, Cost: costElementwise(1), HostInt32: true}},
	{OpLogicalAnd, Def{Infer: inferAnd, Cost: costElementwise(1), Forwardable: both}},
	{OpSelect, Def{Infer: inferSelect, Cost: costElementwise(1), Grad: gradSelect}},
	{OpAddN, Def{Infer: inferAddN, Cost: costAddN, Grad: gradAddN, Forwardable: inPlace, HostInt32: true}},

	{OpSum, Def{Infer: inferReduce, Cost: costReduce, Grad: gradSum, Workspace: workspaceReduce, HostInt32: true}},
	{OpMean, Def{Infer: inferMean, Cost: costReduce, Grad: gradMean, Workspace: workspaceReduce}},
	{OpMax, Def{Infer: inferReduce, Cost: costReduce, Grad: gradMax, Workspace: workspaceReduce, HostInt32: true}},
	{OpAll, Def{Infer: inferAll, Cost: costReduce, Workspace: workspaceReduce}},
	{OpArgMax, Def{Infer: inferArgMax, Cost: costReduce}},
	{OpTopK, Def{Infer: inferTopK, Cost: costPasses(4, 0, 0), Grad: gradTopK}},
	{OpL2Loss, Def{Infer: inferL2Loss, Cost: costPasses(2, 0, 0), Grad: gradL2Loss, Workspace: workspaceReduce}},

	{OpSoftmax, Def{Infer: inferSoftmax, Cost: costPasses(flopsTanh+3, 1, 0), Grad: gradOf(OpSoftmaxGrad, true, false), Workspace: workspaceSoftmax, Forwardable: inPlace}},
	{OpLogSoftmax, Def{Infer: inferSoftmax, Cost: costPasses(flopsTanh+3, 1, 0), Grad: gradLogSoftmax, Workspace: workspaceSoftmax, Forwardable: inPlace}},
	{OpSoftmaxGrad, Def{Infer: inferSamePair, Cost: costPasses(4, 1, 0), Forwardable: []int{1}}},

	{OpFusedBatchNorm, Def{Infer: inferBatchNorm, Cost: costPasses(8, 1, 0), Grad: gradBatchNorm, Forwardable: inPlace}},
	{OpFusedBatchNormGrad, Def{Infer: inferBatchNormGrad, Cost: costPasses(12, 2, 0)}},
	{OpLayerNorm, Def{Infer: inferLayerNorm, Cost: costPasses(8, 1, 0), Grad: gradLayerNorm, Forwardable: inPlace}},
	{OpLayerNormGrad, Def{Infer: inferLayerNormGrad, Cost: costPasses(12, 2, 0)}},

	{OpDropout, Def{Infer: inferDropout, Cost: costElementwise(8), Grad: gradDropout, Forwardable: inPlace, Random: true}},
	{OpDropoutGrad, Def{Infer: inferDropoutGrad, Cost: costElementwise(1), Forwardable: inPlace}},
	{OpRandomUniform, Def{Infer: inferRandom, Cost: costElementwise(8), Random: true}},

	{OpTranspose, Def{Infer: inferTranspose, Cost: costMove, Grad: gradTranspose}},
	{OpConcat, Def{Infer: inferConcat, Cost: costMove, Grad: gradConcat, HostInt32: true}},
	{OpSplit, Def{Infer: inferSplit, Cost: costMove, Grad: gradSplit}},
	{OpSlice, Def{Infer: inferSlice, Cost: costGather, Grad: gradSlice, HostInt32: true}},
	{OpPad, Def{Infer: inferPad, Cost: costMove, Grad: gradPad, HostInt32: true}},
	{OpTile, Def{Infer: inferTile, Cost: costMove, Grad: gradTile}},
	{OpGather, Def{Infer: inferGather, Cost: costGather, Grad: gradGather}},
	{OpUnsortedSegmentSum, Def{Infer: inferSegmentSum, Cost: costSegmentSum, Grad: gradSegmentSum}},
	{OpOneHot, Def{Infer: inferOneHot, Cost: costMove}},
	{OpRange, Def{Infer: inferRange, Cost: costMove, HostInt32: true}},

	{OpLSTMCell, Def{Infer: inferLSTM, Cost: costPasses(flopsTanh+3, 0, 0), Grad: gradLSTM, Forwardable: inPlace}},
	{OpLSTMCellGrad, Def{Infer: inferLSTMGrad, Cost: costPasses(8, 0, 0)}},

	{OpSparseXent, Def{
		Infer: inferSparseXent, Cost: costPasses(flopsTanh+4, 0, 0), Grad: gradXent, Workspace: workspaceSparseXent,
		Forwardable: inPlace, ForwardOutput: 1,
	}},
	{OpXent, Def{
		Infer: inferXent, Cost: costPasses(flopsTanh+5, 0, 0), Grad: gradXent, Workspace: workspaceSparseXent,
		Forwardable: inPlace, ForwardOutput: 1,
	}},

	{OpAssignAdd, Def{Infer: inferAssignNumber, Cost: costApply(1, 0), Stateful: true}},
	{OpAssignSub, Def{Infer: inferAssignNumber, Cost: costApply(1, 0), Stateful: true}},
	{OpAssignMovingAverage, Def{Infer: inferMovingAverage, Cost: costApply(3, 0), Stateful: true}},

	{OpApplySGD, Def{Infer: inferApply(0, 1, false), Cost: costApply(2, 0), Stateful: true}},
	{OpApplyMomentum, Def{Infer: inferApply(1, 2, false), Cost: costApply(4, 1), Stateful: true, Slots: 1}},
	{OpApplyAdagrad, Def{Infer: inferApply(1, 2, false), Cost: costApply(8, 1), Stateful: true, Slots: 1}},
	{OpApplyRMSProp, Def{Infer: inferApply(2, 4, false), Cost: costApply(12, 2), Stateful: true, Slots: 2}},
	{OpApplyCenteredRMSProp, Def{Infer: inferApply(3, 4, false), Cost: costApply(16, 3), Stateful: true, Slots: 3}},
	{OpApplyAdam, Def{Infer: inferApply(2, 6, false), Cost: costApply(12, 2), Stateful: true, Slots: 2}},
	{OpApplyAMSGrad, Def{Infer: inferApply(3, 6, false), Cost: costApply(13, 3), Stateful: true, Slots: 3}},

	{OpSparseApplySGD, Def{Infer: inferApply(0, 1, true), Cost: costSparseApply(2, 0), Stateful: true}},
	{OpSparseApplyMomentum, Def{Infer: inferApply(1, 2, true), Cost: costSparseApply(4, 1), Stateful: true, Slots: 1}},
	{OpSparseApplyAdagrad, Def{Infer: inferApply(1, 2, true), Cost: costSparseApply(8, 1), Stateful: true, Slots: 1}},
	{OpSparseApplyAdam, Def{Infer: inferApply(2, 6, true), Cost: costSparseApply(12, 2), Stateful: true, Slots: 2}},

	{OpUpdateLossScale, Def{Infer: inferLossScale, Cost: costMove, Stateful: true, Slots: 1}},

	{OpSwapOut, Def{Infer: inferSame, Cost: costMove, HostOutputs: []int{0}}},
	{OpSwapIn, Def{Infer: inferSame, Cost: costMove, HostInputs: []int{0}}},
}

// The inputs that ops work on in place, in the order in which they are tried.
var (
	inPlace = []int{0}
	both    = []int{0, 1}
)
