package draw

import (
	"bytes"
	"encoding/binary"
)

// stretcher makes the picture of one window that of another: what a view shows
// until its own columns are drawn.
type stretcher struct {
	source []uint32 // column -> the byte of a row at which its pixel lay
	runs   []run    // the same, as pieces that move as one
	line   []byte   // a row as it was, and one pixel for where nothing was
	old    [2]int64 // the windows and the width that source is for
	new    [2]int64
	w      int
}

// run is n bytes of a row that came from somewhere else in it.
type run struct{ to, from, n uint32 }

// stretch makes a picture of the old view one of the new view, as far as it
// goes.
func (r *Renderer) stretch(c *canvas, old, v *View) {
	n := 4 * c.w
	r.follow(old, v, c.w)
	r.line = grown(r.line, n+4)
	binary.LittleEndian.PutUint32(r.line[n:], uint32(r.palette.lane))
	var above []byte
	for y := range c.h {
		row := c.pix[y*c.stride : y*c.stride+n]
		switch {
		case above != nil && bytes.Equal(row, r.line[:n]):
			copy(row, above) // most rows of spans are like the one above
		case len(r.runs) > c.w/3:
			copy(r.line, row)
			gather(row, r.line, r.source)
		default:
			copy(r.line, row)
			for i := range r.runs {
				m := &r.runs[i]
				copy(row[m.to:m.to+m.n], r.line[m.from:])
			}
		}
		above = row
	}
}

// follow finds where each column of v lay in the old view: once for all lanes.
func (s *stretcher) follow(old, v *View, w int) {
	from, to := [2]int64{old.T0, old.T1}, [2]int64{v.T0, v.T1}
	if s.old == from && s.new == to && s.w == w {
		return
	}
	s.old, s.new, s.w = from, to, w
	s.source = grown(s.source, w)
	s.runs = s.runs[:0]
	for x := range s.source {
		from := old.x(v.TimeAt(x))
		if uint(from) >= uint(w) {
			from = w // nothing was there
		}
		s.source[x] = uint32(4 * from)
		if n := len(s.runs); n > 0 && s.runs[n-1].from+s.runs[n-1].n == uint32(4*from) {
			s.runs[n-1].n += 4
		} else {
			s.runs = append(s.runs, run{uint32(4 * x), uint32(4 * from), 4})
		}
	}
}

// gather makes the pixels of dst those that lie at the places from of src. It
// takes eight at a time: a loop's own work is most of it, above all in
// WebAssembly.
func gather(dst, src []byte, from []uint32) {
	for ; len(from) >= 8 && len(dst) >= 32; dst, from = dst[32:], from[8:] {
		f, d := (*[8]uint32)(from), (*[32]byte)(dst)
		binary.LittleEndian.PutUint32(d[0:4], binary.LittleEndian.Uint32(src[f[0]:]))
		binary.LittleEndian.PutUint32(d[4:8], binary.LittleEndian.Uint32(src[f[1]:]))
		binary.LittleEndian.PutUint32(d[8:12], binary.LittleEndian.Uint32(src[f[2]:]))
		binary.LittleEndian.PutUint32(d[12:16], binary.LittleEndian.Uint32(src[f[3]:]))
		binary.LittleEndian.PutUint32(d[16:20], binary.LittleEndian.Uint32(src[f[4]:]))
		binary.LittleEndian.PutUint32(d[20:24], binary.LittleEndian.Uint32(src[f[5]:]))
		binary.LittleEndian.PutUint32(d[24:28], binary.LittleEndian.Uint32(src[f[6]:]))
		binary.LittleEndian.PutUint32(d[28:32], binary.LittleEndian.Uint32(src[f[7]:]))
	}
	for i, x := range from {
		copy(dst[4*i:4*i+4], src[x:x+4])
	}
}
