//go:build cblas && cgo

package kernel

// Any BLAS with the C interface will do: OpenBLAS, BLIS, ATLAS. Another name
// or place goes into CGO_LDFLAGS, a prefix of the symbols (SciPy's build has
// one) into CGO_CFLAGS as -DTIDELINE_CBLAS_PREFIX=scipy_.

// #cgo LDFLAGS: -lopenblas
//
// #ifdef TIDELINE_CBLAS_PREFIX
// #define JOIN_(a, b) a##b
// #define JOIN(a, b) JOIN_(a, b)
// #define NAME(f) JOIN(TIDELINE_CBLAS_PREFIX, f)
// #else
// #define NAME(f) f
// #endif
//
// void NAME(cblas_sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha,
//   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
// void NAME(cblas_dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha,
//   const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);
//
// static void tideline_sgemm(int ta, int tb, int m, int n, int k,
//   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
//   NAME(cblas_sgemm)(101, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
// }
// static void tideline_dgemm(int ta, int tb, int m, int n, int k,
//   const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc) {
//   NAME(cblas_dgemm)(101, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
// }
import "C"

import "unsafe"

// blasName says whose matrix product it is.
const blasName = "cblas"

// A library shares a product among the cores itself, and likes it whole.
const (
	tileWide = 1 << 20
	tileHigh = 1 << 20
)

// op is CblasTrans or CblasNoTrans.
func op(t bool) C.int {
	if t {
		return 112
	}
	return 111
}

// sgemm and dgemm compute c = a*b + beta*c for row-major matrices, op(a) being
// m x k and op(b) k x n.
func sgemm(ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	C.tideline_sgemm(op(ta), op(tb), C.int(m), C.int(n), C.int(k),
		(*C.float)(unsafe.SliceData(a)), C.int(lda), (*C.float)(unsafe.SliceData(b)), C.int(ldb),
		C.float(beta), (*C.float)(unsafe.SliceData(c)), C.int(ldc))
}

func dgemm(ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	C.tideline_dgemm(op(ta), op(tb), C.int(m), C.int(n), C.int(k),
		(*C.double)(unsafe.SliceData(a)), C.int(lda), (*C.double)(unsafe.SliceData(b)), C.int(ldb),
		C.double(beta), (*C.double)(unsafe.SliceData(c)), C.int(ldc))
}
