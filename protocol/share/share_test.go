package share

import (
	"strings"
	"testing"
)

func example() Manifest {
	return Manifest{Size: 200_000, ChunkSize: MinChunk, Salt: strings.Repeat("07", 16), Chunks: []string{
		strings.Repeat("00", 32), strings.Repeat("11", 32), strings.Repeat("22", 32), strings.Repeat("ab", 32),
	}}
}

func TestIDCoversTheWholeManifest(t *testing.T) {
	m := example()
	id := m.ID()
	if CheckID(id) != nil || id != "ZhN0FAC-A8jCUmDUPBYTsfVUL-WHPM0r" {
		t.Errorf("id is %q", id)
	}
	for name, change := range map[string]func(*Manifest){
		"size":       func(m *Manifest) { m.Size++ },
		"chunk size": func(m *Manifest) { m.ChunkSize++ },
		"salt":       func(m *Manifest) { m.Salt = strings.Repeat("08", 16) },
		"a chunk":    func(m *Manifest) { m.Chunks[3] = m.Chunks[2] },
		"the order":  func(m *Manifest) { m.Chunks[0], m.Chunks[1] = m.Chunks[1], m.Chunks[0] },
	} {
		other := example()
		change(&other)
		if other.ID() == id {
			t.Errorf("another %s has the same id", name)
		}
	}
}

func TestManifestValidates(t *testing.T) {
	m := example()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if m.Length(0) != MinChunk || m.Length(3) != 200_000-3*MinChunk {
		t.Errorf("lengths %d, %d", m.Length(0), m.Length(3))
	}
	for says, change := range map[string]func(*Manifest){
		"empty file":           func(m *Manifest) { m.Size = 0 },
		"chunk_size is 1:":     func(m *Manifest) { m.ChunkSize = 1 },
		"chunk_size is 900000": func(m *Manifest) { m.ChunkSize = 9_000_000 },
		"take larger chunks":   func(m *Manifest) { m.Size = 1 << 40 },
		"3 hashes for 4":       func(m *Manifest) { m.Chunks = m.Chunks[:3] },
		"chunk 1 is not":       func(m *Manifest) { m.Chunks[1] = "zz" },
		"salt":                 func(m *Manifest) { m.Salt = "" },
	} {
		bad := example()
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestLink(t *testing.T) {
	m := example()
	for _, l := range []Link{{"https://example.org", m.ID(), "K"}, {"http://127.0.0.1:4000/x", m.ID(), ""}} {
		if got, err := ParseLink(" " + l.String() + "\n"); err != nil || got != l {
			t.Errorf("%v came back as %v, %v", l, got, err)
		}
		if l.Key != "" && strings.Contains(l.Public(), l.Key) {
			t.Errorf("%s shows the key", l.Public())
		}
	}
	for text, says := range map[string]string{
		"":                               "not a link to a share",
		"/tmp/a.tideline":                "not a link to a share",
		"https://example.org/":           "ends before its share",
		"https://example.org/#share=":    "ends before its share",
		"https://example.org/#share=abc": "3 characters instead of 32",
		"https://example.org/#share=" + m.ID() + ".":            "ends before its key",
		"https://example.org/#share=" + strings.Repeat("!", 32): "no id has",
	} {
		if _, err := ParseLink(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add("https://example.org/#share=ZhN0FAC-A8jCUmDUPBYTsfVUL-WHPM0r.KEY")
	f.Add("#share=")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLink(text)
		if err != nil {
			return
		}
		if again, err := ParseLink(l.String()); err != nil || again.ID != l.ID {
			t.Errorf("%q became %v and then %v, %v", text, l, again, err)
		}
	})
}
