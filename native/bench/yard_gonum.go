//go:build !((cblas || benchcblas) && cgo)

package bench

// yardBLAS says whose product the kernels are compared with.
const yardBLAS = "gonum alone"

// yardHow tells how to compare with a BLAS library.
const yardHow = "for the ratio to a BLAS library: CGO_ENABLED=1 CGO_LDFLAGS=-L/WHERE/IT/IS go run -tags benchcblas ./native/cmd/tideline bench --only kernels"

// sgemm computes c = a*b for row-major matrices of m x k and k x n.
func sgemm(m, n, k int, a, b, c []float32) { plainGonum(m, n, k, a, b, c) }
