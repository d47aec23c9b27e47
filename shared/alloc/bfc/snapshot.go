package bfc

import (
	"tideline/protocol/event"
	"tideline/shared/alloc"
)

// Map is everything the allocator holds at an instant, as the memory map and
// the dump tell it.
type Map struct {
	Name          string
	Regions       []MapRegion
	Bins          [NumBins]BinSummary
	Stats         alloc.Stats
	Fragmentation float64 // NaN when nothing is free
	Stamped       bool    // a timing counter is set
}

// MapRegion is one region with its chunks, ascending by address.
type MapRegion struct {
	Address uint64
	Size    int64
	Chunks  []MapChunk
}

// MapChunk is one chunk as the allocator holds it. Requested and FreedAt are
// left over from earlier uses where they do not apply.
type MapChunk struct {
	Address   uint64
	Size      int64
	Requested int64
	Bin       int   // -1 when in no bin
	ID        int64 // -1 when free
	FreedAt   uint64
	Handle    uint64
	Next      uint64 // handle of the next chunk, or InvalidHandle
	Tag       string // lower, upper or central_gap
}

// InUse reports whether the chunk is handed out.
func (c MapChunk) InUse() bool { return c.ID != idFree }

// BinSummary counts the chunks whose size belongs to one bin, in use or free;
// the gap of a partitioned region is left out.
type BinSummary struct {
	BytesInUse     int64
	Bytes          int64
	ChunksInUse    int64
	Chunks         int64
	RequestedInUse int64
}

func (a *Allocator) mapChunk(h uint32) MapChunk {
	c := &a.chunks[h]
	m := MapChunk{
		Address: c.addr, Size: int64(c.size), Requested: int64(c.requested), Bin: -1, ID: c.id,
		FreedAt: c.freedAt, Handle: upstreamHandle(h), Next: upstreamHandle(c.next), Tag: tagNames[c.tag],
	}
	if c.binned() {
		m.Bin = binOf(c.size)
	}
	return m
}

// Map takes a picture of everything.
func (a *Allocator) Map() Map {
	m := Map{
		Name: a.o.Name, Regions: make([]MapRegion, 0, len(a.regions)), Bins: a.bins(),
		Stats: a.Stats(), Fragmentation: a.Fragmentation(), Stamped: a.counter != nil,
	}
	for _, r := range a.regions {
		mr := MapRegion{Address: r.addr, Size: int64(r.size)}
		for h := r.first; h != none; h = a.chunks[h].next {
			mr.Chunks = append(mr.Chunks, a.mapChunk(h))
		}
		m.Regions = append(m.Regions, mr)
	}
	return m
}

func (a *Allocator) bins() (bins [NumBins]BinSummary) {
	a.eachChunk(func(_ uint32, c *chunk) {
		if c.tag == tagGap {
			return
		}
		b := &bins[binOf(c.size)]
		b.Bytes += int64(c.size)
		b.Chunks++
		if c.inUse() {
			b.BytesInUse += int64(c.size)
			b.RequestedInUse += int64(c.requested)
			b.ChunksInUse++
		}
	})
	return bins
}

// ChunkMap implements alloc.Allocator.
func (a *Allocator) ChunkMap() event.ChunkMap {
	m := make(event.ChunkMap, 0, len(a.regions))
	for _, r := range a.regions {
		er := event.Region{Address: r.addr, Size: int64(r.size)}
		for h := r.first; h != none; h = a.chunks[h].next {
			c := &a.chunks[h]
			er.Chunks = append(er.Chunks, event.Chunk{
				Address: c.addr, Size: int64(c.size), Requested: int64(c.requested), InUse: c.inUse(),
			})
		}
		m = append(m, er)
	}
	return m
}
