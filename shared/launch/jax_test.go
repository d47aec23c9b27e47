package launch

import (
	"slices"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
)

// underJAX starts a small inference on a card with these variables.
func underJAX(t *testing.T, d api.Device, env ...string) ran {
	t.Helper()
	return run(t, api.Workload{Model: "lenet5", Batch: []int{8}, Steps: 2, Env: env, Devices: []api.Device{d}})
}

func total(t *testing.T, preset string) int64 {
	t.Helper()
	p, ok := device.Find(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	return p.Total.Value
}

func TestJAXTakesThreeQuartersOfTheWholeCard(t *testing.T) {
	whole := total(t, "t4-16g")
	three := int64(float64(whole) * .75)
	for _, c := range []struct {
		name     string
		d        api.Device
		env      []string
		limit    int64
		reserved func(int64) bool
	}{
		{"an explicit default", api.Device{}, []string{"XLA_PYTHON_CLIENT_ALLOCATOR=default"}, three, func(n int64) bool { return n == three&^255 || n == three }},
		{"held by others, and yet of the whole", api.Device{Held: 2 << 30}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=true"}, three, func(n int64) bool { return n == three&^255 || n == three }},
		{"growth keeps the limit", api.Device{}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, three, func(n int64) bool { return n < 64<<20 }},
		{"the old name", api.Device{}, []string{"XLA_PYTHON_CLIENT_MEM_FRACTION=.5"}, whole / 2, func(n int64) bool { return n == whole/2&^255 || n == whole/2 }},
		{"the new name", api.Device{}, []string{"XLA_CLIENT_MEM_FRACTION=.5"}, whole / 2, func(n int64) bool { return n == whole/2&^255 || n == whole/2 }},
		{"what the device says by itself", api.Device{Fraction: .25}, []string{"XLA_CLIENT_MEM_FRACTION=.5"}, whole / 4, func(n int64) bool { return n == whole/4&^255 || n == whole/4 }},
		{"a limit in bytes", api.Device{MemoryLimit: 1 << 30}, []string{"XLA_CLIENT_MEM_FRACTION=.5"}, 1 << 30, func(n int64) bool { return n == 1<<30 }},
		{"a limit in bytes with growth", api.Device{MemoryLimit: 1<<30 + 1<<20}, []string{"XLA_PYTHON_CLIENT_PREALLOCATE=false"}, 1<<30 + 1<<20, func(n int64) bool { return n < 64<<20 }},
	} {
		c.d.Preset = "t4-16g"
		r := underJAX(t, c.d, c.env...)
		if r.Reason != event.EndDone {
			t.Errorf("%s: %s", c.name, r.Reason)
		}
		if got := r.Devices[1]; got.Limit != c.limit || !c.reserved(got.PeakReserved) {
			t.Errorf("%s: limit %d, reserved %d; want a limit of %d", c.name, got.Limit, got.PeakReserved, c.limit)
		}
	}
}

// Of two processes with the defaults the second has its region refused, asks
// for less until there is so much, and ends where that is too little.
func TestTwoOfJAXOnOneCard(t *testing.T) {
	for _, c := range []struct {
		env    string
		batch  int
		reason event.EndReason
	}{
		{"XLA_PYTHON_CLIENT_PREALLOCATE=false", 256, event.EndDone},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=true", 256, event.EndDone}, // in what the first left
		{"XLA_PYTHON_CLIENT_PREALLOCATE=true", 1024, event.EndOutOfMemory},
	} {
		m := device.NewMachine(nil)
		w := api.Workload{
			Model: "lenet5", Train: &api.Train{}, Batch: []int{c.batch}, Steps: 5, Env: []string{c.env},
			Devices: []api.Device{{Preset: "lab-256m", Card: "shared"}},
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
		second, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		for a.Step() {
		}
		first, err := a.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if first.Reason != event.EndDone || second.Reason != c.reason {
			t.Errorf("%s, batch %d: %s, then %s; want the second %s", c.env, c.batch, first.Reason, second.Reason, c.reason)
		}
		const card = 256 << 20
		if x, y := first.Devices[1].PeakReserved, second.Devices[1].PeakReserved; x == 0 || x+y > card {
			t.Errorf("%s: %d and %d bytes on one card", c.env, x, y)
		} else if c.env == "XLA_PYTHON_CLIENT_PREALLOCATE=true" && (x != card/4*3 || y >= card/4) {
			t.Errorf("%s: %d bytes, then %d; want three quarters, and what that leaves", c.env, x, y)
		}
	}
}

func TestJAXsAllocators(t *testing.T) {
	r := underJAX(t, api.Device{Preset: "t4-16g"}, "XLA_PYTHON_CLIENT_ALLOCATOR=platform")
	if got := r.Devices[1]; got.PeakReserved != got.PeakInUse || got.PeakReserved == 0 || got.Limit <= total(t, "t4-16g")/4*3 {
		t.Errorf("platform: %d reserved, %d in use, limit %d; want no limit but the card", got.PeakReserved, got.PeakInUse, got.Limit)
	}
	if r := underJAX(t, api.Device{Preset: "t4-16g"}, "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async"); r.Reason != event.EndDone || r.Devices[1].PeakInUse == 0 {
		t.Errorf("cuda_async: %s", r.Reason)
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"XLA_PYTHON_CLIENT_ALLOCATOR=arena"}, "default, bfc, platform, cuda_async, vmm"},
		{[]string{"XLA_CLIENT_MEM_FRACTION=.5", "XLA_PYTHON_CLIENT_MEM_FRACTION=.5"}, "refuses both"},
		{[]string{"XLA_CLIENT_MEM_FRACTION=.5", "TF_FORCE_GPU_ALLOW_GROWTH=true"}, "TensorFlow alone"},
	} {
		w := api.Workload{Model: "lenet5", Env: c.env, Devices: []api.Device{{Preset: "t4-16g"}}}
		list := w.Validate(Known())
		if !slices.ContainsFunc(list, func(p api.Problem) bool { return p.Path == "env" && strings.Contains(p.Message, c.want) }) {
			t.Errorf("%v: %v", c.env, list)
		}
	}
}
