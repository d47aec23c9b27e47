package torch

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"tideline/shared/alloc"
)

// Options configure an allocator.
type Options struct {
	Name     string // "" means GPU_0_torch
	Settings Settings
	// Device is the device's ordinal, for texts and snapshots.
	Device int
	// DeviceTotal is the device's memory in bytes where the driver does not
	// tell it (MemoryInfo); 0 means unlimited.
	DeviceTotal int64
	// Fraction limits what is reserved to a part of the device's memory; 0 and
	// 1 mean no limit.
	Fraction float64
	Streams  Streams // nil means that recorded work is done at the next request
	Observer alloc.Observer
	Tracer   Tracer
	// FreeSome is asked, on a miss, to free blocks of this allocator; it says
	// whether it did.
	FreeSome func() bool
}

// Allocator is the caching allocator of one device. It is not safe for
// concurrent use.
type Allocator struct {
	o        Options
	settings Settings
	split    int64 // settings.maxSplit()
	collect  bool  // garbage collection is on
	divide   bool  // some size is rounded to a step
	limit    int64 // unlimited when there is none
	total    int64 // the device's bytes; 0 when unlimited
	driver   alloc.SubAllocator
	virtual  VirtualMemory // nil where the driver cannot map
	info     MemoryInfo    // nil where the driver does not tell
	obs      alloc.Observer
	tracer   Tracer

	blocks     []block
	spareBlock uint32
	index      index

	pools       [numKinds]*pool
	arenas      []*arena
	spareArenas []*arena
	privates    []*private // ascending by id
	freeable    []*private // in the order in which they lost their last user
	captures    []capture
	places      []reservation
	surplus     map[uint64]int64 // what the driver gave beyond a segment's size

	queues   []queue      // outstanding events, one queue per stream
	pending  int          // events in all queues
	deferred []uint32     // freed during a capture, with recorded streams
	useLists [][]recorded // recorded streams of blocks; entry 0 is unused
	spareUse []uint32
	scratch  []uint32

	reserved int64
	stats    table
	nextID   int64
	largest  int64 // largest block handed out
	stream   Stream
	pool     PoolID
	failure  *OutOfMemory
}

var _ alloc.Allocator = (*Allocator)(nil)

// New returns an empty allocator over a driver.
func New(driver alloc.SubAllocator, o Options) (*Allocator, error) {
	if driver == nil {
		return nil, errors.New("torch: no driver to take segments from")
	}
	if o.Name == "" {
		o.Name = "GPU_" + strconv.Itoa(o.Device) + "_torch"
	}
	a := &Allocator{
		o: o, driver: driver, obs: o.Observer, tracer: o.Tracer, limit: unlimited, nextID: 1,
		spareBlock: none, useLists: make([][]recorded, 1),
	}
	a.virtual, _ = driver.(VirtualMemory)
	a.info, _ = driver.(MemoryInfo)
	if a.obs == nil {
		a.obs = alloc.NoObserver{}
	}
	a.total = o.DeviceTotal
	if a.info != nil {
		if _, total := a.info.Memory(); total > 0 {
			a.total = total
		}
	}
	for k := small; k <= large; k++ {
		a.pools[k] = &pool{kind: k}
	}
	if err := a.SetSettings(o.Settings); err != nil {
		return nil, err
	}
	if o.Fraction != 0 {
		if err := a.SetFraction(o.Fraction); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// SetSettings changes the settings from the next request on. What is held
// stays as it is.
func (a *Allocator) SetSettings(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Backend != Native {
		return fmt.Errorf("torch: backend %s is another allocator; this one is backend native", s.Backend)
	}
	if s.Expandable && a.virtual == nil {
		return errors.New("torch: expandable_segments needs a driver that maps pages, and this one only hands out segments; use a torch.Device")
	}
	a.settings = s
	a.split = s.maxSplit()
	a.divide = s.Divisions != [divisionSlots]int64{}
	a.stats.maxSplit = a.split
	a.updateCollect()
	return nil
}

// Settings are the present ones.
func (a *Allocator) Settings() Settings { return a.settings }

// SetFraction limits what is reserved to a part of the device's memory; 1
// removes the limit.
func (a *Allocator) SetFraction(f float64) error {
	switch {
	case !(f > 0 && f <= 1):
		return fmt.Errorf("torch: memory fraction %v, expected above 0 and at most 1", f)
	case f == 1:
		a.limit = unlimited
	case a.total == 0:
		return fmt.Errorf("torch: a memory fraction of %v needs a device with a known size", f)
	default:
		a.limit = int64(f * float64(a.total))
	}
	a.updateCollect()
	return nil
}

func (a *Allocator) updateCollect() {
	a.collect = a.limit != unlimited && a.settings.GarbageCollection > 0
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Allocator) Limit() int64 {
	if a.limit == unlimited {
		return 0
	}
	return a.limit
}

// Request says what is wanted, and where.
type Request struct {
	Bytes  int64
	Stream Stream
	Pool   PoolID // a private pool; it is opened when it is not known
}

// Use sets the stream and the pool of later calls of Allocate.
func (a *Allocator) Use(s Stream, p PoolID) { a.stream, a.pool = s, p }

// Allocate implements alloc.Allocator, on the stream and pool that Use set.
// Every block begins at a multiple of 512 within its segment; a larger
// alignment is not heard, as in PyTorch, and neither are stamps.
func (a *Allocator) Allocate(r alloc.Request) (alloc.Block, bool) {
	return a.AllocateOn(Request{r.Bytes, a.stream, a.pool})
}

// AllocateOn hands out a block, or reports false: then Failure tells why. A
// request of 0 bytes gets the zero Block and false, and leaves no trace.
func (a *Allocator) AllocateOn(r Request) (alloc.Block, bool) {
	if r.Bytes <= 0 {
		return alloc.Block{}, false
	}
	if r.Bytes > MaxRequest {
		a.failure = &OutOfMemory{Device: a.o.Device, Requested: r.Bytes, Stream: r.Stream, Pool: r.Pool, Absurd: true}
		a.obs.Log(alloc.Warning, a.failure.Error())
		return alloc.Block{}, false
	}
	if len(a.captures) == 0 && (a.pending > 0 || len(a.deferred) > 0) {
		a.processEvents()
	}
	q := a.ask(&r)
	h := a.take(&q)
	if h == none {
		if h = a.miss(&q); h == none {
			a.outOfMemory(&q)
			return alloc.Block{}, false
		}
	}
	return a.handOut(h, &q), true
}

// ask is a request on its way through the allocator.
type ask struct {
	bytes   int64 // requested
	rounded int64
	arena   *arena
	stream  Stream
	pool    PoolID
}

func (a *Allocator) ask(r *Request) ask {
	n := (r.Bytes + Granule - 1) &^ (Granule - 1)
	if a.divide {
		n = a.settings.Round(r.Bytes)
	}
	k := large
	if n <= SmallLimit {
		k = small
	}
	p := a.pools[k]
	id := r.Pool
	if len(a.captures) > 0 && id.Default() {
		id = a.captureOf(r.Stream)
	}
	if !id.Default() {
		p = a.private(id).pools[k]
	}
	return ask{r.Bytes, n, a.arenaOf(p, r.Stream), r.Stream, id}
}

// miss gets a block by other means than the free ones: in this order, by
// callbacks, by the driver, and by the driver after giving memory back.
func (a *Allocator) miss(q *ask) uint32 {
	if a.o.FreeSome != nil && a.o.FreeSome() {
		if h := a.take(q); h != none {
			return h
		}
	}
	if a.collect {
		a.collectGarbage()
	}
	if h := a.grow(q); h != none {
		return h
	}
	if h := a.fallBack(q); h != none {
		return h
	}
	if a.releaseOversize(q) {
		if h := a.grow(q); h != none {
			return h
		}
	}
	if len(a.captures) > 0 {
		return none
	}
	a.releaseAll()
	a.stats.retries++
	return a.grow(q)
}

// fallBack tries the private pools that were opened for it.
func (a *Allocator) fallBack(q *ask) uint32 {
	for _, p := range a.privates {
		if !p.onOOM || p == q.arena.pool.owner {
			continue
		}
		other := *q
		other.arena = a.arenaOf(p.pools[q.arena.pool.kind], q.stream)
		other.pool = p.id
		if h := a.take(&other); h != none {
			*q = other
			return h
		}
	}
	return none
}

// take removes the best fitting free block of the arena from its set. Only one
// candidate is looked at: a rule against it is a miss.
func (a *Allocator) take(q *ask) uint32 {
	ar := q.arena
	if a.collect {
		ar.pool.calls++
	}
	h, at := ar.free.first(q.rounded, 0)
	if h == none {
		return none
	}
	b := &a.blocks[h]
	if b.is(expandable) {
		if a.settings.Expandable {
			h, at = a.leastRoom(ar, h, at)
		} else if h, at = a.notExpandable(ar, h); h == none {
			return none
		}
		b = &a.blocks[h]
	}
	if q.rounded < a.split {
		if b.size >= a.split {
			return none
		}
	} else if b.size >= q.rounded+a.settings.nonSplit() {
		return none
	}
	ar.free.removeAt(at)
	return h
}

// room is what an expandable block could grow to where it lies.
func (a *Allocator) room(b *block) int64 {
	if b.next != none {
		if n := &a.blocks[b.next]; !n.is(mapped) {
			return b.size + n.size
		}
	}
	return b.size
}

// leastRoom prefers, among the blocks that follow, one with less room to grow;
// it stops at the first that has not less.
func (a *Allocator) leastRoom(ar *arena, h uint32, at spot) (uint32, spot) {
	for {
		b := &a.blocks[h]
		if !b.is(expandable) {
			return h, at
		}
		n, next := ar.free.after(b.size, b.addr)
		if n == none || a.room(&a.blocks[n]) >= a.room(b) {
			return h, at
		}
		h, at = n, next
	}
}

// notExpandable skips what was left from when the segments could expand.
func (a *Allocator) notExpandable(ar *arena, h uint32) (uint32, spot) {
	var at spot
	for h != none && a.blocks[h].is(expandable) {
		h, at = ar.free.after(a.blocks[h].size, a.blocks[h].addr)
	}
	return h, at
}

func (a *Allocator) shouldSplit(p *pool, size, rounded int64) bool {
	rest := size - rounded
	switch {
	case p.noSplit:
		return false
	case p.kind == small || a.settings.Expandable:
		return rest >= Granule
	default:
		return rounded < a.split && rest > SmallLimit
	}
}

// handOut makes h, which is in no set, the request's block, or the low part of
// it.
func (a *Allocator) handOut(h uint32, q *ask) alloc.Block {
	b := &a.blocks[h]
	p := q.arena.pool
	was := b.split()
	counts := !b.is(expandable)
	if a.shouldSplit(p, b.size, q.rounded) {
		rest := h
		h = a.cutBelow(rest, q.rounded)
		a.insertFree(rest)
		b = &a.blocks[h]
		if counts {
			if was {
				a.stats.down(p.kind, inactiveSplitBytes, q.rounded)
			} else {
				a.stats.up(p.kind, inactiveSplitBytes, a.blocks[rest].size)
				a.stats.up(p.kind, inactiveSplit, 1)
			}
		}
	} else if was && counts {
		a.stats.down(p.kind, inactiveSplitBytes, b.size)
		a.stats.down(p.kind, inactiveSplit, 1)
	}
	b.flags |= inUse
	b.requested = q.bytes
	b.id = a.nextID
	a.nextID++
	a.index.add(b.addr, h)
	a.stats.handedOut(p.kind, b.size, q.bytes)
	a.largest = max(a.largest, b.size)
	if b.size >= a.split {
		a.stats.oversizeAllocations.up(1)
	}
	if a.tracer != nil {
		a.trace(ActionAlloc, b.addr, q.bytes, q.stream)
	}
	return alloc.Block{Address: b.addr, Size: b.size, Requested: q.bytes, ID: b.id}
}

// grow asks the driver for a segment, or for pages of an expandable one.
func (a *Allocator) grow(q *ask) uint32 {
	size := a.settings.Segment(q.rounded)
	// The limit is held against the segment also where fewer bytes would be
	// mapped, as upstream.
	if a.limit != unlimited && size > a.limit-a.reserved {
		a.obs.RegionRefused(size)
		return none
	}
	if a.settings.Expandable {
		return a.growExpandable(q)
	}
	addr, received, ok := a.driver.Take(Granule, size)
	if !ok {
		a.obs.RegionRefused(size)
		return none
	}
	p := q.arena.pool
	h := a.newBlock()
	a.blocks[h] = block{addr: addr, size: size, prev: none, next: none, arena: q.arena.number, flags: mapped | live}
	if received > size {
		if a.surplus == nil {
			a.surplus = map[uint64]int64{}
		}
		a.surplus[addr] = received - size
	}
	a.held(p, size)
	a.stats.up(p.kind, segment, 1)
	a.stats.up(p.kind, reservedBytes, size)
	if size >= a.split {
		a.stats.oversizeSegments.up(1)
	}
	a.stats.deviceAllocs++
	a.obs.RegionTaken(addr, size, received)
	a.trace(ActionSegmentAlloc, addr, size, q.stream)
	return h
}

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	slot, h := a.find(addr)
	if h == none {
		return fmt.Errorf("allocator %s: %#x was asked to be freed, but no block in use starts there", a.o.Name, addr)
	}
	a.index.removeAt(slot)
	b := &a.blocks[h]
	k := a.arenas[b.arena].pool.kind
	b.flags &^= inUse
	a.stats.takenBack(k, b.size)
	if a.tracer != nil {
		a.trace(ActionFreeRequested, addr, b.requested, a.arenas[b.arena].stream)
	}
	if b.size >= a.split {
		a.stats.oversizeAllocations.down(1)
	}
	switch {
	case b.uses == 0:
		a.release(h)
	case len(a.captures) > 0:
		a.deferred = append(a.deferred, h)
	default:
		a.insertEvents(h)
	}
	return nil
}

// release makes a block free that nobody reads any more: it joins its free
// neighbours and goes into the free set.
func (a *Allocator) release(h uint32) {
	b := &a.blocks[h]
	ar := a.arenas[b.arena]
	size, requested := b.size, b.requested
	if a.tracer != nil {
		a.trace(ActionFreeCompleted, b.addr, requested, ar.stream)
	}
	// Net change of what is split and idle. Of a neighbour that is swallowed the
	// entry in the free set becomes that of the whole.
	var blocks, bytes int64
	set := &ar.free
	prev, next := a.idle(b.prev), a.idle(b.next)
	switch {
	case prev != none:
		if next != none {
			n := &a.blocks[next]
			blocks--
			bytes -= n.size
			set.remove(n.size, n.addr)
			a.swallow(h, next)
		}
		p := &a.blocks[prev]
		blocks--
		bytes -= p.size
		at := set.locate(p.size, p.addr)
		a.swallow(h, prev)
		set.grow(at, b.size, b.addr, h)
	case next != none:
		n := &a.blocks[next]
		blocks--
		bytes -= n.size
		at := set.locate(n.size, n.addr)
		a.swallow(h, next)
		set.grow(at, b.size, b.addr, h)
	default:
		set.insert(b.size, b.addr, h)
	}
	b.born = ar.pool.calls
	k := ar.pool.kind
	if !b.is(expandable) {
		if b.split() {
			blocks++
			bytes += b.size
		}
		a.stats.change(k, inactiveSplit, blocks)
		a.stats.change(k, inactiveSplitBytes, bytes)
	}
	a.stats.down(k, active, 1)
	a.stats.down(k, activeBytes, size)
	a.stats.down(k, requestedBytes, requested)
}

// EmptyCache gives every segment back that holds no block in use, after
// waiting for all streams. Within a capture it does nothing.
func (a *Allocator) EmptyCache() {
	if len(a.captures) == 0 {
		a.releaseAll()
	}
}

// Stats implements alloc.Allocator. Pool is what is reserved.
func (a *Allocator) Stats() alloc.Stats {
	bytes := &a.stats.counters[all][allocatedBytes]
	held := &a.stats.counters[all][reservedBytes]
	s := alloc.Stats{
		NumAllocs: a.stats.counters[all][allocations].total, InUse: bytes.current, PeakInUse: bytes.peak,
		LargestAlloc: a.largest, Limit: a.Limit(), PeakAllocated: bytes.peak, Pool: held.current, PeakPool: held.peak,
	}
	for _, ar := range a.arenas {
		s.LargestFree = max(s.LargestFree, ar.free.largest())
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Allocator) ClearStats() {
	a.ResetAccumulated()
	a.ResetPeaks()
	a.largest = 0
}

// memory is what the driver could still give and what the device has.
func (a *Allocator) memory() (free, total int64) {
	if a.info != nil {
		if free, total = a.info.Memory(); total > 0 {
			return free, total
		}
	}
	if a.total > 0 {
		return max(0, a.total-a.reserved), a.total
	}
	return math.MaxInt64, 0
}
