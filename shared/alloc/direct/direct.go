// Package direct is no allocator at all: every block is a driver allocation,
// given back at once when it is freed. It is RMM's plain "cuda" resource and
// JAX's "platform".
//
// What it shows is the floor: what is held is what is live, at the price of a
// driver call, and on a device a synchronisation, per event. Sizes are rounded
// to 256 bytes, the driver's alignment. Sources: RMM's
// headers and JAX's documentation of its platform allocator. The driver's addresses are modelled.
package direct

import (
	"errors"
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/bestfit"
	"tideline/shared/alloc/internal/tiling"
)

// Granule is the multiple of every block's size, in bytes.
const Granule = 256

// Options configure an allocator.
type Options struct {
	Name     string // "" means cuda
	Limit    int64  // most bytes to hold; 0 means none
	Observer alloc.Observer
}

// Allocator hands driver allocations through. It is not safe for concurrent
// use.
type Allocator struct {
	table  tiling.Table // a run of one or two chunks per allocation
	tails  bestfit.Set  // what the driver gave beyond a block's size
	o      Options
	sub    alloc.SubAllocator
	nextID int64
	calls  int64
	stats  alloc.Stats
}

var _ alloc.Allocator = (*Allocator)(nil)

// New returns an allocator over a driver.
func New(sub alloc.SubAllocator, o Options) (*Allocator, error) {
	if sub == nil {
		return nil, errors.New("direct allocator: no driver")
	}
	if o.Name == "" {
		o.Name = "cuda"
	}
	if o.Observer == nil {
		o.Observer = alloc.NoObserver{}
	}
	o.Limit = max(0, o.Limit)
	return &Allocator{table: tiling.New(), o: o, sub: sub, nextID: 1, stats: alloc.Stats{Limit: o.Limit}}, nil
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Allocator) Limit() int64 { return a.o.Limit }

// Calls is how often the driver was asked for memory or given it back.
func (a *Allocator) Calls() int64 { return a.calls }

// Allocate implements alloc.Allocator.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes <= 0 || r.Bytes > math.MaxInt64/4 {
		return alloc.Block{}, false
	}
	size := (r.Bytes + Granule - 1) &^ (Granule - 1)
	s := &a.stats
	a.calls++
	if a.o.Limit > 0 && size > a.o.Limit-s.Pool {
		a.o.Observer.RegionRefused(size)
		return alloc.Block{}, false
	}
	addr, received, ok := a.sub.Take(max(Granule, r.Alignment), size)
	if !ok {
		a.o.Observer.RegionRefused(size)
		return alloc.Block{}, false
	}
	a.o.Observer.RegionTaken(addr, size, received)
	h := a.table.Add(addr, received)
	if received > size {
		rest := a.table.Split(h, size)
		c := &a.table.Chunks[rest]
		a.tails.Insert(c.Size, c.Addr, rest)
	}
	c := &a.table.Chunks[h]
	c.ID, c.Requested = a.nextID, r.Bytes
	a.nextID++
	s.NumAllocs++
	s.InUse += size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, size)
	s.Pool += received
	s.PeakPool = max(s.PeakPool, s.Pool)
	return alloc.Block{Address: addr, Size: size, Requested: r.Bytes, ID: c.ID}, true
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.table.At(addr)
	if h == tiling.None || !a.table.Chunks[h].InUse() {
		return fmt.Errorf("allocator %s: %x was asked to be freed, but no block in use starts there", a.o.Name, addr)
	}
	a.stats.InUse -= a.table.Chunks[h].Size
	a.give(h)
	return nil
}

func (a *Allocator) give(h uint32) {
	c := &a.table.Chunks[h]
	addr, size := c.Addr, c.Size
	if tail := c.Next; tail != tiling.None {
		t := &a.table.Chunks[tail]
		size += t.Size
		a.tails.Remove(t.Size, t.Addr)
		a.table.Remove(tail)
	}
	a.table.Remove(h)
	a.calls++
	a.stats.Pool -= size
	a.sub.Give(addr, size)
	a.o.Observer.RegionGiven(addr, size)
}

// Stats implements alloc.Allocator.
func (a *Allocator) Stats() alloc.Stats {
	s := a.stats
	s.PeakAllocated = s.PeakInUse
	s.LargestFree = a.tails.Largest()
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Allocator) ClearStats() {
	s := &a.stats
	s.NumAllocs, s.LargestAlloc = 0, 0
	s.PeakInUse, s.PeakPool = s.InUse, s.Pool
}

// ChunkMap implements alloc.Allocator; every block is a region.
func (a *Allocator) ChunkMap() event.ChunkMap { return a.table.Map() }

// Close implements alloc.Allocator.
func (a *Allocator) Close() {
	for _, h := range a.table.Heads() {
		a.give(h)
	}
	*a = Allocator{table: tiling.New(), o: a.o, sub: a.sub, nextID: a.nextID, stats: alloc.Stats{Limit: a.o.Limit}}
}

// Check verifies the table. It is for tests.
func (a *Allocator) Check() error { return a.table.Check() }
