package torch

import "fmt"

// Check looks at everything the allocator knows and returns the first
// contradiction. It is for tests: it costs as much as a snapshot.
func (a *Allocator) Check() error {
	c := checker{a: a}
	for h := range a.blocks {
		b := &a.blocks[h]
		if !b.is(live) {
			continue
		}
		if err := c.block(uint32(h), b); err != nil {
			return err
		}
	}
	return c.totals()
}

type checker struct {
	a                                            *Allocator
	used, free, unmapped                         int
	mapped, allocated, active, requested, events int64
	splitBytes, splits, segments                 int64
}

func (c *checker) block(h uint32, b *block) error {
	a := c.a
	ar := a.arenas[b.arena]
	switch {
	case b.size <= 0 || b.size%Granule != 0:
		return fmt.Errorf("block %#x has %d bytes", b.addr, b.size)
	case b.is(inUse) && !b.is(mapped):
		return fmt.Errorf("block %#x is in use without memory", b.addr)
	case b.is(inUse) && (b.requested > b.size || b.events > 0):
		return fmt.Errorf("block %#x of %d bytes holds %d, with %d events", b.addr, b.size, b.requested, b.events)
	case !b.is(mapped) && !b.is(expandable):
		return fmt.Errorf("block %#x has no memory", b.addr)
	}
	if n := b.next; n != none {
		x := &a.blocks[n]
		switch {
		case !x.is(live) || x.prev != h || x.addr != b.end() || x.arena != b.arena || x.place != b.place:
			return fmt.Errorf("block %#x does not follow on %#x of %d bytes", x.addr, b.addr, b.size)
		case b.mergeable() && x.mergeable() && b.is(mapped) == x.is(mapped):
			return fmt.Errorf("blocks %#x and %#x lie side by side and could be one", b.addr, x.addr)
		}
	} else if b.is(expandable) {
		if p := a.places[b.place]; b.end() != p.addr+uint64(p.size) {
			return fmt.Errorf("reservation %#x ends at %#x", p.addr, b.end())
		}
	}
	if p := b.prev; p != none && a.blocks[p].next != h {
		return fmt.Errorf("block %#x has the wrong predecessor", b.addr)
	}
	if b.prev == none && !b.is(expandable) {
		c.segments++
	}
	c.count(h, b)
	return c.listed(h, b, ar)
}

func (c *checker) count(_ uint32, b *block) {
	if b.is(mapped) {
		c.mapped += b.size
	}
	c.events += int64(b.events)
	if b.is(inUse) {
		c.used++
		c.allocated += b.size
	}
	if !b.mergeable() {
		c.active += b.size
		c.requested += b.requested
	} else if !b.is(expandable) && b.split() {
		c.splits++
		c.splitBytes += b.size
	}
}

// listed: a block is where its state says, and nowhere else.
func (c *checker) listed(h uint32, b *block, ar *arena) error {
	inFree := false
	if x, _ := ar.free.first(b.size, b.addr); x == h {
		inFree = true
	}
	i := ar.unmappedAt(c.a, b.addr)
	inUnmapped := i < len(ar.unmapped) && ar.unmapped[i] == h
	_, at := c.a.find(b.addr)
	switch {
	case inFree != (b.is(mapped) && b.mergeable()):
		return fmt.Errorf("block %#x: among the free ones is %v", b.addr, inFree)
	case inUnmapped == b.is(mapped):
		return fmt.Errorf("block %#x: among the unmapped ones is %v", b.addr, inUnmapped)
	case (at == h) != b.is(inUse):
		return fmt.Errorf("block %#x: in the index is %v", b.addr, at == h)
	}
	if inFree {
		c.free++
	}
	if inUnmapped {
		c.unmapped++
	}
	return nil
}

func (c *checker) totals() error {
	a := c.a
	free, unmapped := 0, 0
	for _, ar := range a.arenas {
		unmapped += len(ar.unmapped)
		if err := ar.checkOrder(a); err != nil {
			return err
		}
		free += ar.free.count
	}
	t := &a.stats.counters[all]
	for _, x := range []struct {
		name      string
		got, want int64
	}{
		{"blocks in the index", int64(a.index.used), int64(c.used)},
		{"free blocks in sets", int64(free), int64(c.free)},
		{"unmapped blocks in lists", int64(unmapped), int64(c.unmapped)},
		{"events", int64(a.pending), c.events},
		{"reserved", a.reserved, c.mapped},
		{"reserved_bytes", t[reservedBytes].current, c.mapped},
		{"segments", t[segment].current, c.segments},
		{"allocation", t[allocations].current, int64(c.used)},
		{"allocated_bytes", t[allocatedBytes].current, c.allocated},
		{"active_bytes", t[activeBytes].current, c.active},
		{"requested_bytes", t[requestedBytes].current, c.requested},
		{"inactive_split", t[inactiveSplit].current, c.splits},
		{"inactive_split_bytes", t[inactiveSplitBytes].current, c.splitBytes},
	} {
		if x.got != x.want {
			return fmt.Errorf("%s: %d are kept, %d are there", x.name, x.got, x.want)
		}
	}
	for g := range t {
		if s, l := a.stats.counters[small][g].current, a.stats.counters[large][g].current; s+l != t[g].current || s < 0 || l < 0 {
			return fmt.Errorf("figure %d: small %d, large %d, all %d", g, s, l, t[g].current)
		}
	}
	return nil
}

// checkOrder: the free set is ascending and counts right.
func (ar *arena) checkOrder(a *Allocator) error {
	n, bytes := 0, int64(0)
	var last *block
	var err error
	ar.free.each(func(h uint32) {
		b := &a.blocks[h]
		if last != nil && (last.size > b.size || last.size == b.size && last.addr >= b.addr) {
			err = fmt.Errorf("free block %#x is out of order", b.addr)
		}
		last = b
		n++
		bytes += b.size
	})
	if err == nil && (n != ar.free.count || bytes != ar.free.bytes || (n > 0) != (ar.free.largest() > 0)) {
		err = fmt.Errorf("%d free blocks of %d bytes, the set has %d of %d", n, bytes, ar.free.count, ar.free.bytes)
	}
	return err
}
