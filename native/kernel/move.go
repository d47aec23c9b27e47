package kernel

import (
	"fmt"
	"unsafe"

	"tideline/shared/program"
)

func constant(c *Call) error {
	x := c.Node.Attrs.Value
	switch v := c.outValue(0); v.DType {
	case program.Float32:
		fill(view[float32](c.Out[0], v), float32(x))
	case program.Float64:
		fill(view[float64](c.Out[0], v), x)
	case program.Int32:
		fill(view[int32](c.Out[0], v), int32(x))
	case program.Int64:
		fill(view[int64](c.Out[0], v), int64(x))
	case program.Uint8, program.Bool:
		fill(view[uint8](c.Out[0], v), uint8(x))
	default:
		return fmt.Errorf("no kernel for %s", v.DType)
	}
	return nil
}

func fill[T number](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

func assign(c *Call) error {
	n := c.inValue(0).Bytes()
	copy(c.In[0][:n], c.In[1][:n])
	return nil
}

// alias has nothing to do where executors share the buffer, as they should.
func alias(c *Call) error {
	if unsafe.SliceData(c.Out[0]) != unsafe.SliceData(c.In[0]) {
		copy(c.Out[0][:c.outValue(0).Bytes()], c.In[0])
	}
	return nil
}

func equal(c *Call) error {
	out := view[uint8](c.Out[0], c.outValue(0))
	switch v := c.inValue(0); v.DType {
	case program.Float32:
		compare(out, view[float32](c.In[0], v), view[float32](c.In[1], v))
	case program.Float64:
		compare(out, view[float64](c.In[0], v), view[float64](c.In[1], v))
	case program.Int32:
		compare(out, view[int32](c.In[0], v), view[int32](c.In[1], v))
	case program.Int64:
		compare(out, view[int64](c.In[0], v), view[int64](c.In[1], v))
	case program.Uint8, program.Bool:
		compare(out, view[uint8](c.In[0], v), view[uint8](c.In[1], v))
	default:
		return fmt.Errorf("no kernel for %s", v.DType)
	}
	return nil
}

func compare[T number](out []uint8, a, b []T) {
	for i := range out {
		out[i] = 0
		if a[i] == b[i] {
			out[i] = 1
		}
	}
}

func cast(c *Call) error {
	switch v := c.inValue(0); v.DType {
	case program.Float32:
		return castFrom(c, view[float32](c.In[0], v))
	case program.Float64:
		return castFrom(c, view[float64](c.In[0], v))
	case program.Int32:
		return castFrom(c, view[int32](c.In[0], v))
	case program.Int64:
		return castFrom(c, view[int64](c.In[0], v))
	case program.Uint8, program.Bool:
		return castFrom(c, view[uint8](c.In[0], v))
	default:
		return fmt.Errorf("no kernel from %s", v.DType)
	}
}

func castFrom[F number](c *Call, x []F) error {
	switch v := c.outValue(0); v.DType {
	case program.Float32:
		convert(view[float32](c.Out[0], v), x)
	case program.Float64:
		convert(view[float64](c.Out[0], v), x)
	case program.Int32:
		convert(view[int32](c.Out[0], v), x)
	case program.Int64:
		convert(view[int64](c.Out[0], v), x)
	case program.Uint8:
		convert(view[uint8](c.Out[0], v), x)
	case program.Bool:
		for i, e := range x {
			c.Out[0][i] = 0
			if e != 0 {
				c.Out[0][i] = 1
			}
		}
	default:
		return fmt.Errorf("no kernel to %s", v.DType)
	}
	return nil
}

func convert[T, F number](dst []T, src []F) {
	for i, x := range src {
		dst[i] = T(x)
	}
}
