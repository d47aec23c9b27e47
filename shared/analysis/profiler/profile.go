package profiler

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Event is one MemoryAllocation or MemoryDeallocation with its statistics, as
// the allocator stood after it. Bytes.
type Event struct {
	Time   int64 // picoseconds or whatever the file counts in; only compared
	Memory string
	Free   bool
	Step   int64 // group id; NoStep for none

	Stack, Heap, Available int64 // reserved, in use, limit less both
	Fragmentation          float64
	PeakInUse              int64 // of the allocator's life up to now
	// NoAvailable and NoFragmentation say that the figure is not known; it is 0
	// then, which is what the profiler's page makes of one that a file lacks.
	NoAvailable, NoFragmentation bool

	Requested, Allocated int64
	Address              uint64
	Op, Region           string // Region: output, temp, persist, dynamic, ""
	DataType, Shape      string
}

// NoStep is the Step of an event without a group id.
const NoStep int64 = -1

func (e *Event) total() int64 { return e.Stack + e.Heap }

// MaxPoints is how many points of the timeline are kept.
const MaxPoints = 1000

// What the table says of memory that no allocation of the peak's step explains.
const (
	Unmapped      = "unused preallocated device memory"
	UnmappedKind  = "persist/dynamic"
	StackRow      = "stack"
	invalidType   = "INVALID"
	unknownShape  = "unknown"
	noSpecialRow  = -1
	firstUnmapped = -1 // index of the first special row; the next is one less
)

// Profile is the page of one allocator.
type Profile struct {
	Memory       string
	LifetimePeak int64
	Peak         Event // the statistics at the window's peak
	PeakBytes    int64
	PeakTime     int64
	PeakStep     int64
	Capacity     int64
	Allocs       int // counted over the points, as the page does
	Frees        int
	Points       []Event // at most MaxPoints, by time
	Rows         []Row   // of the table, in its order
	Kept         []Event // the snapshots that rows are of
	Special      []Row   // those that are of none
}

// Row is a line of the table. Sizes are those of one occurrence.
type Row struct {
	Op, Region, DataType, Shape string
	Allocated, Requested        int64
	Occurrences                 int
	Snapshot                    int // in Kept, or negative: -1-i is Special[i]
	SpecialIndex                int // i of the latter, else -1
}

// Of makes the pages of all allocators, by name, from events in the order of
// the file: line by line, not by time.
func Of(events []Event) []Profile {
	var names []string
	by := map[string][]Event{}
	for i := range events {
		m := events[i].Memory
		if _, ok := by[m]; !ok {
			names = append(names, m)
		}
		by[m] = append(by[m], events[i])
	}
	slices.Sort(names)
	out := make([]Profile, len(names))
	for i, name := range names {
		out[i] = of(name, by[name])
	}
	return out
}

func of(name string, list []Event) Profile {
	p := Profile{Memory: name}
	for i := range list {
		e := &list[i]
		p.LifetimePeak = e.PeakInUse // so the last event read decides
		if e.total() >= p.PeakBytes {
			p.Peak, p.PeakBytes, p.PeakTime = *e, e.total(), e.Time
			p.Capacity = e.Stack + e.Heap + e.Available
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Time < list[j].Time })
	number(list)
	label(list)
	p.Points = sample(list)
	for i := range p.Points {
		if p.Points[i].Free {
			p.Frees++
		} else {
			p.Allocs++
		}
	}
	for i := range list {
		if list[i].total() == p.PeakBytes {
			p.PeakStep = list[i].Step
		}
	}
	p.table(list)
	return p
}

// number gives events without a step that after the last one known.
func number(list []Event) {
	last := NoStep
	for i := range list {
		if list[i].Step == NoStep {
			list[i].Step = last + 1
			continue
		}
		last = list[i].Step
	}
}

// label gives frees the labels of what they free: the first allocation that was
// recorded for the address and not freed.
func label(list []Event) {
	open := map[uint64]int{}
	for i := range list {
		e := &list[i]
		if !e.Free {
			if _, ok := open[e.Address]; !ok {
				open[e.Address] = i
			}
			continue
		}
		if k, ok := open[e.Address]; ok {
			a := &list[k]
			e.Op, e.Region, e.DataType, e.Shape = a.Op, a.Region, a.DataType, a.Shape
			delete(open, e.Address)
		}
	}
}

// sample keeps at most MaxPoints: boxes of equal numbers of snapshots, the
// smaller ones first, and of each the fullest.
func sample(list []Event) []Event {
	n := len(list)
	if n <= MaxPoints {
		return slices.Clone(list)
	}
	width := n / MaxPoints
	small := MaxPoints*(width+1) - n
	out := make([]Event, 0, MaxPoints)
	at := 0
	for i := range MaxPoints {
		w := width
		if i >= small {
			w++
		}
		best := at
		for k := at + 1; k < at+w; k++ {
			if list[k].total() > list[best].total() {
				best = k
			}
		}
		out = append(out, list[best])
		at += w
	}
	return out
}

// table lists what was alive at the peak, as far as the peak's step tells.
func (p *Profile) table(list []Event) {
	active := map[uint64]int{}
	unmapped := p.Peak.Heap
	var unmatched int64
	for i := range list {
		e := &list[i]
		if e.Time > p.PeakTime || e.Step != p.PeakStep {
			continue
		}
		if !e.Free {
			active[e.Address] = i
			unmapped -= e.Allocated
			continue
		}
		if _, ok := active[e.Address]; ok {
			delete(active, e.Address)
		} else {
			unmatched += e.Allocated
		}
		unmapped += e.Allocated
	}
	unmapped -= unmatched
	var rows []Row
	for _, i := range active {
		e := &list[i]
		rows = append(rows, Row{
			Op: e.Op, Region: e.Region, DataType: e.DataType, Shape: e.Shape, Allocated: e.Allocated, Requested: e.Requested,
			Occurrences: 1, Snapshot: i, SpecialIndex: noSpecialRow,
		})
	}
	special := func(op, region string, bytes int64) {
		if bytes <= 0 {
			return
		}
		r := Row{
			Op: op, Region: region, DataType: invalidType, Shape: unknownShape, Allocated: bytes, Requested: bytes, Occurrences: 1,
			Snapshot: firstUnmapped - len(p.Special), SpecialIndex: len(p.Special),
		}
		p.Special = append(p.Special, r)
		rows = append(rows, r)
	}
	special(Unmapped, UnmappedKind, unmapped)
	special(StackRow, StackRow, p.Peak.Stack)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(order(&a, &b), cmp.Compare(a.Snapshot, b.Snapshot)) })
	for _, r := range rows {
		if n := len(p.Rows); n > 0 && order(&p.Rows[n-1], &r) == 0 {
			p.Rows[n-1].Occurrences++
			continue
		}
		if r.SpecialIndex < 0 {
			p.Kept = append(p.Kept, list[r.Snapshot])
			r.Snapshot = len(p.Kept) - 1
		}
		p.Rows = append(p.Rows, r)
	}
}

// order is that of the table; rows that are equal in it are one.
func order(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Allocated, a.Allocated), cmp.Compare(b.Requested, a.Requested), strings.Compare(a.Op, b.Op),
		strings.Compare(a.Region, b.Region), strings.Compare(a.DataType, b.DataType), strings.Compare(a.Shape, b.Shape))
}
