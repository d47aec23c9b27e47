//go:build cuda

package cuda

/*
#include <dlfcn.h>
#include <stddef.h>
#include <cuda.h>

typedef struct {
	void *library;
	int (*create)(void **);
	int (*destroy)(void *);
	int (*stream)(void *, CUstream);
	int (*sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
	             const float *, float *, int);
} tl_blas;

static tl_blas *tl_blas_open(const char *name)
{
	static tl_blas b;
	void *l = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!l)
		return NULL;
	*(void **)&b.create = dlsym(l, "cublasCreate_v2");
	*(void **)&b.destroy = dlsym(l, "cublasDestroy_v2");
	*(void **)&b.stream = dlsym(l, "cublasSetStream_v2");
	*(void **)&b.sgemm = dlsym(l, "cublasSgemm_v2");
	b.library = l;
	return b.create && b.destroy && b.stream && b.sgemm ? &b : NULL;
}

static int tl_blas_create(tl_blas *b, void **h) { return b->create(h); }
static int tl_blas_destroy(tl_blas *b, void *h) { return b->destroy(h); }
static int tl_blas_stream(tl_blas *b, void *h, void *s) { return b->stream(h, (CUstream)s); }

static int tl_blas_sgemm(tl_blas *b, void *h, int ta, int tb, int m, int n, int k,
	unsigned long long a_, int lda, unsigned long long b_, int ldb, float beta, unsigned long long c_, int ldc)
{
	const float one = 1;

	return b->sgemm(h, ta, tb, m, n, k, &one, (const float *)a_, lda, (const float *)b_, ldb, &beta, (float *)c_, ldc);
}
*/
import "C"

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"tideline/native/backend/cuda/lower"
)

// blas is a handle of cuBLAS for one stream. The library takes memory of its
// own from the driver, outside of the run's pools, as it does under TensorFlow.
type blas struct{ handle unsafe.Pointer }

// blasNames are tried in turn. TIDELINE_CUBLAS in the environment names another
// library, or 0 for none.
var blasNames = []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"}

var blasLibrary = sync.OnceValue(func() *C.tl_blas {
	names := blasNames
	switch asked := os.Getenv("TIDELINE_CUBLAS"); asked {
	case "":
	case "0":
		return nil
	default:
		names = []string{asked}
	}
	for _, n := range names {
		s := C.CString(n)
		b := C.tl_blas_open(s)
		C.free(unsafe.Pointer(s))
		if b != nil {
			return b
		}
	}
	return nil
})

// HasBLAS says whether products of matrices go through cuBLAS.
func HasBLAS() bool { return blasLibrary() != nil }

// openBLAS makes a handle for a stream, on the card's goroutine; nil where the
// library is not found.
func openBLAS(s cu.Stream) (*blas, error) {
	lib := blasLibrary()
	if lib == nil {
		return nil, nil
	}
	b := &blas{}
	if r := C.tl_blas_create(lib, &b.handle); r != 0 {
		return nil, fmt.Errorf("open cuBLAS: status %d; TIDELINE_CUBLAS=0 does without", r)
	}
	if r := C.tl_blas_stream(lib, b.handle, unsafe.Pointer(s.C())); r != 0 {
		b.close()
		return nil, fmt.Errorf("give cuBLAS its stream: status %d", r)
	}
	return b, nil
}

// product orders c = a*b. The library's matrices go down columns, ours along
// rows, which is the transpose: so it is asked for c' = b'*a'.
func (b *blas) product(g *lower.Gemm) error {
	lda, ldb := g.K, g.N
	var ta, tb C.int
	if g.TransA {
		ta, lda = 1, g.M
	}
	if g.TransB {
		tb, ldb = 1, g.K
	}
	var beta C.float
	if g.Accumulate {
		beta = 1
	}
	r := C.tl_blas_sgemm(blasLibrary(), b.handle, tb, ta, C.int(g.N), C.int(g.M), C.int(g.K),
		C.ulonglong(g.B), C.int(ldb), C.ulonglong(g.A), C.int(lda), beta, C.ulonglong(g.C), C.int(g.N))
	if r != 0 {
		return fmt.Errorf("cublasSgemm of %dx%d by %dx%d: status %d", g.M, g.K, g.K, g.N, r)
	}
	return nil
}

func (b *blas) close() {
	if b != nil && b.handle != nil {
		C.tl_blas_destroy(blasLibrary(), b.handle)
		b.handle = nil
	}
}
