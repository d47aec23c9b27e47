package steplog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// seeds are real texts of this kind.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "steps-*.txt"))
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
		log, err := Read(strings.NewReader(s))
		if (err == nil) != (len(log.Series) > 0) {
			t.Errorf("%v with %+v", err, log)
		}
		for _, x := range log.Series {
			if len(x.Values) < 2 || len(x.Values) != len(x.Steps) {
				t.Errorf("%+v", x)
			}
			for i := 1; i < len(x.Steps); i++ {
				if x.Steps[i] < x.Steps[i-1] {
					t.Errorf("%q: steps %v", x.Label, x.Steps)
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
