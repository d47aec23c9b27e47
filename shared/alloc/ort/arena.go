package ort

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/bestfit"
	"tideline/shared/alloc/internal/tiling"
	"tideline/shared/alloc/stream"
)

const none = tiling.None

// untagged is the owner of a chunk of no stream; stream s owns as s+1.
const untagged = 0

// Arena is one arena. It is not safe for concurrent use.
//
// Invariants: the chunks of every region tile it; every free chunk is in the
// set; no two free neighbours have the same tag; total is the sum of regions
// and reservations.
type Arena struct {
	table tiling.Table
	set   bestfit.Set
	owner uint32 // of the requests that follow

	o       Options
	sub     alloc.SubAllocator
	regions []region // ascending by address
	aside   map[uint64]reservation
	next    int64 // the next region
	nextID  int64
	failure string
	stats   Stats
}

type region struct {
	addr  uint64
	size  int64
	first bool // of all that were ever taken
}

type reservation struct{ size, received int64 }

// Stats are the figures as upstream names them. Bytes unless they count.
type Stats struct {
	BytesLimit     int64 // math.MaxInt64 when there is none
	BytesInUse     int64
	TotalAllocated int64 // regions and reservations
	MaxBytesInUse  int64
	MaxAllocSize   int64
	NumAllocs      int64 // reservations included
	NumReserves    int64
	NumExtensions  int64 // less one for every region given back
	NumShrinkages  int64

	peakTotal int64
}

var _ alloc.Allocator = (*Arena)(nil)

// New returns an arena that takes its regions from sub. It takes none yet.
func New(sub alloc.SubAllocator, o Options) (*Arena, error) {
	if sub == nil {
		return nil, errors.New("ort arena: no driver to take regions from")
	}
	if err := o.normalise(); err != nil {
		return nil, err
	}
	a := &Arena{table: tiling.New(), o: o, sub: sub, aside: map[uint64]reservation{}, nextID: 1}
	a.next = round(min(o.MaxMemory, o.InitialChunk))
	a.stats.BytesLimit = o.MaxMemory
	a.logCreation()
	return a, nil
}

// largest is the largest size that is a whole number of granules.
const largest = math.MaxInt64 &^ (Granule - 1)

func round(n int64) int64 {
	if n > largest {
		return largest
	}
	return (n + Granule - 1) &^ (Granule - 1)
}

// BinOf is the number of the bin of chunks of that size.
func BinOf(size int64) int {
	return min(NumBins-1, bits.Len64(uint64(max(size, Granule))/Granule)-1)
}

// Name implements alloc.Allocator.
func (a *Arena) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Arena) Limit() int64 {
	if a.o.MaxMemory == math.MaxInt64 {
		return 0
	}
	return a.o.MaxMemory
}

// UseStream sets the stream of the requests that follow. Before the first call
// they belong to none.
func (a *Arena) UseStream(s stream.ID) { a.owner = uint32(s) + 1 }

// Allocate implements alloc.Allocator. Alignments above 256 are not heard, as
// upstream.
func (a *Arena) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes <= 0 {
		if r.Bytes < 0 { // as C++'s size_t: more than any device has
			a.fail(r.Bytes, fmt.Sprintf("Failed to allocate memory for requested buffer of size %d", uint64(r.Bytes)))
		}
		return alloc.Block{}, false
	}
	size := round(r.Bytes)
	if h := a.find(size, a.o.CrossStream); h != none {
		return a.use(h, r.Bytes), true
	}
	a.logExtending(r.Bytes, size)
	if text := a.extend(size); text != "" {
		a.fail(r.Bytes, text)
		return alloc.Block{}, false
	}
	h := a.find(size, false)
	if h == none {
		a.fail(r.Bytes, fmt.Sprintf("Failed to find a free memory block despite calling Extend. rounded_bytes=%d", size))
		return alloc.Block{}, false
	}
	return a.use(h, r.Bytes), true
}

// usable reports whether a free chunk may serve the present stream.
func (a *Arena) usable(c *tiling.Chunk) bool {
	if c.Owner == untagged || c.Owner == a.owner {
		return true
	}
	return a.owner != untagged && a.o.Order != nil &&
		a.o.Order.Behind(stream.ID(a.owner-1), stream.ID(c.Owner-1), c.Mark)
}

// find takes the best usable chunk out of the set, cut to size.
func (a *Arena) find(size int64, cross bool) uint32 {
	h, at := a.set.First(size)
	if h == none {
		return none
	}
	if c := &a.table.Chunks[h]; c.Owner != untagged && c.Owner != a.owner && !a.usable(c) {
		return a.findFurther(h, size, cross)
	}
	return a.cut(h, at, size)
}

// findFurther goes on behind the best fit, which belongs to another stream. It
// falls back on that one, whole, where cross allows to wait for it.
func (a *Arena) findFurther(best uint32, size int64, cross bool) uint32 {
	found := none
	a.set.Each(size, func(h uint32) bool {
		if a.usable(&a.table.Chunks[h]) {
			found = h
		}
		return found == none
	})
	if found != none {
		c := &a.table.Chunks[found]
		return a.cut(found, a.set.Locate(c.Size, c.Addr), size)
	}
	c := &a.table.Chunks[best]
	if !cross || a.owner == untagged {
		return none
	}
	by, on := stream.ID(a.owner-1), stream.ID(c.Owner-1)
	if a.o.Order != nil {
		a.o.Order.Wait(by, on)
	}
	if a.o.OnWait != nil {
		a.o.OnWait(by, on)
	}
	a.set.Remove(c.Size, c.Addr)
	return best
}

// cut takes h, which lies at the spot, out of the set; what is worth it stays
// there.
func (a *Arena) cut(h uint32, at bestfit.Spot, size int64) uint32 {
	// Upstream splits at exactly twice the request, hence >= and not >.
	if rest := a.table.Chunks[h].Size - size; rest < size && rest < a.o.MaxDead {
		a.set.RemoveAt(at)
		return h
	}
	n := a.table.Split(h, size)
	c := &a.table.Chunks[n]
	a.set.Change(at, c.Size, c.Addr, n)
	return h
}

func (a *Arena) use(h uint32, requested int64) alloc.Block {
	c := &a.table.Chunks[h]
	c.Requested = requested
	c.ID = a.nextID
	c.Owner = a.owner
	a.nextID++
	a.count(c.Size)
	return alloc.Block{Address: c.Addr, Size: c.Size, Requested: requested, ID: c.ID}
}

func (a *Arena) count(size int64) {
	s := &a.stats
	s.NumAllocs++
	s.BytesInUse += size
	s.MaxBytesInUse = max(s.MaxBytesInUse, s.BytesInUse)
	s.MaxAllocSize = max(s.MaxAllocSize, size)
}

// Free implements alloc.Allocator.
func (a *Arena) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.table.At(addr)
	if h == none {
		return a.freeReservation(addr)
	}
	c := &a.table.Chunks[h]
	if !c.InUse() {
		return fmt.Errorf("arena %s: block %x is freed twice", a.o.Name, addr)
	}
	c.ID = 0
	a.stats.BytesInUse -= c.Size
	if c.Owner != untagged && a.o.Order != nil {
		c.Mark = a.o.Order.Mark(stream.ID(c.Owner - 1))
	}
	a.release(h)
	return nil
}

// release merges h with its free neighbours of the same tag, first the next,
// then the previous, and puts the result into the set.
func (a *Arena) release(h uint32) {
	c := &a.table.Chunks[h]
	next, prev := a.mergeable(c.Next, c.Owner), a.mergeable(c.Prev, c.Owner)
	switch {
	case prev != none:
		if next != none {
			n := &a.table.Chunks[next]
			a.set.Remove(n.Size, n.Addr)
			a.table.Merge(h, next)
		}
		p := &a.table.Chunks[prev]
		at := a.set.Locate(p.Size, p.Addr)
		a.table.Merge(prev, h)
		a.set.Change(at, p.Size, p.Addr, prev)
	case next != none:
		n := &a.table.Chunks[next]
		at := a.set.Locate(n.Size, n.Addr)
		a.table.Merge(h, next)
		a.set.Change(at, c.Size, c.Addr, h)
	default:
		a.set.Insert(c.Size, c.Addr, h)
	}
}

func (a *Arena) mergeable(h, owner uint32) uint32 {
	if h == none {
		return none
	}
	if c := &a.table.Chunks[h]; c.InUse() || c.Owner != owner {
		return none
	}
	return h
}

// EndStream clears the tags of a stream that is no more, and merges what now
// may be merged.
func (a *Arena) EndStream(s stream.ID) {
	gone := uint32(s) + 1
	for i := range a.table.Chunks {
		if c := &a.table.Chunks[i]; c.Size > 0 && c.Owner == gone {
			c.Owner, c.Mark = untagged, 0
		}
	}
	for _, r := range a.regions {
		for h := a.table.At(r.addr); h != none; h = a.table.Chunks[h].Next {
			a.mergeRun(h)
		}
	}
	if a.owner == gone {
		a.owner = untagged
	}
}

// mergeRun merges h with all that follows and may be merged.
func (a *Arena) mergeRun(h uint32) {
	c := &a.table.Chunks[h]
	if c.InUse() || a.mergeable(c.Next, c.Owner) == none {
		return
	}
	a.set.Remove(c.Size, c.Addr)
	for next := a.mergeable(c.Next, c.Owner); next != none; next = a.mergeable(c.Next, c.Owner) {
		n := &a.table.Chunks[next]
		a.set.Remove(n.Size, n.Addr)
		a.table.Merge(h, next)
	}
	a.set.Insert(c.Size, c.Addr, h)
}

// Failure is the text of the last request that failed, as upstream raises it.
func (a *Arena) Failure() string { return a.failure }

func (a *Arena) fail(bytes int64, text string) {
	a.failure = text
	if a.o.Dump {
		a.dump(bytes)
	}
	a.o.Observer.Log(alloc.Warning, text)
}

// Statistics are the figures of this instant under upstream's names.
func (a *Arena) Statistics() Stats { return a.stats }

// Stats implements alloc.Allocator. Pool is what upstream calls total allocated.
func (a *Arena) Stats() alloc.Stats {
	s := &a.stats
	return alloc.Stats{
		NumAllocs: s.NumAllocs, InUse: s.BytesInUse, PeakInUse: s.MaxBytesInUse, LargestAlloc: s.MaxAllocSize,
		Limit: a.Limit(), PeakAllocated: s.MaxBytesInUse, LargestFree: a.set.Largest(),
		Pool: s.TotalAllocated, PeakPool: s.peakTotal, NextRegion: a.next,
	}
}

// ClearStats implements alloc.Allocator. Upstream has no such call; the counts
// of reservations, extensions and shrinkages stay.
func (a *Arena) ClearStats() {
	a.stats.NumAllocs = 0
	a.stats.MaxBytesInUse = a.stats.BytesInUse
	a.stats.MaxAllocSize = 0
	a.stats.peakTotal = a.stats.TotalAllocated
}

// ChunkMap implements alloc.Allocator; a reservation is a region of its own.
func (a *Arena) ChunkMap() event.ChunkMap {
	m := a.table.Map()
	for addr, r := range a.aside {
		c := []event.Chunk{{Address: addr, Size: r.size, Requested: r.size, InUse: true}}
		if r.received > r.size { // the driver rounds
			c = append(c, event.Chunk{Address: addr + uint64(r.size), Size: r.received - r.size})
		}
		m = append(m, event.Region{Address: addr, Size: r.received, Chunks: c})
	}
	sort.Slice(m, func(i, j int) bool { return m[i].Address < m[j].Address })
	return m
}

// Close implements alloc.Allocator.
func (a *Arena) Close() {
	for _, r := range a.regions {
		a.give(r.addr, r.size)
	}
	m := a.ChunkMap()
	for i := range m { // not the map's order
		if r, ok := a.aside[m[i].Address]; ok {
			a.give(m[i].Address, r.received)
		}
	}
	*a = Arena{table: tiling.New(), o: a.o, sub: a.sub, aside: map[uint64]reservation{}, nextID: a.nextID, next: a.next}
}

func (a *Arena) give(addr uint64, bytes int64) {
	a.sub.Give(addr, bytes)
	a.o.Observer.RegionGiven(addr, bytes)
}

// Check verifies the invariants. It is for tests.
func (a *Arena) Check() error {
	if err := a.table.Check(); err != nil {
		return err
	}
	var total, inUse int64
	free := 0
	for _, r := range a.regions {
		at := r.addr
		for h := a.table.At(r.addr); h != none; h = a.table.Chunks[h].Next {
			c := &a.table.Chunks[h]
			at += uint64(c.Size)
			if c.InUse() {
				inUse += c.Size
				continue
			}
			free++
			if a.mergeable(c.Next, c.Owner) != none {
				return fmt.Errorf("free chunks at %x and behind it are not merged", c.Addr)
			}
		}
		if at != r.addr+uint64(r.size) {
			return fmt.Errorf("the chunks of the region at %x end at %x", r.addr, at)
		}
		total += r.size
	}
	for _, r := range a.aside {
		total += r.received
		inUse += r.size
	}
	if total != a.stats.TotalAllocated || inUse != a.stats.BytesInUse || free != a.set.Len() {
		return fmt.Errorf("%d bytes taken, %d in use, %d chunks free; the statistics say %d, %d, %d",
			total, inUse, free, a.stats.TotalAllocated, a.stats.BytesInUse, a.set.Len())
	}
	return nil
}
