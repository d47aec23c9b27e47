//go:build goexperiment.simd && amd64 && !(cblas && cgo)

package kernel

import (
	"math"
	"math/rand/v2"
	"simd/archsimd"
	"sync"
	"testing"
)

// Both widths of vectors give what gonum gives, at every kind of edge, through
// strides that are longer than rows, on top of what was there and without.
func TestMicroKernelsEqualGonum(t *testing.T) {
	if !archsimd.X86.AVX2() || !archsimd.X86.FMA() {
		t.Skip("this processor has no vectors to try")
	}
	wide, narrow := []micro{{6, 16, micro6x16}, {6, 8, micro6x8d}}, []micro{{6, 8, micro6x8}, {6, 4, micro6x4d}}
	kinds := [][]micro{narrow}
	if archsimd.X86.AVX512() {
		kinds = append(kinds, wide)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, u := range kinds {
		for range 60 {
			m, n, k := 1+r.IntN(40), 1+r.IntN(70), 1+r.IntN(2*deep)
			ta, tb, beta := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2)
			compare(t, r, &u[0], gonumS, ta, tb, m, n, k, float32(beta), 1e-4)
			compare(t, r, &u[1], gonumD, ta, tb, m, n, k, float64(beta), 1e-11)
		}
	}
}

func compare[T float](t *testing.T, r *rand.Rand, u *micro, gonum func(ta, tb bool, m, n, k int, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int),
	ta, tb bool, m, n, k int, beta T, tol float64,
) {
	t.Helper()
	lda, ldb, ldc := k+3, n+2, n+5
	rowsA, rowsB := m, k
	if ta {
		lda, rowsA = m+3, k
	}
	if tb {
		ldb, rowsB = k+2, n
	}
	fill := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(r.Float64()*2 - 1)
		}
		return x
	}
	a, b, got := fill(rowsA*lda), fill(rowsB*ldb), fill(m*ldc)
	want := append([]T(nil), got...)
	var pool sync.Pool
	packed(u, &pool, ta, tb, m, n, k, a, lda, b, ldb, beta, got, ldc)
	gonum(ta, tb, m, n, k, a, lda, b, ldb, beta, want, ldc)
	for i := range got {
		if math.Abs(float64(got[i]-want[i])) > tol {
			t.Fatalf("%dx%dx%d, transposed %v %v, beta %v: element %d is %v, want %v", m, n, k, ta, tb, beta, i, got[i], want[i])
		}
	}
}
