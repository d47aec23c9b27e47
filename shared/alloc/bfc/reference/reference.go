// Package reference is the BFC allocator once more, written to be read: chunks
// are linked in address order, the free ones are in one tree by size and
// address, the blocks in use are in a map. It exists as an oracle for package
// bfc, with which it shares no code, and as the yardstick that bfc's speed is
// measured against: what the plain structures cost.
//
// It covers growth, backpedalling, joined regions, collection and alignment.
// It leaves out what is about handles or waiting: dumps, stamped frees,
// partitioning and the retry helper.
package reference

// Driver gives and takes regions.
type Driver interface {
	Take(alignment, bytes int64) (addr uint64, received int64, ok bool)
	Give(addr uint64, bytes int64)
	Joins() bool
}

// Options configure the allocator.
type Options struct {
	Limit         int64
	Growth        bool
	Collect       bool    // give free regions back before failing
	Fragmentation float64 // above 0: the split limit as a fraction of Limit
	Classic       bool    // ignore alignments
}

// Chunk is one piece of a region.
type Chunk struct {
	Addr       uint64
	Size       int64
	InUse      bool
	prev, next *Chunk // by address, inside the region
	node              // of the tree, while it is free
}

// Region is memory of the driver, tiled by its chunks.
type Region struct {
	Addr  uint64
	Size  int64
	first *Chunk
}

// Chunks are the region's chunks in address order.
func (r *Region) Chunks() (list []Chunk) {
	for c := r.first; c != nil; c = c.next {
		list = append(list, *c)
	}
	return list
}

// Allocator is the allocator.
type Allocator struct {
	o       Options
	driver  Driver
	next    int64
	waste   int64
	Regions []Region // ascending by address
	blocks  map[uint64]*Chunk
	free    *Chunk // the tree's root
	Pool    int64
	InUse   int64
	Peak    int64
}

const granule = 256

func round(n int64) int64 { return (n + granule - 1) / granule * granule }

// New returns an empty allocator.
func New(d Driver, o Options) *Allocator {
	a := &Allocator{o: o, driver: d, blocks: map[uint64]*Chunk{}, next: round(o.Limit), waste: 128 << 20}
	if o.Growth {
		a.next = round(min(o.Limit, 2<<20))
	}
	if o.Fragmentation > 0 {
		a.waste = int64(o.Fragmentation * float64(o.Limit))
	}
	return a
}

// Allocate returns the address of a block for bytes; ok is false when there is
// no room. One attempt is made.
func (a *Allocator) Allocate(bytes, alignment int64) (addr uint64, ok bool) {
	if bytes <= 0 {
		return 0, false
	}
	size, align := round(bytes), max(granule, alignment)
	honoured := align
	if a.o.Classic {
		honoured = granule
	}
	if addr, ok = a.find(size, honoured); ok {
		return addr, true
	}
	if a.extend(size, align) {
		if addr, ok = a.find(size, honoured); ok {
			return addr, true
		}
	}
	if a.collect(size) && a.extend(size, align) {
		return a.find(size, honoured)
	}
	return 0, false
}

// find takes the smallest free chunk that fits, the lowest of equals.
func (a *Allocator) find(size, align int64) (uint64, bool) {
	var c *Chunk
	each(a.free, size, func(x *Chunk) bool {
		if x.Size < size+padding(x.Addr, align) {
			return true
		}
		c = x
		return false
	})
	if c == nil {
		return 0, false
	}
	a.free = remove(a.free, c)
	if p := padding(c.Addr, align); p > 0 {
		rest := c.split(p)
		a.free = insert(a.free, c)
		c = rest
	}
	if rest := c.Size - size; rest >= size || rest >= a.waste {
		a.free = insert(a.free, c.split(size))
	}
	c.InUse = true
	a.blocks[c.Addr] = c
	a.InUse += c.Size
	a.Peak = max(a.Peak, a.InUse)
	return c.Addr, true
}

func padding(addr uint64, align int64) int64 {
	return int64((uint64(align) - addr%uint64(align)) % uint64(align))
}

// split cuts c after size bytes into itself and a free rest, which it returns.
func (c *Chunk) split(size int64) *Chunk {
	rest := &Chunk{Addr: c.Addr + uint64(size), Size: c.Size - size, prev: c, next: c.next}
	if rest.next != nil {
		rest.next.prev = rest
	}
	c.Size, c.next = size, rest
	return rest
}

// merge makes c of itself and the chunk behind it.
func (c *Chunk) merge() {
	c.Size += c.next.Size
	if c.next = c.next.next; c.next != nil {
		c.next.prev = c
	}
}

// put merges c, which is free, with its free neighbours and puts the result
// into the tree.
func (a *Allocator) put(c *Chunk) {
	if n := c.next; n != nil && !n.InUse {
		a.free = remove(a.free, n)
		c.merge()
	}
	if p := c.prev; p != nil && !p.InUse {
		a.free = remove(a.free, p)
		p.merge()
		c = p
	}
	a.free = insert(a.free, c)
}

// Free takes a block back; ok is false when no block starts at addr.
func (a *Allocator) Free(addr uint64) bool {
	c, ok := a.blocks[addr]
	if !ok {
		return false
	}
	delete(a.blocks, addr)
	c.InUse = false
	a.InUse -= c.Size
	a.put(c)
	return true
}

// extend asks the driver for a region.
func (a *Allocator) extend(size, align int64) bool {
	// A pool above the limit leaves "less than nothing", which upstream's
	// unsigned arithmetic takes for everything.
	available := uint64(a.o.Limit-a.Pool) / granule * granule
	if uint64(size) > available {
		return false
	}
	grown := false
	for size > a.next {
		a.next *= 2
		grown = true
	}
	ask := int64(min(uint64(a.next), available))
	addr, got, ok := a.driver.Take(align, ask)
	for !ok {
		less := round(int64(float32(ask) * float32(0.9)))
		if less >= ask {
			less = ask - granule
			if a.o.Classic {
				return false // it would ask for ever
			}
		}
		if ask = less; ask < size {
			return false
		}
		addr, got, ok = a.driver.Take(align, ask)
	}
	if !grown {
		a.next *= 2
	}
	a.Pool += got
	a.add(addr, got)
	return true
}

func (a *Allocator) add(addr uint64, size int64) {
	at := 0
	for at < len(a.Regions) && a.Regions[at].Addr < addr {
		at++
	}
	c := &Chunk{Addr: addr, Size: size}
	if at > 0 && a.driver.Joins() {
		if r := &a.Regions[at-1]; r.Addr+uint64(r.Size) == addr {
			last := r.first
			for last.next != nil {
				last = last.next
			}
			last.next, c.prev = c, last
			r.Size += size
			a.put(c)
			return
		}
	}
	a.Regions = append(a.Regions, Region{})
	copy(a.Regions[at+1:], a.Regions[at:])
	a.Regions[at] = Region{addr, size, c}
	a.put(c)
}

// collect gives all wholly free regions back if that can make room for size.
func (a *Allocator) collect(size int64) bool {
	if !a.o.Collect {
		return false
	}
	idle := func(r Region) bool { return r.first.next == nil && !r.first.InUse }
	total := int64(0)
	for _, r := range a.Regions {
		if idle(r) {
			total += r.Size
		}
	}
	if total == 0 || uint64(size) > uint64(a.o.Limit-a.Pool+total) {
		return false
	}
	var kept []Region
	for _, r := range a.Regions {
		if !idle(r) {
			kept = append(kept, r)
			continue
		}
		a.free = remove(a.free, r.first)
		a.driver.Give(r.Addr, r.Size)
		a.Pool -= r.Size
	}
	a.Regions = kept
	return true
}
