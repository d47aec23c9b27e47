// Package eventhash condenses what a run did to memory into one number, so
// that two runs can be compared: the same workload and settings must give the
// same allocations, addresses, frees and transfers on every host.
//
// Times, the ids that pair begin and end, and everything that is not about
// memory are left out; strings count by their text, not by their id. It is a
// comparison, not a signature: nothing here resists a forger.
package eventhash

import (
	"math/bits"

	"tideline/protocol/event"
)

// Hasher is a Sink that hashes the memory events it is given: RegionAdd,
// RegionRemove, RegionRefused, Alloc, Free, Forward and TransferBegin. All
// others are ignored.
type Hasher struct {
	strings *event.Strings
	texts   []uint64 // hash of each string seen so far, 0 for not yet
	h       uint64
	n       uint64
}

// The odd constants of the mixing, from the fraction of the golden ratio and
// its like; any odd numbers without pattern would do, but they are fixed.
const (
	mulA = 0x9E3779B97F4A7C15
	mulB = 0xC2B2AE3D27D4EB4F
	seed = 0x7469646C6976656E
)

// New makes a hasher of events whose strings are in the table.
func New(strings *event.Strings) *Hasher { return &Hasher{strings: strings, h: seed} }

// Emit takes one event.
func (h *Hasher) Emit(e *event.Event) {
	switch e.Kind {
	case event.RegionAdd, event.RegionRemove, event.RegionRefused,
		event.Alloc, event.Free, event.Forward, event.TransferBegin:
	default:
		return
	}
	h.n++
	h.word(uint64(e.Kind) | uint64(e.Category)<<8 | uint64(e.Stream)<<16 | uint64(e.Cause)<<24 |
		uint64(e.Flags&^event.Modelled)<<32 | uint64(e.Device)<<48)
	h.word(uint64(e.Peer) | uint64(e.Allocator)<<16 | uint64(uint32(e.Step))<<32)
	h.word(e.Address)
	h.word(uint64(e.Size))
	h.word(uint64(e.Requested))
	h.word(h.text(e.Op))
	h.word(h.text(e.Tensor))
}

// word mixes 64 bits in.
func (h *Hasher) word(v uint64) {
	h.h = bits.RotateLeft64(h.h^v*mulB, 29) * mulA
}

// text is the hash of a string, remembered by its id.
func (h *Hasher) text(id event.StringID) uint64 {
	if int(id) < len(h.texts) && h.texts[id] != 0 {
		return h.texts[id]
	}
	s := h.strings.At(id)
	v := uint64(seed)
	for i := range len(s) {
		v = (v ^ uint64(s[i])) * 0x100000001B3 // FNV-1a's step
	}
	v |= 1
	if int(id) >= h.strings.Len() {
		return v // not in the table yet: nothing to remember
	}
	for len(h.texts) <= int(id) {
		h.texts = append(h.texts, make([]uint64, max(64, len(h.texts)))...)
	}
	h.texts[id] = v
	return v
}

// Sum64 is the hash of the events so far.
func (h *Hasher) Sum64() uint64 {
	v := h.h ^ h.n*mulB
	v ^= v >> 32
	v *= mulA
	return v ^ v>>29
}

// Events is how many memory events were hashed.
func (h *Hasher) Events() uint64 { return h.n }
