package remedy

import (
	"tideline/shared/alloc/torch"
)

// Recorded is a device's part of a PyTorch snapshot.
type Recorded struct {
	Segments []torch.SnapshotSegment // at the end
	Trace    []torch.TraceEntry      // up to the end
	Settings torch.Settings
}

// Torch replays a snapshot's trace up to its last refused request.
func Torch(in *Recorded, o Options) Outcome {
	t := caching{in: in, work: o.work()}
	t.end = len(in.Trace)
	for i := range in.Trace {
		if in.Trace[i].Action == torch.ActionOOM {
			t.end, t.failed = i+1, true
		}
	}
	if len(in.Trace) == 0 {
		return Outcome{} // a state without a failure tells of no request
	}
	var err error
	if t.begin, err = torch.Rewind(in.Segments, in.Trace, &in.Settings); err != nil {
		return Outcome{Replayed: "The trace and the state at its end do not agree, so nothing was replayed: " + err.Error() + "."}
	}
	t.measure()
	if t.failed {
		t.failure()
	} else {
		t.peaks()
	}
	t.out.order()
	return t.out
}

// caching is the work on one snapshot.
type caching struct {
	in     *Recorded
	begin  []torch.SnapshotSegment // where the trace begins
	end    int                     // entries that are replayed
	failed bool
	how    way
	*work
	out Outcome

	capacity int64 // of the device for this process; 0 when unknown
	limited  bool  // by a fraction, below what the device had
	beyond   int64 // what the device had for this process then
	peak     int64 // most bytes reserved, as recorded
	live     int   // blocks at the beginning
}

// measure finds the capacity: at a refused request the file tells what the
// device had free, and the trace what was reserved.
func (t *caching) measure() {
	var reserved int64
	for i := range t.begin {
		reserved += t.begin[i].Total
		for _, b := range t.begin[i].Blocks {
			if b.State != torch.Inactive {
				t.live++
			}
		}
	}
	peak := reserved
	for i := range t.in.Trace[:t.end] {
		switch e := &t.in.Trace[i]; e.Action {
		case torch.ActionSegmentAlloc, torch.ActionSegmentMap:
			reserved += e.Size
			peak = max(peak, reserved)
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			reserved -= e.Size
		case torch.ActionOOM:
			free := int64(min(e.Addr, 1<<60))
			t.limited = free >= t.needs(e.Size)
			if t.limited {
				t.beyond, t.capacity = reserved+free, 0
			} else if c := reserved + free; t.capacity == 0 || c < t.capacity {
				t.capacity = c
			}
		default:
		}
	}
	if t.peak = peak; t.failed {
		t.capacity = max(t.capacity, peak)
	}
}

// needs is what a request takes of the driver at the most. Pages are mapped
// whole.
func (t *caching) needs(bytes int64) int64 {
	s := &t.in.Settings
	r := s.Round(max(1, bytes))
	if !s.Expandable || r <= torch.SmallLimit {
		return s.Segment(r)
	}
	page := s.LargeSegment
	if page == 0 {
		page = torch.DefaultLargeSegment
	}
	return (r + page - 1) / page * page
}

// maxSmallIdle bounds the pieces that a file can ask for. A segment of small
// blocks is 2 MiB; runs of expandable ones grow.
const maxSmallIdle = 4 << 30

// idle are pieces that stand for an idle block of a segment while the state is
// built up: requests that its pool serves.
func idle(size int64, large bool, piece func(bytes int64)) {
	if !large && size > maxSmallIdle {
		return // no allocator's; a file that claims so is not believed
	}
	for ; !large && size > torch.SmallLimit; size -= torch.SmallLimit {
		piece(torch.SmallLimit)
	}
	if size > torch.SmallLimit == large && size > 0 {
		piece(size)
	}
}
