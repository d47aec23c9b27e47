package bfc

// Partitioning: by address, lower-owned chunks, at most one central gap,
// upper-owned chunks. An end reuses its own holes first, then carves the gap.

func (a *Allocator) findPartitioned(w *want) uint32 {
	h := a.search(w)
	if h != none {
		a.unbin(h)
		return a.reuse(h, w)
	}
	if a.gap == none || !fits(&a.chunks[a.gap], w) {
		return none
	}
	h = a.gap
	a.gap = none
	if w.end == tagUpper {
		return a.carveHigh(h, w, true)
	}
	exact := a.o.Partition.Generation == Gen2
	return a.carveLow(h, w, exact)
}

// reuse cuts what w wants out of hole h of its own end.
func (a *Allocator) reuse(h uint32, w *want) uint32 {
	p := a.o.Partition
	if w.end == tagLower {
		return a.carveLow(h, w, p.Generation == Gen2 && p.Lower.Split == SplitExact)
	}
	if p.Generation == Gen1 || p.Upper.Split == SplitExact {
		return a.carveHigh(h, w, true)
	}
	c := &a.chunks[h]
	if !a.worthSplitting(c.size-pad(c.addr, w.align), w.size) {
		return a.splitPad(h, w.align)
	}
	return a.carveHigh(h, w, false)
}

// carveLow takes the lowest aligned part of h. The rest keeps the tag; a
// prefix before an aligned start becomes a hole of the lower end.
func (a *Allocator) carveLow(h uint32, w *want, exact bool) uint32 {
	c := &a.chunks[h]
	t := c.tag
	c.tag = tagLower
	if p := pad(c.addr, w.align); p > 0 {
		rest := a.split(h, p)
		a.bin(h)
		h = rest
	}
	size := a.chunks[h].size
	if size > w.size && (exact || a.worthSplitting(size, w.size)) {
		rest := a.split(h, w.size)
		a.chunks[rest].tag = t
		a.bin(rest)
	}
	return h
}

// carveHigh takes the highest aligned part of h. What lies below keeps the
// tag. What lies above an aligned end becomes a hole of the upper end, if exact
// or worth a chunk.
func (a *Allocator) carveHigh(h uint32, w *want, exact bool) uint32 {
	c := &a.chunks[h]
	start := (c.addr + c.size - w.size) &^ (w.align - 1)
	if below := start - c.addr; below > 0 {
		part := a.split(h, below)
		a.bin(h)
		h = part
	}
	a.chunks[h].tag = tagUpper
	if size := a.chunks[h].size; size > w.size && (exact || a.worthSplitting(size, w.size)) {
		a.bin(a.split(h, w.size))
	}
	return h
}

// retag makes a freed chunk at the boundary part of the gap.
func (a *Allocator) retag(h uint32) {
	c := &a.chunks[h]
	beside := c.next
	if c.tag == tagUpper {
		beside = c.prev
	}
	if beside == none || a.chunks[beside].tag != c.tag {
		c.tag = tagGap
	}
}
