package reference

import (
	"sort"
)

func (a *Allocator) replaceHead(old, now *Block) {
	for i, h := range a.heads {
		if h == old {
			a.heads[i] = now
		}
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
