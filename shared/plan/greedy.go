package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Order is the order in which a greedy planner takes the buffers.
type Order uint8

// Orders. Ties that the keys leave are broken by position in the problem.
const (
	BySize     Order = iota // size desc, duration desc, lower asc
	ByArea                  // size x duration desc, size desc, lower asc
	ByDuration              // duration desc, size desc, lower asc
	ByStart                 // lower asc, size desc
	ByLoad                  // largest section sum met in its life desc, size desc, lower asc
)

// Placement is where a greedy planner puts a buffer.
type Placement uint8

// Placements.
const (
	First Placement = iota // the lowest offset with room
	Best                   // the smallest gap with room under a placed buffer, else on top
)

// Method is one greedy planner.
type Method struct {
	Order     Order
	Placement Placement
}

var (
	orderNames     = [...]string{"size", "area", "duration", "start", "load"}
	placementNames = [...]string{"first", "best"}
)

// String names it as order-placement, such as size-best.
func (m Method) String() string { return orderNames[m.Order] + "-" + placementNames[m.Placement] }

// ParseMethod is the inverse of String.
func ParseMethod(s string) (Method, error) {
	for _, m := range Methods() {
		if m.String() == s {
			return m, nil
		}
	}
	var names []string
	for _, m := range Methods() {
		names = append(names, m.String())
	}
	return Method{}, fmt.Errorf("planner %q is not known: choose one of %s", s, strings.Join(names, ", "))
}

// Methods lists the ten greedy planners.
func Methods() []Method {
	var ms []Method
	for o := range orderNames {
		for p := range placementNames {
			ms = append(ms, Method{Order(o), Placement(p)})
		}
	}
	return ms
}

// Greedy takes the buffers in the method's order and gives each an offset at
// once. The error is that of an invalid problem or of fixed offsets that
// conflict.
func Greedy(p *Problem, by Method) (Plan, error) {
	g, err := newGreedy(p)
	if err != nil {
		return Plan{}, err
	}
	plan, _ := g.plan(g.order(by.Order), by.Placement, nil)
	return plan, nil
}

// BestGreedy runs all ten and returns the lowest plan with the method that
// found it, the first of those that are equal. It is done early at a plan that
// no other can beat.
func BestGreedy(p *Problem) (Plan, Method, error) {
	r := &minimizer{}
	var err error
	if r.greedy, err = newGreedy(p); err != nil {
		return Plan{}, Method{}, err
	}
	r.o.Nodes = math.MaxInt64
	r.Floor = r.floor()
	r.tryGreedy()
	return r.Plan, r.First, nil
}

// greedy is what the planners of one problem share.
type greedy struct {
	*model
	index *index
	peaks []int64 // largest section sum in each buffer's life
	fixed []int32
}

func newGreedy(p *Problem) (*greedy, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	g := &greedy{model: newModel(p)}
	g.index = newIndex(g.sections())
	for i := range p.Buffers {
		if p.Buffers[i].Fixed {
			g.fixed = append(g.fixed, int32(i))
		}
	}
	return g, g.checkFixed()
}

// checkFixed names the first two fixed buffers that contradict each other.
func (g *greedy) checkFixed() error {
	if len(g.fixed) < 2 {
		return nil
	}
	only := Problem{Buffers: make([]Buffer, len(g.fixed))}
	offsets := make([]int64, len(g.fixed))
	for k, i := range g.fixed {
		only.Buffers[k] = g.p.Buffers[i]
		only.Buffers[k].ID = g.p.Name(int(i))
		offsets[k] = g.p.Buffers[i].Offset
	}
	if err := checkPairs(&only, offsets); err != nil {
		return fmt.Errorf("%w: %w", ErrFixed, err)
	}
	return nil
}

// plan places the buffers of an order one by one, the fixed ones before all.
// It is not ok if stop said so meanwhile; a stop of nil never does.
func (g *greedy) plan(order []int32, where Placement, stop func() bool) (plan Plan, ok bool) {
	offsets := make([]int64, len(g.p.Buffers))
	g.index.reset()
	for _, i := range g.fixed {
		offsets[i] = g.p.Buffers[i].Offset
		g.index.put(g.of(int(i)), offsets[i])
	}
	for k, i := range order {
		b := &g.p.Buffers[i]
		if b.Fixed {
			continue
		}
		if k&127 == 127 && stop != nil && stop() {
			return Plan{}, false
		}
		if spans := g.of(int(i)); len(spans) > 0 {
			offsets[i] = g.index.find(spans, b.Size, b.align(), where)
			g.index.put(spans, offsets[i])
		}
	}
	return Plan{offsets, g.p.height(offsets)}, true
}

// order sorts the buffers by an order's keys.
func (g *greedy) order(o Order) []int32 {
	order := make([]int32, len(g.p.Buffers))
	for i := range order {
		order[i] = int32(i)
	}
	if o == ByLoad && g.peaks == nil {
		g.peaks = g.peaksOf()
	}
	slices.SortFunc(order, func(x, y int32) int {
		if c := g.compare(o, x, y); c != 0 {
			return c
		}
		return cmp.Compare(x, y)
	})
	return order
}

func (g *greedy) compare(o Order, x, y int32) int {
	a, b := &g.p.Buffers[x], &g.p.Buffers[y]
	size := cmp.Compare(b.Size, a.Size)
	lower := cmp.Compare(a.Lower, b.Lower)
	// Unsigned, because a life may span the whole range of int64.
	da, db := uint64(a.Upper)-uint64(a.Lower), uint64(b.Upper)-uint64(b.Lower)
	switch o {
	case BySize:
		return cmp.Or(size, cmp.Compare(db, da), lower)
	case ByArea:
		ah, al := bits.Mul64(uint64(a.Size), da)
		bh, bl := bits.Mul64(uint64(b.Size), db)
		return cmp.Or(cmp.Compare(bh, ah), cmp.Compare(bl, al), size, lower)
	case ByDuration:
		return cmp.Or(cmp.Compare(db, da), size, lower)
	case ByStart:
		return cmp.Or(lower, size)
	case ByLoad:
		return cmp.Or(cmp.Compare(g.peaks[y], g.peaks[x]), size, lower)
	}
	return 0
}

// peaksOf is the largest section sum in the life of each buffer.
func (g *greedy) peaksOf() []int64 {
	width := len(g.sums)
	tree := make([]int64, 2*width)
	copy(tree[width:], g.sums)
	for v := width - 1; v > 0; v-- {
		tree[v] = max(tree[2*v], tree[2*v+1])
	}
	peaks := make([]int64, len(g.p.Buffers))
	for i := range peaks {
		b := &g.p.Buffers[i]
		if b.Size == 0 {
			continue
		}
		for lo, hi := int(g.section(b.Lower))+width, int(g.section(b.Upper))+width; lo < hi; lo, hi = lo/2, hi/2 {
			if lo&1 == 1 {
				peaks[i] = max(peaks[i], tree[lo])
				lo++
			}
			if hi&1 == 1 {
				hi--
				peaks[i] = max(peaks[i], tree[hi])
			}
		}
	}
	return peaks
}
