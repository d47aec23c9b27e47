package program

// defs is the table of op definitions. It is only ever looked up by name,
// never walked, so its order reaches no output. What an op takes and gives is
// said in op.go.
var defs = map[Op]*Def{
	OpVariable: {Infer: inferVariable, Cost: costNone},
	OpConst:    {Infer: inferConst, Cost: costNone, HostInt32: true},
	OpAssign:   {Infer: inferAssign, Cost: costMove, Stateful: true},

	OpIdentity:     {Infer: inferSame, Cost: costNone, Grad: gradIdentity, Alias: true, HostInt32: true},
	OpStopGradient: {Infer: inferSame, Cost: costNone, Alias: true, HostInt32: true},
	OpReshape:      {Infer: inferReshape, Cost: costNone, Grad: gradReshape, Alias: true, HostInt32: true},
	OpBroadcastTo:  {Infer: inferBroadcastTo, Cost: costMove, Grad: gradBroadcastTo, HostInt32: true},
	OpCast:         {Infer: inferCast, Cost: costMove, Grad: gradCast},
	OpShape:        {Infer: inferShape, Cost: costNone, HostOutputs: []int{0}},

	OpMatMul:      {Infer: inferMatMul, Cost: costMatMul, Grad: gradMatMul},
	OpBatchMatMul: {Infer: inferMatMul, Cost: costMatMul, Grad: gradMatMul},
	OpBiasAdd:     {Infer: inferBiasAdd, Cost: costElementwise(1), Grad: gradBiasAdd, Forwardable: inPlace},
	OpBiasAddGrad: {Infer: inferBiasAddGrad, Cost: costReduce},

	OpConv2D:               {Infer: inferConv2D, Cost: costConv2D, Grad: gradConv2D, Workspace: workspaceConv2D},
	OpConv2DBackpropInput:  {Infer: inferConv2DBackpropInput, Cost: costConv2D, Grad: gradTransposedConv, Workspace: workspaceConv2D},
	OpConv2DBackpropFilter: {Infer: inferConv2DBackpropFilter, Cost: costConv2D, Workspace: workspaceConv2D},

	OpAvgPool:     {Infer: inferPool, Cost: costPool, Grad: gradAvgPool},
	OpMaxPool:     {Infer: inferPool, Cost: costPool, Grad: gradMaxPool},
	OpAvgPoolGrad: {Infer: inferAvgPoolGrad, Cost: costPoolGrad},
	OpMaxPoolGrad: {Infer: inferMaxPoolGrad, Cost: costPoolGrad},

	// One input. Their gradients say what they keep: the output where that is
	// enough, so that the op can work in place in training as well.
	OpTanh:       {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradOf(OpTanhGrad, true, false), Forwardable: inPlace},
	OpRelu:       {Infer: inferFloat, Cost: costElementwise(1), Grad: gradOf(OpReluGrad, true, true), Forwardable: inPlace},
	OpRelu6:      {Infer: inferFloat, Cost: costElementwise(2), Grad: gradOf(OpRelu6Grad, true, true), Forwardable: inPlace},
	OpLeakyRelu:  {Infer: inferFloat, Cost: costElementwise(2), Grad: gradOf(OpLeakyReluGrad, true, true), Forwardable: inPlace},
	OpSigmoid:    {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradOf(OpSigmoidGrad, true, false), Forwardable: inPlace},
	OpGelu:       {Infer: inferFloat, Cost: costElementwise(flopsTanh + 7), Grad: gradOf(OpGeluGrad, false, true), Forwardable: inPlace},
	OpExp:        {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradExp, Forwardable: inPlace},
	OpLog:        {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradLog, Forwardable: inPlace},
	OpSqrt:       {Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpSqrtGrad, true, false), Forwardable: inPlace},
	OpRsqrt:      {Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpRsqrtGrad, true, false), Forwardable: inPlace},
	OpSquare:     {Infer: inferNumber, Cost: costElementwise(1), Grad: gradSquare, Forwardable: inPlace, HostInt32: true},
	OpNeg:        {Infer: inferNumber, Cost: costElementwise(1), Grad: gradNeg, Forwardable: inPlace, HostInt32: true},
	OpAbs:        {Infer: inferNumber, Cost: costElementwise(1), Grad: gradAbs, Forwardable: inPlace, HostInt32: true},
	OpReciprocal: {Infer: inferFloat, Cost: costElementwise(4), Grad: gradOf(OpReciprocalGrad, true, false), Forwardable: inPlace},
	OpErf:        {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradErf, Forwardable: inPlace},
	OpIsFinite:   {Infer: inferIsFinite, Cost: costElementwise(1)},
	OpLogicalNot: {Infer: inferNot, Cost: costElementwise(1), Forwardable: inPlace},

	OpTanhGrad:       {Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both},
	OpSigmoidGrad:    {Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both},
	OpSqrtGrad:       {Infer: inferSamePair, Cost: costElementwise(5), Forwardable: both},
	OpRsqrtGrad:      {Infer: inferSamePair, Cost: costElementwise(4), Forwardable: both},
	OpReciprocalGrad: {Infer: inferSamePair, Cost: costElementwise(3), Forwardable: both},
	OpReluGrad:       {Infer: inferSamePair, Cost: costElementwise(1), Forwardable: both},
	OpRelu6Grad:      {Infer: inferSamePair, Cost: costElementwise(2), Forwardable: both},
	OpLeakyReluGrad:  {Infer: inferSamePair, Cost: costElementwise(2), Forwardable: both},
	OpGeluGrad:       {Infer: inferSamePair, Cost: costElementwise(2*flopsTanh + 5), Forwardable: both},

	// Two inputs and more.
	OpAdd:               {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradAdd, Forwardable: both, HostInt32: true},
	OpSub:               {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradSub, Forwardable: both, HostInt32: true},
	OpMul:               {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradMul, Forwardable: both, HostInt32: true},
	OpDiv:               {Infer: inferBroadcastFloat, Cost: costElementwise(4), Grad: gradDiv, Forwardable: both},
	OpMaximum:           {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradLarger, Forwardable: both, HostInt32: true},
	OpMinimum:           {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradLarger, Forwardable: both, HostInt32: true},
	OpPow:               {Infer: inferBroadcastFloat, Cost: costElementwise(2 * flopsTanh), Grad: gradPow, Forwardable: both},
	OpSquaredDifference: {Infer: inferBroadcast, Cost: costElementwise(2), Grad: gradSquaredDifference, Forwardable: both, HostInt32: true},
	OpEqual:             {Infer: inferEqual, Cost: costElementwise(1), HostInt32: true},
	OpGreater:           {Infer: inferCompare, Cost: costElementwise(1), HostInt32: true},
	OpGreaterEqual:      {Infer: inferCompare, Cost: costElementwise(1), HostInt32: true},
	OpLess:              {Infer: inferCompare, Cost: costElementwise(1), HostInt32: true},
	OpLogicalAnd:        {Infer: inferAnd, Cost: costElementwise(1), Forwardable: both},
	OpSelect:            {Infer: inferSelect, Cost: costElementwise(1), Grad: gradSelect},
	OpAddN:              {Infer: inferAddN, Cost: costAddN, Grad: gradAddN, Forwardable: inPlace, HostInt32: true},

	OpSum:    {Infer: inferReduce, Cost: costReduce, Grad: gradSum, Workspace: workspaceReduce, HostInt32: true},
	OpMean:   {Infer: inferMean, Cost: costReduce, Grad: gradMean, Workspace: workspaceReduce},
	OpMax:    {Infer: inferReduce, Cost: costReduce, Grad: gradMax, Workspace: workspaceReduce, HostInt32: true},
	OpAll:    {Infer: inferAll, Cost: costReduce, Workspace: workspaceReduce},
	OpArgMax: {Infer: inferArgMax, Cost: costReduce},
	OpTopK:   {Infer: inferTopK, Cost: costPasses(4, 0, 0), Grad: gradTopK},
	OpL2Loss: {Infer: inferL2Loss, Cost: costPasses(2, 0, 0), Grad: gradL2Loss, Workspace: workspaceReduce},

	OpSoftmax:     {Infer: inferSoftmax, Cost: costPasses(flopsTanh+3, 1, 0), Grad: gradOf(OpSoftmaxGrad, true, false), Workspace: workspaceSoftmax, Forwardable: inPlace},
	OpLogSoftmax:  {Infer: inferSoftmax, Cost: costPasses(flopsTanh+3, 1, 0), Grad: gradLogSoftmax, Workspace: workspaceSoftmax, Forwardable: inPlace},
	OpSoftmaxGrad: {Infer: inferSamePair, Cost: costPasses(4, 1, 0), Forwardable: []int{1}},

	OpFusedBatchNorm:     {Infer: inferBatchNorm, Cost: costPasses(8, 1, 0), Grad: gradBatchNorm, Forwardable: inPlace},
	OpFusedBatchNormGrad: {Infer: inferBatchNormGrad, Cost: costPasses(12, 2, 0)},
	OpLayerNorm:          {Infer: inferLayerNorm, Cost: costPasses(8, 1, 0), Grad: gradLayerNorm, Forwardable: inPlace},
	OpLayerNormGrad:      {Infer: inferLayerNormGrad, Cost: costPasses(12, 2, 0)},

	OpDropout:       {Infer: inferDropout, Cost: costElementwise(8), Grad: gradDropout, Forwardable: inPlace, Random: true},
	OpDropoutGrad:   {Infer: inferDropoutGrad, Cost: costElementwise(1), Forwardable: inPlace},
	OpRandomUniform: {Infer: inferRandom, Cost: costElementwise(8), Random: true},

	OpTranspose:          {Infer: inferTranspose, Cost: costMove, Grad: gradTranspose},
	OpConcat:             {Infer: inferConcat, Cost: costMove, Grad: gradConcat, HostInt32: true},
	OpSplit:              {Infer: inferSplit, Cost: costMove, Grad: gradSplit},
	OpSlice:              {Infer: inferSlice, Cost: costGather, Grad: gradSlice, HostInt32: true},
	OpPad:                {Infer: inferPad, Cost: costMove, Grad: gradPad, HostInt32: true},
	OpTile:               {Infer: inferTile, Cost: costMove, Grad: gradTile},
	OpGather:             {Infer: inferGather, Cost: costGather, Grad: gradGather},
	OpUnsortedSegmentSum: {Infer: inferSegmentSum, Cost: costSegmentSum, Grad: gradSegmentSum},
	OpOneHot:             {Infer: inferOneHot, Cost: costMove},
	OpRange:              {Infer: inferRange, Cost: costMove, HostInt32: true},

	OpLSTMCell:     {Infer: inferLSTM, Cost: costPasses(flopsTanh+3, 0, 0), Grad: gradLSTM, Forwardable: inPlace},
	OpLSTMCellGrad: {Infer: inferLSTMGrad, Cost: costPasses(8, 0, 0)},

	OpSparseXent: {
		Infer: inferSparseXent, Cost: costPasses(flopsTanh+4, 0, 0), Grad: gradXent, Workspace: workspaceSparseXent,
		Forwardable: inPlace, ForwardOutput: 1,
	},
	OpXent: {
		Infer: inferXent, Cost: costPasses(flopsTanh+5, 0, 0), Grad: gradXent, Workspace: workspaceSparseXent,
		Forwardable: inPlace, ForwardOutput: 1,
	},

	OpAssignAdd:           {Infer: inferAssignNumber, Cost: costApply(1, 0), Stateful: true},
	OpAssignSub:           {Infer: inferAssignNumber, Cost: costApply(1, 0), Stateful: true},
	OpAssignMovingAverage: {Infer: inferMovingAverage, Cost: costApply(3, 0), Stateful: true},

	OpApplySGD:             {Infer: inferApply(0, 1, false), Cost: costApply(2, 0), Stateful: true},
	OpApplyMomentum:        {Infer: inferApply(1, 2, false), Cost: costApply(4, 1), Stateful: true, Slots: 1},
	OpApplyAdagrad:         {Infer: inferApply(1, 2, false), Cost: costApply(8, 1), Stateful: true, Slots: 1},
	OpApplyRMSProp:         {Infer: inferApply(2, 4, false), Cost: costApply(12, 2), Stateful: true, Slots: 2},
	OpApplyCenteredRMSProp: {Infer: inferApply(3, 4, false), Cost: costApply(16, 3), Stateful: true, Slots: 3},
	OpApplyAdam:            {Infer: inferApply(2, 6, false), Cost: costApply(12, 2), Stateful: true, Slots: 2},
	OpApplyAMSGrad:         {Infer: inferApply(3, 6, false), Cost: costApply(13, 3), Stateful: true, Slots: 3},

	OpSparseApplySGD:      {Infer: inferApply(0, 1, true), Cost: costSparseApply(2, 0), Stateful: true},
	OpSparseApplyMomentum: {Infer: inferApply(1, 2, true), Cost: costSparseApply(4, 1), Stateful: true, Slots: 1},
	OpSparseApplyAdagrad:  {Infer: inferApply(1, 2, true), Cost: costSparseApply(8, 1), Stateful: true, Slots: 1},
	OpSparseApplyAdam:     {Infer: inferApply(2, 6, true), Cost: costSparseApply(12, 2), Stateful: true, Slots: 2},

	OpUpdateLossScale: {Infer: inferLossScale, Cost: costMove, Stateful: true, Slots: 1},

	OpSwapOut: {Infer: inferSame, Cost: costMove, HostOutputs: []int{0}},
	OpSwapIn:  {Infer: inferSame, Cost: costMove, HostInputs: []int{0}},
}

// The inputs that ops work on in place, in the order in which they are tried.
var (
	inPlace = []int{0}
	both    = []int{0, 1}
)
