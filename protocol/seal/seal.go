package seal

import (
	"crypto/cipher"
	"fmt"
	"io"
)

// Seal writes the sealed form of the size bytes that r holds. The randomness
// must be fresh and unguessable (crypto/rand.Reader): salt and nonces come
// from it. Nothing but the written bytes and the key is needed to open it.
func Seal(w io.Writer, r io.Reader, size int64, k Key, random io.Reader) error {
	if size < 0 || size > MaxSize {
		return fmt.Errorf("seal %d bytes: a sealed file holds 0 to %d", size, int64(MaxSize))
	}
	h := &head{size: size}
	var err error
	if h.check, err = k.check(); err != nil {
		return err
	}
	for _, part := range [][]byte{h.salt[:], h.prefix[:]} {
		if _, err := io.ReadFull(random, part); err != nil {
			return fmt.Errorf("seal: take randomness: %w", err)
		}
	}
	return h.seal(w, r, k)
}

func (h *head) seal(w io.Writer, r io.Reader, k Key) error {
	gcm, err := h.cipher(k)
	if err != nil {
		return err
	}
	b := h.bytes()
	if _, err := w.Write(b[:]); err != nil {
		return fmt.Errorf("write the sealed header: %w", err)
	}
	return h.sealContent(w, r, gcm)
}

func (h *head) sealContent(w io.Writer, r io.Reader, gcm cipher.AEAD) error {
	buf := make([]byte, segmentSize)
	n := segments(h.size)
	for i := range n {
		_, content := place(i, h.size)
		if _, err := io.ReadFull(r, buf[:content]); err != nil {
			return fmt.Errorf("seal: read segment %d of %d: %w", i, n, err)
		}
		nonce := h.nonce(i, i == n-1)
		if _, err := w.Write(gcm.Seal(buf[:0], nonce[:], buf[:content], nil)); err != nil {
			return fmt.Errorf("write sealed segment %d of %d: %w", i, n, err)
		}
	}
	return endsHere(r, h.size)
}

// endsHere refuses a source that has grown since its size was taken: what was
// sealed would not be the file.
func endsHere(r io.Reader, size int64) error {
	var one [1]byte
	for range 100 {
		n, err := r.Read(one[:])
		switch {
		case n > 0:
			return fmt.Errorf("seal: there is more than the %d bytes announced: the file grew while it was read", size)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("seal: look for the end: %w", err)
		}
	}
	return fmt.Errorf("seal: look for the end: %w", io.ErrNoProgress)
}
