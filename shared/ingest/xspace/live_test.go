package xspace

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// TestProfilesTakenLive: of programs on a CPU. What is expected was counted in
// the same files with the generated code of TensorFlow's own package.
func TestProfilesTakenLive(t *testing.T) {
	for _, tc := range []struct {
		name               string
		ops, steps         int
		allocations, frees int
	}{
		{"tensorflow-2.21-cpu-bfc", 125, 6, 104, 102},
		{"jax-0.10-cpu", 60, 0, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := os.ReadFile("testdata/live/" + tc.name + ".xplane.pb.gz")
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(bytes.NewReader(b), 0)
			if err != nil {
				t.Fatal(err)
			}
			ops, steps := 0, 0
			for i := range s.Spans {
				if s.Spans[i].Step {
					steps++
				} else {
					ops++
				}
			}
			if ops != tc.ops || steps != tc.steps {
				t.Errorf("%d ops, %d steps, want %d, %d", ops, steps, tc.ops, tc.steps)
			}
			allocations, frees := 0, 0
			for _, w := range s.Windows() {
				allocations, frees = allocations+w.Allocations, frees+w.Deallocations
			}
			if allocations != tc.allocations || frees != tc.frees {
				t.Errorf("%d allocations, %d frees, want %d, %d", allocations, frees, tc.allocations, tc.frees)
			}
			tellsOfTheHost(t, s)
		})
	}
}

// tellsOfTheHost: the timeline is the host's alone, and what it adds up to is
// what the allocator said of itself.
func tellsOfTheHost(t *testing.T, s *Space) {
	t.Helper()
	strs := &event.Strings{}
	tl := store.New(strs)
	kinds := map[event.Kind]int{}
	s.Emit(strs, event.SinkFunc(func(e *event.Event) {
		kinds[e.Kind]++
		if e.Device != 0 {
			t.Errorf("an event of device %d", e.Device)
		}
		tl.Append([]event.Event{*e})
	}))
	if tl.Skipped() != 0 || kinds[event.DeviceFacts] != 1 || kinds[event.OpBegin] == 0 || kinds[event.OpBegin] != kinds[event.OpEnd] || kinds[event.StepBegin] != kinds[event.StepEnd] {
		t.Errorf("%d skipped of %v", tl.Skipped(), kinds)
	}
	for _, w := range s.Windows() {
		for _, p := range tl.Pools() {
			if p.Name == w.Allocator && p.Now().InUse != w.Last {
				t.Errorf("%s ends with %d in use, it said %d", p.Name, p.Now().InUse, w.Last)
			}
		}
	}
	r := s.Reading()
	if len(s.Memory) == 0 && (!strings.Contains(strings.Join(r.Next, " "), "TF_CPU_ALLOCATOR_USE_BFC") || !strings.Contains(r.Why, "60 ops")) {
		t.Errorf("says %q and advises %q", r.Why, r.Next)
	}
	if !bytes.Contains(r.AppendJSON(nil), []byte(`"gpu":null`)) {
		t.Error("a program on the CPU has something of a GPU")
	}
}
