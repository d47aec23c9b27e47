package torch

// Action is what a trace entry tells of.
type Action uint8

// The actions, in the words of the snapshot file.
const (
	ActionAlloc Action = iota
	ActionFreeRequested
	ActionFreeCompleted
	ActionSegmentAlloc
	ActionSegmentFree
	ActionSegmentMap
	ActionSegmentUnmap
	ActionSnapshot
	ActionOOM
	numActions
)

var actionNames = [numActions]string{
	"alloc", "free_requested", "free_completed", "segment_alloc", "segment_free",
	"segment_map", "segment_unmap", "snapshot", "oom",
}

// String is the action's word in a snapshot file.
func (k Action) String() string {
	if k < numActions {
		return actionNames[k]
	}
	return "unknown"
}

// TraceEntry is one thing that the allocator did. Entries have no time: the
// allocator has no clock.
type TraceEntry struct {
	Action Action
	// Addr is an address; for ActionOOM the device's free bytes, for
	// ActionSnapshot 0.
	Addr uint64
	// Size is the requested size for allocations and frees, else the bytes of
	// the segment or page run; for ActionOOM the rounded request, for
	// ActionSnapshot all active bytes.
	Size   int64
	Stream Stream
}

// Tracer hears every entry as it happens. It must not call the allocator.
type Tracer interface{ Trace(e TraceEntry) }

func (a *Allocator) trace(k Action, addr uint64, size int64, s Stream) {
	if a.tracer != nil {
		a.tracer.Trace(TraceEntry{k, addr, size, s})
	}
}

// History keeps the last entries, as the recorded memory history does.
type History struct {
	ring []TraceEntry
	most int
	next int
	seen int64
}

// NewHistory keeps at most so many entries; below 1 counts as 1.
func NewHistory(most int) *History { return &History{most: max(1, most)} }

// Trace implements Tracer.
func (h *History) Trace(e TraceEntry) {
	h.seen++
	if len(h.ring) < h.most {
		h.ring = append(h.ring, e)
		return
	}
	h.ring[h.next] = e
	h.next = (h.next + 1) % h.most
}

// Entries are those kept, the oldest first.
func (h *History) Entries() []TraceEntry {
	return append(append(make([]TraceEntry, 0, len(h.ring)), h.ring[h.next:]...), h.ring[:h.next]...)
}

// Lost is how many entries were pushed out.
func (h *History) Lost() int64 { return h.seen - int64(len(h.ring)) }
