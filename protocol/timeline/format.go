package timeline

import (
	"encoding/binary"
	"fmt"

	"tideline/protocol/block"
)

// Version is the major version of the file around the blocks that this
// package writes, and the newest it reads. Blocks have a version of their own.
const Version = 1

// fileMagic begins a file. Its first byte is no text, and the line ends show a
// transfer in text mode, as in PNG.
const fileMagic = "\x89TIDE\r\n\x1a"

// footerMagic begins the footer.
const footerMagic = "TDLE"

// The lengths of the file header and the footer in bytes.
const (
	HeaderSize = 16
	FooterSize = 16
)

// AppendHeader appends the file header to dst. A saved stream does without.
func AppendHeader(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, fileMagic...)
	dst = append(dst, Version, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(dst, block.Checksum(dst[at:]))
}

// checkHeader reads a file header.
func checkHeader(b []byte) error {
	if got, want := block.Checksum(b[:12]), binary.LittleEndian.Uint32(b[12:]); got != want {
		return fmt.Errorf("file header: %w: %08x computed, %08x stored", ErrChecksum, got, want)
	}
	if b[8] > Version {
		return fmt.Errorf("%w: the file has version %d, this reader knows up to %d; open it with a newer tideline", ErrVersion, b[8], Version)
	}
	return nil
}

// appendFooter appends the footer, which says where the index begins.
func appendFooter(dst []byte, index int64) []byte {
	at := len(dst)
	dst = append(dst, footerMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(index))
	return binary.LittleEndian.AppendUint32(dst, block.Checksum(dst[at:]))
}

// parseFooter returns where the index begins.
func parseFooter(b []byte) (index int64, ok bool) {
	if len(b) < FooterSize || string(b[:4]) != footerMagic || block.Checksum(b[:12]) != binary.LittleEndian.Uint32(b[12:]) {
		return 0, false
	}
	index = int64(binary.LittleEndian.Uint64(b[4:]))
	return index, index >= 0
}

// Entry is one block of a file in its index.
type Entry struct {
	Offset     int64 // of the block's header in the file
	Size       int64 // of the block, header included
	Kind       block.Kind
	First      uint64 // sequence number of the first event
	Events     int    // how many
	FirstTime  int64  // of the first event, ns
	LastTime   int64  // of the last, ns
	StringBase int    // id of the first string; a reader who begins here needs all below it
	Strings    int    // how many
}

// Next is the sequence number that follows the block's last event.
func (e *Entry) Next() uint64 { return e.First + uint64(e.Events) }

func entryOf(h *block.Header, offset int64) Entry {
	return Entry{
		Offset: offset, Size: int64(h.Size()), Kind: h.Kind, First: h.First, Events: int(h.Events),
		FirstTime: h.FirstTime, LastTime: h.LastTime, StringBase: int(h.StringBase), Strings: int(h.Strings),
	}
}

// enter appends a block's entry. A block without events happens at the time of
// the one before it, whatever its header says, so that entries can be searched
// by time.
func enter(entries []Entry, e Entry) []Entry {
	if n := len(entries); e.Events == 0 && n > 0 {
		e.FirstTime = entries[n-1].LastTime
		e.LastTime = e.FirstTime
	}
	return append(entries, e)
}

// appendIndex writes the payload of an index block: the number of entries,
// then each in nine varints, what grows as the difference from the entry before.
func appendIndex(dst []byte, entries []Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var prev Entry
	for _, e := range entries {
		dst = binary.AppendUvarint(dst, uint64(e.Offset-prev.Offset))
		dst = binary.AppendUvarint(dst, uint64(e.Size))
		dst = binary.AppendUvarint(dst, uint64(e.Kind))
		dst = binary.AppendVarint(dst, int64(e.First-prev.First))
		dst = binary.AppendUvarint(dst, uint64(e.Events))
		dst = binary.AppendVarint(dst, e.FirstTime-prev.FirstTime)
		dst = binary.AppendVarint(dst, e.LastTime-e.FirstTime)
		dst = binary.AppendUvarint(dst, uint64(e.StringBase))
		dst = binary.AppendUvarint(dst, uint64(e.Strings))
		prev = e
	}
	return dst
}

// indexEntryMin is the fewest bytes that an entry takes.
const indexEntryMin = 9

// parseIndex reads what appendIndex wrote, and checks that the entries follow
// each other within the file up to end.
func parseIndex(b []byte, end int64) ([]Entry, error) {
	in := varints{b: b}
	n := in.unsigned()
	if n > uint64(len(b)/indexEntryMin) {
		return nil, fmt.Errorf("%w: index of %d entries in %d bytes", block.ErrCorrupt, n, len(b))
	}
	entries := make([]Entry, 0, n)
	var prev Entry
	for i := range n {
		e := Entry{
			Offset: prev.Offset + int64(in.unsigned()), Size: int64(in.unsigned()), Kind: block.Kind(in.unsigned()),
			First: prev.First + uint64(in.signed()), Events: int(in.unsigned()), FirstTime: prev.FirstTime + in.signed(),
		}
		e.LastTime = e.FirstTime + in.signed()
		e.StringBase, e.Strings = int(in.unsigned()), int(in.unsigned())
		if in.bad || e.Offset < prev.Offset+prev.Size || e.Size < block.HeaderSize || e.Size > block.HeaderSize+block.MaxPayload ||
			e.Offset > end-e.Size || uint(e.Events) > block.MaxEvents {
			return nil, fmt.Errorf("%w: entry %d of the index lies outside of the file", block.ErrCorrupt, i)
		}
		entries = append(entries, e)
		prev = e
	}
	return entries, nil
}

// varints reads varints until one is bad.
type varints struct {
	b   []byte
	bad bool
}

func (v *varints) unsigned() uint64 {
	u, n := binary.Uvarint(v.b)
	if n <= 0 {
		v.bad = true
		return 0
	}
	v.b = v.b[n:]
	return u
}

func (v *varints) signed() int64 {
	u := v.unsigned()
	return int64(u>>1) ^ -int64(u&1)
}
