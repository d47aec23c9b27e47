package exec

import (
	"testing"

	"tideline/shared/alloc"
)

// frontier is an allocator that takes note of the frontier.
type frontier struct{ at uint64 }

func TestAFullTrackerMakesTheHostWait(t *testing.T) {
	f := &frontier{}
	tr := tracker{Timestamps: Timestamps{MaxBytes: mebi, MaxPending: 4, MaxInterval: 1 << 30}, memory: f}
	tr.bytes = 3 * mebi
	if !tr.launched(100) || tr.pending != 3 || tr.full() {
		t.Fatalf("after a kernel of 3 MiB: weight %d, full %v; want 3 and room for more", tr.pending, tr.full())
	}
	tr.bytes = 3 * mebi
	if tr.launched(200); tr.pending != 6 || !tr.full() {
		t.Fatalf("after the second: weights %d, full %v; want 6, and the host waits", tr.pending, tr.full())
	}
	tr.advance(99)
	if !tr.full() || f.at != 0 {
		t.Errorf("before the first ended: full %v, frontier %d", tr.full(), f.at)
	}
	tr.advance(100)
	if tr.full() || f.at != 1 {
		t.Errorf("after it: full %v, frontier %d, want 1", tr.full(), f.at)
	}
}

func TestATrackerLooksByKernelsAndBytes(t *testing.T) {
	f := &frontier{}
	tr := tracker{Timestamps: Timestamps{MaxInterval: 3, MaxBytes: mebi}, memory: f}
	looks := ""
	for _, bytes := range []int64{0, 0, 0, 0, 2 * mebi, 0} {
		tr.bytes += bytes
		if tr.launched(1) {
			looks += "L"
		} else {
			looks += "."
		}
	}
	if looks != "..L.L." {
		t.Errorf("looks %s, want ..L.L.: after three kernels or a MiB", looks)
	}
	every := tracker{memory: f}
	if !every.launched(1) || !every.launched(2) {
		t.Error("with all bounds zero, a kernel goes untracked")
	}
}

const mebi = 1 << 20

func (f *frontier) SetCounter(*alloc.Counter) error { return nil }

func (f *frontier) SetSafeFrontier(count uint64) { f.at = max(f.at, count) }
