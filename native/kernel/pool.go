package kernel

import "tideline/shared/program"

// eachWindow calls f for every output position and sample with the index of
// the position's first channel and the part of the image under the window.
func eachWindow(w *program.Window, f func(out int64, r rect)) {
	for s := range w.N {
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

// avgPool divides by the number of elements on the image: padding does not
// count.
func avgPool(c *Call) error {
	x, y, w := c.in(0), c.out(0), c.Program.PoolWindow(c.Node)
	eachWindow(&w, func(out int64, r rect) {
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
		scale := 1 / float32(r.rows*(r.width/w.C))
		for i := range dst {
			dst[i] *= scale
		}
	})
	return nil
}

func avgPoolGrad(c *Call) error {
	dy, dx, w := c.in(0), c.out(0), c.Program.PoolWindow(c.Node)
	clear(dx)
	eachWindow(&w, func(out int64, r rect) {
		src := dy[out:][:w.C]
		scale := 1 / float32(r.rows*(r.width/w.C))
		for h := range r.rows {
			row := dx[r.first+h*r.line:][:r.width]
			for ; len(row) >= len(src); row = row[len(src):] {
				for i, g := range src {
					row[i] += g * scale
				}
			}
		}
	})
	return nil
}

func maxPool(c *Call) error {
	x, y, w := c.in(0), c.out(0), c.Program.PoolWindow(c.Node)
	eachWindow(&w, func(out int64, r rect) {
		for ch := range w.C {
			y[out+ch] = x[largest(x, r, ch, w.C)]
		}
	})
	return nil
}

// maxPoolGrad gives the gradient to the first of equal maxima.
func maxPoolGrad(c *Call) error {
	x, dy, dx, w := c.in(0), c.in(2), c.out(0), c.Program.PoolWindow(c.Node)
	clear(dx)
	eachWindow(&w, func(out int64, r rect) {
		for ch := range w.C {
			dx[largest(x, r, ch, w.C)] += dy[out+ch]
		}
	})
	return nil
}

// largest is the index of the first maximum of channel ch in r.
func largest(x []float32, r rect, ch, channels int64) int64 {
	best := r.first + ch
	for h := range r.rows {
		line := r.first + h*r.line
		for i := line + ch; i < line+r.width; i += channels {
			if x[i] > x[best] {
				best = i
			}
		}
	}
	return best
}
