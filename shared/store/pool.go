package store

import "tideline/protocol/event"

// Categories is a number of bytes for each event.Category.
type Categories [event.NumCategories]int64

// Total is the sum over all categories.
func (c *Categories) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// Plain is the same with all groups in Unknown: those of two files have nothing
// in common.
func (c Categories) Plain() Categories {
	for k := int(event.Group1); k < len(c); k++ {
		c[event.Unknown], c[k] = c[event.Unknown]+c[k], 0
	}
	return c
}

// State is what a pool holds at an instant, in bytes.
type State struct {
	Time       int64
	InUse      int64      // handed out, as rounded by the allocator
	Waste      int64      // of InUse: rounded minus requested
	Reserved   int64      // held from the driver; 0 where a pool tells no regions
	ByCategory Categories // sums to InUse
}

// MemoryBucket is a pool over one bucket of a Window. The value at the
// bucket's start counts, so an empty bucket shows what was there before.
type MemoryBucket struct {
	Min, Max   int64      // of bytes in use
	Time       int64      // when Max was first reached in the bucket
	ByCategory Categories // at that instant: sums to Max
	Waste      int64      // at that instant
	Reserved   int64      // highest in the bucket
	Events     int        // changes in the bucket

	points int // of the pool, before that instant
}

// Allocation is one block from its birth to its death. Taking a block over in
// place (event.Forward) ends one Allocation and begins another.
type Allocation struct {
	Index     int    // within its pool, in order of birth
	Birth     int64  // nanoseconds
	Death     int64  // Alive when it was not freed yet
	Address   uint64 // in the device's address space
	Size      int64  // bytes, rounded
	Requested int64  // bytes
	Tensor    event.StringID
	Op        event.StringID
	Step      int32
	Category  event.Category
	Stream    event.StreamID
	Forwarded bool // took the block over from another tensor
}

// Alive is the Death of a block that was not freed yet.
const Alive = int64(1<<63 - 1)

// SortKey orders a table of allocations.
type SortKey uint8

// The orders; ties are broken by age.
const (
	BySize    SortKey = iota // largest first
	ByAge                    // oldest first
	ByAddress                // lowest first
	ByWaste                  // most internal fragmentation first
)

// Total is a sum over allocations that share a category, an op, or all names.
type Total struct {
	Category event.Category
	Op       event.StringID
	Tensor   event.StringID // of TotalsByName only
	Bytes    int64
	Waste    int64
	Count    int
}

// Peak is the highest number of bytes in use.
type Peak struct {
	State
	Count int     // live allocations
	Top   []Total // by op, largest first, at most as many as asked for
}

// Pool is one allocator on one device with its history.
type Pool struct {
	Index     int // in Timeline.Pools
	Device    event.DeviceID
	Allocator event.AllocatorID
	Name      string // GPU_0_bfc, or "allocator 2" when the facts are missing
	Limit     int64  // bytes; 0: none
	Facts     event.Fields

	// Bytes in use after each point; a point is an alloc, a free or a forward,
	// and extra says which one of what.
	inUse numbers
	// What the pool held before points 0, markEvery, 2*markEvery, …: by
	// category, and the waste.
	marks rows
	now   State

	allocs   rows // columns: birthCol …
	lives    lifetimes[uint32]
	lasting  lasting
	live     table        // address -> index into blocks
	blocks   vector[held] // the live ones, and vacant places
	vacant   []int32
	forwards rows // the allocation before, the one after

	reserved numbers
	regions  []Region
	active   []int32 // regions held now, ascending by address
	gone     table   // address -> the region that was removed from there last
	layout   int64   // bytes
	used     int64   // of them, as far as blocks ever reached
	lastReg  int32   // that held the last address
	tiles    tiles
	refused  int
	seen     uint32 // a bit for each category that a block ever had
}

// CategoryName is what a category is called in this pool: see event.Category.In.
func (p *Pool) CategoryName(c event.Category) string { return c.In(p.Facts) }

// Planned reports whether the pool is an arena of planned execution: a block of
// another pool of the same device, with tensors at places that were worked out
// before.
func (p *Pool) Planned() bool {
	kind, _ := p.Facts.Get("kind")
	return kind == "planned"
}

// The columns of allocations, whose index is the row.
const (
	birthCol = iota // number of points before its first
	addrCol
	sizeCol
	wasteCol // size - requested
	tensorCol
	opCol
	stepCol
	kindCol   // category, stream and forwarded in one number: see packKind
	regionCol // index into regions; -1: none
	allocCols
)

// Region is one piece of memory that the pool got from the driver, with its
// place in the pool's compact layout, in which regions lie end to end. One that
// went and came again at the same address and of the same size is the same
// region: see Pool.Holds for when it was there.
type Region struct {
	Added   int64 // nanoseconds; when it first came
	Removed int64 // Alive while held; when it last went
	Address uint64
	Size    int64
	Offset  int64 // of its first byte in the layout
	Implied bool  // no event told of it: made up from the blocks in it

	from, until int   // numbers of changes of regions before it came, and before it went
	turns       *rows // where it went and came again: see turn
}
