package kernel

import (
	"math"
	"slices"
)

// reduction is a tensor's dimensions told apart: those that stay, whose walk
// is over the results, and those that are summed over, whose walk is the same
// for each result. Tensor 0 of both walks is the input.
type reduction struct {
	kept, gone lanes
	terms      int // of each result
	columns    bool
}

// reductionOf looks at input 0 and Attrs.Axes.
func reductionOf(c *Call) reduction {
	var r reduction
	shape, axes := c.inValue(0).Shape, c.Node.Attrs.Axes
	r.terms = 1
	stride := 1
	add := func(l *lanes, extent int) {
		l.extent[l.rank], l.step[0][l.rank] = extent, stride
		l.rank++
	}
	for d, e := range slices.Backward(shape) {
		if axes == nil || slices.Contains(axes, int64(d)) {
			add(&r.gone, int(e))
			r.terms *= int(e)
		} else {
			add(&r.kept, int(e))
		}
		stride *= int(e)
	}
	for _, l := range []*lanes{&r.kept, &r.gone} {
		slices.Reverse(l.extent[:l.rank])
		slices.Reverse(l.step[0][:l.rank])
		l.collapse()
	}
	// Along rows of the input lie either terms of one result or one term each
	// of neighbouring results.
	r.columns = r.terms > 0 && (r.terms == 1 || r.gone.stride(0) != 1) && r.kept.stride(0) == 1
	return r
}

func sums[T float](c *Call, from, to int) { sumOf[T](c, 1, from, to) }

func means[T float](c *Call, from, to int) {
	n := c.inValue(0).Shape.Elements() / max(1, c.outValue(0).Shape.Elements())
	sumOf[T](c, 1/float64(max(1, n)), from, to)
}

// sumOf adds in double precision, because a sum may have millions of terms.
func sumOf[T float](c *Call, scale float64, from, to int) {
	x, y, r := in[T](c, 0), out[T](c, 0), reductionOf(c)
	r.kept.seek(from)
	var acc [128]float64
	for from < to {
		n := 1
		base := r.kept.pos[0]
		if r.columns {
			n = min(r.kept.left(), to-from, len(acc))
		}
		sum := acc[:n]
		clear(sum)
		r.gone.seek(0)
		for k := 0; k < r.terms; {
			run, at := r.gone.left(), base+r.gone.pos[0]
			if r.columns {
				for range run {
					for i, v := range x[at : at+n] {
						sum[i] += float64(v)
					}
					at += r.gone.stride(0)
				}
			} else {
				sum[0] += rowSum(x[at:], run, r.gone.stride(0))
			}
			r.gone.skip(run)
			k += run
		}
		for i, s := range sum {
			y[from+i] = T(s * scale)
		}
		r.kept.skip(n)
		from += n
	}
}

// rowSum adds n terms, four sums side by side where they lie together.
func rowSum[T float](x []T, n, stride int) float64 {
	var a, b, c, d float64
	if stride != 1 {
		for i := range n {
			a += float64(x[i*stride])
		}
		return a
	}
	x = x[:n]
	for ; len(x) >= 4; x = x[4:] {
		a += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// fold reduces by an operation that rounds nothing.
func fold[T number](c *Call, from, to int, first T, op func(a, b T) T) {
	x, y, r := in[T](c, 0), out[T](c, 0), reductionOf(c)
	r.kept.seek(from)
	for ; from < to; from++ {
		acc := first
		r.gone.seek(0)
		for k := 0; k < r.terms; {
			run, at := r.gone.left(), r.kept.pos[0]+r.gone.pos[0]
			for range run {
				acc = op(acc, x[at])
				at += r.gone.stride(0)
			}
			r.gone.skip(run)
			k += run
		}
		y[from] = acc
		r.kept.skip(1)
	}
}

func intSums[T int32 | int64](c *Call, from, to int) {
	fold(c, from, to, 0, func(a, b T) T { return a + b })
}

// maxOf of nothing is minus infinity.
func maxOf[T float](c *Call, from, to int) {
	fold(c, from, to, T(math.Inf(-1)), func(a, b T) T { return max(a, b) })
}

func maxInt32(c *Call, from, to int) {
	fold(c, from, to, math.MinInt32, func(a, b int32) int32 { return max(a, b) })
}

func maxInt64(c *Call, from, to int) {
	fold(c, from, to, math.MinInt64, func(a, b int64) int64 { return max(a, b) })
}

func all(c *Call, from, to int) {
	fold(c, from, to, 1, func(a, b uint8) uint8 { return truth(a != 0 && b != 0) })
}

func l2Loss[T float](c *Call, _, _ int) {
	var s float64
	for _, v := range in[T](c, 0) {
		s += float64(v) * float64(v)
	}
	out[T](c, 0)[0] = T(s / 2)
}

// biasAddGrad sums the columns of a matrix.
func biasAddGrad[T float](c *Call, from, to int) {
	dy, db := in[T](c, 0), out[T](c, 0)
	var acc [128]float64
	for width := len(db); from < to; {
		n := min(to-from, len(acc))
		sum := acc[:n]
		clear(sum)
		for r := from; r < len(dy); r += width {
			for i, v := range dy[r : r+n] {
				sum[i] += float64(v)
			}
		}
		for i, s := range sum {
			db[from+i] = T(s)
		}
		from += n
	}
}

// biasAdd goes row by row.
func biasAdd[T float](c *Call, from, to int) {
	x, bias, y := in[T](c, 0), in[T](c, 1), out[T](c, 0)
	for n := len(bias); from < to; from++ {
		adds(y[from*n:][:n], x[from*n:][:n], bias, 0)
	}
}

// argMax gives the first of equal maxima; the first NaN counts as the largest.
func argMax[T float](c *Call, from, to int) {
	n, y := inLast(c), out[int64](c, 0)
	for r := from; r < to; r++ {
		y[r] = int64(largest(in[T](c, 0)[r*n:][:n]))
	}
}

func largest[T float](row []T) int {
	best := 0
	for j, v := range row {
		if isNaN(v) {
			return j
		}
		if v > row[best] {
			best = j
		}
	}
	return best
}

// topK selects by insertion, which is quick for the few that are asked for.
// Of equal numbers the first goes first, and a NaN before all numbers.
func topK[T float](c *Call, from, to int) {
	n, k := inLast(c), last(c.outValue(0))
	if k == 0 {
		return
	}
	for r := from; r < to; r++ {
		row := in[T](c, 0)[r*n:][:n]
		top, at := out[T](c, 0)[r*k:][:0], out[int32](c, 1)[r*k:][:0]
		for j, v := range row {
			if len(top) == k && !above(v, top[k-1]) {
				continue
			}
			if len(top) < k {
				top, at = top[:len(top)+1], at[:len(at)+1]
			}
			i := len(top) - 1
			for ; i > 0 && above(v, top[i-1]); i-- {
				top[i], at[i] = top[i-1], at[i-1]
			}
			top[i], at[i] = v, int32(j)
		}
	}
}

// above orders numbers with NaN as the largest.
func above[T float](a, b T) bool { return a > b || isNaN(a) && !isNaN(b) }

func isNaN[T float](v T) bool { return math.IsNaN(float64(v)) }
