//go:build goexperiment.simd && amd64 && !(cblas && cgo)

package kernel

import (
	"simd/archsimd"
	"sync"
	"unsafe"
)

// blasName says whose matrix product it is.
const blasName = "simd"

// The tiles into which a product is cut: large, so that packing is a small
// part of the work.
const (
	tileWide = 512 // the longer side of a tile
	tileHigh = 192 // its shorter side
)

// deep is the inner extent that is packed at a time; what is packed of b stays
// in the second cache.
const deep = 512

// micro multiplies a packed panel of rows rows by one of columns columns over
// k numbers, into a tile that lies by itself.
type micro struct {
	rows, columns int
	run           func(k int, a, b, c unsafe.Pointer)
}

// panels is scratch for packed operands.
type panels[T float] struct{ a, b, c []T }

var (
	panels32, panels64 sync.Pool
	micro32, micro64   = choose512or256()
)

// choose512or256 goes by the processor; a micro of no rows is for one without
// vectors worth the trouble.
func choose512or256() (f32, f64 micro) {
	switch {
	case archsimd.X86.AVX512():
		return micro{6, 16, micro6x16}, micro{6, 8, micro6x8d}
	case archsimd.X86.AVX2() && archsimd.X86.FMA():
		return micro{6, 8, micro6x8}, micro{6, 4, micro6x4d}
	}
	return micro{}, micro{}
}

// sgemm and dgemm compute c = a*b + beta*c for row-major matrices, op(a) being
// m x k and op(b) k x n.
func sgemm(ta, tb bool, m, n, k int, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if micro32.rows == 0 {
		gonumS(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
		return
	}
	packed(&micro32, &panels32, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
}

func dgemm(ta, tb bool, m, n, k int, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if micro64.rows == 0 {
		gonumD(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
		return
	}
	packed(&micro64, &panels64, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc)
}

// packed goes over the inner extent in steps, packs both operands into panels
// that the micro kernel walks straight through, and adds up its tiles.
func packed[T float](u *micro, pool *sync.Pool, ta, tb bool, m, n, k int, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	s, _ := pool.Get().(*panels[T])
	if s == nil {
		s = &panels[T]{c: make([]T, u.rows*u.columns)}
	}
	for k0 := 0; k0 < k; k0 += deep {
		kc := min(deep, k-k0)
		if ta {
			pack(&s.a, a[k0*lda:], lda, 1, m, kc, u.rows)
		} else {
			pack(&s.a, a[k0:], 1, lda, m, kc, u.rows)
		}
		if tb {
			pack(&s.b, b[k0:], 1, ldb, n, kc, u.columns)
		} else {
			pack(&s.b, b[k0*ldb:], ldb, 1, n, kc, u.columns)
		}
		for j := 0; j < n; j += u.columns {
			for i := 0; i < m; i += u.rows {
				u.run(kc, unsafe.Pointer(&s.a[i*kc]), unsafe.Pointer(&s.b[j*kc]), unsafe.Pointer(&s.c[0]))
				rows, columns := min(u.rows, m-i), min(u.columns, n-j)
				for r := range rows {
					to, from := c[(i+r)*ldc+j:][:columns], s.c[r*u.columns:][:columns]
					switch {
					case k0 > 0 || beta == 1:
						adds(to, to, from, 0)
					case beta == 0:
						copy(to, from)
					}
				}
			}
		}
	}
	pool.Put(s)
}

// pack writes a matrix of n rows of k numbers as panels of width rows: for
// each of the k the numbers of all rows, zeros for those that lack. Numbers of
// a row are inner apart, rows outer.
func pack[T float](buf *[]T, x []T, inner, outer, n, k, width int) {
	need := (n + width - 1) / width * width * k
	if cap(*buf) < need {
		*buf = make([]T, need)
	}
	*buf = (*buf)[:need]
	dst := *buf
	for i := 0; i < n; i += width {
		w := min(width, n-i)
		panel := dst[i*k:][:width*k]
		if w < width {
			clear(panel)
		}
		if outer == 1 {
			for l := range k {
				copy(panel[l*width:][:w], x[i+l*inner:])
			}
			continue
		}
		for r := range w {
			row := x[(i+r)*outer:]
			for l, at := 0, r; l < k; l, at = l+1, at+width {
				panel[at] = row[l*inner]
			}
		}
	}
}
