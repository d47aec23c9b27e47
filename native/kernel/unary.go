package kernel

import (
	"math"
	"sync"

	"tideline/shared/program"
)

// unary is an elementwise function of one input, by type. p is Attrs.Value.
// It reads element i before it writes element i, and is so right in place.
type unary struct {
	f32 func(y, x []float32, p float32)
	f64 func(y, x []float64, p float64)
	i32 func(y, x []int32, p int32) // nil where integers make no sense
	i64 func(y, x []int64, p int64)
}

func unaryEntry(weight int, f32 func(y, x []float32, p float32), f64 func(y, x []float64, p float64)) *entry {
	return &entry{raw: true, unary: unary{f32: f32, f64: f64}, phases: []phase{{units: outElements, weight: weight, f32: runUnary}}}
}

// withInts adds the functions of integers.
func (e *entry) withInts(i32 func(y, x []int32, p int32), i64 func(y, x []int64, p int64)) *entry {
	e.unary.i32, e.unary.i64 = i32, i64
	return e
}

func runUnary(c *Call, from, to int) {
	u, p := &c.entry.unary, c.Node.Attrs.Value
	switch t := c.inValue(0).DType; {
	case t == program.Float32:
		u.f32(out[float32](c, 0)[from:to], in[float32](c, 0)[from:to], float32(p))
	case t == program.Float64:
		u.f64(out[float64](c, 0)[from:to], in[float64](c, 0)[from:to], p)
	case t == program.Int32 && u.i32 != nil:
		u.i32(out[int32](c, 0)[from:to], in[int32](c, 0)[from:to], 0)
	case t == program.Int64 && u.i64 != nil:
		u.i64(out[int64](c, 0)[from:to], in[int64](c, 0)[from:to], 0)
	case isHalf(t):
		y, x := out[uint16](c, 0)[from:to], in[uint16](c, 0)[from:to]
		s := tiles.Get().(*tile)
		for len(x) > 0 {
			n := min(len(x), tileSize)
			widen(s.a[:n], x, t)
			u.f32(s.y[:n], s.a[:n], float32(p))
			round(y[:n], s.y[:n], t)
			x, y = x[n:], y[n:]
		}
		tiles.Put(s)
	default:
		panic("no kernel for " + t.String())
	}
}

// tileSize is the elements of a tile: small enough to stay in the first cache.
const tileSize = 512

// tile is scratch for a piece of an elementwise op: widened halves, repeated
// scalars.
type tile struct {
	a, b, y  [tileSize]float32
	a64, b64 [tileSize]float64
	ai, bi   [tileSize]int64
}

var tiles = sync.Pool{New: func() any { return new(tile) }}

func tanhs[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = tanhOf(v)
	}
}

// tanhOf is math.Tanh at a third of its time: below 0.01 a series whose next
// term is under 2^-53, above it the quotient. It converts by itself: where the
// caller does, the processor waits for the last result before it begins with
// the next number, since the conversion writes half a register.
func tanhOf[T float](v T) T {
	x := float64(v)
	switch {
	case x > 22:
		return 1
	case x < -22:
		return -1
	case x < 0.01 && x > -0.01:
		s := x * x
		return T(x * (1 - s*(1./3-s*(2./15-s*(17./315-s*(62./2835))))))
	}
	e := math.Exp(2 * x)
	return T((e - 1) / (e + 1))
}

func relus[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = max(v, 0)
	}
}

func relu6s[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = min(max(v, 0), 6)
	}
}

func leakyRelus[T float](y, x []T, slope T) {
	for i, v := range x {
		if v < 0 {
			v *= slope
		}
		y[i] = v
	}
}

func sigmoids[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(sigmoid(float64(v)))
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// The constants of GELU's form with tanh: sqrt(2/pi) and the cubic's weight.
const (
	geluRoot  = 0.79788456080286535588
	geluCubic = 0.044715
)

func gelus[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = 0.5 * v * (1 + tanhOf(geluRoot*(v+geluCubic*v*v*v)))
	}
}

func exps[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(math.Exp(float64(v)))
	}
}

func logs[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(math.Log(float64(v)))
	}
}

func sqrts[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(math.Sqrt(float64(v)))
	}
}

func rsqrts[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(1 / math.Sqrt(float64(v)))
	}
}

func squares[T number](y, x []T, _ T) {
	for i, v := range x {
		y[i] = v * v
	}
}

func negs[T number](y, x []T, _ T) {
	for i, v := range x {
		y[i] = -v
	}
}

func abss[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(math.Abs(float64(v)))
	}
}

func absInts[T int32 | int64](y, x []T, _ T) {
	for i, v := range x {
		y[i] = max(v, -v)
	}
}

func reciprocals[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = 1 / v
	}
}

func erfs[T float](y, x []T, _ T) {
	for i, v := range x {
		y[i] = T(math.Erf(float64(v)))
	}
}

func isFinite(c *Call, from, to int) {
	y := out[uint8](c, 0)[from:to]
	switch t := c.inValue(0).DType; t {
	case program.Float32:
		for i, v := range in[float32](c, 0)[from:to] {
			y[i] = truth(finite(v))
		}
	case program.Float64:
		for i, v := range in[float64](c, 0)[from:to] {
			y[i] = truth(finite(v))
		}
	default: // halves: an exponent of ones
		ones := halfExponent(t)
		for i, h := range in[uint16](c, 0)[from:to] {
			y[i] = truth(h&ones != ones)
		}
	}
}

// halfExponent has the bits of a half's exponent.
func halfExponent(t program.DType) uint16 {
	if t == program.BFloat16 {
		return 0x7f80
	}
	return 0x7c00
}

func logicalNot(c *Call, from, to int) {
	y := out[uint8](c, 0)[from:to]
	for i, v := range in[uint8](c, 0)[from:to] {
		y[i] = truth(v == 0)
	}
}

// truth is a bool as it lies in memory.
func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
