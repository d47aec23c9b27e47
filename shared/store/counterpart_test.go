package store

import (
	"slices"
	"testing"
)

func TestCounterparts(t *testing.T) {
	gpu := func(name, device string) Seat { return Seat{Name: name, Device: device, Accelerator: true} }
	cpu := func(name string) Seat { return Seat{Name: name, Device: "/CPU:0"} }
	arena := Seat{Name: "GPU_0_plan", Device: "/GPU:0", Accelerator: true, Planned: true}
	for _, c := range []struct {
		name string
		a, b []Seat
		want []int
	}{
		{"the same", []Seat{cpu("cpu"), gpu("GPU_0_bfc", "/GPU:0")}, []Seat{gpu("GPU_0_bfc", "/GPU:0"), cpu("cpu")}, []int{1, 0}},
		{"another allocator", []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []Seat{cpu("cpu"), gpu("GPU_0_torch", "/GPU:0")}, []int{1}},
		{"another device of the same number", []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []Seat{gpu("TPU_0_hbm", "/TPU:0")}, []int{0}},
		{"of another number", []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []Seat{gpu("TPU_1_hbm", "/TPU:1")}, []int{-1}},
		{"pinned memory is another role", []Seat{cpu("cpu")}, []Seat{cpu("gpu_host_bfc"), cpu("system")}, []int{1}},
		{"an arena is another role", []Seat{arena}, []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []int{-1}},
		{"the host is no accelerator", []Seat{cpu("cpu")}, []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []int{-1}},
		{"a name on a device that is worded otherwise", []Seat{gpu("GPU_0_bfc", "/device:GPU:0")}, []Seat{gpu("GPU_0_bfc", "/GPU:0")}, []int{0}},
		{"the same device before another", []Seat{gpu("pool", "/GPU:0"), gpu("pool", "/GPU:1")}, []Seat{gpu("pool", "/GPU:1"), gpu("pool", "/GPU:0")}, []int{1, 0}},
		{"a name before a role", []Seat{gpu("x", "/GPU:0"), gpu("y", "/GPU:0")}, []Seat{gpu("y", "/GPU:0"), gpu("z", "/GPU:0")}, []int{1, 0}},
		{"each once", []Seat{gpu("x", "/GPU:0"), gpu("y", "/GPU:0")}, []Seat{gpu("z", "/GPU:0")}, []int{0, -1}},
		{"none", nil, []Seat{cpu("cpu")}, []int{}},
	} {
		if got := Counterparts(c.a, c.b); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
