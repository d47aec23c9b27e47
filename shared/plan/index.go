package plan

import (
	"math"
	"slices"
)

// stretch is a part [lo, hi) of the arena.
type stretch struct{ lo, hi int64 }

// index knows which bytes are taken in which sections. It is a tree over the
// sections; each node holds two unions of stretches: of what covers all its
// sections (and not all of its parent's), and of that and what lies in parts of
// it only. The bytes taken in a range of sections are then the union of some
// log(sections) of those lists, and packed buffers melt into few stretches,
// so that a search does not see each of the thousands of buffers in its way.
type index struct {
	width   int // leaves: a power of two
	covers  [][]stretch
	all     [][]stretch
	cursors []cursor
}

// cursor walks a list of taken stretches from below. In terms of the offset o
// to be found, a stretch forbids lo-high < o < hi-low.
type cursor struct {
	list      []stretch
	low, high int64
	lowest    int64 // what the first stretch forbids begins behind this
}

func newIndex(sections int) *index {
	width := 1
	for width < sections {
		width *= 2
	}
	return &index{width: width, covers: make([][]stretch, 2*width), all: make([][]stretch, 2*width)}
}

// reset forgets all stretches and keeps their memory.
func (x *index) reset() {
	for v := range x.covers {
		x.covers[v] = x.covers[v][:0]
		x.all[v] = x.all[v][:0]
	}
}

// put takes the bytes of a buffer's spans.
func (x *index) put(spans []span, offset int64) {
	for _, s := range spans {
		taken := stretch{offset + s.low, offset + s.high}
		lo, hi := int(s.first)+x.width, int(s.end)+x.width
		for l, r := lo, hi; l < r; l, r = l/2, r/2 {
			if l&1 == 1 {
				x.cover(l, taken)
				l++
			}
			if r&1 == 1 {
				r--
				x.cover(r, taken)
			}
		}
		// The nodes covered in part are above one of the outermost leaves.
		for h, l, r := 1, lo/2, (hi-1)/2; l > 0; h, l, r = h+1, l/2, r/2 {
			if !within(l, h, lo, hi) {
				x.all[l] = unite(x.all[l], taken)
			}
			if r != l && !within(r, h, lo, hi) {
				x.all[r] = unite(x.all[r], taken)
			}
		}
	}
}

func (x *index) cover(node int, taken stretch) {
	x.covers[node] = unite(x.covers[node], taken)
	x.all[node] = unite(x.all[node], taken)
}

// within says whether the leaves of a node of some height are all in [lo, hi).
func within(node, height, lo, hi int) bool {
	return lo <= node<<height && (node+1)<<height <= hi
}

// unite adds a stretch to a union of stretches, all apart and ascending.
func unite(list []stretch, s stretch) []stretch {
	lo, hi := 0, len(list)
	for lo < hi { // the first that ends at or behind the beginning of s
		if mid := int(uint(lo+hi) / 2); list[mid].hi < s.lo {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	end := lo
	for end < len(list) && list[end].lo <= s.hi {
		s.lo, s.hi = min(s.lo, list[end].lo), max(s.hi, list[end].hi)
		end++
	}
	if end > lo {
		list[lo] = s
		if end > lo+1 {
			list = append(list[:lo+1], list[end:]...)
		}
		return list
	}
	return slices.Insert(list, lo, s)
}

// gather collects the lists that speak of the sections of the spans.
func (x *index) gather(spans []span) {
	x.cursors = x.cursors[:0]
	add := func(list []stretch, s span) {
		if len(list) > 0 {
			x.cursors = append(x.cursors, cursor{list: list, low: s.low, high: s.high})
		}
	}
	for _, s := range spans {
		lo, hi := int(s.first)+x.width, int(s.end)+x.width
		for l, r := lo, hi; l < r; l, r = l/2, r/2 {
			if l&1 == 1 {
				add(x.all[l], s)
				l++
			}
			if r&1 == 1 {
				r--
				add(x.all[r], s)
			}
		}
		// What covers a node covers the nodes below it.
		for h, l, r := 1, lo/2, (hi-1)/2; l > 0; h, l, r = h+1, l/2, r/2 {
			if !within(l, h, lo, hi) {
				add(x.covers[l], s)
			}
			if r != l && !within(r, h, lo, hi) {
				add(x.covers[r], s)
			}
		}
	}
}

// find returns an offset for a buffer of these spans.
func (x *index) find(spans []span, size, align int64, where Placement) int64 {
	x.gather(spans)
	x.heapify()
	var top int64
	best, bestGap := int64(-1), int64(math.MaxInt64)
	for len(x.cursors) > 0 {
		c := &x.cursors[0]
		// The largest offset with room under the next stretch; in bytes, the gap
		// reaches from top to room + size.
		if room, at := c.lowest, roundUp(top, align); room >= at {
			if where == First {
				return at
			}
			if gap := room + size - top; gap < bestGap {
				if gap == size {
					return at // none is smaller, and those above come later
				}
				best, bestGap = at, gap
			}
		}
		top = max(top, c.list[0].hi-c.low)
		x.next(top)
	}
	if best >= 0 {
		return best
	}
	return roundUp(top, align)
}

// heapify puts the cursors in heap order, that of the lowest stretch first.
func (x *index) heapify() {
	for k := range x.cursors {
		c := &x.cursors[k]
		c.lowest = c.list[0].lo - c.high
	}
	for k := len(x.cursors)/2 - 1; k >= 0; k-- {
		x.sink(k)
	}
}

// next moves the first cursor on to a stretch that reaches above top.
func (x *index) next(top int64) {
	c := &x.cursors[0]
	list := c.list[1:]
	for len(list) > 0 && list[0].hi-c.low <= top {
		list = list[1:]
	}
	if len(list) > 0 {
		c.list, c.lowest = list, list[0].lo-c.high
	} else {
		last := len(x.cursors) - 1
		x.cursors[0] = x.cursors[last]
		x.cursors = x.cursors[:last]
	}
	x.sink(0)
}

func (x *index) sink(k int) {
	heap := x.cursors
	if k >= len(heap) {
		return
	}
	c := heap[k]
	for {
		child := 2*k + 1
		if child >= len(heap) {
			break
		}
		if child+1 < len(heap) && heap[child+1].lowest < heap[child].lowest {
			child++
		}
		if heap[child].lowest >= c.lowest {
			break
		}
		heap[k] = heap[child]
		k = child
	}
	heap[k] = c
}
