package analysis

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/pins"
)

// Measures are the figures of a pool at one instant. "Fragmented" is said of
// different losses with different cures, so they are kept apart.
type Measures struct {
	Reserved, InUse, Requested int64 // bytes: got from the driver, handed out, asked for
	Free, LargestFree          int64 // bytes
	FreeRuns                   int   // runs of free neighbours
}

// Measure takes the figures of a chunk map. A free run is a maximal run of free
// neighbours of one region, though the allocator may keep them apart for now.
func Measure(m event.ChunkMap) Measures {
	var x Measures
	for i := range m {
		r := &m[i]
		x.Reserved += r.Size
		run, end := int64(0), r.Address
		for _, c := range r.Chunks {
			if c.InUse || c.Address != end {
				x.run(run)
				run = 0
			}
			if c.InUse {
				x.InUse += c.Size
				x.Requested += c.Requested
			} else {
				run += c.Size
			}
			end = c.Address + uint64(c.Size)
		}
		x.run(run)
	}
	return x
}

func (x *Measures) run(size int64) {
	if size == 0 {
		return
	}
	x.Free += size
	x.FreeRuns++
	x.LargestFree = max(x.LargestFree, size)
}

// Utilisation is in use over reserved, and 1 when nothing is reserved.
func (x Measures) Utilisation() float64 {
	if x.Reserved == 0 {
		return 1
	}
	return float64(x.InUse) / float64(x.Reserved)
}

// Internal is the part of the bytes in use that nobody asked for: rounding, and
// chunks handed out whole. 0 when nothing is in use.
func (x Measures) Internal() float64 {
	if x.InUse == 0 {
		return 0
	}
	return float64(x.InUse-x.Requested) / float64(x.InUse)
}

// External is the part of the free bytes outside of the largest free run. 0
// when nothing is free.
func (x Measures) External() float64 { return fragmentation(x.Free, x.LargestFree) }

// Pins are the regions of which little keeps much, where all chunks are known
// and there is more than one region: of one alone, the holes say it.
func (r *Reading) Pins() []pins.Pin {
	if !r.ListComplete || len(r.Map) < 2 {
		return nil
	}
	return pins.Of(r.Map)
}

// UsableFor is how many requests of n bytes the free runs would serve at once,
// without growth. Requests round up to the granule of 256 bytes.
func UsableFor(m event.ChunkMap, n int64) int64 {
	if n <= 0 {
		return 0
	}
	n = roundUp(n)
	var count int64
	for i := range m {
		run, end := int64(0), m[i].Address
		for _, c := range m[i].Chunks {
			if c.InUse || c.Address != end {
				count += run / n
				run = 0
			}
			if !c.InUse {
				run += c.Size
			}
			end = c.Address + uint64(c.Size)
		}
		count += run / n
	}
	return count
}
