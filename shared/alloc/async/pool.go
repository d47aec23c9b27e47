package async

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/firstfit"
	"tideline/shared/alloc/internal/tiling"
	"tideline/shared/alloc/stream"
)

const (
	none = tiling.None
	// Granule is the multiple of block sizes below a page, in bytes. A choice.
	Granule = 512
	// DefaultPage is the driver's page in bytes. A choice.
	DefaultPage = 2 << 20
	// KeepAll as Threshold keeps everything.
	KeepAll = math.MaxInt64
)

// VirtualMemory is a driver that sets addresses aside and puts memory behind
// parts of them.
type VirtualMemory interface {
	Reserve(bytes int64) (addr uint64, ok bool)
	Unreserve(addr uint64, bytes int64)
	Map(addr uint64, bytes int64) bool
	Unmap(addr uint64, bytes int64)
}

// Options configure a pool. The zero value is the driver's default.
type Options struct {
	Name      string // "" means gpu_async_0
	Limit     int64  // most bytes to reserve; 0 means none
	Threshold int64  // release threshold in bytes; KeepAll for none
	Page      int64  // a power of two of at least 512; 0 means DefaultPage
	Prime     int64  // bytes allocated and freed at once, to begin with

	NoEvents        bool // never follow event dependencies
	NoOpportunistic bool // never use what happens to be done
	NoInternal      bool // never make a stream wait for another

	// Order is the state of the streams; nil means that all work is on one.
	Order *stream.Order
	// OnWait hears of waits between streams: by waits for on.
	OnWait func(by, on stream.ID)
	// OnStall hears when a request that would fail waits for the device.
	OnStall  func()
	Observer alloc.Observer
}

// Deterministic switches off the reuse that depends on timing, as TensorFlow
// does when ops have to be deterministic.
func (o Options) Deterministic() Options {
	o.NoOpportunistic, o.NoInternal = true, true
	return o
}

// Pool is one pool. It is not safe for concurrent use.
//
// Invariants: chunks tile what is mapped; a shared page's chunks are a run of
// their own; other chunks are whole pages; a free chunk is in the list of its
// owner, in holes if it lies in a shared page and has not all of it, else in
// runs.
type Pool struct {
	table   tiling.Table
	lists   []*freeList // 0 is for anyone
	current uint32
	last    stream.ID
	pages   []sharedPage // entry 0 is unused: Flags 0 means no shared page
	spare   []uint32
	mixed   []uint32 // shared pages that are free, but not for the same streams

	o      Options
	vm     VirtualMemory
	places []place
	nextID int64

	picks   []pick
	scratch []uint32

	failure        *Failure
	stats          alloc.Stats
	used, usedHigh int64 // blocks, rounded
	stalls, remaps int64
}

// freeList is what one stream freed.
type freeList struct {
	stream stream.ID
	runs   firstfit.Set // whole pages
	holes  firstfit.Set // parts of shared pages
}

type sharedPage struct {
	addr  uint64
	live  int32 // blocks in use
	noted bool  // in mixed
}

// place is a range of addresses set aside.
type place struct {
	addr       uint64
	size, used int64
}

var _ alloc.Allocator = (*Pool)(nil)

// anyone owns memory that every stream is behind of.
const anyone = 0

// New returns a pool over a driver.
func New(vm VirtualMemory, o Options) (*Pool, error) {
	if o.Name == "" {
		o.Name = "gpu_async_0"
	}
	if o.Page == 0 {
		o.Page = DefaultPage
	}
	if o.Observer == nil {
		o.Observer = alloc.NoObserver{}
	}
	switch {
	case vm == nil:
		return nil, errors.New("async pool: needs a driver that maps pages")
	case o.Page < Granule || bits.OnesCount64(uint64(o.Page)) != 1:
		return nil, fmt.Errorf("async pool: the page is %d, expected a power of two of at least %d", o.Page, Granule)
	case o.Limit < 0 || o.Threshold < 0 || o.Prime < 0:
		return nil, fmt.Errorf("async pool: limit %d, threshold %d and prime %d must not be negative", o.Limit, o.Threshold, o.Prime)
	}
	p := &Pool{table: tiling.New(), lists: []*freeList{{}}, pages: make([]sharedPage, 1), o: o, vm: vm, nextID: 1}
	p.stats.Limit = o.Limit
	p.UseStream(0)
	if o.Prime > 0 {
		b, ok := p.Allocate(alloc.Request{Bytes: o.Prime})
		if !ok {
			return nil, fmt.Errorf("async pool: no %d bytes to prime it with", o.Prime)
		}
		if err := p.Free(b.Address); err != nil {
			return nil, err
		}
		p.Synchronize()
		p.ClearStats()
	}
	return p, nil
}

// Name implements alloc.Allocator.
func (p *Pool) Name() string { return p.o.Name }

// Limit implements alloc.Allocator.
func (p *Pool) Limit() int64 { return p.o.Limit }

// UseStream sets the stream of the calls that follow; at first it is 0.
func (p *Pool) UseStream(s stream.ID) {
	if p.o.Order == nil { // all on one: nothing to tell apart
		p.current = anyone
		return
	}
	if p.current != anyone && s == p.last {
		return
	}
	p.last = s
	for i, l := range p.lists {
		if i != anyone && l.stream == s {
			p.current = uint32(i)
			return
		}
	}
	p.lists = append(p.lists, &freeList{stream: s})
	p.current = uint32(len(p.lists) - 1)
}

// Allocate implements alloc.Allocator. The statistics count what was asked for,
// the block tells what it takes. Alignments above 512 are heard for requests of
// a page and more only.
func (p *Pool) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes == 0 {
		return alloc.Block{}, false
	}
	if r.Bytes < 0 || r.Bytes > math.MaxInt64/4 {
		p.fail(r.Bytes)
		return alloc.Block{}, false
	}
	h := p.find(r.Bytes)
	if h == none {
		p.stall()
		if h = p.find(r.Bytes); h == none {
			p.fail(r.Bytes)
			return alloc.Block{}, false
		}
	}
	c := &p.table.Chunks[h]
	c.ID, c.Requested = p.nextID, r.Bytes
	p.nextID++
	p.used += c.Size
	p.usedHigh = max(p.usedHigh, p.used)
	s := &p.stats
	s.NumAllocs++
	s.InUse += r.Bytes
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, r.Bytes)
	return alloc.Block{Address: c.Addr, Size: c.Size, Requested: r.Bytes, ID: c.ID}, true
}

func (p *Pool) find(bytes int64) uint32 {
	if bytes >= p.o.Page {
		return p.whole((bytes + p.o.Page - 1) / p.o.Page)
	}
	return p.small((bytes + Granule - 1) &^ (Granule - 1))
}

// level says how far memory of other streams is considered.
type level uint8

const (
	own      level = iota // the stream's own, and what is anyone's
	ready                 // of others, in order already or done
	internal              // of others, after a wait
	numLevels
)

// usable reports whether a free chunk may serve the present stream at a level.
func (p *Pool) usable(c *tiling.Chunk, l level) bool {
	if c.Owner == anyone || c.Owner == p.current || l == internal {
		return true
	}
	if l == own {
		return false
	}
	on := p.lists[c.Owner].stream
	return !p.o.NoEvents && p.o.Order.Behind(p.last, on, c.Mark) || !p.o.NoOpportunistic && p.o.Order.Done(on, c.Mark)
}

// allowed reports whether the options let a level be tried at all.
func (p *Pool) allowed(l level) bool {
	switch l {
	case ready:
		return len(p.lists) > 2 && (!p.o.NoEvents || !p.o.NoOpportunistic)
	case internal:
		return len(p.lists) > 2 && !p.o.NoInternal
	default:
		return true
	}
}

// small serves a part of a page: the lowest hole, else a page that is then
// shared, at each level; else a new page.
func (p *Pool) small(size int64) uint32 {
	for l := range numLevels {
		if !p.allowed(l) {
			continue
		}
		if h := p.hole(size, l); h != none {
			return p.cutHole(h, size, l)
		}
		p.picks = p.picks[:0]
		if p.gather(1, l) >= 1 {
			return p.share(p.commit(1, 0), size)
		}
	}
	p.picks = p.picks[:0]
	h := p.commit(1, 1)
	if h == none {
		return none
	}
	return p.share(h, size)
}

// hole is the lowest fitting hole at a level.
func (p *Pool) hole(size int64, l level) uint32 {
	if l == own {
		h := p.lists[anyone].holes.First(size)
		if p.current != anyone {
			if mine := p.lists[p.current].holes.First(size); h == none || mine != none && p.table.Chunks[mine].Addr < p.table.Chunks[h].Addr {
				h = mine
			}
		}
		return h
	}
	best := none
	for i, x := range p.lists {
		if i == anyone || uint32(i) == p.current {
			continue
		}
		x.holes.Each(func(h uint32) bool {
			c := &p.table.Chunks[h]
			if c.Size < size || !p.usable(c, l) {
				return true
			}
			if best == none || c.Addr < p.table.Chunks[best].Addr {
				best = h
			}
			return false
		})
	}
	return best
}

func (p *Pool) cutHole(h uint32, size int64, l level) uint32 {
	c := &p.table.Chunks[h]
	if l == internal {
		p.wait(p.lists[c.Owner].stream)
	}
	x, set := c.Flags, &p.lists[c.Owner].holes
	addr := c.Addr
	if c.Size == size {
		set.Remove(addr)
	} else {
		rest := p.table.Split(h, size)
		n := &p.table.Chunks[rest]
		set.Change(addr, n.Addr, n.Size, rest)
	}
	p.pages[x].live++
	return h
}

// share makes a whole page, which is in no list, a shared one and cuts size
// bytes off its front.
func (p *Pool) share(h uint32, size int64) uint32 {
	c := &p.table.Chunks[h]
	if c.Prev != none {
		p.table.Cut(c.Prev)
	}
	p.table.Cut(h)
	x := p.newPage()
	p.pages[x] = sharedPage{addr: c.Addr, live: 1}
	c.Flags = x
	if c.Size > size {
		rest := p.table.Split(h, size)
		n := &p.table.Chunks[rest]
		p.lists[n.Owner].holes.Insert(n.Addr, n.Size, rest)
	}
	return h
}

func (p *Pool) newPage() uint32 {
	if n := len(p.spare); n > 0 {
		x := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return x
	}
	p.pages = append(p.pages, sharedPage{})
	return uint32(len(p.pages) - 1)
}

// whole serves n pages: free ones of every level in turn, one run if there is
// one, and new ones for what is missing.
func (p *Pool) whole(n int64) uint32 {
	p.picks = p.picks[:0]
	got := int64(0)
	for l := own; l < numLevels && got < n; l++ {
		if !p.allowed(l) {
			continue
		}
		if h := p.oneRun(n, l); h != none {
			p.picks = append(p.picks[:0], pick{run: h, wait: l == internal})
			return p.commit(n, 0)
		}
		got += p.gather(n-got, l)
	}
	return p.commit(n, max(0, n-got))
}

func (p *Pool) wait(on stream.ID) {
	p.o.Order.Wait(p.last, on)
	if p.o.OnWait != nil {
		p.o.OnWait(p.last, on)
	}
}

// Free implements alloc.Allocator: the block is freed in the order of the
// present stream.
func (p *Pool) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := p.table.At(addr)
	if h == none || !p.table.Chunks[h].InUse() {
		return fmt.Errorf("allocator %s: %x was asked to be freed, but no block in use starts there", p.o.Name, addr)
	}
	c := &p.table.Chunks[h]
	p.stats.InUse -= c.Requested
	p.used -= c.Size
	c.ID, c.Owner, c.Mark = 0, p.current, 0
	if p.o.Order != nil {
		c.Mark = p.o.Order.Mark(p.last)
	}
	if c.Flags == 0 {
		p.releaseRun(h)
		return nil
	}
	p.pages[c.Flags].live--
	p.releaseHole(h)
	return nil
}

// Stats implements alloc.Allocator. InUse counts what was asked for; LargestFree
// is what could be put together from whole pages, or the largest hole.
func (p *Pool) Stats() alloc.Stats {
	s := p.stats
	s.PeakAllocated = s.PeakInUse
	s.NextRegion = p.o.Page
	var whole int64
	for _, l := range p.lists {
		whole += l.runs.Bytes()
		s.LargestFree = max(s.LargestFree, l.holes.Largest())
	}
	s.LargestFree = max(s.LargestFree, whole)
	return s
}

// Attributes are the pool's attributes, as the driver tells them. Bytes.
type Attributes struct {
	ReservedCurrent, ReservedHigh int64
	UsedCurrent, UsedHigh         int64
	ReleaseThreshold              int64
}

// Attributes are those of this instant.
func (p *Pool) Attributes() Attributes {
	return Attributes{p.stats.Pool, p.stats.PeakPool, p.used, p.usedHigh, p.o.Threshold}
}

// Stalls is how often a request that would have failed waited for the device,
// Remaps how many pages were mapped elsewhere to serve a request.
func (p *Pool) Stalls() int64 { return p.stalls }

// Remaps is how many pages were mapped elsewhere to serve a request.
func (p *Pool) Remaps() int64 { return p.remaps }

// ClearStats implements alloc.Allocator.
func (p *Pool) ClearStats() {
	s := &p.stats
	s.NumAllocs, s.LargestAlloc = 0, 0
	s.PeakInUse, s.PeakPool = s.InUse, s.Pool
	p.usedHigh = p.used
}

// ChunkMap implements alloc.Allocator; what is mapped in one run is a region.
func (p *Pool) ChunkMap() event.ChunkMap { return p.table.Map() }

// Close implements alloc.Allocator.
func (p *Pool) Close() {
	for _, r := range p.table.Map() {
		p.vm.Unmap(r.Address, r.Size)
		p.o.Observer.RegionGiven(r.Address, r.Size)
	}
	for _, x := range p.places {
		p.vm.Unreserve(x.addr, x.size)
	}
	*p = Pool{
		table: tiling.New(), lists: []*freeList{{}}, pages: make([]sharedPage, 1), o: p.o, vm: p.vm, nextID: p.nextID,
		stats: alloc.Stats{Limit: p.o.Limit},
	}
	p.UseStream(0)
}
