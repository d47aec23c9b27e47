package ingest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// TestHistories: logs that tell each allocation become timelines whose live
// bytes are those of the log, and obey the rules of any allocator.
func TestHistories(t *testing.T) {
	for _, c := range []struct {
		file         string
		allocs, free int
		peak         int64
	}{
		{"rmm-27-rmm.txt", 7, 0, 53136464},
		{"rmm-28-rmm.txt", 2, 2, 1048576},
		{"memory-33-input.txt", 2, 0, 1000008},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", c.file))
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder()
		if _, err := ReadLog(c.file, strings.NewReader(string(b)), &r.strs, r); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if a, f := r.count(event.Alloc), r.count(event.Free); a != c.allocs || f != c.free {
			t.Errorf("%s: %d allocations and %d frees, want %d and %d", c.file, a, f, c.allocs, c.free)
		}
		if err := r.judge.Err(); err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		tl := store.New(&r.strs)
		tl.Append(r.events)
		var live, peak int64
		for i := range r.events {
			switch e := &r.events[i]; e.Kind {
			case event.Alloc:
				live += e.Size
			case event.Free:
				live -= e.Size
			default:
			}
			peak = max(peak, live)
		}
		if peak != c.peak {
			t.Errorf("%s: peak %d, want %d", c.file, peak, c.peak)
		}
		if last := &r.events[len(r.events)-1]; last.Kind != event.End {
			t.Errorf("%s does not end but with %v", c.file, last.Kind)
		}
	}
}
