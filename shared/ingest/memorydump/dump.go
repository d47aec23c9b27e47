package memorydump

import (
	"fmt"
	"math/bits"
	"sort"

	"tideline/shared/ingest/bfclog"
)

// Dump puts the map into the form of a dump in a log, so that it is judged,
// drawn and replayed as one. Chunks that touch are one region. The request and
// the limit stay unknown. cut says that the file is not whole.
func (m *Map) Dump(cut bool) *bfclog.Dump {
	d := &bfclog.Dump{Map: true, Allocator: m.Allocator}
	d.Regions = m.regions()
	d.Bins = m.bins()
	used, inUse, all := m.sums()
	d.Empty = len(m.Chunks) == 0 && !cut
	if m.HasStats {
		s := &m.Stats
		d.HasStats = true
		d.InUse, d.Peak = bfclog.ExactSize(s.InUse), bfclog.ExactSize(s.Peak)
		d.Allocs, d.LargestAlloc = bfclog.ExactSize(s.Allocs), bfclog.ExactSize(s.LargestAlloc)
	}
	if d.ListComplete = !cut && m.HasStats && inUse == m.Stats.InUse && m.agrees(); d.ListComplete {
		d.Pool = bfclog.ExactSize(all)
		d.HasSummary, d.SumTotal = true, bfclog.ExactSize(inUse)
		d.Summary = used
		return d
	}
	d.Truncated = true
	if len(m.Bins) < NumBins {
		d.Missing = append(d.Missing, fmt.Sprintf("%d of %d bins", NumBins-len(m.Bins), NumBins))
	}
	d.Missing = append(d.Missing, "a part of the chunk list")
	if !m.HasStats {
		d.Missing = append(d.Missing, "the statistics")
	}
	return d
}

// regions are the runs of chunks that touch.
func (m *Map) regions() (out []bfclog.Region) {
	chunks := make([]bfclog.Chunk, len(m.Chunks))
	from := 0
	for i := range m.Chunks {
		c := &m.Chunks[i]
		chunks[i] = bfclog.Chunk{
			Address: c.Address, Size: c.Size, InUse: c.InUse, Op: c.Op, Step: int64(c.Step), FreedAt: int64(c.FreedAt), //nolint:gosec // ids
			Requested: max(0, min(c.Requested, c.Size)), HasRequested: true, Action: c.Action,
		}
		end := c.Address + uint64(c.Size)
		if i+1 < len(m.Chunks) && m.Chunks[i+1].Address == end {
			continue
		}
		first := m.Chunks[from].Address
		out = append(out, bfclog.Region{Address: first, Size: int64(end - first), Chunks: chunks[from : i+1 : i+1], Complete: true}) //nolint:gosec // below 2^63
		from = i + 1
	}
	return out
}

// bins are those of the file, with what was asked for of their chunks in use.
func (m *Map) bins() (out []bfclog.Bin) {
	var requested [NumBins]int64
	for i := range m.Chunks {
		if c := &m.Chunks[i]; c.InUse {
			requested[BinOf(c.Size)] += max(0, min(c.Requested, c.Size))
		}
	}
	for _, b := range m.Bins {
		out = append(out, bfclog.Bin{
			Index: b.Number, Chunks: b.Total, InUse: b.InUse, Allocated: bfclog.ExactSize(b.Bytes), Used: bfclog.ExactSize(b.BytesInUse),
			Requested: bfclog.ExactSize(requested[b.Number]),
		})
	}
	return out
}

// BinOf is the size class of a chunk of so many bytes.
func BinOf(size int64) int {
	return max(0, min(NumBins-1, bits.Len64(uint64(max(size, 1))>>8)-1))
}

// agrees says whether the chunks are those that the bins count.
func (m *Map) agrees() bool {
	var sums [NumBins]Bin
	for i := range m.Chunks {
		c := &m.Chunks[i]
		s := &sums[BinOf(c.Size)]
		s.Total++
		s.Bytes += c.Size
		if c.InUse {
			s.InUse++
			s.BytesInUse += c.Size
		}
	}
	if len(m.Bins) != NumBins {
		return false
	}
	for i := range sums {
		sums[i].Number = i
		if sums[i] != m.Bins[i] {
			return false
		}
	}
	return true
}

// sums counts the chunks in use by size, and adds up the bytes in use and those
// of all chunks.
func (m *Map) sums() (used []bfclog.SizeClass, inUse, all int64) {
	counts := map[int64]int64{}
	for i := range m.Chunks {
		c := &m.Chunks[i]
		all += c.Size
		if c.InUse {
			inUse += c.Size
			counts[c.Size]++
		}
	}
	for size, n := range counts {
		used = append(used, bfclog.SizeClass{Count: n, Size: size})
	}
	sort.Slice(used, func(i, j int) bool { return used[i].Size < used[j].Size })
	return used, inUse, all
}
