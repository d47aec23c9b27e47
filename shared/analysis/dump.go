package analysis

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

// FromDump reads a failure out of an allocator's log.
func FromDump(d *bfclog.Dump) *Reading {
	r := &Reading{
		Line: d.Line, Allocator: d.Allocator, Device: d.Tensor.Device,
		Op: d.Tensor.Op, Node: d.Tensor.Node, ByOp: d.Request.Op, ByOpKnown: d.Request.HasOp,
		DType: d.Tensor.DType, Growth: growthOf(d), Collected: d.Collected,
		Bar: d.Bar, HasBar: d.HasBar, Truncated: d.Truncated, Missing: d.Missing,
		Refusals: d.Refusals, Pinned: d.Pinned, Faces: d.Faces, Usage: d.Usage,
		HostPinned: d.HostPinned(), FreeOnlyBins: d.FreeOnly, NotFailure: d.Request.NotFailure,
		DeviceTotal: fromSize(d.DeviceTotal), DriverFree: fromSize(d.DriverFree),
		Start: d.Start, FormatVariant: variant(d), FromMap: d.Map, Assumed: slices.Clone(d.Notes),
	}
	if d.Tensor.HasShape {
		r.Shape = d.Tensor.Shape
	}
	if limit := d.Limit.Or(d.PoolLimit); d.Allocator == "" && limit.Exact() && limit.N == hostLimit {
		r.HostPinned = true
		r.Assumed = append(r.Assumed, "The allocator is not named; a limit of exactly 64 GiB is that of the pool of page-locked host memory.")
	}
	r.request(d)
	r.pool(d)
	r.chunks(d)
	r.holes(d)
	r.Map = chunkMap(d)
	r.Holders = holdersByOp(d)
	r.judge(dumpFacts(r, d))
	return r
}

// hostLimit is what the pool of page-locked host memory may hold unless it is
// told otherwise, in bytes. No device has just that much to give.
const hostLimit = int64(64) << 30

// request finds the exact byte count of what was asked: from the tensor, from
// the error's own number, or from the line itself.
func (r *Reading) request(d *bfclog.Dump) {
	q := &d.Request
	r.RequestedText = q.Size.Text
	r.Rounded = fromSize(q.Rounded)
	if n, ok := d.ElementSize(); ok {
		r.ElementSize = cause.Of(n)
		count, _ := d.Tensor.Elements()
		r.Requested, r.Exact = cause.Of(count*n), true
		r.Basis = shapeBasis(d.Tensor.Shape, n, q.Size.Text, count*n)
	}
	switch {
	case r.Requested.Known:
	case q.Bytes.Known:
		r.Requested, r.Exact, r.Basis = cause.Of(q.Bytes.N), true, "byte count in the error message"
	case q.Size.Exact():
		r.Requested, r.Exact, r.Basis = cause.Of(q.Size.N), true, "byte count in the request line"
	case q.Rounded.Known:
		r.Requested, r.Exact, r.Basis = cause.Of(q.Rounded.N), true, "rounded request; the caller may have asked for up to 255 bytes less"
	case q.Size.Known:
		r.Requested, r.Basis = cause.Of(q.Size.N), "rounded text of the request line"
	}
	if !r.Rounded.Known && r.Requested.Known && r.Exact && r.Requested.N >= 0 && r.Requested.N < math.MaxInt64-granule {
		r.Rounded = cause.Of(roundUp(r.Requested.N))
	}
}

const granule = 256

func roundUp(n int64) int64 { return (n + granule - 1) / granule * granule }

// shapeBasis words how the request follows from a tensor.
func shapeBasis(shape []int64, size int64, text string, bytes int64) string {
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = strconv.FormatInt(n, 10)
	}
	var s strings.Builder
	s.WriteString("shape " + strings.Join(dims, "x") + " with " + strconv.FormatInt(size, 10) + "-byte elements")
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if strings.HasSuffix(text, unit) {
			f := float64(bytes) / math.Ldexp(1, 10*(i+1))
			s.WriteString("; text rounds " + strconv.FormatFloat(f, 'f', 4, 64))
		}
	}
	return s.String()
}

// pool takes limit, pool and use from whichever part of the dump has them.
func (r *Reading) pool(d *bfclog.Dump) {
	r.Limit = fromSize(d.Limit.Or(d.PoolLimit))
	if !r.Limit.Known {
		r.LimitText = d.Limit.Or(d.PoolLimit).Text
	}
	r.InUse, r.Peak = fromSize(d.InUse), fromSize(d.Peak)
	r.Allocs, r.LargestAlloc = fromSize(d.Allocs), fromSize(d.LargestAlloc)
	r.Pool, r.Available, r.NextRegion = fromSize(d.Pool), fromSize(d.Available), fromSize(d.NextRegion)
	r.LargestFreeFieldZero = d.LargestFreeField.Exact() && d.LargestFreeField.N == 0 && d.LargestFreeField.Text == ""
	_, used, _, free := d.Listed()
	if d.ListComplete {
		r.InUse = r.InUse.Or(cause.Of(used))
		r.Pool = r.Pool.Or(cause.Of(used + free))
	}
	if _, bytes, ok := d.SummaryTotals(); ok {
		r.InUse = r.InUse.Or(cause.Of(bytes))
	}
	if !r.InUse.Known {
		r.InUseText = d.InUse.Or(d.SumTotal).Text
	}
	if !r.Peak.Known {
		r.PeakText = d.Peak.Text
	}
	if !r.Available.Known && r.Limit.Known && r.Pool.Known && !d.Async {
		r.Available = cause.Of(r.Limit.N - r.Pool.N)
	}
	switch {
	case r.Pool.Known && r.InUse.Known:
		r.Free = cause.Of(max(0, r.Pool.N-r.InUse.N))
	case r.Limit.Known && r.InUse.Known && !d.Async && r.freeOfLimit():
		r.Free, r.FreeIsOfLimit = cause.Of(max(0, r.Limit.N-r.InUse.N)), true
	}
}

// freeOfLimit says whether what is not in use of the limit lies in the pool, as
// it does without memory growth, or at least whether nothing speaks against it.
func (r *Reading) freeOfLimit() bool {
	return r.InUse.N >= r.Limit.N ||
		r.Growth != bfclog.Yes && len(r.Refusals) == 0 && !barDenies(r.Bar, r.Limit.N, r.InUse.N)
}

// chunks counts what the bins, the list and the summary tell.
func (r *Reading) chunks(d *bfclog.Dump) {
	r.ListComplete = d.ListComplete
	used, usedBytes, free, freeBytes := d.Listed()
	if len(d.Regions) > 0 {
		r.ListedUsed, r.ListedUsedBytes = cause.Of(used), cause.Of(usedBytes)
		r.ListedFree, r.ListedFreeBytes = cause.Of(free), cause.Of(freeBytes)
	}
	if len(d.Bins) == 21 {
		total, inUse := int64(0), int64(0)
		for _, b := range d.Bins {
			total += b.Chunks
			inUse += b.InUse
		}
		r.BinChunks, r.BinUsed, r.BinFree = cause.Of(total), cause.Of(inUse), cause.Of(total-inUse)
		r.FreeChunks = r.BinFree
		if !d.FreeOnly {
			r.UsedChunks = cause.Of(inUse)
			r.tails(d)
		}
	}
	if n, _, ok := d.SummaryTotals(); ok {
		r.UsedChunks = cause.Of(n)
	}
	if d.ListComplete {
		r.UsedChunks, r.FreeChunks = cause.Of(used), cause.Of(free)
	}
	r.summary(d)
	r.regions(d)
	r.Stamped = stamped(d)
	if d.Map && d.ListComplete {
		r.Waste = cause.Of(tailsOf(d))
	}
}

// stamped says whether free chunks of a map carry stamps, which bar those that
// the device may still use.
func stamped(d *bfclog.Dump) bool {
	for i := range d.Regions {
		for j := range d.Regions[i].Chunks {
			if c := &d.Regions[i].Chunks[j]; d.Map && !c.InUse && c.FreedAt != 0 {
				return true
			}
		}
	}
	return false
}

// tailsOf adds up what of the chunks in use was not asked for.
func tailsOf(d *bfclog.Dump) (bytes int64) {
	for i := range d.Regions {
		for j := range d.Regions[i].Chunks {
			if c := &d.Regions[i].Chunks[j]; c.InUse {
				bytes += max(0, c.Size-c.Asked())
			}
		}
	}
	return bytes
}

// NoOp stands in Holders for what was taken outside of any op.
const NoOp = "no op"

// holdersByOp adds up the listed chunks in use by the op that took them, the
// largest first; nil where no op is told.
func holdersByOp(d *bfclog.Dump) []Held {
	at := map[string]int{}
	var list []Held
	named := false
	for i := range d.Regions {
		for j := range d.Regions[i].Chunks {
			c := &d.Regions[i].Chunks[j]
			if !c.InUse {
				continue
			}
			name := c.Op
			if named = named || name != ""; name == "" {
				name = NoOp
			}
			k, ok := at[name]
			if !ok {
				k = len(list)
				at[name], list = k, append(list, Held{Name: name})
			}
			list[k].Bytes += c.Size
			list[k].Blocks++
		}
	}
	if !named {
		return nil
	}
	sortHeld(list)
	return list[:min(len(list), topHolders)]
}

// tails compares what the bins have in use with what was requested of them.
// The figures are rounded, so only a waste beyond their error is told.
func (r *Reading) tails(d *bfclog.Dump) {
	if d.Map {
		return // its chunks tell it to the byte
	}
	var used, requested span
	for _, b := range d.Bins {
		used.lo, used.hi = used.lo+b.Used.Lo, used.hi+b.Used.Hi
		requested.lo, requested.hi = requested.lo+b.Requested.Lo, requested.hi+b.Requested.Hi
		if !b.Used.Known || !b.Requested.Known {
			return
		}
	}
	if r.InUse.Known {
		used = exactly(r.InUse.N)
	}
	lo, hi := used.lo-requested.hi, used.hi-requested.lo
	if lo > 0 && hi-lo < lo/4 {
		r.WasteText = bfclog.Human(lo/2 + hi/2)
	}
}

func (r *Reading) summary(d *bfclog.Dump) {
	if len(d.Summary) == 0 {
		return
	}
	_, bytes, complete := d.SummaryTotals()
	r.SummaryBytes = cause.Of(bytes)
	best, fits := d.Summary[0], r.Requested.Known && r.Requested.N > 0
	var chunks int64
	for _, c := range d.Summary {
		if c.Count*c.Size > best.Count*best.Size {
			best = c
		}
		fits = fits && c.Size >= r.Requested.N
		chunks += c.Count
	}
	if complete || d.SumTotal.Known {
		r.LargestUsed = cause.Of(d.Summary[len(d.Summary)-1].Size)
	}
	// Rows that the text lacks are of other sizes; the best stays the best if
	// all of them together are less.
	total := d.InUse.Or(d.SumTotal)
	if complete || total.Known && best.Count*best.Size >= total.Hi-bytes {
		r.DominantSize, r.DominantCount = cause.Of(best.Size), cause.Of(best.Count)
	}
	if complete && fits && len(r.Shape) > 0 {
		r.OversizedTail = cause.Of(bytes - chunks*r.Requested.N)
	}
}

func (r *Reading) regions(d *bfclog.Dump) {
	if !d.RegionLines {
		return
	}
	var sum int64
	for i := range d.Regions {
		r.RegionSizes = append(r.RegionSizes, d.Regions[i].Size)
		sum += d.Regions[i].Size
	}
	if d.ListComplete || r.Pool.Known && sum == r.Pool.N {
		r.Regions = cause.Of(int64(len(d.Regions)))
	}
}

// holes finds the largest free chunk: exact where the list shows it and the
// bins prove that no larger one is missing from a cut list.
func (r *Reading) holes(d *bfclog.Dump) {
	var listed int64 = -1
	for i := range d.Regions {
		for _, c := range d.Regions[i].Chunks {
			if !c.InUse && c.Size > listed {
				listed = c.Size
				r.LargestFreeAt = c.Address
			}
		}
	}
	proof := largestByBins(d).Or(d.LargestFree)
	switch {
	case d.ListComplete:
		r.LargestFree = cause.Of(max(0, listed))
	case r.Free.Known && r.Free.N == 0:
		r.LargestFree = cause.Of(0)
	case listed >= 0 && r.Free.Known && !r.FreeIsOfLimit && r.ListedFreeBytes.N == r.Free.N:
		r.LargestFree = cause.Of(listed)
	case listed >= 0 && proof.Known && proof.Lo <= listed && listed <= proof.Hi:
		r.LargestFree = cause.Of(listed)
	case proof.Exact():
		r.LargestFree = cause.Of(proof.N)
	}
	r.LargestFreeText = proof.Text
	if !r.LargestFree.Known || r.LargestFree.N != listed {
		r.LargestFreeAt = 0
	}
	if r.Free.Known && r.LargestFree.Known && (!r.FreeIsOfLimit || r.Free.N == 0) {
		r.HasFragmentation = true
		r.Fragmentation = fragmentation(r.Free.N, r.LargestFree.N)
	}
}

// fragmentation is the part of the free bytes outside of the largest free
// chunk, and 0 when nothing is free.
func fragmentation(free, largest int64) float64 {
	if free <= 0 {
		return 0
	}
	return float64(free-largest) / float64(free)
}

// largestByBins is the largest free chunk as far as bins and chunk-state lines
// tell: the largest of the search's own bin, or the only one of the highest
// bin that has any. Unknown when several share that bin unlisted.
func largestByBins(d *bfclog.Dump) bfclog.Size {
	for i := len(d.Bins) - 1; i >= 0; i-- {
		b := &d.Bins[i]
		if b.Index != 20-(len(d.Bins)-1-i) {
			return bfclog.Size{} // a larger bin may be missing
		}
		free := b.Chunks - b.InUse
		if free == 0 {
			continue
		}
		if int64(len(d.State)) == free && d.Target.Known && d.Target.N == 256<<b.Index {
			return largestState(d.State)
		}
		if free > 1 {
			return bfclog.Size{}
		}
		if b.InUse == 0 || d.FreeOnly {
			return b.Allocated
		}
		return difference(b.Allocated, b.Used)
	}
	if len(d.Bins) < 21 {
		return bfclog.Size{}
	}
	return bfclog.ExactSize(0)
}

func largestState(list []bfclog.ChunkState) bfclog.Size {
	best := list[0].Size
	for _, c := range list[1:] {
		if c.Size.N > best.N {
			best = c.Size
		}
	}
	return best
}

func difference(a, b bfclog.Size) bfclog.Size {
	if !a.Known || !b.Known {
		return bfclog.Size{}
	}
	return bfclog.Size{N: a.N - b.N, Lo: a.Lo - b.Hi, Hi: a.Hi - b.Lo, Known: true}
}

// growthOf says whether the pool grows on demand, from whatever shows it.
func growthOf(d *bfclog.Dump) bfclog.Tri {
	if d.Growth != bfclog.Unknown {
		return d.Growth
	}
	limit := fromSize(d.PoolLimit.Or(d.Limit))
	if d.RegionLines && limit.Known && limit.N >= granule {
		whole := limit.N / granule * granule
		if len(d.Regions) > 1 || d.Regions[0].Size != whole {
			return bfclog.Yes
		}
	}
	if !limit.Known || !d.NextRegion.Exact() {
		return bfclog.Unknown
	}
	// The next region doubles: from the whole limit without growth, from a
	// power of two with it.
	switch next := d.NextRegion.N; {
	case next == 2*roundUp(limit.N):
		return bfclog.No
	case next > 0 && next&(next-1) == 0 && next >= 1<<20:
		return bfclog.Yes
	}
	return bfclog.Unknown
}

// chunkMap turns the listed chunks into the form of our own failures. Regions
// that are cut keep their announced size and only the chunks that are there.
func chunkMap(d *bfclog.Dump) event.ChunkMap {
	var m event.ChunkMap
	for i := range d.Regions {
		r := event.Region{Address: d.Regions[i].Address, Size: d.Regions[i].Size}
		for _, c := range d.Regions[i].Chunks {
			r.Chunks = append(r.Chunks, event.Chunk{Address: c.Address, Size: c.Size, Requested: c.Asked(), InUse: c.InUse})
		}
		m = append(m, r)
	}
	return m
}
