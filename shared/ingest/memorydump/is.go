package memorydump

import (
	"unicode/utf8"

	"tideline/shared/ingest/wire"
)

// NumBins is how many size classes an allocator has, and a map lists.
const NumBins = 21

// maxName bounds the allocator's name in what is taken for a map.
const maxName = 256

// Is reports whether a file begins as a memory map does: with a name in
// printable letters and the 21 bins in their order. Other protobuf files begin
// with a message. Of a file that is longer than head, head must hold the bins,
// which take less than a kilobyte; of one that is cut, the name and two bins do.
func Is(head []byte) bool {
	r := wire.New(head)
	if len(head) == 0 || head[0] != fileName<<3|byte(wire.Bytes) && head[0] != fileBin<<3|byte(wire.Bytes) {
		return false
	}
	bins, named := 0, false
	for r.Next() {
		f := r.Field()
		switch {
		case f.Number == fileName && f.Type == wire.Bytes && bins == 0 && !named && isName(f.Data):
			named = true
		case f.Number == fileBin && f.Type == wire.Bytes && bins < NumBins:
			if b, ok := bin(f.Data); !ok || b.Number != bins {
				return false
			}
			bins++
		default:
			return bins == NumBins && f.Type == wire.Bytes && f.Number >= fileChunk && f.Number <= fileStats
		}
	}
	return bins == NumBins || named && bins >= 2
}

func isName(b []byte) bool {
	if len(b) == 0 || len(b) > maxName || !utf8.Valid(b) {
		return false
	}
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}
