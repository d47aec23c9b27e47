package store

import (
	"sort"

	"tideline/protocol/event"
)

// impliedBytes is the grain of regions that no event told of. Host allocators
// have none, so their blocks get regions of this size around them, else an
// address map of 47 bits would show nothing.
const impliedBytes = 32 << 20

// maxImplied bounds the regions made up for one pool: beyond it, addresses are
// so scattered that a map of them says nothing.
const maxImplied = 4096

// Bounds of what one pool's layout takes in over all of its time: different
// regions, and bytes.
const (
	maxRegions = 1 << 16
	maxLayout  = 1 << 56
)

// findRegion is the region that holds the event's address now, made up when no
// event told of one, or -1. Most often that is lastReg, which is asked before.
func (p *Pool) findRegion(e *event.Event) int32 {
	k := p.activeAfter(e.Address)
	if k > 0 {
		if r := p.active[k-1]; p.regions[r].holds(e.Address) {
			p.lastReg = r
			return r
		}
	}
	if len(p.regions) >= maxImplied || e.Size <= 0 || p.layout > maxLayout {
		return -1
	}
	lo := e.Address &^ (impliedBytes - 1)
	hi := (e.Address + uint64(e.Size) + impliedBytes - 1) &^ (impliedBytes - 1)
	if hi <= e.Address { // at the end of the address space
		return -1
	}
	if k > 0 {
		r := &p.regions[p.active[k-1]]
		lo = max(lo, r.Address+uint64(r.Size))
	}
	if k < len(p.active) {
		hi = min(hi, p.regions[p.active[k]].Address)
	}
	p.lastReg = p.addRegion(Region{Added: e.Time, Removed: Alive, Address: lo, Size: int64(hi - lo), Implied: true})
	return p.lastReg
}

func (r *Region) holds(a uint64) bool { return a-r.Address < uint64(r.Size) }

// activeAfter is the number of held regions that begin at address a or before.
func (p *Pool) activeAfter(a uint64) int {
	return sort.Search(len(p.active), func(i int) bool { return p.regions[p.active[i]].Address > a })
}

// addRegion gives a region a place in the layout: that of a removed one of the
// same size, or the end. So the layout never shifts under a reader's eyes, and
// a pool that returns and gets regions all the time does not grow for ever.
func (p *Pool) addRegion(r Region) int32 {
	r.Offset = -1
	for i := range p.regions {
		if o := &p.regions[i]; o.Removed != Alive && o.Size == r.Size && !p.taken(o.Offset) {
			r.Offset = o.Offset
			break
		}
	}
	if r.Offset < 0 {
		r.Offset = p.layout
		p.layout += r.Size
	}
	i := int32(len(p.regions))
	p.regions = append(p.regions, r)
	p.activate(i)
	return i
}

// activate puts a region among those held now.
func (p *Pool) activate(i int32) {
	k := p.activeAfter(p.regions[i].Address)
	p.active = append(p.active, 0)
	copy(p.active[k+1:], p.active[k:])
	p.active[k] = i
}

// again takes up a region that was removed and now comes back as it was: a
// planned step gets its arena anew each time, and a record for each would be
// millions.
func (p *Pool) again(e *event.Event) bool {
	k, ok := p.gone.get(e.Address)
	if !ok {
		return false
	}
	r := &p.regions[k]
	if r.Removed == Alive || r.Implied || r.Size != e.Size || p.taken(r.Offset) {
		return false
	}
	if r.turns == nil {
		r.turns = &rows{cols: 2}
		r.turn(r.Added, r.from)
		r.turn(r.Removed, r.until)
	}
	r.turn(e.Time, p.reserved.n)
	r.Removed = Alive
	p.activate(int32(k))
	return true
}

// turn notes that the region came or went, in turns, at a time and after so
// many changes of the pool's regions.
func (r *Region) turn(at int64, changes int) {
	k := r.turns.add()
	r.turns.open[k], r.turns.open[r.turns.stride+k] = at, int64(changes)
}

// remove ends a region.
func (p *Pool) remove(k int, at int64) {
	i := p.active[k]
	r := &p.regions[i]
	r.Removed, r.until = at, p.reserved.n
	if r.turns != nil {
		r.turn(at, r.until)
	}
	p.active = append(p.active[:k], p.active[k+1:]...)
	p.gone.put(r.Address, uint64(i))
}

// heldAt reports whether the region was there at a time.
func (r *Region) heldAt(at int64) bool {
	if at < r.Added || at >= r.Removed {
		return false
	}
	return r.turns == nil || r.turns.after(0, at, 0)&1 == 1
}

// heldAfter reports whether it was there after so many changes of the pool's
// regions.
func (r *Region) heldAfter(changes int) bool {
	if r.from >= changes || r.Removed != Alive && changes > r.until {
		return false
	}
	return r.turns == nil || r.turns.after(1, int64(changes-1), 0)&1 == 1
}

// Holds visits the times in which region i was there, as far as they touch the
// window, in order. Pauses shorter than a bucket are passed over, so that a
// window has no more visits than buckets.
func (p *Pool) Holds(i int, w Window, visit func(added, removed int64)) {
	r := &p.regions[i]
	if !w.valid() || r.Added >= w.T1 || r.Removed <= w.T0 {
		return
	}
	if r.turns == nil {
		visit(r.Added, r.Removed)
		return
	}
	turn := func(k int) int64 {
		if k >= r.turns.n {
			return Alive
		}
		return r.turns.at(0, k)
	}
	pause := max(1, (w.T1-w.T0)/int64(w.W))
	// Of the turns, those with even numbers are arrivals.
	n := r.turns.after(0, w.T0, 0)
	if n&1 == 1 {
		n-- // it came before the window
	}
	for n < r.turns.n && turn(n) < w.T1 {
		from, to := turn(n), turn(n+1)
		for to < w.T1 {
			n = r.turns.after(0, to+pause, n)
			if n&1 == 0 {
				to = turn(n - 1)
				break
			}
			to = turn(n)
		}
		visit(from, to)
		if to >= w.T1 {
			return
		}
	}
}

// AddedWithin reports whether region i came at a time in [t0,t1].
func (p *Pool) AddedWithin(i int, t0, t1 int64) bool {
	r := &p.regions[i]
	if r.turns == nil {
		return r.Added >= t0 && r.Added <= t1
	}
	// The turns before t0, and the first arrival after them.
	n := (r.turns.after(0, t0-1, 0) + 1) &^ 1
	return n < r.turns.n && r.turns.at(0, n) <= t1
}

func (p *Pool) taken(offset int64) bool {
	for _, i := range p.active {
		if p.regions[i].Offset == offset {
			return true
		}
	}
	return false
}

// regionAdd handles an event of that kind.
func (p *Pool) regionAdd(e *event.Event) bool {
	if e.Size <= 0 {
		return false
	}
	grew := e.Size
	k := p.activeAfter(e.Address)
	if k > 0 {
		i := p.active[k-1]
		r := &p.regions[i]
		switch {
		case !r.holds(e.Address):
		case r.Implied || e.Address != r.Address || e.Size <= r.Size:
			return false // lies in a region that is known already
		case r.Offset+r.Size == p.layout:
			// The region was extended in place, and so is its place in the layout.
			grew = e.Size - r.Size
			p.layout += grew
			r.Size = e.Size
			p.reserve(e.Time, grew)
			return true
		default:
			grew = e.Size - r.Size
			p.remove(k-1, e.Time)
		}
	}
	switch {
	case p.again(e):
	case len(p.regions) >= maxRegions || p.layout > maxLayout:
		return false
	default:
		p.addRegion(Region{Added: e.Time, Removed: Alive, Address: e.Address, Size: e.Size, from: p.reserved.n})
	}
	p.reserve(e.Time, grew)
	p.lastReg = -1
	return true
}

// regionRemove handles an event of that kind.
func (p *Pool) regionRemove(e *event.Event) bool {
	k := p.activeAfter(e.Address)
	if k == 0 || p.regions[p.active[k-1]].Address != e.Address {
		return false
	}
	size := p.regions[p.active[k-1]].Size
	p.remove(k-1, e.Time)
	p.reserve(e.Time, -size)
	p.lastReg = -1
	return true
}

func (p *Pool) reserve(at, grew int64) {
	p.now.Reserved += grew
	p.reserved.push(at, p.now.Reserved, int64(p.inUse.n))
}

// Regions are all regions that the pool ever held, in order of arrival.
func (p *Pool) Regions() []Region { return p.regions }

// LayoutUsed is the length of the part of the layout that blocks ever reached.
func (p *Pool) LayoutUsed() int64 { return p.used }

// LayoutSize is the length of the compact layout in bytes.
func (p *Pool) LayoutSize() int64 { return p.layout }

// Offset is the place of an address at time at in the compact layout; ok is
// false when no region of that time holds it.
func (p *Pool) Offset(address uint64, at int64) (off int64, ok bool) {
	for i := range p.regions {
		if r := &p.regions[i]; r.heldAt(at) && r.holds(address) {
			return r.Offset + int64(address-r.Address), true
		}
	}
	return 0, false
}

// RegionAt is the number of the region at a place of the layout at a time, or
// -1.
func (p *Pool) RegionAt(off, at int64) int {
	for i := range p.regions {
		if r := &p.regions[i]; r.heldAt(at) && off >= r.Offset && off < r.Offset+r.Size {
			return i
		}
	}
	return -1
}

// Address is the inverse of Offset.
func (p *Pool) Address(off, at int64) (address uint64, ok bool) {
	if i := p.RegionAt(off, at); i >= 0 {
		r := &p.regions[i]
		return r.Address + uint64(off-r.Offset), true
	}
	return 0, false
}
