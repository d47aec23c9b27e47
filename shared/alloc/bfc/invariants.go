package bfc

import "fmt"

// Check looks at everything the allocator knows and returns the first
// contradiction. It is for tests: it costs as much as a dump.
func (a *Allocator) Check() error {
	var pool, inUse uint64
	live, free, binned, gaps := 0, 0, 0, 0
	for i, r := range a.regions {
		if i > 0 && a.regions[i-1].end() > r.addr {
			return fmt.Errorf("region %x begins before the one below ends", r.addr)
		}
		pool += r.size
		at, prev, stamped := r.addr, none, false
		for h := r.first; h != none; h = a.chunks[h].next {
			c := &a.chunks[h]
			if err := a.checkChunk(h, at, prev); err != nil {
				return err
			}
			live++
			if !c.inUse() {
				free++
			}
			switch {
			case c.inUse():
				inUse += c.size
			case c.tag == tagGap:
				gaps++
			default:
				binned++
			}
			if prev != none && a.counter == nil && !stamped && a.frontier == 0 && c.freedAt == 0 &&
				!c.inUse() && !a.chunks[prev].inUse() {
				return fmt.Errorf("free chunks %x and %x lie side by side", a.chunks[prev].addr, c.addr)
			}
			stamped = c.freedAt > 0
			at, prev = at+c.size, h
		}
		if at != r.end() {
			return fmt.Errorf("the chunks of region %x end at %x, not at %x", r.addr, at, r.end())
		}
	}
	switch {
	case pool != a.pool:
		return fmt.Errorf("regions sum to %d, the pool is %d", pool, a.pool)
	case int64(inUse) != a.inUse:
		return fmt.Errorf("chunks in use sum to %d, in use is %d", inUse, a.inUse)
	case !a.indexAll && a.indexed() != live-free || a.indexAll && a.indexed() != live:
		return fmt.Errorf("%d chunks, %d free, %d in the index", live, free, a.indexed())
	case gaps > 1 || (gaps == 1) != (a.gap != none):
		return fmt.Errorf("%d central gaps", gaps)
	}
	return a.checkSets(binned)
}

func (a *Allocator) checkChunk(h uint32, at uint64, prev uint32) error {
	c := &a.chunks[h]
	switch {
	case c.addr != at:
		return fmt.Errorf("chunk %d lies at %x, not at %x", h, c.addr, at)
	case c.prev != prev:
		return fmt.Errorf("chunk %x has the wrong predecessor", c.addr)
	case c.size == 0 || c.size%MinAllocation != 0:
		return fmt.Errorf("chunk %x has %d bytes", c.addr, c.size)
	case a.at(c.addr) != h && (a.indexAll || c.inUse()):
		return fmt.Errorf("chunk %x is not found by its address", c.addr)
	case c.binned() == (c.inUse() || c.tag == tagGap):
		return fmt.Errorf("chunk %x: binned is %v", c.addr, c.binned())
	case c.inUse() && c.requested > c.size:
		return fmt.Errorf("block %x has %d bytes for a request of %d", c.addr, c.size, c.requested)
	}
	return nil
}

// checkSets: the sets hold the binned chunks, in order, and nothing else.
func (a *Allocator) checkSets(binned int) error {
	found, err := 0, error(nil)
	for t := range a.sets {
		s := &a.sets[t]
		last := entry{}
		s.each(a.chunks, 0, func(h uint32) bool {
			c := &a.chunks[h]
			found++
			if !c.binned() || c.inUse() || c.tag != tag(t) {
				err = fmt.Errorf("chunk %x does not belong into set %d", c.addr, t)
			}
			if found > 1 && !last.less(c.size, c.addr^s.flip) && last.size != 0 {
				err = fmt.Errorf("chunk %x is out of order in set %d", c.addr, t)
			}
			last = entry{c.size, c.addr ^ s.flip, h}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if found != binned {
		return fmt.Errorf("%d free chunks, %d in the sets", binned, found)
	}
	return nil
}

// indexed counts the chunks in the index.
func (a *Allocator) indexed() int {
	n := 0
	for _, h := range a.index.slots {
		for ; h != none; h = a.chunks[h].chain {
			n++
		}
	}
	return n
}
