package tiling

import (
	"fmt"
	"sort"

	"tideline/protocol/event"
)

// Heads are the first chunks of all runs, ascending by address.
func (t *Table) Heads() []uint32 {
	var heads []uint32
	for h := range t.Chunks {
		if c := &t.Chunks[h]; c.Size > 0 && c.Prev == None {
			heads = append(heads, uint32(h))
		}
	}
	sort.Slice(heads, func(i, j int) bool { return t.Chunks[heads[i]].Addr < t.Chunks[heads[j]].Addr })
	return heads
}

// Map is all runs with their chunks, ascending by address.
func (t *Table) Map() event.ChunkMap {
	m := event.ChunkMap{}
	for _, head := range t.Heads() {
		r := event.Region{Address: t.Chunks[head].Addr}
		for h := head; h != None; h = t.Chunks[h].Next {
			c := &t.Chunks[h]
			r.Size += c.Size
			r.Chunks = append(r.Chunks, event.Chunk{Address: c.Addr, Size: c.Size, Requested: c.Requested, InUse: c.InUse()})
		}
		m = append(m, r)
	}
	return m
}

// Check verifies the links and the index. It is for tests.
func (t *Table) Check() error {
	n := 0
	for h := range t.Chunks {
		c := &t.Chunks[h]
		if c.Size == 0 {
			continue
		}
		n++
		if t.At(c.Addr) != uint32(h) {
			return fmt.Errorf("chunk %d at %x is not found by its address", h, c.Addr)
		}
		if c.Next != None {
			next := &t.Chunks[c.Next]
			if next.Prev != uint32(h) || next.Addr != c.Addr+uint64(c.Size) {
				return fmt.Errorf("chunk %d at %x of %d bytes is followed by one at %x whose predecessor is %d", h, c.Addr, c.Size, next.Addr, next.Prev)
			}
		}
	}
	if n != t.index.used {
		return fmt.Errorf("%d chunks, but %d in the index", n, t.index.used)
	}
	return nil
}
