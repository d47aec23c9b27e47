package kernel

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gemm computes c = a*b (+ c when accumulate is set) for row-major matrices,
// where a is m x k after transposition and b is k x n.
func gemm(ta, tb bool, m, n, k int, a, b, c []float32, accumulate bool) {
	if m == 0 || n == 0 {
		return
	}
	var beta float32
	if accumulate {
		beta = 1
	}
	if k == 0 {
		if !accumulate {
			clear(c[:m*n])
		}
		return
	}
	lda, ldb := k, n
	opA, opB := blas.NoTrans, blas.NoTrans
	if ta {
		opA, lda = blas.Trans, m
	}
	if tb {
		opB, ldb = blas.Trans, k
	}
	gonum.Implementation{}.Sgemm(opA, opB, m, n, k, 1, a, lda, b, ldb, beta, c, n)
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
