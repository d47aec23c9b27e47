package block

import (
	"encoding/binary"

	"tideline/protocol/event"
)

// maxInline is how many bytes of strings go into a block of events; more get
// blocks of their own.
const maxInline = 8 << 20

// maxStringPayload bounds the bytes of strings in one block of strings, with
// room for one string of the greatest length.
const maxStringPayload = MaxPayload/2 - MaxString

// cut shortens a string that is longer than the format allows.
func cut(s string) string {
	if len(s) > MaxString {
		return s[:MaxString]
	}
	return s
}

// span says up to which id the strings from an id on fit one block, and how
// many bytes they have.
func span(t *event.Strings, from, to int) (end, bytes int) {
	for end = from; end < to && end-from < MaxStrings && bytes < maxStringPayload; end++ {
		bytes += len(cut(t.At(event.StringID(end))))
	}
	return end, bytes
}

// stringColumns returns the column of lengths, and the length of the other.
func stringColumns(t *event.Strings, from, to int) (lengths []byte, bytes int) {
	for i := from; i < to; i++ {
		n := len(cut(t.At(event.StringID(i))))
		lengths = binary.AppendUvarint(lengths, uint64(n))
		bytes += n
	}
	return lengths, bytes
}

// AppendStrings appends to dst blocks with the strings whose ids are from
// (at least 1) up to but not including to: what a reader needs who joins at the
// block that begins with sequence number first. Level is the DEFLATE level; 0
// stores them as they are.
func AppendStrings(dst []byte, t *event.Strings, from, to int, first uint64, level int) []byte {
	var d deflater
	return appendStrings(dst, t, max(1, from), min(to, t.Len()), first, 0, &d, level)
}

func appendStrings(dst []byte, t *event.Strings, from, to int, first uint64, time int64, d *deflater, level int) []byte {
	for from < to {
		end, bytes := span(t, from, to)
		lengths, _ := stringColumns(t, from, end)
		b := make([]byte, 0, 16+len(lengths)+bytes)
		b = append(b, 2)
		b = binary.AppendUvarint(b, uint64(len(lengths)))
		b = binary.AppendUvarint(b, uint64(bytes))
		b = append(b, lengths...)
		for i := from; i < end; i++ {
			b = append(b, cut(t.At(event.StringID(i)))...)
		}
		h := Header{
			Version: Version, Kind: Strings, First: first, FirstTime: time, LastTime: time,
			StringBase: uint32(from), Strings: uint32(end - from),
		}
		dst = finish(dst, &h, b, d, level)
		from = end
	}
	return dst
}
