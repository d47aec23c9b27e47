package launch

import (
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/device"
)

// together starts two equal runs on one card, the second when the first has
// run a step, and runs both to the end.
func together(t *testing.T, growth bool) (first, second Result) {
	t.Helper()
	m := device.NewMachine(nil)
	w := api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{256}, Steps: 5,
		Devices: []api.Device{{Preset: "lab-256m", Card: "shared", Growth: growth}},
	}
	a, err := Start(w, Options{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	a.Step()
	b, err := Start(w, Options{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	for b.Step() {
		a.Step()
	}
	for a.Step() {
	}
	if second, err = b.Finish(); err != nil {
		t.Fatal(err)
	}
	if first, err = a.Finish(); err != nil {
		t.Fatal(err)
	}
	preset, _ := device.Find("lab-256m")
	card, err := m.Card("shared", preset)
	if err != nil {
		t.Fatal(err)
	}
	if card.Free() != card.Total() {
		t.Errorf("growth %v: %d bytes are still held after both runs", growth, card.Total()-card.Free())
	}
	return first, second
}

func TestSecondRunOnACardFailsWithoutGrowthAndFitsWithIt(t *testing.T) {
	first, second := together(t, false)
	if first.Reason != event.EndDone || first.Devices[1].PeakReserved < 200<<20 {
		t.Errorf("the first run: %s, pool %s", first.Reason, event.FormatBytes(first.Devices[1].PeakReserved))
	}
	if second.Reason != event.EndOutOfMemory {
		t.Fatalf("the second run: %s, want out of memory", second.Reason)
	}
	if second.OOM.Cause != event.OOMOtherProcess {
		t.Errorf("verdict %s, want other_process", second.OOM.Cause)
	}
	t.Logf("second: limit %s; %s", event.FormatBytes(second.Devices[1].Limit), second.Message)
	first, second = together(t, true)
	for i, r := range []Result{first, second} {
		if r.Reason != event.EndDone {
			t.Errorf("with growth, run %d: %s %s", i+1, r.Reason, r.Message)
		}
		t.Logf("with growth, run %d: pool %s", i+1, event.FormatBytes(r.Devices[1].PeakReserved))
	}
}

func TestMemoryHeldByOthersLowersTheLimit(t *testing.T) {
	w := api.Workload{Model: "mlp", Batch: []int{8}, Steps: 1, Devices: []api.Device{{Preset: "lab-256m", Held: 100 << 20}}}
	res, err := Run(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Devices[1].Limit, int64(256-100-8-16)<<20; got != want {
		t.Errorf("limit %d, want %d", got, want)
	}
	w.Devices[0].Held = 300 << 20
	if _, err := Run(w, Options{}); err == nil || !strings.Contains(err.Error(), "devices.0") {
		t.Errorf("more held than the card has: %v", err)
	}
}

func TestLogicalDevicesShareTheirCard(t *testing.T) {
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 2,
		Devices:   []api.Device{{Preset: "t4-16g", Logical: []int64{1 << 30, 1 << 30}}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:1"}}},
	}
	res, err := Run(w, Options{})
	if err != nil || res.Reason != event.EndDone {
		t.Fatalf("%v %s", err, res.Message)
	}
	for _, d := range res.Devices[1:] {
		if d.Limit != 1<<30 || d.PeakReserved != 1<<30 {
			t.Errorf("%s: limit %d, pool %d, want 1 GiB each", d.Name, d.Limit, d.PeakReserved)
		}
	}
	w.Devices[0] = api.Device{Preset: "lab-256m", Logical: []int64{200 << 20, 200 << 20}}
	res, err = Run(w, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Limits that do not fit the card together are no error; the driver gives
	// the second device what is left.
	if got := res.Devices[2].PeakReserved; got >= 200<<20 {
		t.Errorf("the second device's pool is %d, more than the card has left", got)
	}
}

func TestManyLogicalDevices(t *testing.T) {
	limits := make([]int64, 200)
	for i := range limits {
		limits[i] = 8 << 20
	}
	w := api.Workload{
		Model: "mlp", Batch: []int{8}, Steps: 2, Devices: []api.Device{{Preset: "h200-141g", Logical: limits}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:199"}}},
	}
	res, err := Run(w, Options{})
	if err != nil || res.Reason != event.EndDone {
		t.Fatalf("%v %s", err, res.Message)
	}
	if got := res.Devices[200].PeakInUse; got < 1<<20 {
		t.Errorf("/GPU:199 held %d bytes, want the weights of a layer", got)
	}
}

func TestBadWorkloadsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*api.Workload)
		want string
	}{
		{"unknown device", func(w *api.Workload) { w.Devices[0].Preset = "t5" }, "t5"},
		{"growth and limit", func(w *api.Workload) { w.Devices[0].Growth, w.Devices[0].MemoryLimit = true, 1<<20 }, "growth"},
		{"unknown model", func(w *api.Workload) { w.Model = "lenet6" }, "lenet6"},
		{"hard placement on a missing device", func(w *api.Workload) {
			no := false
			w.Placement = api.Placement{Soft: &no, Rules: []api.Rule{{Match: "dense1/*", Device: "/GPU:3"}}}
		}, "/GPU:3"},
	} {
		w := api.Workload{Model: "mlp", Batch: []int{8}, Steps: 1, Devices: []api.Device{{Preset: "lab-256m"}}}
		c.edit(&w)
		_, err := Run(w, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %s", c.name, err, c.want)
		}
	}
}

func TestStopEndsARun(t *testing.T) {
	n := 0
	w := api.Workload{Model: "mlp", Train: &api.Train{}, Batch: []int{8}, Steps: 1000, Devices: []api.Device{{Preset: "lab-256m"}}}
	last := event.Event{}
	res, err := Run(w, Options{Stop: func() bool { n++; return n > 200 }, Sink: event.SinkFunc(func(e *event.Event) { last = *e })})
	if err != nil || res.Reason != event.EndStopped || res.Steps == 0 || res.Steps > 20 {
		t.Errorf("%v %+v", err, res)
	}
	if last.Kind != event.End || event.EndReason(last.Cause) != event.EndStopped {
		t.Errorf("the last event is %s", last.Kind)
	}
}

// A run on a card that others use tells what they held, so that its timeline
// can be rerun where the others are not.
func TestRerunOfARunOnASharedCardBeginsWithTheSameMemory(t *testing.T) {
	m := device.NewMachine(nil)
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{16}, Steps: 2,
		Devices: []api.Device{{Preset: "lab-256m", Card: "shared"}},
	}
	a, err := Start(w, Options{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	a.Step()
	record := func(w api.Workload, m *device.Machine) (settings string, hash uint64) {
		table := new(event.Strings)
		h := eventhash.New(table)
		if _, err := Run(w, Options{Machine: m, Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
			h.Emit(e)
			if e.Kind == event.Settings {
				settings = table.At(e.Text)
			}
		})}); err != nil {
			t.Fatal(err)
		}
		return settings, h.Sum64()
	}
	settings, first := record(w, m)
	if _, err := a.Finish(); err != nil {
		t.Fatal(err)
	}
	f, err := event.ParseFields(settings)
	if err != nil {
		t.Fatal(err)
	}
	again, problems := api.FromFields(f)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, second := record(*again, nil); second != first {
		t.Errorf("the rerun's memory events are %016x, the run's %016x", second, first)
	}
	if _, alone := record(w, nil); alone == first {
		t.Error("the other run on the card made no difference")
	}
}

// Two processes on a T4 with default settings: the first takes all but the
// reserve, of which the second's context and its own reserve leave little.
func TestSecondProcessOnARealCardIsLeftTheReserve(t *testing.T) {
	m := device.NewMachine(nil)
	w := api.Workload{Model: "mlp", Batch: []int{8}, Steps: 1, Devices: []api.Device{{Preset: "t4-16g", Card: "shared"}}}
	a, err := Start(w, Options{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	a.Step()
	second, err := Run(w, Options{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	const total, context, reserve = 15104, 250, 1050
	if got := first.Devices[1].Limit >> 20; got != total-context-reserve {
		t.Errorf("the first limit is %d MiB", got)
	}
	if got := second.Devices[1].Limit >> 20; got != reserve-context-225 {
		t.Errorf("the second limit is %d MiB, want %d", got, reserve-context-225)
	}
}

// TestAWorkedOutLimitIsNeverTooLow: what the default limit leaves is reserved,
// so a pool that has all of it is full, not kept short. A configured limit can
// be too low on the same card.
func TestAWorkedOutLimitIsNeverTooLow(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int64
		want  event.OOMCause
	}{
		{"worked out", 0, event.OOMFull},
		{"configured", 220 << 20, event.OOMLimitTooLow},
	} {
		res, err := Run(api.Workload{
			Model: "lenet5", Mode: api.Graph, Train: &api.Train{Optimizer: "adam"}, Batch: []int{256, 1024, 6000}, Steps: 6,
			Input:   api.Input{Source: "digits", Shuffle: 512, Prefetch: 1},
			Devices: []api.Device{{Preset: "lab-256m", Growth: c.limit == 0, MemoryLimit: c.limit}},
		}, Options{})
		if err != nil || res.OOM == nil {
			t.Fatalf("%s: %v, %+v", c.name, err, res)
		}
		if d := res.Devices[1]; (d.Total > 0) != (c.limit == 0) || d.Total > 0 && d.Total-d.Context-d.Held-d.Reserve != d.Limit {
			t.Errorf("%s: a limit of %+v", c.name, d)
		}
		if res.OOM.Cause != c.want {
			t.Errorf("%s: %v, want %v: %+v", c.name, res.OOM.Cause, c.want, res.OOM)
		}
	}
}
