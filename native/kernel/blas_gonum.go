//go:build !(cblas && cgo)

package kernel

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonum multiplies rows by rows (a*bᵀ) with dot products, which load two
// numbers for a multiply-add where the other ways, sums of scaled rows, load
// two and store one; and two transposed operands element by element. So the
// operands of a tile are turned first where that pays.
const (
	longRow  = 32 // inner extent from which on dot products win
	manyRows = 8  // rows of a from which on turning b pays
	square   = 16 // product over sum of the sides from which on turning both does
)

// turned is scratch for the operands of one tile.
type turned[T float] struct{ a, b []T }

var (
	turned32 = sync.Pool{New: func() any { return new(turned[float32]) }}
	turned64 = sync.Pool{New: func() any { return new(turned[float64]) }}
)

// turn writes the first c numbers of r rows, ld apart, as c rows of r.
func turn[T float](buf *[]T, src []T, r, c, ld int) []T {
	if cap(*buf) < r*c {
		*buf = make([]T, r*c)
	}
	dst := (*buf)[:r*c]
	const block = 16
	for i0 := 0; i0 < r; i0 += block {
		i1 := min(i0+block, r)
		for j := range c {
			line := dst[j*r+i0 : j*r+i1]
			at := i0*ld + j
			for i := range line {
				line[i] = src[at]
				at += ld
			}
		}
	}
	return dst
}

// ways says which operands to turn. Dot products also win where they are
// longer than the rows of the result.
func ways(ta, tb bool, m, n, k int) (turnA, turnB bool) {
	dots := k >= longRow || k > n
	switch {
	case ta && tb:
		return true, !dots
	case ta:
		both := dots && m*n >= square*(m+n)
		return both, both
	case tb:
		return false, !dots && m >= manyRows
	}
	return false, dots && m >= manyRows
}

func op(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// gonumS and gonumD are sgemm and dgemm.
func gonumS(ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	s := turned32.Get().(*turned[float32])
	turnA, turnB := ways(ta, tb, m, n, k)
	if turnA {
		a, lda, ta = turn(&s.a, a, k, m, lda), k, false
	}
	if turnB {
		if tb {
			b, ldb = turn(&s.b, b, n, k, ldb), n
		} else {
			b, ldb = turn(&s.b, b, k, n, ldb), k
		}
		tb = !tb
	}
	gonum.Implementation{}.Sgemm(op(ta), op(tb), m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
	turned32.Put(s)
}

func gonumD(ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	s := turned64.Get().(*turned[float64])
	turnA, turnB := ways(ta, tb, m, n, k)
	if turnA {
		a, lda, ta = turn(&s.a, a, k, m, lda), k, false
	}
	if turnB {
		if tb {
			b, ldb = turn(&s.b, b, n, k, ldb), n
		} else {
			b, ldb = turn(&s.b, b, k, n, ldb), k
		}
		tb = !tb
	}
	gonum.Implementation{}.Dgemm(op(ta), op(tb), m, n, k, 1, a, lda, b, ldb, beta, c, ldc)
	turned64.Put(s)
}
