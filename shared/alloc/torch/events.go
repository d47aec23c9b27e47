package torch

import "fmt"

// Streams knows how far the device's streams have come.
type Streams interface {
	// Mark is a point behind all work given to the stream so far.
	Mark(s Stream) uint64
	// Passed reports whether the stream has come to the mark.
	Passed(s Stream, mark uint64) bool
	// Wait returns when the stream has passed the mark; a simulator moves its
	// clock. It must not call the allocator.
	Wait(s Stream, mark uint64)
}

// StreamAllocator is what an allocator can do whose blocks belong to streams;
// a replay asks for it beside alloc.Allocator.
type StreamAllocator interface {
	// Use sets the stream and the pool of the requests that follow.
	Use(s Stream, p PoolID)
	// RecordStream says that another stream works on the block at addr, too.
	RecordStream(addr uint64, s Stream) error
	// EmptyCache gives everything idle back to the driver.
	EmptyCache()
}

var _ StreamAllocator = (*Allocator)(nil)

// recorded is a stream that used a block.
type recorded struct {
	stream   Stream
	captured bool // recorded within a capture, which orders it by itself
}

// queue is a stream's outstanding events in their order.
type queue struct {
	stream Stream
	events []outstanding
	head   int
}

type outstanding struct {
	mark  uint64
	block uint32
}

// RecordStream keeps the block from being used again, once freed, until the
// stream has done what it was given up to the free. The block's own stream
// needs no record.
func (a *Allocator) RecordStream(addr uint64, s Stream) error {
	_, h := a.find(addr)
	if h == none {
		return fmt.Errorf("allocator %s: stream %d cannot be recorded for %#x, no block in use starts there", a.o.Name, s, addr)
	}
	b := &a.blocks[h]
	if a.arenas[b.arena].stream == s {
		return nil
	}
	if b.uses == 0 {
		b.uses = a.newUses()
	}
	list := a.useLists[b.uses]
	capturing := len(a.captures) > 0
	for i := range list {
		if list[i].stream == s {
			list[i].captured = list[i].captured || capturing
			return nil
		}
	}
	a.useLists[b.uses] = append(list, recorded{s, capturing})
	return nil
}

func (a *Allocator) newUses() uint32 {
	if n := len(a.spareUse); n > 0 {
		u := a.spareUse[n-1]
		a.spareUse = a.spareUse[:n-1]
		return u
	}
	a.useLists = append(a.useLists, nil)
	return uint32(len(a.useLists) - 1)
}

// insertEvents turns the recorded streams of a freed block into outstanding
// events; without any the block is free at once.
func (a *Allocator) insertEvents(h uint32) {
	b := &a.blocks[h]
	list := a.useLists[b.uses]
	for _, r := range list {
		mark := uint64(0)
		if a.o.Streams != nil {
			mark = a.o.Streams.Mark(r.stream)
		}
		q := a.queueOf(r.stream)
		q.events = append(q.events, outstanding{mark, h})
		b.events++
		a.pending++
	}
	a.useLists[b.uses] = list[:0]
	a.spareUse = append(a.spareUse, b.uses)
	b.uses = 0
	if b.events == 0 {
		a.release(h)
	}
}

func (a *Allocator) queueOf(s Stream) *queue {
	for i := range a.queues {
		if a.queues[i].stream == s {
			return &a.queues[i]
		}
	}
	a.queues = append(a.queues, queue{stream: s})
	return &a.queues[len(a.queues)-1]
}

// insertDeferred is for blocks freed within a capture. What was recorded within
// it is ordered by the graph, so only earlier records need events.
func (a *Allocator) insertDeferred() {
	for _, h := range a.deferred {
		u := a.blocks[h].uses
		kept := a.useLists[u][:0]
		for _, r := range a.useLists[u] {
			if !r.captured {
				kept = append(kept, r)
			}
		}
		a.useLists[u] = kept
		a.insertEvents(h)
	}
	a.deferred = a.deferred[:0]
}

// processEvents frees the blocks whose events have passed, each stream's in
// order up to its first that has not.
func (a *Allocator) processEvents() {
	a.insertDeferred()
	for i := range a.queues {
		q := &a.queues[i]
		for q.head < len(q.events) {
			e := q.events[q.head]
			if a.o.Streams != nil && !a.o.Streams.Passed(q.stream, e.mark) {
				break
			}
			q.head++
			a.passed(e.block)
		}
		q.tidy()
	}
}

// tidy keeps the queue from growing while it never empties.
func (q *queue) tidy() {
	if 2*q.head >= len(q.events) {
		q.events = q.events[:copy(q.events, q.events[q.head:])]
		q.head = 0
	}
}

func (a *Allocator) passed(h uint32) {
	a.pending--
	b := &a.blocks[h]
	if b.events--; b.events == 0 {
		a.release(h)
	}
}

// synchronize waits for every outstanding event.
func (a *Allocator) synchronize() {
	a.stats.syncs++
	a.insertDeferred()
	for i := range a.queues {
		q := &a.queues[i]
		for ; q.head < len(q.events); q.head++ {
			e := q.events[q.head]
			if a.o.Streams != nil {
				a.o.Streams.Wait(q.stream, e.mark)
			}
			a.passed(e.block)
		}
		q.tidy()
	}
}

// ProcessEvents frees what waited for streams that have come far enough; every
// request does so by itself.
func (a *Allocator) ProcessEvents() {
	if len(a.captures) == 0 {
		a.processEvents()
	}
}

// Progress is a Streams that is told how far each stream has come.
type Progress struct{ at []progress }

type progress struct {
	stream      Stream
	given, done uint64
}

var _ Streams = (*Progress)(nil)

func (p *Progress) of(s Stream) *progress {
	for i := range p.at {
		if p.at[i].stream == s {
			return &p.at[i]
		}
	}
	p.at = append(p.at, progress{stream: s})
	return &p.at[len(p.at)-1]
}

// Mark implements Streams: every mark is one step of work.
func (p *Progress) Mark(s Stream) uint64 {
	x := p.of(s)
	x.given++
	return x.given
}

// Passed implements Streams.
func (p *Progress) Passed(s Stream, mark uint64) bool { return p.of(s).done >= mark }

// Wait implements Streams.
func (p *Progress) Wait(s Stream, mark uint64) {
	x := p.of(s)
	x.done = max(x.done, mark)
}

// Finish says that the stream has done all it was given.
func (p *Progress) Finish(s Stream) {
	x := p.of(s)
	x.done = x.given
}

// Step says that the stream has come to the next mark, if there is one.
func (p *Progress) Step(s Stream) {
	if x := p.of(s); x.done < x.given {
		x.done++
	}
}
