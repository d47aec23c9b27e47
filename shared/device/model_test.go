package device

import "testing"

func TestCopyTimes(t *testing.T) {
	const bytes = 100 * mib
	t4, _ := Find("t4-16g")
	a100, _ := Find("a100-40g")
	m3, m4 := t4.Model(), a100.Model()
	for _, c := range []struct {
		name      string
		got, want int64 // microseconds
	}{
		{"PCIe 3 pinned", m3.Upload(bytes, true) / 1000, 8602},
		{"PCIe 3 pageable", m3.Upload(bytes, false) / 1000, 20635},
		{"PCIe 4 pinned", m4.Upload(bytes, true) / 1000, 4072},
		{"nothing", m3.Upload(0, true), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestKernelTakesTheLongerOfWorkAndMoves(t *testing.T) {
	m := Model{FLOPS: 1e12, MemBandwidth: 1e11, LaunchGap: 100}
	if got := m.Kernel(2_000_000_000, 0); got != 100+4_000_000 {
		t.Errorf("2 GFLOP at half of 1 TFLOPS: %d ns", got)
	}
	if got := m.Kernel(0, 75_000_000); got != 100+1_000_000 {
		t.Errorf("75 MB at 75 GB/s: %d ns", got)
	}
	if got := m.Kernel(1<<62, 1<<62); got <= 0 {
		t.Errorf("overflow: %d", got)
	}
}

func TestPeerCopyWithoutALinkGoesThroughTheHost(t *testing.T) {
	t4, _ := Find("t4-16g")
	m := t4.Model()
	if nanos, staged := m.ToPeer(mib); !staged || nanos <= m.Download(mib, true) {
		t.Errorf("staged %v, %d ns", staged, nanos)
	}
	if nanos, staged := m.ToPeer(0); nanos != 0 || staged {
		t.Error("a copy of nothing took time")
	}
}
