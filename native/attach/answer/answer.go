// Package answer takes apart what a profiler server answers: the messages
// ProfileResponse, MonitorResponse and TerminateResponse of the service
// tensorflow.ProfilerService.
//
// Only what is wanted of a message is put together, and never more than came.
// How an answer gets here is package attach's part: this one knows no network,
// so that it is fuzzed in the seconds that parsers get.
package answer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// Profile is what became of a profile. The numbers are those of the fields.
type Profile struct {
	Tools []Tool // 6
	Empty bool   // 7: nothing was recorded
	Space []byte // 8: the XSpace
}

// Tool is a file that the server made.
type Tool struct {
	Name string // 1
	Data []byte // 2
}

// Read reads the answer. An error says which field is wrong.
func (a *Profile) Read(r Message) error {
	return fields(r, func(n protowire.Number, t protowire.Type, r Message, length uint64) (bool, error) {
		switch {
		case n == 6 && t == protowire.BytesType:
			b, err := take(r, length)
			if err != nil {
				return true, err
			}
			d, err := readTool(b)
			a.Tools = append(a.Tools, d)
			return true, err
		case n == 7 && t == protowire.VarintType:
			a.Empty = length != 0
			return true, nil
		case n == 8 && t == protowire.BytesType:
			b, err := take(r, length)
			// Of a message that comes in parts the parts follow each other.
			a.Space = append(a.Space, b...)
			return true, err
		}
		return false, nil
	})
}

func readTool(b []byte) (Tool, error) {
	var d Tool
	for len(b) > 0 {
		n, t, used := protowire.ConsumeTag(b)
		if used < 0 {
			return d, fmt.Errorf("tool data: %w", protowire.ParseError(used))
		}
		b = b[used:]
		if used = protowire.ConsumeFieldValue(n, t, b); used < 0 {
			return d, fmt.Errorf("tool data: %w", protowire.ParseError(used))
		}
		if t == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b)
			switch int(n) {
			case 1:
				d.Name = string(v)
			case 2:
				d.Data = v
			}
		}
		b = b[used:]
	}
	return d, nil
}

// Monitor is what the devices do, in words.
type Monitor struct{ Text string } // 1

// Read reads the answer. An error says which field is wrong.
func (a *Monitor) Read(r Message) error {
	return fields(r, func(n protowire.Number, t protowire.Type, r Message, length uint64) (bool, error) {
		if n != 1 || t != protowire.BytesType {
			return false, nil
		}
		b, err := take(r, length)
		a.Text = string(b)
		return true, err
	})
}

// Terminate says nothing.
type Terminate struct{}

// Read takes the answer for what it is.
func (*Terminate) Read(Message) error { return nil }

// Message is an answer that is read once, in pieces as they came: only what is
// wanted of it is put together.
type Message interface {
	io.Reader
	io.ByteReader
	// Remaining is how many bytes are still to come.
	Remaining() int
}

var (
	errLength = errors.New("a length goes beyond the message")
	errWire   = errors.New("a field has a type that there is not")
)

// fields visits the fields of a message. Of a field of bytes visit gets the
// length and reads them itself, of a number it gets the value; it says whether
// it took the field.
func fields(r Message, visit func(n protowire.Number, t protowire.Type, r Message, length uint64) (bool, error)) error {
	for r.Remaining() > 0 {
		tag, err := binary.ReadUvarint(r)
		if err != nil {
			return fmt.Errorf("read a tag: %w", err)
		}
		n, t := protowire.DecodeTag(tag)
		if n < protowire.MinValidNumber {
			return fmt.Errorf("field %d: %w", n, errWire)
		}
		var v uint64
		switch t {
		case protowire.VarintType, protowire.BytesType:
			if v, err = binary.ReadUvarint(r); err != nil {
				return fmt.Errorf("read field %d: %w", n, err)
			}
		case protowire.Fixed64Type:
			v = 8
		case protowire.Fixed32Type:
			v = 4
		default:
			return fmt.Errorf("field %d of type %d: %w", n, t, errWire)
		}
		if t != protowire.VarintType && v > uint64(r.Remaining()) {
			return fmt.Errorf("field %d of %d bytes, %d are left: %w", n, v, r.Remaining(), errLength)
		}
		took, err := visit(n, t, r, v)
		if err != nil {
			return fmt.Errorf("field %d: %w", n, err)
		}
		if took || t == protowire.VarintType {
			continue
		}
		if _, err := io.CopyN(io.Discard, r, int64(v)); err != nil {
			return fmt.Errorf("pass over field %d: %w", n, err)
		}
	}
	return nil
}

// take reads a length that was found to be there.
func take(r Message, length uint64) ([]byte, error) {
	b := make([]byte, length)
	_, err := io.ReadFull(r, b)
	return b, err //nolint:wrapcheck // fields names the field
}
