package kernel

import (
	"sync"
	"unsafe"
)

// product is c = a*b (+ c when accumulate is set) for row-major matrices,
// where a is m x k after transposition and b is k x n; or a batch of products
// of matrices that lie one after another. It is cut into tiles of the result;
// the sums of an element are added in one order on any number of cores.
type product[T float] struct {
	ta, tb     bool
	m, n, k    int
	a, b, c    []T
	accumulate bool

	high, wide int // of a tile
	columns    int // of tiles
	tiles      int // of one matrix
}

var products32, products64 sync.Pool

// poolOf chooses the pool of a type.
func poolOf[T float](p32, p64 *sync.Pool) *sync.Pool {
	var t T
	if unsafe.Sizeof(t) == 4 {
		return p32
	}
	return p64
}

// parallel is the multiply-adds from which on more than one core is worth its
// start. Tests make it small.
var parallel = 1 << 18

// gemm computes a product, or as many as batch says.
func gemm[T float](batch int, ta, tb bool, m, n, k int, a, b, c []T, accumulate bool) {
	if batch == 0 || m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			clear(c[:batch*m*n])
		}
		return
	}
	pool := poolOf[T](&products32, &products64)
	p, _ := pool.Get().(*product[T])
	if p == nil {
		p = new(product[T])
	}
	*p = product[T]{ta: ta, tb: tb, m: m, n: n, k: k, a: a, b: b, c: c, accumulate: accumulate}
	p.run(batch)
	*p = product[T]{}
	pool.Put(p)
}

func (p *product[T]) run(batch int) {
	p.high, p.wide = tileHigh, tileWide
	if p.n <= tileHigh {
		p.high, p.wide = tileWide, tileHigh
	}
	// Results that are small for their inner extent still give work to some
	// cores: as many on any machine.
	for batch*p.lay() < fewTiles && p.high > minHigh && batch*p.m*p.n*p.k >= worthTiles {
		p.high /= 2
	}
	all := batch * p.tiles
	if all == 1 || batch*p.m*p.n*p.k < parallel {
		p.do(0, all)
		return
	}
	takeJob().split(p, all, max(1, all*parallel/4/(batch*p.m*p.n*p.k)))
}

const (
	fewTiles   = 4
	minHigh    = 16
	worthTiles = 1 << 20 // multiply-adds
)

// lay lays the tiles out and gives their number.
func (p *product[T]) lay() int {
	p.columns = (p.n + p.wide - 1) / p.wide
	p.tiles = (p.m + p.high - 1) / p.high * p.columns
	return p.tiles
}

// do implements work: it computes tiles.
func (p *product[T]) do(from, to int) {
	for t := from; t < to; t++ {
		s, i := t/p.tiles, t%p.tiles
		p.tile(s, i/p.columns*p.high, i%p.columns*p.wide)
	}
}

// tile computes the part of result s whose first element is row i, column j.
func (p *product[T]) tile(s, i, j int) {
	m, n := min(p.high, p.m-i), min(p.wide, p.n-j)
	a, b, c := p.a[s*p.m*p.k:][:p.m*p.k], p.b[s*p.k*p.n:][:p.k*p.n], p.c[s*p.m*p.n:][:p.m*p.n]
	lda, ldb := p.k, p.n
	if p.ta {
		lda, a = p.m, a[i:]
	} else {
		a = a[i*p.k:]
	}
	if p.tb {
		ldb, b = p.k, b[j*p.k:]
	} else {
		b = b[j:]
	}
	c = c[i*p.n+j:]
	var beta T
	if p.accumulate {
		beta = 1
	}
	if unsafe.Sizeof(beta) == 4 {
		sgemm(p.ta, p.tb, m, n, p.k, elements[float32](raw(a)), lda, elements[float32](raw(b)), ldb, float32(beta), elements[float32](raw(c)), p.n)
	} else {
		dgemm(p.ta, p.tb, m, n, p.k, elements[float64](raw(a)), lda, elements[float64](raw(b)), ldb, float64(beta), elements[float64](raw(c)), p.n)
	}
}

// raw is Bytes for both floating types.
func raw[T float](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// matMul serves MatMul and BatchMatMulV2.
func matMul[T float](c *Call, _, _ int) {
	at, x, y := &c.Node.Attrs, c.inValue(0).Shape, c.outValue(0).Shape
	r := len(x)
	k := x[r-1]
	if at.TransposeA {
		k = x[r-2]
	}
	batch := y[:r-2].Elements()
	gemm(int(batch), at.TransposeA, at.TransposeB, int(y[r-2]), int(y[r-1]), int(k), in[T](c, 0), in[T](c, 1), out[T](c, 0), false)
}
