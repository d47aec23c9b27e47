package tiling

import (
	"math/rand/v2"
	"testing"
)

// Random splits, merges and removals keep the links and the index, also with
// addresses that differ only above the bits that the index holds.
func TestTheTableKeepsItsLinks(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		table := New()
		for i := range 4 {
			table.Add(uint64(i+1)<<40, 1<<20)
		}
		for step := range 2000 {
			h := uint32(rnd.IntN(len(table.Chunks)))
			c := &table.Chunks[h]
			switch {
			case c.Size == 0:
			case rnd.IntN(200) == 0:
				addr := c.Addr
				table.Remove(h)
				if table.At(addr) != None {
					t.Fatalf("seed %d, step %d: the chunk is still found", seed, step)
				}
			case rnd.IntN(3) > 0 && c.Size > 64:
				size := 64 * (1 + rnd.Int64N(c.Size/64))
				if size == c.Size {
					continue
				}
				whole := c.Size
				rest := table.Split(h, size)
				if table.Chunks[h].Size+table.Chunks[rest].Size != whole || table.Chunks[rest].InUse() {
					t.Fatalf("seed %d, step %d: a split loses bytes", seed, step)
				}
			case c.Next != None && rnd.IntN(20) == 0:
				next := c.Next
				table.Cut(h)
				table.Link(h, next)
			case c.Next != None:
				table.Merge(h, c.Next)
			}
			if err := table.Check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		var bytes int64
		for _, r := range table.Map() {
			bytes += r.Size
		}
		for _, c := range table.Chunks {
			bytes -= c.Size
		}
		if bytes != 0 {
			t.Fatalf("seed %d: the map misses %d bytes", seed, -bytes)
		}
	}
}
