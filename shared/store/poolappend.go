package store

import "tideline/protocol/event"

// markEvery is how many points lie between two full records of the bytes by
// category. Finding the state at a point replays a quarter of that on average.
const (
	markBits  = 5
	markEvery = 1 << markBits
)

// What a point did; the rest of its number says to what.
const (
	didAlloc   = iota // allocation
	didFree           // allocation
	didForward        // index into takenFrom and takenBy
	didBits    = 2
	didMask    = 1<<didBits - 1
)

func newPool(index int, d event.DeviceID, a event.AllocatorID) *Pool {
	p := &Pool{
		Index: index, Device: d, Allocator: a, lastReg: -1,
		Name: "allocator " + itoa(int64(a)),
	}
	for i := range p.marks {
		p.marks[i].bits = 8 // one mark for many points: large chunks would never fill
	}
	p.tiles.init()
	return p
}

func packKind(e *event.Event, forwarded bool) int64 {
	c := e.Category
	if int(c) >= event.NumCategories {
		c = event.Unknown
	}
	k := int64(c) | int64(e.Stream)<<8
	if forwarded {
		k |= 1 << 16
	}
	return k
}

// alloc adds a block; it reports false when one was live at its address, which
// is then taken as freed: its free was lost.
func (p *Pool) alloc(e *event.Event) bool {
	clean := true
	if old, ok := p.live.take(e.Address); ok {
		p.end(int(old), e.Time)
		clean = false
	}
	i := p.birth.len()
	p.addAlloc(e, p.findRegion(e), e.Size, e.Size-e.Requested, false)
	p.live.put(e.Address, uint64(i))
	p.mark()
	p.account(i, 1)
	p.point(e.Time, i, didAlloc)
	return clean
}

func (p *Pool) addAlloc(e *event.Event, region int32, size, waste int64, forwarded bool) {
	p.birth.push(int64(p.inUse.len()))
	p.address.push(int64(e.Address))
	p.size.push(size)
	p.waste.push(waste)
	p.tensor.push(int64(e.Tensor))
	p.op.push(int64(e.Op))
	p.step.push(int64(e.Step))
	p.kind.push(packKind(e, forwarded))
	p.region.push(int64(region))
	p.lives.begin()
}

// free ends the block at the event's address; it reports false when there is
// none.
func (p *Pool) free(e *event.Event) bool {
	i, ok := p.live.take(e.Address)
	if ok {
		p.end(int(i), e.Time)
	}
	return ok
}

func (p *Pool) end(i int, at int64) {
	p.mark()
	p.account(i, -1)
	p.lives.finish(i, uint32(p.inUse.len()+1))
	p.point(at, i, didFree)
}

// forward ends the block at the event's address and begins another in its
// place, in one point, so that the bytes in use show no dip.
func (p *Pool) forward(e *event.Event) bool {
	old, ok := p.live.get(e.Address)
	if !ok {
		return false
	}
	i, j := int(old), p.birth.len()
	size, waste := p.size.at(i), p.waste.at(i)
	if e.Requested > 0 {
		waste = size - e.Requested
	}
	n := *e
	n.Stream = event.StreamID(p.kind.at(i) >> 8)
	p.mark()
	p.account(i, -1)
	p.addAlloc(&n, int32(p.region.at(i)), size, waste, true)
	p.account(j, 1)
	p.lives.finish(i, uint32(p.inUse.len()+1))
	p.live.put(e.Address, uint64(j))
	f := p.takenFrom.len()
	p.takenFrom.push(int64(i))
	p.takenBy.push(int64(j))
	p.point(e.Time, f, didForward)
	return true
}

// mark records the state before every markEvery-th point.
func (p *Pool) mark() {
	if p.inUse.len()&(markEvery-1) != 0 {
		return
	}
	for c := range p.now.ByCategory {
		p.marks[c].push(p.now.ByCategory[c])
	}
	p.marks[event.NumCategories].push(p.now.Waste)
}

func (p *Pool) point(at int64, what, did int) {
	p.now.Time = at
	p.inUse.push(at, p.now.InUse)
	p.change.push(int64(what)<<didBits | int64(did))
	if p.inUse.len()&(tilePoints-1) == 0 {
		p.tiles.close()
	}
}

// account adds (sign 1) or takes away (sign -1) allocation i.
func (p *Pool) account(i int, sign int64) {
	size := p.size.at(i)
	c := p.kind.at(i) & 0xff
	p.now.InUse += sign * size
	p.now.Waste += sign * p.waste.at(i)
	p.now.ByCategory[c] += sign * size
	if r := p.region.at(i); r >= 0 {
		reg := &p.regions[r]
		off := reg.Offset + int64(uint64(p.address.at(i))-reg.Address)
		p.tiles.add(off, min(size, reg.Offset+reg.Size-off), int(c), sign)
	}
}

// bytes is the memory that the pool holds.
func (p *Pool) bytes() int64 {
	n := p.inUse.bytes() + p.change.bytes() + p.lives.bytes(4) + p.live.bytes() + p.reserved.bytes() + p.tiles.bytes()
	for i := range p.marks {
		n += p.marks[i].bytes()
	}
	for _, c := range []*column{
		&p.birth, &p.address, &p.size, &p.waste, &p.tensor, &p.op, &p.step,
		&p.kind, &p.region, &p.takenFrom, &p.takenBy,
	} {
		n += c.bytes()
	}
	return n + int64(cap(p.regions))*64
}
