package snapshot

// Action is what a trace event tells of.
type Action uint8

// The actions. Free is that of old files, which knew no waiting.
const (
	Unknown Action = iota
	Alloc
	Free
	FreeRequested
	FreeCompleted
	SegmentAlloc
	SegmentFree
	SegmentMap
	SegmentUnmap
	Snap // a snapshot was taken
	OOM
	numActions
)

var actionNames = [numActions]string{
	"unknown", "alloc", "free", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "snapshot", "oom",
}

// String is the action's word in the file.
func (a Action) String() string {
	if a < numActions {
		return actionNames[a]
	}
	return actionNames[Unknown]
}

// Event is one entry of a trace.
type Event struct {
	Addr   uint64 // of OOM: the bytes that the device had free
	Size   int64  // bytes asked for; of segments all bytes
	Time   int64  // microseconds since 1970; 0 where the file has none
	Stack  uint32 // number of a stack; 0 is none
	Meta   uint32 // number of a text the user attached, +1; 0 is none
	Stream uint16 // number of a stream
	Pool   uint16 // number of a pool; 0 is the default one
	Action Action
}

// State is what a block is doing.
type State uint8

// The states of a block.
const (
	Inactive State = iota
	ActiveAllocated
	ActivePendingFree
)

// Block is a piece of a segment.
type Block struct {
	Address   uint64
	Size      int64 // bytes
	Requested int64 // bytes; of an inactive block, those of its last use; -1 where the file does not say
	Stack     uint32
	State     State
}

// Segment is memory from the driver.
type Segment struct {
	Address    uint64
	Total      int64 // bytes, as are all sizes
	Allocated  int64
	Active     int64
	Requested  int64 // -1 where the file does not say
	Device     int
	Stack      uint32
	Stream     uint16
	Pool       uint16
	Large      bool
	Expandable bool
	first, n   int // blocks
}

// PoolID names a private pool of the allocator; the zero value is the default.
type PoolID struct{ A, B int64 }

// Frame is one line of a stack.
type Frame struct {
	File, Name uint32 // numbers of texts
	Line       int32
}

const chunkLen = 8192

// column keeps rows in chunks of fixed length: growing it copies nothing.
type column[T any] struct {
	chunks [][]T
	n      int
}

func (c *column[T]) len() int { return c.n }

func (c *column[T]) at(i int) *T { return &c.chunks[uint(i)/chunkLen][uint(i)%chunkLen] }

// add makes a row, which is zero.
func (c *column[T]) add() *T {
	k := uint(c.n) / chunkLen
	at := uint(c.n) % chunkLen
	if k == uint(len(c.chunks)) || at == uint(len(c.chunks[k])) {
		c.grow()
	}
	c.n++
	return &c.chunks[k][at]
}

// grow makes place: a chunk, or more of the first one, as most columns are
// short.
func (c *column[T]) grow() {
	switch n := c.n; {
	case n == 0:
		c.chunks = append(c.chunks, make([]T, 256))
	case n < chunkLen:
		c.chunks[0] = append(c.chunks[0], make([]T, n)...)
	default:
		c.chunks = append(c.chunks, make([]T, chunkLen))
	}
}
