package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// profileRequest asks for a profile. The numbers behind the fields are those of
// the messages ProfileRequest and, where said so, ProfileOptions.
type profileRequest struct {
	durationMS uint64   // 1, and 9 of the options, which newer servers heed
	tools      []string // 3: files that servers of 2020 are to write
	repository string   // 5: folder, as the server sees it
	session    string   // 6: folder below that
	host       string   // 7: the files' name
	levels     Levels   // 2, 3 and 4 of the options
	inAnswer   bool     // 9: answer with the XSpace instead of writing it
}

// optionsVersion makes a server take the levels as they are given.
const optionsVersion = 1

func (q *profileRequest) append(b []byte) []byte {
	var o []byte
	o = appendVarint(o, 2, uint64(q.levels.Host))
	o = appendVarint(o, 3, uint64(q.levels.Device))
	o = appendVarint(o, 4, uint64(q.levels.Python))
	o = appendVarint(o, 5, optionsVersion)
	o = appendVarint(o, 9, q.durationMS)
	b = appendVarint(b, 1, q.durationMS)
	for _, t := range q.tools {
		b = appendText(b, 3, t)
	}
	b = appendText(b, 4, string(o))
	b = appendText(b, 5, q.repository)
	b = appendText(b, 6, q.session)
	b = appendText(b, 7, q.host)
	if q.inAnswer {
		b = appendVarint(b, 9, 1)
	}
	return b
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 { // the default is not written
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// terminateRequest ends a session early.
type terminateRequest struct{ session string } // 1

func (q *terminateRequest) append(b []byte) []byte { return appendText(b, 1, q.session) }

// monitorRequest asks for a look at the devices.
type monitorRequest struct {
	durationMS uint64 // 1
	level      uint64 // 2
}

func (q *monitorRequest) append(b []byte) []byte {
	return appendVarint(appendVarint(b, 1, q.durationMS), 2, q.level)
}

// profileAnswer is what became of a profile.
type profileAnswer struct {
	tools []toolData // 6
	empty bool       // 7
	space []byte     // 8: the XSpace
}

// toolData is a file that the server made.
type toolData struct {
	name string // 1
	data []byte // 2
}

func (a *profileAnswer) read(r message) error {
	return fields(r, func(n protowire.Number, t protowire.Type, r message, length uint64) (bool, error) {
		switch {
		case n == 6 && t == protowire.BytesType:
			b, err := take(r, length)
			if err != nil {
				return true, err
			}
			d, err := readTool(b)
			a.tools = append(a.tools, d)
			return true, err
		case n == 7 && t == protowire.VarintType:
			a.empty = length != 0
			return true, nil
		case n == 8 && t == protowire.BytesType:
			b, err := take(r, length)
			// Of a message that comes in parts the parts follow each other.
			a.space = append(a.space, b...)
			return true, err
		}
		return false, nil
	})
}

func readTool(b []byte) (toolData, error) {
	var d toolData
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
				d.name = string(v)
			case 2:
				d.data = v
			}
		}
		b = b[used:]
	}
	return d, nil
}

// monitorAnswer is what the devices do, in words.
type monitorAnswer struct{ text string } // 1

func (a *monitorAnswer) read(r message) error {
	return fields(r, func(n protowire.Number, t protowire.Type, r message, length uint64) (bool, error) {
		if n != 1 || t != protowire.BytesType {
			return false, nil
		}
		b, err := take(r, length)
		a.text = string(b)
		return true, err
	})
}

// terminateAnswer says nothing.
type terminateAnswer struct{}

func (*terminateAnswer) read(message) error { return nil }

// message is an answer that is read once, in pieces as they came: only what is
// wanted of it is put together.
type message interface {
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
func fields(r message, visit func(n protowire.Number, t protowire.Type, r message, length uint64) (bool, error)) error {
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
func take(r message, length uint64) ([]byte, error) {
	b := make([]byte, length)
	_, err := io.ReadFull(r, b)
	return b, err //nolint:wrapcheck // fields names the field
}
