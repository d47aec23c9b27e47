package runtime

import (
	"math"

	"tideline/shared/program"
)

// appendAttrs writes every attribute but the variables, which follow from the
// inputs. A test holds it against the fields that there are.
func appendAttrs(b []byte, a *program.Attrs) []byte {
	b = append(b, byte(a.DType), byte(a.Padding), flags(a.TransposeA, a.TransposeB, a.KeepDims, a.Training, a.Nesterov, a.Guarded))
	for _, n := range [...]int64{a.Strides[0], a.Strides[1], a.Window[0], a.Window[1], int64(math.Float64bits(a.Value)), a.Seed} {
		b = appendInt(b, n)
	}
	b = appendInts(b, a.Axes)
	b = appendInts(b, a.Begin)
	b = appendInts(b, a.End)
	return appendInts(b, a.Shape)
}

func flags(bits ...bool) byte {
	var f byte
	for i, on := range bits {
		if on {
			f |= 1 << i
		}
	}
	return f
}
