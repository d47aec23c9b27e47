package pickle

import (
	"errors"
	"fmt"
	"io"
)

const (
	windowBytes = 128 << 10
	// ahead is more than the longest opcode that is read from the window in one
	// piece: SHORT_BINUNICODE with its 255 bytes.
	ahead = 300
)

// source is a window on the stream. buf[pos:] is unread.
type source struct {
	r    io.Reader
	buf  []byte
	pos  int
	base int64 // offset of buf[0]
	done bool
	err  error // why it is done, unless it is the end
}

// fill moves the window on. Afterwards at least ahead bytes are there, or all.
func (s *source) fill() {
	n := copy(s.buf[:cap(s.buf)], s.buf[s.pos:])
	s.base += int64(s.pos)
	s.buf, s.pos = s.buf[:n], 0
	idle := 0
	for len(s.buf) < ahead && !s.done {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if idle++; n > 0 {
			idle = 0
		} else if err == nil && idle > 100 {
			err = io.ErrNoProgress
		}
		if err != nil {
			s.done = true
			if !errors.Is(err, io.EOF) {
				s.err = err
			}
		}
	}
}

func (m *Machine) offset() int64 { return m.src.base + int64(m.src.pos) }

func (m *Machine) truncated() error {
	if m.src.err != nil {
		return fmt.Errorf("pickle: offset %d: read: %w", m.offset(), m.src.err)
	}
	return fmt.Errorf("pickle: offset %d: %w", m.offset(), ErrTruncated)
}

// take is the next n bytes, n <= ahead, valid until the next call.
func (m *Machine) take(n int) ([]byte, error) {
	s := &m.src
	if len(s.buf)-s.pos < n {
		if s.fill(); len(s.buf) < n {
			return nil, m.truncated()
		}
	}
	b := s.buf[s.pos : s.pos+n]
	s.pos += n
	return b, nil
}

// long is the next n bytes, however many the file claims: it grows with what
// arrives.
func (m *Machine) long(n uint64) ([]byte, error) {
	if n <= ahead {
		return m.take(int(n))
	}
	if n > uint64(m.limits.Text) {
		return nil, &LimitError{What: "the bytes of one text", Limit: m.limits.Text, Offset: m.offset()}
	}
	m.scratch = m.scratch[:0]
	for n > 0 {
		s := &m.src
		if s.pos == len(s.buf) {
			if s.fill(); len(s.buf) == 0 {
				return nil, m.truncated()
			}
		}
		k := min(n, uint64(len(s.buf)-s.pos))
		m.scratch = append(m.scratch, s.buf[s.pos:s.pos+int(k)]...)
		s.pos += int(k)
		n -= k
	}
	return m.scratch, nil
}

// line is the text up to the next line break, which is passed over.
func (m *Machine) line() ([]byte, error) {
	m.scratch = m.scratch[:0]
	for {
		s := &m.src
		if s.pos == len(s.buf) {
			if s.fill(); len(s.buf) == 0 {
				return nil, m.truncated()
			}
		}
		for i, c := range s.buf[s.pos:] {
			if c == '\n' {
				m.scratch = append(m.scratch, s.buf[s.pos:s.pos+i]...)
				s.pos += i + 1
				return m.scratch, nil
			}
		}
		m.scratch = append(m.scratch, s.buf[s.pos:]...)
		s.pos = len(s.buf)
		if int64(len(m.scratch)) > m.limits.Text {
			return nil, &LimitError{What: "the bytes of one text", Limit: m.limits.Text, Offset: m.offset()}
		}
	}
}
