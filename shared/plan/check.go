package plan

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Check returns nil if the plan is valid for the problem: each offset a
// multiple of its alignment, fixed offsets kept, no two buffers on the same
// bytes at the same time, and the height what it says. Otherwise the error
// names the buffers. A capacity is not looked at.
//
// It sweeps over time with the occupied bytes in order, and shares nothing
// with the planners but the types.
func Check(p *Problem, plan Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if len(plan.Offsets) != len(p.Buffers) {
		return fmt.Errorf("the plan has %d offsets for %d buffers", len(plan.Offsets), len(p.Buffers))
	}
	height, err := checkEach(p, plan.Offsets)
	if err != nil {
		return err
	}
	if height != plan.Height {
		return fmt.Errorf("the plan says height %d, its buffers reach %d", plan.Height, height)
	}
	return checkPairs(p, plan.Offsets)
}

func checkEach(p *Problem, offsets []int64) (height int64, err error) {
	for i, o := range offsets {
		b := &p.Buffers[i]
		switch {
		case o < 0 || o > maxTotal:
			return 0, fmt.Errorf("buffer %s at offset %d: out of range", p.Name(i), o)
		case b.Align > 1 && o%b.Align != 0:
			return 0, fmt.Errorf("buffer %s at offset %d: not a multiple of its alignment %d", p.Name(i), o, b.Align)
		case b.Fixed && o != b.Offset:
			return 0, fmt.Errorf("buffer %s at offset %d: its offset is fixed at %d", p.Name(i), o, b.Offset)
		}
		height = max(height, o+b.Size)
	}
	return height, nil
}

// change is the moment at which a buffer begins or ends to occupy bytes.
type change struct {
	time   int64
	start  bool // ends come before starts: lives are half-open
	buffer int
	lo, hi int64 // bytes of the arena
}

// held is a stretch of the arena in use.
type held struct {
	lo, hi int64
	buffer int
}

func checkPairs(p *Problem, offsets []int64) error {
	changes := changesOf(p, offsets)
	var live []held // by lo; disjoint, hence also by hi
	for _, c := range changes {
		at, found := slices.BinarySearchFunc(live, c.lo, func(h held, lo int64) int { return cmp.Compare(h.lo, lo) })
		if !c.start {
			live = slices.Delete(live, at, at+1)
			continue
		}
		for _, k := range [...]int{at - 1, at} {
			if k >= 0 && k < len(live) && live[k].lo < c.hi && c.lo < live[k].hi {
				return fmt.Errorf("buffers %s and %s overlap at time %d: bytes [%d, %d) and [%d, %d)",
					p.Name(live[k].buffer), p.Name(c.buffer), c.time, live[k].lo, live[k].hi, c.lo, c.hi)
			}
		}
		if found { // cannot be: it would overlap
			return fmt.Errorf("buffers %s and %s begin at the same byte %d", p.Name(live[at].buffer), p.Name(c.buffer), c.lo)
		}
		live = slices.Insert(live, at, held{c.lo, c.hi, c.buffer})
	}
	return nil
}

func changesOf(p *Problem, offsets []int64) []change {
	changes := make([]change, 0, 2*len(p.Buffers))
	add := func(i int, lower, upper, low, high int64) {
		if lower < upper && low < high {
			lo, hi := offsets[i]+low, offsets[i]+high
			changes = append(changes, change{lower, true, i, lo, hi}, change{upper, false, i, lo, hi})
		}
	}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		at := b.Lower
		for _, g := range b.Gaps {
			add(i, at, g.Lower, 0, b.Size)
			add(i, g.Lower, g.Upper, g.Low, g.High)
			at = g.Upper
		}
		add(i, at, b.Upper, 0, b.Size)
	}
	sort.SliceStable(changes, func(i, j int) bool {
		x, y := &changes[i], &changes[j]
		if x.time != y.time {
			return x.time < y.time
		}
		return !x.start && y.start
	})
	return changes
}
