package store

import "tideline/protocol/event"

type table struct{}

type trackKey struct{}

type seriesKey struct{}

// Append takes more events, in order. They are copied: the slice may be used
// again.
func (t *Timeline) Append(events []event.Event) {}

// Bytes is how much memory the timeline holds, strings left out.
func (t *Timeline) Bytes() int64 { return 0 }

// Pool is one allocator on one device with its history.
type Pool struct {
	Index     int // in Timeline.Pools
	Device    event.DeviceID
	Allocator event.AllocatorID
	Name      string // GPU_0_bfc, or "allocator 2" when the facts are missing
	Limit     int64  // bytes; 0: none
	Facts     event.Fields
}

// At is what the pool holds at time at.
func (p *Pool) At(at int64) State { return State{} }

// Now is what the pool holds after the last event.
func (p *Pool) Now() State { return State{} }

// Buckets fills dst, which must have w.W elements, with the pool's bytes over
// the window. The cost grows with w.W, not with the events in it.
func (p *Pool) Buckets(w Window, dst []MemoryBucket) {}

// Allocs is the number of allocations so far.
func (p *Pool) Allocs() int { return 0 }

// Alloc is allocation i, 0 <= i < Allocs().
func (p *Pool) Alloc(i int) Allocation { return Allocation{} }

// LiveAt appends the allocations that are live at time at to dst, by age.
func (p *Pool) LiveAt(dst []int32, at int64) []int32 { return dst }

// Overlapping appends the allocations that are live at some moment of
// [t0,t1), by age; it stops after limit of them (0: no limit).
func (p *Pool) Overlapping(dst []int32, t0, t1 int64, limit int) []int32 { return dst }

// Sort orders allocations of this pool.
func (p *Pool) Sort(allocs []int32, by SortKey) {}

// Totals sums allocations by category, in the order of the categories; those
// with none are left out.
func (p *Pool) Totals(allocs []int32) []Total { return nil }

// TotalsByOp sums allocations by op, largest first, at most n (0: all).
func (p *Pool) TotalsByOp(allocs []int32, n int) []Total { return nil }

// ChunkMapAt is the pool's memory at time at: regions ascending by address,
// tiled by blocks in use and the holes between them.
func (p *Pool) ChunkMapAt(at int64) event.ChunkMap { return nil }

// Peak is the highest use in the window [t0,t1), with at most top ops.
func (p *Pool) Peak(t0, t1 int64, top int) Peak { return Peak{} }

// Regions are all regions that the pool ever held, in order of arrival.
func (p *Pool) Regions() []Region { return nil }

// LayoutSize is the length of the compact layout in bytes.
func (p *Pool) LayoutSize() int64 { return 0 }

// Offset is the place of an address at time at in the compact layout; ok is
// false when no region of that time holds it.
func (p *Pool) Offset(address uint64, at int64) (off int64, ok bool) { return 0, false }

// AllocAt is the allocation that covers a place of the compact layout at time
// at; ok is false for a hole.
func (p *Pool) AllocAt(off, at int64) (alloc int, ok bool) { return 0, false }

// TrackKind says what the spans of a track are.
type TrackKind uint8

// The kinds of track.
const (
	OpTrack       TrackKind = iota // ops of one stream; class: event.OpForward …
	TransferTrack                  // copies from Device to Peer; class: event.TransferCause, value: bytes
	StepTrack                      // steps; value: the batch
	StallTrack                     // waits of Device for its input
	StageTrack                     // elements in one stage of the input pipeline; value: bytes out
)

// Span is one thing that began and ended.
type Span struct {
	Index  int
	Begin  int64 // nanoseconds
	End    int64 // Alive when it has not ended
	Value  int64 // bytes, or what the track's kind says
	Op     event.StringID
	Tensor event.StringID
	Step   int32
	Class  uint8
	Flags  event.Flags
}

// NumClasses bounds Span.Class.
const NumClasses = 8

// SpanBucket is a track over one bucket of a Window.
type SpanBucket struct {
	Busy  [NumClasses]int64 // nanoseconds of the bucket, by class; together they may exceed its length where spans overlap
	Bytes [NumClasses]int64 // of Value, spread evenly over each span's time, by class
	Count int               // spans that begin in the bucket
}

// Track is one row of spans in order of begin.
type Track struct {
	Index  int // in Timeline.Tracks
	Kind   TrackKind
	Device event.DeviceID
	Peer   event.DeviceID // TransferTrack: the destination
	Stream event.StreamID // OpTrack, TransferTrack
	Op     event.StringID // StageTrack: the stage
}

// Spans is the number of spans so far.
func (t *Track) Spans() int { return 0 }

// Span is span i, 0 <= i < Spans().
func (t *Track) Span(i int) Span { return Span{} }

// Buckets fills dst, which must have w.W elements.
func (t *Track) Buckets(w Window, dst []SpanBucket) {}

// Overlapping appends the spans that overlap [t0,t1), by begin; it stops after
// limit of them (0: no limit).
func (t *Track) Overlapping(dst []int32, t0, t1 int64, limit int) []int32 { return dst }

// Sum is the time and the values of the spans that begin in [t0,t1), by class.
func (t *Track) Sum(t0, t1 int64) (busy, value [NumClasses]int64, count int) { return }

// SeriesKind says what a series counts.
type SeriesKind uint8

// The kinds of series.
const (
	QueueSeries  SeriesKind = iota // elements in a pipeline buffer; second value: its capacity
	SampleSeries                   // event.Sample
	MetricSeries                   // event.Metric: float64 bits, see Series.Float
)

// SeriesBucket is a series over one bucket of a Window.
type SeriesBucket struct {
	Min, Max, Last int64 // the value at the bucket's start counts
	Known          bool  // false before the first point
}

// Series is a number over time.
type Series struct {
	Index  int
	Kind   SeriesKind
	Device event.DeviceID
	Name   event.StringID
	Second int64 // the last second value: a queue's capacity
}

// Len is the number of points.
func (s *Series) Len() int { return 0 }

// Point is point i; step is event.NoStep where it has none.
func (s *Series) Point(i int) (at, value int64, step int32) { return 0, 0, event.NoStep }

// Buckets fills dst, which must have w.W elements.
func (s *Series) Buckets(w Window, dst []SeriesBucket) {}

// Step is one step of the run.
type Step struct {
	Step       int32
	Begin, End int64 // End is Alive while it runs
	Batch      int64
}

// StepAt is the step that runs at time at, or the last one before it; false
// when there is none.
func (t *Timeline) StepAt(at int64) (Step, bool) { return Step{}, false }

// FindStep is the step of that number.
func (t *Timeline) FindStep(n int32) (Step, bool) { return Step{}, false }

// HitKind says what a Hit is.
type HitKind uint8

// The kinds of hit.
const (
	AllocHit HitKind = iota // Pool and Index
	SpanHit                 // Track and Index
)

// Hit is one thing found by Search.
type Hit struct {
	Kind  HitKind
	Pool  int
	Track int
	Index int
	Time  int64
	Size  int64
}

// Query says what to search for. The zero value of a field asks for nothing.
type Query struct {
	Text     string // part of an op's or tensor's name, in any case
	MinBytes int64
	MaxBytes int64 // 0: no bound
	T0, T1   int64 // both 0: all of the timeline; else what begins in [T0,T1)
	Limit    int   // hits at most; 0 means 100
}

// Cursor is where a search goes on; the zero value is the start.
type Cursor struct{ part, index int }

// Search returns hits from a cursor on, allocations first, and where to go on;
// done is true when nothing is left.
func (t *Timeline) Search(q Query, from Cursor) (hits []Hit, next Cursor, done bool) {
	return nil, from, true
}

// SameInstant is the time in b that corresponds to time at in a: the same
// fraction of the same step where both have it, else the same time.
func SameInstant(a, b *Timeline, at int64) int64 { return at }

// Difference is how one pool differs between two timelines.
type Difference struct {
	Name       string // of the pool
	A, B       int    // its index in each timeline; -1 where it is missing
	PeakA      int64  // bytes in use
	PeakB      int64
	ReservedA  int64 // highest, bytes
	ReservedB  int64
	ByCategory Categories // B minus A, each at its own peak
	Ops        []Total    // B minus A by op at the peaks, largest change first
}

// Compare puts the pools of two timelines side by side, matched by device and
// allocator name, with the top ops of each.
func Compare(a, b *Timeline, top int) []Difference { return nil }
