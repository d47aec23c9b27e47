package share

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

const (
	// MinChunk is the smallest size of chunks, in bytes.
	MinChunk = 64 << 10
	// MaxChunk is the largest. A Worker holds a chunk in memory, more than
	// once, and shares 128 MB with its siblings.
	MaxChunk = 8 << 20
	// DefaultChunk is what our clients use: a multiple of a sealed segment.
	DefaultChunk = 4 << 20
	// MaxChunks keeps a manifest small enough for one request and one record.
	MaxChunks = 4096

	saltSize = 16
	idSize   = 24
	// IDTextSize is the number of characters of an id: 192 bits.
	IDTextSize = 32
)

// A Manifest says what a share holds.
type Manifest struct {
	Size      int64    `json:"size"`       // of the file as stored, in bytes
	ChunkSize int64    `json:"chunk_size"` // of every chunk but the last
	Chunks    []string `json:"chunks"`     // SHA-256 of each, in hex
	Salt      string   `json:"salt"`       // 16 random bytes, in hex
}

// Validate checks that the numbers belong together.
func (m *Manifest) Validate() error {
	switch {
	case m.Size <= 0:
		return fmt.Errorf("size is %d: an empty file is not shared", m.Size)
	case m.ChunkSize < MinChunk || m.ChunkSize > MaxChunk:
		return fmt.Errorf("chunk_size is %d: from %d to %d is possible", m.ChunkSize, MinChunk, MaxChunk)
	case m.Count() > MaxChunks:
		return fmt.Errorf("%d bytes in chunks of %d make %d chunks; %d are possible: take larger chunks", m.Size, m.ChunkSize, m.Count(), MaxChunks)
	case int64(len(m.Chunks)) != m.Count():
		return fmt.Errorf("%d hashes for %d chunks", len(m.Chunks), m.Count())
	}
	if salt, err := hex.DecodeString(m.Salt); err != nil || len(salt) != saltSize {
		return fmt.Errorf("salt is not %d bytes in hex", saltSize)
	}
	for i, c := range m.Chunks {
		if sum, err := hex.DecodeString(c); err != nil || len(sum) != sha256.Size {
			return fmt.Errorf("the hash of chunk %d is not a SHA-256 in hex", i)
		}
	}
	return nil
}

// Count is the number of chunks, by size.
func (m *Manifest) Count() int64 { return (m.Size + m.ChunkSize - 1) / m.ChunkSize }

// Length is the number of bytes of chunk i.
func (m *Manifest) Length(i int64) int64 { return min(m.ChunkSize, m.Size-i*m.ChunkSize) }

// Verify checks the bytes of chunk i.
func (m *Manifest) Verify(i int64, chunk []byte) error {
	if int64(len(chunk)) != m.Length(i) {
		return fmt.Errorf("chunk %d has %d bytes instead of %d", i, len(chunk), m.Length(i))
	}
	if sum := sha256.Sum256(chunk); hex.EncodeToString(sum[:]) != m.Chunks[i] {
		return fmt.Errorf("chunk %d has the SHA-256 %x instead of %s", i, sum, m.Chunks[i])
	}
	return nil
}

// ID is the name of the share that has this manifest, which must be valid:
// the first 24 bytes of the SHA-256 of "tideline share 1", size (8 bytes),
// chunk size (8, both little endian), salt and hashes, in base64url.
func (m *Manifest) ID() string {
	b := append(make([]byte, 0, 48+len(m.Chunks)*sha256.Size), "tideline share 1"...)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(m.ChunkSize))
	b, _ = hex.AppendDecode(b, []byte(m.Salt)) // Validate has seen that it is hex
	for _, c := range m.Chunks {
		b, _ = hex.AppendDecode(b, []byte(c))
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:idSize])
}

// CheckID says what is wrong with an id that cannot be one.
func CheckID(id string) error {
	if len(id) != IDTextSize {
		return fmt.Errorf("the link's id has %d characters instead of %d: the link was cut, or something was added to it; copy it again, whole", len(id), IDTextSize)
	}
	if _, err := base64.RawURLEncoding.DecodeString(id); err != nil {
		return fmt.Errorf("the link's id %q has a character that no id has; copy it again", id)
	}
	return nil
}
