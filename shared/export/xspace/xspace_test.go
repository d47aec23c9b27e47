package xspace_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis/profiler"
	"tideline/shared/export/xspace"
	ingest "tideline/shared/ingest/xspace"
	"tideline/shared/launch"
)

// exported runs a workload and reads its profile back.
func exported(t *testing.T, w *api.Workload) (*ingest.Space, *profiler.Recorder, []event.Event) {
	t.Helper()
	strs := new(event.Strings)
	var file bytes.Buffer
	out, rec := xspace.NewWriter(&file, strs), profiler.NewRecorder(strs)
	var all []event.Event
	if _, err := launch.Run(*w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
		out.Emit(e)
		rec.Emit(e)
		all = append(all, *e)
	})}); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := ingest.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return s, rec, all
}

// TestTheProfilerShowsTheSameOfTheExport: the memory page of the profile that is
// read back is that of the run, in every figure, point and row.
func TestTheProfilerShowsTheSameOfTheExport(t *testing.T) {
	for name, w := range map[string]*api.Workload{
		"graph":   {Model: "lenet5", Train: &api.Train{Optimizer: "adam"}, Batch: []int{32, 64}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m", Growth: true}}},
		"eager":   {Model: "mlp", Mode: api.Eager, Train: &api.Train{}, Batch: []int{32}, Steps: 3, Devices: []api.Device{{Preset: "lab-256m"}}},
		"planned": {Model: "lenet5", Mode: api.Planned, Train: &api.Train{}, Batch: []int{32}, Steps: 3, Devices: []api.Device{{Preset: "lab-256m"}}},
		"failed":  {Model: "lenet5", Train: &api.Train{}, Batch: []int{64, 8192}, Steps: 2, Devices: []api.Device{{Preset: "lab-256m"}}},
	} {
		s, rec, _ := exported(t, w)
		want, got := rec.Events(), s.ProfilerEvents()
		if len(want) == 0 || len(got) != len(want) {
			t.Fatalf("%s: %d events, want %d", name, len(got), len(want))
		}
		nan := 0
		for i := range want {
			a, b := got[i], want[i]
			if math.IsNaN(b.Fragmentation) && math.IsNaN(a.Fragmentation) {
				a.Fragmentation, b.Fragmentation = 0, 0
				nan++
			}
			a.DataType, a.Shape, b.DataType, b.Shape = "", "", "", "" // a run does not tell them
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%s, event %d: %+v, want %+v", name, i, a, b)
			}
		}
		t.Logf("%s: %d events, %d of them with nothing free", name, len(want), nan)
		x, y := profiler.Of(got), profiler.Of(want)
		for i := range y {
			if x[i].Memory != y[i].Memory || x[i].LifetimePeak != y[i].LifetimePeak || x[i].PeakBytes != y[i].PeakBytes || x[i].PeakTime != y[i].PeakTime ||
				x[i].Capacity != y[i].Capacity || x[i].PeakStep != y[i].PeakStep || len(x[i].Points) != len(y[i].Points) || len(x[i].Rows) != len(y[i].Rows) {
				t.Errorf("%s: the page of %s is another", name, y[i].Memory)
			}
		}
	}
}

// TestCopiesAndStepsAreInTheExport: as many, with their bytes and times.
func TestCopiesAndStepsAreInTheExport(t *testing.T) {
	s, _, all := exported(t, &api.Workload{Model: "lenet5", Train: &api.Train{}, Batch: []int{32}, Steps: 3, Devices: []api.Device{{Preset: "lab-256m"}}})
	var bytes, count, steps int64
	for i := range all {
		switch e := &all[i]; {
		case e.Kind == event.TransferBegin && e.Stream != event.StreamCompute:
			bytes += e.Size
			count++
		case e.Kind == event.StepEnd:
			steps++
		}
	}
	for i := range s.Copies {
		bytes -= s.Copies[i].Bytes
		count--
		if s.Copies[i].Duration <= 0 {
			t.Errorf("%+v", s.Copies[i])
		}
	}
	for i := range s.Spans {
		if s.Spans[i].Step {
			steps--
		}
	}
	if len(s.Copies) == 0 || bytes != 0 || count != 0 || steps != 0 {
		t.Errorf("%d copies; %d copies, %d bytes and %d steps are missing", len(s.Copies), count, bytes, steps)
	}
}

// TestNothingFreeIsNoNumberToPeople: where nothing of a pool is free, its
// fragmentation is no number, and the reading says what that means.
func TestNothingFreeIsNoNumberToPeople(t *testing.T) {
	strs := new(event.Strings)
	var file bytes.Buffer
	w := xspace.NewWriter(&file, strs)
	for _, e := range []event.Event{
		{Kind: event.AllocatorFacts, Size: 4096, Text: strs.ID("name=GPU_0_bfc\nkind=bfc\n")},
		{Kind: event.RegionAdd, Address: 0x1000, Size: 1024},
		{Kind: event.Alloc, Time: 1, Address: 0x1000, Size: 256, Requested: 256},
		{Kind: event.Alloc, Time: 2, Address: 0x1200, Size: 256, Requested: 256},
		{Kind: event.Alloc, Time: 3, Address: 0x1100, Size: 256, Requested: 256},
		{Kind: event.Alloc, Time: 4, Address: 0x1300, Size: 256, Requested: 256},
	} {
		w.Emit(&e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := ingest.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Reading(); !strings.Contains(r.Why, "At the peak nothing of the pool is free; fragmentation is 0.5000 at most.") {
		t.Error(r.Why)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAWriteThatFailsIsTold(t *testing.T) {
	w := xspace.NewWriter(full{}, new(event.Strings))
	w.Emit(&event.Event{Kind: event.Alloc, Address: 1, Size: 1 << 20})
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}
