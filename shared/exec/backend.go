package exec

import (
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/device"
	"tideline/shared/program"
)

// Backend does the work that an executor orders, or only counts its time. It
// owns the run's clock. Calls come from one goroutine, in the order in which a
// single host thread would issue them; everything that one call reads has been
// ordered before it.
type Backend interface {
	// Open is called once, before anything else, with the run's devices; the
	// index in the slice is the event.DeviceID.
	Open(devices []*device.Logical) error
	// Close releases everything. Nothing is called after it.
	Close()

	// Modelled says whether times come from the cost model rather than a clock.
	Modelled() bool

	// Map makes bytes at addr of a device's address space usable, when an
	// allocator got a region; Unmap ends that. An error means that the host
	// cannot back the memory, and fails the run.
	Map(dev event.DeviceID, addr uint64, bytes int64) error
	Unmap(dev event.DeviceID, addr uint64, bytes int64)
	// Bytes is the content of device memory, valid until the next call, or nil
	// where there is only an address. The host may write into host memory.
	Bytes(r Ref) []byte

	// Now is the host's time in nanoseconds since the run began.
	Now() int64
	// Spend lets the host be busy for so long. A real clock has spent its time
	// already and ignores it.
	Spend(nanos int64)
	// WaitUntil blocks the host until the given time, if it lies ahead.
	WaitUntil(t int64)

	// Launch orders a kernel on its device's compute stream and says when it
	// runs. Work on CPU:0 is done when Launch returns.
	Launch(k *Kernel) (Span, error)
	// Copy orders a transfer and says when it runs.
	Copy(c *Copy) (Span, error)
	// Idle is when the device has done all that was ordered so far.
	Idle(dev event.DeviceID) int64
}

// Driver is a Backend whose memory a real driver gives and may refuse, and
// whose work can fail after it was ordered.
type Driver interface {
	Backend
	// Back puts the driver behind an address space: what it refuses, Take
	// refuses. pinned tells page-locked memory of the host from the pageable
	// kind, for which space itself may come back. Map is still called.
	Back(dev event.DeviceID, pinned bool, space alloc.SubAllocator) alloc.SubAllocator
	// Err is the first failure of work ordered so far that is known by now; nil
	// when there was none. It ends the run.
	Err() error
}

// Reserver is a Backend with memory of its own that must know of addresses
// before Map puts memory behind parts of them, page by page, so that a block
// over several pages is one piece.
type Reserver interface {
	Backend
	// Reserve sets addresses aside, and Unreserve ends that as a whole.
	Reserve(dev event.DeviceID, addr uint64, bytes int64) error
	Unreserve(dev event.DeviceID, addr uint64, bytes int64)
}

// Span is the time that work takes, on the run's clock.
type Span struct{ Begin, End int64 }

// Ref is memory of a device. The zero Bytes goes with no address.
type Ref struct {
	Address uint64
	Bytes   int64 // as requested, not as rounded
	Device  event.DeviceID
}

// Kernel is one call of an op's kernel. The executor reuses it: a Backend
// must not keep it, or its slices, beyond Launch.
type Kernel struct {
	Program *program.Program
	Node    *program.Node
	Device  event.DeviceID
	// In has one per input, in memory that the kernel can read, but for Shape,
	// which reads no contents; a variable's is its own buffer.
	In  []Ref
	Out []Ref // one per output; an in-place output equals its input
	// Workspace is temporary memory; without Bytes the kernel does without.
	Workspace Ref
	Step      int32 // from 0
	Nanos     int64 // what the cost model says
	After     int64 // earliest start: when the last copied input arrives
}

// Copy is one transfer. Source and destination have equal sizes.
type Copy struct {
	From, To Ref
	Stream   event.StreamID
	Pinned   bool
	Staged   bool  // the driver routes it through the host
	Nanos    int64 // what the cost model says
	// After is the earliest start: when work that the copy depends on is done.
	After int64
	// Safe says that no work ordered before on the destination's device can
	// still use its memory, so that the copy need not wait for it.
	Safe bool
}
