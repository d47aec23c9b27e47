package rmm

import (
	"errors"
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/internal/bestfit"
	"tideline/shared/alloc/internal/tiling"
	"tideline/shared/alloc/stream"
)

const none = tiling.None

// PoolOptions configure a pool.
type PoolOptions struct {
	Name    string // "" means rmm_pool
	Initial int64  // bytes taken at once; a multiple of 256
	Maximum int64  // most bytes to take from upstream; a multiple of 256; 0: none
	// Order is told of every wait; nil where nobody keeps it.
	Order *stream.Order
	// OnWait hears of every wait: by waits for what was freed on on.
	OnWait   func(by, on stream.ID)
	Observer alloc.Observer
}

// Pool is a coalescing best-fit pool. It is not safe for concurrent use.
//
// Invariants: the chunks of an upstream block, which are linked, tile it; a
// free chunk is in the list that owns it; no free neighbours in one list, and
// none in one upstream block, are apart.
type Pool struct {
	table   tiling.Table
	lists   []*list // in order of first use
	current uint32  // the list of the calls that follow
	last    stream.ID

	o       PoolOptions
	sub     alloc.SubAllocator
	blocks  []upstream // in the order they were taken
	nextID  int64
	failure string
	stats   alloc.Stats
}

// list is the free list of one stream.
type list struct {
	stream stream.ID
	set    bestfit.Set
	chunks []uint32 // scratch of a merge
}

type upstream struct {
	addr uint64
	size int64
}

var _ alloc.Allocator = (*Pool)(nil)

// NewPool takes the initial block from upstream.
func NewPool(sub alloc.SubAllocator, o PoolOptions) (*Pool, error) {
	if o.Name == "" {
		o.Name = "rmm_pool"
	}
	if o.Observer == nil {
		o.Observer = alloc.NoObserver{}
	}
	switch {
	case sub == nil:
		return nil, errors.New("rmm pool: no driver to take blocks from")
	case o.Initial < 0 || o.Initial%Granule != 0:
		return nil, fmt.Errorf("rmm pool: the initial size %d is no multiple of %d", o.Initial, Granule)
	case o.Maximum < 0 || o.Maximum%Granule != 0:
		return nil, fmt.Errorf("rmm pool: the maximum size %d is no multiple of %d", o.Maximum, Granule)
	case o.Maximum > 0 && o.Initial > o.Maximum:
		return nil, fmt.Errorf("rmm pool: the initial size %d is above the maximum of %d", o.Initial, o.Maximum)
	}
	p := &Pool{table: tiling.New(), o: o, sub: sub, nextID: 1}
	p.stats.Limit = o.Maximum
	p.UseStream(0)
	if o.Initial > 0 {
		h := p.upstream(o.Initial)
		if h == none {
			return nil, fmt.Errorf("rmm pool: upstream has no %d bytes for the initial size", o.Initial)
		}
		p.insert(h, p.current)
	}
	return p, nil
}

// Name implements alloc.Allocator.
func (p *Pool) Name() string { return p.o.Name }

// Limit implements alloc.Allocator.
func (p *Pool) Limit() int64 { return p.o.Maximum }

// UseStream sets the stream of the calls that follow; at first it is 0.
func (p *Pool) UseStream(s stream.ID) {
	if s == p.last && len(p.lists) > 0 {
		return
	}
	p.last = s
	for i, l := range p.lists {
		if l.stream == s {
			p.current = uint32(i)
			return
		}
	}
	p.lists = append(p.lists, &list{stream: s})
	p.current = uint32(len(p.lists) - 1)
}

// Allocate implements alloc.Allocator. Alignments above 256 are not heard, as
// upstream.
func (p *Pool) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes == 0 {
		return alloc.Block{}, false
	}
	if r.Bytes < 0 || r.Bytes > math.MaxInt64/4 {
		p.fail(r.Bytes, r.Bytes)
		return alloc.Block{}, false
	}
	size := roundUp(r.Bytes)
	h := p.take(p.current, size)
	if h == none {
		h = p.takeElsewhere(size)
	}
	if h == none {
		p.fail(r.Bytes, size)
		return alloc.Block{}, false
	}
	c := &p.table.Chunks[h]
	c.Requested = r.Bytes
	c.ID = p.nextID
	p.nextID++
	s := &p.stats
	s.NumAllocs++
	s.InUse += size
	s.PeakInUse = max(s.PeakInUse, s.InUse)
	s.LargestAlloc = max(s.LargestAlloc, size)
	return alloc.Block{Address: c.Addr, Size: size, Requested: r.Bytes, ID: c.ID}, true
}

// take cuts the best fit out of a list, which keeps the rest: who takes more of
// another stream's has to wait for it again.
func (p *Pool) take(from uint32, size int64) uint32 {
	l := p.lists[from]
	h, at := l.set.First(size)
	if h == none {
		return none
	}
	if p.table.Chunks[h].Size == size {
		l.set.RemoveAt(at)
		return h
	}
	rest := p.table.Split(h, size)
	c := &p.table.Chunks[rest]
	l.set.Change(at, c.Size, c.Addr, rest)
	return h
}

// takeElsewhere searches other streams' lists as they are, then merged into
// the present one's, then takes a new block from upstream.
func (p *Pool) takeElsewhere(size int64) uint32 {
	for i := range p.lists {
		if uint32(i) == p.current || p.lists[i].set.Len() == 0 {
			continue
		}
		if h := p.take(uint32(i), size); h != none {
			p.wait(p.lists[i].stream)
			return h
		}
	}
	for i := range p.lists {
		if uint32(i) == p.current || p.lists[i].set.Len() == 0 {
			continue
		}
		p.wait(p.lists[i].stream)
		p.merge(uint32(i))
		if h := p.take(p.current, size); h != none {
			return h
		}
	}
	h := p.expand(size)
	if h == none {
		return none
	}
	if p.table.Chunks[h].Size > size {
		rest := p.table.Split(h, size)
		p.table.Chunks[h].ID = p.nextID // so that the rest is not merged with it
		p.insert(rest, p.current)
	}
	return h
}

func (p *Pool) wait(on stream.ID) {
	by := p.lists[p.current].stream
	if p.o.Order != nil {
		p.o.Order.Wait(by, on)
	}
	if p.o.OnWait != nil {
		p.o.OnWait(by, on)
	}
}

// merge moves all of a list into the present stream's.
func (p *Pool) merge(from uint32) {
	l := p.lists[from]
	l.chunks = l.chunks[:0]
	l.set.Each(0, func(h uint32) bool {
		l.chunks = append(l.chunks, h)
		return true
	})
	for _, h := range l.chunks {
		c := &p.table.Chunks[h]
		l.set.Remove(c.Size, c.Addr)
		p.insert(h, p.current)
	}
}

// insert puts a free chunk into a list, merged with the neighbours there.
// Neighbours are linked within one upstream block only, so that a block's head
// never joins what lies before it.
func (p *Pool) insert(h, owner uint32) {
	c := &p.table.Chunks[h]
	c.ID, c.Owner = 0, owner
	s := &p.lists[owner].set
	next, prev := p.mergeable(c.Next, owner), p.mergeable(c.Prev, owner)
	switch {
	case prev != none:
		if next != none {
			n := &p.table.Chunks[next]
			s.Remove(n.Size, n.Addr)
			p.table.Merge(h, next)
		}
		b := &p.table.Chunks[prev]
		at := s.Locate(b.Size, b.Addr)
		p.table.Merge(prev, h)
		s.Change(at, b.Size, b.Addr, prev)
	case next != none:
		n := &p.table.Chunks[next]
		at := s.Locate(n.Size, n.Addr)
		p.table.Merge(h, next)
		s.Change(at, c.Size, c.Addr, h)
	default:
		s.Insert(c.Size, c.Addr, h)
	}
}

// mergeable returns h if it is free and in the list owner, else none. While
// lists are merged, chunks still to be moved have the other owner.
func (p *Pool) mergeable(h, owner uint32) uint32 {
	if h == none {
		return none
	}
	if c := &p.table.Chunks[h]; c.InUse() || c.Owner != owner {
		return none
	}
	return h
}

// expand takes a block of at least size bytes from upstream.
func (p *Pool) expand(size int64) uint32 {
	ask := p.growth(size)
	if ask == 0 {
		return none
	}
	for {
		if h := p.upstream(ask); h != none {
			return h
		}
		if ask == size {
			return none
		}
		ask = max(size, roundUp(ask/2))
	}
}

// growth is how much the pool wants to grow for a request: half of what the
// maximum leaves, or as much as it has.
func (p *Pool) growth(size int64) int64 {
	if p.o.Maximum == 0 {
		return max(size, p.stats.Pool)
	}
	left := roundUp(max(0, p.o.Maximum-p.stats.Pool))
	if size > left {
		return 0
	}
	return max(size, roundUp(left/2))
}

func (p *Pool) upstream(bytes int64) uint32 {
	addr, received, ok := p.sub.Take(Granule, bytes)
	if ok && (received < bytes || addr%Granule != 0 || received%Granule != 0) {
		p.sub.Give(addr, received) // nothing that chunks could tile
		ok = false
	}
	if !ok {
		p.o.Observer.RegionRefused(bytes)
		return none
	}
	p.o.Observer.RegionTaken(addr, bytes, received)
	p.blocks = append(p.blocks, upstream{addr, received})
	p.stats.Pool += received
	p.stats.PeakPool = max(p.stats.PeakPool, p.stats.Pool)
	return p.table.Add(addr, received)
}

// Free implements alloc.Allocator; the block goes to the list of the present
// stream, whose work so far must come behind every use of it.
func (p *Pool) Free(addr uint64) error {
	if addr == 0 {
		return nil
	}
	h := p.table.At(addr)
	if h == none || !p.table.Chunks[h].InUse() {
		return fmt.Errorf("allocator %s: %x was asked to be freed, but no block in use starts there", p.o.Name, addr)
	}
	c := &p.table.Chunks[h]
	p.stats.InUse -= c.Size
	if p.o.Order != nil {
		p.o.Order.Mark(p.lists[p.current].stream)
	}
	p.insert(h, p.current)
	return nil
}

// Failure is the text of the last request that failed.
func (p *Pool) Failure() string { return p.failure }

func (p *Pool) fail(bytes, size int64) {
	why := "upstream has no more"
	if p.o.Maximum > 0 && p.growth(size) == 0 {
		why = "maximum pool size exceeded"
	}
	limit := "none"
	if p.o.Maximum > 0 {
		limit = fmt.Sprintf("%d bytes", p.o.Maximum)
	}
	p.failure = fmt.Sprintf("std::bad_alloc: out_of_memory: RMM failure: %s (request %d bytes, pool %d bytes, maximum %s)",
		why, bytes, p.stats.Pool, limit)
	p.o.Observer.Log(alloc.Warning, p.failure)
}

// Stats implements alloc.Allocator.
func (p *Pool) Stats() alloc.Stats {
	s := p.stats
	s.PeakAllocated = s.PeakInUse
	s.NextRegion = p.growth(Granule)
	for _, l := range p.lists {
		s.LargestFree = max(s.LargestFree, l.set.Largest())
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (p *Pool) ClearStats() {
	s := &p.stats
	s.NumAllocs, s.LargestAlloc = 0, 0
	s.PeakInUse, s.PeakPool = s.InUse, s.Pool
}

// ChunkMap implements alloc.Allocator; upstream blocks are the regions.
func (p *Pool) ChunkMap() event.ChunkMap { return p.table.Map() }

// Close implements alloc.Allocator.
func (p *Pool) Close() {
	for _, b := range p.blocks {
		p.sub.Give(b.addr, b.size)
		p.o.Observer.RegionGiven(b.addr, b.size)
	}
	*p = Pool{table: tiling.New(), o: p.o, sub: p.sub, nextID: p.nextID, stats: alloc.Stats{Limit: p.o.Maximum}}
	p.UseStream(0)
}

// Check verifies the invariants. It is for tests.
func (p *Pool) Check() error {
	if err := p.table.Check(); err != nil {
		return err
	}
	free, listed := 0, 0
	for _, b := range p.blocks {
		at := b.addr
		for h := p.table.At(b.addr); h != none; h = p.table.Chunks[h].Next {
			c := &p.table.Chunks[h]
			at += uint64(c.Size)
			if c.InUse() {
				continue
			}
			free++
			if p.mergeable(c.Next, c.Owner) != none {
				return fmt.Errorf("free chunks at %x and behind it are not merged", c.Addr)
			}
		}
		if at != b.addr+uint64(b.size) {
			return fmt.Errorf("the chunks of the upstream block at %x end at %x", b.addr, at)
		}
	}
	for _, l := range p.lists {
		listed += l.set.Len()
	}
	if free != listed {
		return fmt.Errorf("%d chunks are free, %d listed", free, listed)
	}
	return nil
}
