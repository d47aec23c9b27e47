package answer

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// pieces is a message as it comes from the network: a read ends where a piece
// does.
type pieces [][]byte

func inPieces(b []byte) *pieces { return &pieces{b[:len(b)/2], nil, b[len(b)/2:]} }

func (p *pieces) Remaining() (n int) {
	for _, b := range *p {
		n += len(b)
	}
	return n
}

func (p *pieces) Read(b []byte) (int, error) {
	for len(*p) > 0 && len((*p)[0]) == 0 {
		*p = (*p)[1:]
	}
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	(*p)[0] = (*p)[0][n:]
	return n, nil
}

func (p *pieces) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(p, b[:])
	return b[0], err
}

func TestAnswers(t *testing.T) {
	b := protowire.AppendTag(nil, 1, protowire.Fixed64Type) // a field to pass over
	b = protowire.AppendFixed64(b, 5)
	b = protowire.AppendTag(b, 6, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte("\x0a\x05a.txt\x12\x04data\x18\x07"))
	b = protowire.AppendTag(b, 7, protowire.VarintType)
	b = protowire.AppendVarint(b, 1)
	for _, part := range []string{"first half, ", "second half"} {
		b = protowire.AppendTag(b, 8, protowire.BytesType)
		b = protowire.AppendString(b, part)
	}
	var a Profile
	if err := a.Read(inPieces(b)); err != nil {
		t.Fatal(err)
	}
	same := func(x, y Tool) bool { return x.Name == y.Name && bytes.Equal(x.Data, y.Data) }
	if string(a.Space) != "first half, second half" || !a.Empty || !slices.EqualFunc(a.Tools, []Tool{{"a.txt", []byte("data")}}, same) {
		t.Errorf("%+v", a)
	}
	var m Monitor
	if err := m.Read(inPieces([]byte("\x10\x01\x0a\x04idle"))); err != nil || m.Text != "idle" {
		t.Errorf("%+v %v", m, err)
	}
	if err := new(Terminate).Read(inPieces(b)); err != nil {
		t.Error(err)
	}
}

// FuzzAnswer: whatever a server sends, reading it ends, and takes no more than
// it sent.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x38\x01"))
	f.Add([]byte("\x42\x03abc\x32\x06\x0a\x01n\x12\x01d"))
	f.Add([]byte("\x42\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Add([]byte("\x0b\x0c\x09\x00\x00\x00\x00\x00\x00\x00\x00\x0d\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Profile
		err := a.Read(inPieces(b))
		total := len(a.Space)
		for _, d := range a.Tools {
			total += len(d.Name) + len(d.Data)
		}
		if total > len(b) {
			t.Errorf("%d bytes of %d", total, len(b))
		}
		// What is wrong at the top for the library that knows the format is
		// wrong for us.
		if err == nil {
			for rest := b; len(rest) > 0; {
				n, typ, used := protowire.ConsumeTag(rest)
				if used < 0 {
					t.Fatalf("a tag that cannot be: %v", protowire.ParseError(used))
				}
				rest = rest[used:]
				if used = protowire.ConsumeFieldValue(n, typ, rest); used < 0 {
					t.Fatalf("field %d that cannot be: %v", n, protowire.ParseError(used))
				}
				rest = rest[used:]
			}
		}
		if m := new(Monitor); m.Read(inPieces(b)) == nil && len(m.Text) > len(b) {
			t.Errorf("%d bytes of %d", len(m.Text), len(b))
		}
	})
}
