package place

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// both runs a case under the graph placer and the eager one.
func both(t *testing.T, f func(t *testing.T, eager bool)) {
	t.Helper()
	for _, eager := range []bool{false, true} {
		name := "graph"
		if eager {
			name = "eager"
		}
		t.Run(name, func(t *testing.T) { f(t, eager) })
	}
}

func build(t *testing.T, f func(b *program.Builder)) *program.Program {
	t.Helper()
	b := program.NewBuilder("test", 1)
	f(b)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func node(t *testing.T, p *program.Program, op program.Op) (program.NodeID, *program.Node) {
	t.Helper()
	for i := range p.Nodes {
		if p.Nodes[i].Op == op {
			return program.NodeID(i), &p.Nodes[i]
		}
	}
	t.Fatalf("no %s", op)
	return 0, nil
}

func decide(t *testing.T, p *program.Program, gpus []int, o Options) Result {
	t.Helper()
	r, err := Decide(p, devices(gpus...), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// refused checks kind and text of an error.
func refused(t *testing.T, err error, kind device.Kind, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrPlacement) || device.KindOf(err) != kind {
		t.Fatalf("got %v, want %v", err, kind)
	}
	for _, s := range parts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q lacks %q", err, s)
		}
	}
}

func matmul(b *program.Builder) {
	x := b.Input("x", program.Float32, program.Shape{2, 2})
	w := b.Variable("w", program.Shape{2, 2}, program.Init{})
	b.Fetch("y", b.Op(program.OpMatMul, program.Attrs{}, x, w))
}

// Devices CPU:0, GPU:0, GPU:1: MatMul float without request -> GPU:0; request
// GPU:1 -> GPU:1; GPU:2 soft -> GPU:0, hard -> an error that lists them.
func TestMatMulGoesToTheFirstGPUOrWhereAsked(t *testing.T) {
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := build(t, matmul)
		id, _ := node(t, p, program.OpMatMul)
		for _, c := range []struct {
			ask  string
			want event.DeviceID
		}{{"", 1}, {"/device:GPU:1", 2}, {"/GPU:2", 1}, {"/CPU:0", 0}, {"/gpu", 1}, {"/job:localhost/device:GPU:1", 2}} {
			o := Options{Soft: true, Eager: eager}
			if c.ask != "" {
				o.Rules = []Rule{{"MatMul", c.ask}}
			}
			if got := decide(t, p, []int{0, 1}, o).Nodes[id]; got.Device != c.want {
				t.Errorf("%q: device %d (%s), want %d", c.ask, got.Device, got.Reason, c.want)
			}
		}
		_, err := Decide(p, devices(0, 1), Options{Rules: []Rule{{"MatMul", "/device:GPU:2"}}, Eager: eager})
		refused(t, err, device.InvalidArgument, "MatMul", "/device:GPU:2", "CPU:0", "GPU:0", "GPU:1", "soft placement")
	})
}

func swapOut(b *program.Builder) {
	x := b.Input("x", program.Float32, program.Shape{2})
	b.Fetch("y", b.Op(program.OpIdentity, program.Attrs{}, x))
}

// An op with only a CPU kernel, request GPU:0: soft -> CPU:0; hard -> no
// supported kernel. No op of the zoo lacks a GPU kernel, so the test takes one
// away.
func TestOpWithoutKernelThere(t *testing.T) {
	lacksGPU(t, program.OpIdentity)
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := build(t, swapOut)
		id, n := node(t, p, program.OpIdentity)
		rules := []Rule{{n.Name, "/GPU:0"}}
		d := decide(t, p, []int{0}, Options{Rules: rules, Soft: true, Eager: eager}).Nodes[id]
		if d.Device != 0 || !strings.Contains(d.Reason, "no kernel") {
			t.Errorf("soft: device %d (%s)", d.Device, d.Reason)
		}
		_, err := Decide(p, devices(0), Options{Rules: rules, Eager: eager})
		refused(t, err, device.InvalidArgument, n.Name, "/GPU:0", "no supported kernel for GPU", "kernels of Identity: CPU")
		if d := decide(t, p, []int{0}, Options{Eager: eager}).Nodes[id]; d.Device != 0 || !strings.Contains(d.Reason, "no GPU kernel") {
			t.Errorf("unasked: device %d (%s)", d.Device, d.Reason)
		}
	})
}

func assignAdd(b *program.Builder) {
	x := b.Input("x", program.Float32, program.Shape{2})
	v := b.Variable("v", program.Shape{2}, program.Init{})
	b.Op(program.OpAssignAdd, program.Attrs{}, v, x)
}

// Variable on CPU:0 and AssignAdd requested on GPU:0: runs on CPU:0, eager and
// graph, also with soft placement off.
func TestUpdateRunsAtItsVariable(t *testing.T) {
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := build(t, assignAdd)
		id, n := node(t, p, program.OpAssignAdd)
		for _, soft := range []bool{false, true} {
			r := decide(t, p, []int{0}, Options{Rules: []Rule{{"v", "/CPU:0"}, {n.Name, "/GPU:0"}}, Soft: soft, Eager: eager})
			if d := r.Nodes[id]; d.Device != 0 || !strings.Contains(d.Reason, "variable v") {
				t.Errorf("soft %v: device %d (%s)", soft, d.Device, d.Reason)
			}
		}
	})
}

func momentum(b *program.Builder) {
	v := b.Variable("v", program.Shape{2}, program.Init{})
	a := b.Variable("a", program.Shape{2}, program.Init{})
	lr := b.Const("lr", program.Float32, nil, 1)
	m := b.Const("m", program.Float32, nil, 1)
	g := b.Input("g", program.Float32, program.Shape{2})
	b.Op(program.OpApplyMomentum, program.Attrs{}, v, a, lr, m, g)
}

// Two variables on different devices feeding one resource op: InvalidArgument.
// Eager execution looks at the first alone.
func TestTwoVariablesOnDifferentDevices(t *testing.T) {
	p := build(t, momentum)
	rules := []Rule{{"v", "/GPU:0"}, {"a", "/CPU:0"}}
	for _, soft := range []bool{false, true} {
		_, err := Decide(p, devices(0), Options{Rules: rules, Soft: soft})
		refused(t, err, device.InvalidArgument, "incompatible resource device", "ApplyMomentum")
	}
	id, _ := node(t, p, program.OpApplyMomentum)
	if d := decide(t, p, []int{0}, Options{Rules: rules, Eager: true}).Nodes[id]; d.Device != 1 {
		t.Errorf("eager: device %d (%s), want that of v", d.Device, d.Reason)
	}
	rules[1].Device = "/GPU:0"
	if d := decide(t, p, []int{0}, Options{Rules: rules}).Nodes[id]; d.Device != 1 {
		t.Errorf("device %d (%s), want that of both", d.Device, d.Reason)
	}
}

// A wish for a variable's device that cannot be met is dropped with a warning.
func TestVariableOnMissingDeviceIsMovedWithWarning(t *testing.T) {
	p := build(t, assignAdd)
	r := decide(t, p, []int{0}, Options{Rules: []Rule{{"v", "/GPU:3"}}, Soft: true})
	if id, _ := node(t, p, program.OpAssignAdd); r.Nodes[id].Device != 1 {
		t.Errorf("device %d", r.Nodes[id].Device)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "/GPU:3") {
		t.Errorf("warnings %q", r.Warnings)
	}
	_, err := Decide(p, devices(0), Options{Rules: []Rule{{"v", "/GPU:3"}}})
	refused(t, err, device.InvalidArgument, "does not exist")
}

// Shape(x) with x on GPU:1 is on GPU:1; without a GPU kernel there, not.
func TestShapeFollowsItsInput(t *testing.T) {
	p := build(t, func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{2})
		y := b.Op(program.OpRelu, program.Attrs{}, x)
		b.Fetch("s", b.Op(program.OpShape, program.Attrs{}, y))
	})
	id, n := node(t, p, program.OpShape)
	if d := decide(t, p, []int{0, 1}, Options{Rules: []Rule{{"Relu", "/GPU:1"}}, Soft: true}).Nodes[id]; d.Device != 2 || d.Reason != "with its input" {
		t.Errorf("device %d (%s)", d.Device, d.Reason)
	}
	rules := []Rule{{"Relu", "/GPU:1"}, {n.Name, "/GPU:0"}}
	if d := decide(t, p, []int{0, 1}, Options{Rules: rules, Soft: true}).Nodes[id]; d.Device != 1 {
		t.Errorf("asked for GPU:0, got device %d (%s)", d.Device, d.Reason)
	}
}

func colocated(class ...string) func(b *program.Builder) {
	return func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{2})
		a := b.Op(program.OpRelu, program.Attrs{}, x)
		b.Fetch("y", b.Op(program.OpIdentity, program.Attrs{}, a))
	}
}

// Colocate puts nodes together, whoever is asked for a device and in whatever
// order they stand.
func TestColocationGroupsShareADevice(t *testing.T) {
	p := build(t, colocated())
	relu, _ := node(t, p, program.OpRelu)
	id, n := node(t, p, program.OpIdentity)
	for _, c := range []struct {
		name  string
		rules []Rule
		on    *program.Node
		with  string
	}{
		{"the first is asked", []Rule{{"Relu", "/GPU:1"}}, n, "loc:@Relu"},
		{"the second is asked", []Rule{{n.Name, "/GPU:1"}}, n, "Relu"},
		{"the group comes before its name", []Rule{{n.Name, "/GPU:1"}}, &p.Nodes[relu], "loc:@" + n.Name},
		{"a name that no node has", []Rule{{n.Name, "/GPU:1"}, {"Relu", "/GPU:1"}}, n, "loc:@other"},
	} {
		for i := range p.Nodes {
			p.Nodes[i].Colocate = nil
		}
		c.on.Colocate = []string{c.with}
		r := decide(t, p, []int{0, 1}, Options{Rules: c.rules})
		if r.Nodes[relu].Device != 2 || r.Nodes[id].Device != 2 {
			t.Errorf("%s: devices %d and %d", c.name, r.Nodes[relu].Device, r.Nodes[id].Device)
		}
	}
	p.Nodes[relu].Colocate, n.Colocate = nil, []string{"loc:@Relu"}
	rules := []Rule{{"Relu", "/GPU:1"}, {n.Name, "/GPU:0"}}
	_, err := Decide(p, devices(0, 1), Options{Rules: rules})
	refused(t, err, device.InvalidArgument, "cannot be colocated with Relu")
	if r := decide(t, p, []int{0, 1}, Options{Rules: rules, Soft: true}); r.Nodes[relu].Device != r.Nodes[id].Device {
		t.Errorf("soft: requests merge, so devices %d and %d should be one", r.Nodes[relu].Device, r.Nodes[id].Device)
	}
}

// _class ["loc:@a"] with a on GPU:0 and the node's op CPU only: an error; soft:
// ignored, the node on CPU:0.
func TestColocationWithAnOpThatCannotGoThere(t *testing.T) {
	lacksGPU(t, program.OpIdentity)
	p := build(t, colocated())
	relu, _ := node(t, p, program.OpRelu)
	id, n := node(t, p, program.OpIdentity)
	n.Colocate = []string{"loc:@Relu"}
	rules := []Rule{{"Relu", "/GPU:0"}}
	_, err := Decide(p, devices(0), Options{Rules: rules})
	refused(t, err, device.InvalidArgument, "Identity has kernels for CPU")
	r := decide(t, p, []int{0}, Options{Rules: rules, Soft: true})
	if r.Nodes[relu].Device != 1 || r.Nodes[id].Device != 0 || len(r.Warnings) != 1 {
		t.Errorf("devices %d and %d, warnings %q", r.Nodes[relu].Device, r.Nodes[id].Device, r.Warnings)
	}
	// Nobody asked for the GPU: both go where both have kernels.
	r = decide(t, p, []int{0}, Options{})
	if r.Nodes[relu].Device != 0 || r.Nodes[id].Device != 0 {
		t.Errorf("unasked: devices %d and %d", r.Nodes[relu].Device, r.Nodes[id].Device)
	}
}

// Without a request nothing is ever spread over several GPUs.
func TestNothingIsSpreadByItself(t *testing.T) {
	p := model(t)
	for i, d := range decide(t, p, []int{0, 1, 2}, Options{Soft: true}).Nodes {
		if d.Device > 1 {
			t.Errorf("%s on device %d", p.Nodes[i].Name, d.Device)
		}
	}
}

// GPU:10 sorts before GPU:2 where GPU:0 and GPU:1 are not to be had.
func TestLexicographicOrder(t *testing.T) {
	p := build(t, matmul)
	id, _ := node(t, p, program.OpMatMul)
	if d := decide(t, p, []int{2, 10}, Options{}).Nodes[id]; d.Device != 2 {
		t.Errorf("device %d, want GPU:10", d.Device)
	}
}

// TPUs have kernels for what GPUs have; asked for, they are taken.
func TestTPUByRule(t *testing.T) {
	p := build(t, matmul)
	id, _ := node(t, p, program.OpMatMul)
	dev := append(devices(0), &device.Logical{Name: device.Local("TPU", 0), Card: new(device.Card)})
	for ask, want := range map[string]event.DeviceID{"/TPU:0": 2, "/GPU:0": 1, "/CPU:0": 0} {
		r, err := Decide(p, dev, Options{Rules: []Rule{{"MatMul", ask}}})
		if err != nil || r.Nodes[id].Device != want {
			t.Errorf("%s: %v %+v", ask, err, r.Nodes[id])
		}
	}
}

func smallAdd(d program.DType, n int64) func(b *program.Builder) {
	return func(b *program.Builder) {
		x := b.Input("x", d, program.Shape{n})
		b.Fetch("y", b.Op(program.OpAdd, program.Attrs{}, x, x))
	}
}

// int32 vector of 10 elements, Add, pinning off, no request: kernel on GPU:0.
// With pinning on the host, but for what is large or no integer.
func TestSmallIntegerPinning(t *testing.T) {
	for _, c := range []struct {
		dtype program.DType
		n     int64
		pin   bool
		want  event.DeviceID
	}{
		{program.Int32, 10, false, 1},
		{program.Int32, 10, true, 0},
		{program.Int64, 64, true, 0},
		{program.Int32, 65, true, 1},
		{program.Float32, 10, true, 1},
	} {
		p := build(t, smallAdd(c.dtype, c.n))
		id, _ := node(t, p, program.OpAdd)
		if d := decide(t, p, []int{0}, Options{Eager: true, PinSmall: c.pin}).Nodes[id]; d.Device != c.want {
			t.Errorf("%s of %d, pinning %v: device %d (%s)", c.dtype, c.n, c.pin, d.Device, d.Reason)
		}
		if d := decide(t, p, []int{0}, Options{PinSmall: c.pin}).Nodes[id]; d.Device != 1 {
			t.Errorf("a graph pins: device %d", d.Device)
		}
	}
}

func TestCheckRules(t *testing.T) {
	p := model(t)
	for _, c := range []struct {
		name  string
		rules []Rule
		warn  string
		fails bool
	}{
		{"sound", []Rule{{"dense1/*", "/CPU:0"}, {"dense2/*", "/GPU:0"}}, "", false},
		{"the order matters", []Rule{{"dense1/MatMul", "/CPU:0"}, {"dense1/*", "/GPU:0"}}, "", false},
		{"matches nothing", []Rule{{"conv9/*", "/CPU:0"}}, `rule 0 ("conv9/*" on /CPU:0) matches no op of mlp`, false},
		{"never reached", []Rule{{"dense1/*", "/CPU:0"}, {"dense1/MatMul", "/GPU:0"}}, "rule 1", false},
		{"disagree", []Rule{{"dense1/*", "/CPU:0"}, {"dense1/**", "/GPU:0"}}, "", true},
		{"agree twice", []Rule{{"dense1/*", "/CPU:0"}, {"dense1/**", "/CPU:0"}}, "no effect", false},
	} {
		w, err := CheckRules(p, c.rules)
		if (err != nil) != c.fails || (c.warn != "") != (len(w) == 1) || c.warn != "" && !strings.Contains(w[0], c.warn) {
			t.Errorf("%s: %q, %v", c.name, w, err)
		}
		if err != nil {
			refused(t, err, device.InvalidArgument, "disagree", "rule 1", "rule 0")
		}
	}
}

// Optimizer state goes with its variable, whatever a rule says of it.
func TestOptimizerStateStaysWithItsVariable(t *testing.T) {
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := model(t)
		r := decide(t, p, []int{0}, Options{Rules: []Rule{{"Adam/*", "/CPU:0"}}, Soft: true, Eager: eager})
		if d := at(t, p, r.Nodes, "Adam/dense1/kernel/m"); d.Device != 1 || !strings.Contains(d.Reason, "variable dense1/kernel") {
			t.Errorf("device %d (%s)", d.Device, d.Reason)
		}
	})
}

func TestUnreadableWishNamesTheOp(t *testing.T) {
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := build(t, matmul)
		_, n := node(t, p, program.OpMatMul)
		n.Device = "/GPU:many"
		_, err := Decide(p, devices(0), Options{Soft: true, Eager: eager})
		refused(t, err, device.InvalidArgument, "MatMul", "/GPU:many")
	})
}

// lacksGPU takes the GPU's kernel of an op away for one test.
func lacksGPU(t *testing.T, op program.Op) {
	t.Helper()
	def, err := program.Lookup(op)
	if err != nil {
		t.Fatal(err)
	}
	was := def.CPUOnly
	def.CPUOnly = true
	t.Cleanup(func() { def.CPUOnly = was })
}

// Eager: the variable's device decides; without a kernel there it is NotFound,
// soft placement or not. A graph goes where both have kernels.
func TestVariableWhereItsUpdateHasNoKernel(t *testing.T) {
	lacksGPU(t, program.OpAssignAdd)
	p := build(t, assignAdd)
	id, n := node(t, p, program.OpAssignAdd)
	for _, soft := range []bool{false, true} {
		_, err := Decide(p, devices(0), Options{Rules: []Rule{{"v", "/GPU:0"}}, Soft: soft, Eager: true})
		refused(t, err, device.NotFound, n.Name, "variable v", "CPU")
	}
	r := decide(t, p, []int{0}, Options{})
	if v, _ := node(t, p, program.OpVariable); r.Nodes[id].Device != 0 || r.Nodes[v].Device != 0 {
		t.Errorf("graph: update on %d, variable on %d, want both on the host", r.Nodes[id].Device, r.Nodes[v].Device)
	}
	_, err := Decide(p, devices(0), Options{Rules: []Rule{{"v", "/GPU:0"}}})
	refused(t, err, device.InvalidArgument, "no supported kernel")
}

func TestErrorsSayWhatThereIs(t *testing.T) {
	both(t, func(t *testing.T, eager bool) {
		t.Helper()
		p := build(t, matmul)
		_, err := Decide(p, devices(), Options{Rules: []Rule{{"MatMul", "/GPU:0"}}, Eager: eager})
		refused(t, err, device.InvalidArgument, "does not exist", "The workload has no GPU")
		_, err = Decide(p, devices(0), Options{Rules: []Rule{{"MatMul", "/job:worker"}}, Eager: eager})
		refused(t, err, device.InvalidArgument, "/job:worker")
		_, n := node(t, p, program.OpMatMul)
		n.Op = "NoSuchOp"
		_, err = Decide(p, devices(0), Options{Eager: eager})
		refused(t, err, device.InvalidArgument, "MatMul", "no kernel is registered", "NoSuchOp")
	})
}

// A request that an op shares with others of its group names who asked.
func TestColocatedWithAnImpossibleRequest(t *testing.T) {
	p := build(t, colocated())
	_, n := node(t, p, program.OpIdentity)
	n.Colocate = []string{"loc:@Relu"}
	_, err := Decide(p, devices(0), Options{Rules: []Rule{{"Relu", "/GPU:4"}}})
	refused(t, err, device.InvalidArgument, "Relu", "/GPU:4", "does not exist")
	if r := decide(t, p, []int{0}, Options{Rules: []Rule{{"Relu", "/GPU:4"}}, Soft: true}); r.Nodes[1].Device != 1 {
		t.Errorf("soft: device %d", r.Nodes[1].Device)
	}
}
