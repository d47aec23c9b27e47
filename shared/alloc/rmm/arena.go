package rmm

import (
	"errors"
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/firstfit"
	"tideline/shared/alloc/internal/tiling"
	"tideline/shared/alloc/stream"
)

// SuperblockSize is the least size of a superblock, and the largest request
// that a stream's own arena serves, in bytes.
const SuperblockSize = 1 << 20

// ArenaOptions configure an arena.
type ArenaOptions struct {
	Name string // "" means rmm_arena
	Size int64  // bytes of the one upstream block; 0: half of Free, as upstream
	Free int64  // what the device has free when the arena is made
	// Order is told of every wait; nil where nobody keeps it.
	Order *stream.Order
	// OnSync hears when the host waits: for a stream, or for the whole device
	// where all is true.
	OnSync   func(s stream.ID, all bool)
	Observer alloc.Observer
}

// Arena is a global arena of superblocks and an arena per stream. It is not
// safe for concurrent use.
//
// Invariants: superblocks, linked in the order of addresses, tile the upstream
// block; chunks, linked within a superblock, tile it; the free chunks of a
// superblock are in the set of the arena that owns it; no free neighbours.
type Arena struct {
	table   tiling.Table
	supers  []superblock
	spare   []uint32
	arenas  []*streamArena // 0 is the global one
	current uint32
	last    stream.ID

	o       ArenaOptions
	sub     alloc.SubAllocator
	addr    uint64
	size    int64
	nextID  int64
	defrags int64
	failure *ArenaFailure
	stats   alloc.Stats
}

// superblock is owned by one arena as a whole.
type superblock struct {
	addr       uint64
	size       int64
	owner      uint32
	used       int32 // blocks in use
	prev, next uint32
}

type streamArena struct {
	stream stream.ID
	free   firstfit.Set
}

// global is the arena of large requests and of superblocks nobody has.
const global = 0

var _ alloc.Allocator = (*Arena)(nil)

// NewArena takes the one upstream block.
func NewArena(sub alloc.SubAllocator, o ArenaOptions) (*Arena, error) {
	if o.Name == "" {
		o.Name = "rmm_arena"
	}
	if o.Observer == nil {
		o.Observer = alloc.NoObserver{}
	}
	size := o.Size
	if size == 0 {
		size = o.Free / 2 &^ (Granule - 1)
	}
	switch {
	case sub == nil:
		return nil, errors.New("rmm arena: no driver to take memory from")
	case size < SuperblockSize || size%Granule != 0:
		return nil, fmt.Errorf("rmm arena: the size is %d, expected a multiple of %d of at least 1 MiB; without one it is half of the device's free memory (%d)",
			size, Granule, o.Free)
	}
	addr, received, ok := sub.Take(Granule, size)
	if ok && (received < size || received%Granule != 0 || addr%Granule != 0) {
		sub.Give(addr, received)
		ok = false
	}
	if !ok {
		o.Observer.RegionRefused(size)
		return nil, fmt.Errorf("rmm arena: upstream has no %d bytes", size)
	}
	o.Observer.RegionTaken(addr, size, received)
	a := &Arena{table: tiling.New(), o: o, sub: sub, addr: addr, size: received, nextID: 1, arenas: []*streamArena{{}}}
	a.stats.Limit = received
	a.stats.Pool, a.stats.PeakPool = received, received
	h := a.table.Add(addr, received)
	a.supers = append(a.supers, superblock{addr: addr, size: received, prev: none, next: none})
	a.arenas[global].free.Insert(addr, received, h)
	a.UseStream(0)
	return a, nil
}

// Name implements alloc.Allocator.
func (a *Arena) Name() string { return a.o.Name }

// Limit implements alloc.Allocator: the size of the upstream block.
func (a *Arena) Limit() int64 { return a.size }

// UseStream sets the stream, or the thread, of the calls that follow; at first
// it is 0.
func (a *Arena) UseStream(s stream.ID) {
	if s == a.last && a.current != global {
		return
	}
	a.last = s
	for i, x := range a.arenas {
		if i != global && x.stream == s {
			a.current = uint32(i)
			return
		}
	}
	a.arenas = append(a.arenas, &streamArena{stream: s})
	a.current = uint32(len(a.arenas) - 1)
}

// Allocate implements alloc.Allocator. Alignments above 256 are not heard, as
// upstream.
func (a *Arena) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes == 0 {
		return alloc.Block{}, false
	}
	if r.Bytes < 0 || r.Bytes > math.MaxInt64/4 {
		a.fail(r.Bytes, math.MaxInt64)
		return alloc.Block{}, false
	}
	size := roundUp(r.Bytes)
	h := a.try(size)
	if h == none {
		a.Defragment()
		if h = a.try(size); h == none {
			a.fail(r.Bytes, size)
			return alloc.Block{}, false
		}
	}
	c := &a.table.Chunks[h]
	c.Requested = r.Bytes
	c.ID = a.nextID
	a.nextID++
	a.supers[c.Flags].used++
	s := &a.stats
	s.NumAllocs++
	s.InUse += size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, size)
	return alloc.Block{Address: c.Addr, Size: size, Requested: r.Bytes, ID: c.ID}, true
}

// try finds a chunk and cuts it out.
func (a *Arena) try(size int64) uint32 {
	if size > SuperblockSize {
		return a.take(global, a.superblockFor(size), size)
	}
	if h := a.arenas[a.current].free.First(size); h != none {
		return a.take(a.current, h, size)
	}
	h := a.superblockFor(size)
	if h == none {
		return none
	}
	a.own(a.table.Chunks[h].Flags, a.current)
	return a.take(a.current, h, size)
}

// superblockFor is the first free chunk of the global arena that fits. A wholly
// free superblock that is long enough is cut in two before.
func (a *Arena) superblockFor(size int64) uint32 {
	g := &a.arenas[global].free
	h := g.First(size)
	if h == none {
		return none
	}
	x := a.table.Chunks[h].Flags
	least := max(SuperblockSize, size)
	if sb := &a.supers[x]; sb.used > 0 || sb.size < least+SuperblockSize {
		return h
	}
	rest := a.table.Split(h, least)
	a.table.Cut(h)
	c := &a.table.Chunks[rest]
	y := a.newSuperblock()
	sb := &a.supers[x]
	a.supers[y] = superblock{addr: c.Addr, size: c.Size, owner: global, prev: x, next: sb.next}
	if sb.next != none {
		a.supers[sb.next].prev = y
	}
	sb.next, sb.size = y, least
	c.Flags = y
	g.Change(sb.addr, sb.addr, least, h)
	g.Insert(c.Addr, c.Size, rest)
	return h
}

func (a *Arena) newSuperblock() uint32 {
	if n := len(a.spare); n > 0 {
		x := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return x
	}
	a.supers = append(a.supers, superblock{})
	return uint32(len(a.supers) - 1)
}

// own moves a superblock with its free chunks to another arena.
func (a *Arena) own(x, owner uint32) {
	sb := &a.supers[x]
	from, to := &a.arenas[sb.owner].free, &a.arenas[owner].free
	sb.owner = owner
	for h := a.table.At(sb.addr); h != none; h = a.table.Chunks[h].Next {
		if c := &a.table.Chunks[h]; !c.InUse() {
			from.Remove(c.Addr)
			to.Insert(c.Addr, c.Size, h)
		}
	}
}

// take cuts size bytes off the front of free chunk h of an arena.
func (a *Arena) take(owner, h uint32, size int64) uint32 {
	if h == none {
		return none
	}
	set := &a.arenas[owner].free
	addr := a.table.Chunks[h].Addr
	if a.table.Chunks[h].Size == size {
		set.Remove(addr)
		return h
	}
	rest := a.table.Split(h, size)
	c := &a.table.Chunks[rest]
	set.Change(addr, c.Addr, c.Size, rest)
	return h
}

// Free implements alloc.Allocator. Unless the block lies in the present
// stream's own arena, the host waits for the stream.
func (a *Arena) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := a.table.At(addr)
	if h == none || !a.table.Chunks[h].InUse() {
		return fmt.Errorf("allocator %s: %x was asked to be freed, but no block in use starts there", a.o.Name, addr)
	}
	c := &a.table.Chunks[h]
	a.stats.InUse -= c.Size
	c.ID = 0
	if a.o.Order != nil {
		a.o.Order.Mark(a.last)
	}
	x := c.Flags
	if a.supers[x].owner != a.current {
		a.sync(a.last, false)
	}
	a.release(h)
	sb := &a.supers[x]
	if sb.used--; sb.used == 0 && sb.owner == global {
		a.join(x)
	}
	return nil
}

func (a *Arena) sync(s stream.ID, all bool) {
	if a.o.Order != nil {
		if all {
			a.o.Order.Synchronize()
		} else {
			a.o.Order.Join(s)
		}
	}
	if a.o.OnSync != nil {
		a.o.OnSync(s, all)
	}
}

// release merges a chunk with its free neighbours in the superblock.
func (a *Arena) release(h uint32) {
	c := &a.table.Chunks[h]
	set := &a.arenas[a.supers[c.Flags].owner].free
	next, prev := a.unused(c.Next), a.unused(c.Prev)
	switch {
	case prev != none:
		if next != none {
			set.Remove(a.table.Chunks[next].Addr)
			a.table.Merge(h, next)
		}
		a.table.Merge(prev, h)
		p := &a.table.Chunks[prev]
		set.Change(p.Addr, p.Addr, p.Size, prev)
	case next != none:
		at := a.table.Chunks[next].Addr
		a.table.Merge(h, next)
		set.Change(at, c.Addr, c.Size, h)
	default:
		set.Insert(c.Addr, c.Size, h)
	}
}

func (a *Arena) unused(h uint32) uint32 {
	if h != none && a.table.Chunks[h].InUse() {
		return none
	}
	return h
}

// join makes one superblock of a wholly free one of the global arena and those
// beside it.
func (a *Arena) join(x uint32) {
	if next := a.supers[x].next; a.joins(next) {
		a.joinWith(x, next)
	}
	if prev := a.supers[x].prev; a.joins(prev) {
		a.joinWith(prev, x)
	}
}

func (a *Arena) joins(x uint32) bool {
	return x != none && a.supers[x].owner == global && a.supers[x].used == 0
}

func (a *Arena) joinWith(x, y uint32) {
	low, high := &a.supers[x], &a.supers[y]
	set := &a.arenas[global].free
	h, next := a.table.At(low.addr), a.table.At(high.addr)
	set.Remove(high.addr)
	a.table.Link(h, next)
	a.table.Merge(h, next)
	low.size += high.size
	set.Change(low.addr, low.addr, low.size, h)
	low.next = high.next
	if low.next != none {
		a.supers[low.next].prev = x
	}
	a.spare = append(a.spare, y)
	*high = superblock{}
}

// Defragment waits for the device and gives every wholly free superblock back
// to the global arena. A request that finds nothing does it by itself.
func (a *Arena) Defragment() {
	a.defrags++
	a.sync(0, true)
	for x := uint32(0); x != none; x = a.supers[x].next {
		if sb := &a.supers[x]; sb.owner != global && sb.used == 0 {
			a.own(x, global)
		}
	}
	// Superblock 0 is the lowest: it is never the high one of a join.
	for x := uint32(0); x != none; x = a.supers[x].next {
		for a.joins(x) && a.joins(a.supers[x].next) {
			a.joinWith(x, a.supers[x].next)
		}
	}
}

// Defragmentations is how often superblocks were collected.
func (a *Arena) Defragmentations() int64 { return a.defrags }

// Stats implements alloc.Allocator.
func (a *Arena) Stats() alloc.Stats {
	s := a.stats
	s.PeakAllocated = s.PeakInUse
	for _, x := range a.arenas {
		s.LargestFree = max(s.LargestFree, x.free.Largest())
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Arena) ClearStats() {
	s := &a.stats
	s.NumAllocs, s.LargestAlloc = 0, 0
	s.PeakInUse = s.InUse
}

// ChunkMap implements alloc.Allocator: the upstream block is the one region.
func (a *Arena) ChunkMap() event.ChunkMap {
	r := event.Region{Address: a.addr, Size: a.size}
	for _, sb := range a.table.Map() {
		r.Chunks = append(r.Chunks, sb.Chunks...)
	}
	if r.Size == 0 {
		return event.ChunkMap{}
	}
	return event.ChunkMap{r}
}

// Close implements alloc.Allocator.
func (a *Arena) Close() {
	a.sub.Give(a.addr, a.size)
	a.o.Observer.RegionGiven(a.addr, a.size)
	*a = Arena{table: tiling.New(), o: a.o, sub: a.sub, nextID: a.nextID, arenas: []*streamArena{{}}}
}

// Check verifies the invariants. It is for tests.
func (a *Arena) Check() error {
	if err := a.table.Check(); err != nil {
		return err
	}
	at, free, listed := a.addr, 0, 0
	for x := uint32(0); x != none; x = a.supers[x].next {
		sb := &a.supers[x]
		if sb.addr != at {
			return fmt.Errorf("a superblock begins at %x, the one before ends at %x", sb.addr, at)
		}
		used := int32(0)
		for h := a.table.At(sb.addr); h != none; h = a.table.Chunks[h].Next {
			c := &a.table.Chunks[h]
			if c.Addr != at || c.Flags != x {
				return fmt.Errorf("the chunk at %x of superblock %d is in superblock %d at %x", c.Addr, c.Flags, x, at)
			}
			at += uint64(c.Size)
			if c.InUse() {
				used++
				continue
			}
			free++
			if a.unused(c.Next) != none {
				return fmt.Errorf("free chunks at %x and behind it are not merged", c.Addr)
			}
		}
		if used != sb.used || at != sb.addr+uint64(sb.size) || sb.size < min(SuperblockSize, a.size) {
			return fmt.Errorf("superblock at %x of %d bytes: %d blocks in use, counted %d; its chunks end at %x", sb.addr, sb.size, sb.used, used, at)
		}
	}
	for _, x := range a.arenas {
		listed += x.free.Len()
	}
	if free != listed || at != a.addr+uint64(a.size) {
		return fmt.Errorf("%d chunks are free, %d listed; superblocks end at %x", free, listed, at)
	}
	return nil
}
