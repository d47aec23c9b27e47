package unzip

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

func packed(t *testing.T, parts ...string) []byte {
	t.Helper()
	var z bytes.Buffer
	for _, s := range parts {
		w := gzip.NewWriter(&z)
		if _, err := w.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return z.Bytes()
}

func TestOpensPackedAndPlain(t *testing.T) {
	for name, c := range map[string]struct {
		file   []byte
		want   string
		zipped bool
	}{
		"plain": {[]byte("hello"), "hello", false}, "one byte": {[]byte("\x1f"), "\x1f", false}, "empty": {nil, "", false},
		"packed": {packed(t, "hello"), "hello", true}, "two members": {packed(t, "hel", "lo"), "hello", true},
	} {
		r, zipped, err := Open(bytes.NewReader(c.file), 0)
		if err != nil || zipped != c.zipped {
			t.Errorf("%s: zipped %v, %v", name, zipped, err)
			continue
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if got, zipped, err := All(bytes.NewReader(c.file), 0); err != nil || zipped != c.zipped || string(got) != c.want {
			t.Errorf("%s: all %q, %v, %v", name, got, zipped, err)
		}
	}
	if _, _, err := Open(strings.NewReader("\x1f\x8bxx"), 0); err == nil {
		t.Error("a broken header passed")
	}
}

func TestTheLimitIsNamed(t *testing.T) {
	file := packed(t, strings.Repeat("x", 1000))
	r, _, err := Open(bytes.NewReader(file), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || len(got) != 1000 {
		t.Errorf("exactly the limit: %d, %v", len(got), err)
	}
	r, _, _ = Open(bytes.NewReader(file), 999)
	var e *LimitError
	if got, err := io.ReadAll(r); !errors.As(err, &e) || e.Limit != 999 || len(got) != 999 || !strings.Contains(err.Error(), "999 bytes") {
		t.Errorf("beyond it: %d, %v", len(got), err)
	}
	var s *SizeError
	if _, _, err := All(strings.NewReader(strings.Repeat("x", 1000)), 999); !errors.As(err, &s) || !strings.Contains(err.Error(), "999 bytes") {
		t.Errorf("plain: %v", err)
	}
}
