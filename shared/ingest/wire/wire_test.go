package wire

import (
	"errors"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

func message() []byte {
	var b []byte
	b = protowire.AppendTag(b, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, 1<<63+5)
	b = protowire.AppendTag(b, 2, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 0x3ff8000000000000)
	b = protowire.AppendTag(b, 1<<29-1, protowire.BytesType)
	b = protowire.AppendBytes(b, []byte("abc"))
	b = protowire.AppendTag(b, 7, protowire.StartGroupType)
	b = protowire.AppendTag(b, 8, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, 9)
	b = protowire.AppendTag(b, 7, protowire.EndGroupType)
	b = protowire.AppendTag(b, 3, protowire.BytesType)
	return protowire.AppendBytes(b, []byte{1, 0x96, 1})
}

func TestReadsWhatProtowireWrites(t *testing.T) {
	r := New(message())
	next := func() *Field {
		if !r.Next() {
			t.Fatal(r.Err())
		}
		return r.Field()
	}
	if f := next(); f.Number != 1 || f.N != 1<<63+5 {
		t.Errorf("%+v", f)
	}
	if f := next(); f.Number != 2 || f.Double() != 1.5 {
		t.Errorf("%+v", f)
	}
	if f := next(); f.Number != 1<<29-1 || f.Text() != "abc" {
		t.Errorf("%+v", f)
	}
	if f := next(); f.Number != 8 || f.N != 9 {
		t.Errorf("%+v", f)
	}
	var list []uint64
	if err := next().Numbers(func(n uint64) { list = append(list, n) }); err != nil || len(list) != 2 || list[1] != 150 {
		t.Errorf("%v %v", list, err)
	}
	if r.Next() || r.Err() != nil {
		t.Error(r.Err())
	}
}

func TestAClaimOf4GiBCostsNothing(t *testing.T) {
	b := append([]byte("\x0a\xff\xff\xff\xff\x0f"), make([]byte, 34)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := New(b)
	if r.Next() || !errors.Is(r.Err(), ErrBroken) {
		t.Error(r.Err())
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<16 {
		t.Errorf("%d bytes for a file of %d", n, len(b))
	}
}

func FuzzWire(f *testing.F) {
	f.Add(message())
	f.Fuzz(func(t *testing.T, b []byte) {
		r := New(b)
		fields := 0
		for r.Next() {
			fields++
			if int(r.Field().Type) == 2 && len(r.Field().Data) > len(b) {
				t.Fatal("a field longer than the message")
			}
		}
		if fields > len(b) {
			t.Errorf("%d fields in %d bytes", fields, len(b))
		}
	})
}
