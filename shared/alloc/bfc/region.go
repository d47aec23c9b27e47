package bfc

import (
	"math"
	"slices"

	"tideline/shared/alloc"
)

// extend takes a new region that can hold w.size bytes from the driver.
func (a *Allocator) extend(w *want) bool {
	if a.o.Partition.On && len(a.regions) > 0 {
		// A second region would be a second gap.
		return false
	}
	// Unsigned on purpose: a driver that gave more than asked for can lift the
	// pool above the limit, and upstream then sees room without end.
	available := (a.limit - a.pool) &^ (MinAllocation - 1)
	if w.size > available {
		return false
	}
	grown := false
	for w.size > a.nextRegion {
		a.double()
		grown = true
	}
	ask := min(a.nextRegion, available)
	addr, received, ok := a.take(w.ask, ask)
	for !ok {
		if ask = a.backpedal(ask); ask < w.size {
			return false
		}
		addr, received, ok = a.take(w.ask, ask)
	}
	if !grown {
		a.double()
	}
	a.pool += received
	a.peakPool = max(a.peakPool, a.pool)
	a.addRegion(addr, received)
	return true
}

// double doubles the next region; it stays put at the last power of two.
func (a *Allocator) double() {
	switch {
	case a.nextRegion == 0:
		a.nextRegion = MinAllocation
	case a.nextRegion > math.MaxUint64/2:
		a.nextRegion = math.MaxUint64 &^ (MinAllocation - 1)
	default:
		a.nextRegion *= 2
	}
}

func (a *Allocator) take(align int64, bytes uint64) (addr, received uint64, ok bool) {
	at, got, ok := a.sub.Take(align, int64(bytes))
	if ok && (got < int64(bytes) || at&(MinAllocation-1) != 0) {
		// Upstream aborts on a region that starts off a granule.
		a.sub.Give(at, got)
		ok = false
	}
	if !ok {
		a.obs.RegionRefused(int64(bytes))
		return 0, 0, false
	}
	a.obs.RegionTaken(at, int64(bytes), got)
	return at, uint64(got), true
}

// backpedal is what to ask for after ask was refused: nine tenths, computed in
// single precision as upstream does, which moves large sizes by whole granules.
func (a *Allocator) backpedal(ask uint64) uint64 {
	less := round(uint64(float32(ask) * float32(0.9)))
	if less < ask {
		return less
	}
	if a.o.Profile == Current && ask >= MinAllocation {
		return ask - MinAllocation
	}
	// Classic asks for the same size for ever, and never returns if the driver
	// keeps refusing. Nobody waits for that: it counts as refused.
	return 0
}

// addRegion makes one free chunk of new memory.
func (a *Allocator) addRegion(addr, size uint64) {
	// The place is before the first region that ends above addr.
	i, _ := slices.BinarySearchFunc(a.regions, addr, func(r region, addr uint64) int {
		if r.end() > addr {
			return 1
		}
		return -1
	})
	joined := i > 0 && a.regions[i-1].end() == addr && a.sub.Joins()
	h := a.newChunk()
	c := &a.chunks[h]
	*c = chunk{addr: addr, size: size, requested: c.requested, id: idFree}
	if a.o.Partition.On {
		c.tag = tagGap
	}
	if a.indexAll {
		a.index.add(a.chunks, h)
	}
	if joined {
		r := &a.regions[i-1]
		last := r.first
		for a.chunks[last].next != none {
			last = a.chunks[last].next
		}
		a.chunks[last].next = h
		c.prev = last
		r.size += size
	} else {
		a.regions = append(a.regions, region{})
		copy(a.regions[i+1:], a.regions[i:])
		a.regions[i] = region{addr, size, h}
	}
	a.bin(a.coalesce(h, false))
}

const collectText = "Garbage collection: deallocate free memory regions (i.e., allocations) so that " +
	"we can re-allocate a larger region to avoid OOM due to memory fragmentation. " +
	"If you see this message frequently, you are running near the threshold of the available device memory " +
	"and re-allocation may incur great performance overhead. " +
	"You may try smaller batch sizes to observe the performance impact. " +
	"Set TF_ENABLE_GPU_GARBAGE_COLLECTION=false if you'd like to disable this feature."

// collect gives every wholly free region back, if that can make room for size
// bytes.
func (a *Allocator) collect(size uint64) bool {
	if !a.o.GarbageCollection {
		return false
	}
	var total uint64
	for _, r := range a.regions {
		if a.unused(r) {
			total += r.size
		}
	}
	if total == 0 || size > a.limit-a.pool+total {
		return false
	}
	a.obs.Log(alloc.Warning, collectText)
	kept := a.regions[:0]
	for _, r := range a.regions {
		if !a.unused(r) {
			kept = append(kept, r)
			continue
		}
		for h := r.first; h != none; {
			next := a.chunks[h].next
			a.unbin(h)
			a.dropChunk(h)
			h = next
		}
		a.giveBack(r)
		a.pool -= r.size
	}
	a.regions = kept
	return true
}

func (a *Allocator) unused(r region) bool {
	for h := r.first; h != none; h = a.chunks[h].next {
		if a.chunks[h].inUse() {
			return false
		}
	}
	return true
}

func (a *Allocator) giveBack(r region) {
	a.sub.Give(r.addr, int64(r.size))
	a.obs.RegionGiven(r.addr, int64(r.size))
}
