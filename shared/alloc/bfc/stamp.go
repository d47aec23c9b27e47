package bfc

import (
	"errors"

	"tideline/shared/alloc"
)

// errPartitioned: a random run of the original died on its own check.
var errPartitioned = errors.New("timestamped frees and spatial partitioning cannot be combined; switch one of them off")

// SetCounter makes frees carry stamps from c: freed chunks stay apart until
// the safe frontier has passed their stamp. nil ends that.
func (a *Allocator) SetCounter(c *alloc.Counter) error {
	if c != nil && a.o.Partition.On {
		return errPartitioned
	}
	if c != nil {
		a.searchAll()
	}
	a.counter = c
	return nil
}

// searchAll ends plain: from now on the index holds free chunks too, because
// mergeStamped looks for them by their address.
func (a *Allocator) searchAll() {
	if !a.indexAll {
		a.eachChunk(func(h uint32, c *chunk) {
			if !c.inUse() {
				a.index.add(a.chunks, h)
			}
		})
	}
	a.plain, a.indexAll = false, true
}

// SetSafeFrontier tells that all frees with a stamp below count are done with
// on the device. It never goes back.
func (a *Allocator) SetSafeFrontier(count uint64) { a.frontier = max(a.frontier, count) }

// mergeStamped is MergeTimestampedChunks. With need 0 it merges what the
// frontier has passed; else it merges without regard for stamps until a chunk
// of need bytes exists, and reports whether one does.
func (a *Allocator) mergeStamped(need uint64) bool {
	old := a.queue
	a.queue, a.spare = a.spare[:0], old
	a.merging = a.merging[:0]
	for _, h := range old {
		c := &a.chunks[h]
		// The record may have been merged away or taken since; upstream asks
		// its table again.
		if h = a.at(c.addr); h == none || c.inUse() || !c.binned() {
			continue
		}
		switch {
		case c.freedAt == 0:
			a.merging = append(a.merging, c.addr)
		case c.freedAt < a.frontier:
			c.freedAt = 0
			a.merging = append(a.merging, c.addr)
		case need > 0:
			a.merging = append(a.merging, c.addr)
		default:
			a.queue = append(a.queue, h)
		}
	}
	satisfied := need == 0
	for _, addr := range a.merging {
		h := a.at(addr)
		if h == none {
			continue
		}
		if need > 0 && satisfied {
			a.queue = append(a.queue, h)
			continue
		}
		a.unbin(h)
		merged := a.coalesce(h, need > 0)
		a.bin(merged)
		if need == 0 {
			continue
		}
		c := &a.chunks[merged]
		if merged != h && c.freedAt > 0 {
			a.queue = append(a.queue, merged)
		}
		satisfied = satisfied || c.size >= need
	}
	return satisfied
}
