package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Version is the major version that this package writes, and the newest it
// reads. It rises only when an older reader could misread a block.
const Version = 1

// Magic begins every block.
const Magic = "TDLB"

// HeaderSize is the length of a block's header in bytes.
const HeaderSize = 60

// The limits that a writer keeps and a reader enforces before it allocates.
const (
	// MaxEvents is the most events in one block.
	MaxEvents = 1 << 16
	// MaxPayload is the most bytes of one payload, stored or inflated.
	MaxPayload = 1 << 26
	// MaxStrings is the most strings in one block.
	MaxStrings = 1 << 18
	// MaxString is the longest string in bytes; a writer cuts longer ones.
	MaxString = 1 << 24
	// MaxTable is the most strings of one timeline.
	MaxTable = 1 << 24
	// MaxReadings is the most bytes of a payload of readings, stored or inflated.
	MaxReadings = 1 << 22
)

// Kind says what a block holds. A reader skips kinds that it does not know.
type Kind uint8

// The kinds of block. The numbers are part of the format.
const (
	Events  Kind = 1 // events, and the strings they need that are new
	Strings Kind = 2 // strings only: the table so far, for a reader who joins late
	Index   Kind = 3 // where the blocks of a file are; written and read by package timeline
	// Readings is what the input of another program meant that the timeline was
	// made of; its payload is JSON, which package saved writes and reads.
	Readings Kind = 4
)

// Flags of a block. A reader refuses a block with a flag of the lower four
// bits that it does not know, and ignores the upper four.
const (
	Deflated uint8 = 1 << 0 // the payload is a raw DEFLATE stream (RFC 1951)

	mustKnow = 0x0f
)

// The errors that a caller decides on. Those returned wrap them with values.
var (
	// ErrShort: the bytes end before the block does. More may follow.
	ErrShort = errors.New("block is cut short")
	// ErrChecksum: the bytes are not those that were written.
	ErrChecksum = errors.New("checksum does not match")
	// ErrMagic: this is not the beginning of a block.
	ErrMagic = errors.New("not a block")
	// ErrVersion: the block was written by a newer major version.
	ErrVersion = errors.New("newer version")
	// ErrCorrupt: the checksum matches but the content breaks a rule of the format.
	ErrCorrupt = errors.New("block breaks the format")
	// ErrStringGap: strings that this block builds upon were never seen.
	ErrStringGap = errors.New("strings are missing")
)

// Header is what stands before a block's payload.
type Header struct {
	Version    uint8
	Kind       Kind
	Flags      uint8
	First      uint64 // sequence number of the first event
	FirstTime  int64  // of the first event, ns; 0 without events
	LastTime   int64  // of the last event, ns
	Events     uint32 // how many events
	StringBase uint32 // id of the block's first string
	Strings    uint32 // how many strings
	Stored     uint32 // bytes of the payload as stored
	Raw        uint32 // bytes of the payload after inflation; equal to Stored without Deflated
	Checksum   uint32 // CRC-32C of the payload as stored
}

// Next is the sequence number that follows the block's last event.
func (h *Header) Next() uint64 { return h.First + uint64(h.Events) }

// Size is the length of the whole block, header included.
func (h *Header) Size() int { return HeaderSize + int(h.Stored) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC-32C (Castagnoli: polynomial 0x1EDC6F41, reflected
// 0x82F63B78, initial value and final xor 0xFFFFFFFF) that guards headers and
// payloads.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// put writes the header into b, which has HeaderSize bytes.
func (h *Header) put(b []byte) {
	le := binary.LittleEndian
	copy(b, Magic)
	b[4], b[5], b[6], b[7] = h.Version, byte(h.Kind), h.Flags, 0
	le.PutUint64(b[8:], h.First)
	le.PutUint64(b[16:], uint64(h.FirstTime))
	le.PutUint64(b[24:], uint64(h.LastTime))
	le.PutUint32(b[32:], h.Events)
	le.PutUint32(b[36:], h.StringBase)
	le.PutUint32(b[40:], h.Strings)
	le.PutUint32(b[44:], h.Stored)
	le.PutUint32(b[48:], h.Raw)
	le.PutUint32(b[52:], h.Checksum)
	le.PutUint32(b[56:], Checksum(b[:56]))
}

// ParseHeader reads the header at the beginning of b and checks its checksum,
// version and limits; the payload need not be there. Errors are ErrShort,
// ErrMagic, ErrChecksum, ErrVersion and ErrCorrupt.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		if len(b) >= len(Magic) && string(b[:len(Magic)]) != Magic {
			return Header{}, fmt.Errorf("%w: it begins with %q instead of %q", ErrMagic, b[:len(Magic)], Magic)
		}
		return Header{}, fmt.Errorf("%w: %d bytes of a header of %d", ErrShort, len(b), HeaderSize)
	}
	if string(b[:4]) != Magic {
		return Header{}, fmt.Errorf("%w: it begins with %q instead of %q", ErrMagic, b[:4], Magic)
	}
	le := binary.LittleEndian
	if got, want := Checksum(b[:56]), le.Uint32(b[56:]); got != want {
		return Header{}, fmt.Errorf("header: %w: %08x computed, %08x stored", ErrChecksum, got, want)
	}
	h := Header{
		Version: b[4], Kind: Kind(b[5]), Flags: b[6],
		First: le.Uint64(b[8:]), FirstTime: int64(le.Uint64(b[16:])), LastTime: int64(le.Uint64(b[24:])),
		Events: le.Uint32(b[32:]), StringBase: le.Uint32(b[36:]), Strings: le.Uint32(b[40:]),
		Stored: le.Uint32(b[44:]), Raw: le.Uint32(b[48:]), Checksum: le.Uint32(b[52:]),
	}
	return h, h.check()
}

// check enforces version and limits.
func (h *Header) check() error {
	switch {
	case h.Version > Version:
		return fmt.Errorf("%w: the block has version %d, this reader knows up to %d; open it with a newer tideline", ErrVersion, h.Version, Version)
	case h.Version == 0:
		return fmt.Errorf("%w: version 0", ErrCorrupt)
	case h.Stored > MaxPayload || h.Raw > MaxPayload:
		return fmt.Errorf("%w: payload of %d bytes (%d inflated), at most %d allowed", ErrCorrupt, h.Stored, h.Raw, MaxPayload)
	case h.Kind != Events && h.Kind != Strings && h.Kind != Index && h.Kind != Readings:
		return nil // its fields may mean something else; it is skipped by its stored length
	case h.Flags&mustKnow&^Deflated != 0:
		return fmt.Errorf("%w: unknown flags %#02x", ErrCorrupt, h.Flags)
	case h.Events > MaxEvents:
		return fmt.Errorf("%w: %d events, at most %d allowed", ErrCorrupt, h.Events, MaxEvents)
	case h.Strings > MaxStrings || h.StringBase > MaxTable || h.StringBase+h.Strings > MaxTable:
		return fmt.Errorf("%w: strings %d+%d, at most %d in a block and %d in all allowed", ErrCorrupt, h.StringBase, h.Strings, MaxStrings, MaxTable)
	case h.Flags&Deflated == 0 && h.Raw != h.Stored:
		return fmt.Errorf("%w: %d bytes stored but %d raw without deflation", ErrCorrupt, h.Stored, h.Raw)
	case uint64(h.Raw) > 64+1032*uint64(h.Stored): // DEFLATE cannot expand by more
		return fmt.Errorf("%w: %d bytes cannot inflate to %d", ErrCorrupt, h.Stored, h.Raw)
	case h.First+uint64(h.Events) < h.First:
		return fmt.Errorf("%w: sequence number %d overflows", ErrCorrupt, h.First)
	}
	return nil
}

// Next splits the first block off b: frame is the whole block, n its length,
// its checksums verified. ErrShort means that b ends before the block does;
// after ErrChecksum of a payload n is the length to skip, otherwise n is 0 on
// an error.
func Next(b []byte) (frame []byte, n int, err error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, 0, err
	}
	n = h.Size()
	if len(b) < n {
		return nil, 0, fmt.Errorf("%w: %d bytes of %d", ErrShort, len(b), n)
	}
	if got := Checksum(b[HeaderSize:n]); got != h.Checksum {
		return nil, n, fmt.Errorf("payload: %w: %08x computed, %08x stored", ErrChecksum, got, h.Checksum)
	}
	return b[:n:n], n, nil
}

// Make frames a payload that this package does not build itself, such as an
// index, and appends it to dst. The header's lengths, version and checksum are
// filled in.
func Make(dst []byte, h Header, payload []byte) []byte {
	h.Version = Version
	h.Stored, h.Raw = uint32(len(payload)), uint32(len(payload))
	h.Checksum = Checksum(payload)
	at := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	h.put(dst[at:])
	return append(dst, payload...)
}
