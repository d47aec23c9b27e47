//go:build (cblas || benchcblas) && cgo

package bench

// The tag cblas lets the kernels compute with the library; benchcblas links it
// for this comparison alone. See package kernel for CGO_LDFLAGS and CGO_CFLAGS.

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
//
// static void tideline_yard(int m, int n, int k, const float *a, const float *b, float *c) {
//   NAME(cblas_sgemm)(101, 111, 111, m, n, k, 1, a, k, b, n, 0, c, n);
// }
import "C"

import "unsafe"

// yardBLAS says whose product the kernels are compared with.
const yardBLAS = "cblas"

// yardHow has nothing to tell: the library is there.
const yardHow = ""

// sgemm computes c = a*b for row-major matrices of m x k and k x n.
func sgemm(m, n, k int, a, b, c []float32) {
	C.tideline_yard(C.int(m), C.int(n), C.int(k),
		(*C.float)(unsafe.SliceData(a)), (*C.float)(unsafe.SliceData(b)), (*C.float)(unsafe.SliceData(c)))
}
