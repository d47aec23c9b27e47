package bfc

import (
	"fmt"
	"math"
	"math/bits"

	"tideline/shared/alloc"
)

// Allocator is one BFC allocator. It is not safe for concurrent use.
//
// Invariants, checked by tests after every step: pool is the sum of the
// regions; the chunks of every region tile it; without stamps no two free
// neighbours exist; there is at most one gap, and none without partitioning.
type Allocator struct {
	// plain: chunks are told apart by size and address alone. There are no
	// stamps, and never were, and no partition.
	plain      bool
	indexAll   bool // the index holds free chunks too
	freeHandle uint32
	gap        uint32 // the chunk between the two ends, or none
	chunks     []chunk
	index      index

	o          Options
	sub        alloc.SubAllocator
	limit      uint64
	pool       uint64
	peakPool   uint64
	nextRegion uint64
	splitWaste uint64
	regions    []region // ascending by address

	nextID  int64
	cleared int64 // nextID - 1 when the statistics were cleared
	inUse   int64
	peak    int64
	largest int64
	waited  int64

	counter  *alloc.Counter // nil: frees carry no stamp
	frontier uint64
	queue    []uint32 // freed with a stamp, not merged yet
	spare    []uint32 // queue's other buffer
	merging  []uint64 // merge's addresses, kept for their room
	failures *alloc.FailureLog
	obs      alloc.Observer

	sets [2]freeSet // by tag: lower (all, when not partitioned), upper
}

var _ alloc.Allocator = (*Allocator)(nil)

// region is memory of the driver. Its first chunk keeps its handle, because
// cutting and merging leave the left part's.
type region struct {
	addr, size uint64
	first      uint32
}

func (r region) end() uint64 { return r.addr + r.size }

// New returns an allocator that takes its memory from sub. It takes none yet:
// the first request makes the first region.
func New(sub alloc.SubAllocator, o Options) (*Allocator, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Allocator{
		o: o, sub: sub, limit: uint64(o.Limit),
		nextID: 1, splitWaste: SplitWaste, failures: o.Failures, obs: o.Observer,
	}
	first := a.limit
	if o.Growth {
		first = min(first, FirstRegion)
	}
	a.nextRegion = round(first)
	if o.Fragmentation > 0 {
		a.splitWaste = uint64(o.Fragmentation * float64(o.Limit))
	}
	a.clearTables()
	if a.failures == nil {
		a.failures = new(alloc.FailureLog)
	}
	if a.obs == nil {
		a.obs = alloc.NoObserver{}
	}
	if o.Partition.On && o.Partition.Generation == Gen2 {
		for t, p := range [2]EndPolicy{o.Partition.Lower, o.Partition.Upper} {
			if p.Order == Descending {
				a.sets[t].flip = math.MaxUint64
			}
		}
	}
	return a, nil
}

// round is RoundedBytes: up to a whole granule. Sizes past the last granule
// stay there; upstream wraps to zero and corrupts itself.
func round(n uint64) uint64 {
	if n > math.MaxUint64-(MinAllocation-1) {
		return math.MaxUint64 &^ (MinAllocation - 1)
	}
	return (n + MinAllocation - 1) &^ (MinAllocation - 1)
}

// BinOf is the number of the bin that a chunk of size bytes belongs to.
func BinOf(size int64) int { return binOf(uint64(size)) }

func binOf(size uint64) int {
	return min(NumBins-1, bits.Len64(max(size, MinAllocation)>>minBits)-1)
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Allocator) Limit() int64 { return a.o.Limit }

// Options are the options the allocator was made with.
func (a *Allocator) Options() Options { return a.o }

// want is a request as the search sees it.
type want struct {
	requested uint64
	size      uint64 // rounded
	align     uint64 // what the address must honour; at least MinAllocation
	ask       int64  // what the driver is asked for
	freedBy   uint64
	end       tag
}

// AllocateFrom is Allocate from an end of the region, if it is partitioned.
func (a *Allocator) AllocateFrom(end alloc.End, r alloc.Request) (alloc.Block, bool) {
	if !a.o.Partition.On {
		return a.Allocate(r)
	}
	return a.allocate(r, end)
}

// allocate is Allocate for every kind of request.
func (a *Allocator) allocate(r alloc.Request, end alloc.End) (alloc.Block, bool) {
	w := want{requested: uint64(r.Bytes), size: round(uint64(r.Bytes)), align: MinAllocation, ask: MinAllocation}
	if r.Alignment > MinAllocation {
		w.ask = powerOfTwo(r.Alignment)
		if a.o.Profile == Current {
			w.align = uint64(w.ask)
		}
	}
	if a.o.Partition.On && end == alloc.Upper {
		w.end = tagUpper
	}
	if r.FreedBy != nil {
		w.freedBy = r.FreedBy()
	}
	h := none
	if r.Bytes != 0 {
		h = a.attempt(&w)
	}
	if h == none {
		if h = a.failed(&w, &r); h == none {
			return alloc.Block{}, false
		}
	}
	return a.use(h, w.requested), true
}

func powerOfTwo(n int64) int64 {
	if n&(n-1) == 0 {
		return n
	}
	return 1 << min(62, bits.Len64(uint64(n)))
}

// attempt is AllocateRawInternal without what it logs.
func (a *Allocator) attempt(w *want) uint32 {
	if len(a.queue) > 0 {
		a.mergeStamped(0)
	}
	if h := a.find(w); h != none {
		return h
	}
	return a.attemptHarder(w)
}

func (a *Allocator) attemptHarder(w *want) uint32 {
	if a.extend(w) {
		if h := a.find(w); h != none {
			return h
		}
	}
	if w.freedBy == 0 && len(a.queue) > 0 && a.mergeStamped(w.size) {
		if h := a.find(w); h != none {
			return h
		}
	}
	if a.collect(w.size) && a.extend(w) {
		if h := a.find(w); h != none {
			return h
		}
	}
	if a.o.OnFailure != nil {
		a.o.OnFailure()
	}
	return none
}

// find takes the best free chunk for w out of its set, cut to size, or returns
// none.
func (a *Allocator) find(w *want) uint32 {
	if a.o.Partition.On {
		return a.findPartitioned(w)
	}
	if w.freedBy == 0 && w.align == MinAllocation {
		return a.takeBest(w.size)
	}
	h := a.search(w)
	if h == none {
		return none
	}
	a.unbin(h)
	h = a.splitPad(h, w.align)
	if a.worthSplitting(a.chunks[h].size, w.size) {
		a.bin(a.split(h, w.size))
	}
	return h
}

// takeBest is find where only the size counts.
func (a *Allocator) takeBest(size uint64) uint32 {
	s := &a.sets[tagLower]
	h := s.first(a.chunks, size)
	if h == none {
		return none
	}
	s.remove(a.chunks, h)
	if a.worthSplitting(a.chunks[h].size, size) {
		rest := a.split(h, size)
		s.insert(a.chunks, rest)
	}
	return h
}

// worthSplitting: upstream splits at exactly twice the request too, hence >=.
func (a *Allocator) worthSplitting(size, want uint64) bool {
	return size-want >= want || size-want >= a.splitWaste
}

// search finds the best free chunk when more than its size counts: its stamp,
// or room for an aligned start.
func (a *Allocator) search(w *want) uint32 {
	h := none
	a.sets[w.end].each(a.chunks, w.size, func(x uint32) bool {
		c := &a.chunks[x]
		if w.freedBy > 0 && w.freedBy < c.freedAt || !fits(c, w) {
			return true
		}
		h = x
		return false
	})
	return h
}

// pad is how far the first aligned start lies above addr.
func pad(addr, align uint64) uint64 { return -addr & (align - 1) }

func fits(c *chunk, w *want) bool {
	p := pad(c.addr, w.align)
	return c.size >= p && c.size-p >= w.size
}

// splitPad cuts off what lies before the first aligned address of h. The
// prefix keeps the handle and goes back to its set; the aligned part is
// returned.
func (a *Allocator) splitPad(h uint32, align uint64) uint32 {
	p := pad(a.chunks[h].addr, align)
	if p == 0 {
		return h
	}
	rest := a.split(h, p)
	a.bin(h)
	return rest
}

// use hands h out.
func (a *Allocator) use(h uint32, requested uint64) alloc.Block {
	if !a.indexAll {
		a.index.add(a.chunks, h)
	}
	c := &a.chunks[h]
	c.requested = requested
	c.id = a.nextID
	a.nextID++
	size := int64(c.size)
	a.inUse += size
	a.peak = max(a.peak, a.inUse)
	a.largest = max(a.largest, size)
	return alloc.Block{Address: c.addr, Size: size, Requested: int64(requested), ID: c.id}
}

// free is Free for every kind of allocator.
func (a *Allocator) free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.at(addr)
	if h == none || !a.chunks[h].inUse() {
		return a.badFree(addr)
	}
	if !a.indexAll {
		a.index.remove(a.chunks, h)
	}
	c := &a.chunks[h]
	c.id = idFree
	a.inUse -= int64(c.size)
	if a.counter != nil {
		c.freedAt = a.counter.Next()
		a.bin(h)
		a.queue = append(a.queue, h)
		return nil
	}
	if a.o.Profile == Current {
		c.freedAt = 0
	}
	if a.o.Partition.On {
		a.retag(h)
	}
	a.bin(a.coalesce(h, false))
	return nil
}

func (a *Allocator) badFree(addr uint64) error {
	if addr == 0 {
		return nil
	}
	twice := false
	a.eachChunk(func(_ uint32, c *chunk) { twice = twice || c.addr == addr })
	if twice {
		return fmt.Errorf("allocator %s: block %x is freed twice", a.o.Name, addr)
	}
	return fmt.Errorf("allocator %s: %x was asked to be freed, but no block starts there", a.o.Name, addr)
}

// Lookup tells of the block in use that starts at addr; ok is false when there
// is none.
func (a *Allocator) Lookup(addr uint64) (b alloc.Block, ok bool) {
	h := a.at(addr)
	if h == none || !a.chunks[h].inUse() {
		return alloc.Block{}, false
	}
	c := &a.chunks[h]
	return alloc.Block{Address: addr, Size: int64(c.size), Requested: int64(c.requested), ID: c.id}, true
}

// Close implements alloc.Allocator.
func (a *Allocator) Close() {
	for _, r := range a.regions {
		a.giveBack(r)
	}
	*a = Allocator{o: a.o, sub: a.sub, obs: a.obs, failures: a.failures, nextID: a.nextID, cleared: a.nextID - 1}
	a.clearTables()
}

// clearTables makes the tables of an allocator without chunks.
func (a *Allocator) clearTables() {
	a.chunks = append(make([]chunk, 0, 64), nobody)
	a.index = newIndex()
	a.indexAll = a.o.Partition.On
	a.plain = !a.indexAll
	for t := range a.sets {
		a.sets[t].walk = longWalk
	}
}
