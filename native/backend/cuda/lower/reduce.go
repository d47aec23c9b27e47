package lower

import (
	"fmt"
	"math"
	"slices"

	"tideline/native/backend/cuda/ptx"
	"tideline/shared/program"
)

func (l *Lowering) reduceOp(mean bool) {
	x, out := l.inValue(0), l.outValue(0)
	if !l.floats(x) {
		return
	}
	outer, mid, inner, ok := split(x.Shape, l.k.Node.Attrs.Axes)
	if !ok {
		l.fail(fmt.Errorf("%w that reduces %s over axes %v, which are not neighbours", ErrNoKernel, x.Shape, l.k.Node.Attrs.Axes))
		return
	}
	scale := float32(1)
	if mean {
		scale = 1 / float32(max(1, x.Shape.Elements()/max(1, out.Shape.Elements())))
	}
	l.reduce(outer, mid, inner, scale)
}

// split sees a shape as [outer, mid, inner], of which mid is reduced; ok is
// false where the reduced dimensions are apart. Extents of 1 do not matter.
func split(s program.Shape, axes []int64) (outer, mid, inner int64, ok bool) {
	outer, mid, inner = 1, 1, 1
	for d, e := range s {
		switch reduced := axes == nil || slices.Contains(axes, int64(d)); {
		case e == 1:
		case reduced && inner > 1:
			return 0, 0, 0, false
		case reduced:
			mid *= e
		case mid > 1:
			inner *= e
		default:
			outer *= e
		}
	}
	return outer, mid, inner, true
}

func (l *Lowering) reduce(outer, mid, inner int64, scale float32) {
	results := outer * inner
	if results == 0 {
		return
	}
	c := l.command(Launch, "tl_reduce", l.in(0), l.out1(0), l.count(mid), l.count(inner), uint64(math.Float32bits(scale)))
	l.count(outer * mid * inner)
	c.Grid = [2]uint32{uint32(l.count(results)), 1}
	c.Block = [2]uint32{ptx.Threads, 1}
}

func (l *Lowering) biasAddGrad() {
	x, c := l.inValue(0), l.outValue(0).Shape.Elements()
	if l.floats(x) && c > 0 {
		l.reduce(1, x.Shape.Elements()/c, c, 1)
	}
}

func (l *Lowering) argMax() {
	x := l.inValue(0)
	if !l.floats(x) {
		return
	}
	rows := l.outValue(0).Shape.Elements()
	l.launch("tl_argmax", rows, l.in(0), l.out1(0), l.count(rows), l.count(x.Shape[len(x.Shape)-1]))
}

func (l *Lowering) sparseXent() {
	x, y := l.inValue(0), l.inValue(1)
	if !l.floats(x) {
		return
	}
	name := "tl_xent_i64"
	if y.DType == program.Int32 {
		name = "tl_xent_i32"
	}
	l.count(x.Shape.Elements())
	l.launch(name, x.Shape[0], l.in(0), l.in(1), l.out1(0), l.out1(1), l.count(x.Shape[0]), l.count(x.Shape[1]))
}
