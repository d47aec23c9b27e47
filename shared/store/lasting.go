package store

import (
	"math/bits"
	"slices"
)

// ranks is how many lengths of life are told apart: from 1<<r changes of the
// pool on, up to twice as many.
const ranks = 32

// seenShare is which part of the most that a pool ever held a block must have
// to be listed: less is too thin for any picture of the whole.
const seenShare = 1024

// lasting lists the blocks that ended and are large enough to be seen singly,
// by how long they lived and, within a rank, in the order of their ends. So
// those of a window that lived for some time are found without a look at the
// others: a block of rank r that lived in it ends in it, or within 2<<r changes
// after. A block is listed at its end only, and costs four bytes.
type lasting struct {
	least int64 // bytes: smaller ones are not listed
	count int
	by    [ranks]vector[int32] // allocations
	// The end of the first block of each chunk of a list.
	starts [ranks][]uint32
	// The large ones that had not ended after some number of points, by age.
	open   []int32
	openAt int
}

// list puts a block that just ended into its place. It is asked for blocks of
// at least lasting.least bytes only.
func (p *Pool) list(alloc int) {
	x := &p.lasting
	end := *p.lives.end.at(alloc)
	r := (bits.Len32(end-1-uint32(p.allocs.at(birthCol, alloc))) - 1) & (ranks - 1)
	if x.by[r].n&(vectorLen-1) == 0 {
		x.starts[r] = append(x.starts[r], end)
	}
	x.by[r].push(int32(alloc))
	if x.count++; x.count&255 == 0 {
		p.raiseLeast()
	}
}

// raiseLeast makes the least that is listed a share of the most ever held.
func (p *Pool) raiseLeast() {
	if p.inUse.n > 0 {
		p.lasting.least = max(p.lasting.least, p.inUse.extent(0, p.inUse.n).hi/seenShare)
	}
}

// openBlocks are the blocks not freed yet that may be seen singly, by age: no
// more than seenShare.
func (p *Pool) openBlocks() []int32 {
	x := &p.lasting
	if x.openAt == p.inUse.n {
		return x.open
	}
	p.raiseLeast()
	x.open, x.openAt = x.open[:0], p.inUse.n
	for i := range p.blocks.n {
		// A vacant place still names the block that was there last.
		if h := p.blocks.at(i); h.size >= x.least && *p.lives.end.at(int(h.alloc)) == 0 {
			x.open = append(x.open, h.alloc)
		}
	}
	slices.Sort(x.open)
	return x.open
}

// ended are the places in rank r's list of those that may have lived between
// the first a and the first b points.
func (p *Pool) ended(r, a, b int) (from, to int) {
	if p.lasting.by[r].n == 0 {
		return 0, 0
	}
	return p.endedAfter(r, a), p.endedAfter(r, b+2<<r)
}

// endedAfter is the first place in rank r's list with an end after n points:
// the chunk first, as ends lie far apart in memory.
func (p *Pool) endedAfter(r, n int) int {
	starts, list := p.lasting.starts[r], &p.lasting.by[r]
	lo, hi := 0, len(starts)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); int(starts[mid]) <= n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 {
		return 0
	}
	lo, hi = (lo-1)<<vectorBits+1, min(lo<<vectorBits, list.n)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); int(*p.lives.end.at(int(*list.at(mid)))) <= n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (x *lasting) bytes() int64 {
	n := 4 * int64(cap(x.open))
	for i := range x.by {
		n += x.by[i].bytes(4) + 4*int64(cap(x.starts[i]))
	}
	return n
}
