package reference

import (
	"slices"
	"sort"
)

// Driver gives segments and maps pages.
type Driver interface {
	Take(alignment, bytes int64) (addr uint64, received int64, ok bool)
	Give(addr uint64, bytes int64)
	Reserve(bytes int64) (addr uint64, ok bool)
	Unreserve(addr uint64, bytes int64)
	Map(addr uint64, bytes int64) bool
	Unmap(addr uint64, bytes int64)
}

// Streams knows how far the streams have come.
type Streams interface {
	Mark(stream uint64) uint64
	Passed(stream, mark uint64) bool
	Wait(stream, mark uint64)
}

// Options configure the allocator. Sizes in bytes.
type Options struct {
	MaxSplit     int64 // 0: no limit
	NonSplit     int64 // 0: LargeSegment
	LargeSegment int64 // 0: 20 MiB
	Threshold    float64
	Divisions    [16]int64
	Expandable   bool
	Limit        int64 // on what is reserved; 0: none
	Total        int64 // of the device
	Streams      Streams
}

const (
	mib       = 1 << 20
	unlimited = 1<<63 - 1
)

// Block is a piece of a segment.
type Block struct {
	Addr       uint64
	Size       int64
	Stream     uint64
	InUse      bool
	Mapped     bool
	prev, next *Block
	pool       *Pool
	place      *place // nil unless expandable
	born       int
	uses       []uint64
	events     int
	Requested  int64 // of the present use, or of one before
}

type place struct {
	addr uint64
	size int64
	page int64
}

// Pool is the small or the large pool of the default or of a private pool.
type Pool struct {
	small   bool
	noSplit bool
	free    []*Block // by stream, size, address
	dark    []*Block // unmapped, by stream, address
	calls   int
}

// Pair is a private pool, or the default one.
type Pair struct {
	Small, Large Pool
	OnOOM        bool
	released     bool
}

// ID names a private pool; zero is the default.
type ID struct{ A, B uint64 }

type event struct {
	stream, mark uint64
	block        *Block
}

// Allocator is the allocator.
type Allocator struct {
	O        Options
	driver   Driver
	pairs    map[ID]*Pair
	order    []ID // of private pools, ascending
	released []ID // in order
	heads    []*Block
	live     map[uint64]*Block
	events   []event

	Reserved, Allocated, Peak int64
	Retries, OOMs             int
	Oversize                  int // oversize segments taken
}

// New returns an empty allocator.
func New(d Driver, o Options) *Allocator {
	a := &Allocator{O: o, driver: d, live: map[uint64]*Block{}, pairs: map[ID]*Pair{{}: {Small: Pool{small: true}}}}
	a.Set(o)
	return a
}

// Set changes the settings.
func (a *Allocator) Set(o Options) {
	if o.MaxSplit == 0 {
		o.MaxSplit = unlimited
	}
	if o.LargeSegment == 0 {
		o.LargeSegment = 20 * mib
	}
	if o.NonSplit == 0 {
		o.NonSplit = o.LargeSegment
	}
	if o.Limit == 0 {
		o.Limit = unlimited
	}
	a.O = o
}

func up(n, to int64) int64 { return (n + to - 1) / to * to }

// Round is the size looked for.
func (a *Allocator) Round(n int64) int64 {
	if n < 512 {
		return 512
	}
	slot, p := 0, int64(1)
	for ; p*2 <= n; p *= 2 {
		if p >= mib && slot < 15 {
			slot++
		}
	}
	d := a.O.Divisions[slot]
	if d <= 1 || n <= 512*d {
		return up(n, 512)
	}
	if n == p {
		return n
	}
	if p/d == 0 {
		return 2 * p
	}
	return p + up(n-p, p/d)
}

func (a *Allocator) segment(r int64) int64 {
	switch {
	case r <= mib:
		return 2 * mib
	case r < 10*mib:
		return a.O.LargeSegment
	default:
		return up(r, 2*mib)
	}
}

// Open makes a private pool, or lets one live on that was released.
func (a *Allocator) Open(id ID, noSplit, onOOM bool) {
	if p := a.pairs[id]; p != nil {
		p.released = false
		for i, o := range a.released {
			if o == id {
				a.released = append(a.released[:i:i], a.released[i+1:]...)
			}
		}
		return
	}
	a.pairs[id] = &Pair{Small: Pool{small: true, noSplit: noSplit}, Large: Pool{noSplit: noSplit}, OnOOM: onOOM}
	a.order = append(a.order, id)
	sort.Slice(a.order, func(i, j int) bool {
		x, y := a.order[i], a.order[j]
		return x.A < y.A || x.A == y.A && x.B < y.B
	})
}

// Release says that nobody uses the private pool any more.
func (a *Allocator) Release(id ID) {
	if p := a.pairs[id]; p != nil && !p.released {
		p.released = true
		a.released = append(a.released, id)
	}
}

// Allocate returns the block for n bytes, or nil.
func (a *Allocator) Allocate(n int64, stream uint64, id ID) *Block {
	a.processEvents()
	a.Open(id, false, false)
	r := a.Round(n)
	p := a.side(id, r <= mib)
	b := a.serve(r, stream, p)
	if b == nil {
		a.OOMs++
		return nil
	}
	rest := b.Size - r
	split := rest >= 512
	if !b.pool.small && !a.O.Expandable {
		split = r < a.O.MaxSplit && rest > mib
	}
	if split && !b.pool.noSplit {
		low := &Block{Addr: b.Addr, Size: r, Stream: stream, Mapped: true, prev: b.prev, next: b, pool: b.pool, place: b.place}
		if low.prev != nil {
			low.prev.next = low
		} else {
			a.replaceHead(b, low)
		}
		b.prev, b.Addr, b.Size = low, b.Addr+uint64(r), rest
		a.addFree(b)
		b = low
	}
	b.InUse, b.Requested = true, n
	a.live[b.Addr] = b
	a.Allocated += b.Size
	a.Peak = max(a.Peak, a.Reserved)
	return b
}

func (a *Allocator) side(id ID, small bool) *Pool {
	if small {
		return &a.pairs[id].Small
	}
	return &a.pairs[id].Large
}

// serve finds a block for r bytes in every way there is.
func (a *Allocator) serve(r int64, stream uint64, p *Pool) *Block {
	if b := a.take(r, stream, p); b != nil {
		return b
	}
	if a.O.Threshold > 0 && a.O.Limit != unlimited {
		a.collect()
	}
	if b := a.grow(r, stream, p); b != nil {
		return b
	}
	for _, id := range a.order {
		if q := a.side(id, p.small); a.pairs[id].OnOOM && q != p {
			if b := a.take(r, stream, q); b != nil {
				return b
			}
		}
	}
	if a.O.MaxSplit != unlimited && a.releaseOversize(r, stream, p) {
		if b := a.grow(r, stream, p); b != nil {
			return b
		}
	}
	a.ReleaseAll()
	a.Retries++
	return a.grow(r, stream, p)
}

func (a *Allocator) take(r int64, stream uint64, p *Pool) *Block {
	if a.O.Threshold > 0 && a.O.Limit != unlimited {
		p.calls++
	}
	i := 0
	for i < len(p.free) && (p.free[i].Stream < stream || p.free[i].Stream == stream && p.free[i].Size < r) {
		i++
	}
	mine := func(i int) bool { return i < len(p.free) && p.free[i].Stream == stream }
	if !mine(i) {
		return nil
	}
	if p.free[i].place != nil {
		if a.O.Expandable {
			for p.free[i].place != nil && mine(i+1) && room(p.free[i+1]) < room(p.free[i]) {
				i++
			}
		} else {
			for mine(i) && p.free[i].place != nil {
				i++
			}
			if !mine(i) {
				return nil
			}
		}
	}
	b := p.free[i]
	if r < a.O.MaxSplit && b.Size >= a.O.MaxSplit || r >= a.O.MaxSplit && b.Size >= r+a.O.NonSplit {
		return nil
	}
	a.dropFree(b)
	return b
}

func room(b *Block) int64 {
	if b.next != nil && !b.next.Mapped {
		return b.Size + b.next.Size
	}
	return b.Size
}

func (a *Allocator) grow(r int64, stream uint64, p *Pool) *Block {
	s := a.segment(r)
	if a.O.Limit != unlimited && a.Reserved+s > a.O.Limit {
		return nil
	}
	if a.O.Expandable {
		return a.expand(r, stream, p)
	}
	addr, _, ok := a.driver.Take(512, s)
	if !ok {
		return nil
	}
	if s >= a.O.MaxSplit {
		a.Oversize++
	}
	a.Reserved += s
	b := &Block{Addr: addr, Size: s, Stream: stream, Mapped: true, pool: p}
	a.heads = append(a.heads, b)
	return b
}

// Free takes a block back; it reports whether one is in use there.
func (a *Allocator) Free(addr uint64) bool {
	b := a.live[addr]
	if b == nil {
		return false
	}
	delete(a.live, addr)
	b.InUse = false
	a.Allocated -= b.Size
	for _, s := range b.uses {
		a.events = append(a.events, event{s, a.O.Streams.Mark(s), b})
		b.events++
	}
	b.uses = nil
	if b.events == 0 {
		a.release(b)
	}
	return true
}

// Record notes that another stream uses the block.
func (a *Allocator) Record(addr, stream uint64) bool {
	b := a.live[addr]
	if b == nil {
		return false
	}
	if stream != b.Stream && !slices.Contains(b.uses, stream) {
		b.uses = append(b.uses, stream)
	}
	return true
}

func (a *Allocator) release(b *Block) {
	a.join(b)
	a.addFree(b)
}

func (a *Allocator) processEvents() {
	blocked := map[uint64]bool{}
	kept := a.events[:0:0]
	for _, e := range a.events {
		if blocked[e.stream] || !a.O.Streams.Passed(e.stream, e.mark) {
			blocked[e.stream] = true
			kept = append(kept, e)
			continue
		}
		a.done(e)
	}
	a.events = kept
}

func (a *Allocator) done(e event) {
	if e.block.events--; e.block.events == 0 {
		a.release(e.block)
	}
}
