package reference

// expand maps pages behind the lowest place where r bytes fit.
func (a *Allocator) expand(r int64, stream uint64, p *Pool) *Block {
	b := a.findPlace(r, stream, p)
	if b == nil || !b.Mapped && !a.mapPages(b, min(b.Size, r)) {
		return nil
	}
	for b.Size < r {
		next := b.next
		if !a.mapPages(next, min(next.Size, r-b.Size)) {
			return nil
		}
		b = next
	}
	a.dropFree(b)
	return b
}

func (a *Allocator) findPlace(r int64, stream uint64, p *Pool) *Block {
	for _, b := range p.dark {
		if b.Stream != stream {
			continue
		}
		if b.prev != nil && b.prev.idle() {
			b = b.prev
		}
		sum := int64(0)
		for x := b; x != nil && x.idle(); x = x.next {
			sum += x.Size
		}
		if sum >= r {
			return b
		}
	}
	page := int64(2 * mib)
	if !p.small {
		page = a.O.LargeSegment
	}
	size := up(a.O.Total+a.O.Total/8, page)
	addr, ok := a.driver.Reserve(size)
	if !ok {
		return nil
	}
	b := &Block{Addr: addr, Size: size, Stream: stream, pool: p, place: &place{addr, size, page}}
	a.heads = append(a.heads, b)
	a.addDark(b)
	return b
}

func (a *Allocator) mapPages(b *Block, size int64) bool {
	size = up(size, b.place.page)
	if size > b.Size || !a.driver.Map(b.Addr, size) {
		return false
	}
	a.dropDark(b)
	a.Reserved += size
	a.cut(b, size)
	b.Mapped = true
	a.join(b)
	a.addFree(b)
	return true
}

// cut leaves b with size bytes and makes the rest a block like it.
func (a *Allocator) cut(b *Block, size int64) {
	if size == b.Size {
		return
	}
	rest := &Block{
		Addr: b.Addr + uint64(size), Size: b.Size - size, Stream: b.Stream, Mapped: b.Mapped,
		prev: b, next: b.next, pool: b.pool, place: b.place,
	}
	if rest.next != nil {
		rest.next.prev = rest
	}
	b.next, b.Size = rest, size
	if rest.Mapped {
		a.addFree(rest)
	} else {
		a.addDark(rest)
	}
}

func (a *Allocator) unmapPages(b *Block) {
	base, page := b.place.addr, b.place.page
	from := base + uint64(up(int64(b.Addr-base), page))
	to := base + uint64((int64(b.Addr-base)+b.Size)/page*page)
	if from >= to {
		return
	}
	a.dropFree(b)
	if before := int64(from - b.Addr); before > 0 {
		low := &Block{Addr: b.Addr, Size: before, Stream: b.Stream, Mapped: true, prev: b.prev, next: b, pool: b.pool, place: b.place}
		if low.prev != nil {
			low.prev.next = low
		} else {
			a.replaceHead(b, low)
		}
		b.prev, b.Addr, b.Size = low, from, b.Size-before
		a.addFree(low)
	}
	a.cut(b, int64(to-from))
	b.Mapped = false
	a.driver.Unmap(b.Addr, b.Size)
	a.Reserved -= b.Size
	a.join(b)
	a.addDark(b)
	if !b.split() {
		a.dropDark(b)
		a.driver.Unreserve(b.Addr, b.Size)
		a.dropHead(b)
	}
}
