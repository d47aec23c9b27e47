// Package wire reads protobuf messages field by field, without schemas,
// reflection or generated code, so that the browser module can carry it.
//
// A message is a slice of bytes, and a field's content a part of that slice:
// nothing is copied, and a claimed length beyond the message's end is an error
// before anything is taken for it. Unknown fields are passed over, as they must
// be; groups, which no format read here has, are passed over too.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrBroken is wrapped by every error about a message that cannot be one.
var ErrBroken = errors.New("not a protobuf message")

// Type is how a field's content is coded.
type Type uint8

// The types.
const (
	Varint     Type = 0
	Fixed64    Type = 1
	Bytes      Type = 2
	startGroup Type = 3
	endGroup   Type = 4
	Fixed32    Type = 5
)

// Field is one field of a message.
type Field struct {
	Number int32
	Type   Type
	N      uint64 // of Varint, Fixed64, Fixed32
	Data   []byte // of Bytes
}

// Int is a number as int64 has it.
func (f *Field) Int() int64 { return int64(f.N) }

// Double is a Fixed64 as float64 has it.
func (f *Field) Double() float64 { return math.Float64frombits(f.N) }

// Text is the content of a Bytes field.
func (f *Field) Text() string { return string(f.Data) }

// Reader walks over a message.
type Reader struct {
	b     []byte
	pos   int
	err   error
	field Field
}

// New returns a reader of a message.
func New(message []byte) Reader { return Reader{b: message} }

// Err is why Next stopped before the end, or nil.
func (r *Reader) Err() error { return r.err }

// Offset is where in the message the next field begins.
func (r *Reader) Offset() int { return r.pos }

// Next moves to the next field, which Field then is.
func (r *Reader) Next() bool {
	for r.err == nil && r.pos < len(r.b) {
		key, ok := r.varint()
		if !ok {
			return false
		}
		if key>>3 == 0 || key>>3 > 1<<29-1 {
			return r.fail("field number %d", key>>3)
		}
		r.field = Field{Number: int32(key >> 3), Type: Type(key & 7)}
		if t := r.field.Type; t == startGroup || t == endGroup {
			continue // their fields pass as if they were ours; nobody asks for them
		}
		return r.content()
	}
	return false
}

// Field is the field that Next moved to.
func (r *Reader) Field() *Field { return &r.field }

func (r *Reader) content() bool {
	f := &r.field
	switch f.Type {
	case Varint:
		var ok bool
		f.N, ok = r.varint()
		return ok
	case Fixed64, Fixed32:
		n := 8
		if f.Type == Fixed32 {
			n = 4
		}
		if len(r.b)-r.pos < n {
			return r.fail("a number of %d bytes with %d left", n, len(r.b)-r.pos)
		}
		if n == 8 {
			f.N = binary.LittleEndian.Uint64(r.b[r.pos:])
		} else {
			f.N = uint64(binary.LittleEndian.Uint32(r.b[r.pos:]))
		}
		r.pos += n
		return true
	case Bytes:
		n, ok := r.varint()
		if !ok {
			return false
		}
		if n > uint64(len(r.b)-r.pos) {
			return r.fail("field %d claims %d bytes, %d are left", f.Number, n, len(r.b)-r.pos)
		}
		f.Data = r.b[r.pos : r.pos+int(n) : r.pos+int(n)]
		r.pos += int(n)
		return true
	default:
		return r.fail("field %d has the unknown type %d", f.Number, f.Type)
	}
}

func (r *Reader) varint() (uint64, bool) {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		r.pos++
		return uint64(r.b[r.pos-1]), true
	}
	n, size := binary.Uvarint(r.b[r.pos:])
	if size <= 0 {
		return 0, r.fail("a number that does not end")
	}
	r.pos += size
	return n, true
}

func (r *Reader) fail(format string, a ...any) bool {
	r.err = fmt.Errorf("%w: offset %d: %s", ErrBroken, r.pos, fmt.Sprintf(format, a...))
	return false
}

// Numbers visits the numbers of a repeated field, packed or not.
func (f *Field) Numbers(visit func(n uint64)) error {
	if f.Type != Bytes {
		visit(f.N)
		return nil
	}
	r := New(f.Data)
	for r.pos < len(r.b) {
		n, ok := r.varint()
		if !ok {
			return r.err
		}
		visit(n)
	}
	return nil
}
