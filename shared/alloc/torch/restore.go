package torch

import (
	"fmt"
	"slices"
	"sort"
)

// Placer is a driver that can be told what is taken already, as when a replay
// begins in the middle of a run.
type Placer interface {
	// Place takes bytes at addr; later ranges lie elsewhere. It reports false
	// when the device has not so many left.
	Place(addr uint64, bytes int64) bool
	// PlaceReserved sets addresses aside, without memory.
	PlaceReserved(addr uint64, bytes int64)
}

var _ Placer = (*Device)(nil)

// Place implements Placer.
func (d *Device) Place(addr uint64, bytes int64) bool {
	if bytes <= 0 || addr+uint64(bytes) < addr || !d.card.Hold(bytes) {
		return false
	}
	d.PlaceReserved(addr, bytes)
	return true
}

// PlaceReserved implements Placer.
func (d *Device) PlaceReserved(addr uint64, bytes int64) {
	end := addr + uint64(bytes)
	d.next = max(d.next, (end+LargeRounding-1)&^(LargeRounding-1))
}

// Restore puts an empty allocator into the state of a snapshot, addresses and
// all, so that what followed can be replayed from there. A block that waited
// for a stream comes back at the next request, since a snapshot does not say
// which stream that was. Where an expandable segment's addresses begin is not
// said either: they are taken to begin at its first run of pages.
//
// The statistics begin with the restored state. After an error the allocator
// must be closed.
func (a *Allocator) Restore(segments []SnapshotSegment) error {
	driver, ok := a.driver.(Placer)
	if !ok {
		return fmt.Errorf("allocator %s: restore: the driver cannot place segments at given addresses", a.o.Name)
	}
	if len(a.blocks) > 0 || len(a.places) > 0 {
		return fmt.Errorf("allocator %s: restore: it holds memory already", a.o.Name)
	}
	list := append([]SnapshotSegment(nil), segments...)
	sort.SliceStable(list, func(i, j int) bool { return list[i].Address < list[j].Address })
	for i := range list {
		s := &list[i]
		if err := s.check(); err != nil {
			return fmt.Errorf("allocator %s: restore: %w", a.o.Name, err)
		}
		if i > 0 && list[i-1].Address+uint64(list[i-1].Total) > s.Address {
			return fmt.Errorf("allocator %s: restore: segment %#x begins before %#x of %d bytes ends",
				a.o.Name, s.Address, list[i-1].Address, list[i-1].Total)
		}
		if i > 0 && list[i-1].touches(s) {
			return fmt.Errorf("allocator %s: restore: expandable segments %#x and %#x are one", a.o.Name, list[i-1].Address, s.Address)
		}
		if !driver.Place(s.Address, s.Total) {
			return fmt.Errorf("allocator %s: restore: the device has no room for segment %#x of %d bytes", a.o.Name, s.Address, s.Total)
		}
	}
	for i := range list {
		if s := &list[i]; !s.Expandable {
			a.restoreSegment(s)
		} else if err := a.restoreRun(driver, s); err != nil {
			return fmt.Errorf("allocator %s: restore: %w", a.o.Name, err)
		}
	}
	return nil
}

// check holds a segment against what all segments are like.
func (s *SnapshotSegment) check() error {
	if s.Address == 0 || s.Total <= 0 || s.Address+uint64(s.Total) < s.Address {
		return fmt.Errorf("a segment of %d bytes cannot lie at %#x", s.Total, s.Address)
	}
	at := s.Address
	for i, b := range s.Blocks {
		switch {
		case b.Address != at:
			return fmt.Errorf("block %d of segment %#x lies at %#x, expected %#x", i, s.Address, b.Address, at)
		case b.Size <= 0 || b.Size%Granule != 0 || uint64(b.Size) > s.Address+uint64(s.Total)-at:
			return fmt.Errorf("block %#x of segment %#x has %d bytes", b.Address, s.Address, b.Size)
		case b.State == ActiveAllocated && b.Requested > b.Size:
			return fmt.Errorf("block %#x of %d bytes holds %d", b.Address, b.Size, b.Requested)
		case i > 0 && b.State == Inactive && s.Blocks[i-1].State == Inactive:
			return fmt.Errorf("inactive blocks %#x and %#x lie side by side", s.Blocks[i-1].Address, b.Address)
		}
		at += uint64(b.Size)
	}
	if at != s.Address+uint64(s.Total) {
		return fmt.Errorf("the blocks of segment %#x end at %#x, expected %#x", s.Address, at, s.Address+uint64(s.Total))
	}
	return nil
}

// touches: both are runs of pages of one stream's reservation, without a gap.
func (s *SnapshotSegment) touches(next *SnapshotSegment) bool {
	return s.Expandable && next.Expandable && s.Address+uint64(s.Total) == next.Address &&
		s.Stream == next.Stream && s.Pool == next.Pool && s.Large == next.Large
}

func (a *Allocator) arenaOfSegment(s *SnapshotSegment) *arena {
	k := small
	if s.Large {
		k = large
	}
	if s.Pool.Default() {
		return a.arenaOf(a.pools[k], s.Stream)
	}
	return a.arenaOf(a.private(s.Pool).pools[k], s.Stream)
}

func (a *Allocator) restoreSegment(s *SnapshotSegment) {
	ar := a.arenaOfSegment(s)
	a.restoreBlocks(s, ar, none, 0, mapped|live)
	a.held(ar.pool, s.Total)
	k := ar.pool.kind
	a.stats.up(k, segment, 1)
	a.stats.up(k, reservedBytes, s.Total)
	if s.Total >= a.split {
		a.stats.oversizeSegments.up(1)
	}
	a.obs.RegionTaken(s.Address, s.Total, s.Total)
}

// restoreRun puts a run of mapped pages into the stream's reservation, or
// begins one with it.
func (a *Allocator) restoreRun(driver Placer, s *SnapshotSegment) error {
	if a.virtual == nil {
		return fmt.Errorf("segment %#x is expandable, and the driver does not map pages", s.Address)
	}
	ar := a.arenaOfSegment(s)
	h := a.unmappedOver(ar, s)
	if h == none {
		if h = a.reserveAt(driver, ar, s.Address); a.places[a.blocks[h].place].size < s.Total {
			return fmt.Errorf("segment %#x of %d bytes is larger than the device", s.Address, s.Total)
		}
	}
	place := a.places[a.blocks[h].place]
	if (s.Address-place.addr)%uint64(place.page) != 0 || s.Total%place.page != 0 {
		return fmt.Errorf("segment %#x of %d bytes is not made of pages of %d bytes from %#x", s.Address, s.Total, place.page, place.addr)
	}
	// Cut the run out of the unmapped block h, and its blocks out of the run.
	ar.dropUnmapped(a, h)
	if before := int64(s.Address - a.blocks[h].addr); before > 0 {
		ar.addUnmapped(a, a.cutBelow(h, before))
	}
	if a.blocks[h].size > s.Total {
		ar.addUnmapped(a, a.cutAbove(h, s.Total))
	}
	b := a.blocks[h]
	a.dropBlock(h)
	last := a.restoreBlocks(s, ar, b.prev, b.place, mapped|expandable|live)
	if b.next != none {
		a.blocks[b.next].prev = last
		a.blocks[last].next = b.next
	}
	a.held(ar.pool, s.Total)
	a.stats.up(ar.pool.kind, reservedBytes, s.Total)
	for at := int64(0); at < s.Total; at += place.page {
		a.obs.RegionTaken(s.Address+uint64(at), place.page, place.page)
	}
	return nil
}

func (a *Allocator) unmappedOver(ar *arena, s *SnapshotSegment) uint32 {
	for _, h := range ar.unmapped {
		b := &a.blocks[h]
		page := uint64(a.places[b.place].page)
		if b.addr <= s.Address && b.end() >= s.Address+uint64(s.Total) && (s.Address-a.places[b.place].addr)%page == 0 {
			return h
		}
	}
	return none
}

func (a *Allocator) reserveAt(driver Placer, ar *arena, addr uint64) uint32 {
	size, page := a.reservationSize(ar.pool)
	driver.PlaceReserved(addr, size)
	return a.addReservation(ar, addr, size, page)
}

// restoreBlocks makes the blocks of a segment, behind prev, and returns the
// last of them.
func (a *Allocator) restoreBlocks(s *SnapshotSegment, ar *arena, prev, place uint32, flags uint8) uint32 {
	k := ar.pool.kind
	for _, x := range s.Blocks {
		h := a.newBlock()
		a.blocks[h] = block{
			addr: x.Address, size: x.Size, requested: x.Requested, prev: prev, next: none,
			arena: ar.number, place: place, flags: flags,
		}
		if prev != none {
			a.blocks[prev].next = h
		}
		prev = h
	}
	h := prev
	for _, x := range slices.Backward(s.Blocks) {
		b := &a.blocks[h]
		switch x.State {
		case ActiveAllocated:
			b.flags |= inUse
			b.id = a.nextID
			a.nextID++
			a.index.add(b.addr, h)
			a.stats.handedOut(k, b.size, b.requested)
			if b.size >= a.split {
				a.stats.oversizeAllocations.up(1)
			}
		case ActivePendingFree:
			a.stats.up(k, active, 1)
			a.stats.up(k, activeBytes, b.size)
			a.stats.up(k, requestedBytes, b.requested)
			q := a.queueOf(ar.stream)
			q.events = append(q.events, outstanding{0, h})
			b.events = 1
			a.pending++
		default:
			a.insertFree(h)
			if !b.is(expandable) && len(s.Blocks) > 1 {
				a.stats.up(k, inactiveSplit, 1)
				a.stats.up(k, inactiveSplitBytes, b.size)
			}
		}
		h = b.prev
	}
	return prev
}
