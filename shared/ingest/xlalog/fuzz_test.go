package xlalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds are real texts of this kind.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "xla-*.txt"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no seeds: %v", err)
	}
	var out []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func FuzzRead(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
		f.Add(s[:len(s)*2/3])
	}
	f.Fuzz(func(t *testing.T, s string) {
		rep, err := Read(strings.NewReader(s))
		if (err == nil) == rep.Empty() {
			t.Errorf("%v with %+v", err, rep)
		}
		for _, c := range rep.Compiles {
			for _, a := range c.Allocations {
				if sh, ok := ParseShape(a.Shape); ok {
					plain, ok1 := sh.Bytes()
					padded, ok2 := sh.Padded()
					if ok1 && ok2 && (plain < 0 || padded < plain) {
						t.Errorf("%s: %d padded to %d", a.Shape, plain, padded)
					}
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := strings.Join(seeds(b), "\n")
	s = strings.Repeat(s+"\n", 1+(1<<20)/len(s))
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(strings.NewReader(s)); err != nil {
			b.Fatal(err)
		}
	}
}
