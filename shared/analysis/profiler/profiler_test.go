package profiler

import (
	"math"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// converter is the profiler's own test of its converter.
func converter() []Event {
	const bfc = "GPU_0_bfc"
	return []Event{
		{
			Time: 40000, Memory: bfc, Step: NoStep, Stack: 2000, Heap: 3000, Available: 5000, PeakInUse: 8500,
			Requested: 200, Allocated: 256, Address: 222333, Op: "foo/bar", Region: "output", DataType: "float", Shape: "[3,3]",
		},
		{
			Time: 50000, Memory: bfc, Step: NoStep, Free: true, Stack: 2000, Heap: 2744, Available: 5256, PeakInUse: 8500,
			Requested: 200, Allocated: 256, Address: 222333,
		},
		{
			Time: 70000, Memory: bfc, Step: NoStep, Stack: 2000, Heap: 5000, Available: 3000, PeakInUse: 9500,
			Requested: 300, Allocated: 300, Address: 345678, Op: "mul_grad/Sum", Region: "temp", DataType: "int32", Shape: "[1]",
		},
	}
}

func TestChecklistConverter(t *testing.T) {
	list := Of(converter())
	if len(list) != 1 {
		t.Fatalf("%d allocators", len(list))
	}
	p := &list[0]
	if p.LifetimePeak != 9500 || p.PeakBytes != 7000 || p.PeakTime != 70000 || p.Capacity != 10000 || len(p.Points) != 3 {
		t.Errorf("%+v", p)
	}
	if len(p.Kept) != 1 || p.Kept[0].Op != "mul_grad/Sum" || len(p.Special) != 2 || len(p.Rows) != 3 {
		t.Fatalf("kept %+v, special %+v, rows %+v", p.Kept, p.Special, p.Rows)
	}
	for i, want := range []Row{
		{Op: "unused preallocated device memory", Region: "persist/dynamic", DataType: "INVALID", Shape: "unknown", Allocated: 4700, Requested: 4700, Occurrences: 1, Snapshot: -1, SpecialIndex: 0},
		{Op: "stack", Region: "stack", DataType: "INVALID", Shape: "unknown", Allocated: 2000, Requested: 2000, Occurrences: 1, Snapshot: -2, SpecialIndex: 1},
		{Op: "mul_grad/Sum", Region: "temp", DataType: "int32", Shape: "[1]", Allocated: 300, Requested: 300, Occurrences: 1, Snapshot: 0, SpecialIndex: -1},
	} {
		if p.Rows[i] != want {
			t.Errorf("row %d is %+v, want %+v", i, p.Rows[i], want)
		}
	}
	if p.Allocs != 2 || p.Frees != 1 {
		t.Errorf("%d allocations, %d deallocations", p.Allocs, p.Frees)
	}
}

func TestChecklistFreesGetTheLabelsOfTheirAllocation(t *testing.T) {
	f := Of(converter())[0].Points[1]
	if !f.Free || f.Op != "foo/bar" || f.Region != "output" || f.DataType != "float" || f.Shape != "[3,3]" {
		t.Errorf("%+v", f)
	}
	// Of two allocations of one address without a free in between the first
	// counts; a free of what was never seen keeps its empty labels.
	p := Of([]Event{
		{Time: 1, Address: 7, Op: "first"},
		{Time: 2, Address: 7, Op: "second"},
		{Time: 3, Address: 7, Free: true},
		{Time: 4, Address: 9, Free: true},
	})[0]
	if p.Points[2].Op != "first" || p.Points[3].Op != "" {
		t.Errorf("%+v", p.Points)
	}
}

func TestChecklistPoints(t *testing.T) {
	for _, c := range []struct{ n, points, small, width int }{
		{1000, 1000, 1000, 1}, {1001, 1000, 999, 1}, {2500, 1000, 500, 2}, {2000, 1000, 1000, 2}, {3, 3, 3, 1},
	} {
		list := make([]Event, c.n)
		for i := range list {
			list[i] = Event{Time: int64(i), Heap: int64(i)} // growing: the last of each box is its fullest
		}
		got := Of(list)[0].Points
		if len(got) != c.points {
			t.Errorf("%d snapshots: %d points", c.n, len(got))
			continue
		}
		at := -1
		for i, e := range got {
			w := c.width
			if i >= c.small {
				w++
			}
			if at += w; e.Heap != int64(at) {
				t.Errorf("%d snapshots: point %d is snapshot %d, want %d", c.n, i, e.Heap, at)
				break
			}
		}
	}
	flat := make([]Event, 2000)
	for i := range flat {
		flat[i].Time = int64(i)
	}
	if got := Of(flat)[0].Points[1].Time; got != 2 {
		t.Errorf("of equals the first: time %d", got)
	}
}

func TestChecklistOfEqualPeaksTheOneReadLater(t *testing.T) {
	p := Of([]Event{{Time: 10, Heap: 500}, {Time: 20, Heap: 500}})[0]
	if p.PeakTime != 20 {
		t.Errorf("peak at %d", p.PeakTime)
	}
	// By order of reading, not by time.
	if p := Of([]Event{{Time: 20, Heap: 500}, {Time: 10, Heap: 500}})[0]; p.PeakTime != 10 {
		t.Errorf("peak at %d", p.PeakTime)
	}
}

func TestChecklistTheLifetimePeakIsThatOfTheLastEventRead(t *testing.T) {
	p := Of([]Event{ // two threads, line after line
		{Time: 30, Heap: 5, PeakInUse: 900},
		{Time: 40, Heap: 5, PeakInUse: 950},
		{Time: 10, Heap: 5, PeakInUse: 700},
		{Time: 20, Heap: 5, PeakInUse: 800},
	})[0]
	if p.LifetimePeak != 800 || p.Points[0].Time != 10 {
		t.Errorf("%+v", p)
	}
}

func TestChecklistStepsOfEventsWithoutOne(t *testing.T) {
	list := []Event{{Step: -1}, {Step: 4}, {Step: -1}, {Step: -1}, {Step: 5}}
	for i := range list {
		list[i].Time = int64(i)
	}
	points := Of(list)[0].Points
	for i, want := range []int64{0, 4, 5, 5, 5} {
		if points[i].Step != want {
			t.Errorf("event %d is of step %d, want %d", i, points[i].Step, want)
		}
	}
}

func TestChecklistEqualAllocationsAreOneRow(t *testing.T) {
	a := Event{Time: 1, Step: 1, Heap: 1000, Requested: 500, Allocated: 500, Address: 1, Op: "x", Region: "temp", DataType: "float", Shape: "[5]"}
	b := a
	b.Time, b.Address, b.Heap = 2, 2, 1500
	p := Of([]Event{a, b})[0]
	if len(p.Rows) != 2 || p.Rows[0].Op != Unmapped || p.Rows[0].Allocated != 500 || p.Rows[1].Op != "x" || p.Rows[1].Occurrences != 2 || p.Rows[1].Allocated != 500 || len(p.Kept) != 1 {
		t.Errorf("%+v", p.Rows)
	}
}

func TestChecklistAFreeOfAnEarlierStepLeavesTheUnmapped(t *testing.T) {
	list := []Event{
		{Time: 1, Step: 1, Heap: 100, Allocated: 100, Requested: 100, Address: 1, Op: "old"},
		{Time: 2, Step: 2, Heap: 0, Allocated: 100, Free: true, Address: 1},
		{Time: 3, Step: 2, Heap: 400, Allocated: 150, Requested: 150, Address: 2, Op: "new"},
	}
	p := Of(list)[0]
	// 400 at the peak, 150 of it explained; + 100 - 100 for the free.
	if p.PeakStep != 2 || p.Rows[0].Op != Unmapped || p.Rows[0].Allocated != 250 || p.Rows[1].Op != "new" {
		t.Errorf("%+v", p.Rows)
	}
}

func TestChecklistScreen(t *testing.T) {
	for bytes, want := range map[int64]struct {
		text   string
		hidden bool
	}{1 << 20: {"0.001", true}, 2 << 20: {"0.002", false}, 1073741: {"0.001", true}, 1073742: {"0.001", false}} {
		r := Row{Requested: bytes}
		if GiB(bytes) != want.text || r.Hidden() != want.hidden {
			t.Errorf("%d bytes: %s GiB, hidden %v", bytes, GiB(bytes), r.Hidden())
		}
	}
	if got := Percent(0.378565); got != "37.86%" {
		t.Errorf("%s", got)
	}
	if got := Percent(math.NaN()); got != "NaN" {
		t.Errorf("nothing is free: %s", got)
	}
	if got := Millis(1_260_000_000); got != "1.3" {
		t.Errorf("%s ms", got)
	}
}

func TestMemoriesAreSortedAsText(t *testing.T) {
	list := Of([]Event{{Memory: "mklcpu"}, {Memory: "GPU_1_bfc"}, {Memory: "10"}, {Memory: "9"}})
	for i, want := range []string{"10", "9", "GPU_1_bfc", "mklcpu"} {
		if list[i].Memory != want {
			t.Errorf("%d is %s, want %s", i, list[i].Memory, want)
		}
	}
}

// TestTheFragmentationCurveIsTheAllocators: at every event of a run the figure
// that the profiler would read is that of the chunk map.
func TestTheFragmentationCurveIsTheAllocators(t *testing.T) {
	strs := new(event.Strings)
	rec, tl := NewRecorder(strs), store.New(strs)
	w := api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{64, 96, 48}, Steps: 3, Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	}
	checked := 0
	one := make([]event.Event, 1)
	_, err := launch.Run(w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
		rec.Emit(e)
		one[0] = *e
		tl.Append(one)
		if e.Kind != event.Alloc && e.Kind != event.Free {
			return
		}
		for _, p := range tl.Pools() {
			if p.Device != e.Device || p.Allocator != e.Allocator || p.Facts.Text("kind") != "bfc" {
				continue
			}
			got := rec.Events()[len(rec.Events())-1]
			m := analysis.Measure(p.ChunkMapAt(e.Time))
			if got.Heap != m.InUse || got.Available != p.Limit-m.InUse {
				t.Fatalf("heap %d, available %d; the pool has %d of %d in use", got.Heap, got.Available, m.InUse, p.Limit)
			}
			if m.Free == 0 {
				if !math.IsNaN(got.Fragmentation) {
					t.Fatalf("nothing is free: %g", got.Fragmentation)
				}
			} else if got.Fragmentation != m.External() {
				t.Fatalf("event %d: %g, the chunk map says %g", tl.Events(), got.Fragmentation, m.External())
			}
			checked++
		}
	})})
	if err != nil || checked < 300 {
		t.Fatalf("%v, %d events", err, checked)
	}
}

// TestARunsOwnViewHoldsTogether: the rows of the table and what it cannot
// explain sum to the heap at the peak.
func TestARunsOwnViewHoldsTogether(t *testing.T) {
	strs := new(event.Strings)
	rec := NewRecorder(strs)
	w := api.Workload{Model: "lenet5", Mode: api.Planned, Train: &api.Train{}, Batch: []int{64}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m"}}}
	res, err := launch.Run(w, launch.Options{Strings: strs, Sink: rec})
	if err != nil {
		t.Fatal(err)
	}
	pages := Of(rec.Events())
	found := false
	for i := range pages {
		p := &pages[i]
		if p.Memory == "GPU_0_planned" {
			t.Error("what lies within another allocator is told twice")
		}
		var sum int64
		for _, r := range p.Rows {
			sum += r.Allocated * int64(r.Occurrences)
		}
		if sum != p.PeakBytes {
			t.Errorf("%s: rows sum to %d, the peak is %d", p.Memory, sum, p.PeakBytes)
		}
		if p.Memory == "GPU_0_bfc" {
			found = true
			if p.PeakBytes != res.Devices[1].PeakInUse || p.LifetimePeak != p.PeakBytes || p.Capacity != res.Devices[1].Limit {
				t.Errorf("%d, %d, %d; the run says %+v", p.PeakBytes, p.LifetimePeak, p.Capacity, res.Devices[1])
			}
		}
	}
	if !found {
		t.Error("no page of the card")
	}
}

// TestWhatIsAvailableIsOfTheLimitOrOfWhatIsHeld: a pool without a limit has what
// it got of the driver, and of one without either nothing is known.
func TestWhatIsAvailableIsOfTheLimitOrOfWhatIsHeld(t *testing.T) {
	strs := new(event.Strings)
	r := NewRecorder(strs)
	for _, e := range []event.Event{
		{Kind: event.AllocatorFacts, Size: 1000, Text: strs.ID("name=limited\nlifetime_peak_bytes=900\n")},
		{Kind: event.AllocatorFacts, Allocator: 1, Text: strs.ID("name=caching\n")},
		{Kind: event.AllocatorFacts, Allocator: 2, Text: strs.ID("name=bare\n")},
		{Kind: event.RegionAdd, Allocator: 1, Address: 0x1000, Size: 600},
		{Kind: event.Alloc, Address: 0x1000, Size: 100, Requested: 100},
		{Kind: event.Alloc, Allocator: 1, Address: 0x1000, Size: 100, Requested: 100},
		{Kind: event.Alloc, Allocator: 2, Address: 0x1000, Size: 100, Requested: 100},
	} {
		r.Emit(&e)
	}
	got := r.Events()
	if len(got) != 3 {
		t.Fatalf("%d events", len(got))
	}
	for i, want := range []struct {
		available, peak           int64
		noAvailable, noFragmented bool
	}{{900, 900, false, true}, {500, 100, false, false}, {0, 100, true, true}} {
		if e := got[i]; e.Available != want.available || e.PeakInUse != want.peak || e.NoAvailable != want.noAvailable || e.NoFragmentation != want.noFragmented {
			t.Errorf("%s: %+v", e.Memory, e)
		}
	}
}
