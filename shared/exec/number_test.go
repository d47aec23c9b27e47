package exec

import (
	"math"
	"testing"

	"tideline/shared/program"
)

func TestEveryHalfIsReadAsItIsWritten(t *testing.T) {
	for h := range 1 << 16 {
		x := half(uint16(h))
		if math.IsNaN(x) {
			if back := half(toHalf(x)); !math.IsNaN(back) {
				t.Fatalf("%#04x, a NaN, is written as %v", h, back)
			}
			continue
		}
		if back := toHalf(x); int(back) != h {
			t.Fatalf("%#04x is %v, which is written as %#04x", h, x, back)
		}
		// Just above half the way to the next number rounds up, the middle to even.
		next := half(uint16(h + 1))
		if h&0x7fff >= 0x7bff || math.IsInf(next, 0) {
			continue
		}
		if got, want := toHalf((x+next)/2), h+h&1; int(got) != want {
			t.Fatalf("the middle of %#04x and the next is written as %#04x, want %#04x", h, got, want)
		}
	}
}

func TestNumbersOfEveryTypeAreReadAsWritten(t *testing.T) {
	for _, d := range []program.DType{
		program.Float32, program.Float64, program.Float16, program.BFloat16, program.Int32, program.Int64, program.Uint8, program.Bool,
	} {
		dst := make([]byte, 3*d.Size())
		for _, x := range []float64{0, 1, -2.5, 96, 3} {
			if x < 0 && !d.Float() || d == program.Bool && x > 1 {
				continue
			}
			FillConst(dst, d, x)
			for i := range 3 {
				if got, ok := number(d, dst[i*int(d.Size()):]); !ok || got != x {
					t.Errorf("%s: element %d is %v (%v), want %v", d, i, got, ok, x)
				}
			}
		}
	}
}
