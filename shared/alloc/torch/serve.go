package torch

import "tideline/shared/alloc"

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

// ask is a request on its way through the allocator; its stream and its pool are
// the arena's.
type ask struct {
	bytes   int64 // requested
	rounded int64
	arena   *arena
	// preempted: refused without asking the driver, or giving anything back.
	preempted bool
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
	ar := p.last
	if ar == nil || ar.stream != r.Stream {
		ar = a.arenaOf(p, r.Stream)
	}
	return ask{bytes: r.Bytes, rounded: n, arena: ar}
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
	if h := a.grow(q); h != none || q.preempted {
		return h
	}
	if h := a.fallBack(q); h != none {
		return h
	}
	if a.releaseOversize(q) {
		if h := a.grow(q); h != none || q.preempted {
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

// preempts says that a request is refused before the driver is asked, as
// throw_on_cudamalloc_oom has it: with what is reserved, idle or not, a new
// segment would pass the part of the device that the settings name, or all of
// it. A limit that holds is asked first, and has the idle given back as ever.
func (a *Allocator) preempts(segment int64) bool {
	if !a.settings.Preempt || a.total == 0 {
		return false
	}
	allowed := a.total
	if f := a.settings.Fraction; f > 0 {
		allowed = int64(f * float64(a.total))
	}
	return segment > allowed-a.reserved
}

// fallBack tries the private pools that were opened for it.
func (a *Allocator) fallBack(q *ask) uint32 {
	for _, p := range a.privates {
		if !p.onOOM || p == q.arena.pool.owner {
			continue
		}
		other := *q
		other.arena = a.arenaOf(p.pools[q.arena.pool.kind], q.arena.stream)
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
		a.trace(ActionAlloc, b.addr, q.bytes, q.arena.stream)
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
	if q.preempted = a.preempts(size); q.preempted {
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
	a.trace(ActionSegmentAlloc, addr, size, q.arena.stream)
	return h
}
