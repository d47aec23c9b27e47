// Package system models the host's malloc for the CPU device: addresses for
// tensors in ordinary memory, equal on every machine and in the browser.
//
// It is first fit over one heap that only grows, in whole steps and without a
// limit. It is not any C library's algorithm: TensorFlow's CPU allocator keeps
// no pool of its own, so there are no addresses to be exact to. What matters
// is that a run and its rerun agree, and that the figures mean what they mean
// elsewhere.
package system

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc"
)

const (
	// Alignment of every block in bytes: a cache line, as Eigen wants it.
	Alignment = 64
	// DefaultBase is where the heap begins unless told otherwise.
	DefaultBase = 0x5500_0000_0000
	// Step is by how much the heap grows at least, in bytes.
	Step = 1 << 20
)

// Options configure an allocator.
type Options struct {
	Name     string // "" means cpu
	Base     uint64 // where the heap begins; 0 means DefaultBase
	Observer alloc.Observer
}

// Allocator is a heap. It is not safe for concurrent use.
//
// Invariants: blocks and holes are ascending by address; together they tile
// the heap from base to end; no two holes touch.
type Allocator struct {
	name      string
	base, end uint64
	blocks    map[uint64]block
	holes     []span
	obs       alloc.Observer
	stats     alloc.Stats
	nextID    int64
}

type block struct{ size, requested int64 }

type span struct {
	addr uint64
	size int64
}

var _ alloc.Allocator = (*Allocator)(nil)

// New returns an empty heap.
func New(o Options) *Allocator {
	a := &Allocator{name: o.Name, base: o.Base &^ (Alignment - 1), blocks: map[uint64]block{}, obs: o.Observer, nextID: 1}
	if a.name == "" {
		a.name = "cpu"
	}
	if a.base == 0 {
		a.base = DefaultBase
	}
	if a.obs == nil {
		a.obs = alloc.NoObserver{}
	}
	a.end = a.base
	return a
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.name }

// Limit implements alloc.Allocator: there is none.
func (a *Allocator) Limit() int64 { return 0 }

// maxRequest leaves room for rounding and alignment in the address space.
const maxRequest = math.MaxInt64 / 4

// Allocate implements alloc.Allocator. It fails only for 0 bytes and for sizes
// that no address space holds.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes <= 0 || r.Bytes > maxRequest || r.Alignment > maxRequest {
		return alloc.Block{}, false
	}
	size := (r.Bytes + Alignment - 1) &^ (Alignment - 1)
	align := uint64(Alignment)
	for align < uint64(r.Alignment) {
		align *= 2
	}
	i, addr := a.firstFit(size, align)
	if i < 0 {
		if !a.grow(size, align) {
			return alloc.Block{}, false
		}
		i, addr = a.firstFit(size, align)
	}
	a.cut(i, addr, size)
	a.blocks[addr] = block{size, r.Bytes}
	b := alloc.Block{Address: addr, Size: size, Requested: r.Bytes, ID: a.nextID}
	a.nextID++
	s := &a.stats
	s.NumAllocs++
	s.InUse += size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, size)
	return b, true
}

func (a *Allocator) firstFit(size int64, align uint64) (i int, addr uint64) {
	for i := range a.holes {
		h := &a.holes[i]
		if h.size < size {
			continue
		}
		pad := -h.addr & (align - 1)
		if pad <= uint64(h.size-size) {
			return i, h.addr + pad
		}
	}
	return -1, 0
}

// grow adds memory at the end of the heap, enough for size at any alignment.
func (a *Allocator) grow(size int64, align uint64) bool {
	need := size + int64(align)
	if n := len(a.holes); n > 0 {
		if last := a.holes[n-1]; last.addr+uint64(last.size) == a.end {
			need = max(Step, need-last.size)
		}
	}
	need = (need + Step - 1) &^ (Step - 1)
	if uint64(need) > math.MaxUint64-a.end {
		a.obs.RegionRefused(need)
		return false
	}
	a.obs.RegionTaken(a.end, need, need)
	at := a.end
	a.end += uint64(need)
	a.stats.Pool += need
	a.stats.PeakPool = a.stats.Pool
	a.put(span{at, need})
	return true
}

// cut takes [addr, addr+size) out of hole i.
func (a *Allocator) cut(i int, addr uint64, size int64) {
	h := a.holes[i]
	before := span{h.addr, int64(addr - h.addr)}
	after := span{addr + uint64(size), h.size - before.size - size}
	switch {
	case before.size > 0 && after.size > 0:
		a.holes[i] = before
		a.holes = slices.Insert(a.holes, i+1, after)
	case before.size > 0:
		a.holes[i] = before
	case after.size > 0:
		a.holes[i] = after
	default:
		a.holes = slices.Delete(a.holes, i, i+1)
	}
}

// put adds a hole and joins it to those that touch it.
func (a *Allocator) put(s span) {
	i, _ := slices.BinarySearchFunc(a.holes, s.addr, func(h span, addr uint64) int {
		if h.addr < addr {
			return -1
		}
		return 1
	})
	joinsNext := i < len(a.holes) && s.addr+uint64(s.size) == a.holes[i].addr
	joinsPrev := i > 0 && a.holes[i-1].addr+uint64(a.holes[i-1].size) == s.addr
	switch {
	case joinsPrev && joinsNext:
		a.holes[i-1].size += s.size + a.holes[i].size
		a.holes = slices.Delete(a.holes, i, i+1)
	case joinsPrev:
		a.holes[i-1].size += s.size
	case joinsNext:
		a.holes[i] = span{s.addr, s.size + a.holes[i].size}
	default:
		a.holes = slices.Insert(a.holes, i, s)
	}
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	b, ok := a.blocks[addr]
	if !ok {
		return fmt.Errorf("allocator %s: %s was asked to be freed, but no block starts there",
			a.name, strconv.FormatUint(addr, 16))
	}
	delete(a.blocks, addr)
	a.stats.InUse -= b.size
	a.put(span{addr, b.size})
	return nil
}

// Stats implements alloc.Allocator.
func (a *Allocator) Stats() alloc.Stats {
	s := a.stats
	s.PeakAllocated = s.PeakInUse
	s.NextRegion = Step
	for _, h := range a.holes {
		s.LargestFree = max(s.LargestFree, h.size)
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Allocator) ClearStats() {
	a.stats.NumAllocs = 0
	a.stats.PeakInUse = a.stats.InUse
	a.stats.LargestAlloc = 0
}

// ChunkMap implements alloc.Allocator: the heap is one region.
func (a *Allocator) ChunkMap() event.ChunkMap {
	if a.end == a.base {
		return event.ChunkMap{}
	}
	chunks := make([]event.Chunk, 0, len(a.blocks)+len(a.holes))
	for addr, b := range a.blocks {
		chunks = append(chunks, event.Chunk{Address: addr, Size: b.size, Requested: b.requested, InUse: true})
	}
	for _, h := range a.holes {
		chunks = append(chunks, event.Chunk{Address: h.addr, Size: h.size})
	}
	slices.SortFunc(chunks, func(x, y event.Chunk) int {
		if x.Address < y.Address {
			return -1
		}
		return 1
	})
	return event.ChunkMap{{Address: a.base, Size: int64(a.end - a.base), Chunks: chunks}}
}

// Close implements alloc.Allocator.
func (a *Allocator) Close() {
	if a.end > a.base {
		a.obs.RegionGiven(a.base, int64(a.end-a.base))
	}
	*a = *New(Options{Name: a.name, Base: a.base, Observer: a.obs})
}
