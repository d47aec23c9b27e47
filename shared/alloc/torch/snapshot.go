package torch

import (
	"sort"

	"tideline/protocol/event"
)

// BlockState is what a snapshot says of a block.
type BlockState uint8

// The states.
const (
	Inactive BlockState = iota
	ActiveAllocated
	ActivePendingFree
)

// String is the state's word in a snapshot file.
func (s BlockState) String() string {
	switch s {
	case ActiveAllocated:
		return "active_allocated"
	case ActivePendingFree:
		return "active_pending_free"
	default:
		return "inactive"
	}
}

// SnapshotBlock is one block of a segment. Requested of an inactive block is
// that of an earlier use.
type SnapshotBlock struct {
	Address   uint64
	Size      int64
	Requested int64
	State     BlockState
}

// SnapshotSegment is a segment, or a run of mapped pages of an expandable one.
type SnapshotSegment struct {
	Device     int
	Address    uint64
	Total      int64
	Allocated  int64
	Active     int64
	Requested  int64
	Stream     Stream
	Large      bool // segment_type large or small
	Pool       PoolID
	Expandable bool
	Blocks     []SnapshotBlock
}

// Type is the segment_type of a snapshot file.
func (s *SnapshotSegment) Type() string {
	if s.Large {
		return "large"
	}
	return "small"
}

// Snapshot is everything held, ascending by address. It leaves an entry in the
// trace, as upstream.
func (a *Allocator) Snapshot() []SnapshotSegment {
	list := a.segments()
	var total int64
	for i := range list {
		total += list[i].Active
	}
	a.trace(ActionSnapshot, 0, total, 0)
	return list
}

func (a *Allocator) segments() []SnapshotSegment {
	var list []SnapshotSegment
	for h := range a.blocks {
		b := &a.blocks[h]
		if b.is(live|mapped) && (b.prev == none || !a.blocks[b.prev].is(mapped)) {
			list = append(list, a.snapshotSegment(uint32(h)))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Address < list[j].Address })
	return list
}

func (a *Allocator) snapshotSegment(h uint32) SnapshotSegment {
	b := &a.blocks[h]
	ar := a.arenas[b.arena]
	s := SnapshotSegment{
		Device: a.o.Device, Address: b.addr, Stream: ar.stream, Large: ar.pool.kind == large, Expandable: b.is(expandable),
	}
	if ar.pool.owner != nil {
		s.Pool = ar.pool.owner.id
	}
	for ; h != none && a.blocks[h].is(mapped); h = a.blocks[h].next {
		b := &a.blocks[h]
		sb := SnapshotBlock{Address: b.addr, Size: b.size, Requested: b.requested}
		s.Total += b.size
		switch {
		case b.is(inUse):
			sb.State = ActiveAllocated
			s.Allocated += b.size
		case !b.mergeable():
			sb.State = ActivePendingFree
		}
		if sb.State != Inactive {
			s.Active += b.size
			s.Requested += b.requested
		}
		s.Blocks = append(s.Blocks, sb)
	}
	return s
}

// ChunkMap implements alloc.Allocator. A block that waits for a stream is not
// in use.
func (a *Allocator) ChunkMap() event.ChunkMap {
	list := a.segments()
	m := make(event.ChunkMap, len(list))
	for i := range list {
		s := &list[i]
		m[i] = event.Region{Address: s.Address, Size: s.Total, Chunks: make([]event.Chunk, len(s.Blocks))}
		for k, b := range s.Blocks {
			m[i].Chunks[k] = event.Chunk{Address: b.Address, Size: b.Size, Requested: b.Requested, InUse: b.State == ActiveAllocated}
		}
	}
	return m
}
