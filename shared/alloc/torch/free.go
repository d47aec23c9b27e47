package torch

import "fmt"

// Free implements alloc.Allocator.
func (a *Allocator) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	slot, h := a.find(addr)
	if h == none {
		return fmt.Errorf("allocator %s: %#x was asked to be freed, but no block in use starts there", a.o.Name, addr)
	}
	a.index.removeAt(slot)
	b := &a.blocks[h]
	k := a.arenas[b.arena].pool.kind
	b.flags &^= inUse
	a.stats.takenBack(k, b.size)
	if a.tracer != nil {
		a.trace(ActionFreeRequested, addr, b.requested, a.arenas[b.arena].stream)
	}
	if b.size >= a.split {
		a.stats.oversizeAllocations.down(1)
	}
	switch {
	case b.uses == 0:
		a.release(h)
	case len(a.captures) > 0:
		a.deferred = append(a.deferred, h)
	default:
		a.insertEvents(h)
	}
	return nil
}

// release makes a block free that nobody reads any more: it joins its free
// neighbours and goes into the free set.
func (a *Allocator) release(h uint32) {
	b := &a.blocks[h]
	ar := a.arenas[b.arena]
	size, requested := b.size, b.requested
	if a.tracer != nil {
		a.trace(ActionFreeCompleted, b.addr, requested, ar.stream)
	}
	// Net change of what is split and idle. Of a neighbour that is swallowed the
	// entry in the free set becomes that of the whole.
	var blocks, bytes int64
	set := &ar.free
	prev, next := a.idle(b.prev), a.idle(b.next)
	switch {
	case prev != none:
		if next != none {
			n := &a.blocks[next]
			blocks--
			bytes -= n.size
			set.remove(n.size, n.addr)
			a.swallow(h, next)
		}
		p := &a.blocks[prev]
		blocks--
		bytes -= p.size
		at := set.locate(p.size, p.addr)
		a.swallow(h, prev)
		set.grow(at, b.size, b.addr, h)
	case next != none:
		n := &a.blocks[next]
		blocks--
		bytes -= n.size
		at := set.locate(n.size, n.addr)
		a.swallow(h, next)
		set.grow(at, b.size, b.addr, h)
	default:
		set.insert(b.size, b.addr, h)
	}
	b.born = ar.pool.calls
	k := ar.pool.kind
	if !b.is(expandable) {
		if b.split() {
			blocks++
			bytes += b.size
		}
		a.stats.change(k, inactiveSplit, blocks)
		a.stats.change(k, inactiveSplitBytes, bytes)
	}
	a.stats.down(k, active, 1)
	a.stats.down(k, activeBytes, size)
	a.stats.down(k, requestedBytes, requested)
}
