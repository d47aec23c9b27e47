package draw

import "encoding/binary"

// stripWidth is how many columns are painted together: enough that the rows of
// a strip are whole cache lines, few enough that the cache holds all of it.
const stripWidth = 32

const stripStride = 4 * stripWidth

// strip is a canvas of a few columns in a small buffer. Painting columns
// straight into a picture would touch a new cache line, and soon a new page,
// with every pixel.
type strip struct {
	canvas
	buf []byte
	x   int // of its first column
}

// take makes s the strip of c that begins at column x and ends before end, with
// what c shows there.
func (s *strip) take(c *canvas, x, end int) {
	s.buf = grown(s.buf, c.h*stripStride)
	n := min(stripWidth, end-x)
	s.canvas, s.x = canvas{s.buf, n, c.h, stripStride, 0, n}, x
	for y := range c.h {
		copy(s.buf[y*stripStride:y*stripStride+4*s.w], c.pix[y*c.stride+4*x:])
	}
}

// fill makes s the strip of c that begins at column x and ends before end, in
// one colour.
func (s *strip) fill(c *canvas, x, end int, p pixel) {
	s.buf = grown(s.buf, c.h*stripStride)
	n := min(stripWidth, end-x)
	s.canvas, s.x = canvas{s.buf, n, c.h, stripStride, 0, n}, x
	binary.LittleEndian.PutUint32(s.buf, uint32(p))
	for k := 4; k < len(s.buf); k *= 2 {
		copy(s.buf[k:], s.buf[:k])
	}
}

// put brings the strip back into c.
func (s *strip) put(c *canvas) {
	for y := range c.h {
		copy(c.pix[y*c.stride+4*s.x:], s.buf[y*stripStride:y*stripStride+4*s.w])
	}
}

// column fills rows [y0,y1) of column x. It takes eight rows at a time: a
// loop's own work is most of it, above all in WebAssembly.
func (s *strip) column(x, y0, y1 int, p pixel) {
	y0, y1 = max(y0, 0), min(y1, s.h)
	if uint(x) >= uint(s.w) || y1 <= y0 {
		return
	}
	b := s.buf[y0*stripStride+4*x:]
	for ; y1-y0 > 8; y0 += 8 {
		d := (*[7*stripStride + 4]byte)(b)
		binary.LittleEndian.PutUint32(d[0*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[1*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[2*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[3*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[4*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[5*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[6*stripStride:], uint32(p))
		binary.LittleEndian.PutUint32(d[7*stripStride:], uint32(p))
		b = b[8*stripStride:]
	}
	for ; y0 < y1; y0++ {
		binary.LittleEndian.PutUint32(b, uint32(p))
		if y0+1 < y1 {
			b = b[stripStride:]
		}
	}
}
