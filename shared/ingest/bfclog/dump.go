package bfclog

// Log is everything that one text says about running out of memory.
type Log struct {
	Dumps   []*Dump // in order of appearance
	Notices []Notice
	Lines   int   // physical lines read
	Bytes   int64 // bytes read
	// Cut says that a limit of this reader stopped it before the text's end.
	Cut string
}

// Notice is the short warning that an allocator prints for a failed attempt.
// It is no error by itself: the caller may retry or do without.
type Notice struct {
	File       string // of several texts, the one that it is in, where a report names them
	Line       int    // first of them
	Allocator  string
	Requested  Size
	NotFailure bool // the caller said that it can do without
	Count      int  // equal lines
}

// Dump is one failure: whatever survives of the allocator's dump, its request
// line and the error that followed. Lengths and sizes are bytes.
type Dump struct {
	Line      int    // where it begins, from 1
	Source    string // log collector's prefix, "" for none
	Allocator string // "" when the text does not say
	Request   Request
	Tensor    Tensor

	Limit, InUse, Peak, LargestAlloc Size // of the Stats block
	Allocs                           Size // a count
	Reserved, PeakReserved           Size // printed, always 0 for this allocator
	PeakAllocated, LargestFreeField  Size // printed by newer versions only
	HasStats                         bool

	Bins     []Bin
	FreeOnly bool // the bins count free chunks only (before mid-2017)
	Target   Size // nominal size of the bin where the search began
	State    []ChunkState

	Regions      []Region
	RegionLines  bool // regions were announced, not inferred from addresses
	ListComplete bool // every chunk of the pool is listed, checked against the rest

	Summary    []SizeClass
	HasSummary bool
	SumTotal   Size

	Pool, PoolLimit, Available, NextRegion Size // of the pool line
	FreeInPool, LargestFree                Size // of the summary line of 2025 on
	Growth                                 Tri

	Bar       string // 100 cells, or fewer when cut
	HasBar    bool
	Empty     bool // "allocator contains no memory"
	Refusals  []int64
	Pinned    []int64 // refused page-locked host memory
	Collected bool    // free regions were given back before the failure
	Faces     []string
	Usage     []Holder

	DriverFree, DeviceTotal Size // of the stream-ordered allocator's text
	Async                   bool // printed by the stream-ordered allocator

	// Start is what lines before the dump tell of the device; zero for nothing.
	Start Start

	// Map: read from a memory map, a file of TF_BFC_MEMORY_DUMP, which has every
	// chunk with what was asked for, but neither the failing request nor a limit.
	Map   bool
	Notes []string // sentences about what the reader could not conclude

	Gaps     []int // lines where somebody marked an omission
	Promised bool  // the request line announces a dump
	// Missing names the parts that a whole dump has and this text lacks.
	Missing []string
	// Truncated says that the text once went on: Missing tells how that is known.
	Truncated bool

	phase    phase
	statsOn  bool
	lastEnd  uint64
	order    int
	rawList  []Chunk
	listGap  bool
	usageOn  bool
	confirms int
}

// Start is a device as the program found it when it began.
type Start struct {
	Card        string
	Total, Free Size // of the device
	Promised    Size // to the allocator
}

// Tri is a yes, a no, or nothing known.
type Tri uint8

// The values of Tri.
const (
	Unknown Tri = iota
	No
	Yes
)

// Request is what was asked of the allocator.
type Request struct {
	Size    Size // as printed: rounded text, or bytes
	Rounded Size // to the allocator's granule
	Op      string
	HasOp   bool // the text names an op, though the name may be empty
	End     string
	FreedBy Size // a count
	Short   bool // only a notice, no dump announced
	Told    bool // the request line is there; without it Size may come from elsewhere
	// NotFailure: the caller said that it can do without.
	NotFailure bool
	// Bytes is the exact size that an error message beside the dump tells.
	Bytes Size
}

// Tensor is what the failing op wanted the memory for.
type Tensor struct {
	Shape    []int64
	HasShape bool
	DType    string // TensorFlow's name, "" when not told
	Device   string
	Op       string // op type
	Node     string // name of the op in its graph
}

// Bin is one of the allocator's 21 size classes.
type Bin struct {
	Index                                             int
	Chunks, InUse                                     int64
	Allocated, Used, Requested, RequestedForAllChunks Size
}

// ChunkState is a free chunk of the bin where the search began.
type ChunkState struct {
	Size, Requested Size
	InUse           bool
}

// Region is memory got from the driver at once. Chunks ascend by address.
type Region struct {
	Address  uint64
	Size     int64 // as announced, or the sum of its chunks
	Chunks   []Chunk
	Complete bool // the chunks tile it without a gap
}

// Chunk is one listed piece of a region.
type Chunk struct {
	Address uint64
	Size    int64
	InUse   bool
	Next    uint64 // handle of the following chunk
	HasNext bool
	Op      string // builds with memory debugging only
	Step    int64  // likewise
	FreedAt int64  // stamp of the timing counter
	Tag     string // end of a partitioned pool
	// Requested is what was asked for; texts do not tell it of one chunk.
	Requested    int64
	HasRequested bool
	Action       uint64 // count of the allocator's actions; builds with memory debugging only
	// Gap: chunks before this one are missing.
	Gap bool
}

// LastHandle is Chunk.Next of a region's last chunk.
const LastHandle = ^uint64(0)

// SizeClass is one row of the summary: Count chunks in use of Size bytes each.
type SizeClass struct{ Count, Size int64 }

// Holder is one row of the usage report that some errors carry.
type Holder struct {
	Size Size
	Node string
}

// phase orders the parts of a dump as they are printed.
type phase uint8

const (
	phaseRequest phase = iota
	phaseHeader
	phaseBins
	phaseState
	phaseList
	phaseSummary
	phaseTotal
	phasePool
	phaseStats
	phaseBar
)

func (d *Dump) advance(p phase) {
	if p > d.phase {
		d.phase = p
	}
}

// Asked is what was asked for of the chunk, or its size where that is not told.
func (c *Chunk) Asked() int64 {
	if c.HasRequested {
		return c.Requested
	}
	return c.Size
}

// HostPinned says whether the allocator hands out page-locked host memory,
// which is told by its name only.
func (d *Dump) HostPinned() bool {
	return containsFold(d.Allocator, "host_bfc") || containsFold(d.Allocator, "pinned")
}

// Begun says whether any part of the dump proper survives.
func (d *Dump) Begun() bool {
	return len(d.Bins) > 0 || len(d.State) > 0 || len(d.Regions) > 0 || len(d.rawList) > 0 ||
		d.HasSummary || d.SumTotal.Known || d.Pool.Known || d.HasStats || d.phase == phaseHeader
}
