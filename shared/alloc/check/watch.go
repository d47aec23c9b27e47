package check

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/stream"
)

// Subject is an allocator to be watched, and what it promises.
type Subject struct {
	// New makes it; it must tell the observer of its regions.
	New   func(alloc.Observer) (alloc.Allocator, error)
	Rules Rules
	// Aligned: an address honours the request's alignment.
	Aligned bool
	// CountsRequested: Stats.InUse sums what was asked for, not the blocks.
	CountsRequested bool
	// Remaps: the largest free chunk may be put together from several.
	Remaps bool

	// Order, if set, turns on the rules of streams: memory freed on one stream
	// is used by another only behind the free. Use sets the stream of the calls
	// that follow.
	Order *stream.Order
	Use   func(alloc.Allocator, stream.ID)
	// Opportunistic: a stream that is done needs no order.
	Opportunistic bool
	// SameStream: a block is freed on the stream it was asked for on.
	SameStream bool

	// Extra, if set, is called now and then for what this allocator alone can do.
	Extra func(w *Watch, d Draw)
}

// Watch is an allocator with a judge beside it that sees every call. The first
// thing that is wrong is kept for Err.
type Watch struct {
	A       alloc.Allocator
	Live    []Held
	s       Subject
	judge   *Judge
	freed   []freedSpan
	current stream.ID
	asked   int64 // sum of what live blocks were asked for
	peak    int64
	allocs  int64
	err     error
}

// Held is a live block.
type Held struct {
	alloc.Block
	Stream stream.ID
}

// freedSpan is memory that was freed and not handed out since.
type freedSpan struct {
	span
	stream stream.ID
	mark   uint64
}

// NewWatch makes the allocator.
func NewWatch(s Subject) (*Watch, error) {
	w := &Watch{s: s}
	w.judge = New(func(event.DeviceID, event.AllocatorID) Rules { return s.Rules }, nil)
	a, err := s.New((*ear)(w))
	if err != nil {
		return nil, err
	}
	w.A = a
	return w, nil
}

// ear hears the allocator on behalf of a Watch.
type ear Watch

var _ alloc.Observer = (*ear)(nil)

func (e *ear) RegionTaken(addr uint64, asked, received int64) {
	e.judge.Emit(&event.Event{Kind: event.RegionAdd, Address: addr, Size: received, Requested: asked})
}

func (e *ear) RegionRefused(asked int64) {
	e.judge.Emit(&event.Event{Kind: event.RegionRefused, Size: asked})
}

func (e *ear) RegionGiven(addr uint64, bytes int64) {
	// A driver that frees waits for the device; one that remaps does not.
	(*Watch)(e).reused(span{addr: addr, size: bytes}, "taken away", e.s.Remaps)
	e.judge.Emit(&event.Event{Kind: event.RegionRemove, Address: addr, Size: bytes})
}

func (e *ear) Wait(nanos int64) int64     { return nanos }
func (e *ear) Log(alloc.Severity, string) {}
func (e *ear) Op() string                 { return "" }

// Err is the first thing that was wrong, or nil.
func (w *Watch) Err() error {
	if w.err != nil {
		return w.err
	}
	return w.judge.Err()
}

func (w *Watch) wrong(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// On sets the stream of the calls that follow.
func (w *Watch) On(s stream.ID) {
	w.current = s
	if w.s.Use != nil {
		w.s.Use(w.A, s)
	}
}

// Allocate asks for a block.
func (w *Watch) Allocate(r alloc.Request) (alloc.Block, bool) {
	b, ok := w.A.Allocate(r)
	switch {
	case !ok && b != alloc.Block{}:
		w.wrong("a refused request of %d bytes got the block %+v", r.Bytes, b)
	case ok && b.Requested != r.Bytes:
		w.wrong("a request of %d bytes got a block for %d", r.Bytes, b.Requested)
	case ok && w.s.Aligned && r.Alignment > 0 && b.Address%uint64(r.Alignment) != 0:
		w.wrong("block %x is not aligned to %d", b.Address, r.Alignment)
	}
	if ok {
		w.Took(b)
	}
	return b, ok
}

// Took enters a block that was handed out by other means than Allocate.
func (w *Watch) Took(b alloc.Block) {
	w.allocs++
	w.judge.Emit(&event.Event{Kind: event.Alloc, Address: b.Address, Size: b.Size, Requested: b.Requested})
	w.reused(span{addr: b.Address, size: b.Size}, "handed out", true)
	w.asked += b.Requested
	w.peak = max(w.peak, w.asked)
	w.Live = append(w.Live, Held{b, w.current})
}

// reused forgets what was freed within s; where strict it looks whether another
// stream may still use it.
func (w *Watch) reused(s span, what string, strict bool) {
	if w.s.Order == nil {
		return
	}
	kept := w.freed[:0]
	for _, f := range w.freed {
		if f.addr >= s.end() || f.end() <= s.addr {
			kept = append(kept, f)
			continue
		}
		if strict && !w.s.Order.Behind(w.current, f.stream, f.mark) && (!w.s.Opportunistic || !w.s.Order.Done(f.stream, f.mark)) {
			w.wrong("memory at %x of %d bytes, freed on stream %d, is %s on stream %d, which is not behind it",
				f.addr, f.size, f.stream, what, w.current)
		}
		// What sticks out on either side is still only freed.
		if f.addr < s.addr {
			low := f
			low.size = int64(s.addr - f.addr)
			kept = append(kept, low)
		}
		if f.end() > s.end() {
			high := f
			high.addr, high.size = s.end(), int64(f.end()-s.end())
			kept = append(kept, high)
		}
	}
	w.freed = append([]freedSpan(nil), kept...)
}

// Free gives the i-th live block back, on the present stream.
func (w *Watch) Free(i int) {
	b := w.Live[i]
	w.Live[i] = w.Live[len(w.Live)-1]
	w.Live = w.Live[:len(w.Live)-1]
	if w.s.SameStream {
		w.On(b.Stream)
	}
	mark := uint64(0)
	if w.s.Order != nil {
		mark = w.s.Order.Mark(w.current)
	}
	w.asked -= b.Requested
	w.judge.Emit(&event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
	if w.s.Order != nil {
		w.freed = append(w.freed, freedSpan{span{addr: b.Address, size: b.Size}, w.current, mark})
	}
	if err := w.A.Free(b.Address); err != nil {
		w.wrong("a block in use is not taken back: %v", err)
	}
	if err := w.A.Free(b.Address); err == nil {
		w.wrong("block %x is taken back twice", b.Address)
	}
}

// Look recounts: what the allocator says of itself must be what its calls
// came to.
func (w *Watch) Look() {
	m, st := w.A.ChunkMap(), w.A.Stats()
	if err := w.judge.CompareMap(0, 0, m); err != nil {
		w.wrong("%v", err)
	}
	pool, inUse, _, largest := m.Totals()
	jPool, jInUse, peak, blocks := w.judge.Totals(0, 0)
	if w.s.CountsRequested {
		jInUse, inUse, peak = w.asked, w.asked, w.peak
	}
	if w.s.Remaps && st.LargestFree >= largest {
		largest = st.LargestFree
	}
	if st.Pool != pool || pool != jPool || st.InUse != inUse || inUse != jInUse || st.LargestFree != largest ||
		st.PeakInUse != peak || blocks != len(w.Live) || st.NumAllocs != w.allocs || st.PeakPool < st.Pool {
		w.wrong("the statistics %+v are not what the chunk map (pool %d, in use %d, largest free %d) and the recount (pool %d, in use %d, peak %d, %d blocks, %d allocations) say",
			st, pool, inUse, largest, jPool, jInUse, peak, blocks, w.allocs)
	}
}

// Close frees what is left but one block, closes, and looks whether all has
// gone back to the driver.
func (w *Watch) Close() {
	for len(w.Live) > 1 {
		w.Free(len(w.Live) - 1)
	}
	w.Look()
	if len(w.Live) == 1 { // Close takes back what is in use, too
		b := w.Live[0]
		w.judge.Emit(&event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
		w.Live = nil
	}
	w.freed = nil
	w.A.Close()
	if pool, inUse, _, _ := w.judge.Totals(0, 0); pool != 0 || inUse != 0 {
		w.wrong("after Close the driver misses %d bytes", pool)
	}
}
