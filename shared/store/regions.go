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

// Bounds of what one pool's layout takes in over all of its time: regions, and
// bytes.
const (
	maxRegions = 1 << 16
	maxLayout  = 1 << 56
)

// findRegion is the region that holds the event's address now, made up when no
// event told of one, or -1.
func (p *Pool) findRegion(e *event.Event) int32 {
	if p.lastReg >= 0 && p.regions[p.lastReg].holds(e.Address) {
		return p.lastReg
	}
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
	k := p.activeAfter(r.Address)
	p.active = append(p.active, 0)
	copy(p.active[k+1:], p.active[k:])
	p.active[k] = i
	return i
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
	if e.Size <= 0 || len(p.regions) >= maxRegions || p.layout > maxLayout {
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
			r.Removed, r.until = e.Time, p.reserved.n
			p.active = append(p.active[:k-1], p.active[k:]...)
		}
	}
	p.addRegion(Region{Added: e.Time, Removed: Alive, Address: e.Address, Size: e.Size, from: p.reserved.n})
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
	r := &p.regions[p.active[k-1]]
	r.Removed, r.until = e.Time, p.reserved.n
	p.active = append(p.active[:k-1], p.active[k:]...)
	p.reserve(e.Time, -r.Size)
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
		if r := &p.regions[i]; r.Added <= at && at < r.Removed && r.holds(address) {
			return r.Offset + int64(address-r.Address), true
		}
	}
	return 0, false
}

// Address is the inverse of Offset.
func (p *Pool) Address(off, at int64) (address uint64, ok bool) {
	for i := range p.regions {
		if r := &p.regions[i]; r.Added <= at && at < r.Removed && off >= r.Offset && off < r.Offset+r.Size {
			return r.Address + uint64(off-r.Offset), true
		}
	}
	return 0, false
}
