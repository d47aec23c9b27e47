package torch

import (
	"math"

	"tideline/shared/alloc"
)

// VirtualMemory is what expandable segments need of a driver beside segments:
// addresses without memory, and memory put behind them later.
type VirtualMemory interface {
	// Reserve sets addresses aside; it costs no memory.
	Reserve(bytes int64) (addr uint64, ok bool)
	// Unreserve returns a range exactly as Reserve gave it.
	Unreserve(addr uint64, bytes int64)
	// Map puts memory behind a part of a reserved range, all of it or none.
	Map(addr uint64, bytes int64) bool
	// Unmap takes it away again.
	Unmap(addr uint64, bytes int64)
}

// MemoryInfo is a driver that tells what the device has.
type MemoryInfo interface {
	// Memory is what the driver could still give and what the device has in
	// all, in bytes; a total of 0 means unlimited.
	Memory() (free, total int64)
}

// DeviceBase is where a Device's addresses begin unless told otherwise.
const DeviceBase = 1 << 32

// Device is a modelled CUDA driver: an allocation succeeds if what is taken and
// the new bytes fit the card, addresses ascend by whole 2 MiB and are never
// handed out again.
type Device struct {
	card *alloc.Card
	next uint64
}

var (
	_ alloc.SubAllocator = (*Device)(nil)
	_ VirtualMemory      = (*Device)(nil)
	_ MemoryInfo         = (*Device)(nil)
)

// NewDevice is a driver of the card; nil means an unlimited one. Addresses
// begin at base; 0 means DeviceBase.
func NewDevice(card *alloc.Card, base uint64) *Device {
	if card == nil {
		card = alloc.NewCard(0)
	}
	if base == 0 {
		base = DeviceBase
	}
	return &Device{card: card, next: (base + LargeRounding - 1) &^ (LargeRounding - 1)}
}

// Take implements alloc.SubAllocator.
func (d *Device) Take(_, bytes int64) (addr uint64, received int64, ok bool) {
	if bytes <= 0 || !d.reachable(bytes) || !d.card.Hold(bytes) {
		return 0, 0, false
	}
	return d.advance(bytes), bytes, true
}

func (d *Device) reachable(bytes int64) bool {
	return bytes < math.MaxInt64-LargeRounding && uint64(bytes) < math.MaxUint64-LargeRounding-d.next
}

func (d *Device) advance(bytes int64) uint64 {
	addr := d.next
	d.next += (uint64(bytes) + LargeRounding - 1) &^ (LargeRounding - 1)
	return addr
}

// Give implements alloc.SubAllocator.
func (d *Device) Give(_ uint64, bytes int64) { d.card.Hold(-bytes) }

// Joins implements alloc.SubAllocator: segments stay apart.
func (d *Device) Joins() bool { return false }

// Reserve implements VirtualMemory.
func (d *Device) Reserve(bytes int64) (addr uint64, ok bool) {
	if bytes <= 0 || !d.reachable(bytes) {
		return 0, false
	}
	return d.advance(bytes), true
}

// Unreserve implements VirtualMemory: addresses are not used again.
func (d *Device) Unreserve(uint64, int64) {}

// Map implements VirtualMemory.
func (d *Device) Map(_ uint64, bytes int64) bool { return d.card.Hold(bytes) }

// Unmap implements VirtualMemory.
func (d *Device) Unmap(_ uint64, bytes int64) { d.card.Hold(-bytes) }

// Memory implements MemoryInfo.
func (d *Device) Memory() (free, total int64) {
	return max(0, d.card.Capacity()-d.card.Held()), d.card.Capacity()
}
