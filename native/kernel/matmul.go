package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// A product is cut into tiles of the result, each computed by one goroutine
// over the whole inner extent. gonum computes a tile of these sizes without
// goroutines and buffers of its own, of which it would make one per 64x64
// block; and the sums of an element are added in one order on any number of
// cores.
const (
	tileWide  = 192     // the longer side of a tile
	tileHigh  = 64      // its shorter side
	parallel  = 1 << 21 // multiply-adds from which on more than one core is worth its start
	maxHelper = 64
)

// product is c = a*b (+ c when accumulate is set) for row-major matrices,
// where a is m x k after transposition and b is k x n.
type product struct {
	ta, tb     bool
	m, n, k    int
	a, b, c    []float32
	accumulate bool

	high, wide int // of a tile
	columns    int // of tiles
	tiles      int
	next       atomic.Int64
	helpers    sync.WaitGroup
}

var products = sync.Pool{New: func() any { return new(product) }}

// gemm computes a product.
func gemm(ta, tb bool, m, n, k int, a, b, c []float32, accumulate bool) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			clear(c[:m*n])
		}
		return
	}
	p := products.Get().(*product)
	p.ta, p.tb, p.m, p.n, p.k, p.a, p.b, p.c, p.accumulate = ta, tb, m, n, k, a, b, c, accumulate
	p.run()
	p.a, p.b, p.c = nil, nil, nil
	products.Put(p)
}

func (p *product) run() {
	p.high, p.wide = tileHigh, tileWide
	if p.n <= tileHigh {
		p.high, p.wide = tileWide, tileHigh
	}
	p.columns = (p.n + p.wide - 1) / p.wide
	p.tiles = (p.m + p.high - 1) / p.high * p.columns
	p.next.Store(0)
	if p.m*p.n*p.k >= parallel {
		for range min(runtime.GOMAXPROCS(0), p.tiles, maxHelper) - 1 {
			p.helpers.Add(1)
			go p.help()
		}
	}
	p.work()
	p.helpers.Wait()
}

func (p *product) help() {
	p.work()
	p.helpers.Done()
}

// work computes tiles until none is left.
func (p *product) work() {
	for {
		t := int(p.next.Add(1)) - 1
		if t >= p.tiles {
			return
		}
		p.tile(t/p.columns*p.high, t%p.columns*p.wide)
	}
}

// tile computes the part of the result whose first element is row i, column j.
func (p *product) tile(i, j int) {
	m, n := min(p.high, p.m-i), min(p.wide, p.n-j)
	a, b := p.a[i*p.k:], p.b[j:]
	opA, opB, lda, ldb := blas.NoTrans, blas.NoTrans, p.k, p.n
	if p.ta {
		opA, lda, a = blas.Trans, p.m, p.a[i:]
	}
	if p.tb {
		opB, ldb, b = blas.Trans, p.k, p.b[j*p.k:]
	}
	var beta float32
	if p.accumulate {
		beta = 1
	}
	gonum.Implementation{}.Sgemm(opA, opB, m, n, p.k, 1, a, lda, b, ldb, beta, p.c[i*p.n+j:], p.n)
}

func matMul(c *Call) error {
	at, x, y := &c.Node.Attrs, c.inValue(0).Shape, c.outValue(0).Shape
	k := x[1]
	if at.TransposeA {
		k = x[0]
	}
	gemm(at.TransposeA, at.TransposeB, int(y[0]), int(y[1]), int(k), c.in(0), c.in(1), c.out(0), false)
	return nil
}

// transpose writes the r x c matrix src into dst as c x r.
func transpose(dst, src []float32, r, c int) {
	for i := range r {
		row := src[i*c : (i+1)*c]
		for j, v := range row {
			dst[j*r+i] = v
		}
	}
}
