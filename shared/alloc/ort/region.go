package ort

import (
	"fmt"
	"math"
	"slices"

	"tideline/shared/alloc"
)

// extend takes a region that holds size bytes; it returns why it could not.
func (a *Arena) extend(size int64) (failure string) {
	available := max(0, a.o.MaxMemory-a.stats.TotalAllocated) &^ (Granule - 1)
	if size > available {
		return fmt.Sprintf("Available memory of %d is smaller than requested bytes of %d", available, size)
	}
	ask, grown := size, false
	if a.o.Strategy == NextPowerOfTwo {
		for size > a.next {
			a.next = double(a.next)
			grown = true
		}
		ask = min(a.next, available)
	}
	addr, received, ok := a.take(ask)
	for !ok {
		// In single precision, as upstream.
		ask = round(int64(float32(ask) * float32(0.9)))
		if ask < size || ask < leastAsk {
			return fmt.Sprintf("Failed to allocate memory for requested buffer of size %d", size)
		}
		addr, received, ok = a.take(ask)
	}
	if a.o.Strategy == NextPowerOfTwo && !grown {
		a.doubleNext()
	}
	a.addRegion(addr, received)
	a.logExtended(addr, received)
	return ""
}

func double(n int64) int64 {
	switch {
	case n == 0:
		return Granule
	case n > math.MaxInt64/2:
		return largest
	}
	return 2 * n
}

// doubleNext is held by the cap; doubling for the sake of one request is not.
func (a *Arena) doubleNext() {
	if a.next < a.o.MaxExtend/2 {
		a.next = double(a.next)
	} else {
		a.next = a.o.MaxExtend
	}
}

func (a *Arena) take(bytes int64) (addr uint64, received int64, ok bool) {
	addr, received, ok = a.sub.Take(Granule, bytes)
	if ok && (received < bytes || addr%Granule != 0 || received%Granule != 0) {
		a.sub.Give(addr, received) // nothing that chunks could tile
		ok = false
	}
	if !ok {
		a.o.Observer.RegionRefused(bytes)
		return 0, 0, false
	}
	a.o.Observer.RegionTaken(addr, bytes, received)
	return addr, received, true
}

func (a *Arena) addRegion(addr uint64, size int64) {
	h := a.table.Add(addr, size) // untagged, so that any stream may have it
	a.set.Insert(size, addr, h)
	i, _ := slices.BinarySearchFunc(a.regions, addr, func(r region, addr uint64) int {
		if r.addr < addr {
			return -1
		}
		return 1
	})
	// Upstream numbers regions by the count of extensions; number 0 is the first.
	a.regions = append(a.regions, region{})
	copy(a.regions[i+1:], a.regions[i:])
	a.regions[i] = region{addr, size, a.stats.NumExtensions == 0}
	a.stats.NumExtensions++
	a.total(size)
}

func (a *Arena) total(change int64) {
	a.stats.TotalAllocated += change
	a.stats.peakTotal = max(a.stats.peakTotal, a.stats.TotalAllocated)
}

// Reserve hands out memory straight from the driver, beside the arena and
// exactly as large as wanted: what initialisers get. It counts as in use and
// against the limit, which only the Plugin profile minds before it asks.
func (a *Arena) Reserve(bytes int64) (alloc.Block, bool) {
	if bytes <= 0 {
		return alloc.Block{}, false
	}
	a.logReserve(bytes)
	if available := max(0, a.o.MaxMemory-a.stats.TotalAllocated); a.o.Profile == Plugin && bytes > available {
		a.fail(bytes, fmt.Sprintf("Available memory of %d is smaller than requested bytes of %d", available, bytes))
		return alloc.Block{}, false
	}
	addr, received, ok := a.sub.Take(Granule, bytes)
	if !ok {
		a.o.Observer.RegionRefused(bytes)
		a.fail(bytes, fmt.Sprintf("Failed to allocate memory for requested buffer of size %d", bytes))
		return alloc.Block{}, false
	}
	a.o.Observer.RegionTaken(addr, bytes, received)
	a.aside[addr] = reservation{bytes, received}
	a.total(received)
	a.count(bytes)
	a.stats.NumReserves++
	id := a.nextID
	a.nextID++
	return alloc.Block{Address: addr, Size: bytes, Requested: bytes, ID: id}, true
}

func (a *Arena) freeReservation(addr uint64) error {
	r, ok := a.aside[addr]
	if !ok {
		return fmt.Errorf("arena %s: %x was asked to be freed, but no block starts there", a.o.Name, addr)
	}
	delete(a.aside, addr)
	a.stats.BytesInUse -= r.size
	a.total(-r.received)
	a.give(addr, r.received)
	return nil
}

// Shrink gives back every region without a chunk in use, but not the first one
// of a doubling arena in the Core profile. The next region is then as large as
// GrowthChunk.
func (a *Arena) Shrink() {
	kept := a.regions[:0]
	for _, r := range a.regions {
		if !a.idle(r) || r.first && a.o.Strategy == NextPowerOfTwo && a.o.Profile == Core {
			kept = append(kept, r)
			continue
		}
		for h := a.table.At(r.addr); h != none; {
			c := &a.table.Chunks[h]
			next := c.Next
			a.set.Remove(c.Size, c.Addr)
			a.table.Remove(h)
			h = next
		}
		a.total(-r.size)
		a.stats.NumExtensions--
		a.stats.NumShrinkages++
		a.logShrunk(r.size)
		a.give(r.addr, r.size)
	}
	a.regions = kept
	a.next = a.o.GrowthChunk
}

func (a *Arena) idle(r region) bool {
	for h := a.table.At(r.addr); h != none; h = a.table.Chunks[h].Next {
		if a.table.Chunks[h].InUse() {
			return false
		}
	}
	return true
}
