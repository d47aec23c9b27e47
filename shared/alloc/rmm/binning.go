package rmm

import (
	"errors"
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/tiling"
	"tideline/shared/alloc/stream"
)

// The constants of the fixed-size resources behind the bins.
const (
	// RunBlocks is how many blocks a bin takes of the pool at a time.
	RunBlocks = 128
	// DefaultLeastBin and DefaultMostBin are the exponents that RMM's own
	// benchmarks make their bins with: 256 KiB to 4 MiB.
	DefaultLeastBin = 18
	DefaultMostBin  = 22
	// leastExponent is a granule, mostExponent what a run of still is a number
	// of bytes.
	leastExponent, mostExponent = 8, 48
)

// BinningOptions configure bins over a pool.
type BinningOptions struct {
	// Pool is the pool below; its Name, Order, OnWait and Observer hold for the
	// whole, and an empty name means rmm_binning.
	Pool PoolOptions
	// LeastBin and MostBin are the exponents of the smallest and the largest
	// bin's block size; both 0 means the defaults.
	LeastBin, MostBin int
}

// Binning serves requests up to the largest bin from blocks of a power of two,
// which bins take of a pool by runs of 128, and larger ones from the pool. It
// is not safe for concurrent use.
//
// Invariants: a run is one block of the pool, in use there; its blocks tile it;
// a free block is in exactly one list of its bin.
type Binning struct {
	pool   *Pool
	blocks tiling.Table // of all bins; a chunk's Owner is its bin
	next   []uint32     // by handle: the one behind it in its list
	bins   []bin
	stream stream.ID

	nextID  int64
	failure string
	stats   alloc.Stats
}

// bin is a resource of one block size.
type bin struct {
	size  int64
	lists []queue // in order of first use
	idle  int
}

// queue is what is free of a bin for one stream, served in the order of freeing.
type queue struct {
	stream      stream.ID
	first, last uint32
}

var _ alloc.Allocator = (*Binning)(nil)

// NewBinning makes the pool and, as upstream, a first run of every bin at once.
func NewBinning(sub alloc.SubAllocator, o BinningOptions) (*Binning, error) {
	if o.LeastBin == 0 && o.MostBin == 0 {
		o.LeastBin, o.MostBin = DefaultLeastBin, DefaultMostBin
	}
	if o.LeastBin < leastExponent || o.MostBin > mostExponent || o.LeastBin > o.MostBin {
		return nil, fmt.Errorf("rmm binning: bins from 2^%d to 2^%d bytes, expected exponents from %d to %d, the smaller first",
			o.LeastBin, o.MostBin, leastExponent, mostExponent)
	}
	if o.Pool.Name == "" {
		o.Pool.Name = "rmm_binning"
	}
	pool, err := NewPool(sub, o.Pool)
	if err != nil {
		return nil, err
	}
	b := &Binning{pool: pool, blocks: tiling.New(), nextID: 1}
	b.stats.Limit = pool.Limit()
	for e := o.LeastBin; e <= o.MostBin; e++ {
		b.bins = append(b.bins, bin{size: 1 << e})
		if !b.run(len(b.bins) - 1) {
			pool.Close()
			return nil, fmt.Errorf("rmm binning: the pool has no room for the first %d blocks of %d bytes: %w", RunBlocks, int64(1)<<e, errors.New(pool.Failure()))
		}
	}
	return b, nil
}

// Name implements alloc.Allocator.
func (b *Binning) Name() string { return b.pool.Name() }

// Limit implements alloc.Allocator.
func (b *Binning) Limit() int64 { return b.pool.Limit() }

// UseStream sets the stream of the calls that follow; at first it is 0.
func (b *Binning) UseStream(s stream.ID) {
	b.stream = s
	b.pool.UseStream(s)
}

// Allocate implements alloc.Allocator. Alignments above 256 are not heard, as
// upstream.
func (b *Binning) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes == 0 {
		return alloc.Block{}, false
	}
	var block alloc.Block
	if i := b.binOf(r.Bytes); i >= 0 {
		h := b.take(i)
		if h == none {
			b.failure = b.pool.Failure()
			return alloc.Block{}, false
		}
		c := &b.blocks.Chunks[h]
		c.ID, c.Requested = b.nextID, r.Bytes
		block = alloc.Block{Address: c.Addr, Size: c.Size, Requested: r.Bytes}
	} else {
		var ok bool
		if block, ok = b.pool.Allocate(r); !ok {
			b.failure = b.pool.Failure()
			return alloc.Block{}, false
		}
	}
	block.ID = b.nextID
	b.nextID++
	s := &b.stats
	s.NumAllocs++
	s.InUse += block.Size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, block.Size)
	return block, true
}

// binOf is the smallest bin that holds so many bytes; -1 where none does.
func (b *Binning) binOf(bytes int64) int {
	if bytes < 0 || bytes > math.MaxInt64/4 {
		return -1
	}
	for i := range b.bins {
		if bytes <= b.bins[i].size {
			return i
		}
	}
	return -1
}

// take removes a block of bin i for the present stream: of its own list, of the
// first other list that has one, after a wait, or of a new run.
func (b *Binning) take(i int) uint32 {
	x := &b.bins[i]
	own := b.list(i)
	if h := b.shift(x, own); h != none {
		return h
	}
	for j := range x.lists {
		if h := b.shift(x, j); h != none {
			b.pool.wait(x.lists[j].stream)
			return h
		}
	}
	if !b.run(i) {
		return none
	}
	return b.shift(x, own)
}

// list is the place of the present stream's list in bin i.
func (b *Binning) list(i int) int {
	x := &b.bins[i]
	for j := range x.lists {
		if x.lists[j].stream == b.stream {
			return j
		}
	}
	x.lists = append(x.lists, queue{stream: b.stream, first: none, last: none})
	return len(x.lists) - 1
}

func (b *Binning) shift(x *bin, list int) uint32 {
	q := &x.lists[list]
	h := q.first
	if h == none {
		return none
	}
	if q.first = b.next[h]; q.first == none {
		q.last = none
	}
	x.idle--
	return h
}

func (b *Binning) push(i int, h uint32) {
	for int(h) >= len(b.next) {
		b.next = append(b.next, none)
	}
	j := b.list(i)
	x := &b.bins[i]
	q := &x.lists[j]
	b.next[h] = none
	if q.last == none {
		q.first = h
	} else {
		b.next[q.last] = h
	}
	q.last = h
	x.idle++
}

// run takes RunBlocks blocks of the pool for bin i, to the present stream's list.
func (b *Binning) run(i int) bool {
	size := b.bins[i].size
	r, ok := b.pool.Allocate(alloc.Request{Bytes: size * RunBlocks})
	if !ok {
		return false
	}
	h := b.blocks.Add(r.Address, r.Size)
	b.blocks.Chunks[h].Owner = uint32(i)
	for n := 1; ; n++ {
		if n == RunBlocks {
			b.push(i, h)
			return true
		}
		rest := b.blocks.Split(h, size)
		b.push(i, h)
		h = rest
	}
}

// Free implements alloc.Allocator; the block goes to the list of the present
// stream, whose work so far must come behind every use of it.
func (b *Binning) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := b.blocks.At(addr)
	if h == none {
		c := b.pool.table.At(addr)
		if c == none {
			return b.pool.Free(addr) // which says what is wrong
		}
		size := b.pool.table.Chunks[c].Size
		if err := b.pool.Free(addr); err != nil {
			return err
		}
		b.stats.InUse -= size
		return nil
	}
	c := &b.blocks.Chunks[h]
	if !c.InUse() {
		return fmt.Errorf("allocator %s: %x was asked to be freed, but no block in use starts there", b.Name(), addr)
	}
	b.stats.InUse -= c.Size
	c.ID = 0
	if o := b.pool.o.Order; o != nil {
		o.Mark(b.stream)
	}
	b.push(int(c.Owner), h)
	return nil
}

// Failure is the text of the last request that failed.
func (b *Binning) Failure() string { return b.failure }

// Stats implements alloc.Allocator. What bins hold and nobody uses is free.
func (b *Binning) Stats() alloc.Stats {
	p, s := b.pool.Stats(), b.stats
	s.PeakAllocated = s.PeakInUse
	s.Pool, s.PeakPool, s.NextRegion, s.LargestFree = p.Pool, p.PeakPool, p.NextRegion, p.LargestFree
	for i := range b.bins {
		if b.bins[i].idle > 0 {
			s.LargestFree = max(s.LargestFree, b.bins[i].size)
		}
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (b *Binning) ClearStats() {
	b.pool.ClearStats()
	b.stats.NumAllocs, b.stats.LargestAlloc, b.stats.PeakInUse = 0, 0, b.stats.InUse
}

// ChunkMap implements alloc.Allocator: the pool's, with the blocks of bins in
// the place of their runs.
func (b *Binning) ChunkMap() event.ChunkMap {
	m := b.pool.ChunkMap()
	for i := range m {
		chunks := m[i].Chunks
		m[i].Chunks = make([]event.Chunk, 0, len(chunks))
		for _, c := range chunks {
			h := b.blocks.At(c.Address)
			if h == none || !c.InUse {
				m[i].Chunks = append(m[i].Chunks, c)
				continue
			}
			for ; h != none; h = b.blocks.Chunks[h].Next {
				x := &b.blocks.Chunks[h]
				m[i].Chunks = append(m[i].Chunks, event.Chunk{Address: x.Addr, Size: x.Size, Requested: x.Requested, InUse: x.InUse()})
			}
		}
	}
	return m
}

// Close implements alloc.Allocator.
func (b *Binning) Close() {
	b.pool.Close()
	for i := range b.bins {
		b.bins[i].lists, b.bins[i].idle = nil, 0
	}
	*b = Binning{pool: b.pool, blocks: tiling.New(), bins: b.bins, nextID: b.nextID, stats: alloc.Stats{Limit: b.Limit()}}
}

// Check verifies the invariants. It is for tests.
func (b *Binning) Check() error {
	if err := b.pool.Check(); err != nil {
		return err
	}
	if err := b.blocks.Check(); err != nil {
		return err
	}
	free := 0
	for _, head := range b.blocks.Heads() {
		bytes := int64(0)
		at := b.blocks.Chunks[head].Addr
		for h := head; h != none; h = b.blocks.Chunks[h].Next {
			c := &b.blocks.Chunks[h]
			if bytes += c.Size; c.Size != b.bins[c.Owner].size {
				return fmt.Errorf("a block of %d bytes at %x in the bin of %d", c.Size, c.Addr, b.bins[c.Owner].size)
			}
			if !c.InUse() {
				free++
			}
		}
		if h := b.pool.table.At(at); h == none || !b.pool.table.Chunks[h].InUse() || b.pool.table.Chunks[h].Size != bytes {
			return fmt.Errorf("the run at %x of %d bytes is no block of the pool", at, bytes)
		}
	}
	for i := range b.bins {
		listed := 0
		for _, q := range b.bins[i].lists {
			for h := q.first; h != none; h = b.next[h] {
				if c := &b.blocks.Chunks[h]; c.InUse() || c.Owner != uint32(i) {
					return fmt.Errorf("the block at %x is in a list of bin %d, but is not free there", c.Addr, i)
				}
				listed++
			}
		}
		if listed != b.bins[i].idle {
			return fmt.Errorf("bin %d lists %d blocks and counts %d", i, listed, b.bins[i].idle)
		}
		free -= listed
	}
	if free != 0 {
		return fmt.Errorf("%d free blocks are in no list", free)
	}
	return nil
}
