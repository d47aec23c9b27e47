package block

import (
	"compress/flate"
	"fmt"
)

// Pack frames a payload that this package does not build itself, as Make does,
// deflated where that is shorter, and appends it to dst.
func Pack(dst []byte, h Header, payload []byte) []byte {
	h.Version = Version
	var d deflater
	return finish(dst, &h, payload, &d, flate.DefaultCompression)
}

// Payload is the inflated payload of a whole block, as Next returned it, of which
// at most limit bytes are believed. It may lie in the frame.
func Payload(frame []byte, limit int) ([]byte, error) {
	h, err := ParseHeader(frame)
	if err != nil {
		return nil, err
	}
	if len(frame) < h.Size() {
		return nil, fmt.Errorf("%w: %d bytes of %d", ErrShort, len(frame), h.Size())
	}
	stored := frame[HeaderSize:h.Size()]
	if len(stored) > limit || uint64(h.Raw) > uint64(limit) {
		return nil, fmt.Errorf("%w: payload of %d bytes (%d inflated) in a block of kind %d, at most %d allowed", ErrCorrupt, len(stored), h.Raw, h.Kind, limit)
	}
	if h.Flags&Deflated == 0 {
		return stored, nil
	}
	var f inflater
	return f.inflate(&h, stored)
}
