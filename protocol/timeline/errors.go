package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"tideline/protocol/block"
)

// The errors that a caller decides on. Those returned wrap them with values.
var (
	// ErrNotTimeline: the bytes are something else. The text says what they
	// look like.
	ErrNotTimeline = errors.New("not a tideline timeline")
	// ErrTruncated: the file ends inside a block.
	ErrTruncated = errors.New("cut short")
	// ErrVersion: written by a newer major version; see [block.ErrVersion].
	ErrVersion = block.ErrVersion
	// ErrChecksum: bytes changed since they were written; see [block.ErrChecksum].
	ErrChecksum = block.ErrChecksum
)

// Damage is one place of a file that could not be read.
type Damage struct {
	Block  int   // number of the damaged block, counted from 0
	Offset int64 // where the bytes left out begin
	Bytes  int64 // how many bytes were left out
	Err    error // wraps ErrTruncated, ErrChecksum, block.ErrCorrupt or block.ErrMagic
}

// Error says where, how much and why.
func (d Damage) Error() string {
	return fmt.Sprintf("block %d at offset %d: %v; %d bytes left out", d.Block, d.Offset, d.Err, d.Bytes)
}

// Unwrap is the reason.
func (d Damage) Unwrap() error { return d.Err }

// notTimeline says what the beginning of something else looks like.
func notTimeline(b []byte) error {
	return fmt.Errorf("%w: it %s", ErrNotTimeline, looksLike(b))
}

var signatures = []struct{ magic, name string }{
	{"\x1f\x8b", "looks like gzip: unpack it first"},
	{"\x28\xb5\x2f\xfd", "looks like zstd: unpack it first"},
	{"PK\x03\x04", "looks like a zip archive"},
	{"BZh", "looks like bzip2"},
	{"\xfd7zXZ\x00", "looks like xz"},
	{"\x89PNG", "looks like a PNG picture"},
	{"\x7fELF", "looks like a program (ELF)"},
	{"SQLite format 3\x00", "looks like an SQLite database"},
	{"%PDF", "looks like a PDF"},
	{"\x80\x02", "looks like a Python pickle"},
	{"\x80\x03", "looks like a Python pickle"},
	{"\x80\x04", "looks like a Python pickle"},
	{"\x80\x05", "looks like a Python pickle"},
	{TextMagic, "looks like the text form of a timeline: convert it back first"},
}

// TextMagic begins the text form of a timeline (package text).
const TextMagic = "# tideline text"

func looksLike(b []byte) string {
	if len(b) == 0 {
		return "is empty"
	}
	for _, s := range signatures {
		if bytes.HasPrefix(b, []byte(s.magic)) {
			return s.name
		}
	}
	if bytes.HasPrefix(b, []byte(fileMagic[:5])) {
		return "began as a timeline but its line ends were changed, as a transfer in text mode does: copy it again in binary mode"
	}
	head := b[:min(len(b), 64)]
	for len(head) > 0 && !utf8.Valid(head) && len(b) > 64 && len(head) > 60 {
		head = head[:len(head)-1] // a rune may be cut at the end
	}
	if bytes.IndexByte(head, 0) < 0 && utf8.Valid(head) {
		if c := bytes.TrimLeft(head, " \t\r\n"); len(c) > 0 && (c[0] == '{' || c[0] == '[') {
			return fmt.Sprintf("looks like JSON: %.24q", head)
		}
		return fmt.Sprintf("looks like text: %.24q", head)
	}
	return fmt.Sprintf("begins with the bytes % x", head[:min(len(head), 8)])
}
