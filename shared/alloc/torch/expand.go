package torch

import "slices"

// reservation is a range of addresses that memory is mapped into page by page.
type reservation struct {
	addr uint64
	size int64
	page int64
}

// unlimitedReservation is what a device of unknown size sets aside.
const unlimitedReservation = 1 << 40

// growExpandable maps more of the stream's reservation, so that the free block
// at its lowest possible address is large enough, and takes that block.
func (a *Allocator) growExpandable(q *ask) uint32 {
	h := a.findExpandable(q)
	if h == none {
		return none
	}
	// From h on there is room enough: unmapped, or unmapped and free in turn,
	// or free and unmapped in turn.
	if !a.blocks[h].is(mapped) && !a.mapBlock(h, min(a.blocks[h].size, q.rounded)) {
		return none
	}
	for a.blocks[h].size < q.rounded {
		next := a.blocks[h].next
		missing := q.rounded - a.blocks[h].size
		if !a.mapBlock(next, min(missing, a.blocks[next].size)) {
			return none
		}
		h = next // the free block before it was merged into it
	}
	q.arena.free.remove(a.blocks[h].size, a.blocks[h].addr)
	return h
}

// findExpandable returns where the lowest run of free and unmapped blocks
// begins that is long enough, in a new reservation if there is none.
func (a *Allocator) findExpandable(q *ask) uint32 {
	for _, h := range q.arena.unmapped {
		if prev := a.blocks[h].prev; prev != none && a.blocks[prev].mergeable() {
			h = prev
		}
		if a.holds(h, q.rounded) {
			return h
		}
	}
	if size, _ := a.reservationSize(q.arena.pool); q.rounded > size && (a.total == 0 || a.settings.Reserve.Value > 0) {
		// More than is ever set aside. Where the device is known its memory ends
		// before the addresses do, unless fewer are set aside.
		a.obs.RegionRefused(q.rounded)
		return none
	}
	return a.reserve(q.arena)
}

func (a *Allocator) holds(h uint32, size int64) bool {
	var sum int64
	for ; sum < size && h != none && a.blocks[h].mergeable(); h = a.blocks[h].next {
		sum += a.blocks[h].size
	}
	return sum >= size
}

// reserve sets addresses aside, for 9/8 of the device unless the settings say
// less, so that pages can be unmapped in front and mapped behind.
func (a *Allocator) reserve(ar *arena) uint32 {
	size, page := a.reservationSize(ar.pool)
	addr, ok := a.virtual.Reserve(size)
	if !ok {
		return none
	}
	return a.addReservation(ar, addr, size, page)
}

func (a *Allocator) reservationSize(p *pool) (size, page int64) {
	page = SmallSegment
	if p.kind == large {
		page = a.settings.largeSegment()
	}
	size = unlimitedReservation
	if a.total > 0 {
		size = a.total + a.total/8
	}
	size = a.settings.Reserve.bytes(a.total, size)
	return (size + page - 1) / page * page, page
}

// addReservation makes the one unmapped block that a reservation begins with.
func (a *Allocator) addReservation(ar *arena, addr uint64, size, page int64) uint32 {
	place := slices.IndexFunc(a.places, func(r reservation) bool { return r.size == 0 })
	if place < 0 {
		place = len(a.places)
		a.places = append(a.places, reservation{})
	}
	a.places[place] = reservation{addr, size, page}
	h := a.newBlock()
	a.blocks[h] = block{
		addr: addr, size: size, prev: none, next: none, arena: ar.number, place: uint32(place), flags: expandable | live,
	}
	ar.addUnmapped(a, h)
	return h
}

// mapBlock backs the first size bytes of an unmapped block, in whole pages, and
// makes them a free block together with the free neighbours.
func (a *Allocator) mapBlock(h uint32, size int64) bool {
	b := &a.blocks[h]
	page := a.places[b.place].page
	size = (size + page - 1) / page * page
	if size > b.size {
		return false // a request larger than all reservations
	}
	addr := b.addr
	if !a.virtual.Map(addr, size) {
		a.obs.RegionRefused(size)
		return false
	}
	ar := a.arenas[b.arena]
	ar.dropUnmapped(a, h)
	if size < b.size {
		ar.addUnmapped(a, a.cutAbove(h, size))
	}
	b = &a.blocks[h]
	b.flags |= mapped
	a.merge(h, b.prev)
	a.merge(h, b.next)
	a.insertFree(h)
	a.held(ar.pool, size)
	a.stats.up(ar.pool.kind, reservedBytes, size)
	a.stats.deviceAllocs++
	for at := int64(0); at < size; at += page {
		a.obs.RegionTaken(addr+uint64(at), page, page)
	}
	a.trace(ActionSegmentMap, addr, size, ar.stream)
	return true
}

func (a *Allocator) held(p *pool, bytes int64) {
	a.reserved += bytes
	if p.owner != nil {
		p.owner.held += bytes
	}
}

// unmapBlock takes the memory from the whole pages inside of a free block. What
// lies before and after them stays free.
func (a *Allocator) unmapBlock(h uint32) {
	b := &a.blocks[h]
	place := &a.places[b.place]
	page := uint64(place.page)
	from := place.addr + (b.addr-place.addr+page-1)/page*page
	to := place.addr + (b.end()-place.addr)/page*page
	if from >= to {
		return
	}
	size := int64(to - from)
	ar := a.arenas[b.arena]
	ar.free.remove(b.size, b.addr)
	if before := int64(from - b.addr); before > 0 {
		a.insertFree(a.cutBelow(h, before))
	}
	if a.blocks[h].size > size {
		a.insertFree(a.cutAbove(h, size))
	}
	b = &a.blocks[h]
	b.flags &^= mapped
	a.merge(h, b.prev)
	a.merge(h, b.next)
	ar.addUnmapped(a, h)
	a.held(ar.pool, -size)
	a.stats.down(ar.pool.kind, reservedBytes, size)
	a.stats.deviceFrees++
	a.virtual.Unmap(from, size)
	a.obs.RegionGiven(from, size)
	a.trace(ActionSegmentUnmap, from, size, ar.stream)
	if b.prev == none && b.next == none {
		a.unreserve(h)
	}
}

// unreserve returns a reservation without memory.
func (a *Allocator) unreserve(h uint32) {
	b := &a.blocks[h]
	a.arenas[b.arena].dropUnmapped(a, h)
	place := &a.places[b.place]
	a.virtual.Unreserve(place.addr, place.size)
	*place = reservation{}
	a.dropBlock(h)
}
