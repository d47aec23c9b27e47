package kernel

import (
	"math"

	"tideline/shared/program"
)

// cast converts by the value: to an integer by cutting off the fraction, with
// what lies outside of its range at the nearer end and NaN at 0, so that all
// hosts agree; to a bool by asking whether it is not 0.
func cast(c *Call, from, to int) {
	switch t := c.inValue(0).DType; t {
	case program.Float32:
		castFrom(c, in[float32](c, 0), from, to)
	case program.Float64:
		castFrom(c, in[float64](c, 0), from, to)
	case program.Int32:
		castFrom(c, in[int32](c, 0), from, to)
	case program.Int64:
		castFrom(c, in[int64](c, 0), from, to)
	case program.Uint8, program.Bool:
		castFrom(c, in[uint8](c, 0), from, to)
	default:
		s := tiles.Get().(*tile)
		for x := in[uint16](c, 0); from < to; {
			n := min(to-from, tileSize)
			widen(s.a[:n], x[from:], t)
			castTo(c, s.a[:n], from)
			from += n
		}
		tiles.Put(s)
	}
}

func castFrom[F number](c *Call, x []F, from, to int) { castTo(c, x[from:to], from) }

// castTo writes x from element at of the output on.
func castTo[F number](c *Call, x []F, at int) {
	n := len(x)
	switch t := c.outValue(0).DType; t {
	case program.Float32:
		convert(out[float32](c, 0)[at:at+n], x)
	case program.Float64:
		convert(out[float64](c, 0)[at:at+n], x)
	case program.Int32:
		truncate(out[int32](c, 0)[at:at+n], x, math.MinInt32, math.MaxInt32)
	case program.Int64:
		truncate(out[int64](c, 0)[at:at+n], x, math.MinInt64, math.MaxInt64)
	case program.Uint8:
		truncate(out[uint8](c, 0)[at:at+n], x, 0, math.MaxUint8)
	case program.Bool:
		y := out[uint8](c, 0)[at : at+n]
		for i, e := range x {
			y[i] = truth(e != 0)
		}
	case program.Float16:
		y := out[uint16](c, 0)[at : at+n]
		for i, e := range x {
			y[i] = toFloat16(oddOf(e))
		}
	case program.BFloat16:
		y := out[uint16](c, 0)[at : at+n]
		for i, e := range x {
			y[i] = toBFloat16(oddOf(e))
		}
	}
}

// oddOf is a number as a float32 on its way to a half. An int64 that a float64
// does not hold is far beyond what the last place of a half could tell.
func oddOf[F number](x F) float32 { return toOdd(float64(x)) }

func convert[T float, F number](dst []T, src []F) {
	for i, x := range src {
		dst[i] = T(x)
	}
}

// truncate converts to an integer of the range [low,high].
func truncate[T int32 | int64 | uint8, F number](dst []T, src []F, low, high T) {
	var half F = 1
	if half /= 2; half == 0 { // an integer type
		for i, x := range src {
			v := int64(x)
			dst[i] = T(min(max(v, int64(low)), int64(high)))
		}
		return
	}
	for i, x := range src {
		switch v := float64(x); {
		case v != v:
			dst[i] = 0
		case v <= float64(low):
			dst[i] = low
		case v >= float64(high):
			dst[i] = high
		default:
			dst[i] = T(v)
		}
	}
}

func constant(c *Call, from, to int) {
	x := c.Node.Attrs.Value
	switch t := c.outValue(0).DType; t {
	case program.Float32:
		fill(out[float32](c, 0)[from:to], float32(x))
	case program.Float64:
		fill(out[float64](c, 0)[from:to], x)
	case program.Int32:
		fill(out[int32](c, 0)[from:to], int32(x))
	case program.Int64:
		fill(out[int64](c, 0)[from:to], int64(x))
	case program.Uint8:
		fill(out[uint8](c, 0)[from:to], uint8(x))
	case program.Bool:
		fill(out[uint8](c, 0)[from:to], truth(x != 0))
	case program.Float16:
		fill(out[uint16](c, 0)[from:to], toFloat16(toOdd(x)))
	case program.BFloat16:
		fill(out[uint16](c, 0)[from:to], toBFloat16(toOdd(x)))
	}
}

func ramp(c *Call, from, to int) {
	for i := from; i < to; i++ {
		switch c.outValue(0).DType {
		case program.Float32:
			out[float32](c, 0)[i] = float32(i)
		case program.Float64:
			out[float64](c, 0)[i] = float64(i)
		case program.Int32:
			out[int32](c, 0)[i] = int32(i)
		case program.Int64:
			out[int64](c, 0)[i] = int64(i)
		case program.Uint8, program.Bool:
			out[uint8](c, 0)[i] = uint8(i)
		case program.Float16:
			out[uint16](c, 0)[i] = toFloat16(float32(i))
		case program.BFloat16:
			out[uint16](c, 0)[i] = toBFloat16(float32(i))
		}
	}
}
