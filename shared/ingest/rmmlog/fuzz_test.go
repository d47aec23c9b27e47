package rmmlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
)

// seeds are real texts of this kind.
func seeds(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "rmm-*.txt"))
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

// absurd is a log of blocks whose sum is no number of 64 bits.
func absurd() string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range 40 {
		fmt.Fprintf(&b, "1,00:00:00:%06d,allocate,0x%x,%d,0x0\n", i, (i+1)<<10, int64(1)<<58)
	}
	return b.String()
}

func TestASumThatIsNoNumberIsCut(t *testing.T) {
	log, err := Read(strings.NewReader(absurd()), func(*Row) {})
	if err != nil || log.Live != 16<<58 || log.Peak != log.Live || !strings.Contains(log.Cut, "which no memory has") {
		t.Errorf("%v %+v", err, log)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
		f.Add(s[:len(s)*2/3])
	}
	f.Add(absurd())
	f.Fuzz(func(t *testing.T, s string) {
		rows := int64(0)
		log, err := Read(strings.NewReader(s), func(r *Row) {
			rows++
			if r.Size < 0 {
				t.Errorf("%+v", r)
			}
		})
		if (err == nil) != (log.Events > 0 || log.Header) {
			t.Errorf("%v with %+v", err, log)
		}
		if rows != log.Events || log.Events != log.Allocs+log.Frees+log.Failures {
			t.Errorf("%d rows, %+v", rows, log)
		}
		if log.Live < 0 || log.Peak < log.Live || log.Peak < log.Largest || log.LiveBlocks > log.Allocs {
			t.Errorf("%+v", log)
		}
		var strs event.Strings
		last := int64(0)
		_, _ = Timeline(strings.NewReader(s), &strs, event.SinkFunc(func(e *event.Event) {
			if e.Time < last {
				t.Errorf("time runs back from %d to %d", last, e.Time)
			}
			last = e.Time
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
