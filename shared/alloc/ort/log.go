package ort

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"tideline/shared/alloc"
)

// heard reports whether anybody listens, so that no text is made for nobody.
func (a *Arena) heard() bool {
	_, deaf := a.o.Observer.(alloc.NoObserver)
	return !deaf
}

func (a *Arena) say(format string, args ...any) {
	a.o.Observer.Log(alloc.Info, fmt.Sprintf(format, args...))
}

func (a *Arena) logCreation() {
	if !a.heard() {
		return
	}
	limit := uint64(a.o.MaxMemory)
	if a.o.MaxMemory == math.MaxInt64 {
		limit = math.MaxUint64
	}
	a.say("Creating BFCArena for %s with following configs: initial_chunk_size_bytes: %d max_dead_bytes_per_chunk: %d initial_growth_chunk_size_bytes: %d memory limit: %d arena_extend_strategy: %d",
		a.o.Name, a.o.InitialChunk, a.o.MaxDead, a.o.GrowthChunk, limit, a.o.Strategy)
	a.say("Creating %d bins of max chunk size %d to %d", NumBins, Granule, Granule<<(NumBins-1))
}

func (a *Arena) logExtending(bytes, size int64) {
	if a.heard() {
		a.say("Extending BFCArena for %s. bin_num:%d (requested) num_bytes: %d (actual) rounded_bytes:%d", a.o.Name, BinOf(size), bytes, size)
	}
}

func (a *Arena) logExtended(addr uint64, size int64) {
	if a.heard() {
		a.say("Extended allocation by %d bytes.", size)
		a.say("Total allocated bytes: %d", a.stats.TotalAllocated)
		a.say("Allocated memory at %#x to %#x", addr, addr+uint64(size))
	}
}

func (a *Arena) logReserve(bytes int64) {
	if a.heard() {
		a.say("Reserving memory in BFCArena for %s size: %d", a.o.Name, bytes)
	}
}

func (a *Arena) logShrunk(size int64) {
	if a.heard() {
		a.say("%s BFC Arena shrunk by %d bytes.  The total allocated bytes is now %d", a.o.Name, size, a.stats.TotalAllocated)
	}
}

// dump writes the arena's state as upstream does for a failed request.
func (a *Arena) dump(bytes int64) {
	a.say("BFC Arena ran out of memory trying to allocate %d.  Current allocation summary follows.", uint64(bytes))
	a.say("Allocator:%s", a.o.Name)
	a.say("Bin size: Chunks in_use/total (if not zero). Allocated bytes in_use/total. Requested bytes.")
	a.dumpBins()
	size := round(max(0, bytes))
	a.say("Bin for %d bytes has max bytes of %d, Chunk State: ", size, int64(Granule)<<BinOf(size))
	a.set.Each(Granule<<BinOf(size), func(h uint32) bool {
		if BinOf(a.table.Chunks[h].Size) != BinOf(size) {
			return false
		}
		a.say("  %s", a.describe(h, true))
		return true
	})
	a.say("Overall chunks summary:")
	a.dumpChunks()
	a.say("Stats: \n%s", a.stats.Text())
}

func (a *Arena) eachChunk(f func(h uint32)) {
	for _, r := range a.regions {
		for h := a.table.At(r.addr); h != none; h = a.table.Chunks[h].Next {
			f(h)
		}
	}
}

func (a *Arena) dumpBins() {
	var bins [NumBins]struct{ used, all, usedBytes, bytes, requested int64 }
	a.eachChunk(func(h uint32) {
		c := &a.table.Chunks[h]
		b := &bins[BinOf(c.Size)]
		b.all++
		b.bytes += c.Size
		if c.InUse() {
			b.used++
			b.usedBytes += c.Size
			b.requested += c.Requested
		}
	})
	var waste int64
	for i, b := range bins {
		if b.all > 0 {
			a.say("%d: Chunks %d/%d. Bytes %d/%d. Requested %d.", int64(Granule)<<i, b.used, b.all, b.usedBytes, b.bytes, b.requested)
			waste += b.usedBytes - b.requested
		}
	}
	if waste > 0 {
		a.say("Diff between in-use and requested bytes is %d", waste)
	}
}

func (a *Arena) describe(h uint32, neighbours bool) string {
	c := &a.table.Chunks[h]
	inUse := 0
	if c.InUse() {
		inUse = 1
	}
	s := fmt.Sprintf("  Size: %d | Requested Size: %d | in_use: %d", c.Size, c.Requested, inUse)
	if neighbours && c.Prev != none {
		s += ", prev: " + a.describe(c.Prev, false)
	}
	if neighbours && c.Next != none {
		s += ", next: " + a.describe(c.Next, false)
	}
	return s
}

func (a *Arena) dumpChunks() {
	counts := map[int64]int64{}
	a.eachChunk(func(h uint32) {
		c := &a.table.Chunks[h]
		word := "  Free "
		if c.InUse() {
			word = "  Chunk"
			counts[c.Size]++
		}
		a.say("%s at %#x of size %d", word, c.Addr, c.Size)
	})
	sizes := make([]int64, 0, len(counts))
	for size := range counts {
		sizes = append(sizes, size)
	}
	sort.SliceStable(sizes, func(i, j int) bool { return sizes[i] < sizes[j] })
	a.say("Summary of in-use chunks by size: ")
	var total int64
	for _, size := range sizes {
		n := counts[size]
		a.say("  %d chunks of size %d. Total %d", n, size, n*size)
		total += n * size
	}
	a.say("Sum Total of in-use chunks: %d", total)
}

// Text is the statistics as upstream prints them, one a line.
func (s *Stats) Text() string {
	limit := uint64(s.BytesLimit)
	if s.BytesLimit == math.MaxInt64 {
		limit = math.MaxUint64
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s%d\n", "Limit:", int64(limit)) // upstream keeps it signed: -1 for none
	for _, l := range []struct {
		label string
		n     int64
	}{
		{"InUse:", s.BytesInUse},
		{"TotalAllocated:", s.TotalAllocated},
		{"MaxInUse:", s.MaxBytesInUse},
		{"NumAllocs:", s.NumAllocs},
		{"NumReserves:", s.NumReserves},
		{"NumArenaExtensions:", s.NumExtensions},
		{"NumArenaShrinkages:", s.NumShrinkages},
		{"MaxAllocSize:", s.MaxAllocSize},
	} {
		fmt.Fprintf(&b, "%-26s%d\n", l.label, l.n)
	}
	return b.String()
}
