package kernel

import (
	"fmt"
	"math"
)

// softmax goes row by row; the largest number is subtracted first, so that no
// exponential overflows.
func softmax[T float](c *Call, from, to int) {
	n := inLast(c)
	for r := from; r < to; r++ {
		x, y := in[T](c, 0)[r*n:][:n], out[T](c, 0)[r*n:][:n]
		top, total := T(math.Inf(-1)), 0.0
		for _, v := range x {
			top = max(top, v)
		}
		for j, v := range x {
			e := math.Exp(float64(v - top))
			y[j] = T(e)
			total += e
		}
		scale := T(1 / total)
		for j := range y {
			y[j] *= scale
		}
	}
}

func logSoftmax[T float](c *Call, from, to int) {
	n := inLast(c)
	for r := from; r < to; r++ {
		x, y := in[T](c, 0)[r*n:][:n], out[T](c, 0)[r*n:][:n]
		top, total := T(math.Inf(-1)), 0.0
		for _, v := range x {
			top = max(top, v)
		}
		for _, v := range x {
			total += math.Exp(float64(v - top))
		}
		rest := math.Log(total)
		for j, v := range x {
			y[j] = T(float64(v-top) - rest)
		}
	}
}

// softmaxGrad is y*(dy - sum(y*dy)).
func softmaxGrad[T float](c *Call, from, to int) {
	n := inLast(c)
	for r := from; r < to; r++ {
		y, dy, dx := in[T](c, 0)[r*n:][:n], in[T](c, 1)[r*n:][:n], out[T](c, 0)[r*n:][:n]
		var s float64
		for j, v := range y {
			s += float64(v) * float64(dy[j])
		}
		for j, v := range y {
			dx[j] = v * (dy[j] - T(s))
		}
	}
}

// checkLabels refuses a label that is no class.
func checkLabels(c *Call) error {
	classes := int64(inLast(c))
	for r := range int(c.inValue(1).Shape.Elements()) {
		if l := c.index(1, r); l < 0 || l >= classes {
			return fmt.Errorf("label %d of sample %d is outside of [0,%d)", l, r, classes)
		}
	}
	return nil
}

// sparseXent computes, per row, log(sum(exp(x))) - x[label] and
// softmax(x) - onehot(label), the latter possibly over the logits themselves.
func sparseXent[T float](c *Call, from, to int) {
	n := inLast(c)
	for r := from; r < to; r++ {
		x, g := in[T](c, 0)[r*n:][:n], out[T](c, 1)[r*n:][:n]
		label := c.index(1, r)
		top, total := T(math.Inf(-1)), 0.0
		for _, v := range x {
			top = max(top, v)
		}
		at := float64(x[label] - top)
		for j, v := range x {
			e := math.Exp(float64(v - top))
			g[j] = T(e)
			total += e
		}
		scale := T(1 / total)
		for j := range g {
			g[j] *= scale
		}
		g[label]--
		out[T](c, 0)[r] = T(math.Log(total) - at)
	}
}

// xent computes, per row, sum(p*(log(sum(exp(x))) - x)) and softmax(x) - p.
func xent[T float](c *Call, from, to int) {
	n := inLast(c)
	for r := from; r < to; r++ {
		x, p, g := in[T](c, 0)[r*n:][:n], in[T](c, 1)[r*n:][:n], out[T](c, 1)[r*n:][:n]
		top, total, mass, at := T(math.Inf(-1)), 0.0, 0.0, 0.0
		for _, v := range x {
			top = max(top, v)
		}
		for j, v := range x {
			total += math.Exp(float64(v - top))
			mass += float64(p[j])
			if p[j] != 0 { // so that an impossible class, of logit -Inf, costs nothing
				at += float64(p[j]) * float64(v-top)
			}
		}
		for j, v := range x {
			g[j] = T(math.Exp(float64(v-top))/total) - p[j]
		}
		out[T](c, 0)[r] = T(mass*math.Log(total) - at)
	}
}
