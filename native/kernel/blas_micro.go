//go:build goexperiment.simd && amd64 && !(cblas && cgo)

package kernel

import (
	"simd/archsimd"
	"unsafe"
)

// The micro kernels keep a tile of the result in registers: six rows of one
// vector. The compiler has fifteen registers and loads the numbers of all rows
// before it multiplies; a multiply-add writes over its first factor, here a
// row's number, which nobody needs again. A pointer stands for a panel because
// slices would check each access; blas_simd.go makes the panels as long as k
// says.

func micro6x16(k int, a, b, c unsafe.Pointer) {
	var c0, c1, c2, c3, c4, c5 archsimd.Float32x16
	for range k {
		row, v := (*[6]float32)(a), archsimd.LoadFloat32x16((*[16]float32)(b))
		c0 = archsimd.BroadcastFloat32x16(row[0]).MulAdd(v, c0)
		c1 = archsimd.BroadcastFloat32x16(row[1]).MulAdd(v, c1)
		c2 = archsimd.BroadcastFloat32x16(row[2]).MulAdd(v, c2)
		c3 = archsimd.BroadcastFloat32x16(row[3]).MulAdd(v, c3)
		c4 = archsimd.BroadcastFloat32x16(row[4]).MulAdd(v, c4)
		c5 = archsimd.BroadcastFloat32x16(row[5]).MulAdd(v, c5)
		a, b = unsafe.Add(a, 24), unsafe.Add(b, 64)
	}
	c0.Store((*[16]float32)(c))
	c1.Store((*[16]float32)(unsafe.Add(c, 64)))
	c2.Store((*[16]float32)(unsafe.Add(c, 128)))
	c3.Store((*[16]float32)(unsafe.Add(c, 192)))
	c4.Store((*[16]float32)(unsafe.Add(c, 256)))
	c5.Store((*[16]float32)(unsafe.Add(c, 320)))
}

func micro6x8d(k int, a, b, c unsafe.Pointer) {
	var c0, c1, c2, c3, c4, c5 archsimd.Float64x8
	for range k {
		row, v := (*[6]float64)(a), archsimd.LoadFloat64x8((*[8]float64)(b))
		c0 = archsimd.BroadcastFloat64x8(row[0]).MulAdd(v, c0)
		c1 = archsimd.BroadcastFloat64x8(row[1]).MulAdd(v, c1)
		c2 = archsimd.BroadcastFloat64x8(row[2]).MulAdd(v, c2)
		c3 = archsimd.BroadcastFloat64x8(row[3]).MulAdd(v, c3)
		c4 = archsimd.BroadcastFloat64x8(row[4]).MulAdd(v, c4)
		c5 = archsimd.BroadcastFloat64x8(row[5]).MulAdd(v, c5)
		a, b = unsafe.Add(a, 48), unsafe.Add(b, 64)
	}
	c0.Store((*[8]float64)(c))
	c1.Store((*[8]float64)(unsafe.Add(c, 64)))
	c2.Store((*[8]float64)(unsafe.Add(c, 128)))
	c3.Store((*[8]float64)(unsafe.Add(c, 192)))
	c4.Store((*[8]float64)(unsafe.Add(c, 256)))
	c5.Store((*[8]float64)(unsafe.Add(c, 320)))
}

func micro6x8(k int, a, b, c unsafe.Pointer) {
	var c0, c1, c2, c3, c4, c5 archsimd.Float32x8
	for range k {
		row, v := (*[6]float32)(a), archsimd.LoadFloat32x8((*[8]float32)(b))
		c0 = archsimd.BroadcastFloat32x8(row[0]).MulAdd(v, c0)
		c1 = archsimd.BroadcastFloat32x8(row[1]).MulAdd(v, c1)
		c2 = archsimd.BroadcastFloat32x8(row[2]).MulAdd(v, c2)
		c3 = archsimd.BroadcastFloat32x8(row[3]).MulAdd(v, c3)
		c4 = archsimd.BroadcastFloat32x8(row[4]).MulAdd(v, c4)
		c5 = archsimd.BroadcastFloat32x8(row[5]).MulAdd(v, c5)
		a, b = unsafe.Add(a, 24), unsafe.Add(b, 32)
	}
	c0.Store((*[8]float32)(c))
	c1.Store((*[8]float32)(unsafe.Add(c, 32)))
	c2.Store((*[8]float32)(unsafe.Add(c, 64)))
	c3.Store((*[8]float32)(unsafe.Add(c, 96)))
	c4.Store((*[8]float32)(unsafe.Add(c, 128)))
	c5.Store((*[8]float32)(unsafe.Add(c, 160)))
}

func micro6x4d(k int, a, b, c unsafe.Pointer) {
	var c0, c1, c2, c3, c4, c5 archsimd.Float64x4
	for range k {
		row, v := (*[6]float64)(a), archsimd.LoadFloat64x4((*[4]float64)(b))
		c0 = archsimd.BroadcastFloat64x4(row[0]).MulAdd(v, c0)
		c1 = archsimd.BroadcastFloat64x4(row[1]).MulAdd(v, c1)
		c2 = archsimd.BroadcastFloat64x4(row[2]).MulAdd(v, c2)
		c3 = archsimd.BroadcastFloat64x4(row[3]).MulAdd(v, c3)
		c4 = archsimd.BroadcastFloat64x4(row[4]).MulAdd(v, c4)
		c5 = archsimd.BroadcastFloat64x4(row[5]).MulAdd(v, c5)
		a, b = unsafe.Add(a, 48), unsafe.Add(b, 32)
	}
	c0.Store((*[4]float64)(c))
	c1.Store((*[4]float64)(unsafe.Add(c, 32)))
	c2.Store((*[4]float64)(unsafe.Add(c, 64)))
	c3.Store((*[4]float64)(unsafe.Add(c, 96)))
	c4.Store((*[4]float64)(unsafe.Add(c, 128)))
	c5.Store((*[4]float64)(unsafe.Add(c, 160)))
}
