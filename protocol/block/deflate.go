package block

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
)

// deflater compresses payloads one after the other with the same buffers.
type deflater struct {
	w     *flate.Writer
	level int
	out   appender
}

// appender is a byte slice that can be written to.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) { a.b = append(a.b, p...); return len(p), nil }

// compress appends the compressed form of raw to dst. It reports false, and
// leaves dst as it was, when that would not be shorter.
func (d *deflater) compress(dst, raw []byte, level int) ([]byte, bool) {
	d.out.b = dst
	if d.w == nil || d.level != level {
		w, err := flate.NewWriter(&d.out, level)
		if err != nil {
			return dst, false // no such level: stored as it is
		}
		d.w, d.level = w, level
	} else {
		d.w.Reset(&d.out)
	}
	_, err1 := d.w.Write(raw) // an appender does not fail
	err2 := d.w.Close()
	out := d.out.b
	d.out.b = nil
	if err1 != nil || err2 != nil || len(out)-len(dst) >= len(raw) {
		return dst, false
	}
	return out, true
}

// finish completes the header, and appends it and the payload to dst.
func finish(dst []byte, h *Header, raw []byte, d *deflater, level int) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	small := false
	if level != 0 {
		dst, small = d.compress(dst, raw, level)
	}
	if small {
		h.Flags |= Deflated
	} else {
		dst = append(dst, raw...)
	}
	h.Raw = uint32(len(raw))
	h.Stored = uint32(len(dst) - at - HeaderSize)
	h.Checksum = Checksum(dst[at+HeaderSize:])
	h.put(dst[at:])
	return dst
}

// inflater decompresses payloads one after the other with the same buffers.
type inflater struct {
	r   io.ReadCloser
	src bytes.Reader
	buf []byte
}

// inflate returns the raw payload, valid until the next call. The buffer grows
// with what was really read, never on the header's word alone.
func (f *inflater) inflate(h *Header, stored []byte) ([]byte, error) {
	f.src.Reset(stored)
	if f.r == nil {
		f.r = flate.NewReader(&f.src)
	} else if err := f.r.(flate.Resetter).Reset(&f.src, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	want := int(h.Raw)
	if f.buf == nil {
		f.buf = make([]byte, min(want+1, 1<<20))
	}
	n := 0
	for {
		if n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, min(len(f.buf), MaxPayload))...)
		}
		k, err := f.r.Read(f.buf[n:min(len(f.buf), want+1)])
		n += k
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: inflating: %w", ErrCorrupt, err)
		}
		if n > want {
			break
		}
	}
	if n != want {
		return nil, fmt.Errorf("%w: payload inflates to %d bytes, the header says %d", ErrCorrupt, n, want)
	}
	return f.buf[:n], nil
}
