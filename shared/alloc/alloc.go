package alloc

import "tideline/protocol/event"

// DefaultAlignment is what a request with Alignment 0 asks for, in bytes; the
// alignment that TensorFlow's tensors ask for.
const DefaultAlignment = 64

// Allocator serves requests for one memory space of one device.
type Allocator interface {
	// Name is the allocator's name in logs, such as GPU_0_bfc.
	Name() string
	// Limit is the most bytes it will take from the driver; 0 means no limit.
	Limit() int64
	// Allocate hands out a block, or reports false when there is no memory
	// for it, which is a result and not an error. A request of 0 bytes gets
	// the zero Block and false, without a trace in the statistics.
	Allocate(r Request) (Block, bool)
	// Free takes a block back by its address. Address 0 stands for the block
	// of a failed request and is ignored. An address that is not in use is an
	// error, and changes nothing.
	Free(addr uint64) error
	// Stats are the figures of this instant.
	Stats() Stats
	// ClearStats starts peaks and counts anew.
	ClearStats()
	// ChunkMap is everything the allocator holds, ascending by address.
	ChunkMap() event.ChunkMap
	// Close gives all regions back to the driver, in use or not. The allocator
	// must not be used afterwards.
	Close()
}

// Request says what is wanted. The zero value of every field but Bytes is what
// TensorFlow's kernels ask for by default.
//
// Four fields in four words are what the compiler takes apart into single
// values. One more, and WebAssembly copies every request through memory, which
// is a quarter of a request's time.
type Request struct {
	Bytes     int64 // as the caller wants them, not rounded
	Alignment int64 // a power of two in bytes; 0 means DefaultAlignment
	// FreedBy gives the stamp up to which freed memory may be used; nil, or 0
	// as its answer, means that there is none. It is asked anew at every
	// attempt of a request that waits.
	FreedBy func() uint64
	// NoRetry: the caller can do without (a workspace), so one attempt only.
	NoRetry bool
}

// End says from which end of a partitioned region a request is served.
type End uint8

// The two ends.
const (
	Lower End = iota
	Upper
)

// String is the end's word in logs.
func (e End) String() string {
	if e == Upper {
		return "upper"
	}
	return "lower"
}

// Block is memory handed out.
type Block struct {
	Address   uint64
	Size      int64 // bytes taken from the pool, rounding and waste included
	Requested int64 // bytes asked for
	ID        int64 // counts the successful allocations of this allocator from 1
}

// Stats are an allocator's figures. Bytes unless said otherwise.
type Stats struct {
	NumAllocs     int64 // successful allocations since the start or ClearStats
	InUse         int64 // sum of the blocks handed out, waste included
	PeakInUse     int64 // the most that InUse was
	LargestAlloc  int64 // largest block handed out
	Limit         int64 // 0 when there is none
	Reserved      int64 // held beside the blocks; 0 for a BFC allocator
	PeakReserved  int64
	PeakAllocated int64 // the most that InUse + Reserved was
	LargestFree   int64 // largest free chunk
	Pool          int64 // taken from the driver
	PeakPool      int64
	NextRegion    int64 // what the next region would ask for, before limits
	WaitNanos     int64 // modelled time that requests spent waiting for memory
}

// Free is the bytes of the pool that are not in use.
func (s Stats) Free() int64 { return s.Pool - s.InUse }

// Fragmentation is the part of the free bytes outside of the largest free
// chunk, 0 to 1, and 0 when nothing is free.
func (s Stats) Fragmentation() float64 {
	free := s.Free()
	if free == 0 {
		return 0
	}
	return float64(free-s.LargestFree) / float64(free)
}

// FailureLog counts the failed requests that were logged. TensorFlow has one
// counter per process and stops at ten; allocators that share a FailureLog
// share the ten.
type FailureLog struct{ logged int }

// MaxFailureLogs is how many failures of a process are logged.
const MaxFailureLogs = 10

// Open reports whether another failure may be logged.
func (f *FailureLog) Open() bool { return f.logged < MaxFailureLogs }

// Count uses one up.
func (f *FailureLog) Count() { f.logged++ }

// Counter gives the stamps of timestamped frees. Several allocators of one
// device share it with whoever tracks the kernels. The zero value is ready.
type Counter struct{ now uint64 }

// Next advances the counter and returns its new value; the first is 1.
func (c *Counter) Next() uint64 { c.now++; return c.now }

// Now is the present value.
func (c *Counter) Now() uint64 { return c.now }
