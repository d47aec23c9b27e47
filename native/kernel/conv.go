package kernel

import (
	"sync"
	"unsafe"

	"tideline/shared/program"
)

// A convolution is a matrix product once the image is unrolled: one row per
// output position, holding what the window covers there, times the filter,
// which in row-major [kh,kw,ci,co] is a matrix [K,co] already.

// conv is one convolution: its geometry in ints, with K and the rows of one
// sample, and the buffers. It is the work of unrolling and rolling.
type conv[T float] struct {
	program.Window
	n, k, co, rows, image int
	pointwise             bool

	x, cols []T // images and unrolled images of the samples at hand
	rolls   bool
	wt      []T // a filter's gradient transposed; kept between calls
}

var convs32, convs64 sync.Pool

// takeConv gives the convolution of a call.
func takeConv[T float](c *Call) *conv[T] {
	g, _ := poolOf[T](&convs32, &convs64).Get().(*conv[T])
	if g == nil {
		g = new(conv[T])
	}
	g.Window = c.Program.ConvWindow(c.Node)
	w := &g.Window
	g.n, g.k, g.co = int(w.N), int(w.KH*w.KW*w.C), int(w.OutC)
	g.rows, g.image, g.pointwise = int(w.OutH*w.OutW), int(w.H*w.W*w.C), w.Pointwise()
	return g
}

func (g *conv[T]) giveBack() {
	g.x, g.cols = nil, nil
	poolOf[T](&convs32, &convs64).Put(g)
}

// batch is how many samples the workspace holds unrolled; 0 when not one.
func (g *conv[T]) batch(temp []byte) int {
	if g.pointwise {
		return g.n
	}
	var t T
	return min(g.n, len(temp)/int(unsafe.Sizeof(t))/max(1, g.rows*g.k))
}

// columns gives the unrolled images of samples [from, from+count).
func (g *conv[T]) columns(x []T, temp []byte, from, count int) []T {
	images := x[from*g.image:][:count*g.image]
	if g.pointwise {
		return images
	}
	g.x, g.cols, g.rolls = images, elements[T](temp)[:count*g.rows*g.k], false
	// Lines of output positions can be unrolled apart.
	g.share(count * int(g.OutH))
	return g.cols
}

// fold adds unrolled gradients onto the images they belong to. Windows may
// overlap, so only whole images can be rolled apart.
func (g *conv[T]) fold(dx, cols []T, count int) {
	g.x, g.cols, g.rolls = dx, cols, true
	g.share(count)
}

func (g *conv[T]) share(units int) {
	if units < 2 || len(g.cols) < 1<<14 {
		g.do(0, units)
		return
	}
	takeJob().split(g, units, max(1, units*(1<<13)/len(g.cols)))
}

// do implements work.
func (g *conv[T]) do(from, to int) {
	for u := from; u < to; u++ {
		if g.rolls {
			g.roll(g.x[u*g.image:][:g.image], g.cols[u*g.rows*g.k:][:g.rows*g.k])
			continue
		}
		line := int(g.OutW) * g.k
		s, oh := u/int(g.OutH), int64(u%int(g.OutH))
		g.unroll(g.cols[u*line:][:line], g.x[s*g.image:][:g.image], oh)
	}
}

// span gives, for an output row or column at position o, the part [lo,hi) of
// the window that lies on an image of the given size, and where it begins.
func span(o, stride, pad, k, size int64) (start, lo, hi int64) {
	start = o*stride - pad
	return start, max(0, -start), min(k, size-start)
}

// unroll writes what the windows of one line of output positions cover; zeros
// stand for padding.
func (g *conv[T]) unroll(dst, x []T, oh int64) {
	width := int(g.KW * g.C)
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

// roll adds the rows of a matrix back onto the image they came from.
func (g *conv[T]) roll(x, src []T) {
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

func conv2D[T float](c *Call, _, _ int) {
	g := takeConv[T](c)
	defer g.giveBack()
	x, w, y := in[T](c, 0), in[T](c, 1), out[T](c, 0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { y[out] += x[img] * w[f] }, y)
		return
	}
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		cols := g.columns(x, c.Temp, s, count)
		gemm(1, false, false, count*g.rows, g.co, g.k, cols, w, y[s*g.rows*g.co:], false)
	}
}

// shortRow is the channels below which a filter counts as narrow.
const shortRow = 32

func conv2DBackpropFilter[T float](c *Call, _, _ int) {
	g := takeConv[T](c)
	defer g.giveBack()
	x, dy, dw := in[T](c, 0), in[T](c, 1), out[T](c, 0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { dw[f] += x[img] * dy[out] }, dw)
		return
	}
	// Where the filter's rows are short, its transpose has the longer ones.
	short := g.co < shortRow && g.co < g.k
	if short && cap(g.wt) < len(dw) {
		g.wt = make([]T, len(dw))
	}
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		cols, dys := g.columns(x, c.Temp, s, count), dy[s*g.rows*g.co:]
		if short {
			gemm(1, true, false, g.co, g.k, count*g.rows, dys, cols, g.wt[:len(dw)], s > 0)
		} else {
			gemm(1, true, false, g.k, g.co, count*g.rows, cols, dys, dw, s > 0)
		}
	}
	if short {
		transpose(dw, g.wt[:len(dw)], g.co, g.k)
	}
}

func conv2DBackpropInput[T float](c *Call, _, _ int) {
	g := takeConv[T](c)
	defer g.giveBack()
	w, dy, dx := in[T](c, 0), in[T](c, 1), out[T](c, 0)
	per := g.batch(c.Temp)
	if per == 0 {
		g.direct(func(img, out, f int) { dx[img] += dy[out] * w[f] }, dx)
		return
	}
	if g.pointwise {
		gemm(1, false, true, g.n*g.rows, g.k, g.co, dy, w, dx, false)
		return
	}
	clear(dx)
	cols := elements[T](c.Temp)
	for s := 0; s < g.n; s += per {
		count := min(per, g.n-s)
		some := cols[:count*g.rows*g.k]
		gemm(1, false, true, count*g.rows, g.k, g.co, dy[s*g.rows*g.co:], w, some, false)
		g.fold(dx[s*g.image:][:count*g.image], some, count)
	}
}

// direct calls f for every multiply-add of the convolution, with the indexes
// of image, output and filter, after clearing dst. It needs no workspace.
func (g *conv[T]) direct(f func(img, out, filter int), dst []T) {
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
func (g *conv[T]) point(f func(img, out, filter int), img, out, fil int) {
	for ci := range int(g.C) {
		for co := range g.co {
			f(img+ci, out+co, fil+ci*g.co+co)
		}
	}
}

// transpose writes the r x c matrix src into dst as c x r.
func transpose[T float](dst, src []T, r, c int) {
	for i := range r {
		for j, v := range src[i*c : (i+1)*c] {
			dst[j*r+i] = v
		}
	}
}
