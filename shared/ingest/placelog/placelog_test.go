package placelog

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const graph = `Device mapping:
/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: Tesla K80, pci bus id: 0000:00:1e.0, compute capability: 3.7
2018-06-01 10:00:00.000000: I tensorflow/core/common_runtime/placer.cc:874] dense/MatMul: (MatMul)/job:localhost/replica:0/task:0/device:GPU:0
dense/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0
dense/Unique: (Unique): /job:localhost/replica:0/task:0/device:CPU:0
I tensorflow/core/common_runtime/simple_placer.cc:818] other/b: /job:localhost/replica:0/task:0/cpu:0
save/RestoreV2: (RestoreV2): /job:worker/replica:0/task:1/device:CPU:0
`

const eager = `Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0
2021-01-01 00:00:00.000000: I tensorflow/core/common_runtime/eager/execute.cc:760] Executing op Unique in device /job:localhost/replica:0/task:0/device:CPU:0
Executing op MatMul in device /job:localhost/replica:0/task:0/device:GPU:0
Executing op Range in device /job:localhost/replica:0/task:0/device:CPU:0
`

const refused = `InvalidArgumentError: Cannot assign a device for operation 'aux/weights/Adam_1': Could not satisfy explicit device specification '/device:GPU:0' because no supported kernel for GPU devices is available.
Colocation Debug Info:
Colocation group had the following types and devices: 
Switch: GPU CPU 
L2Loss: CPU 
Identity: CPU XLA_CPU XLA_GPU 
ApplyAdam: GPU CPU 

Colocation members, user-requested devices, and framework assigned devices, if any:
  aux/weights/Initializer (Fill) 
  aux/weights (VariableV2) /device:GPU:0
  aux/weights/Adam_1 (VariableV2) /device:GPU:0

Registered kernels:
Cannot assign a device for operation MatMul: {{node MatMul}}was explicitly assigned to /device:GPU:1 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification refers to a valid device.
Cannot assign a device to node 'a': Could not satisfy explicit device specification '/gpu:3'
Cannot assign a device to node 'u/SparseApply': Could not satisfy explicit device specification '' because the node was colocated with a group of nodes that required incompatible device '/job:localhost/replica:0/task:0/GPU:0'
`

func read(t *testing.T, s string) *Report {
	t.Helper()
	r, err := Read(strings.NewReader(s))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGraph(t *testing.T) {
	r := read(t, graph)
	if r.Line != 3 || len(r.Devices) != 3 || r.Devices[0].Name != "GPU:0" || r.Devices[0].Ops != 1 || r.Devices[1].Name != "CPU:0" ||
		r.Devices[1].Ops != 2 || r.Devices[2].Name != "job:worker/replica:0/task:1/CPU:0" {
		t.Errorf("%+v", r)
	}
	want := []Op{{"dense/Unique", "Unique", "CPU:0", 5, 1, 0}, {"other/b", "", "CPU:0", 6, 1, 0}, {"save/RestoreV2", "RestoreV2", "job:worker/replica:0/task:1/CPU:0", 7, 1, 0}}
	if !slices.Equal(r.Ops, want) || r.Beside(&r.Ops[0]) != 1 || r.Beside(&r.Ops[1]) != 0 {
		t.Errorf("%+v", r.Ops)
	}
}

func TestEager(t *testing.T) {
	r := read(t, eager)
	want := []Op{{"", "Unique", "CPU:0", 2, 1, 1}, {"", "Range", "CPU:0", 4, 1, 1}}
	if !slices.Equal(r.Ops, want) || len(r.Devices) != 2 || r.Devices[0].Types[0] != (Type{"MatMul", 2}) {
		t.Errorf("%+v", r)
	}
}

func TestRefused(t *testing.T) {
	r := read(t, refused)
	want := []Refusal{
		{"aux/weights/Adam_1", "GPU:0", 1, "GPU", false, ""},
		{"MatMul", "GPU:1", 15, "", true, ""},
		{"a", "GPU:3", 16, "", false, ""},
		{"u/SparseApply", "", 17, "", false, "GPU:0"},
	}
	if !slices.Equal(r.Refused, want) || r.Refuses != 4 || !slices.Equal(r.NoGPU, []string{"L2Loss", "Identity"}) {
		t.Errorf("%+v", r)
	}
	if r.Held("aux/weights/Initializer") != "L2Loss" || r.Held("MatMul") != "" {
		t.Errorf("%v", r.groups)
	}
}

func TestNothing(t *testing.T) {
	for _, s := range []string{
		"", "/job:localhost/replica:0/task:0/device:GPU:0 -> device: 0, name: K80", "a: (b c): /job:localhost/device:CPU:0",
		"x: /job:localhost/replica:0/task:0/device:CPU:0", "Executing op in device", "Executing op A in device /job:x", "Cannot assign a device for you",
		`[[Node: a = MatMul[_device="/job:localhost/replica:0/task:0/gpu:0"]()]]`,
	} {
		if r, err := Read(strings.NewReader(s)); !errors.Is(err, ErrNothing) {
			t.Errorf("%q: %+v, %v", s, r, err)
		}
	}
}

// TestRepeatsAreCounted: a graph that is placed again and again, and a loop that
// runs eagerly for ever, take no more memory than once.
func TestRepeatsAreCounted(t *testing.T) {
	r := read(t, strings.Repeat(graph+eager, 500))
	if len(r.Ops) != 5 || r.Devices[0].Ops != 1001 {
		t.Errorf("%d ops, %+v", len(r.Ops), r.Devices)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(graph)
	f.Add(eager)
	f.Add(refused)
	f.Add("Colocation group had the following types\na:\nb: CPU\nColocation members\n  x (y)\n z (")
	f.Add("0: (A) /job:0")
	f.Add("xecuting op A in device /job:0")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Read(strings.NewReader(s))
		if (err == nil) == r.Empty() || len(r.Ops) > maxOps || len(r.Refused) > r.Refuses {
			t.Errorf("%v with %+v", err, r)
		}
		for i := range r.Ops {
			if o := &r.Ops[i]; GPU(o.Device) || o.Count < 1 || r.Beside(o) < 0 {
				t.Errorf("%+v", o)
			}
		}
		p, all := New(), New()
		for i, l := range strings.Split(s, "\n") {
			all.Line(i+1, l)
			if !p.Idle() || marked(l) {
				p.Line(i+1, l)
			}
		}
		if len(p.rep.Ops) != len(all.rep.Ops) || p.rep.Line != all.rep.Line || len(p.rep.NoGPU) != len(all.rep.NoGPU) {
			t.Errorf("without lines that hold no mark %+v, with them %+v", p.rep, all.rep)
		}
	})
}

func marked(s string) bool {
	for _, m := range Marks() {
		if strings.Contains(strings.ToLower(s), m) {
			return true
		}
	}
	return false
}
