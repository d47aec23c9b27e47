// Package reference is the BFC allocator once more, written to be read: every
// region is a plain list of chunks in address order, and every search looks at
// all of them. It exists as an oracle for package bfc, with which it shares no
// code, and as the yardstick that bfc's speed is measured against.
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
	Addr  uint64
	Size  int64
	InUse bool
}

// Region is memory of the driver, tiled by its chunks.
type Region struct {
	Addr   uint64
	Size   int64
	Chunks []Chunk
}

// Allocator is the allocator.
type Allocator struct {
	o       Options
	driver  Driver
	next    int64
	waste   int64
	Regions []Region // ascending by address
	Pool    int64
	InUse   int64
	Peak    int64
}

const granule = 256

func round(n int64) int64 { return (n + granule - 1) / granule * granule }

// New returns an empty allocator.
func New(d Driver, o Options) *Allocator {
	a := &Allocator{o: o, driver: d, next: round(o.Limit), waste: 128 << 20}
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
	var in *Region
	best := -1
	for r := range a.Regions {
		for i, c := range a.Regions[r].Chunks {
			if c.InUse || c.Size < size+padding(c.Addr, align) {
				continue
			}
			if in == nil || c.Size < in.Chunks[best].Size {
				in, best = &a.Regions[r], i
			}
		}
	}
	if in == nil {
		return 0, false
	}
	if p := padding(in.Chunks[best].Addr, align); p > 0 {
		in.split(best, p)
		best++
	}
	if rest := in.Chunks[best].Size - size; rest >= size || rest >= a.waste {
		in.split(best, size)
	}
	c := &in.Chunks[best]
	c.InUse = true
	a.InUse += c.Size
	a.Peak = max(a.Peak, a.InUse)
	return c.Addr, true
}

func padding(addr uint64, align int64) int64 {
	return int64((uint64(align) - addr%uint64(align)) % uint64(align))
}

// split cuts chunk i after size bytes into itself and a free rest.
func (r *Region) split(i int, size int64) {
	c := r.Chunks[i]
	r.Chunks = append(r.Chunks, Chunk{})
	copy(r.Chunks[i+1:], r.Chunks[i:])
	r.Chunks[i].Size = size
	r.Chunks[i+1] = Chunk{Addr: c.Addr + uint64(size), Size: c.Size - size}
}

// joinFree merges every run of free chunks.
func (r *Region) joinFree() {
	out := r.Chunks[:1]
	for _, c := range r.Chunks[1:] {
		if last := &out[len(out)-1]; !last.InUse && !c.InUse {
			last.Size += c.Size
			continue
		}
		out = append(out, c)
	}
	r.Chunks = out
}

// Free takes a block back; ok is false when no block starts at addr.
func (a *Allocator) Free(addr uint64) bool {
	for r := range a.Regions {
		for i := range a.Regions[r].Chunks {
			c := &a.Regions[r].Chunks[i]
			if c.Addr == addr && c.InUse {
				c.InUse = false
				a.InUse -= c.Size
				a.Regions[r].joinFree()
				return true
			}
		}
	}
	return false
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
	if at > 0 && a.driver.Joins() {
		if r := &a.Regions[at-1]; r.Addr+uint64(r.Size) == addr {
			r.Size += size
			r.Chunks = append(r.Chunks, Chunk{Addr: addr, Size: size})
			r.joinFree()
			return
		}
	}
	a.Regions = append(a.Regions, Region{})
	copy(a.Regions[at+1:], a.Regions[at:])
	a.Regions[at] = Region{addr, size, []Chunk{{Addr: addr, Size: size}}}
}

// collect gives all wholly free regions back if that can make room for size.
func (a *Allocator) collect(size int64) bool {
	if !a.o.Collect {
		return false
	}
	idle := func(r Region) bool { return len(r.Chunks) == 1 && !r.Chunks[0].InUse }
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
		a.driver.Give(r.Addr, r.Size)
		a.Pool -= r.Size
	}
	a.Regions = kept
	return true
}
