package exec

import (
	"math"

	"tideline/shared/program"
)

// FillConst writes x into every element of dst, little-endian, in the type's
// own format, rounded to nearest.
func FillConst(dst []byte, d program.DType, x float64) {
	n := int(d.Size())
	if len(dst) < n {
		return
	}
	put(dst[:n], d, []float64{x})
	for done := n; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// put writes numbers, as many as fit.
func put[T float32 | float64](dst []byte, d program.DType, src []T) {
	n := int(d.Size())
	for _, v := range src {
		if len(dst) < n {
			return
		}
		x := float64(v)
		switch d {
		case program.Float32:
			put32(dst, math.Float32bits(float32(x)))
		case program.Float64:
			put64(dst, math.Float64bits(x))
		case program.Float16:
			put16(dst, toHalf(x))
		case program.BFloat16:
			put16(dst, toBrain(x))
		case program.Int32:
			put32(dst, uint32(int32(x)))
		case program.Int64:
			put64(dst, uint64(int64(x)))
		case program.Uint8:
			dst[0] = uint8(int64(x))
		case program.Bool:
			dst[0] = 0
			if x != 0 {
				dst[0] = 1
			}
		default:
		}
		dst = dst[n:]
	}
}

// toBrain rounds to bfloat16, the upper half of a float32, ties to even.
func toBrain(x float64) uint16 {
	b := math.Float32bits(float32(x))
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40 // a NaN stays one
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toHalf rounds to IEEE 754 binary16, ties to even.
func toHalf(x float64) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign, x = 0x8000, -x
	}
	switch {
	case math.IsNaN(x):
		return sign | 0x7e00
	case x >= 65520:
		return sign | 0x7c00
	case x < 0x1p-14:
		return sign | uint16(math.RoundToEven(x*0x1p24)) // a carry makes it the smallest normal number
	}
	fraction, exponent := math.Frexp(x) // in [0.5,1)
	return sign | uint16(int(math.RoundToEven(fraction*2048))-1024+(exponent+14)<<10)
}

func put16(b []byte, v uint16) { b[0], b[1] = byte(v), byte(v>>8) }

func put32(b []byte, v uint32) {
	b[0], b[1], b[2], b[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func put64(b []byte, v uint64) {
	put32(b, uint32(v))
	put32(b[4:], uint32(v>>32))
}

func get32(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// number reads a scalar, little-endian.
func number(d program.DType, b []byte) (float64, bool) {
	if int64(len(b)) < d.Size() {
		return 0, false
	}
	switch d {
	case program.Float32:
		return float64(math.Float32frombits(get32(b))), true
	case program.Float64:
		return math.Float64frombits(uint64(get32(b)) | uint64(get32(b[4:]))<<32), true
	case program.BFloat16:
		return float64(math.Float32frombits(uint32(b[0])<<16 | uint32(b[1])<<24)), true
	case program.Float16:
		return half(uint16(b[0]) | uint16(b[1])<<8), true
	case program.Int32:
		return float64(int32(get32(b))), true
	case program.Int64:
		return float64(int64(uint64(get32(b)) | uint64(get32(b[4:]))<<32)), true
	case program.Uint8, program.Bool:
		return float64(b[0]), true
	default:
		return 0, false
	}
}

// half is the value of an IEEE 754 binary16.
func half(h uint16) float64 {
	mantissa, exponent := float64(h&0x3ff), int(h>>10&0x1f)
	var x float64
	switch exponent {
	case 0:
		x = math.Ldexp(mantissa, -24)
	case 31:
		if x = math.Inf(1); mantissa != 0 {
			return math.NaN()
		}
	default:
		x = math.Ldexp(1024+mantissa, exponent-25)
	}
	if h>>15 != 0 {
		return -x
	}
	return x
}
