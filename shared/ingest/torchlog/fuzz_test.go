package torchlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds are real texts of this kind.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "torch-*.txt"))
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
		for _, m := range rep.Messages {
			if m.Count < 1 || m.Line < 1 {
				t.Errorf("%+v", m)
			}
		}
		for _, l := range rep.Snapshots {
			for _, g := range l.Segments {
				for _, b := range g.Blocks {
					if b.Size < 0 {
						t.Errorf("a block of %d", b.Size)
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
