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
	NonSplit     int64 // 0: 20 MiB
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
	if o.NonSplit == 0 {
		o.NonSplit = 20 * mib
	}
	if o.LargeSegment == 0 {
		o.LargeSegment = 20 * mib
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

func (a *Allocator) replaceHead(old, now *Block) {
	for i, h := range a.heads {
		if h == old {
			a.heads[i] = now
		}
	}
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

// expand maps pages behind the lowest place where r bytes fit.
func (a *Allocator) expand(r int64, stream uint64, p *Pool) *Block {
	b := a.findPlace(r, stream, p)
	if b == nil || !b.Mapped && !a.mapPages(b, min(b.Size, r)) {
		return nil
	}
	for b.Size < r {
		next := b.next
		if !a.mapPages(next, min(next.Size, r-b.Size)) {
			return nil
		}
		b = next
	}
	a.dropFree(b)
	return b
}

func (a *Allocator) findPlace(r int64, stream uint64, p *Pool) *Block {
	for _, b := range p.dark {
		if b.Stream != stream {
			continue
		}
		if b.prev != nil && b.prev.idle() {
			b = b.prev
		}
		sum := int64(0)
		for x := b; x != nil && x.idle(); x = x.next {
			sum += x.Size
		}
		if sum >= r {
			return b
		}
	}
	page := int64(2 * mib)
	if !p.small {
		page = a.O.LargeSegment
	}
	size := up(a.O.Total+a.O.Total/8, page)
	addr, ok := a.driver.Reserve(size)
	if !ok {
		return nil
	}
	b := &Block{Addr: addr, Size: size, Stream: stream, pool: p, place: &place{addr, size, page}}
	a.heads = append(a.heads, b)
	a.addDark(b)
	return b
}

func (a *Allocator) mapPages(b *Block, size int64) bool {
	size = up(size, b.place.page)
	if size > b.Size || !a.driver.Map(b.Addr, size) {
		return false
	}
	a.dropDark(b)
	a.Reserved += size
	a.cut(b, size)
	b.Mapped = true
	a.join(b)
	a.addFree(b)
	return true
}

// cut leaves b with size bytes and makes the rest a block like it.
func (a *Allocator) cut(b *Block, size int64) {
	if size == b.Size {
		return
	}
	rest := &Block{
		Addr: b.Addr + uint64(size), Size: b.Size - size, Stream: b.Stream, Mapped: b.Mapped,
		prev: b, next: b.next, pool: b.pool, place: b.place,
	}
	if rest.next != nil {
		rest.next.prev = rest
	}
	b.next, b.Size = rest, size
	if rest.Mapped {
		a.addFree(rest)
	} else {
		a.addDark(rest)
	}
}

func (b *Block) idle() bool  { return !b.InUse && b.events == 0 && len(b.uses) == 0 }
func (b *Block) split() bool { return b.prev != nil || b.next != nil }

// join merges the neighbours into b.
func (a *Allocator) join(b *Block) {
	if p := b.prev; p != nil && p.idle() && p.Mapped == b.Mapped {
		a.drop(p)
		b.Addr, b.Size, b.prev = p.Addr, b.Size+p.Size, p.prev
		if b.prev != nil {
			b.prev.next = b
		} else {
			a.replaceHead(p, b)
		}
	}
	if n := b.next; n != nil && n.idle() && n.Mapped == b.Mapped {
		a.drop(n)
		b.Size, b.next = b.Size+n.Size, n.next
		if b.next != nil {
			b.next.prev = b
		}
	}
}

func (a *Allocator) drop(b *Block) {
	if b.Mapped {
		a.dropFree(b)
	} else {
		a.dropDark(b)
	}
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

// releaseOversize gives back oversize blocks that stand in the way of r bytes.
func (a *Allocator) releaseOversize(r int64, stream uint64, p *Pool) bool {
	key := max(r, a.O.MaxSplit)
	var below []*Block // oversize ones smaller than key, ascending
	for _, b := range p.free {
		switch {
		case b.Stream != stream:
		case b.Size < key:
			if b.Size >= a.O.MaxSplit {
				below = append(below, b)
			}
		case b.place == nil:
			if b.split() {
				return false
			}
			a.give(b)
			return true
		default:
			return a.releaseDown(below, key)
		}
	}
	return a.releaseDown(below, key)
}

func (a *Allocator) releaseDown(list []*Block, key int64) bool {
	sum := int64(0)
	for i := len(list) - 1; i >= 0 && sum < key; i-- {
		if b := list[i]; b.place == nil && !b.split() {
			sum += b.Size
			a.give(b)
		}
	}
	return sum >= key
}

// ReleaseAll gives back what is idle as a whole.
func (a *Allocator) ReleaseAll() {
	for _, e := range a.events {
		a.O.Streams.Wait(e.stream, e.mark)
		a.done(e)
	}
	a.events = nil
	a.releasePool(&a.pairs[ID{}].Large)
	a.releasePool(&a.pairs[ID{}].Small)
	var kept []ID
	for _, id := range a.released {
		p := a.pairs[id]
		a.releasePool(&p.Small)
		a.releasePool(&p.Large)
		if a.heldBy(p) > 0 {
			kept = append(kept, id)
			continue
		}
		delete(a.pairs, id)
		for i, o := range a.order {
			if o == id {
				a.order = append(a.order[:i:i], a.order[i+1:]...)
			}
		}
	}
	a.released = kept
}

func (a *Allocator) heldBy(p *Pair) (bytes int64) {
	for _, h := range a.heads {
		for b := h; b != nil; b = b.next {
			if b.Mapped && (b.pool == &p.Small || b.pool == &p.Large) {
				bytes += b.Size
			}
		}
	}
	return bytes
}

func (a *Allocator) releasePool(p *Pool) {
	list := append([]*Block(nil), p.free...)
	for _, b := range list {
		if b.place == nil && !b.split() {
			a.give(b)
		}
	}
	for _, b := range list {
		if b.place != nil {
			a.unmapPages(b)
		}
	}
}

func (a *Allocator) unmapPages(b *Block) {
	base, page := b.place.addr, b.place.page
	from := base + uint64(up(int64(b.Addr-base), page))
	to := base + uint64((int64(b.Addr-base)+b.Size)/page*page)
	if from >= to {
		return
	}
	a.dropFree(b)
	if before := int64(from - b.Addr); before > 0 {
		low := &Block{Addr: b.Addr, Size: before, Stream: b.Stream, Mapped: true, prev: b.prev, next: b, pool: b.pool, place: b.place}
		if low.prev != nil {
			low.prev.next = low
		} else {
			a.replaceHead(b, low)
		}
		b.prev, b.Addr, b.Size = low, from, b.Size-before
		a.addFree(low)
	}
	a.cut(b, int64(to-from))
	b.Mapped = false
	a.driver.Unmap(b.Addr, b.Size)
	a.Reserved -= b.Size
	a.join(b)
	a.addDark(b)
	if !b.split() {
		a.dropDark(b)
		a.driver.Unreserve(b.Addr, b.Size)
		a.dropHead(b)
	}
}

// give returns an unsplit segment to the driver.
func (a *Allocator) give(b *Block) {
	a.dropFree(b)
	a.driver.Give(b.Addr, b.Size)
	a.Reserved -= b.Size
	a.dropHead(b)
}

func (a *Allocator) dropHead(b *Block) {
	for i, h := range a.heads {
		if h == b {
			a.heads = append(a.heads[:i:i], a.heads[i+1:]...)
			return
		}
	}
}

// collect gives back large segments that idled longer than the average.
func (a *Allocator) collect() {
	threshold := int64(a.O.Threshold * float64(a.O.Limit))
	p := &a.pairs[ID{}].Large
	missing := a.Reserved - threshold
	if missing <= 0 {
		return
	}
	ages, count := 0, 0
	for _, b := range p.free {
		if !b.split() {
			ages += p.calls - b.born
			count++
		}
	}
	for freed := true; freed && missing > 0 && count > 0; {
		freed = false
		average := float64(ages) / float64(count)
		for _, b := range append([]*Block(nil), p.free...) {
			if age := p.calls - b.born; b.place == nil && !b.split() && float64(age) >= average {
				freed = true
				missing -= b.Size
				ages -= age
				count--
				a.give(b)
			}
		}
	}
}

func (a *Allocator) addFree(b *Block) {
	p := b.pool
	b.born = p.calls
	p.free = append(p.free, b)
	sort.Slice(p.free, func(i, j int) bool {
		x, y := p.free[i], p.free[j]
		switch {
		case x.Stream != y.Stream:
			return x.Stream < y.Stream
		case x.Size != y.Size:
			return x.Size < y.Size
		}
		return x.Addr < y.Addr
	})
}

func (a *Allocator) addDark(b *Block) {
	p := b.pool
	p.dark = append(p.dark, b)
	sort.Slice(p.dark, func(i, j int) bool {
		x, y := p.dark[i], p.dark[j]
		if x.Stream != y.Stream {
			return x.Stream < y.Stream
		}
		return x.Addr < y.Addr
	})
}

func (a *Allocator) dropFree(b *Block) { b.pool.free = without(b.pool.free, b) }
func (a *Allocator) dropDark(b *Block) { b.pool.dark = without(b.pool.dark, b) }

func without(list []*Block, b *Block) []*Block {
	for i := range list {
		if list[i] == b {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Blocks are all pieces with memory behind them, ascending by address.
func (a *Allocator) Blocks() []*Block {
	var list []*Block
	for _, h := range a.heads {
		for b := h; b != nil; b = b.next {
			if b.Mapped {
				list = append(list, b)
			}
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Addr < list[j].Addr })
	return list
}

// Pending reports whether the block waits for a stream.
func (b *Block) Pending() bool { return !b.InUse && !b.idle() }

// SplitIdle is the bytes and the number of idle pieces of split segments.
func (a *Allocator) SplitIdle() (bytes int64, count int) {
	for _, b := range a.Blocks() {
		if b.place == nil && b.idle() && b.split() {
			bytes += b.Size
			count++
		}
	}
	return bytes, count
}
