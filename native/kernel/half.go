package kernel

import (
	"math"

	"tideline/shared/program"
)

func isHalf(t program.DType) bool { return t == program.Float16 || t == program.BFloat16 }

// widen and round convert between halves in memory and float32; src and dst
// may not overlap.
func widen(dst []float32, src []uint16, t program.DType) {
	src = src[:len(dst)]
	if t == program.BFloat16 {
		for i, h := range src {
			dst[i] = math.Float32frombits(uint32(h) << 16)
		}
		return
	}
	for i, h := range src {
		dst[i] = fromFloat16(h)
	}
}

func round(dst []uint16, src []float32, t program.DType) {
	src = src[:len(dst)]
	if t == program.BFloat16 {
		for i, x := range src {
			dst[i] = toBFloat16(x)
		}
		return
	}
	for i, x := range src {
		dst[i] = toFloat16(x)
	}
}

// rounded is the half nearest to x.
func rounded(x float32, t program.DType) float32 {
	if t == program.BFloat16 {
		return math.Float32frombits(uint32(toBFloat16(x)) << 16)
	}
	return fromFloat16(toFloat16(x))
}

// toBFloat16 rounds to the nearest, ties to even; a NaN stays one.
func toBFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// fromFloat16 is exact: every float16 is a float32.
func fromFloat16(h uint16) float32 {
	sign, exp, frac := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch exp {
	case 0: // zero, or a multiple of 2^-24
		x := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// toFloat16 rounds to the nearest, ties to even, to infinity from 65520 on.
func toFloat16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, b := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case b > 0x7f800000: // NaN: what fits of its payload, and never infinity
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000: // 65520
		return sign | 0x7c00
	case b < 0x38800000: // 2^-14: below it the last place is worth 2^-24
		// Adding 0.5 makes the sum's last place worth 2^-24, rounded to even.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	return sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
}

// toOdd rounds a float64 to a float32 such that rounding it further gives what
// rounding the float64 at once would: towards zero, with the last bit set
// where anything was lost.
func toOdd(x float64) float32 {
	f := float32(x)
	if float64(f) == x || f != f {
		return f
	}
	b := math.Float32bits(f)
	if math.Abs(float64(f)) > math.Abs(x) {
		b-- // also from infinity to the largest number
	}
	return math.Float32frombits(b | 1)
}
