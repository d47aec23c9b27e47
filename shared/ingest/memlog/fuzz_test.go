package memlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
)

// seeds are real texts of this kind.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "memory-*.txt"))
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
		n := int64(0)
		log, err := Read(strings.NewReader(s), func(*Record) { n++ })
		if n != log.Records || (err == nil) != (n > 0) {
			t.Errorf("%d records, %v, %+v", n, err, log)
		}
		for _, a := range log.Allocators {
			if a.Live < 0 || a.Peak < a.Live {
				t.Errorf("%+v", a)
			}
		}
		var strs event.Strings
		live := map[uint64]int64{}
		_, _ = Timeline(strings.NewReader(s), &strs, event.SinkFunc(func(e *event.Event) {
			k := e.Address<<8 | uint64(e.Allocator)
			switch e.Kind {
			case event.Alloc:
				live[k] += e.Size
			case event.Free:
				live[k] -= e.Size
				if live[k] < 0 {
					t.Errorf("%d bytes freed that were never allocated", -live[k])
				}
			default:
			}
		}))
	})
}

func BenchmarkRead(b *testing.B) {
	s := strings.Join(seeds(b), "\n")
	s = strings.Repeat(s+"\n", 1+(1<<20)/len(s))
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(strings.NewReader(s), nil); err != nil {
			b.Fatal(err)
		}
	}
}
