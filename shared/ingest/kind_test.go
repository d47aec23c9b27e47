package ingest

import (
	"encoding/binary"
	"testing"
)

// TestProfilesWithoutAnAccelerator: their first plane is the host's, longer
// than what is seen of it, and no device is named.
func TestProfilesWithoutAnAccelerator(t *testing.T) {
	plane := func(length uint64, body string) []byte {
		head := append(binary.AppendUvarint([]byte{0x0a}, length), body...)
		return append(head, make([]byte, 64)...)
	}
	for name, head := range map[string][]byte{
		"host": plane(90_000, "\x12\x09/host:CPU\x1a\xe8\x2b\x08"), "numbered": plane(90_000, "\x08\x81\x01\x12\x09/host:CPU\x1a"),
		"old": plane(200, "\x12\x09Host CPUs\x1a\x02"), "environment": plane(18, "\x12\x10Task Environment"),
	} {
		if k := Recognise(head); k != XSpace || !IsData(head) {
			t.Errorf("%s is %v", name, k)
		}
	}
	for name, head := range map[string][]byte{
		"no name": plane(90_000, "\x1a\x09/host:CPU"), "another name": plane(90_000, "\x12\x09some-name"),
		"cut name": []byte("\x0a\x20\x12\x40/host:CPU\x00"), "short": []byte("\x0a\x02\x12\x00\x00"),
		"endless number": []byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"), "longer than itself": plane(4, "\x12\x09/host:CPU"),
	} {
		if k := Recognise(head); k != Binary {
			t.Errorf("%s is %v", name, k)
		}
	}
}
