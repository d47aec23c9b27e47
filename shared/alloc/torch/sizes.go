package torch

import "math/bits"

// The sizes that never change, in bytes.
const (
	Granule             = 512      // every block's size and offset is a multiple
	SmallLimit          = 1 << 20  // rounded requests up to this are small
	SmallSegment        = 2 << 20  // what small requests ask of the driver
	DefaultLargeSegment = 20 << 20 // what large requests below OwnSegment ask
	OwnSegment          = 10 << 20 // from here on a request gets a segment of its size
	LargeRounding       = 2 << 20  // and that size is a multiple of this
	MaxRequest          = 1 << 60  // larger requests fail before they are looked at
)

// divisionSlots is the number of size ranges that can be rounded differently:
// one per power of two from 1 MiB to 32 GiB.
const divisionSlots = 16

// DivisionsFor is the number of steps between powers of two that a request of
// n bytes is rounded to; 0 and 1 mean none.
func (s *Settings) DivisionsFor(n int64) int64 {
	slot := bits.Len64(uint64(n)) - 1 - 20
	return s.Divisions[min(max(slot, 0), divisionSlots-1)]
}

// Round is the size that a request of n bytes looks for.
func (s *Settings) Round(n int64) int64 {
	if n < Granule {
		return Granule
	}
	if d := s.DivisionsFor(n); d > 1 && n > Granule*d {
		return roundToStep(n, d)
	}
	return (n + Granule - 1) &^ (Granule - 1)
}

// roundToStep rounds n up to the next of d equal steps between the power of
// two below it and the next one. d is a power of two.
func roundToStep(n, d int64) int64 {
	p := int64(1) << (bits.Len64(uint64(n)) - 1)
	if n == p {
		return n
	}
	step := p >> (bits.Len64(uint64(d)) - 1)
	if step == 0 {
		return 2 * p
	}
	return (n + step - 1) &^ (step - 1)
}

// Segment is what a rounded request of r bytes asks of the driver.
func (s *Settings) Segment(r int64) int64 {
	switch {
	case r <= SmallLimit:
		return SmallSegment
	case r < OwnSegment:
		return s.largeSegment()
	default:
		return (r + LargeRounding - 1) &^ (LargeRounding - 1)
	}
}

func (s *Settings) largeSegment() int64 {
	if s.LargeSegment == 0 {
		return DefaultLargeSegment
	}
	return s.LargeSegment
}

func (s *Settings) maxSplit() int64 {
	if s.MaxSplit == 0 {
		return unlimited
	}
	return s.MaxSplit
}

// nonSplit is how much larger than an oversize request a block may be: as much
// as a large segment unless it is set, so large_segment_size_mb moves it too.
func (s *Settings) nonSplit() int64 {
	if s.MaxNonSplitRounding == 0 {
		return s.largeSegment()
	}
	return s.MaxNonSplitRounding
}
