package kernel

import (
	"slices"

	"tideline/shared/program"
)

func sum(c *Call) error { return reduce(c, 1) }

func mean(c *Call) error {
	n := c.inValue(0).Shape.Elements() / max(1, c.outValue(0).Shape.Elements())
	return reduce(c, 1/float32(max(1, n)))
}

// reduce sums over the axes and scales. The whole sum is kept in double
// precision, because it may have millions of terms.
func reduce(c *Call, scale float32) error {
	x, out := c.in(0), c.out(0)
	if len(out) == 1 {
		var s float64
		for _, v := range x {
			s += float64(v)
		}
		out[0] = float32(s * float64(scale))
		return nil
	}
	var w walk
	shape := c.inValue(0).Shape
	if err := w.set(shape); err != nil {
		return err
	}
	w.keep(shape, c.Node.Attrs.Axes)
	clear(out)
	var i, unused int64
	for _, v := range x {
		out[i] += v
		w.next(&i, &unused)
	}
	for i := range out {
		out[i] *= scale
	}
	return nil
}

// keep makes tensor 0 the result of removing axes from s.
func (w *walk) keep(s program.Shape, axes []int64) {
	stride := int64(1)
	for d := len(s) - 1; d >= 0; d-- {
		if axes == nil || slices.Contains(axes, int64(d)) {
			continue
		}
		w.step[0][d] = stride
		stride *= s[d]
	}
}

// argMax gives the first of equal maxima.
func argMax(c *Call) error {
	x, shape := c.in(0), c.inValue(0).Shape
	out := view[int64](c.Out[0], c.outValue(0))
	n := int(shape[len(shape)-1])
	for r := range out {
		best := 0
		row := x[r*n : (r+1)*n]
		for j, v := range row {
			if v > row[best] {
				best = j
			}
		}
		out[r] = int64(best)
	}
	return nil
}
