package kernel

import (
	"errors"
	"fmt"
	"math"

	"tideline/shared/program"
)

// ErrNotFinite is wrapped by the error of a call with CheckNumerics that wrote
// a NaN or an infinity.
var ErrNotFinite = errors.New("not a finite number")

// checkNumerics looks at all that the call wrote.
func (c *Call) checkNumerics() error {
	for i := range c.entry.writes {
		v := c.inValue(i)
		if at, x, found := notFinite(c.In[i], v); found {
			return fmt.Errorf("node %s: %s: variable %s: element %d of %s%s is %v: %w",
				c.Node.Name, c.Node.Op, v.Name, at, v.DType, v.Shape, x, ErrNotFinite)
		}
	}
	for i := range c.Out {
		v := c.outValue(i)
		if at, x, found := notFinite(c.Out[i], v); found {
			return fmt.Errorf("node %s: %s: output %d: element %d of %s%s is %v: %w",
				c.Node.Name, c.Node.Op, i, at, v.DType, v.Shape, x, ErrNotFinite)
		}
	}
	return nil
}

// notFinite finds the first element of v that is no finite number.
func notFinite(b []byte, v *program.Value) (at int, x float64, found bool) {
	n := v.Shape.Elements()
	switch v.DType {
	case program.Float32:
		at = firstNotFinite(elements[float32](b)[:n])
		if at >= 0 {
			x = float64(elements[float32](b)[at])
		}
	case program.Float64:
		at = firstNotFinite(elements[float64](b)[:n])
		if at >= 0 {
			x = elements[float64](b)[at]
		}
	case program.Float16, program.BFloat16:
		at = -1
		ones := halfExponent(v.DType)
		for i, h := range elements[uint16](b)[:n] {
			if h&ones == ones {
				at = i
				var w [1]float32
				widen(w[:], elements[uint16](b)[i:], v.DType)
				x = float64(w[0])
				break
			}
		}
	default:
		return 0, 0, false
	}
	return at, x, at >= 0
}

// finite says no to infinities, which are all that is beyond the largest
// number, and to NaN, which is not below anything.
func finite[T float](v T) bool { return math.Abs(float64(v)) <= math.MaxFloat64 }

func firstNotFinite[T float](x []T) int {
	for i, v := range x {
		if !finite(v) {
			return i
		}
	}
	return -1
}
