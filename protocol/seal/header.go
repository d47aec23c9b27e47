package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	segmentSize = 64 << 10 // in the sealed file, tag included
	tagSize     = 16
	saltSize    = 32
	prefixSize  = 7
	checkSize   = 16

	ownSize    = 40                        // our header
	streamSize = 1 + saltSize + prefixSize // Tink's
	headSize   = ownSize + streamSize
	firstRoom  = segmentSize - headSize - tagSize // content in the first segment
	room       = segmentSize - tagSize            // and in the others

	version = 1
	suite   = 1 // AES256-GCM-HKDF-SHA256 in segments of 64 KiB
)

const magic = "\x89TIDS\r\n\x1a"

// MaxSize is the longest content that is sealed or opened, in bytes.
const MaxSize = 1 << 40

// HeadSize is the number of bytes at the front that Sealed wants to see.
const HeadSize = len(magic)

// Sealed says whether a file that begins so is sealed.
func Sealed(head []byte) bool { return len(head) >= HeadSize && string(head[:HeadSize]) == magic }

// Size is the number of bytes that n bytes of content take when sealed.
func Size(n int64) int64 { return headSize + n + tagSize*segments(n) }

// segments is the number of segments of n bytes of content; the last one may
// be full, and only that of an empty content is empty.
func segments(n int64) int64 {
	if n <= firstRoom {
		return 1
	}
	return 1 + (n-firstRoom+room-1)/room
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc is the checksum of our header.
func crc(b []byte) uint32 { return crc32.Checksum(b[:36], castagnoli) }

// head is the first 80 bytes of a sealed file.
type head struct {
	size   int64 // of the content
	check  [checkSize]byte
	salt   [saltSize]byte
	prefix [prefixSize]byte
}

func (h *head) bytes() [headSize]byte {
	var b [headSize]byte
	copy(b[:], magic)
	b[8], b[9] = version, suite
	binary.LittleEndian.PutUint64(b[12:], uint64(h.size))
	copy(b[20:], h.check[:])
	binary.LittleEndian.PutUint32(b[36:], crc(b[:]))
	b[ownSize] = streamSize
	copy(b[ownSize+1:], h.salt[:])
	copy(b[ownSize+1+saltSize:], h.prefix[:])
	return b
}

// parseHead reads the header and says what a file is that has none.
func parseHead(b []byte) (*head, error) {
	if !Sealed(b) {
		return nil, fmt.Errorf("%w: it does not begin with the mark of one", ErrNotSealed)
	}
	if len(b) < headSize {
		return nil, fmt.Errorf("%w: it ends in its header, at byte %d of %d", ErrCut, len(b), headSize)
	}
	if crc(b) != binary.LittleEndian.Uint32(b[36:]) {
		return nil, fmt.Errorf("%w: its header does not match its checksum; download it again", ErrDamaged)
	}
	if b[8] != version || b[9] != suite {
		return nil, fmt.Errorf("%w: version %d, construction %d; this reader knows version %d, construction %d: update Tideline", ErrVersion, b[8], b[9], version, suite)
	}
	if b[10] != 0 || b[11] != 0 || b[ownSize] != streamSize {
		return nil, fmt.Errorf("%w: its header has a value that version %d does not have", ErrDamaged, version)
	}
	size := binary.LittleEndian.Uint64(b[12:])
	if size > MaxSize {
		return nil, fmt.Errorf("%w: its header speaks of %d bytes, more than the %d that a sealed file may have", ErrDamaged, size, int64(MaxSize))
	}
	h := &head{size: int64(size)}
	copy(h.check[:], b[20:])
	copy(h.salt[:], b[ownSize+1:])
	copy(h.prefix[:], b[ownSize+1+saltSize:])
	return h, nil
}

// cipher derives the file's own AES key; our header is the associated data.
func (h *head) cipher(k Key) (cipher.AEAD, error) {
	b := h.bytes()
	return derive(k, h.salt[:], string(b[:ownSize]))
}

func derive(k Key, salt []byte, associated string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k[:], salt, associated, KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive the file's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("start AES: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("start GCM: %w", err)
	}
	return gcm, nil
}

func (h *head) fits(k Key) (bool, error) {
	want, err := k.check()
	return err == nil && subtle.ConstantTimeCompare(want[:], h.check[:]) == 1, err
}

// nonce is prefix, number (big endian, as Tink has it) and the flag of the end.
func (h *head) nonce(segment int64, last bool) [12]byte {
	var n [12]byte
	copy(n[:], h.prefix[:])
	binary.BigEndian.PutUint32(n[prefixSize:], uint32(segment))
	if last {
		n[11] = 1
	}
	return n
}

// place is where a segment's ciphertext lies in the sealed file and how much
// content it holds, of a file with size bytes of content.
func place(segment, size int64) (offset, content int64) {
	if segment == 0 {
		return headSize, min(size, firstRoom)
	}
	before := firstRoom + (segment-1)*room
	return segment * segmentSize, min(size-before, room)
}
