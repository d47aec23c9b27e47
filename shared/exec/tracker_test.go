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

// A look weighs as much as the bytes allocated since the last one, in units of
// MaxBytes but no less than 16386, and at most all that may be outstanding.
func TestTheWeightOfALook(t *testing.T) {
	for _, c := range []struct {
		maxBytes, bytes int64
		pending, want   int
	}{
		{mebi, 0, 4, 1},
		{mebi, mebi, 4, 1},
		{mebi, 3*mebi + mebi/2, 4, 3},
		{mebi, 100 * mebi, 4, 4},
		{mebi, 100 * mebi, 0, 100},
		{100, 16385, 9, 1},
		{100, 50_000, 9, 3},
	} {
		tr := tracker{Timestamps: Timestamps{MaxBytes: c.maxBytes, MaxPending: c.pending}, memory: &frontier{}, bytes: c.bytes}
		if tr.launched(1); tr.pending != c.want {
			t.Errorf("%d bytes with %d a look, %d outstanding: weight %d, want %d", c.bytes, c.maxBytes, c.pending, tr.pending, c.want)
		}
	}
}

func TestTheDefaultWorkspaceLimitIs4GiB(t *testing.T) {
	if got := new(Config).workspaceLimit(); got != 4<<30 {
		t.Errorf("%d bytes, want 4 GiB", got)
	}
}

const mebi = 1 << 20

func (f *frontier) SetCounter(*alloc.Counter) error { return nil }

func (f *frontier) SetSafeFrontier(count uint64) { f.at = max(f.at, count) }
