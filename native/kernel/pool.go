package kernel

import "tideline/shared/program"

// eachWindow calls f for every output position of samples [from,to) with the
// index of the position's first channel and the part of the image under the
// window.
func eachWindow(w *program.Window, from, to int, f func(out int64, r rect)) {
	for s := int64(from); s < int64(to); s++ {
		for oh := range w.OutH {
			h0, hlo, hhi := span(oh, w.SH, w.PadTop, w.KH, w.H)
			for ow := range w.OutW {
				w0, wlo, whi := span(ow, w.SW, w.PadLeft, w.KW, w.W)
				f(((s*w.OutH+oh)*w.OutW+ow)*w.C, rect{
					first: ((s*w.H+h0+hlo)*w.W + w0 + wlo) * w.C, line: w.W * w.C,
					rows: hhi - hlo, width: (whi - wlo) * w.C,
				})
			}
		}
	}
}

// rect is a piece of an image: rows of width elements, line apart.
type rect struct{ first, line, rows, width int64 }

// samples is the number of images: windows overlap within one only.
func samples(c *Call) int {
	w := c.Program.PoolWindow(c.Node)
	return int(w.N)
}

// avgPool divides by the number of elements on the image: padding does not
// count.
func avgPool[T float](c *Call, from, to int) {
	x, y, w := in[T](c, 0), out[T](c, 0), c.Program.PoolWindow(c.Node)
	eachWindow(&w, from, to, func(out int64, r rect) {
		dst := y[out:][:w.C]
		clear(dst)
		for h := range r.rows {
			row := x[r.first+h*r.line:][:r.width]
			for ; len(row) >= len(dst); row = row[len(dst):] {
				for i := range dst {
					dst[i] += row[i]
				}
			}
		}
		scale := 1 / T(r.rows*(r.width/w.C))
		for i := range dst {
			dst[i] *= scale
		}
	})
}

func avgPoolGrad[T float](c *Call, from, to int) {
	dy, dx, w := in[T](c, 0), out[T](c, 0), c.Program.PoolWindow(c.Node)
	clear(dx[int64(from)*w.H*w.W*w.C : int64(to)*w.H*w.W*w.C])
	eachWindow(&w, from, to, func(out int64, r rect) {
		src := dy[out:][:w.C]
		scale := 1 / T(r.rows*(r.width/w.C))
		for h := range r.rows {
			row := dx[r.first+h*r.line:][:r.width]
			for ; len(row) >= len(src); row = row[len(src):] {
				for i, g := range src {
					row[i] += g * scale
				}
			}
		}
	})
}

// maxPool lets a NaN win.
func maxPool[T float](c *Call, from, to int) {
	x, y, w := in[T](c, 0), out[T](c, 0), c.Program.PoolWindow(c.Node)
	eachWindow(&w, from, to, func(out int64, r rect) {
		dst := y[out:][:w.C]
		copy(dst, x[r.first:])
		for h := range r.rows {
			row := x[r.first+h*r.line:][:r.width]
			for ; len(row) >= len(dst); row = row[len(dst):] {
				for i, v := range row[:len(dst)] {
					if above(v, dst[i]) {
						dst[i] = v
					}
				}
			}
		}
	})
}

// maxPoolGrad gives the gradient to the first of equal maxima, or to the first
// NaN.
func maxPoolGrad[T float](c *Call, from, to int) {
	x, dy, dx, w := in[T](c, 0), in[T](c, 2), out[T](c, 0), c.Program.PoolWindow(c.Node)
	clear(dx[int64(from)*w.H*w.W*w.C : int64(to)*w.H*w.W*w.C])
	eachWindow(&w, from, to, func(out int64, r rect) {
		for ch := range w.C {
			dx[largestUnder(x, r, ch, w.C)] += dy[out+ch]
		}
	})
}

// largestUnder is the index of the first maximum of channel ch in r.
func largestUnder[T float](x []T, r rect, ch, channels int64) int64 {
	best := r.first + ch
	for h := range r.rows {
		line := r.first + h*r.line
		for i := line + ch; i < line+r.width; i += channels {
			if above(x[i], x[best]) {
				best = i
			}
		}
	}
	return best
}
