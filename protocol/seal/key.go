package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// KeyTextSize is the number of characters of a key in a link.
const KeyTextSize = 43

// A Key opens one sealed file. It is made anew for each file.
type Key [KeySize]byte

// NewKey takes a key from a source of randomness, in earnest crypto/rand.Reader.
func NewKey(random io.Reader) (Key, error) {
	var k Key
	if _, err := io.ReadFull(random, k[:]); err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// Text is the key as it stands in a link: base64url without padding.
func (k Key) Text() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// String keeps keys out of logs; Text is the real one.
func (k Key) String() string { return "seal.Key(hidden)" }

// GoString does what String does for %#v.
func (k Key) GoString() string { return k.String() }

// ParseKey reads what Text wrote.
func ParseKey(text string) (Key, error) {
	var k Key
	if len(text) != KeyTextSize {
		return k, fmt.Errorf("%w: it has %d characters instead of %d, so the link was cut or something was added to it; copy it again, whole", ErrBadKey, len(text), KeyTextSize)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return k, fmt.Errorf("%w: it has a character that no key has; copy the link again", ErrBadKey)
	}
	copy(k[:], b)
	return k, nil
}

// check is what the header holds to tell a wrong key from a damaged file. It
// also commits the file to one key, which GCM alone does not.
func (k Key) check() ([checkSize]byte, error) {
	var c [checkSize]byte
	b, err := hkdf.Key(sha256.New, k[:], nil, "tideline sealed file 1, key check", checkSize)
	if err != nil {
		return c, fmt.Errorf("derive the key check: %w", err)
	}
	copy(c[:], b)
	return c, nil
}
