package kernel

import "tideline/shared/program"

// kernels has an entry for every op. Bodies are named with their types here,
// outside of generic code, so that a call makes no closures.
var kernels = map[program.Op]*entry{
	program.OpVariable:     moves(nil, nothing),
	program.OpConst:        moves(outElements, constant),
	program.OpAssign:       {raw: true, writes: 1, phases: []phase{{f32: assign}}},
	program.OpIdentity:     moves(nil, same),
	program.OpReshape:      moves(nil, same),
	program.OpStopGradient: moves(nil, same),
	program.OpSwapOut:      moves(nil, same),
	program.OpSwapIn:       moves(nil, same),
	program.OpBroadcastTo:  moves(outElements, broadcastTo),
	program.OpCast:         moves(outElements, cast),
	program.OpRange:        moves(outElements, ramp),
	program.OpShape:        moves(nil, shape),
	program.OpTranspose:    moves(outElements, transposeDims),
	program.OpConcat:       moves(nil, concat),
	program.OpSplit:        moves(nil, split),
	program.OpSlice:        moves(outElements, sliceOf),
	program.OpPad:          moves(nil, pad),
	program.OpTile:         moves(outElements, tileOf),
	program.OpGather:       {raw: true, check: checkGather, phases: []phase{{units: gatherUnits, f32: gather}}},
	program.OpOneHot:       moves(inElements, oneHot),
	program.OpUnsortedSegmentSum: {check: checkSegments, phases: []phase{{
		units: segmentWidth, f32: segmentSum[float32], f64: segmentSum[float64], i32: segmentSum[int32], i64: segmentSum[int64],
	}}},

	program.OpMatMul:      floats(nil, 1, matMul[float32], matMul[float64]),
	program.OpBatchMatMul: floats(nil, 1, matMul[float32], matMul[float64]),
	program.OpBiasAdd:     floats(inRows, 1, biasAdd[float32], biasAdd[float64]),
	program.OpBiasAddGrad: floats(outElements, 1, biasAddGrad[float32], biasAddGrad[float64]),

	program.OpConv2D:               floats(nil, 1, conv2D[float32], conv2D[float64]),
	program.OpConv2DBackpropInput:  floats(nil, 1, conv2DBackpropInput[float32], conv2DBackpropInput[float64]),
	program.OpConv2DBackpropFilter: floats(nil, 1, conv2DBackpropFilter[float32], conv2DBackpropFilter[float64]),

	program.OpAvgPool:     floats(samples, 2, avgPool[float32], avgPool[float64]),
	program.OpMaxPool:     floats(samples, 2, maxPool[float32], maxPool[float64]),
	program.OpAvgPoolGrad: floats(samples, 2, avgPoolGrad[float32], avgPoolGrad[float64]),
	program.OpMaxPoolGrad: floats(samples, 4, maxPoolGrad[float32], maxPoolGrad[float64]),

	program.OpTanh:       unaryEntry(8, tanhs[float32], tanhs[float64]),
	program.OpRelu:       unaryEntry(1, relus[float32], relus[float64]),
	program.OpRelu6:      unaryEntry(1, relu6s[float32], relu6s[float64]),
	program.OpLeakyRelu:  unaryEntry(1, leakyRelus[float32], leakyRelus[float64]),
	program.OpSigmoid:    unaryEntry(8, sigmoids[float32], sigmoids[float64]),
	program.OpGelu:       unaryEntry(10, gelus[float32], gelus[float64]),
	program.OpExp:        unaryEntry(6, exps[float32], exps[float64]),
	program.OpLog:        unaryEntry(6, logs[float32], logs[float64]),
	program.OpSqrt:       unaryEntry(2, sqrts[float32], sqrts[float64]),
	program.OpRsqrt:      unaryEntry(4, rsqrts[float32], rsqrts[float64]),
	program.OpSquare:     unaryEntry(1, squares[float32], squares[float64]).withInts(squares[int32], squares[int64]),
	program.OpNeg:        unaryEntry(1, negs[float32], negs[float64]).withInts(negs[int32], negs[int64]),
	program.OpAbs:        unaryEntry(1, abss[float32], abss[float64]).withInts(absInts[int32], absInts[int64]),
	program.OpReciprocal: unaryEntry(2, reciprocals[float32], reciprocals[float64]),
	program.OpErf:        unaryEntry(10, erfs[float32], erfs[float64]),
	program.OpIsFinite:   moves(outElements, isFinite),
	program.OpLogicalNot: moves(outElements, logicalNot),

	program.OpTanhGrad:       binaryEntry(1, binary{f32: tanhGrads[float32], f64: tanhGrads[float64]}),
	program.OpSigmoidGrad:    binaryEntry(1, binary{f32: sigmoidGrads[float32], f64: sigmoidGrads[float64]}),
	program.OpSqrtGrad:       binaryEntry(2, binary{f32: sqrtGrads[float32], f64: sqrtGrads[float64]}),
	program.OpRsqrtGrad:      binaryEntry(1, binary{f32: rsqrtGrads[float32], f64: rsqrtGrads[float64]}),
	program.OpReciprocalGrad: binaryEntry(1, binary{f32: reciprocalGrads[float32], f64: reciprocalGrads[float64]}),
	program.OpReluGrad:       binaryEntry(1, binary{f32: reluGrads[float32], f64: reluGrads[float64]}),
	program.OpRelu6Grad:      binaryEntry(1, binary{f32: relu6Grads[float32], f64: relu6Grads[float64]}),
	program.OpLeakyReluGrad:  binaryEntry(1, binary{f32: leakyReluGrads[float32], f64: leakyReluGrads[float64]}),
	program.OpGeluGrad:       binaryEntry(10, binary{f32: geluGrads[float32], f64: geluGrads[float64]}),

	program.OpAdd: binaryEntry(1, binary{f32: adds[float32], f64: adds[float64], i32: adds[int32], i64: adds[int64]}),
	program.OpSub: binaryEntry(1, binary{f32: subs[float32], f64: subs[float64], i32: subs[int32], i64: subs[int64]}),
	program.OpMul: binaryEntry(1, binary{f32: muls[float32], f64: muls[float64], i32: muls[int32], i64: muls[int64]}),
	program.OpDiv: binaryEntry(1, binary{f32: divs[float32], f64: divs[float64]}),
	program.OpPow: binaryEntry(20, binary{f32: pows[float32], f64: pows[float64]}),
	program.OpMaximum: binaryEntry(1, binary{
		f32: maxima[float32], f64: maxima[float64], i32: maxima[int32], i64: maxima[int64],
	}),
	program.OpMinimum: binaryEntry(1, binary{
		f32: minima[float32], f64: minima[float64], i32: minima[int32], i64: minima[int64],
	}),
	program.OpSquaredDifference: binaryEntry(1, binary{
		f32: squaredDifferences[float32], f64: squaredDifferences[float64],
		i32: squaredDifferences[int32], i64: squaredDifferences[int64],
	}),
	program.OpEqual: binaryEntry(1, binary{
		c32: equals[float32], c64: equals[float64], n32: equals[int32], n64: equals[int64], n8: equals[uint8],
	}),
	program.OpGreater: binaryEntry(1, binary{
		c32: greaters[float32], c64: greaters[float64], n32: greaters[int32], n64: greaters[int64], n8: greaters[uint8],
	}),
	program.OpGreaterEqual: binaryEntry(1, binary{
		c32: greaterEquals[float32], c64: greaterEquals[float64],
		n32: greaterEquals[int32], n64: greaterEquals[int64], n8: greaterEquals[uint8],
	}),
	program.OpLess: binaryEntry(1, binary{
		c32: lesses[float32], c64: lesses[float64], n32: lesses[int32], n64: lesses[int64], n8: lesses[uint8],
	}),
	program.OpLogicalAnd: binaryEntry(1, binary{n8: ands}),
	program.OpSelect:     moves(outElements, selected),
	program.OpAddN: {phases: []phase{{
		units: outElements, f32: addFloats, f64: addN[float64], i32: addN[int32], i64: addN[int64],
	}}},

	program.OpSum: {phases: []phase{{
		units: outElements, f32: sums[float32], f64: sums[float64], i32: intSums[int32], i64: intSums[int64],
	}}},
	program.OpMean: floats(outElements, 1, means[float32], means[float64]),
	program.OpMax: {phases: []phase{{
		units: outElements, f32: maxOf[float32], f64: maxOf[float64], i32: maxInt32, i64: maxInt64,
	}}},
	program.OpAll:    moves(outElements, all),
	program.OpArgMax: floats(outElements, 1, argMax[float32], argMax[float64]),
	program.OpTopK:   floats(inRows, 2, topK[float32], topK[float64]),
	program.OpL2Loss: floats(nil, 1, l2Loss[float32], l2Loss[float64]),

	program.OpSoftmax:     floats(inRows, 8, softmax[float32], softmax[float64]),
	program.OpLogSoftmax:  floats(inRows, 8, logSoftmax[float32], logSoftmax[float64]),
	program.OpSoftmaxGrad: floats(inRows, 2, softmaxGrad[float32], softmaxGrad[float64]),

	program.OpFusedBatchNorm: {phases: []phase{
		{units: inLast, weight: 2, f32: batchStatistics[float32], f64: batchStatistics[float64]},
		{units: inRows, weight: 2, f32: batchNormalise[float32], f64: batchNormalise[float64]},
	}},
	// The sums come first: dx may be written over dy.
	program.OpFusedBatchNormGrad: {phases: []phase{
		{units: inLast, weight: 2, f32: batchNormSums[float32], f64: batchNormSums[float64]},
		{units: inRows, weight: 2, f32: batchNormInput[float32], f64: batchNormInput[float64]},
	}},
	program.OpLayerNorm: floats(inRows, 3, layerNorm[float32], layerNorm[float64]),
	program.OpLayerNormGrad: {phases: []phase{
		{units: inLast, weight: 2, f32: layerNormSums[float32], f64: layerNormSums[float64]},
		{units: inRows, weight: 4, f32: layerNormInput[float32], f64: layerNormInput[float64]},
	}},

	program.OpDropout:       floats(outElements, 3, dropout[float32], dropout[float64]),
	program.OpDropoutGrad:   floats(outElements, 1, dropoutGrad[float32], dropoutGrad[float64]),
	program.OpRandomUniform: moves(outElements, randomUniform),

	program.OpLSTMCell:     floats(lstmRows, 20, lstmCell[float32], lstmCell[float64]),
	program.OpLSTMCellGrad: floats(lstmRows, 6, lstmCellGrad[float32], lstmCellGrad[float64]),

	program.OpSparseXent: {check: checkLabels, phases: []phase{
		{units: inRows, weight: 8, f32: sparseXent[float32], f64: sparseXent[float64]},
	}},
	program.OpXent: floats(inRows, 14, xent[float32], xent[float64]),

	program.OpAssignAdd: {writes: 1, phases: []phase{{
		units: inElements, f32: assignAdd[float32], f64: assignAdd[float64], i32: assignAdd[int32], i64: assignAdd[int64],
	}}},
	program.OpAssignSub: {writes: 1, phases: []phase{{
		units: inElements, f32: assignSub[float32], f64: assignSub[float64], i32: assignSub[int32], i64: assignSub[int64],
	}}},
	program.OpAssignMovingAverage: update(1, assignMovingAverage[float32], assignMovingAverage[float64]),

	program.OpApplySGD:             update(1, applySGD[float32], applySGD[float64]),
	program.OpApplyMomentum:        update(2, applyMomentum[float32], applyMomentum[float64]),
	program.OpApplyAdagrad:         update(2, applyAdagrad[float32], applyAdagrad[float64]),
	program.OpApplyRMSProp:         update(3, applyRMSProp[float32], applyRMSProp[float64]),
	program.OpApplyCenteredRMSProp: update(4, applyCenteredRMSProp[float32], applyCenteredRMSProp[float64]),
	program.OpApplyAdam:            update(3, applyAdam[float32], applyAdam[float64]),
	program.OpApplyAMSGrad:         update(4, applyAMSGrad[float32], applyAMSGrad[float64]),
	program.OpSparseApplySGD:       sparse(1, sparseSGD[float32], sparseSGD[float64]),
	program.OpSparseApplyMomentum:  sparse(2, sparseMomentum[float32], sparseMomentum[float64]),
	program.OpSparseApplyAdagrad:   sparse(2, sparseAdagrad[float32], sparseAdagrad[float64]),
	program.OpSparseApplyAdam:      sparse(3, sparseAdam[float32], sparseAdam[float64]),
	program.OpUpdateLossScale:      {raw: true, writes: 2, phases: []phase{{f32: updateLossScale}}},
}

// moves is for ops that look at types themselves.
func moves(units func(*Call) int, f body) *entry {
	return &entry{raw: true, phases: []phase{{units: units, f32: f}}}
}

// floats is for ops of one phase in either floating type.
func floats(units func(*Call) int, weight int, f32, f64 body) *entry {
	return &entry{phases: []phase{{units: units, weight: weight, f32: f32, f64: f64}}}
}

// update is for ops that change the first inputs element by element.
func update(writes int, f32, f64 body) *entry {
	return &entry{writes: writes, skip: heldBack, phases: []phase{{units: inElements, weight: 3, f32: f32, f64: f64}}}
}

// sparse is for ops that change rows of the first inputs.
func sparse(writes int, f32, f64 body) *entry {
	return &entry{writes: writes, skip: heldBack, check: checkSparse, phases: []phase{{f32: f32, f64: f64}}}
}
