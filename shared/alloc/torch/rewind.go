package torch

import (
	"fmt"
	"slices"
	"sort"
)

// Rewind takes a snapshot back to where its trace begins: what Restore needs to
// replay the trace. The trace must reach to the snapshot; entries that were
// lost before its beginning do not matter. An entry that the state contradicts
// is an error, with its position.
//
// A freed block's size is not in the trace. It follows from the settings: the
// rounded request, and what the splitting rules do not split off.
func Rewind(segments []SnapshotSegment, trace []TraceEntry, s *Settings) ([]SnapshotSegment, error) {
	r := rewinder{s: s, blocks: map[uint64]SnapshotBlock{}}
	for i := range segments {
		for _, b := range segments[i].Blocks {
			if b.State != Inactive {
				r.blocks[b.Address] = b
			}
		}
		seg := segments[i]
		seg.Blocks = nil
		r.segments = append(r.segments, seg)
	}
	sort.SliceStable(r.segments, func(i, j int) bool { return r.segments[i].Address < r.segments[j].Address })
	for i, e := range slices.Backward(trace) {
		if err := r.undo(e); err != nil {
			return nil, fmt.Errorf("rewind: entry %d (%s at %#x, %d bytes): %w", i, e.Action, e.Addr, e.Size, err)
		}
	}
	return r.tile()
}

type rewinder struct {
	s        *Settings
	segments []SnapshotSegment // without blocks, ascending
	blocks   map[uint64]SnapshotBlock
}

func (r *rewinder) undo(e TraceEntry) error {
	b, there := r.blocks[e.Addr]
	switch e.Action {
	case ActionAlloc:
		if !there || b.State != ActiveAllocated {
			return fmt.Errorf("the block is not in use after it")
		}
		delete(r.blocks, e.Addr)
	case ActionFreeRequested:
		if !there || b.State != ActivePendingFree {
			return fmt.Errorf("the block is not waiting after it")
		}
		b.State = ActiveAllocated
		r.blocks[e.Addr] = b
	case ActionFreeCompleted:
		if there {
			return fmt.Errorf("the block is in use after it")
		}
		if e.Size <= 0 || e.Size > MaxRequest {
			return fmt.Errorf("no block holds so much")
		}
		r.blocks[e.Addr] = SnapshotBlock{Address: e.Addr, Size: r.s.Round(e.Size), Requested: e.Size, State: ActivePendingFree}
	case ActionSegmentAlloc, ActionSegmentMap:
		return r.cut(e)
	case ActionSegmentFree, ActionSegmentUnmap:
		return r.add(e)
	case ActionSnapshot, ActionOOM:
	default:
		return fmt.Errorf("the action is unknown")
	}
	return nil
}

// over is the segment that covers the range, or -1.
func (r *rewinder) over(addr uint64, size int64) int {
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].Address > addr }) - 1
	if i < 0 || addr-r.segments[i].Address > uint64(r.segments[i].Total) ||
		uint64(size) > uint64(r.segments[i].Total)-(addr-r.segments[i].Address) {
		return -1
	}
	return i
}

// cut takes the bytes away that came with the entry.
func (r *rewinder) cut(e TraceEntry) error {
	i := -1
	if e.Size > 0 {
		i = r.over(e.Addr, e.Size)
	}
	if i < 0 || !r.segments[i].Expandable && r.segments[i].Total != e.Size {
		return fmt.Errorf("no such segment is there after it")
	}
	seg := r.segments[i]
	var parts []SnapshotSegment
	if before := int64(e.Addr - seg.Address); before > 0 {
		low := seg
		low.Total = before
		parts = append(parts, low)
	}
	if after := seg.Total - int64(e.Addr-seg.Address) - e.Size; after > 0 {
		high := seg
		high.Address, high.Total = e.Addr+uint64(e.Size), after
		parts = append(parts, high)
	}
	switch len(parts) {
	case 0:
		r.remove(i)
	case 1:
		r.segments[i] = parts[0]
	default:
		r.segments[i] = parts[0]
		r.insert(i+1, parts[1])
	}
	return nil
}

// add brings the bytes back that went with the entry, and joins pages with
// those they touch.
func (r *rewinder) add(e TraceEntry) error {
	if e.Size <= 0 || e.Addr+uint64(e.Size) < e.Addr {
		return fmt.Errorf("no segment is like that")
	}
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].Address >= e.Addr })
	seg := SnapshotSegment{
		Address: e.Addr, Total: e.Size, Stream: e.Stream, Expandable: e.Action == ActionSegmentUnmap,
		Large: e.Size != SmallSegment,
	}
	if i > 0 {
		seg.Device = r.segments[i-1].Device
	} else if i < len(r.segments) {
		seg.Device = r.segments[i].Device
	}
	if seg.Expandable {
		r.guessPool(&seg)
	}
	if i < len(r.segments) && e.Addr+uint64(e.Size) > r.segments[i].Address ||
		i > 0 && r.segments[i-1].Address+uint64(r.segments[i-1].Total) > e.Addr {
		return fmt.Errorf("another segment lies there after it")
	}
	r.insert(i, seg)
	if i+1 < len(r.segments) && r.segments[i].touches(&r.segments[i+1]) {
		r.segments[i].Total += r.segments[i+1].Total
		r.remove(i + 1)
	}
	if i > 0 && r.segments[i-1].touches(&r.segments[i]) {
		r.segments[i-1].Total += r.segments[i].Total
		r.remove(i)
	}
	return nil
}

// insert and remove change one place of the segments; what package slices has for
// it is compiled anew for each type, 10 KB of the browser's module.
func (r *rewinder) insert(i int, seg SnapshotSegment) {
	r.segments = append(r.segments, SnapshotSegment{})
	copy(r.segments[i+1:], r.segments[i:])
	r.segments[i] = seg
}

func (r *rewinder) remove(i int) {
	r.segments = append(r.segments[:i], r.segments[i+1:]...)
}

// guessPool: an entry does not name its pool. Pages belong to the nearest run of
// their stream within a reservation's reach; without one, their size tells.
func (r *rewinder) guessPool(seg *SnapshotSegment) {
	seg.Large = seg.Total%r.s.largeSegment() == 0
	best := uint64(1) << 40
	for i := range r.segments {
		o := &r.segments[i]
		if !o.Expandable || o.Stream != seg.Stream {
			continue
		}
		gap := max(o.Address, seg.Address) - min(o.Address+uint64(o.Total), seg.Address+uint64(seg.Total))
		if gap < best {
			best, seg.Large, seg.Pool = gap, o.Large, o.Pool
		}
	}
}

// tile lays the blocks into their segments and fills the gaps.
func (r *rewinder) tile() ([]SnapshotSegment, error) {
	list := make([]SnapshotBlock, 0, len(r.blocks))
	for _, b := range r.blocks {
		list = append(list, b)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Address < list[j].Address })
	for i := range r.segments {
		n := 0
		s := &r.segments[i]
		for n < len(list) && list[n].Address < s.Address+uint64(s.Total) {
			n++
		}
		if err := r.fill(s, list[:n]); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("rewind: block %#x lies in no segment", list[0].Address)
	}
	return r.segments, nil
}

func (r *rewinder) fill(s *SnapshotSegment, list []SnapshotBlock) error {
	s.Allocated, s.Active, s.Requested = 0, 0, 0
	at, end := s.Address, s.Address+uint64(s.Total)
	for i, b := range list {
		if b.Address < at || uint64(b.Size) > end-b.Address {
			return fmt.Errorf("rewind: block %#x of %d bytes does not fit into segment %#x", b.Address, b.Size, s.Address)
		}
		if b.Address > at {
			s.Blocks = append(s.Blocks, SnapshotBlock{Address: at, Size: int64(b.Address - at)})
		}
		next := end
		if i+1 < len(list) {
			next = list[i+1].Address
		}
		if gap := int64(next-b.Address) - b.Size; gap > 0 && r.whole(s, &b, gap) {
			b.Size += gap
		}
		s.Blocks = append(s.Blocks, b)
		at = b.Address + uint64(b.Size)
		s.Active += b.Size
		s.Requested += b.Requested
		if b.State == ActiveAllocated {
			s.Allocated += b.Size
		}
	}
	if at < end {
		s.Blocks = append(s.Blocks, SnapshotBlock{Address: at, Size: int64(end - at)})
	}
	return nil
}

// whole: what follows the block is its own, because it would not have been
// split off, and nothing so small is ever free there.
func (r *rewinder) whole(s *SnapshotSegment, b *SnapshotBlock, gap int64) bool {
	return s.Large && !s.Expandable && (gap <= SmallLimit || r.s.Round(b.Requested) >= r.s.maxSplit())
}
