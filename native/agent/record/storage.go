package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is what a recording is written to and read from, at the same time.
type File interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Create makes a new file on disk. An existing one is replaced only with
// replace; its readers keep the old content.
func Create(name string, replace bool) (File, error) {
	if replace {
		// A fresh file rather than a truncated one: somebody may be reading it.
		if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() {
			if err := os.Remove(name); err != nil {
				return nil, fmt.Errorf("replace the file %s: %w", name, err)
			}
		}
	}
	flags := os.O_RDWR | os.O_CREATE
	if !replace {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create a recording: %w", err)
	}
	return f, nil
}

// Memory is a File that is not on disk. It is safe for concurrent use.
type Memory struct {
	mu sync.RWMutex
	b  []byte
}

// WriteAt writes within or just behind what there is.
func (m *Memory) WriteAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if off < 0 || off > int64(len(m.b)) {
		return 0, fmt.Errorf("write %d bytes at %d into %d bytes of memory: there must be no gap", len(p), off, len(m.b))
	}
	n := copy(m.b[off:], p)
	m.b = append(m.b, p[n:]...)
	return len(p), nil
}

// ReadAt reads as io.ReaderAt says.
func (m *Memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if off < 0 {
		return 0, errors.New("read at a negative offset")
	}
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Truncate cuts to size.
func (m *Memory) Truncate(size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if size < 0 || size > int64(len(m.b)) {
		return fmt.Errorf("cut %d bytes of memory to %d", len(m.b), size)
	}
	m.b = m.b[:size]
	return nil
}

// Sync does nothing: memory is as safe as it gets.
func (m *Memory) Sync() error { return nil }

// Close does nothing: readers may still be there.
func (m *Memory) Close() error { return nil }

// appender is an io.Writer onto a File.
type appender struct {
	f   File
	off int64
}

func (a *appender) Write(p []byte) (int, error) {
	n, err := a.f.WriteAt(p, a.off)
	a.off += int64(n)
	return n, err
}
