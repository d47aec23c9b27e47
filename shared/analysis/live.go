package analysis

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

// Failure is what a recorded run knows about a failed request besides the
// OutOfMemory event itself. An amount that is not known stays zero-valued.
type Failure struct {
	Allocator string
	Device    string
	Growth    bfclog.Tri

	Limit, DeviceTotal, DriverFree amount
	Others, Outside                amount // held by other processes; by this one outside its allocators
	Peak, Allocs, LargestAlloc     amount
	Refusals                       []int64 // what the driver refused just before

	// Partial: the chunk map is not whole, as when a cut log was imported. The
	// totals below hold instead of the map's.
	Partial                        bool
	InUse, Pool, Free, LargestFree amount
}

// FailureFrom gathers what the facts of a device and of an allocator tell, for
// who keeps no running account of a run: what the driver had left then stays
// unknown, and the cause that the run recorded decides.
func FailureFrom(device, allocator event.Fields, limit int64) Failure {
	free := fieldAmount(device, "free")
	f := Failure{
		Allocator: allocator.Text("name"), Device: device.Text("name"), Growth: growthFact(allocator),
		DeviceTotal: fieldAmount(device, "total"), Others: fieldAmount(device, "held"), Outside: outside(device, free),
	}
	if limit > 0 {
		f.Limit = cause.Of(limit)
	}
	if HostPinned(f.Allocator) { // the card's figures say nothing about host memory
		f.DeviceTotal, f.Others, f.Outside = amount{}, amount{}, amount{}
	}
	return f
}

// HostPinned says by an allocator's name whether it hands out page-locked host
// memory.
func HostPinned(name string) bool { return (&bfclog.Dump{Allocator: name}).HostPinned() }

func growthFact(allocator event.Fields) bfclog.Tri {
	g, ok := allocator.Get("growth")
	switch {
	case !ok:
		return bfclog.Unknown
	case g == "true", g == "1", g == "yes":
		return bfclog.Yes
	default:
		return bfclog.No
	}
}

// PartialKey is the field of AllocatorFacts that marks an allocator whose
// blocks are not all told. The Sample events of its device with the following
// names carry the totals, in bytes.
const (
	PartialKey          = "partial"
	FormatKey           = "format" // of AllocatorFacts: imported, from this sort of text
	ReportedInUse       = "in use (reported)"
	ReportedPeak        = "peak in use (reported)"
	ReportedPool        = "pool (reported)"
	ReportedFree        = "free (reported)"
	ReportedLargestFree = "largest free (reported)"

	// VerdictNote begins the Annotation that follows an imported failure and
	// tells its verdict.
	VerdictNote = "verdict: "
)

// FromOutOfMemory reads a failure that our own run recorded. Its chunk map is
// whole, so nothing but the driver's side can be unknown.
func FromOutOfMemory(e *event.Event, strs *event.Strings, f Failure) (*Reading, error) {
	m, err := event.ParseChunkMap(strs.At(e.Text))
	if err != nil {
		return nil, fmt.Errorf("out-of-memory of %s: %w", f.Allocator, err)
	}
	r := &Reading{
		Allocator: f.Allocator, Device: f.Device, Op: strs.At(e.Op), Node: strs.At(e.Tensor),
		Requested: cause.Of(e.Requested), Rounded: cause.Of(e.Size), Exact: true, Basis: "recorded by the run",
		Growth: f.Growth, Limit: f.Limit, DeviceTotal: f.DeviceTotal, DriverFree: f.DriverFree,
		Peak: f.Peak, Allocs: f.Allocs, LargestAlloc: f.LargestAlloc,
		Refusals: f.Refusals, ListComplete: true, Map: m,
		FormatVariant: "recorded by Tideline",
		NotFailure:    e.Flags&event.Retryable != 0,
		Recorded:      true,
	}
	if f.DeviceTotal.Known && f.Others.Known && f.Outside.Known {
		r.Obtainable = cause.Of(max(0, f.DeviceTotal.N-f.Others.N-f.Outside.N))
	}
	r.HostPinned = HostPinned(f.Allocator)
	if e.Size == 0 && e.Requested == 0 { // an import that does not tell it
		r.Requested, r.Rounded, r.Exact, r.Basis = amount{}, amount{}, false, ""
	}
	r.fromMap(m)
	if f.Partial {
		r.replaceTotals(&f)
	}
	r.judge(facts{
		fixed: cause.Inputs{
			LargestFree: r.LargestFree, DeviceTotal: f.DeviceTotal, DriverFree: f.DriverFree, HostPinned: r.HostPinned,
			Others: f.Others, Outside: f.Outside,
		},
		request: spanOf(r.Rounded), limit: spanOf(r.Limit).or(spanOf(f.DeviceTotal)),
		pool: spanOf(r.Pool), inUse: spanOf(r.InUse),
		refused: len(f.Refusals) > 0, state: true,
		recorded: event.OOMCause(e.Cause),
	})
	return r, nil
}

// replaceTotals takes the reported totals in place of those of a partial map.
func (r *Reading) replaceTotals(f *Failure) {
	r.ListComplete, r.Truncated = false, true
	r.Missing = []string{"a part of the chunk list"}
	r.InUse, r.Pool, r.Free, r.LargestFree = f.InUse, f.Pool, f.Free, f.LargestFree
	r.UsedChunks, r.FreeChunks, r.Regions, r.RegionSizes = amount{}, amount{}, amount{}, nil
	r.DominantSize, r.DominantCount, r.LargestUsed, r.Waste = amount{}, amount{}, amount{}, amount{}
	r.FreeIsOfLimit = !r.Pool.Known
	if _, _, _, listed := r.Map.Totals(); !r.LargestFree.Known || r.LargestFree.N != listed {
		r.LargestFreeAt = 0
	}
	r.HasFragmentation = r.Free.Known && r.LargestFree.Known && !r.FreeIsOfLimit
	r.Fragmentation = 0
	if r.HasFragmentation {
		r.Fragmentation = fragmentation(r.Free.N, r.LargestFree.N)
	}
	r.Available = amount{}
	if r.Limit.Known && r.Pool.Known {
		r.Available = cause.Of(max(0, r.Limit.N-r.Pool.N))
	}
}

// fromMap counts a whole chunk map.
func (r *Reading) fromMap(m event.ChunkMap) {
	pool, used, free, largest := m.Totals()
	r.Pool, r.InUse, r.Free, r.LargestFree = cause.Of(pool), cause.Of(used), cause.Of(free), cause.Of(largest)
	r.HasFragmentation, r.Fragmentation = true, fragmentation(free, largest)
	if r.Limit.Known {
		r.Available = cause.Of(max(0, r.Limit.N-pool))
	}
	sizes := map[int64]int64{}
	var nUsed, nFree, waste int64
	for i := range m {
		r.RegionSizes = append(r.RegionSizes, m[i].Size)
		for _, c := range m[i].Chunks {
			if c.InUse {
				nUsed++
				sizes[c.Size]++
				waste += max(0, c.Size-c.Requested)
				continue
			}
			nFree++
			if c.Size == largest && r.LargestFreeAt == 0 {
				r.LargestFreeAt = c.Address
			}
		}
	}
	r.Regions = cause.Of(int64(len(m)))
	r.UsedChunks, r.FreeChunks = cause.Of(nUsed), cause.Of(nFree)
	r.ListedUsed, r.ListedFree = r.UsedChunks, r.FreeChunks
	r.Waste = cause.Of(waste)
	r.ListedUsedBytes, r.ListedFreeBytes = r.InUse, r.Free
	r.commonest(sizes)
}

// commonest finds the size that holds most bytes; of equals the larger, so
// that the order of the map does not show.
func (r *Reading) commonest(sizes map[int64]int64) {
	var best, count, largest int64
	for size, n := range sizes {
		if size*n > best*count || size*n == best*count && size > best {
			best, count = size, n
		}
		largest = max(largest, size)
	}
	if count > 0 {
		r.DominantSize, r.DominantCount, r.LargestUsed = cause.Of(best), cause.Of(count), cause.Of(largest)
	}
}
