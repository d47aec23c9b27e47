package reference

// releaseOversize gives back oversize blocks that stand in the way of r bytes.
func (a *Allocator) releaseOversize(r int64, stream uint64, p *Pool) bool {
	key := max(r, a.O.MaxSplit)
	var below []*Block // oversize ones smaller than key, ascending
	for _, b := range p.free {
		switch {
		case b.Stream != stream:
		case b.Size < key:
			if b.Size >= a.O.MaxSplit {
				below = append(below, b)
			}
		case b.place == nil:
			if b.split() {
				return false
			}
			a.give(b)
			return true
		default:
			return a.releaseDown(below, key)
		}
	}
	return a.releaseDown(below, key)
}

func (a *Allocator) releaseDown(list []*Block, key int64) bool {
	sum := int64(0)
	for i := len(list) - 1; i >= 0 && sum < key; i-- {
		if b := list[i]; b.place == nil && !b.split() {
			sum += b.Size
			a.give(b)
		}
	}
	return sum >= key
}

// ReleaseAll gives back what is idle as a whole.
func (a *Allocator) ReleaseAll() {
	for _, e := range a.events {
		a.O.Streams.Wait(e.stream, e.mark)
		a.done(e)
	}
	a.events = nil
	a.releasePool(&a.pairs[ID{}].Large)
	a.releasePool(&a.pairs[ID{}].Small)
	var kept []ID
	for _, id := range a.released {
		p := a.pairs[id]
		a.releasePool(&p.Small)
		a.releasePool(&p.Large)
		if a.heldBy(p) > 0 {
			kept = append(kept, id)
			continue
		}
		delete(a.pairs, id)
		for i, o := range a.order {
			if o == id {
				a.order = append(a.order[:i:i], a.order[i+1:]...)
			}
		}
	}
	a.released = kept
}

func (a *Allocator) heldBy(p *Pair) (bytes int64) {
	for _, h := range a.heads {
		for b := h; b != nil; b = b.next {
			if b.Mapped && (b.pool == &p.Small || b.pool == &p.Large) {
				bytes += b.Size
			}
		}
	}
	return bytes
}

func (a *Allocator) releasePool(p *Pool) {
	list := append([]*Block(nil), p.free...)
	for _, b := range list {
		if b.place == nil && !b.split() {
			a.give(b)
		}
	}
	for _, b := range list {
		if b.place != nil {
			a.unmapPages(b)
		}
	}
}

// give returns an unsplit segment to the driver.
func (a *Allocator) give(b *Block) {
	a.dropFree(b)
	a.driver.Give(b.Addr, b.Size)
	a.Reserved -= b.Size
	a.dropHead(b)
}

func (a *Allocator) dropHead(b *Block) {
	for i, h := range a.heads {
		if h == b {
			a.heads = append(a.heads[:i:i], a.heads[i+1:]...)
			return
		}
	}
}

// collect gives back large segments that idled longer than the average.
func (a *Allocator) collect() {
	threshold := int64(a.O.Threshold * float64(a.O.Limit))
	p := &a.pairs[ID{}].Large
	missing := a.Reserved - threshold
	if missing <= 0 {
		return
	}
	ages, count := 0, 0
	for _, b := range p.free {
		if !b.split() {
			ages += p.calls - b.born
			count++
		}
	}
	for freed := true; freed && missing > 0 && count > 0; {
		freed = false
		average := float64(ages) / float64(count)
		for _, b := range append([]*Block(nil), p.free...) {
			if age := p.calls - b.born; b.place == nil && !b.split() && float64(age) >= average {
				freed = true
				missing -= b.Size
				ages -= age
				count--
				a.give(b)
			}
		}
	}
}
