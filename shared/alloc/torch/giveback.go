package torch

// releaseOversize gives blocks at or above the split limit back, those that
// could serve the request if they were not there: one that is large enough, or
// several from the largest down. It reports whether that was enough.
func (a *Allocator) releaseOversize(q *ask) bool {
	if a.split == unlimited {
		return false
	}
	set := &q.arena.free
	key := max(q.rounded, a.split)
	if h, _ := set.first(key, 0); h != none && !a.blocks[h].is(expandable) {
		if a.blocks[h].split() {
			return false // the limit was lowered while it was in pieces
		}
		a.giveSegment(h)
		return true
	}
	var sum int64
	for h := set.before(key, 0); h != none && sum < key; {
		b := &a.blocks[h]
		if b.size < a.split {
			break
		}
		next := set.before(b.size, b.addr)
		if !b.is(expandable) && !b.split() {
			sum += b.size
			a.giveSegment(h)
		}
		h = next
	}
	return sum >= key
}

// releaseAll gives back every segment that is free as a whole, after waiting
// for all streams.
func (a *Allocator) releaseAll() {
	a.synchronize()
	a.releasePool(a.pools[large])
	a.releasePool(a.pools[small])
	a.releaseUnused()
}

// releaseUnused is releaseAll for the private pools without users, of which
// those that hold nothing any more vanish.
func (a *Allocator) releaseUnused() {
	kept := a.freeable[:0]
	for _, p := range a.freeable {
		a.releasePool(p.pools[small])
		a.releasePool(p.pools[large])
		if p.held == 0 {
			a.forget(p)
		} else {
			kept = append(kept, p)
		}
	}
	a.freeable = kept
}

// releasePool goes through the free blocks in order; expandable ones come after
// all others, because unmapping them changes the sets.
func (a *Allocator) releasePool(p *pool) {
	list := a.scratch[:0]
	for _, ar := range p.arenas {
		ar.free.each(func(h uint32) { list = append(list, h) })
	}
	later := list[:0]
	for _, h := range list {
		switch b := &a.blocks[h]; {
		case b.is(expandable):
			later = append(later, h)
		case !b.split():
			a.giveSegment(h)
		}
	}
	for _, h := range later {
		a.unmapBlock(h)
	}
	a.scratch = list[:0]
}

// giveSegment returns the segment of a free, unsplit block to the driver.
func (a *Allocator) giveSegment(h uint32) {
	b := a.blocks[h]
	ar := a.arenas[b.arena]
	a.stats.deviceFrees++
	a.trace(ActionSegmentFree, b.addr, b.size, ar.stream)
	ar.free.remove(b.size, b.addr)
	received := b.size + a.surplus[b.addr]
	delete(a.surplus, b.addr)
	a.driver.Give(b.addr, received)
	a.held(ar.pool, -b.size)
	a.stats.down(ar.pool.kind, segment, 1)
	a.stats.down(ar.pool.kind, reservedBytes, b.size)
	if b.size >= a.split {
		a.stats.oversizeSegments.down(1)
	}
	a.dropBlock(h)
	a.obs.RegionGiven(b.addr, received)
}

// collectGarbage gives back large segments that were idle for longer than the
// average, once more is reserved than the threshold allows.
func (a *Allocator) collectGarbage() {
	threshold := int64(a.settings.GarbageCollection * float64(a.limit))
	if a.reserved <= threshold {
		return
	}
	target := a.reserved - threshold
	p := a.pools[large]
	idle := a.scratch[:0]
	var ages, count int64
	for _, ar := range p.arenas {
		ar.free.each(func(h uint32) {
			if b := &a.blocks[h]; !b.split() {
				ages += p.calls - b.born
				count++
				if !b.is(expandable) { // those count, but are not given back here
					idle = append(idle, h)
				}
			}
		})
	}
	a.scratch = idle[:0]
	var reclaimed int64
	for freed := true; freed && reclaimed < target && count > 0; {
		oldest := float64(ages) / float64(count)
		freed = false
		kept := idle[:0]
		for _, h := range idle {
			b := &a.blocks[h]
			age := p.calls - b.born
			if float64(age) < oldest {
				kept = append(kept, h)
				continue
			}
			freed = true
			reclaimed += b.size
			ages -= age
			count--
			a.giveSegment(h)
		}
		idle = kept
	}
}

// Close implements alloc.Allocator.
func (a *Allocator) Close() {
	for h := range a.blocks {
		switch b := &a.blocks[h]; {
		case !b.is(live):
		case b.is(expandable):
			if b.is(mapped) {
				a.closeMapped(uint32(h))
			}
		case b.prev == none:
			size := int64(0)
			for n := uint32(h); n != none; n = a.blocks[n].next {
				size += a.blocks[n].size
			}
			size += a.surplus[b.addr]
			a.driver.Give(b.addr, size)
			a.obs.RegionGiven(b.addr, size)
		}
	}
	for _, p := range a.places {
		if p.size > 0 {
			a.virtual.Unreserve(p.addr, p.size)
		}
	}
	*a = Allocator{
		o: a.o, driver: a.driver, obs: a.obs, limit: a.limit, spareBlock: none, settings: a.settings, split: a.split,
		stats: table{maxSplit: a.split}, pools: [numKinds]*pool{small: {kind: small}, large: {kind: large}},
		useLists: make([][]recorded, 1), nextID: a.nextID, virtual: a.virtual, info: a.info, total: a.total,
	}
}

// closeMapped unmaps the run of mapped blocks that begins with h, if one does.
func (a *Allocator) closeMapped(h uint32) {
	b := &a.blocks[h]
	if b.prev != none && a.blocks[b.prev].is(mapped) {
		return
	}
	size := int64(0)
	for n := h; n != none && a.blocks[n].is(mapped); n = a.blocks[n].next {
		size += a.blocks[n].size
	}
	a.virtual.Unmap(b.addr, size)
	a.obs.RegionGiven(b.addr, size)
}
