package kernel

import (
	"fmt"
	"math"

	"tideline/shared/program"
)

// sparseXent computes, per row, log(sum(exp(x))) - x[label] and
// softmax(x) - onehot(label), the latter possibly over the logits themselves.
func sparseXent(c *Call) error {
	logits, loss, back := c.in(0), c.out(0), c.out(1)
	classes := int(c.inValue(0).Shape[1])
	for r := range loss {
		label := c.label(r)
		if label < 0 || label >= int64(classes) {
			return fmt.Errorf("label %d of sample %d is outside of [0,%d)", label, r, classes)
		}
		x, g := logits[r*classes:][:classes], back[r*classes:][:classes]
		top := x[0]
		for _, v := range x {
			top = max(top, v)
		}
		at := float64(x[label] - top)
		var total float64
		for j, v := range x {
			e := math.Exp(float64(v - top))
			g[j] = float32(e)
			total += e
		}
		scale := float32(1 / total)
		for j := range g {
			g[j] *= scale
		}
		g[label]--
		loss[r] = float32(math.Log(total) - at)
	}
	return nil
}

// label is the class of sample r.
func (c *Call) label(r int) int64 {
	if v := c.inValue(1); v.DType == program.Int32 {
		return int64(view[int32](c.In[1], v)[r])
	}
	return elements[int64](c.In[1])[r]
}
