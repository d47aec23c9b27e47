package kernel

import "tideline/shared/program"

// updateLossScale doubles the scale after Attrs.Value good steps in a row and
// halves it after a bad one, not below 1. The counter is a variable of any
// type.
func updateLossScale(c *Call, _, _ int) {
	scale, good := c.scalar(0), c.scalar(1)+1
	switch {
	case c.In[2][0] == 0:
		scale, good = max(1, scale/2), 0
	case good >= c.Node.Attrs.Value:
		scale, good = scale*2, 0
	}
	c.setScalar(0, scale)
	c.setScalar(1, good)
}

// scalar and setScalar access the first element of input i.
func (c *Call) scalar(i int) float64 {
	switch t := c.inValue(i).DType; t {
	case program.Float32:
		return float64(in[float32](c, i)[0])
	case program.Float64:
		return in[float64](c, i)[0]
	case program.Int32:
		return float64(in[int32](c, i)[0])
	case program.Int64:
		return float64(in[int64](c, i)[0])
	case program.Float16, program.BFloat16:
		var x [1]float32
		widen(x[:], in[uint16](c, i), t)
		return float64(x[0])
	default:
		return float64(in[uint8](c, i)[0])
	}
}

func (c *Call) setScalar(i int, x float64) {
	switch t := c.inValue(i).DType; t {
	case program.Float32:
		in[float32](c, i)[0] = float32(x)
	case program.Float64:
		in[float64](c, i)[0] = x
	case program.Int32:
		in[int32](c, i)[0] = int32(x)
	case program.Int64:
		in[int64](c, i)[0] = int64(x)
	case program.Float16, program.BFloat16:
		round(in[uint16](c, i)[:1], []float32{toOdd(x)}, t)
	default:
		in[uint8](c, i)[0] = uint8(x)
	}
}
