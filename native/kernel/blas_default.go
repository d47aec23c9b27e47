//go:build !(cblas && cgo) && !(goexperiment.simd && amd64)

package kernel

// blasName says whose matrix product it is.
const blasName = "gonum"

// The tiles into which a product is cut, each computed by one goroutine over
// the whole inner extent. gonum computes a tile of these sizes without
// goroutines and buffers of its own, of which it would make one per 64x64
// block.
const (
	tileWide = 192 // the longer side of a tile
	tileHigh = 64  // its shorter side
)

// sgemm and dgemm compute c = a*b + beta*c for row-major matrices, op(a) being
// m x k and op(b) k x n.
func sgemm(ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	gonumS(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
}

func dgemm(ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	gonumD(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
}
