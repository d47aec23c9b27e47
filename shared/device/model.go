package device

import "math/bits"

// Model turns work into modelled nanoseconds. Rates are per second. The zero
// rate costs no time.
type Model struct {
	FLOPS        int64 // dense float32 peak
	MemBandwidth int64 // bytes
	H2D          int64 // bytes, from pinned host memory
	D2H          int64 // bytes, to pinned host memory
	Peer         int64 // bytes, to another accelerator without the host's help; 0: through the host
	CopyLatency  int64 // nanoseconds from launch to completion of a tiny copy
	LaunchGap    int64 // nanoseconds a kernel costs beside its work
	HostCopy     int64 // bytes, one thread's memcpy in host memory
}

const second = 1_000_000_000

// Efficiencies in thousandths of the peak.
const (
	effFlopLarge   = 500 // matmul and convolution from smallFlops on
	effFlopSmall   = 300
	effMemory      = 750
	effLocalCopy   = 800
	smallFlops     = 1_000_000_000
	pageableFactor = 24 // tenths: pageable memory is 2.4 times slower
)

// Kernel is the time of a kernel that does so many floating-point operations
// and moves so many bytes: whichever takes longer, and the gap before it.
func (m *Model) Kernel(flops, bytes int64) int64 {
	eff := int64(effFlopLarge)
	if flops < smallFlops {
		eff = effFlopSmall
	}
	work := at(flops, scale(m.FLOPS, eff))
	move := at(bytes, scale(m.MemBandwidth, effMemory))
	return m.LaunchGap + max(work, move)
}

// Upload is the time of a host-to-device copy, Download of one back.
func (m *Model) Upload(bytes int64, pinned bool) int64 { return m.link(bytes, m.H2D, pinned) }

// Download is the time of a device-to-host copy.
func (m *Model) Download(bytes int64, pinned bool) int64 { return m.link(bytes, m.D2H, pinned) }

func (m *Model) link(bytes, rate int64, pinned bool) int64 {
	if bytes == 0 {
		return 0
	}
	t := at(bytes, rate)
	if !pinned {
		t = t / 10 * pageableFactor
	}
	return m.CopyLatency + t
}

// ToPeer is the time of a copy to another accelerator, and whether the driver
// has to route it through the host.
func (m *Model) ToPeer(bytes int64) (nanos int64, staged bool) {
	if bytes == 0 {
		return 0, false
	}
	if m.Peer > 0 {
		return m.CopyLatency + at(bytes, m.Peer), false
	}
	return m.CopyLatency + at(bytes, m.D2H/2), true
}

// Local is the time of a copy within the device: every byte is read and
// written.
func (m *Model) Local(bytes int64) int64 {
	if bytes == 0 {
		return 0
	}
	return m.LaunchGap + at(2*bytes, scale(m.MemBandwidth, effLocalCopy))
}

// HostMove is the time one host thread takes to copy bytes in host memory.
func (m *Model) HostMove(bytes int64) int64 { return at(bytes, m.HostCopy) }

// DriverAlloc is the time the driver takes to hand out a region: 100 µs, and
// 1 µs per MiB, up to 1 ms in all.
func DriverAlloc(bytes int64) int64 { return min(1_000_000, 100_000+1_000*(bytes>>20)) }

// DriverFree is the host time of giving a region back, apart from the wait
// for the device that it implies.
const DriverFree = 100_000

func scale(rate, thousandths int64) int64 {
	if rate >= 1_000_000 {
		return rate / 1000 * thousandths
	}
	return rate * thousandths / 1000
}

// at is amount/rate seconds in nanoseconds, rounded down, in 128 bits.
func at(amount, rate int64) int64 {
	if rate <= 0 || amount <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(amount), second)
	if hi >= uint64(rate) {
		return 1<<63 - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(rate))
	if q > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(q)
}
