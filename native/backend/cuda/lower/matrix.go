package lower

import (
	"tideline/native/backend/cuda/ptx"
	"tideline/shared/program"
)

// gemm orders a product of matrices.
func (l *Lowering) gemm(g Gemm) {
	if g.M == 0 || g.N == 0 {
		return
	}
	if g.K == 0 {
		if !g.Accumulate {
			l.zero(g.C, g.M*g.N)
		}
		return
	}
	for _, n := range []int64{g.M * g.K, g.K * g.N, g.M * g.N} {
		l.count(n)
	}
	sai, sap := g.K, int64(1)
	if g.TransA {
		sai, sap = 1, g.M
	}
	sbp, sbj := g.N, int64(1)
	if g.TransB {
		sbp, sbj = 1, g.K
	}
	var acc uint64
	if g.Accumulate {
		acc = 1
	}
	c := l.command(Product, "tl_gemm", g.A, g.B, g.C, uint64(g.M), uint64(g.N), uint64(g.K),
		uint64(sai), uint64(sap), uint64(sbp), uint64(sbj), acc)
	c.Gemm = g
	c.Grid = [2]uint32{uint32((g.M + ptx.Tile - 1) / ptx.Tile), uint32((g.N + ptx.Tile - 1) / ptx.Tile)}
	c.Block = [2]uint32{ptx.Tile, ptx.Tile}
}

// ProductOf is the command for one product.
func ProductOf(g Gemm) Command {
	var l Lowering
	l.gemm(g)
	return l.out[0]
}

func (l *Lowering) matMul() {
	at, x, y := &l.k.Node.Attrs, l.inValue(0), l.outValue(0)
	if !l.floats(x) {
		return
	}
	k := x.Shape[1]
	if at.TransposeA {
		k = x.Shape[0]
	}
	l.gemm(Gemm{
		A: l.in(0), B: l.in(1), C: l.out1(0), M: y.Shape[0], N: y.Shape[1], K: k,
		TransA: at.TransposeA, TransB: at.TransposeB,
	})
}

// conv is the geometry of a convolution as a product: K elements under the
// window, rows output positions a sample.
type conv struct {
	program.Window
	k, rows, image int64
	per            int64 // samples that the workspace holds unrolled; 0 when not one
	work           uint64
}

const floatBytes = 4

func (l *Lowering) conv() conv {
	w := l.k.Program.ConvWindow(l.k.Node)
	c := conv{Window: w, k: w.KH * w.KW * w.C, rows: w.OutH * w.OutW, image: w.H * w.W * w.C}
	switch {
	case w.Pointwise():
		c.per = w.N
	case l.k.Workspace.Bytes > 0:
		c.work = l.address(l.k.Workspace)
		c.per = min(w.N, l.k.Workspace.Bytes/floatBytes/max(1, c.rows*c.k))
	}
	return c
}

// geometry are the window's arguments, in the order of ptx.WindowParams.
func geometry(w *program.Window) []uint64 {
	out := make([]uint64, 0, len(ptx.WindowParams))
	for _, n := range []int64{w.H, w.W, w.C, w.OutH, w.OutW, w.KH, w.KW, w.SH, w.SW, w.PadTop, w.PadLeft} {
		out = append(out, uint64(n))
	}
	return out
}

func (c *conv) args(first ...uint64) []uint64 { return append(first, geometry(&c.Window)...) }

// columns gives the address of the unrolled images of count samples from one
// on, after ordering that they be unrolled.
func (l *Lowering) columns(c *conv, x uint64, from, count int64) uint64 {
	x += uint64(from * c.image * floatBytes)
	if c.Pointwise() {
		return x
	}
	n := count * c.rows * c.k
	l.launch("tl_im2col", n, c.args(x, c.work, l.count(n))...)
	return c.work
}

// batches calls f for as many samples at a time as the workspace holds.
func (c *conv) batches(f func(from, count int64)) {
	for s := int64(0); s < c.N; s += c.per {
		f(s, min(c.per, c.N-s))
	}
}

func (l *Lowering) conv2D() {
	c := l.conv()
	if !l.floats(l.inValue(0)) {
		return
	}
	x, w, y := l.in(0), l.in(1), l.out1(0)
	if c.per == 0 {
		n := c.N * c.rows * c.OutC
		l.launch("tl_conv", n, append(c.args(x, w, y, l.count(n)), uint64(c.OutC))...)
		return
	}
	c.batches(func(s, count int64) {
		cols := l.columns(&c, x, s, count)
		l.gemm(Gemm{A: cols, B: w, C: y + uint64(s*c.rows*c.OutC*floatBytes), M: count * c.rows, N: c.OutC, K: c.k})
	})
}

func (l *Lowering) conv2DFilter() {
	c := l.conv()
	if !l.floats(l.inValue(0)) {
		return
	}
	x, dy, dw := l.in(0), l.in(1), l.out1(0)
	if c.per == 0 {
		n := c.k * c.OutC
		l.launch("tl_conv_dw", n, append(c.args(x, dy, dw, l.count(n), uint64(c.N)), uint64(c.OutC))...)
		return
	}
	c.batches(func(s, count int64) {
		cols := l.columns(&c, x, s, count)
		l.gemm(Gemm{
			A: cols, B: dy + uint64(s*c.rows*c.OutC*floatBytes), C: dw, M: c.k, N: c.OutC, K: count * c.rows,
			TransA: true, Accumulate: s > 0,
		})
	})
}

func (l *Lowering) conv2DInput() {
	c := l.conv()
	if !l.floats(l.inValue(0)) {
		return
	}
	w, dy, dx := l.in(0), l.in(1), l.out1(0)
	if c.per == 0 {
		n := c.N * c.image
		l.launch("tl_conv_dx", n, append(c.args(w, dy, dx, l.count(n)), uint64(c.OutC))...)
		return
	}
	if c.Pointwise() {
		l.gemm(Gemm{A: dy, B: w, C: dx, M: c.N * c.rows, N: c.k, K: c.OutC, TransB: true})
		return
	}
	c.batches(func(s, count int64) {
		l.gemm(Gemm{
			A: dy + uint64(s*c.rows*c.OutC*floatBytes), B: w, C: c.work, M: count * c.rows, N: c.k, K: c.OutC, TransB: true,
		})
		n := count * c.image
		l.launch("tl_col2im", n, c.args(c.work, dx+uint64(s*c.image*floatBytes), l.count(n))...)
	})
}

func pool(name string) fn {
	return func(l *Lowering) {
		w := l.k.Program.PoolWindow(l.k.Node)
		if !l.floats(l.inValue(0)) {
			return
		}
		n := l.outValue(0).Shape.Elements()
		l.launch(name, n, append([]uint64{l.in(0), l.out1(0), l.count(n)}, geometry(&w)...)...)
	}
}

func (l *Lowering) avgPoolGrad() { pool("tl_avgpool_grad")(l) }

func (l *Lowering) maxPoolGrad() {
	w := l.k.Program.PoolWindow(l.k.Node)
	if !l.floats(l.inValue(0)) {
		return
	}
	n := l.outValue(0).Shape.Elements()
	l.launch("tl_maxpool_grad", n, append([]uint64{l.in(0), l.in(2), l.out1(0), l.count(n)}, geometry(&w)...)...)
}
