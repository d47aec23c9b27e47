package unzip

import (
	"bufio"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

var (
	errHeader = errors.New("gzip: invalid header")
	errSum    = errors.New("gzip: invalid checksum")
)

// What a member's header says follows it, RFC 1952 section 2.3.1.
const (
	hasSum     = 1 << 1
	hasExtra   = 1 << 2
	hasName    = 1 << 3
	hasComment = 1 << 4
)

// members is what the members of a gzip file hold, one after the other. It
// accepts and refuses what compress/gzip does, which is not used as its header
// has a time: package time's ways to write one would come with it, 80 KB of the
// browser's module.
type members struct {
	in        *bufio.Reader
	out       io.ReadCloser
	sum, size uint32 // of the header at first, of what came out then
	err       error
	buf       [512]byte
}

func open(in *bufio.Reader) (*members, error) {
	m := &members{in: in}
	if err := m.header(); err != nil {
		return nil, err
	}
	return m, nil
}

// header reads a member's header. Where no byte follows it is io.EOF.
func (m *members) header() error {
	m.sum = 0
	if err := m.next(10); err != nil {
		return err
	}
	if m.buf[0] != 0x1f || m.buf[1] != 0x8b || m.buf[2] != 8 {
		return errHeader
	}
	if err := m.optional(m.buf[3]); err != nil {
		return whole(err)
	}
	m.sum, m.size = 0, 0
	if m.out == nil {
		m.out = flate.NewReader(m.in)
		return nil
	}
	return m.out.(flate.Resetter).Reset(m.in, nil) //nolint:forcetypeassert // package flate promises it
}

// optional passes over the parts that the flags name. None of them is needed.
func (m *members) optional(flags byte) error {
	if flags&hasExtra != 0 {
		if err := m.next(2); err != nil {
			return err
		}
		for left := int(binary.LittleEndian.Uint16(m.buf[:])); left > 0; left -= len(m.buf) {
			if err := m.next(min(left, len(m.buf))); err != nil {
				return err
			}
		}
	}
	for _, flag := range [...]byte{hasName, hasComment} {
		if flags&flag != 0 {
			if err := m.text(); err != nil {
				return err
			}
		}
	}
	if flags&hasSum != 0 {
		want := uint16(m.sum)
		if err := m.next(2); err != nil {
			return err
		}
		if binary.LittleEndian.Uint16(m.buf[:]) != want {
			return errHeader
		}
	}
	return nil
}

// text passes over a text that ends with a zero.
func (m *members) text() error {
	for i := range m.buf {
		b, err := m.in.ReadByte()
		if err != nil {
			return err
		}
		m.buf[i] = b
		if b == 0 {
			m.sum = crc32.Update(m.sum, crc32.IEEETable, m.buf[:i+1])
			return nil
		}
	}
	return errHeader // endless, as compress/gzip has it
}

// next takes n bytes of a header into buf.
func (m *members) next(n int) error {
	_, err := io.ReadFull(m.in, m.buf[:n])
	m.sum = crc32.Update(m.sum, crc32.IEEETable, m.buf[:n])
	return err
}

// whole is an error in the midst of a member, where its end is none of the file.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read implements io.Reader.
func (m *members) Read(p []byte) (n int, err error) {
	for n == 0 && m.err == nil {
		n, m.err = m.out.Read(p)
		m.sum = crc32.Update(m.sum, crc32.IEEETable, p[:n])
		m.size += uint32(n)
		if !errors.Is(m.err, io.EOF) {
			return n, m.err
		}
		m.err = m.end()
	}
	return n, m.err
}

// end holds a member to the sum and the length that follow it, and begins the
// next one.
func (m *members) end() error {
	if _, err := io.ReadFull(m.in, m.buf[:8]); err != nil {
		return whole(err)
	}
	if binary.LittleEndian.Uint32(m.buf[:]) != m.sum || binary.LittleEndian.Uint32(m.buf[4:]) != m.size {
		return errSum
	}
	return m.header()
}
