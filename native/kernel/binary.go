package kernel

import (
	"math"

	"tideline/shared/program"
)

// binary is an elementwise function of two inputs, by type; an op lacks those
// that make no sense for it. p is Attrs.Value. Comparisons give bools instead.
// It reads element i of both before it writes element i.
type binary struct {
	f32 func(y, a, b []float32, p float32)
	f64 func(y, a, b []float64, p float64)
	i32 func(y, a, b []int32, p int32)
	i64 func(y, a, b []int64, p int64)

	c32 func(y []uint8, a, b []float32, p float32)
	c64 func(y []uint8, a, b []float64, p float64)
	n32 func(y []uint8, a, b []int32, p int32)
	n64 func(y []uint8, a, b []int64, p int64)
	n8  func(y []uint8, a, b []uint8, p uint8)
}

func binaryEntry(weight int, b binary) *entry {
	return &entry{raw: true, binary: b, phases: []phase{{units: outElements, weight: weight, f32: runBinary}}}
}

func runBinary(c *Call, from, to int) {
	f, p := &c.entry.binary, c.Node.Attrs.Value
	s := tiles.Get().(*tile)
	defer tiles.Put(s)
	switch t := c.inValue(0).DType; {
	case t == program.Float32 && f.f32 != nil:
		pairs(c, out[float32](c, 0), in[float32](c, 0), in[float32](c, 1), s.a[:], s.b[:], f.f32, float32(p), from, to)
	case t == program.Float64 && f.f64 != nil:
		pairs(c, out[float64](c, 0), in[float64](c, 0), in[float64](c, 1), s.a64[:], s.b64[:], f.f64, p, from, to)
	case t == program.Int32 && f.i32 != nil:
		pairs(c, out[int32](c, 0), in[int32](c, 0), in[int32](c, 1), as[int32](s.ai[:]), as[int32](s.bi[:]), f.i32, int32(p), from, to)
	case t == program.Int64 && f.i64 != nil:
		pairs(c, out[int64](c, 0), in[int64](c, 0), in[int64](c, 1), s.ai[:], s.bi[:], f.i64, int64(p), from, to)
	case t == program.Float32 && f.c32 != nil:
		pairs(c, out[uint8](c, 0), in[float32](c, 0), in[float32](c, 1), s.a[:], s.b[:], f.c32, float32(p), from, to)
	case t == program.Float64 && f.c64 != nil:
		pairs(c, out[uint8](c, 0), in[float64](c, 0), in[float64](c, 1), s.a64[:], s.b64[:], f.c64, p, from, to)
	case t == program.Int32 && f.n32 != nil:
		pairs(c, out[uint8](c, 0), in[int32](c, 0), in[int32](c, 1), as[int32](s.ai[:]), as[int32](s.bi[:]), f.n32, int32(p), from, to)
	case t == program.Int64 && f.n64 != nil:
		pairs(c, out[uint8](c, 0), in[int64](c, 0), in[int64](c, 1), s.ai[:], s.bi[:], f.n64, int64(p), from, to)
	case (t == program.Uint8 || t == program.Bool) && f.n8 != nil:
		pairs(c, out[uint8](c, 0), in[uint8](c, 0), in[uint8](c, 1), as[uint8](s.ai[:]), as[uint8](s.bi[:]), f.n8, uint8(p), from, to)
	case isHalf(t):
		halfPairs(c, t, s, from, to)
	default:
		panic("no kernel for " + t.String())
	}
}

// as takes scratch as numbers of another type, as many of them.
func as[T, F number](s []F) []T { return elements[T](Bytes(s))[:len(s)] }

// pairs calls f for runs of elements that lie together; what stands still
// along a run is repeated in a tile first.
func pairs[T, R number](c *Call, y []R, a, b, ta, tb []T, f func(y []R, a, b []T, p T), p T, from, to int) {
	if len(a) == len(y) && len(b) == len(y) {
		f(y[from:to], a[from:to], b[from:to], p)
		return
	}
	l := broadcast(c)
	if l.rank == 1 { // one of the two is a scalar, once and for all
		if l.stride(0) == 0 {
			fill(ta[:min(to-from, tileSize)], a[0])
		}
		if l.stride(1) == 0 {
			fill(tb[:min(to-from, tileSize)], b[0])
		}
	}
	l.seek(from)
	for from < to {
		n := min(l.left(), to-from, tileSize)
		xs, ys := ta[:n], tb[:n]
		if l.stride(0) == 1 {
			xs = a[l.pos[0]:][:n]
		} else if l.rank > 1 {
			fill(xs, a[l.pos[0]])
		}
		if l.stride(1) == 1 {
			ys = b[l.pos[1]:][:n]
		} else if l.rank > 1 {
			fill(ys, b[l.pos[1]])
		}
		f(y[from:from+n], xs, ys, p)
		l.skip(n)
		from += n
	}
}

// broadcast is the walk over output 0 with inputs 0 and 1.
func broadcast(c *Call) lanes {
	var l lanes
	l.shape(c.outValue(0).Shape)
	l.follow(0, c.inValue(0).Shape)
	l.follow(1, c.inValue(1).Shape)
	l.collapse()
	return l
}

// halfPairs is pairs in tiles of float32.
func halfPairs(c *Call, t program.DType, s *tile, from, to int) {
	f, p := &c.entry.binary, float32(c.Node.Attrs.Value)
	a, b := in[uint16](c, 0), in[uint16](c, 1)
	l := broadcast(c)
	l.seek(from)
	for from < to {
		n := min(l.left(), to-from, tileSize)
		widenRun(s.a[:n], a, l.pos[0], l.stride(0), t)
		widenRun(s.b[:n], b, l.pos[1], l.stride(1), t)
		switch {
		case f.f32 != nil:
			f.f32(s.y[:n], s.a[:n], s.b[:n], p)
			round(out[uint16](c, 0)[from:from+n], s.y[:n], t)
		case f.c32 != nil:
			f.c32(out[uint8](c, 0)[from:from+n], s.a[:n], s.b[:n], p)
		default:
			panic("no kernel for " + t.String())
		}
		l.skip(n)
		from += n
	}
}

func widenRun(dst []float32, src []uint16, at, step int, t program.DType) {
	if step == 1 {
		widen(dst, src[at:], t)
		return
	}
	widen(dst[:1], src[at:], t)
	fill(dst, dst[0])
}

func adds[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] + b[i]
	}
}

func subs[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] - b[i]
	}
}

func muls[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] * b[i]
	}
}

func divs[T float](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = a[i] / b[i]
	}
}

func maxima[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = max(a[i], b[i])
	}
}

func minima[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = min(a[i], b[i])
	}
}

func pows[T float](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = T(math.Pow(float64(a[i]), float64(b[i])))
	}
}

func squaredDifferences[T number](y, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		d := a[i] - b[i]
		y[i] = d * d
	}
}

func equals[T number](y []uint8, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] == b[i])
	}
}

func greaters[T number](y []uint8, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] > b[i])
	}
}

func greaterEquals[T number](y []uint8, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] >= b[i])
	}
}

func lesses[T number](y []uint8, a, b []T, _ T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] = truth(a[i] < b[i])
	}
}

func ands(y []uint8, a, b []uint8, _ uint8) {
	for i := range y {
		y[i] = truth(a[i] != 0 && b[i] != 0)
	}
}

// The gradients of elementwise ops. The first of the two inputs is the output
// or, for relu and its kin and gelu, the gradient.

func tanhGrads[T float](dx, y, dy []T, _ T) {
	for i := range dx {
		dx[i] = dy[i] * (1 - y[i]*y[i])
	}
}

func sigmoidGrads[T float](dx, y, dy []T, _ T) {
	for i := range dx {
		dx[i] = dy[i] * y[i] * (1 - y[i])
	}
}

func sqrtGrads[T float](dx, y, dy []T, _ T) {
	for i := range dx {
		dx[i] = dy[i] * 0.5 / y[i]
	}
}

func rsqrtGrads[T float](dx, y, dy []T, _ T) {
	for i := range dx {
		dx[i] = dy[i] * -0.5 * y[i] * y[i] * y[i]
	}
}

func reciprocalGrads[T float](dx, y, dy []T, _ T) {
	for i := range dx {
		dx[i] = -dy[i] * y[i] * y[i]
	}
}

func reluGrads[T float](dx, dy, y []T, _ T) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
}

func relu6Grads[T float](dx, dy, y []T, _ T) {
	for i := range dx {
		if y[i] > 0 && y[i] < 6 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
}

func leakyReluGrads[T float](dx, dy, y []T, slope T) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = dy[i] * slope
		}
	}
}

func geluGrads[T float](dx, dy, x []T, _ T) {
	for i := range dx {
		v := x[i]
		t := tanhOf(geluRoot * (v + geluCubic*v*v*v))
		inner := geluRoot * (1 + 3*geluCubic*v*v)
		dx[i] = dy[i] * 0.5 * (1 + t + v*(1-t*t)*inner)
	}
}

// addN sums any number of inputs of one shape.
func addN[T number](c *Call, from, to int) {
	y := out[T](c, 0)[from:to]
	if len(c.In) == 1 {
		copy(y, in[T](c, 0)[from:to])
		return
	}
	// All inputs are read before an element is written, since the output may
	// be any of them.
	a, b := in[T](c, 0)[from:to], in[T](c, 1)[from:to]
	if len(c.In) == 2 {
		adds(y, a, b, 0)
		return
	}
	for i := range y {
		s := a[i] + b[i]
		for j := 2; j < len(c.In); j++ {
			s += elements[T](c.In[j])[from+i]
		}
		y[i] = s
	}
}

// addFloats is addN of float32, and of halves that were widened to it: their
// sum is rounded after every addition, as TensorFlow's is, so that it equals a
// chain of additions (rewrite.AccumulateSums).
func addFloats(c *Call, from, to int) {
	t := c.outValue(0).DType
	if !isHalf(t) || len(c.In) <= 2 {
		addN[float32](c, from, to)
		return
	}
	y := out[float32](c, 0)[from:to]
	for i := range y {
		s := in[float32](c, 0)[from+i]
		for _, b := range c.In[1:] {
			s = rounded(s+elements[float32](b)[from+i], t)
		}
		y[i] = s
	}
}

// selected takes input 1 where input 0 is true and input 2 elsewhere.
func selected(c *Call, from, to int) {
	switch c.outValue(0).DType.Size() {
	case 1:
		choose[uint8](c, from, to)
	case 2:
		choose[uint16](c, from, to)
	case 4:
		choose[uint32](c, from, to)
	case 8:
		choose[uint64](c, from, to)
	}
}

func choose[T unit](c *Call, from, to int) {
	cond, a, b, y := in[uint8](c, 0), in[T](c, 1), in[T](c, 2), out[T](c, 0)
	var l lanes
	l.shape(c.outValue(0).Shape)
	for i := range 3 {
		l.follow(i, c.inValue(i).Shape)
	}
	l.collapse()
	l.seek(from)
	for from < to {
		n := min(l.left(), to-from)
		dst, p := y[from:from+n], l.pos
		s0, s1, s2 := l.stride(0), l.stride(1), l.stride(2)
		for i := range dst {
			if cond[p[0]] != 0 {
				dst[i] = a[p[1]]
			} else {
				dst[i] = b[p[2]]
			}
			p[0] += s0
			p[1] += s1
			p[2] += s2
		}
		l.skip(n)
		from += n
	}
}
