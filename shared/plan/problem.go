package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Buffer is memory of known size, alive in the half-open time [Lower, Upper).
type Buffer struct {
	ID    string // for people; "" is named by its position
	Lower int64  // first instant alive
	Upper int64  // first instant no longer alive; above Lower
	Size  int64  // bytes; a buffer of 0 conflicts with nothing
	Align int64  // the offset is a multiple of this power of two; 0 means 1

	Fixed  bool  // Offset is given, not chosen
	Offset int64 // meaningful with Fixed

	HasHint bool  // Hint is given
	Hint    int64 // an offset that somebody found good; carried, never binding

	Gaps []Gap // ascending, disjoint, inside the life
}

// Gap is a part [Lower, Upper) of a buffer's life in which only the bytes
// [Low, High) of it are occupied. Low = High means none at all.
type Gap struct {
	Lower, Upper int64
	Low, High    int64
}

// Problem is what a plan is asked for. Capacity is the height that a plan
// shall not exceed; 0 means that none is given.
type Problem struct {
	Buffers  []Buffer
	Capacity int64
}

// Plan is one offset for each buffer of its problem, in bytes, and the height:
// the largest offset + size.
type Plan struct {
	Offsets []int64
	Height  int64
}

// ErrFixed is wrapped by the errors of a problem that no plan can answer
// because two fixed offsets contradict each other.
var ErrFixed = errors.New("fixed offsets conflict")

// maxTotal bounds the sum of sizes, alignments and fixed offsets, so that no
// offset overflows.
const maxTotal = math.MaxInt64 / 4

// Name is the ID, or the position where there is none.
func (p *Problem) Name(i int) string {
	if id := p.Buffers[i].ID; id != "" {
		return id
	}
	return "#" + strconv.Itoa(i)
}

func (b *Buffer) align() int64 { return max(b.Align, 1) }

// Validate says what is wrong with the first buffer that breaks a rule. It
// looks at buffers one by one: contradicting fixed offsets are found when a
// plan is asked for.
func (p *Problem) Validate() error {
	if p.Capacity < 0 {
		return fmt.Errorf("capacity %d: must not be negative", p.Capacity)
	}
	var total int64
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if err := b.validate(); err != nil {
			return fmt.Errorf("buffer %s: %w", p.Name(i), err)
		}
		for _, x := range [...]int64{b.Size, b.align(), b.Offset} {
			if x > maxTotal-total {
				return fmt.Errorf("buffer %s: the sizes, alignments and fixed offsets sum up to more than %d", p.Name(i), int64(maxTotal))
			}
			total += x
		}
	}
	return nil
}

func (b *Buffer) validate() error {
	switch {
	case b.Lower >= b.Upper:
		return fmt.Errorf("lives in [%d, %d), which is empty: upper must be above lower", b.Lower, b.Upper)
	case b.Size < 0:
		return fmt.Errorf("size %d: must not be negative", b.Size)
	case b.Align < 0 || b.Align&(b.Align-1) != 0:
		return fmt.Errorf("alignment %d: must be a power of two", b.Align)
	case b.Fixed && b.Offset < 0:
		return fmt.Errorf("fixed offset %d: must not be negative", b.Offset)
	case b.Fixed && b.Offset%b.align() != 0:
		return fmt.Errorf("fixed offset %d: must be a multiple of the alignment %d", b.Offset, b.Align)
	case !b.Fixed && b.Offset != 0:
		return fmt.Errorf("offset %d without Fixed: the planner chooses it", b.Offset)
	}
	end := b.Lower
	for _, g := range b.Gaps {
		switch {
		case g.Lower >= g.Upper:
			return fmt.Errorf("gap %d-%d is empty: its end must be above its beginning", g.Lower, g.Upper)
		case g.Lower < end && end == b.Lower, g.Upper > b.Upper:
			return fmt.Errorf("gap %d-%d lies outside the life [%d, %d)", g.Lower, g.Upper, b.Lower, b.Upper)
		case g.Lower < end:
			return fmt.Errorf("gap %d-%d begins before the one in front of it ends: gaps must be ascending and disjoint", g.Lower, g.Upper)
		case g.Low < 0 || g.High < g.Low || g.High > b.Size:
			return fmt.Errorf("gap %d-%d keeps the bytes [%d, %d): must lie within the size %d", g.Lower, g.Upper, g.Low, g.High, b.Size)
		}
		end = g.Upper
	}
	return nil
}

// height is the top of the highest buffer.
func (p *Problem) height(offsets []int64) int64 {
	var h int64
	for i, o := range offsets {
		h = max(h, o+p.Buffers[i].Size)
	}
	return h
}

// roundUp returns the least multiple of the power of two a that is not below
// x, for x of 0 or more.
func roundUp(x, a int64) int64 { return (x + a - 1) &^ (a - 1) }
