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
	chunks     []chunk
	freeHandle uint32
	gap        uint32 // the chunk between the two ends, or none
	index      index
	sets       [2]freeSet // by tag: lower (all, when not partitioned), upper

	o          Options
	sub        alloc.SubAllocator
	limit      uint64
	pool       uint64
	peakPool   uint64
	nextRegion uint64
	splitWaste uint64
	regions    []region // ascending by address

	nextID    int64
	numAllocs int64
	inUse     int64
	peak      int64
	largest   int64
	waited    int64

	counter  *alloc.Counter // nil: frees carry no stamp
	frontier uint64
	queue    []uint32 // freed with a stamp, not merged yet
	spare    []uint32 // queue's other buffer
	merging  []uint64 // merge's addresses, kept for their room
	failures *alloc.FailureLog
	obs      alloc.Observer
}

var _ alloc.Allocator = (*Allocator)(nil)

type region struct{ addr, size uint64 }

func (r region) end() uint64 { return r.addr + r.size }

// New returns an allocator that takes its memory from sub. It takes none yet:
// the first request makes the first region.
func New(sub alloc.SubAllocator, o Options) (*Allocator, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Allocator{
		o: o, sub: sub, limit: uint64(o.Limit), freeHandle: none, gap: none,
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

// Allocate implements alloc.Allocator. Bytes are taken for what C++ makes of
// them, so that a negative number is an impossibly large request. An alignment
// above 256 that is no power of two is rounded up to one.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	// Nearly all requests find a chunk by their size alone.
	if r.Bytes > 0 && r.Alignment <= MinAllocation && r.FreedBy == nil && len(a.queue) == 0 && !a.o.Partition.On {
		if h := a.takeBest(round(uint64(r.Bytes))); h != none {
			return a.use(h, uint64(r.Bytes)), true
		}
	}
	return a.allocate(&r)
}

// allocate is Allocate for every kind of request.
func (a *Allocator) allocate(r *alloc.Request) (alloc.Block, bool) {
	w := want{requested: uint64(r.Bytes), size: round(uint64(r.Bytes)), align: MinAllocation, ask: MinAllocation}
	if r.Alignment > MinAllocation {
		w.ask = powerOfTwo(r.Alignment)
		if a.o.Profile == Current {
			w.align = uint64(w.ask)
		}
	}
	if a.o.Partition.On && r.End == alloc.Upper {
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
		if h = a.failed(&w, r); h == none {
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
	h, at := s.first(size)
	if h == none {
		return none
	}
	c := &a.chunks[h]
	c.binned = false
	if !a.worthSplitting(c.size, size) {
		s.removeAt(at)
		return h
	}
	rest := a.split(h, size)
	n := &a.chunks[rest]
	n.binned = true
	s.change(at, n.size, n.addr, rest)
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
	a.sets[w.end].each(w.size, func(x uint32) bool {
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
	c := &a.chunks[h]
	c.requested = requested
	c.id = a.nextID
	a.nextID++
	a.numAllocs++
	size := int64(c.size)
	a.inUse += size
	a.peak = max(a.peak, a.inUse)
	a.largest = max(a.largest, size)
	return alloc.Block{Address: c.addr, Size: size, Requested: int64(requested), ID: c.id}
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.at(addr)
	if h == none || !a.chunks[h].inUse() {
		return a.badFree(addr, h)
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
		a.bin(a.coalesce(h, false))
		return nil
	}
	a.release(h)
	return nil
}

func (a *Allocator) badFree(addr uint64, h uint32) error {
	if h != none {
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
	*a = Allocator{o: a.o, sub: a.sub, obs: a.obs, failures: a.failures, freeHandle: none, gap: none, nextID: a.nextID}
}
