package alloc

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
)

// SubAllocator is the driver's side: where an allocator gets its regions.
type SubAllocator interface {
	// Take asks for bytes at an address that is a multiple of alignment (a
	// power of two). received may exceed bytes. ok is false when the driver
	// refuses.
	Take(alignment, bytes int64) (addr uint64, received int64, ok bool)
	// Give returns a range exactly as Take gave it, or, where Joins holds, a
	// run of such ranges.
	Give(addr uint64, bytes int64)
	// Joins reports whether ranges that touch may be treated as one.
	Joins() bool
}

// Order is the way in which a Space walks through its addresses.
type Order uint8

// The orders.
const (
	Up     Order = iota // ascending
	Down                // descending
	Zigzag              // up for the first success, down for the second, …
)

// String is the order's word in a trace.
func (o Order) String() string {
	switch o {
	case Down:
		return "down"
	case Zigzag:
		return "zigzag"
	default:
		return "up"
	}
}

// Card is the memory of one physical card: the spaces of all allocators that
// live on it draw from the same bytes.
type Card struct {
	capacity int64 // 0: unlimited
	held     int64
	over     Bytes // whose bytes they are; nil: the card's own
}

// Bytes is memory that others count, such as a card that several runs share.
type Bytes interface {
	Total() int64
	Free() int64
	// Hold takes bytes, or gives them back, and reports whether there were any.
	Hold(bytes int64) bool
}

// CardOver is a card whose bytes are another's.
func CardOver(b Bytes) *Card { return &Card{capacity: b.Total(), over: b} }

// NewCard returns a card of so many bytes; 0 means unlimited.
func NewCard(capacity int64) *Card { return &Card{capacity: max(0, capacity)} }

// Capacity is the card's size in bytes; 0 means unlimited.
func (c *Card) Capacity() int64 { return c.capacity }

// Held is the bytes taken from it.
func (c *Card) Held() int64 {
	if c.over != nil {
		return c.over.Total() - c.over.Free()
	}
	return c.held
}

// Hold takes bytes that no allocator manages (a context, a display, another
// process) off the card, and reports whether it had them. Negative gives back.
func (c *Card) Hold(bytes int64) bool {
	if c.over != nil {
		return c.over.Hold(bytes)
	}
	if c.capacity > 0 && bytes > c.capacity-c.held {
		return false
	}
	c.held = max(0, c.held+bytes)
	return true
}

// DefaultBase is where a Space begins unless told otherwise. Address 0 is never
// handed out: it stands for no block.
const DefaultBase = 0x7f0000000000

// SpaceOptions are the habits of a driver.
type SpaceOptions struct {
	Base        uint64 // first address for Up, one past the last for Down; 0 means DefaultBase
	Order       Order
	Gap         int64 // unused bytes left between ranges
	Granularity int64 // sizes are rounded up to a multiple; 0 means 1
	Alignment   int64 // least alignment of a range; 0 means 256
	// IgnoreAlignment: ranges are aligned to Alignment only, whatever is asked.
	IgnoreAlignment bool
	// Reuse, only with Up: a range given back with none held above it is
	// handed out again.
	Reuse bool
	Joins bool  // what SubAllocator.Joins answers
	Card  *Card // nil means unlimited
}

// Space is a driver over an abstract address space: it hands out ranges of
// addresses by simple rules, so that runs can be repeated to the byte.
type Space struct {
	o        SpaceOptions
	up, down uint64
	taken    int // successes, for Zigzag
	held     []span
}

type span struct {
	addr  uint64
	bytes int64
}

// NewSpace checks the options and returns an empty space.
func NewSpace(o SpaceOptions) (*Space, error) {
	if o.Base == 0 {
		o.Base = DefaultBase
	}
	if o.Granularity == 0 {
		o.Granularity = 1
	}
	if o.Alignment == 0 {
		o.Alignment = 256
	}
	if o.Card == nil {
		o.Card = NewCard(0)
	}
	switch {
	case o.Granularity < 0:
		return nil, fmt.Errorf("space: granularity %d is negative", o.Granularity)
	case !isPowerOfTwo(o.Alignment):
		return nil, fmt.Errorf("space: alignment %d is not a power of two", o.Alignment)
	case o.Gap < 0:
		return nil, fmt.Errorf("space: gap %d is negative", o.Gap)
	case o.Order > Zigzag:
		return nil, fmt.Errorf("space: order %d is unknown", o.Order)
	case o.Reuse && o.Order != Up:
		return nil, errors.New("space: reuse of addresses needs the order up")
	}
	return &Space{o: o, up: o.Base, down: o.Base}, nil
}

func isPowerOfTwo(n int64) bool { return n > 0 && n&(n-1) == 0 }

// Take implements SubAllocator.
func (s *Space) Take(alignment, bytes int64) (addr uint64, received int64, ok bool) {
	if bytes <= 0 || bytes > math.MaxInt64-s.o.Granularity {
		return 0, 0, false
	}
	size := (bytes + s.o.Granularity - 1) / s.o.Granularity * s.o.Granularity
	align := uint64(s.o.Alignment)
	if !s.o.IgnoreAlignment && isPowerOfTwo(alignment) {
		align = max(align, uint64(alignment))
	}
	addr, ok = s.place(align, uint64(size))
	if !ok || !s.o.Card.Hold(size) {
		return 0, 0, false
	}
	s.advance(addr, uint64(size))
	s.held = append(s.held, span{addr, size})
	return addr, size, true
}

func (s *Space) upwards() bool {
	return s.o.Order == Up || s.o.Order == Zigzag && s.taken%2 == 0
}

// place finds where the next range would lie; ok is false when the addresses
// run out.
func (s *Space) place(align, size uint64) (addr uint64, ok bool) {
	if s.upwards() {
		addr, carry := bits.Add64(s.up, align-1, 0)
		addr &^= align - 1
		_, past := bits.Add64(addr, size, 0)
		return addr, carry == 0 && past == 0
	}
	if size > s.down {
		return 0, false
	}
	return (s.down - size) &^ (align - 1), true
}

func (s *Space) advance(addr, size uint64) {
	if s.upwards() {
		s.up = addr + size + uint64(s.o.Gap)
	} else {
		s.down = addr - min(addr, uint64(s.o.Gap))
	}
	s.taken++
}

// Give implements SubAllocator. A range that is not held is ignored.
func (s *Space) Give(addr uint64, bytes int64) {
	end := addr + uint64(bytes)
	kept := s.held[:0]
	var back int64
	above := false
	for _, h := range s.held {
		if h.addr >= addr && h.addr < end {
			back += h.bytes
			continue
		}
		above = above || h.addr > addr
		kept = append(kept, h)
	}
	s.held = kept
	s.o.Card.Hold(-back)
	if s.o.Reuse && back > 0 && !above {
		s.up = addr
	}
}

// Joins implements SubAllocator.
func (s *Space) Joins() bool { return s.o.Joins }

// Held is the number of bytes handed out by this space alone.
func (s *Space) Held() int64 {
	var n int64
	for _, h := range s.held {
		n += h.bytes
	}
	return n
}

// Ranges calls f for every range held, ascending by address.
func (s *Space) Ranges(f func(addr uint64, bytes int64)) {
	sorted := append([]span(nil), s.held...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].addr < sorted[j].addr })
	for _, h := range sorted {
		f(h.addr, h.bytes)
	}
}
