package kernel_test

import (
	"math"
	"slices"
	"sort"

	"tideline/shared/program"
)

var (
	one     = [2]int64{1, 1}
	smeared = attrs{Strides: [2]int64{2, 1}, Padding: program.Same}
)

// opCases has every op at least once, with its answer worked out the slow way.
var opCases = slices.Concat(moveCases, unaryCases, binaryCases, reduceCases, productCases, netCases, stateCases)

var moveCases = []opCase{
	{op: program.OpVariable, want: func(r *ref) { clear(r.out[0]) }},
	{op: program.OpConst, at: attrs{DType: anyFloat, Shape: shape{3, 2}, Value: 0.3}, want: func(r *ref) {
		for i := range r.out[0] {
			r.out[0][i] = 0.3
		}
	}},
	{op: program.OpConst, at: attrs{DType: program.Int32, Shape: shape{3}, Value: -7}, only: true, want: func(r *ref) { copy(r.out[0], []float64{-7, -7, -7}) }},
	{op: program.OpConst, at: attrs{DType: program.Int64, Shape: shape{1}, Value: 1 << 40}, only: true, want: func(r *ref) { r.out[0][0] = 1 << 40 }},
	{op: program.OpConst, at: attrs{DType: program.Bool, Shape: shape{2}, Value: 3}, only: true, want: func(r *ref) { copy(r.out[0], []float64{1, 1}) }},
	{op: program.OpConst, at: attrs{DType: program.Uint8, Shape: shape{2}, Value: 200}, only: true, want: func(r *ref) { copy(r.out[0], []float64{200, 200}) }},
	{op: program.OpAssign, in: []arg{x(3, 2).kept(), x(3, 2)}, want: func(r *ref) { copy(r.in[0], r.in[1]) }},
	{op: program.OpIdentity, in: []arg{x(3, 2)}, want: same, ints: true},
	{op: program.OpStopGradient, in: []arg{x(3, 2)}, want: same},
	{op: program.OpReshape, at: attrs{Shape: shape{2, 3}}, in: []arg{x(3, 2)}, want: same},
	{op: program.OpSwapOut, in: []arg{x(5)}, want: same, ints: true},
	{op: program.OpSwapIn, in: []arg{x(5)}, want: same, ints: true},
	{op: program.OpBroadcastTo, at: attrs{Shape: shape{2, 3, 4, 2}}, in: []arg{x(3, 1, 2)}, want: map1(func(a float64) float64 { return a }), ints: true},
	{op: program.OpBroadcastTo, at: attrs{Shape: shape{3, 500}}, in: []arg{x(3, 1)}, want: map1(func(a float64) float64 { return a })},
	{op: program.OpBroadcastTo, at: attrs{Shape: shape{3, 4}}, in: []arg{flags()}, only: true, want: map1(func(a float64) float64 { return a })},
	{op: program.OpCast, at: attrs{DType: program.Float32}, in: []arg{x(700).of(-3, 300)}, want: same, slack: 1e6, ints: true},
	{op: program.OpCast, at: attrs{DType: program.Int32}, in: []arg{x(700).of(-300, 300)}, want: map1(math.Trunc), ints: true},
	{op: program.OpCast, at: attrs{DType: program.Bool}, in: []arg{x(700).of(-1, 1)}, want: map1(func(a float64) float64 { return yes(a != 0) }), ints: true},
	{op: program.OpRange, at: attrs{DType: anyFloat, Shape: shape{200}}, want: counting},
	{op: program.OpRange, at: attrs{DType: program.Int32, Shape: shape{400}}, only: true, want: counting},
	{op: program.OpRange, at: attrs{DType: program.Int64, Shape: shape{400}}, only: true, want: counting},
	{op: program.OpShape, in: []arg{x(3, 1, 2)}, want: func(r *ref) { copy(r.out[0], []float64{3, 1, 2}) }},
	{op: program.OpTranspose, at: attrs{Axes: []int64{2, 0, 1}}, in: []arg{x(3, 4, 5)}, want: func(r *ref) { transposed(r, 2, 0, 1) }, ints: true},
	{op: program.OpTranspose, at: attrs{Axes: []int64{0, 2, 1, 3}}, in: []arg{x(2, 3, 4, 5)}, want: func(r *ref) { transposed(r, 0, 2, 1, 3) }},
	{op: program.OpConcat, at: attrs{Axes: []int64{1}}, in: []arg{x(3, 2, 4), x(3, 1, 4), x(3, 5, 4)}, want: joined(1), ints: true},
	{op: program.OpConcat, at: attrs{Axes: []int64{0}}, in: []arg{x(3, 2), x(1, 2)}, want: joined(0)},
	{op: program.OpSplit, at: attrs{Axes: []int64{1, 3}}, in: []arg{x(2, 6, 4)}, want: func(r *ref) {
		for k, v := range r.in[0] {
			at := dims(r.is[0], k)
			part := at[1] / 2
			at[1] %= 2
			r.out[part][offset(r.os[part], at)] = v
		}
	}, ints: true},
	{op: program.OpSlice, at: attrs{Begin: []int64{1, 0, 2}, Shape: shape{2, 3, 2}}, in: []arg{x(4, 3, 5)}, want: func(r *ref) {
		for k := range r.out[0] {
			at := dims(r.os[0], k)
			at[0], at[2] = at[0]+1, at[2]+2
			r.out[0][k] = r.in[0][offset(r.is[0], at)]
		}
	}, ints: true},
	{op: program.OpPad, at: attrs{Begin: []int64{1, 0, 2}, End: []int64{0, 3, 1}}, in: []arg{x(2, 3, 2)}, want: func(r *ref) {
		for k, v := range r.in[0] {
			at := dims(r.is[0], k)
			at[0], at[2] = at[0]+1, at[2]+2
			r.out[0][offset(r.os[0], at)] = v
		}
	}, ints: true},
	{op: program.OpTile, at: attrs{Axes: []int64{2, 1, 3}}, in: []arg{x(2, 3, 2)}, want: func(r *ref) {
		for k := range r.out[0] {
			at := dims(r.os[0], k)
			for d, e := range r.is[0] {
				at[d] %= e
			}
			r.out[0][k] = r.in[0][offset(r.is[0], at)]
		}
	}, ints: true},
	{op: program.OpGather, in: []arg{x(7, 2, 3), index(7, 4, 2)}, want: func(r *ref) {
		for i, row := range r.in[1] {
			copy(r.out[0][i*6:][:6], r.in[0][int(row)*6:])
		}
	}, ints: true},
	{op: program.OpGather, in: []arg{x(7), index(7, 9).typed(program.Int32)}, want: func(r *ref) {
		for i, row := range r.in[1] {
			r.out[0][i] = r.in[0][int(row)]
		}
	}},
	{op: program.OpUnsortedSegmentSum, at: attrs{Shape: shape{5, 3}}, in: []arg{x(20, 3), x(20).of(-1, 5).typed(program.Int64)}, want: func(r *ref) {
		for i, row := range r.in[1] {
			for j := range 3 {
				if row >= 0 {
					r.out[0][int(row)*3+j] += r.in[0][i*3+j]
				}
			}
		}
	}, ints: true},
	{op: program.OpOneHot, at: attrs{DType: anyFloat, Shape: shape{4}}, in: []arg{x(3, 2).of(-1, 5).typed(program.Int64)}, want: func(r *ref) {
		for i, c := range r.in[0] {
			if c >= 0 && c < 4 {
				r.out[0][i*4+int(c)] = 1
			}
		}
	}},
}

func same(r *ref) { copy(r.out[0], r.in[0]) }

func counting(r *ref) {
	for i := range r.out[0] {
		r.out[0][i] = float64(i)
	}
}

func transposed(r *ref, axes ...int) {
	for k, v := range r.in[0] {
		from := dims(r.is[0], k)
		to := make([]int64, len(from))
		for i, a := range axes {
			to[i] = from[a]
		}
		r.out[0][offset(r.os[0], to)] = v
	}
}

func joined(axis int) func(*ref) {
	return func(r *ref) {
		start := int64(0)
		for i := range r.in {
			for k, v := range r.in[i] {
				at := dims(r.is[i], k)
				at[axis] += start
				r.out[0][offset(r.os[0], at)] = v
			}
			start += r.is[i][axis]
		}
	}
}

func unaryCase(op program.Op, low, hi float64, f func(a float64) float64) opCase {
	return opCase{op: op, in: []arg{x(3, 701).of(low, hi)}, want: map1(f), slack: 3}
}

func grad(op program.Op, in []arg, f func(a, b float64) float64) opCase {
	return opCase{op: op, in: in, want: map2(f), slack: 4}
}

func pair(low, hi float64) []arg { return []arg{x(3, 701).of(low, hi), x(3, 701)} }

var unaryCases = []opCase{
	unaryCase(program.OpTanh, -12, 12, math.Tanh),
	unaryCase(program.OpTanh, -0.02, 0.02, math.Tanh),
	unaryCase(program.OpRelu, -2, 2, func(a float64) float64 { return math.Max(a, 0) }),
	unaryCase(program.OpRelu6, -3, 9, func(a float64) float64 { return math.Min(math.Max(a, 0), 6) }),
	{op: program.OpLeakyRelu, at: attrs{Value: 0.25}, in: []arg{x(40)}, want: map1(func(a float64) float64 { return math.Max(a, a/4) })},
	unaryCase(program.OpSigmoid, -12, 12, sig),
	unaryCase(program.OpGelu, -4, 4, geluOf),
	unaryCase(program.OpExp, -3, 3, math.Exp),
	unaryCase(program.OpLog, 0.1, 9, math.Log),
	unaryCase(program.OpSqrt, 0, 9, math.Sqrt),
	unaryCase(program.OpRsqrt, 0.1, 9, func(a float64) float64 { return 1 / math.Sqrt(a) }),
	{op: program.OpSquare, in: []arg{x(40).of(-9, 9)}, want: map1(func(a float64) float64 { return a * a }), ints: true},
	{op: program.OpNeg, in: []arg{x(40).of(-9, 9)}, want: map1(func(a float64) float64 { return -a }), ints: true},
	{op: program.OpAbs, in: []arg{x(40).of(-9, 9)}, want: map1(math.Abs), ints: true},
	unaryCase(program.OpReciprocal, 0.2, 9, func(a float64) float64 { return 1 / a }),
	unaryCase(program.OpErf, -3, 3, math.Erf),
	{op: program.OpIsFinite, in: []arg{{shape: shape{6}, list: []float64{0, math.NaN(), 1, math.Inf(1), math.Inf(-1), -3}}}, want: map1(func(a float64) float64 { return yes(a-a == 0) })},
	{op: program.OpLogicalNot, in: []arg{flags(40)}, only: true, want: map1(func(a float64) float64 { return 1 - a })},

	// Gradients are those of the forward function, by differences.
	grad(program.OpTanhGrad, pair(-1, 1), func(y, dy float64) float64 { return dy * (1 - y*y) }),
	grad(program.OpSigmoidGrad, pair(0, 1), func(y, dy float64) float64 { return dy * y * (1 - y) }),
	grad(program.OpSqrtGrad, pair(0.5, 2), func(y, dy float64) float64 { return dy / (2 * y) }),
	grad(program.OpRsqrtGrad, pair(0.5, 2), func(y, dy float64) float64 { return -dy / 2 * y * y * y }),
	grad(program.OpReciprocalGrad, pair(0.5, 2), func(y, dy float64) float64 { return -dy * y * y }),
	grad(program.OpReluGrad, pair(-1, 1), func(dy, y float64) float64 { return dy * yes(y > 0) }),
	grad(program.OpRelu6Grad, []arg{x(60), x(60).of(-3, 9)}, func(dy, y float64) float64 { return dy * yes(y > 0 && y < 6) }),
	{op: program.OpLeakyReluGrad, at: attrs{Value: 0.25}, in: pair(-1, 1), want: map2(func(dy, y float64) float64 { return dy * (0.25 + 0.75*yes(y > 0)) })},
	{op: program.OpGeluGrad, in: pair(-1, 1), slack: 20, want: map2(func(dy, v float64) float64 { return dy * slope(geluOf, v) })},
}

func two(op program.Op, ints bool, low, hi float64, f func(a, b float64) float64) []opCase {
	return slices.Concat(oneShape(op, ints, low, hi, f), []opCase{
		{op: op, in: []arg{x(3, 700).of(low, hi), x().of(low, hi)}, want: map2(f), ints: ints, slack: 2},
		{op: op, in: []arg{x(3, 1).of(low, hi), x(3, 600).of(low, hi)}, want: map2(f), ints: ints, slack: 2},
		{op: op, in: []arg{x(2, 3, 4).of(low, hi), x(4).of(low, hi)}, want: map2(f), ints: ints, slack: 2},
		{op: op, in: []arg{x(2, 1, 4).of(low, hi), x(3, 1).of(low, hi)}, want: map2(f), ints: ints, slack: 2},
	})
}

func oneShape(op program.Op, ints bool, low, hi float64, f func(a, b float64) float64) []opCase {
	return []opCase{{op: op, in: []arg{x(3, 700).of(low, hi), x(3, 700).of(low, hi)}, want: map2(f), ints: ints, slack: 2}}
}

var binaryCases = slices.Concat(
	two(program.OpAdd, true, -9, 9, plus),
	two(program.OpSub, true, -9, 9, func(a, b float64) float64 { return a - b }),
	two(program.OpMul, true, -9, 9, func(a, b float64) float64 { return a * b }),
	two(program.OpDiv, false, 1, 9, func(a, b float64) float64 { return a / b }),
	two(program.OpMaximum, true, -9, 9, math.Max),
	two(program.OpMinimum, true, -9, 9, math.Min),
	two(program.OpPow, false, 0.5, 2, math.Pow),
	two(program.OpSquaredDifference, true, -9, 9, func(a, b float64) float64 { return (a - b) * (a - b) }),
	two(program.OpGreater, true, -9, 9, func(a, b float64) float64 { return yes(a > b) }),
	two(program.OpGreaterEqual, true, -9, 9, func(a, b float64) float64 { return yes(a >= b) }),
	two(program.OpLess, true, -9, 9, func(a, b float64) float64 { return yes(a < b) }),
	oneShape(program.OpEqual, true, -9, 9, func(a, b float64) float64 { return yes(a == b) }),
	[]opCase{
		{op: program.OpEqual, in: []arg{flags(50), flags(50)}, only: true, want: map2(func(a, b float64) float64 { return yes(a == b) })},
		{op: program.OpLogicalAnd, in: []arg{flags(50), flags(50)}, only: true, want: map2(func(a, b float64) float64 { return a * b })},
		{op: program.OpSelect, in: []arg{flags(3, 40), x(3, 40), x(3, 40)}, want: selects, ints: true},
		{op: program.OpSelect, in: []arg{flags(3, 1), x(), x(3, 40)}, want: selects},
		{op: program.OpAddN, in: []arg{x(50).of(-9, 9)}, want: added, ints: true},
		{op: program.OpAddN, in: []arg{x(50).of(-9, 9), x(50).of(-9, 9)}, want: added, ints: true},
		{op: program.OpAddN, in: []arg{x(50).of(-9, 9), x(50).of(-9, 9), x(50).of(-9, 9), x(50).of(-9, 9)}, want: added, ints: true, slack: 10},
	},
)

func selects(r *ref) {
	for k := range r.out[0] {
		if r.spread(0, k) != 0 {
			r.out[0][k] = r.spread(1, k)
		} else {
			r.out[0][k] = r.spread(2, k)
		}
	}
}

func added(r *ref) {
	for _, in := range r.in {
		for k, v := range in {
			r.out[0][k] += v
		}
	}
}

func axes(a ...int64) attrs { return attrs{Axes: a} }

func reductions(op program.Op, ints bool, want func(*ref)) []opCase {
	var out []opCase
	for _, at := range []attrs{{}, axes(0), axes(1), axes(2), axes(0, 1), axes(0, 2), axes(1, 2), {Axes: []int64{0, 2}, KeepDims: true}, {KeepDims: true}} {
		out = append(out, opCase{op: op, at: at, in: []arg{x(5, 3, 140).of(-9, 9)}, want: want, ints: ints, slack: 4})
	}
	return append(out, opCase{op: op, at: attrs{Axes: []int64{}}, in: []arg{x(5, 3)}, want: want}, opCase{op: op, in: []arg{x()}, want: want})
}

var reduceCases = slices.Concat(
	reductions(program.OpSum, true, foldTo(0, plus, asIs)),
	reductions(program.OpMean, false, foldTo(0, plus, func(acc float64, n int) float64 { return acc / float64(n) })),
	reductions(program.OpMax, true, foldTo(math.Inf(-1), math.Max, asIs)),
	[]opCase{
		{op: program.OpAll, in: []arg{flags(2, 3)}, only: true, want: foldTo(1, math.Min, asIs)},
		{op: program.OpAll, at: axes(0), in: []arg{flags(2, 40)}, only: true, want: foldTo(1, math.Min, asIs)},
		{op: program.OpArgMax, in: []arg{x(30, 7)}, want: func(r *ref) {
			rowsOf(r, func(row, _ int, x []float64) { r.out[0][row] = float64(slices.Index(x, slices.Max(x))) })
		}},
		{op: program.OpTopK, at: attrs{Value: 3}, in: []arg{x(30, 9)}, want: func(r *ref) {
			rowsOf(r, func(row, _ int, x []float64) {
				order := make([]int, len(x))
				for i := range order {
					order[i] = i
				}
				sort.SliceStable(order, func(i, j int) bool { return x[order[i]] > x[order[j]] })
				for i, at := range order[:3] {
					r.out[0][row*3+i], r.out[1][row*3+i] = x[at], float64(at)
				}
			})
		}},
		{op: program.OpL2Loss, in: []arg{x(30, 9)}, want: func(r *ref) {
			for _, v := range r.in[0] {
				r.out[0][0] += v * v / 2
			}
		}},
		{op: program.OpBiasAdd, in: []arg{x(2, 3, 5, 4), x(4)}, want: map2(plus)},
		{op: program.OpBiasAddGrad, in: []arg{x(7, 3, 150)}, slack: 4, want: func(r *ref) {
			for k, v := range r.in[0] {
				r.out[0][k%150] += v
			}
		}},
	},
)

// matrix multiplies with flags that turn the operands.
func multiplied(r *ref) {
	s, d := r.os[0], len(r.os[0])
	m, n := int(s[d-2]), int(s[d-1])
	k := len(r.in[0]) / (len(r.out[0]) / n)
	for o := range r.out[0] {
		batch, i, j := o/(m*n), o/n%m, o%n
		for l := range k {
			a, b := i*k+l, l*n+j
			if r.at.TransposeA {
				a = l*m + i
			}
			if r.at.TransposeB {
				b = j*k + l
			}
			r.out[0][o] += r.in[0][batch*m*k+a] * r.in[1][batch*k*n+b]
		}
	}
}

func products() (out []opCase) {
	for i := range 4 {
		at := attrs{TransposeA: i&1 != 0, TransposeB: i&2 != 0}
		turn := func(turned bool, lead []int64, a, b int64) arg {
			if turned {
				a, b = b, a
			}
			return x(append(slices.Clone(lead), a, b)...)
		}
		for _, d := range [][3]int64{{1, 1, 1}, {17, 5, 19}, {70, 200, 9}, {65, 3, 193}} {
			out = append(out, opCase{op: program.OpMatMul, at: at, slack: 10, in: []arg{turn(at.TransposeA, nil, d[0], d[1]), turn(at.TransposeB, nil, d[1], d[2])}, want: multiplied})
		}
		lead := []int64{2, 3}
		out = append(out, opCase{op: program.OpBatchMatMul, at: at, slack: 10, in: []arg{turn(at.TransposeA, lead, 7, 4), turn(at.TransposeB, lead, 4, 5)}, want: multiplied})
	}
	return out
}

func convolutionCases() (out []opCase) {
	for _, cv := range convolutions {
		at := cv.at
		image, filter := cv.image, cv.filter
		oh, _ := padding(image[1], filter[0], at.Strides[0], at.Padding)
		ow, _ := padding(image[2], filter[1], at.Strides[1], at.Padding)
		y := shape{image[0], oh, ow, filter[3]}
		toInput, toFilter := at, at
		toInput.Shape, toFilter.Shape = image, filter
		out = append(out,
			opCase{op: program.OpConv2D, at: at, in: []arg{x(image...), x(filter...)}, slack: 10, want: func(r *ref) {
				convOf(at, image, filter, y, func(img, fil, o int) { r.out[0][o] += r.in[0][img] * r.in[1][fil] })
			}},
			opCase{op: program.OpConv2DBackpropInput, at: toInput, in: []arg{x(filter...), x(y...)}, slack: 10, want: func(r *ref) {
				convOf(at, image, filter, y, func(img, fil, o int) { r.out[0][img] += r.in[1][o] * r.in[0][fil] })
			}},
			opCase{op: program.OpConv2DBackpropFilter, at: toFilter, in: []arg{x(image...), x(y...)}, slack: 10, want: func(r *ref) {
				convOf(at, image, filter, y, func(img, fil, o int) { r.out[0][fil] += r.in[0][img] * r.in[1][o] })
			}},
		)
	}
	return out
}

var productCases = slices.Concat(products(), convolutionCases())

var convolutions = []struct {
	image, filter shape
	at            attrs
}{
	{shape{3, 8, 7, 2}, shape{3, 3, 2, 5}, attrs{Strides: one}},
	{shape{3, 8, 7, 2}, shape{5, 5, 2, 4}, attrs{Strides: [2]int64{2, 3}, Padding: program.Same}},
	{shape{4, 5, 5, 6}, shape{1, 1, 6, 3}, attrs{Strides: [2]int64{2, 2}}},
	{shape{4, 5, 5, 6}, shape{1, 1, 6, 3}, attrs{Strides: one}},
	{shape{2, 4, 4, 3}, shape{4, 4, 3, 8}, attrs{Strides: one}},
}

func pools() (out []opCase) {
	for _, at := range []attrs{
		{Window: [2]int64{2, 3}, Strides: [2]int64{2, 3}},
		{Window: [2]int64{3, 3}, Strides: [2]int64{2, 1}, Padding: program.Same},
	} {
		image := shape{3, 6, 6, 2}
		oh, _ := padding(6, at.Window[0], at.Strides[0], at.Padding)
		ow, _ := padding(6, at.Window[1], at.Strides[1], at.Padding)
		y := shape{3, oh, ow, 2}
		each := func(f func(img, o int)) {
			windows(at, image, at.Window[0], at.Window[1], func(n, oh, ow, h, w, _, _ int64) {
				for c := range int64(2) {
					f(offset(image, []int64{n, h, w, c}), offset(y, []int64{n, oh, ow, c}))
				}
			})
		}
		counts := make([]float64, y.Elements())
		each(func(_, o int) { counts[o]++ })
		back := at
		back.Shape = image
		out = append(out,
			opCase{op: program.OpAvgPool, at: at, in: []arg{x(image...)}, slack: 4, want: func(r *ref) {
				each(func(img, o int) { r.out[0][o] += r.in[0][img] / counts[o] })
			}},
			opCase{op: program.OpAvgPoolGrad, at: back, in: []arg{x(y...)}, slack: 4, want: func(r *ref) {
				each(func(img, o int) { r.out[0][img] += r.in[0][o] / counts[o] })
			}},
			opCase{op: program.OpMaxPool, at: at, in: []arg{x(image...)}, want: func(r *ref) {
				for i := range r.out[0] {
					r.out[0][i] = math.Inf(-1)
				}
				each(func(img, o int) { r.out[0][o] = math.Max(r.out[0][o], r.in[0][img]) })
			}},
			// The output only lends its shape; what counts is where the input is
			// largest.
			opCase{op: program.OpMaxPoolGrad, at: at, in: []arg{x(image...), x(y...), x(y...)}, slack: 4, want: func(r *ref) {
				first := make([]int, y.Elements())
				for i := range first {
					first[i] = -1
				}
				each(func(img, o int) {
					if first[o] < 0 || r.in[0][img] > r.in[0][first[o]] {
						first[o] = img
					}
				})
				for o, img := range first {
					r.out[0][img] += r.in[2][o]
				}
			}},
		)
	}
	return out
}

const epsilon = 1e-3

// column calls f for every channel with its values.
func column(r *ref, i int, f func(c int, x []float64)) {
	n := int(r.is[i][len(r.is[i])-1])
	for c := range n {
		var x []float64
		for k := c; k < len(r.in[i]); k += n {
			x = append(x, r.in[i][k])
		}
		f(c, x)
	}
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, variance
}

func batchNorm(training bool) func(*ref) {
	return func(r *ref) {
		column(r, 0, func(c int, x []float64) {
			n := len(r.in[1])
			mean, variance := r.in[3][c], r.in[4][c]
			given := variance
			if training {
				mean, variance = moments(x)
				given = variance * float64(len(x)) / float64(len(x)-1)
			}
			inverse := 1 / math.Sqrt(variance+epsilon)
			for k, v := range x {
				r.out[0][k*n+c] = (v-mean)*inverse*r.in[1][c] + r.in[2][c]
			}
			r.out[1][c], r.out[2][c], r.out[3][c], r.out[4][c] = mean, given, mean, inverse
		})
	}
}

// batchNormGrad follows the definition: the Jacobian of the normalised values.
func batchNormGrad(training bool) func(*ref) {
	return func(r *ref) {
		c := len(r.in[2])
		column(r, 1, func(j int, x []float64) {
			mean, inverse, n := r.in[3][j], r.in[4][j], float64(len(x))
			for k, v := range x {
				r.out[1][j] += r.in[0][k*c+j] * (v - mean) * inverse
				r.out[2][j] += r.in[0][k*c+j]
			}
			for k, v := range x {
				for l, w := range x {
					d := yes(k == l)
					if training {
						d -= 1/n + (v-mean)*(w-mean)*inverse*inverse/n
					}
					r.out[0][k*c+j] += r.in[0][l*c+j] * r.in[2][j] * inverse * d
				}
			}
		})
	}
}

func layerNormGrad(r *ref) {
	n := len(r.in[2])
	for row := range r.in[3] {
		mean, inverse := r.in[3][row], r.in[4][row]
		normal := func(j int) float64 { return (r.in[1][row*n+j] - mean) * inverse }
		for j := range n {
			r.out[1][j] += r.in[0][row*n+j] * normal(j)
			r.out[2][j] += r.in[0][row*n+j]
			for l := range n {
				d := yes(j == l) - 1/float64(n) - normal(j)*normal(l)/float64(n)
				r.out[0][row*n+j] += r.in[0][row*n+l] * r.in[2][l] * inverse * d
			}
		}
	}
}

var netCases = slices.Concat(pools(), []opCase{
	{op: program.OpSoftmax, in: []arg{x(30, 9).of(-5, 5)}, slack: 2, want: func(r *ref) {
		rowsOf(r, func(_, at int, x []float64) { copy(r.out[0][at:], softmaxOf(x)) })
	}},
	{op: program.OpLogSoftmax, in: []arg{x(30, 9).of(-5, 5)}, slack: 2, want: func(r *ref) {
		rowsOf(r, func(_, at int, x []float64) {
			for i, v := range softmaxOf(x) {
				r.out[0][at+i] = math.Log(v)
			}
		})
	}},
	{op: program.OpSoftmaxGrad, in: []arg{x(30, 9).of(0, 1), x(30, 9)}, slack: 4, want: func(r *ref) {
		rowsOf(r, func(_, at int, y []float64) {
			for i := range y {
				for j := range y {
					r.out[0][at+i] += r.in[1][at+j] * y[j] * (yes(i == j) - y[i])
				}
			}
		})
	}},
	{op: program.OpFusedBatchNorm, at: attrs{Value: epsilon, Training: true}, slack: 20, in: []arg{x(3, 4, 5, 70).of(-3, 5), stat(70), stat(70), stat(70), stat(70)}, want: batchNorm(true)},
	{op: program.OpFusedBatchNorm, at: attrs{Value: epsilon}, slack: 20, in: []arg{x(3, 4, 5, 3).of(-3, 5), stat(3), stat(3), stat(3), stat(3)}, want: batchNorm(false)},
	{op: program.OpFusedBatchNormGrad, at: attrs{Value: epsilon, Training: true}, slack: 20, in: []arg{x(3, 4, 5, 70), x(3, 4, 5, 70), stat(70), stat(70), stat(70)}, want: batchNormGrad(true)},
	{op: program.OpFusedBatchNormGrad, at: attrs{Value: epsilon}, slack: 20, in: []arg{x(3, 4, 5, 3), x(3, 4, 5, 3), stat(3), stat(3), stat(3)}, want: batchNormGrad(false)},
	{op: program.OpLayerNorm, at: attrs{Value: epsilon}, slack: 20, in: []arg{x(6, 3, 90).of(-3, 5), stat(90), stat(90)}, want: func(r *ref) {
		rowsOf(r, func(row, at int, x []float64) {
			mean, variance := moments(x)
			inverse := 1 / math.Sqrt(variance+epsilon)
			for i, v := range x {
				r.out[0][at+i] = (v-mean)*inverse*r.in[1][i] + r.in[2][i]
			}
			r.out[1][row], r.out[2][row] = mean, inverse
		})
	}},
	{op: program.OpLayerNormGrad, slack: 20, in: []arg{x(6, 3, 90), x(6, 3, 90), stat(90), stat(6, 3), stat(6, 3)}, want: layerNormGrad},
	{op: program.OpDropoutGrad, at: attrs{Value: 0.5}, in: []arg{x(40), x(40).of(0, 2).typed(program.Uint8)}, want: map2(func(dy, keep float64) float64 { return dy * keep * 2 })},
	{op: program.OpLSTMCell, in: []arg{x(6, 20).of(-3, 3), x(6, 5).of(-2, 2)}, slack: 4, want: func(r *ref) {
		for k, was := range r.in[1] {
			row, j := k/5, k%5
			at := func(g int) int { return row*20 + g*5 + j }
			g := [4]float64{sig(r.in[0][at(0)]), math.Tanh(r.in[0][at(1)]), sig(r.in[0][at(2)]), sig(r.in[0][at(3)])}
			for i, v := range g {
				r.out[0][at(i)] = v
			}
			c := g[2]*was + g[0]*g[1]
			r.out[1][k], r.out[2][k] = c, g[3]*math.Tanh(c)
		}
	}},
	{op: program.OpLSTMCellGrad, in: []arg{x(6, 20).of(0, 1), x(6, 5), x(6, 5), x(6, 5), x(6, 5)}, slack: 10, want: func(r *ref) {
		for k, was := range r.in[1] {
			row, j := k/5, k%5
			at := func(g int) int { return row*20 + g*5 + j }
			i, g, f, o := r.in[0][at(0)], r.in[0][at(1)], r.in[0][at(2)], r.in[0][at(3)]
			t, dh := math.Tanh(r.in[2][k]), r.in[4][k]
			dc := r.in[3][k] + dh*o*(1-t*t)
			r.out[0][at(0)], r.out[0][at(1)] = dc*g*i*(1-i), dc*i*(1-g*g)
			r.out[0][at(2)], r.out[0][at(3)] = dc*was*f*(1-f), dh*t*o*(1-o)
			r.out[1][k] = dc * f
		}
	}},
	{op: program.OpSparseXent, in: []arg{x(30, 9).of(-5, 5), index(9, 30)}, slack: 4, want: func(r *ref) {
		rowsOf(r, func(row, at int, x []float64) {
			p := softmaxOf(x)
			label := int(r.in[1][row])
			r.out[0][row] = -math.Log(p[label])
			copy(r.out[1][at:], p)
			r.out[1][at+label]--
		})
	}},
	{op: program.OpXent, in: []arg{x(30, 9).of(-5, 5), x(30, 9).of(0, 1)}, slack: 20, want: func(r *ref) {
		rowsOf(r, func(row, at int, x []float64) {
			for i, p := range softmaxOf(x) {
				r.out[0][row] -= r.in[1][at+i] * math.Log(p)
				r.out[1][at+i] = p - r.in[1][at+i]
			}
		})
	}},
	{op: program.OpDropout, at: attrs{Value: 0}, in: []arg{x(40)}, want: func(r *ref) {
		copy(r.out[0], r.in[0])
		for i := range r.out[1] {
			r.out[1][i] = 1
		}
	}},
	// Its numbers have a test of their own; of 0 elements there is nothing to say.
	{op: program.OpRandomUniform, at: attrs{DType: anyFloat, Shape: shape{0}}, want: func(*ref) {}},
})

func stat(s ...int64) arg {
	a := x(s...).of(0.5, 1.5)
	a.wide = true
	return a
}

// optimizer is the case of a dense and of a sparse Apply op. step changes
// element k of the inputs by gradient g.
func optimizer(dense, sparse program.Op, at attrs, slots int, scalars []float64, step func(r *ref, k int, g float64)) []opCase {
	state := func() (in []arg) {
		for i := range 1 + slots {
			low := -1.0
			if i > 0 {
				low = 0.5
			}
			in = append(in, x(8, 3).of(low, 1).kept())
		}
		for _, v := range scalars {
			in = append(in, num(v))
		}
		return in
	}
	grad := 1 + slots + len(scalars)
	var out []opCase
	for _, guard := range []float64{-1, 0, 1} {
		at := at
		at.Guarded = guard >= 0
		var last []arg
		if at.Guarded {
			last = []arg{num(guard).typed(program.Bool)}
		}
		out = append(out, opCase{op: dense, at: at, slack: 20, in: slices.Concat(state(), []arg{x(8, 3)}, last), want: func(r *ref) {
			for k, g := range r.in[grad] {
				if guard != 0 {
					step(r, k, g)
				}
			}
		}})
		if sparse == "" {
			continue
		}
		rows := arg{shape: shape{5}, list: []float64{6, 0, 6, 3, 6}}.typed(program.Int64)
		out = append(out, opCase{op: sparse, at: at, slack: 20, in: slices.Concat(state(), []arg{x(5, 3), rows}, last), want: func(r *ref) {
			sums := map[int][]float64{}
			for i, row := range r.in[grad+1] {
				if sums[int(row)] == nil {
					sums[int(row)] = make([]float64, 3)
				}
				for j := range 3 {
					sums[int(row)][j] += r.in[grad][i*3+j]
				}
			}
			for row, sum := range sums {
				for j, g := range sum {
					if guard != 0 {
						step(r, row*3+j, g)
					}
				}
			}
		}})
	}
	return out
}

func adamStep(most bool) func(r *ref, k int, g float64) {
	return func(r *ref, k int, g float64) {
		s := 3
		if most {
			s = 4
		}
		w, m, v := r.in[0], r.in[1], r.in[2]
		p1, p2, rate, b1, b2, eps := r.in[s][0], r.in[s+1][0], r.in[s+2][0], r.in[s+3][0], r.in[s+4][0], r.in[s+5][0]
		m[k] = b1*m[k] + (1-b1)*g
		v[k] = b2*v[k] + (1-b2)*g*g
		root := v[k]
		if most {
			r.in[3][k] = math.Max(r.in[3][k], v[k])
			root = r.in[3][k]
		}
		w[k] = w[k]*(1-rate*r.at.Value) - rate*math.Sqrt(1-p2)/(1-p1)*m[k]/(math.Sqrt(root)+eps)
	}
}

var stateCases = slices.Concat(
	[]opCase{
		{op: program.OpAssignAdd, in: []arg{x(40).of(-9, 9).kept(), x(40).of(-9, 9)}, ints: true, want: func(r *ref) {
			for k, v := range r.in[1] {
				r.in[0][k] += v
			}
		}},
		{op: program.OpAssignSub, in: []arg{x(40).of(-9, 9).kept(), x(40).of(-9, 9)}, ints: true, want: func(r *ref) {
			for k, v := range r.in[1] {
				r.in[0][k] -= v
			}
		}},
		{op: program.OpAssignMovingAverage, at: attrs{Value: 0.9}, in: []arg{x(40).kept(), x(40)}, slack: 4, want: func(r *ref) {
			for k, v := range r.in[1] {
				r.in[0][k] = r.in[0][k]*0.9 + v*0.1
			}
		}},
		lossScale(1024, 5, 1, 1024, 6), lossScale(1024, 6, 1, 2048, 0), lossScale(1024, 6, 0, 512, 0), lossScale(1, 2, 0, 1, 0),
	},
	optimizer(program.OpApplySGD, program.OpSparseApplySGD, attrs{}, 0, []float64{0.1}, func(r *ref, k int, g float64) {
		r.in[0][k] -= r.in[1][0] * g
	}),
	optimizer(program.OpApplyMomentum, program.OpSparseApplyMomentum, attrs{}, 1, []float64{0.1, 0.9}, func(r *ref, k int, g float64) {
		r.in[1][k] = r.in[1][k]*r.in[3][0] + g
		r.in[0][k] -= r.in[2][0] * r.in[1][k]
	}),
	optimizer(program.OpApplyMomentum, program.OpSparseApplyMomentum, attrs{Nesterov: true}, 1, []float64{0.1, 0.9}, func(r *ref, k int, g float64) {
		r.in[1][k] = r.in[1][k]*r.in[3][0] + g
		r.in[0][k] -= r.in[2][0] * (g + r.in[3][0]*r.in[1][k])
	}),
	optimizer(program.OpApplyAdagrad, program.OpSparseApplyAdagrad, attrs{}, 1, []float64{0.1, 1e-3}, func(r *ref, k int, g float64) {
		r.in[1][k] += g * g
		r.in[0][k] -= r.in[2][0] * g / (math.Sqrt(r.in[1][k]) + r.in[3][0])
	}),
	optimizer(program.OpApplyRMSProp, "", attrs{}, 2, []float64{0.1, 0.9, 0.5, 1e-3}, func(r *ref, k int, g float64) {
		rate, rho, momentum, eps := r.in[3][0], r.in[4][0], r.in[5][0], r.in[6][0]
		r.in[1][k] = rho*r.in[1][k] + (1-rho)*g*g
		r.in[2][k] = momentum*r.in[2][k] + rate*g/math.Sqrt(r.in[1][k]+eps)
		r.in[0][k] -= r.in[2][k]
	}),
	optimizer(program.OpApplyCenteredRMSProp, "", attrs{}, 3, []float64{0.1, 0.9, 0.5, 0.5}, func(r *ref, k int, g float64) {
		rate, rho, momentum, eps := r.in[4][0], r.in[5][0], r.in[6][0], r.in[7][0]
		r.in[1][k] = rho*r.in[1][k] + (1-rho)*g
		r.in[2][k] = rho*r.in[2][k] + (1-rho)*g*g
		r.in[3][k] = momentum*r.in[3][k] + rate*g/math.Sqrt(r.in[2][k]-r.in[1][k]*r.in[1][k]+eps)
		r.in[0][k] -= r.in[3][k]
	}),
	optimizer(program.OpApplyAdam, program.OpSparseApplyAdam, attrs{}, 2, adamNumbers, adamStep(false)),
	optimizer(program.OpApplyAdam, program.OpSparseApplyAdam, attrs{Value: 0.05}, 2, adamNumbers, adamStep(false)),
	optimizer(program.OpApplyAMSGrad, "", attrs{}, 3, adamNumbers, adamStep(true)),
)

// The powers of beta1 and beta2 after the first step, the rate, the betas,
// epsilon.
var adamNumbers = []float64{0.5, 0.75, 0.1, 0.5, 0.75, 1e-2}

func lossScale(scale, good, finite, wantScale, wantGood float64) opCase {
	return opCase{op: program.OpUpdateLossScale, at: attrs{Value: 7}, only: true, in: []arg{
		num(scale).typed(program.Float32).kept(), num(good).typed(program.Int64).kept(), num(finite).typed(program.Bool),
	}, want: func(r *ref) { r.in[0][0], r.in[1][0] = wantScale, wantGood }}
}
