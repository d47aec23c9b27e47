package kernel

import (
	"sync"

	"tideline/shared/program"
)

// A convolution is a matrix product once the image is unrolled: one row per
// output position, holding what the window covers there. In row-major NHWC a
// filter [kh,kw,ci,co] is a matrix [K,co]; all products here work on its
// transpose [co,K], because K is long where co is short in the first layers,
// and the inner loops of the product run along the last dimension.

// scratch holds transposed filters between calls.
var scratch = sync.Pool{New: func() any { return new([]float32) }}

func borrow(n int) *[]float32 {
	s := scratch.Get().(*[]float32)
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	*s = (*s)[:n]
	return s
}

// conv is the geometry of one convolution in ints, with K and the rows of one
// sample.
type conv struct {
	program.Window
	n, k, co, rows, image int
	pointwise             bool
}

func newConv(c *Call) conv {
	w := c.Program.ConvWindow(c.Node)
	return conv{
		Window: w, n: int(w.N), k: int(w.KH * w.KW * w.C), co: int(w.OutC),
		rows: int(w.OutH * w.OutW), image: int(w.H * w.W * w.C), pointwise: w.Pointwise(),
	}
}

// batch is how many samples the workspace holds unrolled; 0 when not one.
func (g *conv) batch(temp []byte) int {
	if g.pointwise {
		return g.n
	}
	return min(g.n, len(temp)/4/max(1, g.rows*g.k))
}

// columns gives the unrolled images of samples [from, from+count).
func (g *conv) columns(x []float32, temp []byte, from, count int) []float32 {
	if g.pointwise {
		return x[from*g.image:][:count*g.image]
	}
	cols := elements[float32](temp)
	for s := range count {
		g.unroll(cols[s*g.rows*g.k:][:g.rows*g.k], x[(from+s)*g.image:][:g.image])
	}
	return cols[:count*g.rows*g.k]
}

// span gives, for an output row or column at position o, the part [lo,hi) of
// the window that lies on an image of the given size, and where it begins.
func span(o, stride, pad, k, size int64) (start, lo, hi int64) {
	start = o*stride - pad
	return start, max(0, -start), min(k, size-start)
}

// unroll writes one image into the rows of a matrix; zeros stand for padding.
func (g *conv) unroll(dst, x []float32) {
	width := int(g.KW * g.C)
	for oh := range g.OutH {
		h0, hlo, hhi := span(oh, g.SH, g.PadTop, g.KH, g.H)
		for ow := range g.OutW {
			w0, wlo, whi := span(ow, g.SW, g.PadLeft, g.KW, g.W)
			row := dst[:g.k]
			dst = dst[g.k:]
			if hlo > 0 || hhi < g.KH || wlo > 0 || whi < g.KW {
				clear(row)
			}
			for h := hlo; h < hhi; h++ {
				src := x[((h0+h)*g.W+w0+wlo)*g.C : ((h0+h)*g.W+w0+whi)*g.C]
				copy(row[int(h)*width+int(wlo*g.C):], src)
			}
		}
	}
}

// roll adds the rows of a matrix back onto the image they came from.
func (g *conv) roll(x, src []float32) {
	width := int(g.KW * g.C)
	for oh := range g.OutH {
		h0, hlo, hhi := span(oh, g.SH, g.PadTop, g.KH, g.H)
		for ow := range g.OutW {
			w0, wlo, whi := span(ow, g.SW, g.PadLeft, g.KW, g.W)
			row := src[:g.k]
			src = src[g.k:]
			for h := hlo; h < hhi; h++ {
				dst := x[((h0+h)*g.W+w0+wlo)*g.C : ((h0+h)*g.W+w0+whi)*g.C]
				from := row[int(h)*width+int(wlo*g.C):][:len(dst)]
				for i, v := range from {
					dst[i] += v
				}
			}
		}
	}
}

func conv2D(c *Call) error {
	g := newConv(c)
	x, w, y := c.in(0), c.in(1), c.out(0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { y[out] += x[img] * w[f] }, y)
		return nil
	}
	wt := borrow(len(w))
	defer scratch.Put(wt)
	transpose(*wt, w, g.k, g.co)
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		cols := g.columns(x, c.Temp, s, count)
		gemm(false, true, count*g.rows, g.co, g.k, cols, *wt, y[s*g.rows*g.co:], false)
	}
	return nil
}

func conv2DBackpropFilter(c *Call) error {
	g := newConv(c)
	x, dy, dw := c.in(0), c.in(1), c.out(0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { dw[f] += x[img] * dy[out] }, dw)
		return nil
	}
	dwt := borrow(len(dw))
	defer scratch.Put(dwt)
	clear(*dwt)
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		cols := g.columns(x, c.Temp, s, count)
		gemm(true, false, g.co, g.k, count*g.rows, dy[s*g.rows*g.co:], cols, *dwt, s > 0)
	}
	transpose(dw, *dwt, g.co, g.k)
	return nil
}

func conv2DBackpropInput(c *Call) error {
	g := newConv(c)
	w, dy, dx := c.in(0), c.in(1), c.out(0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { dx[img] += dy[out] * w[f] }, dx)
		return nil
	}
	wt := borrow(len(w))
	defer scratch.Put(wt)
	transpose(*wt, w, g.k, g.co)
	if g.pointwise {
		gemm(false, false, g.n*g.rows, g.k, g.co, dy, *wt, dx, false)
		return nil
	}
	clear(dx)
	cols := elements[float32](c.Temp)
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		gemm(false, false, count*g.rows, g.k, g.co, dy[s*g.rows*g.co:], *wt, cols, false)
		for i := range count {
			g.roll(dx[(s+i)*g.image:][:g.image], cols[i*g.rows*g.k:])
		}
	}
	return nil
}

// direct calls f for every multiply-add of the convolution, with the indexes
// of image, output and filter, after clearing dst. It needs no workspace.
func (g *conv) direct(f func(img, out, filter int), dst []float32) {
	clear(dst)
	for s := range g.n {
		for oh := range g.OutH {
			h0, hlo, hhi := span(oh, g.SH, g.PadTop, g.KH, g.H)
			for ow := range g.OutW {
				w0, wlo, whi := span(ow, g.SW, g.PadLeft, g.KW, g.W)
				out := (s*g.rows + int(oh*g.OutW+ow)) * g.co
				for h := hlo; h < hhi; h++ {
					for w := wlo; w < whi; w++ {
						img := s*g.image + int(((h0+h)*g.W+w0+w)*g.C)
						fil := int((h*g.KW+w)*g.C) * g.co
						g.point(f, img, out, fil)
					}
				}
			}
		}
	}
}

// point pairs all channels in with all channels out under one window element.
func (g *conv) point(f func(img, out, filter int), img, out, fil int) {
	for ci := range int(g.C) {
		for co := range g.co {
			f(img+ci, out+co, fil+ci*g.co+co)
		}
	}
}
