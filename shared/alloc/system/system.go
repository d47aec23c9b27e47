// Package system models the host's malloc for the CPU device: addresses for
// tensors in ordinary memory, equal on every machine and in the browser.
//
// It is first fit over one heap that only grows, in whole steps, up to a limit
// where there is one. It is not any C library's algorithm: TensorFlow's CPU
// allocator keeps no pool of its own, so there are no addresses to be exact
// to. What matters is that a run and its rerun agree, and that the figures
// mean what they mean elsewhere.
package system

import (
	"fmt"
	"math"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/firstfit"
	"tideline/shared/alloc/internal/tiling"
)

const (
	// Alignment of every block in bytes: a cache line, as Eigen wants it.
	Alignment = 64
	// DefaultBase is where the heap begins unless told otherwise.
	DefaultBase = 0x5500_0000_0000
	// Step is by how much the heap grows at least, in bytes; less only where the
	// limit leaves less.
	Step = 1 << 20

	none = tiling.None
)

// Options configure an allocator.
type Options struct {
	Name     string      // "" means cpu
	Base     uint64      // where the heap begins; 0 means DefaultBase
	Limit    int64       // most bytes of the heap; 0 means none
	Card     *alloc.Card // the memory that the heap draws on; nil means unlimited
	Observer alloc.Observer
}

// Allocator is a heap. It is not safe for concurrent use.
//
// Invariants: the chunks are one run and tile the heap from base to end; the
// free ones are in the set; no two free neighbours exist.
type Allocator struct {
	table tiling.Table
	free  firstfit.Set
	tail  uint32 // the last chunk

	o         Options
	base, end uint64
	obs       alloc.Observer
	stats     alloc.Stats
	nextID    int64
}

var _ alloc.Allocator = (*Allocator)(nil)

// New returns an empty heap.
func New(o Options) *Allocator {
	if o.Name == "" {
		o.Name = "cpu"
	}
	if o.Card == nil {
		o.Card = alloc.NewCard(0)
	}
	o.Limit = max(0, o.Limit)
	a := &Allocator{table: tiling.New(), tail: none, o: o, base: o.Base &^ (Alignment - 1), obs: o.Observer, nextID: 1}
	if a.base == 0 {
		a.base = DefaultBase
	}
	if a.obs == nil {
		a.obs = alloc.NoObserver{}
	}
	a.end = a.base
	a.stats.Limit = o.Limit
	return a
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Allocator) Limit() int64 { return a.o.Limit }

// maxRequest leaves room for rounding and alignment in the address space.
const maxRequest = math.MaxInt64 / 4

// Allocate implements alloc.Allocator. Without a limit it fails only for 0
// bytes and for sizes that no address space holds.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes <= 0 || r.Bytes > maxRequest || r.Alignment > maxRequest {
		return alloc.Block{}, false
	}
	size := (r.Bytes + Alignment - 1) &^ (Alignment - 1)
	align := uint64(Alignment)
	for align < uint64(r.Alignment) {
		align *= 2
	}
	h := a.firstFit(size, align)
	if h == none {
		if !a.grow(size, align) {
			return alloc.Block{}, false
		}
		h = a.firstFit(size, align)
	}
	h = a.cut(h, size, align)
	c := &a.table.Chunks[h]
	c.ID, c.Requested = a.nextID, r.Bytes
	a.nextID++
	s := &a.stats
	s.NumAllocs++
	s.InUse += size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, size)
	return alloc.Block{Address: c.Addr, Size: size, Requested: r.Bytes, ID: c.ID}, true
}

func (a *Allocator) firstFit(size int64, align uint64) uint32 {
	if align == Alignment {
		return a.free.First(size)
	}
	return a.free.FirstAligned(size, align)
}

// grow adds memory at the end of the heap, enough for size at any alignment.
func (a *Allocator) grow(size int64, align uint64) bool {
	start := a.end
	if a.tail != none && !a.table.Chunks[a.tail].InUse() {
		start = a.table.Chunks[a.tail].Addr
	}
	last := int64(a.end - start)
	need := size + int64(align)
	if last > 0 {
		need = max(Step, need-last)
	}
	need = (need + Step - 1) &^ (Step - 1)
	least := int64(-start&(align-1)) + size - last
	if uint64(need) > math.MaxUint64-a.end {
		a.obs.RegionRefused(need)
		return false
	}
	if a.o.Limit > 0 {
		need = min(need, (a.o.Limit-a.stats.Pool)&^(Alignment-1))
	}
	if need < least || !a.o.Card.Hold(need) {
		// A whole step is too much; what the request needs may be had.
		if need = least; a.o.Limit > 0 && need > a.o.Limit-a.stats.Pool || !a.o.Card.Hold(need) {
			a.obs.RegionRefused(need)
			return false
		}
	}
	a.obs.RegionTaken(a.end, need, need)
	h := a.table.Add(a.end, need)
	a.end += uint64(need)
	a.stats.Pool += need
	a.stats.PeakPool = a.stats.Pool
	if a.tail != none {
		a.table.Link(a.tail, h)
	}
	a.tail = h
	a.release(h)
	return true
}

// cut takes size bytes at the first aligned address out of free chunk h and
// returns their handle.
func (a *Allocator) cut(h uint32, size int64, align uint64) uint32 {
	addr := a.table.Chunks[h].Addr
	listed := true // h is in the set under addr
	if pad := int64(-addr & (align - 1)); pad > 0 {
		rest := a.split(h, pad)
		a.free.Change(addr, addr, pad, h)
		h, listed = rest, false
	}
	if a.table.Chunks[h].Size == size {
		if listed {
			a.free.Remove(addr)
		}
		return h
	}
	rest := a.split(h, size)
	c := &a.table.Chunks[rest]
	if listed {
		a.free.Change(addr, c.Addr, c.Size, rest)
	} else {
		a.free.Insert(c.Addr, c.Size, rest)
	}
	return h
}

func (a *Allocator) split(h uint32, size int64) uint32 {
	rest := a.table.Split(h, size)
	if a.tail == h {
		a.tail = rest
	}
	return rest
}

// release puts a free chunk into the set and joins it to those that touch it.
func (a *Allocator) release(h uint32) {
	c := &a.table.Chunks[h]
	c.ID = 0
	next, prev := a.unused(c.Next), a.unused(c.Prev)
	switch {
	case prev != none:
		if next != none {
			a.free.Remove(a.table.Chunks[next].Addr)
			a.merge(h, next)
		}
		a.merge(prev, h)
		p := &a.table.Chunks[prev]
		a.free.Change(p.Addr, p.Addr, p.Size, prev)
	case next != none:
		at := a.table.Chunks[next].Addr
		a.merge(h, next)
		a.free.Change(at, c.Addr, c.Size, h)
	default:
		a.free.Insert(c.Addr, c.Size, h)
	}
}

func (a *Allocator) merge(left, right uint32) {
	if a.tail == right {
		a.tail = left
	}
	a.table.Merge(left, right)
}

func (a *Allocator) unused(h uint32) uint32 {
	if h != none && a.table.Chunks[h].InUse() {
		return none
	}
	return h
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.table.At(addr)
	if h == none || !a.table.Chunks[h].InUse() {
		return fmt.Errorf("allocator %s: %s was asked to be freed, but no block starts there",
			a.o.Name, strconv.FormatUint(addr, 16))
	}
	a.stats.InUse -= a.table.Chunks[h].Size
	a.release(h)
	return nil
}

// Stats implements alloc.Allocator.
func (a *Allocator) Stats() alloc.Stats {
	s := a.stats
	s.PeakAllocated = s.PeakInUse
	s.NextRegion = Step
	s.LargestFree = a.free.Largest()
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Allocator) ClearStats() {
	a.stats.NumAllocs = 0
	a.stats.PeakInUse = a.stats.InUse
	a.stats.LargestAlloc = 0
}

// ChunkMap implements alloc.Allocator: the heap is one region.
func (a *Allocator) ChunkMap() event.ChunkMap { return a.table.Map() }

// Close implements alloc.Allocator.
func (a *Allocator) Close() {
	if a.end > a.base {
		a.o.Card.Hold(-a.stats.Pool)
		a.obs.RegionGiven(a.base, int64(a.end-a.base))
	}
	*a = *New(a.o)
}

// Check verifies the invariants. It is for tests.
func (a *Allocator) Check() error {
	if err := a.table.Check(); err != nil {
		return err
	}
	at, free := a.base, 0
	for h := a.table.At(a.base); h != none; h = a.table.Chunks[h].Next {
		c := &a.table.Chunks[h]
		at += uint64(c.Size)
		if c.InUse() {
			continue
		}
		free++
		if a.unused(c.Next) != none {
			return fmt.Errorf("free chunks at %x and behind it are not merged", c.Addr)
		}
	}
	if at != a.end || free != a.free.Len() {
		return fmt.Errorf("the chunks end at %x, the heap at %x; %d chunks are free, %d listed", at, a.end, free, a.free.Len())
	}
	return nil
}
