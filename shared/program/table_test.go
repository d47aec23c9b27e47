package program

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// The element types of the cases below: float is Float32 in turn with the other
// floating types, stat what goes with it for statistics.
const (
	float DType = Float32
	stat  DType = 100
)

// opCase is an op that is right: what goes in, what comes out. The first
// states of its inputs are variables that it changes.
type opCase struct {
	op     Op
	a      Attrs
	in     []Spec
	out    []Spec
	states int
}

func specs(d DType, shapes ...Shape) []Spec {
	var out []Spec
	for _, s := range shapes {
		out = append(out, Spec{d, s})
	}
	return out
}

// r is tensors of the floating type in question.
func r(shapes ...Shape) []Spec { return specs(float, shapes...) }

var (
	x23  = Shape{2, 3}
	x3   = Shape{3}
	nhwc = Shape{2, 8, 8, 3}
	c3   = Shape{3}
)

// opCases has every op of the table, most of them once.
var opCases = slices.Concat([]opCase{
	{op: OpConst, a: Attrs{Shape: x23, Value: 2}, out: r(x23)},
	{op: OpConst, a: Attrs{DType: Int32}, out: specs(Int32, nil)},
	{op: OpIdentity, in: r(x23), out: r(x23)},
	{op: OpStopGradient, in: r(x23), out: r(x23)},
	{op: OpReshape, a: Attrs{Shape: Shape{3, 1, 2}}, in: r(x23), out: r(Shape{3, 1, 2})},
	{op: OpBroadcastTo, a: Attrs{Shape: Shape{4, 2, 3}}, in: r(Shape{2, 1}), out: r(Shape{4, 2, 3})},
	{op: OpShape, in: r(nhwc), out: specs(Int32, Shape{4})},
	{op: OpSwapOut, in: r(x23), out: r(x23)},
	{op: OpSwapIn, in: r(x23), out: r(x23)},

	{op: OpMatMul, in: r(Shape{2, 3}, Shape{3, 4}), out: r(Shape{2, 4})},
	{op: OpMatMul, a: Attrs{TransposeA: true}, in: r(Shape{3, 2}, Shape{3, 4}), out: r(Shape{2, 4})},
	{op: OpMatMul, a: Attrs{TransposeB: true}, in: r(Shape{2, 3}, Shape{4, 3}), out: r(Shape{2, 4})},
	{op: OpMatMul, a: Attrs{TransposeA: true, TransposeB: true}, in: r(Shape{3, 2}, Shape{4, 3}), out: r(Shape{2, 4})},
	{op: OpBatchMatMul, in: r(Shape{5, 6, 2, 3}, Shape{5, 6, 3, 4}), out: r(Shape{5, 6, 2, 4})},
	{op: OpBatchMatMul, a: Attrs{TransposeB: true}, in: r(Shape{5, 2, 3}, Shape{5, 4, 3}), out: r(Shape{5, 2, 4})},
	{op: OpBatchMatMul, a: Attrs{TransposeA: true}, in: r(Shape{5, 3, 2}, Shape{5, 3, 4}), out: r(Shape{5, 2, 4})},
	{op: OpBatchMatMul, a: Attrs{TransposeA: true, TransposeB: true}, in: r(Shape{5, 3, 2}, Shape{5, 4, 3}), out: r(Shape{5, 2, 4})},
	{op: OpBiasAdd, in: r(nhwc, c3), out: r(nhwc)},
	{op: OpBiasAddGrad, in: r(nhwc), out: r(c3)},

	{op: OpConv2D, a: Attrs{Strides: [2]int64{1, 1}}, in: r(nhwc, Shape{3, 3, 3, 5}), out: r(Shape{2, 6, 6, 5})},
	{op: OpConv2D, a: Attrs{Strides: [2]int64{2, 2}, Padding: Same}, in: r(nhwc, Shape{3, 3, 3, 5}), out: r(Shape{2, 4, 4, 5})},
	{op: OpConv2DBackpropInput, a: Attrs{Strides: [2]int64{2, 2}, Padding: Same, Shape: nhwc}, in: r(Shape{2, 2, 3, 5}, Shape{2, 4, 4, 5}), out: r(nhwc)},
	{op: OpConv2DBackpropFilter, a: Attrs{Strides: [2]int64{1, 1}, Shape: Shape{3, 3, 3, 5}}, in: r(nhwc, Shape{2, 6, 6, 5}), out: r(Shape{3, 3, 3, 5})},
	{op: OpAvgPool, a: pool2, in: r(nhwc), out: r(Shape{2, 4, 4, 3})},
	{op: OpMaxPool, a: pool2, in: r(nhwc), out: r(Shape{2, 4, 4, 3})},
	{op: OpAvgPoolGrad, a: Attrs{Window: pool2.Window, Strides: pool2.Strides, Shape: nhwc}, in: r(Shape{2, 4, 4, 3}), out: r(nhwc)},
	{op: OpMaxPoolGrad, a: pool2, in: r(nhwc, Shape{2, 4, 4, 3}, Shape{2, 4, 4, 3}), out: r(nhwc)},

	{op: OpIsFinite, in: r(x23), out: specs(Bool, x23)},
	{op: OpLogicalNot, in: specs(Bool, x23), out: specs(Bool, x23)},
	{op: OpLogicalAnd, in: specs(Bool, x23, x3), out: specs(Bool, x23)},
	{op: OpEqual, in: specs(Bool, x23, x3), out: specs(Bool, x23)},
	{op: OpSelect, in: []Spec{{Bool, Shape{2, 1}}, {float, x3}, {float, nil}}, out: r(x23)},
	{op: OpAddN, in: r(x23, x23, x23), out: r(x23)},
	{op: OpAddN, in: r(x23), out: r(x23)},

	{op: OpSum, a: Attrs{Axes: []int64{0, 2}}, in: r(nhwc), out: r(Shape{8, 3})},
	{op: OpSum, a: Attrs{Axes: []int64{1}, KeepDims: true}, in: r(x23), out: r(Shape{2, 1})},
	{op: OpMean, in: r(nhwc), out: r(nil)},
	{op: OpMean, a: Attrs{Axes: []int64{1}, KeepDims: true}, in: r(x23), out: r(Shape{2, 1})},
	{op: OpMax, a: Attrs{Axes: []int64{1}}, in: r(x23), out: r(Shape{2})},
	{op: OpMax, a: Attrs{KeepDims: true}, in: r(x23), out: r(Shape{1, 1})},
	{op: OpAll, in: specs(Bool, x23), out: specs(Bool, nil)},
	{op: OpArgMax, in: r(x23), out: specs(Int64, Shape{2})},
	{op: OpTopK, a: Attrs{Value: 2}, in: r(x23), out: []Spec{{float, Shape{2, 2}}, {Int32, Shape{2, 2}}}},
	{op: OpL2Loss, in: r(x23), out: r(nil)},
	{op: OpSoftmax, in: r(nhwc), out: r(nhwc)},
	{op: OpLogSoftmax, in: r(x23), out: r(x23)},

	{
		op: OpFusedBatchNorm, a: Attrs{Value: 1e-3, Training: true}, in: append(r(nhwc), specs(stat, c3, c3, c3, c3)...),
		out: append(r(nhwc), specs(stat, c3, c3, c3, c3)...),
	},
	{
		op: OpFusedBatchNormGrad, a: Attrs{Value: 1e-3, Training: true}, in: append(r(nhwc, nhwc), specs(stat, c3, c3, c3)...),
		out: append(r(nhwc), specs(stat, c3, c3)...),
	},
	{op: OpLayerNorm, a: Attrs{Value: 1e-3}, in: append(r(x23), specs(stat, x3, x3)...), out: append(r(x23), specs(stat, Shape{2}, Shape{2})...)},
	{
		op: OpLayerNormGrad, in: append(r(x23, x23), specs(stat, x3, Shape{2}, Shape{2})...),
		out: append(r(x23), specs(stat, x3, x3)...),
	},
	{op: OpDropout, a: Attrs{Value: 0.5}, in: r(x23), out: []Spec{{float, x23}, {Uint8, x23}}},
	{op: OpDropoutGrad, a: Attrs{Value: 0.5}, in: []Spec{{float, x23}, {Uint8, x23}}, out: r(x23)},
	{op: OpRandomUniform, a: Attrs{Shape: x23}, out: r(x23)},

	{op: OpTranspose, a: Attrs{Axes: []int64{3, 0, 1, 2}}, in: r(nhwc), out: r(Shape{3, 2, 8, 8})},
	{op: OpConcat, a: Attrs{Axes: []int64{1}}, in: r(x23, Shape{2, 1}, x23), out: r(Shape{2, 7})},
	{op: OpSplit, a: Attrs{Axes: []int64{2, 4}}, in: r(nhwc), out: r(Shape{2, 8, 2, 3}, Shape{2, 8, 2, 3}, Shape{2, 8, 2, 3}, Shape{2, 8, 2, 3})},
	{op: OpSlice, a: Attrs{Begin: []int64{0, 1}, Shape: Shape{1, 2}}, in: r(x23), out: r(Shape{1, 2})},
	{op: OpPad, a: Attrs{Begin: []int64{0, 1}, End: []int64{2, 3}}, in: r(x23), out: r(Shape{4, 7})},
	{op: OpTile, a: Attrs{Axes: []int64{2, 1}}, in: r(x23), out: r(Shape{4, 3})},
	{op: OpGather, in: []Spec{{float, Shape{9, 3}}, {Int32, Shape{4, 2}}}, out: r(Shape{4, 2, 3})},
	{op: OpUnsortedSegmentSum, a: Attrs{Shape: Shape{9, 3}}, in: []Spec{{float, Shape{4, 2, 3}}, {Int64, Shape{4, 2}}}, out: r(Shape{9, 3})},
	{op: OpOneHot, a: Attrs{Shape: Shape{7}}, in: specs(Int64, x23), out: r(Shape{2, 3, 7})},
	{op: OpRange, a: Attrs{DType: Int64, Shape: Shape{5}}, out: specs(Int64, Shape{5})},

	{op: OpLSTMCell, in: r(Shape{2, 12}, x23), out: r(Shape{2, 12}, x23, x23)},
	{op: OpLSTMCellGrad, in: r(Shape{2, 12}, x23, x23, x23, x23), out: r(Shape{2, 12}, x23)},
	{op: OpSparseXent, in: []Spec{{float, x23}, {Int32, Shape{2}}}, out: r(Shape{2}, x23)},
	{op: OpXent, in: r(x23, x23), out: r(Shape{2}, x23)},

	{op: OpAssign, in: r(x23, x23), states: 1},
	{op: OpAssignAdd, in: specs(Int64, nil, nil), states: 1},
	{op: OpAssignSub, in: r(x23, x23), states: 1},
	{op: OpAssignMovingAverage, a: Attrs{Value: 0.99}, in: r(x23, x23), states: 1},
	{op: OpApplySGD, in: r(x23, nil, x23), states: 1},
	{op: OpApplySGD, a: Attrs{Guarded: true}, in: append(r(x23, nil, x23), Spec{Bool, nil}), states: 1},
	{op: OpApplyMomentum, in: r(x23, x23, nil, nil, x23), states: 2},
	{op: OpApplyAdagrad, in: r(x23, x23, nil, nil, x23), states: 2},
	{op: OpApplyRMSProp, in: r(x23, x23, x23, nil, nil, nil, nil, x23), states: 3},
	{op: OpApplyCenteredRMSProp, in: r(x23, x23, x23, x23, nil, nil, nil, nil, x23), states: 4},
	{op: OpApplyAdam, in: r(x23, x23, x23, nil, nil, nil, nil, nil, nil, x23), states: 3},
	{op: OpApplyAMSGrad, in: r(x23, x23, x23, x23, nil, nil, nil, nil, nil, nil, x23), states: 4},
	{op: OpSparseApplySGD, in: append(r(x23, nil, Shape{5, 3}), Spec{Int64, Shape{5}}), states: 1},
	{op: OpSparseApplyMomentum, in: append(r(x23, x23, nil, nil, Shape{5, 3}), Spec{Int64, Shape{5}}), states: 2},
	{op: OpSparseApplyAdagrad, in: append(r(x23, x23, nil, nil, Shape{5, 3}), Spec{Int64, Shape{5}}), states: 2},
	{
		op: OpSparseApplyAdam, a: Attrs{Guarded: true}, states: 3,
		in: append(r(x23, x23, x23, nil, nil, nil, nil, nil, nil, Shape{5, 3}), Spec{Int64, Shape{5}}, Spec{Bool, nil}),
	},
	{op: OpUpdateLossScale, a: Attrs{Value: 2000}, in: []Spec{{Float32, nil}, {Int64, nil}, {Bool, nil}}, states: 2},
	{op: OpCast, a: Attrs{DType: Int64}, in: r(x23), out: specs(Int64, x23)},
},
	alike(1, r(x23), OpTanh, OpRelu, OpRelu6, OpLeakyRelu, OpSigmoid, OpGelu, OpExp, OpLog, OpSqrt, OpRsqrt, OpSquare, OpNeg, OpAbs, OpReciprocal, OpErf),
	alike(1, specs(Int32, x23), OpSquare, OpNeg, OpAbs),
	alike(2, r(x23), OpTanhGrad, OpSigmoidGrad, OpSqrtGrad, OpRsqrtGrad, OpReciprocalGrad, OpReluGrad, OpRelu6Grad, OpLeakyReluGrad, OpGeluGrad, OpSoftmaxGrad),
	alike(2, r(x23), OpAdd, OpSub, OpMul, OpDiv, OpMaximum, OpMinimum, OpPow, OpSquaredDifference),
	alike(2, specs(Int64, x23), OpAdd, OpSub, OpMul, OpMaximum, OpMinimum, OpSquaredDifference),
	broadcasts(float, OpAdd, OpSub, OpMul, OpDiv, OpMaximum, OpMinimum, OpPow, OpSquaredDifference),
	broadcasts(Bool, OpEqual, OpGreater, OpGreaterEqual, OpLess),
)

var pool2 = Attrs{Window: [2]int64{2, 2}, Strides: [2]int64{2, 2}}

// alike has ops whose inputs and only output are one spec.
func alike(inputs int, s []Spec, ops ...Op) []opCase {
	var out []opCase
	for _, op := range ops {
		out = append(out, opCase{op: op, in: slices.Repeat(s, inputs), out: s})
	}
	return out
}

// broadcasts has ops of two inputs that stretch each other; the result has type d.
func broadcasts(d DType, ops ...Op) []opCase {
	var out []opCase
	for _, op := range ops {
		out = append(out, opCase{op: op, in: r(Shape{2, 1}, Shape{1, 3}), out: specs(d, x23)})
	}
	return out
}

// in gives a case's specs with floating type d.
func with(s []Spec, d DType) []Spec {
	out := slices.Clone(s)
	for i := range out {
		switch out[i].DType {
		case float:
			out[i].DType = d
		case stat:
			out[i].DType = statistics(d)
		default:
		}
	}
	return out
}

var floatTypes = []DType{Float32, Float64, Float16, BFloat16}

// applied adds the op of a case, of floating type d, to a new program. Inputs
// that can have gradients are variables if train is set.
func applied(c opCase, d DType, train bool) (*Builder, []ValueID, []ValueID) {
	b := NewBuilder("case", 1)
	b.Float(d)
	var in []ValueID
	for i, s := range with(c.in, d) {
		if i < c.states || (train && s.DType.Float()) {
			in = append(in, b.variable(Variable{Name: "v", DType: s.DType, Shape: s.Shape}))
		} else {
			in = append(in, b.Input("in", s.DType, s.Shape))
		}
	}
	a := c.a
	if a.DType == float && (len(c.out) > 0 && c.out[0].DType == float) {
		a.DType = d
	}
	return b, in, b.Node(c.op, a, in...)
}

func TestEachOpIsDefinedOnce(t *testing.T) {
	if len(defs) != len(table) {
		t.Errorf("%d rows define %d ops", len(table), len(defs))
	}
}

func TestEveryOpInfersTypesAndShapes(t *testing.T) {
	seen := map[Op]bool{OpVariable: true}
	for _, c := range opCases {
		seen[c.op] = true
		for _, d := range floatTypes {
			if c.op == OpUpdateLossScale && d != Float32 {
				continue
			}
			b, _, out := applied(c, d, false)
			p, err := b.Build()
			if err != nil {
				t.Errorf("%s of %s: %v", c.op, d, err)
				continue
			}
			want := with(c.out, d)
			if len(out) != len(want) {
				t.Errorf("%s: %d outputs, want %d", c.op, len(out), len(want))
				continue
			}
			for i, v := range out {
				if got := p.Values[v]; got.DType != want[i].DType || !got.Shape.Equal(want[i].Shape) {
					t.Errorf("%s output %d: %s%s, want %s%s", c.op, i, got.DType, got.Shape, want[i].DType, want[i].Shape)
				}
			}
		}
	}
	for op := range defs {
		if !seen[op] {
			t.Errorf("%s: no case", op)
		}
	}
}

// Every input left out, added, or of a type or shape that does not fit, is an
// error that says where.
func TestWrongInputsAreErrorsThatNameNodeOpAndShapes(t *testing.T) {
	for _, c := range opCases {
		bad := map[string][]Spec{"one input more": append(slices.Clone(c.in), Spec{Uint8, Shape{9, 9, 9}})}
		if len(c.in) > 0 && (len(c.in) == 1 || c.op != OpAddN && c.op != OpConcat) {
			bad["one input less"] = c.in[:len(c.in)-1]
		}
		for i := range c.in {
			if anyType(c.op) && i == 0 {
				continue
			}
			other := slices.Clone(c.in)
			other[i].DType = Uint8
			if c.in[i].DType == Uint8 {
				other[i].DType = Bool
			}
			bad["type of input "+string(rune('0'+i))] = other
			if anyShape(c.op) || c.in[i].Shape == nil && (c.states == 0 || i < c.states) {
				continue
			}
			other = slices.Clone(c.in)
			other[i].Shape = append(Shape{11}, c.in[i].Shape...)
			if len(c.in) > 1 && (i > 0 || c.op != OpBiasAdd && c.op != OpLayerNorm) {
				bad["shape of input "+string(rune('0'+i))] = other
			}
		}
		for what, in := range bad {
			wrong := c
			wrong.in = in
			b, _, _ := applied(wrong, Float32, false)
			_, err := b.Build()
			if !errors.Is(err, ErrShape) {
				t.Errorf("%s, %s: error %v", c.op, what, err)
				continue
			}
			if msg := err.Error(); !strings.Contains(msg, "node "+string(c.op)) || !strings.Contains(msg, string(c.op)+"(") ||
				(len(in) > 0 && !strings.Contains(msg, in[0].Shape.String())) {
				t.Errorf("%s, %s: %q does not say where", c.op, what, msg)
			}
		}
	}
}

// anyType has the ops that take tensors of any type.
func anyType(op Op) bool {
	return slices.Contains([]Op{
		OpIdentity, OpStopGradient, OpReshape, OpBroadcastTo, OpShape, OpSwapOut, OpSwapIn, OpCast,
		OpTranspose, OpSplit, OpSlice, OpTile,
		OpGather, // of the table
	}, op)
}

// anyShape has the ops that take tensors of any shapes, or stretch them.
func anyShape(op Op) bool {
	return defs[op].Cost != nil && slices.Contains([]Op{
		OpEqual, OpGreater, OpGreaterEqual, OpLess, OpLogicalAnd, OpSelect,
		OpAdd, OpSub, OpMul, OpDiv, OpMaximum, OpMinimum, OpPow, OpSquaredDifference, OpGather,
	}, op)
}

func TestWrongAttributesAreErrors(t *testing.T) {
	for name, c := range map[string]opCase{
		"constant of a negative shape":   {op: OpConst, a: Attrs{Shape: Shape{-1}}},
		"constant of no type":            {op: OpConst, a: Attrs{DType: numDTypes}},
		"cast to no type":                {op: OpCast, a: Attrs{DType: 200}, in: r(x23)},
		"reshape to more":                {op: OpReshape, a: Attrs{Shape: Shape{7}}, in: r(x23)},
		"broadcast to less":              {op: OpBroadcastTo, a: Attrs{Shape: Shape{1}}, in: r(x23)},
		"batches differ":                 {op: OpBatchMatMul, in: r(Shape{2, 3, 4}, Shape{3, 4, 5})},
		"ranks differ":                   {op: OpBatchMatMul, in: r(Shape{2, 3, 4}, Shape{4, 5})},
		"matmul of batches":              {op: OpMatMul, in: r(Shape{2, 3, 4}, Shape{2, 4, 5})},
		"vectors":                        {op: OpBatchMatMul, in: r(Shape{3}, Shape{3})},
		"axis beyond":                    {op: OpSum, a: Attrs{Axes: []int64{2}}, in: r(x23)},
		"axis twice":                     {op: OpMean, a: Attrs{Axes: []int64{1, 1}}, in: r(x23)},
		"axis negative":                  {op: OpMax, a: Attrs{Axes: []int64{-1}}, in: r(x23)},
		"mean of integers":               {op: OpMean, in: specs(Int64, x23)},
		"sum of bools":                   {op: OpSum, in: specs(Bool, x23)},
		"all of numbers":                 {op: OpAll, in: r(x23)},
		"arg max of nothing":             {op: OpArgMax, in: r(Shape{2, 0})},
		"softmax of a scalar":            {op: OpSoftmax, in: r(nil)},
		"more than there are":            {op: OpTopK, a: Attrs{Value: 4}, in: r(x23)},
		"none of them":                   {op: OpTopK, a: Attrs{Value: 0.5}, in: r(x23)},
		"batch norm of vectors":          {op: OpFusedBatchNorm, in: r(x23, x3, x3, x3, x3)},
		"batch norm, epsilon":            {op: OpFusedBatchNorm, a: Attrs{Value: -1}, in: r(nhwc, c3, c3, c3, c3)},
		"batch norm, half statistics":    {op: OpFusedBatchNorm, in: specs(Float16, nhwc, c3, c3, c3, c3)},
		"batch norm, channels":           {op: OpFusedBatchNorm, in: r(nhwc, c3, c3, Shape{4}, c3)},
		"layer norm of a scalar":         {op: OpLayerNorm, in: r(nil, c3, c3)},
		"layer norm, half parameters":    {op: OpLayerNorm, in: specs(BFloat16, x23, x3, x3)},
		"all dropped":                    {op: OpDropout, a: Attrs{Value: 1}, in: r(x23)},
		"fewer than none dropped":        {op: OpDropoutGrad, a: Attrs{Value: -0.1}, in: []Spec{{float, x23}, {Uint8, x23}}},
		"random integers":                {op: OpRandomUniform, a: Attrs{DType: Int32, Shape: x23}},
		"transpose, too few":             {op: OpTranspose, a: Attrs{Axes: []int64{1}}, in: r(x23)},
		"transpose, none":                {op: OpTranspose, in: r(x23)},
		"transpose, twice":               {op: OpTranspose, a: Attrs{Axes: []int64{1, 1}}, in: r(x23)},
		"transpose, beyond":              {op: OpTranspose, a: Attrs{Axes: []int64{0, 2}}, in: r(x23)},
		"concat, no axis":                {op: OpConcat, in: r(x23, x23)},
		"concat, axis beyond":            {op: OpConcat, a: Attrs{Axes: []int64{2}}, in: r(x23, x23)},
		"concat of scalars":              {op: OpConcat, a: Attrs{Axes: []int64{0}}, in: r(nil, nil)},
		"split unevenly":                 {op: OpSplit, a: Attrs{Axes: []int64{1, 2}}, in: r(x23)},
		"split into none":                {op: OpSplit, a: Attrs{Axes: []int64{1, 0}}, in: r(x23)},
		"split nothing into very many":   {op: OpSplit, a: Attrs{Axes: []int64{0, 1 << 60}}, in: r(Shape{0})},
		"split into too many":            {op: OpSplit, a: Attrs{Axes: []int64{0, 1 << 20}}, in: r(Shape{1 << 20})},
		"a result too large":             {op: OpTile, a: Attrs{Axes: []int64{1 << 40, 1 << 40}}, in: r(x23)},
		"split, no count":                {op: OpSplit, a: Attrs{Axes: []int64{1}}, in: r(x23)},
		"slice beyond":                   {op: OpSlice, a: Attrs{Begin: []int64{0, 2}, Shape: Shape{2, 2}}, in: r(x23)},
		"slice far beyond":               {op: OpSlice, a: Attrs{Begin: []int64{0, 1 << 62}, Shape: Shape{2, 1 << 62}}, in: r(x23)},
		"slice from before":              {op: OpSlice, a: Attrs{Begin: []int64{0, -1}, Shape: Shape{2, 2}}, in: r(x23)},
		"slice, rank":                    {op: OpSlice, a: Attrs{Begin: []int64{0}, Shape: Shape{2}}, in: r(x23)},
		"pad less":                       {op: OpPad, a: Attrs{Begin: []int64{0, -1}, End: []int64{0, 0}}, in: r(x23)},
		"pad, rank":                      {op: OpPad, a: Attrs{Begin: []int64{0, 1}}, in: r(x23)},
		"tile, rank":                     {op: OpTile, a: Attrs{Axes: []int64{2}}, in: r(x23)},
		"tile, never":                    {op: OpTile, a: Attrs{Axes: []int64{2, 0}}, in: r(x23)},
		"gather by numbers":              {op: OpGather, in: r(x23, x3)},
		"gather from a scalar":           {op: OpGather, in: []Spec{{float, nil}, {Int32, x3}}},
		"segment sum, rows":              {op: OpUnsortedSegmentSum, a: Attrs{Shape: Shape{9, 4}}, in: []Spec{{float, x23}, {Int64, Shape{2}}}},
		"segment sum to a scalar":        {op: OpUnsortedSegmentSum, in: []Spec{{float, x23}, {Int64, Shape{2}}}},
		"one hot, rank":                  {op: OpOneHot, a: Attrs{Shape: Shape{2, 2}}, in: specs(Int64, x23)},
		"range, rank":                    {op: OpRange, a: Attrs{DType: Int64}},
		"range of bools":                 {op: OpRange, a: Attrs{DType: Bool, Shape: Shape{2}}},
		"range of a negative length":     {op: OpRange, a: Attrs{DType: Int64, Shape: Shape{-2}}},
		"lstm, gates":                    {op: OpLSTMCell, in: r(Shape{2, 9}, x23)},
		"lstm, states":                   {op: OpLSTMCellGrad, in: r(Shape{2, 12}, x23, x23, x23, Shape{2, 4})},
		"labels of other classes":        {op: OpXent, in: r(x23, Shape{2, 4})},
		"classes without end":            {op: OpSparseXent, in: []Spec{{float, Shape{2, 0}}, {Int32, Shape{2}}}},
		"decay above 1":                  {op: OpAssignMovingAverage, a: Attrs{Value: 1.5}, in: r(x23, x23), states: 1},
		"moving average of integers":     {op: OpAssignMovingAverage, in: specs(Int64, x23, x23), states: 1},
		"assign to a tensor":             {op: OpAssign, in: r(x23, x23)},
		"slot that is a tensor":          {op: OpApplyMomentum, in: r(x23, x23, nil, nil, x23), states: 1},
		"slot of another shape":          {op: OpApplyMomentum, in: r(x23, x3, nil, nil, x23), states: 2},
		"rate that is a vector":          {op: OpApplySGD, in: r(x23, x3, x23), states: 1},
		"gradient of another type":       {op: OpApplySGD, in: []Spec{{float, x23}, {float, nil}, {Float16, x23}}, states: 1},
		"guard that is missing":          {op: OpApplySGD, a: Attrs{Guarded: true}, in: r(x23, nil, x23), states: 1},
		"guard that is a vector":         {op: OpApplySGD, a: Attrs{Guarded: true}, in: append(r(x23, nil, x23), Spec{Bool, x3}), states: 1},
		"rows of another width":          {op: OpSparseApplySGD, in: append(r(x23, nil, Shape{5, 4}), Spec{Int64, Shape{5}}), states: 1},
		"rows of int32 indices":          {op: OpSparseApplySGD, in: append(r(x23, nil, Shape{5, 3}), Spec{Int32, Shape{5}}), states: 1},
		"rows of a scalar":               {op: OpSparseApplySGD, in: append(r(nil, nil, Shape{5}), Spec{Int64, Shape{5}}), states: 1},
		"integers that an optimizer has": {op: OpApplySGD, in: specs(Int64, x23, nil, x23), states: 1},
		"scale that never grows":         {op: OpUpdateLossScale, in: []Spec{{Float32, nil}, {Int64, nil}, {Bool, nil}}, states: 2},
		"counter that is a tensor":       {op: OpUpdateLossScale, a: Attrs{Value: 9}, in: []Spec{{Float32, nil}, {Int64, nil}, {Bool, nil}}, states: 1},
	} {
		b, _, _ := applied(c, Float32, false)
		if _, err := b.Build(); !errors.Is(err, ErrShape) {
			t.Errorf("%s: error %v", name, err)
		} else if msg := err.Error(); !strings.Contains(msg, string(c.op)) {
			t.Errorf("%s: %q does not name the op", name, msg)
		}
	}
}

// An op forwards only what it could: an output as large as the input and of
// its type, in at least one case.
func TestForwardableInputsFitTheOutput(t *testing.T) {
	for _, c := range opCases {
		d := defs[c.op]
		for _, i := range d.Forwardable {
			if i >= len(c.in) {
				t.Errorf("%s forwards input %d, has %d", c.op, i, len(c.in))
			}
		}
		if d.Alias && (len(c.in) != 1 || len(c.out) != 1 || c.in[0].Shape.Elements() != c.out[0].Shape.Elements()) {
			t.Errorf("%s: cannot give its input's buffer", c.op)
		}
	}
	for _, op := range []Op{OpCast, OpIsFinite, OpMatMul, OpConv2D, OpApplySGD, OpAssign, OpBroadcastTo} {
		if len(defs[op].Forwardable) > 0 {
			t.Errorf("%s works in place", op)
		}
	}
}

// Work and scratch are never negative, and every op that computes has some.
func TestEveryOpHasWork(t *testing.T) {
	for _, c := range opCases {
		b, _, _ := applied(c, Float32, false)
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		n := &p.Nodes[len(p.Nodes)-1]
		cost := p.Cost(n)
		free := defs[c.op].Alias || slices.Contains([]Op{OpConst, OpShape}, c.op)
		if free != (cost == Cost{}) || cost.FLOPs < 0 || cost.Bytes < 0 {
			t.Errorf("%s: work %+v", c.op, cost)
		}
		if w := defs[c.op].Workspace; w != nil && w(p, n) < 0 {
			t.Errorf("%s: workspace %d", c.op, w(p, n))
		}
	}
}
