package remedy

import (
	"tideline/shared/alloc/torch"
)

// follower compares what an allocator does with what was recorded, up to the
// first difference. Addresses are compared within segments.
type follower struct {
	want  []torch.TraceEntry
	next  int
	odd   int
	moved map[uint64]uint64 // recorded blocks to those of the replay
}

// Trace implements torch.Tracer.
func (h *follower) Trace(e torch.TraceEntry) {
	if h.odd > 0 || h.next >= len(h.want) {
		return
	}
	w := &h.want[h.next]
	if w.Action != e.Action || w.Size != e.Size || w.Stream != e.Stream && w.Action != torch.ActionSnapshot {
		h.odd++
		return
	}
	if e.Action == torch.ActionAlloc {
		h.moved[w.Addr] = e.Addr
	}
	h.next++
}

func (h *follower) play(a *torch.Allocator, t *caching) {
	h.moved = map[uint64]uint64{}
	private := t.private()
	for i := 0; i < len(h.want) && h.odd == 0; i++ {
		if h.next > i {
			continue // done by the call before
		}
		switch e := &h.want[i]; e.Action {
		case torch.ActionAlloc, torch.ActionSegmentAlloc, torch.ActionSegmentMap, torch.ActionOOM:
			if !h.request(a, i, private) {
				h.odd++
			}
		case torch.ActionFreeCompleted: // of a block that waited when the trace began
			a.ProcessEvents()
		case torch.ActionFreeRequested:
			addr, ok := h.moved[e.Addr]
			if !ok {
				addr = e.Addr
			}
			delete(h.moved, e.Addr)
			if a.Free(addr) != nil {
				h.odd++
			}
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			if _, forced := t.givenBack(i); forced {
				if !h.request(a, i, private) {
					h.odd++
				}
			} else {
				a.EmptyCache()
			}
		case torch.ActionSnapshot:
			h.next++
		}
		if h.next <= i {
			h.odd++
		}
	}
}

// request asks for what the next allocation or failure at or after entry i is
// about.
func (h *follower) request(a *torch.Allocator, i int, private []torch.SnapshotSegment) bool {
	for ; i < len(h.want); i++ {
		e := &h.want[i]
		if e.Action == torch.ActionAlloc || e.Action == torch.ActionOOM {
			r := torch.Request{Bytes: e.Size, Stream: e.Stream}
			if e.Action == torch.ActionAlloc {
				r.Pool = poolOf(private, e.Addr)
			}
			_, ok := a.AllocateOn(r)
			return ok == (e.Action == torch.ActionAlloc)
		}
	}
	return false
}
