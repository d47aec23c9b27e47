package store

import "tideline/protocol/event"

// markEvery is how many points lie between two full records of the bytes by
// category. Finding the state at a point replays a quarter of that on average.
const (
	markBits  = 4
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
		Name:  "allocator " + itoa(int64(a)),
		inUse: newNumbers(), reserved: newNumbers(),
		marks: rows{cols: event.NumCategories + 1}, allocs: rows{cols: allocCols}, forwards: rows{cols: 2},
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

// block is what is kept of a live block besides its columns, so that its free
// need not look into them.
type block struct {
	size, waste int64
	off         int64 // in the layout
	placed      int64 // bytes that lie in the layout
	category    uint8
}

// alloc adds a block; it reports false when one was live at its address, which
// is then taken as freed: its free was lost.
func (p *Pool) alloc(e *event.Event) bool {
	var place int
	if n := len(p.vacant); n > 0 {
		place = int(p.vacant[n-1])
		p.vacant = p.vacant[:n-1]
	} else {
		place = p.blocks.n
		p.blocks.push(held{})
	}
	old, again := p.live.swap(e.Address, uint64(place))
	if again {
		p.end(old, e.Time)
	}
	h := p.blocks.at(place)
	b := &h.block
	b.size, b.waste, b.placed = e.Size, e.Size-e.Requested, 0
	region := p.lastReg
	if region < 0 || !p.regions[region].holds(e.Address) {
		region = p.findRegion(e)
	}
	if region >= 0 {
		r := &p.regions[region]
		at := int64(e.Address - r.Address)
		b.off, b.placed = r.Offset+at, min(e.Size, r.Size-at)
	}
	i := p.addAlloc(e, region, b, false)
	h.alloc = int32(i)
	p.change(b, 1, e.Time, i, didAlloc)
	return !again
}

// addAlloc makes the record of a block.
func (p *Pool) addAlloc(e *event.Event, region int32, b *block, forwarded bool) int {
	kind := packKind(e, forwarded)
	b.category = uint8(kind)
	p.seen |= 1 << (b.category & 31)
	i := p.allocs.n
	k := p.allocs.add()
	r, s := p.allocs.open[k:], p.allocs.stride
	_ = r[(allocCols-1)*s]
	r[birthCol*s] = int64(p.inUse.n)
	r[addrCol*s] = int64(e.Address)
	r[sizeCol*s] = b.size
	r[wasteCol*s] = b.waste
	r[tensorCol*s] = int64(e.Tensor)
	r[opCol*s] = int64(e.Op)
	r[stepCol*s] = int64(e.Step)
	r[kindCol*s] = kind
	r[regionCol*s] = int64(region)
	p.lives.begin()
	return i
}

// held is a live block and the index of its record.
type held struct {
	block
	alloc int32
}

// free ends the block at the event's address; it reports false when there is
// none.
func (p *Pool) free(e *event.Event) bool {
	k, ok := p.live.take(e.Address)
	if ok {
		p.end(k, e.Time)
	}
	return ok
}

func (p *Pool) end(k uint64, at int64) {
	h := p.blocks.at(int(k))
	p.vacant = append(p.vacant, int32(k))
	p.lives.finish(int(h.alloc), uint32(p.inUse.n+1))
	if h.size >= p.lasting.least {
		p.list(int(h.alloc))
	}
	p.change(&h.block, -1, at, int(h.alloc), didFree)
}

// change counts a block in (sign 1) or out, and makes it a point. It is account
// and numbers.push in one, for it is what happens most.
func (p *Pool) change(b *block, sign, at int64, what, did int) {
	s := &p.inUse
	p.mark()
	size := sign * b.size
	p.now.InUse += size
	p.now.Waste += sign * b.waste
	p.now.ByCategory[b.category&uint8(numCats-1)] += size
	if b.placed > 0 {
		p.tile(b, sign)
	}
	if s.k == s.stride {
		s.more()
	}
	o, k := s.open, s.k
	s.k++
	s.n++
	_ = o[k+extraCol*s.stride]
	o[k+timeCol*s.stride], o[k+valueCol*s.stride], o[k+extraCol*s.stride] = at, p.now.InUse, int64(what)<<didBits|int64(did)
	p.now.Time = at
	if s.n&(tilePoints-1) == 0 {
		p.tiles.close()
	}
}

// tile counts a block in or out where it lies in the layout.
func (p *Pool) tile(b *block, sign int64) {
	if end := b.off + b.placed; end > p.used {
		p.used = end
		p.tiles.cover(end)
	}
	p.tiles.add(b.off, b.placed, int(b.category), sign)
}

// forward ends the block at the event's address and begins another in its
// place, in one point, so that the bytes in use show no dip.
func (p *Pool) forward(e *event.Event) bool {
	k, ok := p.live.take(e.Address)
	if !ok {
		return false
	}
	h := *p.blocks.at(int(k))
	b, i := h.block, int(h.alloc)
	if e.Requested > 0 {
		b.waste = b.size - e.Requested
	}
	n := *e
	n.Stream = event.StreamID(p.allocs.at(kindCol, i) >> 8)
	p.mark()
	p.discount(&h.block)
	j := p.addAlloc(&n, int32(p.allocs.at(regionCol, i)), &b, true)
	*p.blocks.at(int(k)) = held{b, int32(j)} // in the place of the one it takes over
	p.live.put(e.Address, k)
	p.lives.finish(i, uint32(p.inUse.n+1))
	if b.size >= p.lasting.least {
		p.list(i)
	}
	f := p.forwards.n
	r := p.forwards.add()
	p.forwards.open[r], p.forwards.open[p.forwards.stride+r] = int64(i), int64(j)
	p.change(&b, 1, e.Time, f, didForward)
	return true
}

// mark records the state before every markEvery-th point.
func (p *Pool) mark() {
	if p.inUse.n>>markBits == p.marks.n {
		p.putMark()
	}
}

func (p *Pool) putMark() {
	k := p.marks.add()
	r, s := p.marks.open[k:], p.marks.stride
	for c := range p.now.ByCategory {
		r[c*s] = p.now.ByCategory[c]
	}
	r[event.NumCategories*s] = p.now.Waste
}

// discount takes a block away, as a part of a point.
func (p *Pool) discount(b *block) {
	p.now.InUse -= b.size
	p.now.Waste -= b.waste
	p.now.ByCategory[b.category] -= b.size
	if b.placed > 0 {
		p.tile(b, -1)
	}
}

// Held reports whether any block of the pool ever had a category.
func (p *Pool) Held(c event.Category) bool { return p.seen>>(c&31)&1 != 0 }

// bytes is the memory that the pool holds.
func (p *Pool) bytes() int64 {
	n := p.inUse.bytes() + p.marks.bytes() + p.allocs.bytes() + p.forwards.bytes() + p.reserved.bytes() +
		p.lives.bytes(4) + p.live.bytes() + p.blocks.bytes(48) + 4*int64(cap(p.vacant)) + p.tiles.bytes()
	for i := range p.regions {
		if t := p.regions[i].turns; t != nil {
			n += t.bytes()
		}
	}
	return n + p.lasting.bytes() + p.gone.bytes() + int64(cap(p.regions))*72
}
