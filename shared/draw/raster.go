package draw

import "encoding/binary"

// pixel is a color as it lies in memory, red first.
type pixel uint32

func (c Color) pixel() pixel {
	return pixel(c[0]) | pixel(c[1])<<8 | pixel(c[2])<<16 | pixel(c[3])<<24
}

// mix is p with q over it at weight a, 0 to 256. The result is opaque.
func mix(p, q pixel, a uint32) pixel {
	// Two channels at a time: each has eight bits to spare above it.
	b := 256 - a
	rb := (uint32(p)&0xff00ff*b + uint32(q)&0xff00ff*a) >> 8 & 0xff00ff
	g := (uint32(p)>>8&0xff*b + uint32(q)>>8&0xff*a) & 0xff00
	return pixel(rb | g | 0xff000000)
}

// Mix is c with d over it, a from 0 to 1.
func (c Color) Mix(d Color, a float64) Color {
	p := mix(c.pixel(), d.pixel(), uint32(a*256+0.5))
	return Color{byte(p), byte(p >> 8), byte(p >> 16), 255}
}

// canvas is the part of an image that a lane may draw in. Coordinates are the
// lane's own; what lies outside is cut off.
type canvas struct {
	pix    []byte
	w, h   int
	stride int
	x0, x1 int // the columns that may be painted: all, or a piece of them
}

func (img *Image) canvas(r Rect) canvas {
	x0, y0 := max(r.X, 0), max(r.Y, 0)
	x1, y1 := min(r.X+r.W, img.W), min(r.Y+r.H, img.H)
	if x1 <= x0 || y1 <= y0 {
		return canvas{}
	}
	return canvas{img.Pix[y0*img.Stride+4*x0:], x1 - x0, y1 - y0, img.Stride, 0, x1 - x0}
}

// near reports whether something that reaches as far as that on either side of
// column x can be seen.
func (c *canvas) near(x, reach int) bool { return x >= c.x0-reach && x < c.x1+reach }

func (c *canvas) set(x, y int, p pixel) {
	binary.LittleEndian.PutUint32(c.pix[y*c.stride+4*x:], uint32(p))
}

func (c *canvas) get(x, y int) pixel {
	return pixel(binary.LittleEndian.Uint32(c.pix[y*c.stride+4*x:]))
}

func (c *canvas) blend(x, y int, p pixel, a uint32) {
	if uint(x-c.x0) < uint(c.x1-c.x0) && uint(y) < uint(c.h) {
		c.set(x, y, mix(c.get(x, y), p, a))
	}
}

// rect fills [x0,x1) x [y0,y1).
func (c *canvas) rect(x0, y0, x1, y1 int, p pixel) {
	x0, y0, x1, y1 = max(x0, c.x0), max(y0, 0), min(x1, c.x1), min(y1, c.h)
	if x1 <= x0 || y1 <= y0 {
		return
	}
	if x1-x0 < 8 {
		for y := y0; y < y1; y++ {
			row := c.pix[y*c.stride+4*x0 : y*c.stride+4*x1]
			for len(row) >= 4 {
				binary.LittleEndian.PutUint32(row, uint32(p))
				row = row[4:]
			}
		}
		return
	}
	first := c.pix[y0*c.stride+4*x0 : y0*c.stride+4*x1]
	binary.LittleEndian.PutUint32(first, uint32(p))
	for n := 4; n < len(first); n *= 2 {
		copy(first[n:], first[:n])
	}
	for y := y0 + 1; y < y1; y++ {
		copy(c.pix[y*c.stride+4*x0:], first)
	}
}

// shade blends [x0,x1) x [y0,y1) with weight a, 0 to 256.
func (c *canvas) shade(x0, y0, x1, y1 int, p pixel, a uint32) {
	x0, y0, x1, y1 = max(x0, c.x0), max(y0, 0), min(x1, c.x1), min(y1, c.h)
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			c.set(x, y, mix(c.get(x, y), p, a))
		}
	}
}

// column fills rows [y0,y1) of one column.
func (c *canvas) column(x, y0, y1 int, p pixel) {
	y0, y1 = max(y0, 0), min(y1, c.h)
	if uint(x-c.x0) >= uint(c.x1-c.x0) {
		return
	}
	for o := y0*c.stride + 4*x; y0 < y1; y0++ {
		binary.LittleEndian.PutUint32(c.pix[o:], uint32(p))
		o += c.stride
	}
}

// hatch draws diagonal lines over rows [y0,y1) of one column. phase is
// the column's place in the pattern: its x in the lane.
func (c *canvas) hatch(x, phase, y0, y1, period int, p pixel, a uint32) {
	y0, y1 = max(y0, 0), min(y1, c.h)
	if uint(x-c.x0) >= uint(c.x1-c.x0) || period <= 0 {
		return
	}
	// The lines rise to the right: phase+y is constant along one.
	for y := y0 + (period-(phase+y0)%period)%period; y < y1; y += period {
		c.set(x, y, mix(c.get(x, y), p, a))
	}
}

// dashes draws a horizontal line of dashes; phase is the place of column 0 in
// the pattern.
func (c *canvas) dashes(phase, y, thick, on, off int, p pixel) {
	for x := c.x0 - (phase+c.x0)%(on+off); x < c.x1; x += on + off {
		c.rect(x, y, x+on, y+thick, p)
	}
}

// triangle draws one that points down, its tip at (x, y), as high as size.
func (c *canvas) triangle(x, y, size int, p pixel) {
	for i := range size {
		half := i * 2 / 3
		c.rect(x-half, y-i-1, x+half+1, y-i, p)
	}
}

// disc draws a filled circle with soft edges.
func (c *canvas) disc(cx, cy, r float64, p pixel) {
	for y := int(cy - r - 1); y <= int(cy+r+1); y++ {
		for x := int(cx - r - 1); x <= int(cx+r+1); x++ {
			dx, dy := float64(x)+0.5-cx, float64(y)+0.5-cy
			d := float64(dx*dx) + float64(dy*dy)
			switch in, out := (r-0.5)*(r-0.5), (r+0.5)*(r+0.5); {
			case d <= in:
				c.blend(x, y, p, 256)
			case d < out:
				c.blend(x, y, p, uint32(256*(out-d)/(out-in)))
			}
		}
	}
}
