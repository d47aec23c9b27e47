package lines

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// encode is a text in UTF-16 with its mark.
func encode(text string, big bool) string {
	var b strings.Builder
	for _, u := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
		pair := []byte{byte(u), byte(u >> 8)}
		if big {
			pair[0], pair[1] = pair[1], pair[0]
		}
		b.Write(pair)
	}
	return b.String()
}

func all(t *testing.T, text string) (out []string) {
	t.Helper()
	in := New(strings.NewReader(text))
	for {
		s, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
}

// TestUTF16: PowerShell writes it by a redirect, and names are in any script.
func TestUTF16(t *testing.T) {
	text := "GPU 0 has 7.92 GiB\r\nC:\\Benutzer\\Jürgen\\学习.py\r\n\U0001f525 out of memory"
	want := []string{"GPU 0 has 7.92 GiB", "C:\\Benutzer\\Jürgen\\学习.py", "\U0001f525 out of memory"}
	for _, big := range []bool{false, true} {
		if got := all(t, encode(text, big)); !slices.Equal(got, want) {
			t.Errorf("high byte first %v: %q", big, got)
		}
	}
	if got := all(t, encode("ab", false)+"c"); !slices.Equal(got, []string{"abc"}) {
		t.Errorf("half a character: %q", got)
	}
	if got := all(t, "\xff\xfe\x3d\xd8a\x00"); !slices.Equal(got, []string{"\ufffda"}) {
		t.Errorf("half of a pair: %q", got)
	}
}
