package async

import (
	"tideline/shared/alloc/stream"
)

// pick is free memory chosen for a request: a run of whole pages, or a shared
// page that is free for the present stream although not for all.
type pick struct {
	run  uint32
	page uint32 // above 0: a shared page instead of a run
	wait bool   // its streams must be waited for
}

// oneRun is the lowest run of n pages at a level, or none.
func (p *Pool) oneRun(n int64, l level) uint32 {
	size := n * p.o.Page
	best := none
	take := func(h uint32) {
		if h != none && (best == none || p.table.Chunks[h].Addr < p.table.Chunks[best].Addr) {
			best = h
		}
	}
	if l == own {
		take(p.lists[anyone].runs.First(size))
		take(p.lists[p.current].runs.First(size))
		return best
	}
	for i, x := range p.lists {
		if i == anyone || uint32(i) == p.current || x.runs.Largest() < size {
			continue
		}
		x.runs.Each(func(h uint32) bool {
			if c := &p.table.Chunks[h]; c.Size < size || !p.usable(c, l) {
				return true
			}
			take(h)
			return false
		})
	}
	return best
}

// gather picks up to n pages that become usable at a level, those of a list in
// the order of their addresses, and returns how many.
func (p *Pool) gather(n int64, l level) (got int64) {
	for i, x := range p.lists {
		mine := uint32(i) == p.current || i == anyone
		if mine != (l == own) {
			continue
		}
		x.runs.Each(func(h uint32) bool {
			c := &p.table.Chunks[h]
			// What was ready has been picked a level before.
			if p.usable(c, l) && (l != internal || !p.allowed(ready) || !p.usable(c, ready)) {
				p.picks = append(p.picks, pick{run: h, wait: l == internal})
				got += c.Size / p.o.Page
			}
			return got < n
		})
		if got >= n {
			return min(got, n)
		}
	}
	return min(n, got+p.gatherMixed(n-got, l))
}

// gatherMixed picks shared pages whose parts were freed on several streams.
func (p *Pool) gatherMixed(n int64, l level) (got int64) {
	p.tidyMixed()
	for _, x := range p.mixed {
		if got < n && p.pageUsable(x, l) && !p.picked(x) {
			p.picks = append(p.picks, pick{page: x, wait: l == internal})
			got++
		}
	}
	return got
}

// note remembers a page as free in parts.
func (p *Pool) note(x uint32) {
	if p.pages[x].noted {
		return
	}
	if len(p.mixed) > 2*len(p.pages) {
		p.tidyMixed()
	}
	p.pages[x].noted = true
	p.mixed = append(p.mixed, x)
}

// tidyMixed drops the pages that are free in parts no more.
func (p *Pool) tidyMixed() {
	for _, x := range p.mixed {
		p.pages[x].noted = false
	}
	kept := p.mixed[:0]
	for _, x := range p.mixed {
		if !p.pages[x].noted && p.isMixed(x) {
			p.pages[x].noted = true
			kept = append(kept, x)
		}
	}
	p.mixed = kept
}

func (p *Pool) picked(page uint32) bool {
	for _, k := range p.picks {
		if k.page == page {
			return true
		}
	}
	return false
}

// isMixed reports whether a page noted as free in parts still is.
func (p *Pool) isMixed(x uint32) bool {
	if p.pages[x].addr == 0 || p.pages[x].live > 0 {
		return false
	}
	h := p.table.At(p.pages[x].addr)
	return h != none && p.table.Chunks[h].Flags == x
}

func (p *Pool) pageUsable(x uint32, l level) bool {
	for h := p.table.At(p.pages[x].addr); h != none; h = p.table.Chunks[h].Next {
		if !p.usable(&p.table.Chunks[h], l) {
			return false
		}
	}
	return true
}

// commit makes one chunk, in no list, of n pages: of what was picked and of
// missing new ones. It returns none, and changes nothing, when the driver or
// the limit refuses those.
func (p *Pool) commit(n, missing int64) uint32 {
	if missing == 0 && len(p.picks) == 1 {
		k := p.picks[0]
		p.waitFor(k)
		if k.page > 0 {
			return p.dissolve(k.page)
		}
		return p.cutRun(k.run, n)
	}
	addr, ok := p.addresses(n * p.o.Page)
	if !ok {
		return none
	}
	if missing > 0 && !p.grow(addr+uint64((n-missing)*p.o.Page), missing*p.o.Page) {
		return none
	}
	p.remap(addr, n-missing)
	p.o.Observer.RegionTaken(addr, n*p.o.Page, n*p.o.Page)
	p.stats.PeakPool = max(p.stats.PeakPool, p.stats.Pool)
	h := p.table.Add(addr, n*p.o.Page)
	p.table.Chunks[h].Owner = p.current
	if len(p.picks) == 0 {
		p.table.Chunks[h].Owner = anyone // nobody ever used it
	} else if p.o.Order != nil {
		p.table.Chunks[h].Mark = p.o.Order.Mark(p.last)
	}
	return h
}

// grow maps new memory.
func (p *Pool) grow(addr uint64, bytes int64) bool {
	if p.o.Limit > 0 && bytes > p.o.Limit-p.stats.Pool || !p.vm.Map(addr, bytes) {
		p.o.Observer.RegionRefused(bytes)
		return false
	}
	p.stats.Pool += bytes
	return true
}

// remap moves the picked pages, n of them, to addr.
func (p *Pool) remap(addr uint64, n int64) {
	if n == 0 {
		return
	}
	left := n
	for _, k := range p.picks {
		p.waitFor(k)
		h := k.run
		if k.page > 0 {
			h = p.dissolve(k.page)
		} else {
			h = p.cutRun(h, min(left, p.table.Chunks[h].Size/p.o.Page))
		}
		c := p.table.Chunks[h]
		left -= c.Size / p.o.Page
		p.table.Remove(h)
		p.vm.Unmap(c.Addr, c.Size)
		p.o.Observer.RegionGiven(c.Addr, c.Size)
	}
	p.remaps += n
	p.vm.Map(addr, n*p.o.Page) // what was just unmapped: it is there
}

// waitFor makes the present stream wait for those that freed a pick.
func (p *Pool) waitFor(k pick) {
	if !k.wait {
		return
	}
	h, p1 := k.run, k.page
	if p1 > 0 {
		h = p.table.At(p.pages[p1].addr)
	}
	for h != none {
		c := &p.table.Chunks[h]
		if on := p.lists[c.Owner].stream; c.Owner != anyone && c.Owner != p.current && !p.o.Order.Behind(p.last, on, c.Mark) {
			p.wait(on)
		}
		if h = c.Next; p1 == 0 {
			break
		}
	}
}

// cutRun takes n pages off the front of a free run, out of its list.
func (p *Pool) cutRun(h uint32, n int64) uint32 {
	c := &p.table.Chunks[h]
	set, addr := &p.lists[c.Owner].runs, c.Addr
	if c.Size == n*p.o.Page {
		set.Remove(addr)
		return h
	}
	rest := p.table.Split(h, n*p.o.Page)
	r := &p.table.Chunks[rest]
	set.Change(addr, r.Addr, r.Size, rest)
	return h
}

// dissolve makes a free shared page one chunk again, in no list, which belongs
// to the present stream: it is behind all who used a part.
func (p *Pool) dissolve(x uint32) uint32 {
	h := p.table.At(p.pages[x].addr)
	for i := h; i != none; i = p.table.Chunks[i].Next {
		c := &p.table.Chunks[i]
		p.lists[c.Owner].holes.Remove(c.Addr)
	}
	for p.table.Chunks[h].Next != none {
		p.table.Merge(h, p.table.Chunks[h].Next)
	}
	p.unshare(h)
	c := &p.table.Chunks[h]
	c.Owner = p.current
	if p.o.Order != nil {
		c.Mark = p.o.Order.Mark(p.last)
	}
	return h
}

func (p *Pool) unshare(h uint32) {
	c := &p.table.Chunks[h]
	p.pages[c.Flags] = sharedPage{}
	p.spare = append(p.spare, c.Flags)
	c.Flags = 0
}

// addresses sets bytes of address space aside.
func (p *Pool) addresses(bytes int64) (addr uint64, ok bool) {
	const atOnce = 1 << 40
	if n := len(p.places); n == 0 || p.places[n-1].size-p.places[n-1].used < bytes {
		size := max(atOnce, bytes)
		addr, ok := p.vm.Reserve(size)
		if !ok {
			return 0, false
		}
		p.places = append(p.places, place{addr: addr, size: size})
	}
	x := &p.places[len(p.places)-1]
	addr = x.addr + uint64(x.used)
	x.used += bytes
	return addr, true
}

// releaseRun puts free whole pages into their list, merged with what was freed
// beside them on the same stream.
func (p *Pool) releaseRun(h uint32) {
	c := &p.table.Chunks[h]
	set := &p.lists[c.Owner].runs
	next, prev := p.mergeable(c.Next, c.Owner), p.mergeable(c.Prev, c.Owner)
	if next != none {
		set.Remove(p.table.Chunks[next].Addr)
		p.table.Merge(h, next)
	}
	if prev != none {
		p.table.Merge(prev, h)
		b := &p.table.Chunks[prev]
		set.Change(b.Addr, b.Addr, b.Size, prev)
		return
	}
	set.Insert(c.Addr, c.Size, h)
}

func (p *Pool) mergeable(h, owner uint32) uint32 {
	if h == none {
		return none
	}
	if c := &p.table.Chunks[h]; c.InUse() || c.Owner != owner {
		return none
	}
	return h
}

// releaseHole puts a free part of a shared page into its list, merged with its
// neighbours: those of the same stream, and those that were anyone's, which
// then wait with the rest. A page that is free as a whole is shared no more.
func (p *Pool) releaseHole(h uint32) {
	owner := p.table.Chunks[h].Owner
	for {
		c := &p.table.Chunks[h]
		if next := p.beside(c.Next, owner); next != none {
			p.absorb(h, next, next)
		} else if prev := p.beside(c.Prev, owner); prev != none {
			p.absorb(prev, h, prev)
			h = prev
			p.table.Chunks[h].Owner = owner
		} else {
			break
		}
	}
	c := &p.table.Chunks[h]
	if c.Size == p.o.Page {
		p.unshare(h)
		p.releaseRun(h)
		return
	}
	if p.pages[c.Flags].live == 0 {
		p.note(c.Flags)
	}
	p.lists[owner].holes.Insert(c.Addr, c.Size, h)
}

// absorb merges two chunks, the listed one of which leaves its list.
func (p *Pool) absorb(left, right, listed uint32) {
	c := &p.table.Chunks[listed]
	p.lists[c.Owner].holes.Remove(c.Addr)
	p.table.Merge(left, right)
}

func (p *Pool) beside(h, owner uint32) uint32 {
	if h == none {
		return none
	}
	if c := &p.table.Chunks[h]; c.InUse() || c.Owner != owner && c.Owner != anyone {
		return none
	}
	return h
}

// Synchronize says that the host waited for the device: what was freed is
// anyone's, and what the threshold does not hold goes back.
func (p *Pool) Synchronize() {
	if p.o.Order != nil {
		p.o.Order.Synchronize()
	}
	for i := range p.lists {
		if i != anyone {
			p.settle(uint32(i))
		}
	}
	p.trim()
}

// SynchronizeStream says that the host waited for one stream.
func (p *Pool) SynchronizeStream(s stream.ID) {
	if p.o.Order != nil {
		p.o.Order.Join(s)
	}
	for i, l := range p.lists {
		if i != anyone && l.stream == s {
			p.settle(uint32(i))
		}
	}
	p.trim()
}

// settle makes all that a stream freed anyone's.
func (p *Pool) settle(list uint32) {
	l := p.lists[list]
	p.scratch = p.scratch[:0]
	l.runs.Each(func(h uint32) bool {
		p.scratch = append(p.scratch, h)
		return true
	})
	for _, h := range p.scratch {
		c := &p.table.Chunks[h]
		l.runs.Remove(c.Addr)
		c.Owner, c.Mark = anyone, 0
		p.releaseRun(h)
	}
	p.scratch = p.scratch[:0]
	l.holes.Each(func(h uint32) bool {
		p.scratch = append(p.scratch, h)
		return true
	})
	for _, h := range p.scratch {
		c := &p.table.Chunks[h]
		l.holes.Remove(c.Addr)
		c.Owner, c.Mark = anyone, 0
		p.releaseHole(h)
	}
}

// idle is the bytes of whole pages that nobody uses.
func (p *Pool) idle() int64 {
	var n int64
	for _, l := range p.lists {
		n += l.runs.Bytes()
	}
	return n
}

// trim gives whole pages back down to the threshold, the highest first.
func (p *Pool) trim() {
	set := &p.lists[anyone].runs
	for set.Len() > 0 {
		excess := p.idle() - p.o.Threshold
		if excess <= 0 {
			return
		}
		h := set.Last()
		c := &p.table.Chunks[h]
		give := min(c.Size, (excess+p.o.Page-1)/p.o.Page*p.o.Page)
		if keep := c.Size - give; keep > 0 {
			addr := c.Addr
			rest := p.table.Split(h, keep)
			set.Change(addr, addr, keep, h)
			h = rest
		} else {
			set.Remove(c.Addr)
		}
		p.unmap(h)
	}
}

func (p *Pool) unmap(h uint32) {
	c := p.table.Chunks[h]
	p.table.Remove(h)
	p.vm.Unmap(c.Addr, c.Size)
	p.stats.Pool -= c.Size
	p.o.Observer.RegionGiven(c.Addr, c.Size)
}

// stall waits for the device on behalf of a request that would fail.
func (p *Pool) stall() {
	p.stalls++
	if p.o.OnStall != nil {
		p.o.OnStall()
	}
	threshold := p.o.Threshold
	p.o.Threshold = KeepAll // the request is about to use it
	p.Synchronize()
	p.o.Threshold = threshold
}
