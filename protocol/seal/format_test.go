package seal

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "renew the example in FORMAT.md")

const (
	formatDoc = "../FORMAT.md"
	exampleAt = "<!-- sealed example: made by go test ./protocol/seal -update -->\n"
	exampleTo = "<!-- end of sealed example -->\n"
)

// example seals "tide" with counting bytes as key, salt and prefix.
func example(t *testing.T) (sealed []byte, k Key) {
	t.Helper()
	var counting [KeySize + saltSize + prefixSize]byte
	for i := range counting {
		counting[i] = byte(i)
	}
	copy(k[:], counting[:])
	var b bytes.Buffer
	if err := Seal(&b, strings.NewReader("tide"), 4, k, bytes.NewReader(counting[KeySize:])); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), k
}

func exampleText(t *testing.T) string {
	t.Helper()
	b, k := example(t)
	var s strings.Builder
	line := func(from, to int, says string) {
		for at := from; at < to; at += 8 {
			end := min(at+8, to)
			s.WriteString(hexOffset(at) + "  " + pad(spaced(b[at:end]), 25))
			if at == from {
				s.WriteString(says)
			}
			s.WriteString("\n")
		}
	}
	s.WriteString("```\nkey   " + k.Text() + "\n")
	line(0, 8, `magic "\x89TIDS\r\n\x1a"`)
	line(8, 9, "version: 1")
	line(9, 10, "construction: 1")
	line(10, 12, "unused")
	line(12, 20, "bytes of content: 4")
	line(20, 36, "key check")
	line(36, 40, "CRC-32C of the 36 bytes before")
	line(40, 41, "length of the stream's header: 40")
	line(41, 73, "salt")
	line(73, 80, "nonce prefix")
	line(80, 84, `segment 0, the last: "tide", encrypted`)
	line(84, 100, "its tag")
	s.WriteString("```\n")
	return trimLines(s.String())
}

func hexOffset(at int) string { return hex.EncodeToString([]byte{byte(at >> 8), byte(at)}) }

func spaced(b []byte) string {
	parts := make([]string, len(b))
	for i, v := range b {
		parts[i] = hex.EncodeToString([]byte{v})
	}
	return strings.Join(parts, " ")
}

func pad(s string, n int) string { return s + strings.Repeat(" ", n-len(s)) }

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// TestFormatDocumentTellsTheTruth holds the section "Sealed files" to the code.
func TestFormatDocumentTellsTheTruth(t *testing.T) {
	doc, err := os.ReadFile(formatDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), exampleAt)
	_, after, ended := strings.Cut(rest, exampleTo)
	if !found || !ended {
		t.Fatalf("%s has no sealed example", formatDoc)
	}
	want := before + exampleAt + exampleText(t) + exampleTo + after
	if *update {
		if err := os.WriteFile(formatDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(doc) {
		t.Errorf("the example is not what the code makes; go test ./protocol/seal -update renews it:\n%s", exampleText(t))
	}
	if b, k := example(t); len(b) != 100 {
		t.Errorf("%d bytes", len(b))
	} else if got, err := open(b, k); err != nil || string(got) != "tide" {
		t.Errorf("the example opens to %q, %v", got, err)
	}
}
