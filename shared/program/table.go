package program

// defs is the table of op definitions. It is only ever looked up by name,
// never walked, so its order reaches no output.
var defs = map[Op]*Def{
	OpVariable: {Infer: inferVariable, Cost: costNone},
	OpConst:    {Infer: inferConst, Cost: costNone},
	OpAssign:   {Infer: inferAssign, Cost: costMove, Stateful: true},

	OpIdentity:    {Infer: inferSame, Cost: costNone, Grad: gradIdentity, Alias: true},
	OpReshape:     {Infer: inferReshape, Cost: costNone, Grad: gradReshape, Alias: true},
	OpBroadcastTo: {Infer: inferBroadcastTo, Cost: costMove, Grad: gradBroadcastTo},
	OpCast:        {Infer: inferCast, Cost: costMove},

	OpMatMul:      {Infer: inferMatMul, Cost: costMatMul, Grad: gradMatMul},
	OpBiasAdd:     {Infer: inferBiasAdd, Cost: costElementwise(1), Grad: gradBiasAdd, Forwardable: []int{0}},
	OpBiasAddGrad: {Infer: inferBiasAddGrad, Cost: costReduce},

	OpConv2D:               {Infer: inferConv2D, Cost: costConv2D, Grad: gradConv2D, Workspace: workspaceConv2D},
	OpConv2DBackpropInput:  {Infer: inferConv2DBackpropInput, Cost: costConv2D, Workspace: workspaceConv2D},
	OpConv2DBackpropFilter: {Infer: inferConv2DBackpropFilter, Cost: costConv2D, Workspace: workspaceConv2D},

	OpAvgPool:     {Infer: inferPool, Cost: costPool, Grad: gradAvgPool},
	OpMaxPool:     {Infer: inferPool, Cost: costPool, Grad: gradMaxPool},
	OpAvgPoolGrad: {Infer: inferAvgPoolGrad, Cost: costPoolGrad},
	OpMaxPoolGrad: {Infer: inferMaxPoolGrad, Cost: costPoolGrad},

	OpTanh:     {Infer: inferFloat, Cost: costElementwise(flopsTanh), Grad: gradTanh, Forwardable: []int{0}},
	OpRelu:     {Infer: inferFloat, Cost: costElementwise(1), Grad: gradRelu, Forwardable: []int{0}},
	OpTanhGrad: {Infer: inferSamePair, Cost: costElementwise(3), Forwardable: []int{0, 1}},
	OpReluGrad: {Infer: inferSamePair, Cost: costElementwise(1), Forwardable: []int{0, 1}},

	OpAdd:  {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradAdd, Forwardable: []int{0, 1}},
	OpSub:  {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradSub, Forwardable: []int{0, 1}},
	OpMul:  {Infer: inferBroadcast, Cost: costElementwise(1), Grad: gradMul, Forwardable: []int{0, 1}},
	OpAddN: {Infer: inferAddN, Cost: costAddN, Grad: gradAddN, Forwardable: []int{0}},

	OpSum:    {Infer: inferReduce, Cost: costReduce, Grad: gradSum},
	OpMean:   {Infer: inferReduce, Cost: costReduce, Grad: gradMean},
	OpArgMax: {Infer: inferArgMax, Cost: costReduce},
	OpEqual:  {Infer: inferEqual, Cost: costElementwise(1)},
	OpSparseXent: {
		Infer: inferSparseXent, Cost: costSparseXent, Grad: gradSparseXent, Workspace: workspaceSparseXent,
		Forwardable: []int{0}, ForwardOutput: 1,
	},

	OpApplySGD:  {Infer: inferApplySGD, Cost: costApplySGD, Stateful: true},
	OpApplyAdam: {Infer: inferApplyAdam, Cost: costApplyAdam, Stateful: true, Slots: 2},
}
