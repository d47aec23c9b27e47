package pickle

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"
)

func (m *Machine) number(op byte) error {
	switch op {
	case opNone:
		m.push(pack(None, 0))
		return nil
	case opNewTrue:
		m.push(pack(Bool, 1))
		return nil
	case opNewFalse:
		m.push(pack(Bool, 0))
		return nil
	case opFloat:
		return m.floatLine()
	case opInt, opLong:
		return m.integerLine(op)
	case opLong1, opLong4:
		return m.longBytes(op)
	}
	size := map[byte]int{opBinInt: 4, opBinInt2: 2, opBinInt1: 1, opBinFloat: 8}[op]
	b, err := m.take(size)
	if err != nil {
		return err
	}
	switch op {
	case opBinFloat:
		m.push(m.float(math.Float64frombits(binary.BigEndian.Uint64(b))))
	case opBinInt:
		m.push(m.integer(int64(int32(binary.LittleEndian.Uint32(b)))))
	case opBinInt2:
		m.push(m.integer(int64(binary.LittleEndian.Uint16(b))))
	default:
		m.push(m.integer(int64(b[0])))
	}
	return nil
}

func (m *Machine) floatLine() error {
	b, err := m.line()
	if err != nil {
		return err
	}
	f, perr := strconv.ParseFloat(string(bytes.TrimSpace(b)), 64)
	if perr != nil {
		return m.bad("%q is no number", clip(b))
	}
	m.push(m.float(f))
	return nil
}

func (m *Machine) integerLine(op byte) error {
	b, err := m.line()
	if err != nil {
		return err
	}
	b = bytes.TrimSuffix(bytes.TrimSpace(b), []byte("L"))
	if op == opInt && len(b) == 2 && b[0] == '0' { // protocol 0 writes False and True like this
		m.push(pack(Bool, uint64(b[1]&1)))
		return nil
	}
	if n, ok := decimal(b); ok {
		m.push(m.integer(n))
		return nil
	}
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) == 0 || len(digits) > maxDigits {
		return m.bad("%q is no integer that can be kept", clip(b))
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return m.bad("%q is no integer", clip(b))
		}
	}
	m.big(b)
	return nil
}

// Longer integers occur in no file that is read here, and turning bytes into
// digits takes the square of their number.
const (
	maxDigits    = 1000
	maxLongBytes = 256
)

func (m *Machine) big(digits []byte) {
	n, cost := m.texts.put(digits)
	m.charge(cost)
	m.push(pack(Big, uint64(n)))
}

func (m *Machine) longBytes(op byte) error {
	size := 1
	if op == opLong4 {
		size = 4
	}
	b, err := m.take(size)
	if err != nil {
		return err
	}
	n := int64(b[0])
	if op == opLong4 {
		n = int64(int32(binary.LittleEndian.Uint32(b)))
	}
	if n < 0 || n > maxLongBytes {
		return m.bad("an integer of %d bytes is too long", n)
	}
	if b, err = m.take(int(n)); err != nil {
		return err
	}
	if len(b) <= 8 {
		var x uint64
		for i, c := range b {
			x |= uint64(c) << (8 * i)
		}
		if shift := uint(64 - 8*len(b)); len(b) > 0 {
			x = uint64(int64(x<<shift) >> shift)
		}
		m.push(m.integer(int64(x)))
		return nil
	}
	m.big([]byte(longDigits(b)))
	return nil
}

// longDigits writes a little-endian two's complement number in decimal.
func longDigits(b []byte) string {
	mag := append([]byte(nil), b...)
	negative := b[len(b)-1]&0x80 != 0
	if negative {
		carry := 1
		for i, c := range mag {
			carry += int(c ^ 0xff)
			mag[i] = byte(carry)
			carry >>= 8
		}
	}
	var digits []byte
	for len(mag) > 0 {
		rest := 0
		for i := len(mag) - 1; i >= 0; i-- {
			rest = rest<<8 | int(mag[i])
			mag[i] = byte(rest / 10)
			rest %= 10
		}
		digits = append(digits, byte('0'+rest))
		for len(mag) > 0 && mag[len(mag)-1] == 0 {
			mag = mag[:len(mag)-1]
		}
	}
	if negative {
		digits = append(digits, '-')
	}
	for i, j := 0, len(digits)-1; i < j; i, j = i+1, j-1 {
		digits[i], digits[j] = digits[j], digits[i]
	}
	return string(digits)
}

func decimal(b []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

func clip(b []byte) []byte { return b[:min(len(b), 40)] }

func (m *Machine) text(op byte) error {
	kind := Text
	var width int
	switch op {
	case opString, opUnicode:
		return m.textLine(op)
	case opShortBinUnicode, opShortBinString:
		width = 1
	case opBinUnicode, opBinString:
		width = 4
	case opBinUnicode8:
		width = 8
	case opShortBinBytes:
		width, kind = 1, Bytes
	case opBinBytes:
		width, kind = 4, Bytes
	default:
		width, kind = 8, Bytes
	}
	head, err := m.take(width)
	if err != nil {
		return err
	}
	var n uint64
	for i, c := range head {
		n |= uint64(c) << (8 * i)
	}
	b, err := m.long(n)
	if err != nil {
		return err
	}
	m.pushText(kind, b)
	return nil
}

func (m *Machine) pushText(kind Kind, b []byte) {
	n, cost := m.texts.put(b)
	m.charge(cost)
	m.push(pack(kind, uint64(n)))
}

func (m *Machine) textLine(op byte) error {
	b, err := m.line()
	if err != nil {
		return err
	}
	if op == opString {
		b = bytes.TrimSpace(b)
		if len(b) < 2 || b[0] != b[len(b)-1] || b[0] != '\'' && b[0] != '"' {
			return m.bad("text %q is not quoted", clip(b))
		}
		b = b[1 : len(b)-1]
	}
	m.pushText(Text, unescape(b, op == opString))
	return nil
}

// unescape undoes what protocol 0 does to texts: Python's repr for the old
// kind, \uXXXX for the other.
func unescape(b []byte, quoted bool) []byte {
	if bytes.IndexByte(b, '\\') < 0 && (quoted || isASCII(b)) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] >= utf8.RuneSelf && !quoted { // the characters below 256 are bytes there
			out = utf8.AppendRune(out, rune(b[i]))
			continue
		}
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		digits := map[byte]int{'u': 4, 'U': 8}[b[i+1]]
		if quoted {
			digits = 0
			if b[i+1] == 'x' {
				digits = 2
			}
		}
		if digits > 0 && i+2+digits <= len(b) {
			if n, err := strconv.ParseUint(string(b[i+2:i+2+digits]), 16, 32); err == nil {
				if quoted {
					out = append(out, byte(n))
				} else {
					out = utf8.AppendRune(out, rune(n))
				}
				i += 1 + digits
				continue
			}
		}
		at := bytes.IndexByte([]byte(`nrt\'"`), b[i+1])
		if !quoted || at < 0 {
			out = append(out, b[i])
			continue
		}
		out = append(out, "\n\r\t\\'\""[at])
		i++
	}
	return out
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
