package lower

import (
	"fmt"
	"slices"

	"tideline/shared/program"
)

// elementwise is for kernels that take inputs of the output's shape.
func elementwise(name string, inputs int) fn {
	return func(l *Lowering) {
		v := l.outValue(0)
		if !l.floats(v) {
			return
		}
		var args [4]uint64
		for i := range inputs {
			args[i] = l.in(i)
		}
		args[inputs] = l.out1(0)
		n := v.Shape.Elements()
		args[inputs+1] = l.count(n)
		l.launch(name, n, args[:inputs+2]...)
	}
}

// maxRank is how many dimensions a kernel walks, after those that can be walked
// as one have been joined.
const maxRank = 4

// walk is a shape with the steps of two tensors along each dimension.
type walk struct {
	extent []int64
	step   [2][]int64
}

// newWalk lays inputs over a shape, aligned at the last dimension, with a step
// of 0 where an input repeats.
func newWalk(out program.Shape, in ...program.Shape) walk {
	w := walk{extent: append([]int64(nil), out...)}
	for t, s := range in {
		w.step[t] = make([]int64, len(out))
		stride := int64(1)
		for d, v := range slices.Backward(s) {
			if v != 1 {
				w.step[t][len(out)-len(s)+d] = stride
			}
			stride *= v
		}
	}
	return w
}

// join makes neighbouring dimensions one where every tensor moves along both
// as along one, and drops those of extent 1.
func (w *walk) join(tensors int) {
	var extent []int64
	var step [2][]int64
	for d, e := range w.extent {
		if e == 1 {
			continue
		}
		last := len(extent) - 1
		one := last >= 0
		for t := range tensors {
			one = one && step[t][last] == w.step[t][d]*e
		}
		if one {
			extent[last] *= e
			for t := range tensors {
				step[t][last] = w.step[t][d]
			}
			continue
		}
		extent = append(extent, e)
		for t := range tensors {
			step[t] = append(step[t], w.step[t][d])
		}
	}
	w.extent, w.step = extent, step
}

// args are the arguments of a kernel that walks: the last three extents, and
// four steps a tensor.
func (l *Lowering) walkArgs(dst []uint64, w *walk, tensors int) []uint64 {
	w.join(tensors)
	pad := maxRank - len(w.extent)
	if pad < 0 {
		l.fail(fmt.Errorf("%w that broadcasts over %d separate dimensions, at most %d", ErrNoKernel, len(w.extent), maxRank))
		return dst
	}
	for d := 1; d < maxRank; d++ {
		if d < pad {
			dst = append(dst, 1)
		} else {
			dst = append(dst, uint64(w.extent[d-pad]))
		}
	}
	for t := range tensors {
		for d := range maxRank {
			if d < pad {
				dst = append(dst, 0)
			} else {
				dst = append(dst, uint64(w.step[t][d-pad]))
			}
		}
	}
	return dst
}

func broadcast(name string) fn {
	return func(l *Lowering) { l.binary(name, l.inValue(0).Shape, l.inValue(1).Shape) }
}

func (l *Lowering) binary(name string, a, b program.Shape) {
	v := l.outValue(0)
	if !l.floats(v) {
		return
	}
	n := v.Shape.Elements()
	args := []uint64{l.in(0), l.in(1), l.out1(0), l.count(n)}
	if a.Elements() == n && b.Elements() == n {
		l.launch(name, n, args...)
		return
	}
	w := newWalk(v.Shape, a, b)
	l.launch(name+"_b", n, l.walkArgs(args, &w, 2)...)
}

func (l *Lowering) biasAdd() { l.binary("tl_add", l.inValue(0).Shape, l.inValue(1).Shape) }

func (l *Lowering) expand() {
	v := l.outValue(0)
	if !l.floats(v) {
		return
	}
	n := v.Shape.Elements()
	w := newWalk(v.Shape, l.inValue(0).Shape)
	l.launch("tl_expand", n, l.walkArgs([]uint64{l.in(0), l.out1(0), l.count(n)}, &w, 1)...)
}

// addN adds one input after the other, the first being the only one that the
// output may lie on.
func (l *Lowering) addN() {
	v := l.outValue(0)
	if !l.floats(v) {
		return
	}
	n, out := v.Shape.Elements(), l.out1(0)
	if len(l.k.In) == 1 {
		l.move(out, l.in(0), v.Bytes())
		return
	}
	l.launch("tl_add", n, l.in(0), l.in(1), out, l.count(n))
	for i := 2; i < len(l.k.In); i++ {
		l.launch("tl_add", n, out, l.in(i), out, l.count(n))
	}
}

func (l *Lowering) equal() {
	var name string
	switch v := l.inValue(0); v.DType {
	case program.Int64:
		name = "tl_equal_i64"
	case program.Int32:
		name = "tl_equal_i32"
	case program.Float32:
		name = "tl_equal_f32"
	case program.Uint8, program.Bool:
		name = "tl_equal_u8"
	default:
		l.fail(fmt.Errorf("%w for %s", ErrNoKernel, v.DType))
		return
	}
	n := l.outValue(0).Shape.Elements()
	l.launch(name, n, l.in(0), l.in(1), l.out1(0), l.count(n))
}

// casts are the conversions that have a kernel.
var casts = map[[2]program.DType]string{
	{program.Bool, program.Float32}:  "tl_cast_u8_f32",
	{program.Uint8, program.Float32}: "tl_cast_u8_f32",
	{program.Int32, program.Float32}: "tl_cast_i32_f32",
	{program.Int64, program.Float32}: "tl_cast_i64_f32",
	{program.Float32, program.Int32}: "tl_cast_f32_i32",
	{program.Float32, program.Int64}: "tl_cast_f32_i64",
}

func (l *Lowering) cast() {
	from, to := l.inValue(0), l.outValue(0)
	if from.DType == to.DType {
		l.move(l.out1(0), l.in(0), to.Bytes())
		return
	}
	name, ok := casts[[2]program.DType{from.DType, to.DType}]
	if !ok {
		l.fail(fmt.Errorf("%w from %s to %s", ErrNoKernel, from.DType, to.DType))
		return
	}
	n := to.Shape.Elements()
	l.launch(name, n, l.in(0), l.out1(0), l.count(n))
}

func (l *Lowering) applySGD() {
	v := l.inValue(0)
	if !l.floats(v) {
		return
	}
	n := v.Shape.Elements()
	l.launch("tl_sgd", n, l.in(0), l.in(1), l.in(2), l.count(n))
}

func (l *Lowering) applyAdam() {
	v := l.inValue(0)
	if !l.floats(v) {
		return
	}
	n := v.Shape.Elements()
	var args [11]uint64
	for i := range 10 {
		args[i] = l.in(i)
	}
	args[10] = l.count(n)
	l.launch("tl_adam", n, args[:]...)
}
