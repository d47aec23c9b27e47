package bfc

import (
	"math"

	"tideline/shared/alloc"
)

// Stats implements alloc.Allocator.
func (a *Allocator) Stats() alloc.Stats {
	return alloc.Stats{
		NumAllocs:     a.nextID - 1 - a.cleared,
		InUse:         a.inUse,
		PeakInUse:     a.peak,
		LargestAlloc:  a.largest,
		Limit:         a.o.Limit,
		PeakAllocated: a.peak, // nothing is ever reserved
		LargestFree:   int64(a.largestFree()),
		Pool:          int64(a.pool),
		PeakPool:      int64(a.peakPool),
		NextRegion:    int64(a.nextRegion),
		WaitNanos:     a.waited,
	}
}

// ClearStats implements alloc.Allocator. The pool's peak is kept, as upstream
// keeps it.
func (a *Allocator) ClearStats() {
	a.cleared = a.nextID - 1
	a.peak = a.inUse
	a.largest = 0
}

// largestFree is the size of the largest free chunk, the gap included.
func (a *Allocator) largestFree() uint64 {
	return max(a.sets[tagLower].largest(a.chunks), a.sets[tagUpper].largest(a.chunks), a.gapSize())
}

func (a *Allocator) gapSize() uint64 {
	if a.gap == none {
		return 0
	}
	return a.chunks[a.gap].size
}

// Fragmentation is upstream's figure: the part of the free bytes outside of
// the largest free chunk, and NaN when nothing is free. People are shown
// Stats().Fragmentation() instead.
func (a *Allocator) Fragmentation() float64 {
	free := int64(a.pool) - a.inUse
	if free == 0 {
		return math.NaN()
	}
	return float64(free-int64(a.largestFree())) / float64(free)
}

// Waste says where bytes are lost that nobody uses.
type Waste struct {
	Internal    int64 // inside blocks: chunk sizes less what was asked for
	External    int64 // free, but outside of the largest free chunk
	Unreachable int64 // the end of the limit that is no whole granule
}

// Waste sums the waste of this instant. It looks at every chunk.
func (a *Allocator) Waste() Waste {
	w := Waste{Unreachable: int64((a.limit - a.pool) % MinAllocation)}
	a.eachChunk(func(_ uint32, c *chunk) {
		if c.inUse() {
			w.Internal += int64(c.size - c.requested)
		}
	})
	w.External = int64(a.pool) - a.inUse - int64(a.largestFree())
	return w
}

// Handles is the length of the chunk table: the most chunks there ever were.
func (a *Allocator) Handles() int { return len(a.chunks) - 1 }

func (a *Allocator) eachChunk(f func(h uint32, c *chunk)) {
	for _, r := range a.regions {
		for h := r.first; h != none; h = a.chunks[h].next {
			f(h, &a.chunks[h])
		}
	}
}
