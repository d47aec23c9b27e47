package synthetic

import "slices"

// heap is a small best-fit allocator: the smallest hole that fits, the lowest
// of equals, split when larger; a freed block merges with its neighbours.
type heap struct {
	holes []hole // ascending by address
}

type hole struct {
	address uint64
	size    int64
}

func (h *heap) add(address uint64, size int64) { h.free(address, size) }

// alloc returns an address, or 0 when nothing fits.
func (h *heap) alloc(size int64) uint64 {
	best := -1
	for i := range h.holes {
		if s := h.holes[i].size; s >= size && (best < 0 || s < h.holes[best].size) {
			best = i
		}
	}
	if best < 0 {
		return 0
	}
	a := h.holes[best].address
	h.holes[best].address += uint64(size)
	h.holes[best].size -= size
	if h.holes[best].size == 0 {
		h.holes = slices.Delete(h.holes, best, best+1)
	}
	return a
}

func (h *heap) free(address uint64, size int64) {
	i, _ := slices.BinarySearchFunc(h.holes, address, func(x hole, a uint64) int {
		if x.address < a {
			return -1
		}
		return 1
	})
	below := i > 0 && h.holes[i-1].address+uint64(h.holes[i-1].size) == address
	above := i < len(h.holes) && address+uint64(size) == h.holes[i].address
	switch {
	case below && above:
		h.holes[i-1].size += size + h.holes[i].size
		h.holes = slices.Delete(h.holes, i, i+1)
	case below:
		h.holes[i-1].size += size
	case above:
		h.holes[i].address = address
		h.holes[i].size += size
	default:
		h.holes = slices.Insert(h.holes, i, hole{address, size})
	}
}
