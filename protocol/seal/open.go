package seal

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
)

// A File is the content of a sealed file. It reads any part by opening only
// the segments that hold it. It is not safe for concurrent use.
type File struct {
	src  io.ReaderAt
	head *head
	gcm  cipher.AEAD
	n    int64 // segments

	held   int64 // the segment in plain, or -1
	plain  []byte
	cipher []byte
}

// Open reads the header of the sealed file of size bytes, checks the key and
// the length, and opens the first segment, which vouches for the header.
func Open(src io.ReaderAt, size int64, k Key) (*File, error) {
	b := make([]byte, min(size, headSize))
	if _, err := io.ReadFull(io.NewSectionReader(src, 0, size), b); err != nil {
		return nil, fmt.Errorf("read the sealed header: %w", err)
	}
	h, err := parseHead(b)
	if err != nil {
		return nil, err
	}
	switch fits, err := h.fits(k); {
	case err != nil:
		return nil, err
	case !fits:
		return nil, fmt.Errorf("%w: the link belongs to another file or was changed; ask for it again", ErrWrongKey)
	}
	if want := Size(h.size); size < want {
		return nil, fmt.Errorf("%w: %d of %d bytes are there; download it again", ErrCut, size, want)
	} else if size > want {
		return nil, fmt.Errorf("%w: %d bytes follow its end", ErrDamaged, size-want)
	}
	f := &File{src: src, head: h, n: segments(h.size), held: -1, cipher: make([]byte, min(segmentSize, size))}
	if f.gcm, err = h.cipher(k); err != nil {
		return nil, err
	}
	return f, f.load(0)
}

// Size is the length of the content in bytes.
func (f *File) Size() int64 { return f.head.size }

// ReadAt reads content that was checked; it never returns a byte of a segment
// that did not open.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read sealed content at %d: negative offset", off)
	}
	done := 0
	for done < len(p) {
		at := off + int64(done)
		if at >= f.head.size {
			return done, io.EOF
		}
		segment, start := holding(at)
		if err := f.load(segment); err != nil {
			return done, err
		}
		done += copy(p[done:], f.plain[at-start:])
	}
	return done, nil
}

// WriteTo writes the whole content.
func (f *File) WriteTo(w io.Writer) (int64, error) {
	var done int64
	for i := range f.n {
		if err := f.load(i); err != nil {
			return done, err
		}
		n, err := w.Write(f.plain)
		done += int64(n)
		if err != nil {
			return done, fmt.Errorf("write opened segment %d of %d: %w", i, f.n, err)
		}
	}
	return done, nil
}

// holding is the segment that holds a byte of content, and the offset of the
// segment's first byte.
func holding(at int64) (segment, start int64) {
	if at < firstRoom {
		return 0, 0
	}
	i := (at - firstRoom) / room
	return 1 + i, firstRoom + i*room
}

func (f *File) load(segment int64) error {
	if f.held == segment {
		return nil
	}
	f.held = -1
	offset, content := place(segment, f.head.size)
	c := f.cipher[:content+tagSize]
	if n, err := f.src.ReadAt(c, offset); n < len(c) {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: it ends in segment %d of %d, at byte %d", ErrCut, segment, f.n, offset+int64(n))
		}
		return fmt.Errorf("read sealed segment %d at byte %d: %w", segment, offset, err)
	}
	nonce := f.head.nonce(segment, segment == f.n-1)
	plain, err := f.gcm.Open(f.plain[:0], nonce[:], c, nil)
	if err != nil {
		return f.blame(segment, offset, c)
	}
	f.plain, f.held = plain, segment
	return nil
}

// searchLimit bounds how many other places are tried for a segment that does
// not open: at 64 KiB each that is a fraction of a second.
const searchLimit = 4096

// blame finds out whether another segment lies where one did not open.
func (f *File) blame(segment, offset int64, c []byte) error {
	from := max(0, segment-searchLimit/2)
	for i := from; i < min(f.n, from+searchLimit); i++ {
		nonce := f.head.nonce(i, i == f.n-1)
		if i == segment {
			continue
		}
		if _, err := f.gcm.Open(nil, nonce[:], c, nil); err == nil {
			return &SegmentError{Segment: segment, Offset: offset, Holds: i, err: ErrOrder}
		}
	}
	return &SegmentError{Segment: segment, Offset: offset, Holds: -1, err: ErrDamaged}
}
