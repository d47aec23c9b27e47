package launch

import (
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

// copies runs a workload and gives its transfers' beginnings with their times.
type copied struct {
	begin event.Event
	nanos int64
	name  string
}

func copies(t *testing.T, w api.Workload) (out []copied) {
	t.Helper()
	table := new(event.Strings)
	at := map[uint64]int{}
	_, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		switch e.Kind {
		case event.TransferBegin:
			at[e.ID] = len(out)
			out = append(out, copied{begin: *e, name: table.At(e.Tensor)})
		case event.TransferEnd:
			out[at[e.ID]].nanos = e.Time - out[at[e.ID]].begin.Time
		default:
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func split(devices ...api.Device) api.Workload {
	return api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{64}, Steps: 2, Devices: devices,
		Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:1"}}},
	}
}

func TestCopiesBetweenCards(t *testing.T) {
	for _, c := range []struct {
		name    string
		devices []api.Device
		staged  bool
	}{
		{"no link: the driver routes through the host", []api.Device{{Preset: "t4-16g", Growth: true}, {Preset: "t4-16g", Growth: true}}, true},
		{"linked cards", []api.Device{{Preset: "v100-16g", Growth: true}, {Preset: "v100-16g", Growth: true}}, false},
		{"one card", []api.Device{{Preset: "t4-16g", Logical: []int64{1 << 30, 1 << 30}}}, false},
	} {
		n := 0
		for _, x := range copies(t, split(c.devices...)) {
			e := x.begin
			if e.Device == 0 || e.Peer == 0 {
				continue
			}
			n++
			if got := e.Flags&event.DriverStaged != 0; got != c.staged {
				t.Errorf("%s: %s staged by the driver: %v", c.name, x.name, got)
			}
			if e.Stream != event.StreamD2D || event.TransferCause(e.Cause) != event.CausePlacement || x.nanos <= 0 {
				t.Errorf("%s: %s on stream %d because of %s takes %d ns", c.name, x.name, e.Stream, event.TransferCause(e.Cause), x.nanos)
			}
		}
		if n == 0 {
			t.Errorf("%s: no copy between the devices", c.name)
		}
	}
}

func TestCausesOfTransfers(t *testing.T) {
	seen := map[event.TransferCause]int{}
	w := api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{32}, Steps: 2, Devices: []api.Device{{Preset: "t4-16g", Growth: true}},
		Placement: api.Placement{Rules: []api.Rule{{Match: "conv2/*", Device: "/CPU:0"}}},
	}
	for _, x := range copies(t, w) {
		seen[event.TransferCause(x.begin.Cause)]++
		if x.begin.Flags&event.Pinned == 0 {
			t.Errorf("%s is not pinned although a graph knows its copies", x.name)
		}
		if x.begin.Flags&event.Modelled == 0 {
			t.Errorf("%s does not say that its time is modelled", x.name)
		}
	}
	for _, want := range []event.TransferCause{event.CauseInput, event.CauseInitial, event.CauseFetch, event.CausePlacement} {
		if seen[want] == 0 {
			t.Errorf("no transfer because of %s", want)
		}
	}
	if got := seen[event.CauseInput]; got != 4 {
		t.Errorf("%d input transfers in two steps, want images and labels of each", got)
	}
}

func TestStallsNameTheStageToBlame(t *testing.T) {
	table := new(event.Strings)
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{32}, Steps: 5, Devices: []api.Device{{Preset: "t4-16g", Growth: true}},
		Input: api.Input{Source: "digits", Map: api.Map{Cost: 100_000}},
	}
	var begin, stalled int64
	n := 0
	res, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		switch e.Kind {
		case event.StallBegin:
			begin = e.Time
			n++
			if got := table.At(e.Op); got != "map" {
				t.Errorf("blames %q, want map", got)
			}
		case event.StallEnd:
			stalled += e.Time - begin
		default:
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if n != 5 || stalled < 5*32*100_000 {
		t.Errorf("%d stalls, %d ns in all of %d", n, stalled, res.Nanos)
	}
	w.Input.Prefetch, w.Input.Map = 2, api.Map{Cost: 1000}
	n = 0
	if _, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		if e.Kind == event.StallBegin {
			n++
		}
	})}); err != nil {
		t.Fatal(err)
	}
	if n > 1 {
		t.Errorf("%d stalls with prefetch and a fast map, want at most the first", n)
	}
}

// Batches that wait on the device for steps of several shapes, or for a last,
// smaller one, are all used: the run takes as many steps as without, each in
// its turn, and every batch is sent once.
func TestNoBatchSentAheadIsLost(t *testing.T) {
	for _, mode := range []api.Mode{api.Eager, api.Graph, api.Planned} {
		for ahead := range 4 {
			for name, edit := range map[string]func(w *api.Workload){
				"sizes in turn":   func(w *api.Workload) { w.Batch = []int{8, 16, 12} },
				"a smaller last":  func(w *api.Workload) { w.Input.Take, w.Input.Repeat = 75, 1 },
				"both":            func(w *api.Workload) { w.Batch, w.Input.Take, w.Input.Repeat = []int{8, 16}, 150, 2 },
				"sides in turn":   func(w *api.Workload) { w.Image = []int{28, 32} },
				"whole ones only": func(w *api.Workload) { w.Input.Take, w.Input.Repeat, w.Input.DropRemainder = 75, 1, true },
			} {
				w := lenet(func(w *api.Workload) { w.Mode, w.Steps = mode, 40; edit(w) })
				want := run(t, w)
				w.Input.PrefetchToDevice = ahead
				sent := map[int64]int{}
				table := new(event.Strings)
				got, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
					if e.Kind == event.TransferBegin && e.Peer == 1 && e.Cause == uint8(event.CauseInput) {
						sent[e.Size]++
					}
				})})
				if err != nil {
					t.Fatalf("%s, %s, %d ahead: %v", mode, name, ahead, err)
				}
				if got.Reason != event.EndDone || got.Steps != want.Steps || got.Message != want.Message {
					t.Errorf("%s, %s, %d ahead: %d steps, %s; without: %d steps, %s", mode, name, ahead, got.Steps, got.Message, want.Steps, want.Message)
				}
				if ahead > 0 && len(sent) == 0 {
					t.Errorf("%s, %s: nothing was sent", mode, name)
				}
			}
		}
	}
}
