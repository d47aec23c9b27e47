package memlog

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

// absurd is a log of buffers whose sum is no number of 64 bits.
func absurd() string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "__LOG_MEMORY__ MemoryLogTensorAllocation { step_id: 1 kernel_name: \"k\" tensor { dtype: DT_FLOAT allocation_description { requested_bytes: %d allocated_bytes: %d allocator_name: \"GPU_0_bfc\" allocation_id: %d has_single_reference: true ptr: %d } } }\n",
			int64(1)<<58, int64(1)<<58, i+1, (i+1)<<10)
	}
	return b.String()
}

func TestASumThatIsNoNumberIsCut(t *testing.T) {
	log, err := Read(strings.NewReader(absurd()), func(*Record) {})
	if err != nil || len(log.Allocators) != 1 || log.Allocators[0].Live != 16<<58 || !strings.Contains(log.Cut, "which no memory has") {
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
