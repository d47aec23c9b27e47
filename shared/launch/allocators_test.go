package launch

import (
	"cmp"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/kinds"
	"tideline/shared/device"
	"tideline/shared/store"
)

// judged is a run whose events the judge of allocations and the viewer's store
// have seen.
type judged struct {
	Result
	facts   event.Fields // of the first accelerator's allocator
	store   *store.Timeline
	regions int
}

func runJudged(t *testing.T, w api.Workload) judged {
	t.Helper()
	table := new(event.Strings)
	out := judged{store: store.New(table)}
	page := int64(0)
	for i := range w.Devices {
		if a := w.Devices[i].Allocator; a == "async" || a == "torch" {
			page = 2 << 20
		}
	}
	j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules {
		return check.Rules{Granule: 64, SizeGranule: 1, Page: page}
	}, table)
	res, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		j.Emit(e)
		out.store.Append([]event.Event{*e})
		switch e.Kind {
		case event.AllocatorFacts:
			if f, _ := event.ParseFields(table.At(e.Text)); e.Device == 1 && f.Text("kind") != "planned" {
				out.facts = f
			}
		case event.RegionAdd:
			if e.Device == 1 {
				out.regions++
			}
		default:
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Err(); err != nil {
		t.Error(err)
	}
	out.Result = res
	return out
}

// under are the options that the kinds are tried with beside none.
var under = map[string][]string{
	"bfc":       {"profile=classic", "fragmentation_fraction=0.1"},
	"torch":     {"expandable_segments=true", "roundup_power2_divisions=[256:1,512:2,>:4]", "memory_fraction=0.9"},
	"ort":       {"arena_extend_strategy=same_as_requested", "enable_memory_arena_shrinkage=true", "use_device_allocator_for_initializers=true"},
	"async":     {"release_threshold=0", "deterministic=true"},
	"rmm-pool":  {"initial_pool_size=16MiB"},
	"rmm-arena": {"arena_size=64MiB"},
}

// The same model runs under every framework's allocator, in every mode and with
// their options: what they do is possible, the store takes it in, and the
// figures agree with what the run came to.
func TestEveryAllocatorServesARun(t *testing.T) {
	for _, k := range kinds.All() {
		peaks := map[int64]bool{}
		for _, set := range append([]string{""}, under[k.Name]...) {
			for _, mode := range []api.Mode{api.Eager, api.Graph, api.Planned} {
				t.Run(k.Name+" "+set+" "+string(mode), func(t *testing.T) {
					w := lenet(func(w *api.Workload) {
						w.Mode, w.Devices[0].Allocator, w.Batch = mode, k.Name, []int{16, 24}
						if set != "" {
							w.Devices[0].AllocatorOptions = []string{set}
						}
					})
					r := runJudged(t, w)
					if r.Reason != event.EndDone || r.regions == 0 || r.Devices[1].PeakReserved < r.Devices[1].PeakInUse {
						t.Fatalf("%s %s, %d regions, %+v", r.Reason, r.Message, r.regions, r.Devices[1])
					}
					peaks[r.Devices[1].PeakReserved] = true
					f := r.facts
					if f.Text("kind") != k.Name || (f.Text("modelled") != "") != k.Modelled {
						t.Errorf("facts %v", f)
					}
					if name, value, _ := strings.Cut(set, "="); set != "" && f.Text("option."+name) != value {
						t.Errorf("facts %v do not tell %s", f, set)
					}
					inUse := int64(0)
					for _, p := range r.store.Pools() {
						if p.Device == 1 && !p.Planned() {
							inUse = max(inUse, p.Peak(0, 1<<62, 0).InUse)
						}
					}
					// The driver's pool counts what was asked for, the viewer what is taken.
					if want := r.Devices[1].PeakInUse; inUse != want && (k.Name != "async" || inUse < want) {
						t.Errorf("the store has a peak of %d, the run %d", inUse, r.Devices[1].PeakInUse)
					}
				})
			}
		}
		if len(peaks) < 2 && len(under[k.Name]) > 0 && k.Name != "bfc" {
			t.Errorf("%s: neither mode nor option changes what is reserved: %v", k.Name, peaks)
		}
	}
}

// What an allocator's options cannot be is said once, with their place.
func TestOptionsOfAllocatorsAreChecked(t *testing.T) {
	for _, c := range []struct {
		d    api.Device
		path string
		want string // part of the message; "" is none
	}{
		{api.Device{Allocator: "torch", AllocatorOptions: []string{"expandable_segments=true", "max_split_size_mb=64"}}, "", ""},
		{api.Device{Allocator: "tcmalloc"}, "devices.0.allocator", "rmm-pool"},
		{api.Device{Allocator: "torch", AllocatorOptions: []string{"growth=true"}}, "devices.0.allocator_options", "max_split_size_mb"},
		{api.Device{Allocator: "ort", AllocatorOptions: []string{"arena_extend_strategy=doubling"}}, "devices.0.allocator_options", "same_as_requested"},
		{api.Device{Allocator: "system", AllocatorOptions: []string{"x=1"}}, "devices.0.allocator_options", "it has none"},
		{api.Device{AllocatorOptions: []string{"growth=true"}}, "devices.0.allocator_options", "field of the device"},
		{api.Device{AllocatorOptions: []string{"profile"}}, "devices.0.allocator_options", "write profile=VALUE without blanks, VALUE being current"},
		{api.Device{Allocator: "torch", AllocatorOptions: []string{"expandable_segmets"}}, "devices.0.allocator_options", `did you mean "expandable_segments"? It has max_split_size_mb`},
		{api.Device{Allocator: "torch", AllocatorOptions: []string{"expandable_segments = true"}}, "devices.0.allocator_options", "write expandable_segments=VALUE without blanks, VALUE being true or false"},
		{api.Device{Allocator: "system", AllocatorOptions: []string{"=1"}}, "devices.0.allocator_options", "it has none"},
		{api.Device{Preset: "tpu-v3", Allocator: "torch", AllocatorOptions: []string{"growth"}}, "devices.0.allocator", "for GPUs"},
	} {
		w := lenet(func(w *api.Workload) { c.d.Preset = cmp.Or(c.d.Preset, "lab-1g"); w.Devices[0] = c.d })
		p := w.Validate(Known())
		if c.want == "" && len(p) == 0 {
			continue
		}
		if len(p) != 1 || p[0].Path != c.path || !strings.Contains(p[0].Message, c.want) {
			t.Errorf("%+v: %v", c.d, p)
		}
	}
}

// Without a limit another framework's allocator has all that is free, and what
// it cannot have is an end like any other.
func TestAnotherAllocatorRunsOut(t *testing.T) {
	for _, k := range kinds.All() {
		w := lenet(func(w *api.Workload) {
			w.Devices[0].Allocator, w.Batch, w.Devices[0].Growth = k.Name, []int{16384}, true
		})
		r := runJudged(t, w)
		if r.Reason != event.EndOutOfMemory || r.OOM == nil || !strings.HasPrefix(r.OOM.Allocator, "GPU_0_") || r.OOM.Requested == 0 {
			t.Errorf("%s: %s %s", k.Name, r.Reason, r.Message)
		}
		want := int64(256-8) << 20
		if k.Name == "bfc" || k.Name == "async" {
			want -= 16 << 20
		}
		if r.Devices[1].Limit != want {
			t.Errorf("%s: limit %d, want %d", k.Name, r.Devices[1].Limit, want)
		}
	}
}

// Two runs on one card share its bytes, whatever serves them.
func TestAllocatorsOfTwoRunsShareACard(t *testing.T) {
	for _, k := range kinds.All() {
		m := device.NewMachine(nil)
		w := lenet(func(w *api.Workload) {
			w.Devices[0].Allocator, w.Devices[0].Card, w.Devices[0].Growth = k.Name, "one", true
		})
		r, err := Start(w, Options{Machine: m})
		if err != nil {
			t.Fatal(err)
		}
		r.Step()
		p, _ := device.Find("lab-256m")
		c, err := m.Card("one", p)
		if err != nil {
			t.Fatal(err)
		}
		if held := c.Total() - c.Free(); held <= 8<<20 {
			t.Errorf("%s: a running program holds %d bytes of its card", k.Name, held)
		}
		if _, err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		if c.Free() != c.Total() {
			t.Errorf("%s: %d bytes are still held after the run", k.Name, c.Total()-c.Free())
		}
	}
}

// A TPU has one heap of its memory but for the chip's reserve, and no pool of
// TensorFlow's.
func TestATPUHasAHeapOfItsOwn(t *testing.T) {
	w := lenet(func(w *api.Workload) { w.Devices[0] = api.Device{Kind: "tpu", Preset: "tpu-v2"} })
	r := runJudged(t, w)
	if r.Reason != event.EndDone || r.Devices[1].Name != "/TPU:0" || r.Devices[1].Limit != (8192-528)<<20 || r.Devices[1].PeakReserved > 64<<20 {
		t.Errorf("%s %s %+v", r.Reason, r.Message, r.Devices[1])
	}
	if r.facts.Text("kind") != "tpu" || r.facts.Text("name") != "TPU_0_hbm" || r.facts.Text("modelled") == "" {
		t.Errorf("facts %v", r.facts)
	}
	w.Devices[0].Allocator = "bfc"
	if p := w.Validate(Known()); len(p) != 1 || p[0].Path != "devices.0.allocator" {
		t.Error(p)
	}
	w = lenet(func(w *api.Workload) {
		w.Devices[0] = api.Device{Kind: "tpu", Preset: "tpu-v2", Held: 7600 << 20}
		w.Batch = []int{1 << 14}
	})
	if r := runJudged(t, w); r.Reason != event.EndOutOfMemory || r.OOM.Allocator != "TPU_0_hbm" {
		t.Errorf("%s %s", r.Reason, r.Message)
	}
}
