package exec_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
	"tideline/shared/sim"
	"tideline/shared/zoo"
)

const mib = 1 << 20

// bench is a runtime with one GPU, and what it told.
type bench struct {
	t       testing.TB
	rt      *exec.Runtime
	strings *event.Strings
	events  []event.Event
	devices []*device.Logical
	pinned  *driver
	// allocators are the names, by id.
	allocators []string
}

// driver is the host's, which may have run out of memory to lock.
type driver struct {
	alloc.SubAllocator
	refuse bool
}

func (d *driver) Take(alignment, bytes int64) (addr uint64, received int64, ok bool) {
	if d.refuse {
		return 0, 0, false
	}
	return d.SubAllocator.Take(alignment, bytes)
}

// now feeds batches that are always there.
type now struct{}

func (now) Next(t int64) (exec.Batch, error) { return exec.Batch{Ready: t}, nil }

func (now) Pending() int64 { return math.MaxInt64 }

func (now) Advance(int64) {}

func newBench(t *testing.T, eager bool, limit int64) *bench {
	t.Helper()
	return newBenchWith(t, limit, func(c *exec.Config) { c.Mode = mode(eager) })
}

// newBenchWith changes the configuration before the runtime is made.
func newBenchWith(tb testing.TB, limit int64, change func(*exec.Config)) *bench {
	tb.Helper()
	b := &bench{t: tb, strings: new(event.Strings)}
	name := "lab-1g"
	if limit >= 1<<30 {
		name = "h200-141g"
	}
	preset, _ := device.Find(name)
	machine := device.NewMachine(nil)
	var cards [2]*device.Card
	for i := range cards {
		c, err := machine.Card([]string{"first", "second"}[i], preset)
		if err != nil {
			tb.Fatal(err)
		}
		cards[i] = c
	}
	card, second := cards[0], cards[1]
	var err error
	devices := []*device.Logical{
		{Name: device.Local("CPU", 0), Model: device.HostModel()},
		{Name: device.Local("GPU", 0), Model: preset.Model(), Card: card, Limit: limit, Alone: limit},
		{Name: device.Local("GPU", 1), Model: preset.Model(), Card: second, Limit: limit, Alone: limit},
	}
	config := exec.Config{
		Devices: devices, Backend: sim.New(), Strings: b.strings, Seed: 1,
		Sink: event.SinkFunc(func(e *event.Event) {
			b.events = append(b.events, *e)
			if e.Kind == event.AllocatorFacts {
				f, err := event.ParseFields(b.strings.At(e.Text))
				if err != nil {
					tb.Fatal(err)
				}
				b.allocators = append(b.allocators, f.Text("name"))
			}
		}),
	}
	config.Devices = devices
	b.devices = devices
	change(&config)
	b.rt, err = exec.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	attach := func(dev event.DeviceID, pinned bool, f func(alloc.Observer) (alloc.Allocator, error)) {
		name := map[event.DeviceID]string{0: "cpu", 1: "GPU_0_bfc", 2: "GPU_1_bfc"}[dev]
		if pinned {
			name = "gpu_host_bfc"
		}
		if err := b.rt.Attach(dev, pinned, f, event.Fields{{Key: "name", Value: name}}); err != nil {
			tb.Fatal(err)
		}
	}
	attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) { return system.New(system.Options{Observer: o}), nil })
	attach(0, true, func(o alloc.Observer) (alloc.Allocator, error) {
		s, err := alloc.NewSpace(alloc.SpaceOptions{Base: 0x6000_0000_0000})
		if err != nil {
			return nil, err
		}
		b.pinned = &driver{SubAllocator: s}
		return bfc.New(b.pinned, bfc.Options{Name: "gpu_host_bfc", Limit: 1 << 37, Growth: true, Observer: o})
	})
	for i, c := range cards {
		attach(event.DeviceID(i+1), false, func(o alloc.Observer) (alloc.Allocator, error) {
			s, err := c.Space(0x7000_0000_0000 + uint64(i)<<40)
			if err != nil {
				return nil, err
			}
			return bfc.New(s, bfc.Options{Name: fmt.Sprintf("GPU_%d_bfc", i), Limit: limit, GarbageCollection: true, Observer: o})
		})
	}
	tb.Cleanup(b.rt.Close)
	return b
}

func mode(eager bool) exec.Mode {
	if eager {
		return exec.Eager
	}
	return exec.Graph
}

func (b *bench) compile(build func(*program.Builder), rules ...place.Rule) *exec.Plan {
	b.t.Helper()
	pb := program.NewBuilder("test", 1)
	build(pb)
	p, err := pb.Build()
	if err != nil {
		b.t.Fatal(err)
	}
	plan, err := b.rt.Compile(p, rules, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return plan
}

func (b *bench) step(p *exec.Plan) {
	b.t.Helper()
	if _, err := b.rt.Step(p, 0, now{}); err != nil {
		b.t.Fatal(err)
	}
}

const gpu event.DeviceID = 1

// peak is the most buffers of at least a MiB that a device ever held.
func (b *bench) peak(dev event.DeviceID) int {
	live, most := 0, 0
	for _, e := range b.events {
		if e.Device != dev || e.Size < mib {
			continue
		}
		switch e.Kind {
		case event.Alloc:
			live++
		case event.Free:
			live--
		default:
		}
		most = max(most, live)
	}
	return most
}

// live is how many such buffers a device holds at the end.
func (b *bench) live(dev event.DeviceID) int {
	n := 0
	for _, e := range b.events {
		if e.Device == dev && e.Size >= mib {
			switch e.Kind {
			case event.Alloc:
				n++
			case event.Free:
				n--
			default:
			}
		}
	}
	return n
}

// told lists the events of some kinds on a device as "kind name".
func (b *bench) told(dev event.DeviceID, kinds ...event.Kind) []string {
	var out []string
	name := map[uint64]string{}
	for _, e := range b.events {
		if e.Device != dev || !slices.Contains(kinds, e.Kind) {
			continue
		}
		switch e.Kind {
		case event.Alloc, event.Forward:
			name[e.Address] = b.strings.At(e.Tensor)
			out = append(out, e.Kind.String()+" "+name[e.Address])
		case event.Free:
			out = append(out, "free "+name[e.Address])
		default:
			out = append(out, e.Kind.String()+" "+b.strings.At(e.Op))
		}
	}
	return out
}

func (b *bench) count(k event.Kind) int {
	n := 0
	for _, e := range b.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

var oneMiB = program.Shape{1, mib / 4}

func chain(b *program.Builder) {
	b.Fetch("c", b.Op(program.OpRelu, program.Attrs{}, b.Op(program.OpRelu, program.Attrs{}, b.Const("a", program.Float32, oneMiB, 1))))
}

func TestGraphChainFromConstantNeedsTwoBuffers(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(chain))
	if got := b.peak(gpu); got != 2 {
		t.Errorf("peak of %d buffers, want 2: the constant stays, b becomes c\n%s", got, strings.Join(b.told(gpu, event.Alloc, event.Free, event.Forward), "\n"))
	}
	if got := b.count(event.Forward); got != 1 {
		t.Errorf("%d forwards, want 1", got)
	}
}

func TestGraphChainFromInputNeedsOneBuffer(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		x := b.Op(program.OpRelu, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
		b.Fetch("c", b.Op(program.OpRelu, program.Attrs{}, x))
	}))
	if got := b.peak(gpu); got != 1 {
		t.Errorf("peak of %d buffers, want 1", got)
	}
	if got := b.live(gpu); got != 0 {
		t.Errorf("%d buffers outlive the step", got)
	}
}

func TestEagerChainNeedsTwoBuffersAndKeepsNone(t *testing.T) {
	b := newBench(t, true, 64*mib)
	b.step(b.compile(chain))
	if got := b.peak(gpu); got != 2 {
		t.Errorf("peak of %d buffers, want 2: each dies when the next is there", got)
	}
	if b.count(event.Forward) != 0 {
		t.Error("eager execution forwarded a buffer")
	}
	if got := b.live(gpu); got != 0 {
		t.Errorf("%d buffers outlive the step", got)
	}
}

func TestAddOfATensorToItselfIsNotInPlace(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		x := b.Input("x", program.Float32, oneMiB)
		b.Fetch("z", b.Op(program.OpAdd, program.Attrs{}, x, x))
	}))
	if got := b.peak(gpu); got != 2 {
		t.Errorf("peak of %d buffers, want 2: x has two slots", got)
	}
}

func TestBroadcastForwardsOnlyTheInputOfTheOutputsSize(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		row := b.Input("row", program.Float32, oneMiB)
		all := b.Input("all", program.Float32, program.Shape{4, mib / 4})
		b.Fetch("z", b.Op(program.OpAdd, program.Attrs{}, row, all))
	}))
	for _, e := range b.events {
		if e.Kind == event.Forward && e.Size != 4*mib {
			t.Errorf("forwarded a buffer of %d bytes", e.Size)
		}
	}
	if b.count(event.Forward) != 1 {
		t.Errorf("%d forwards, want 1", b.count(event.Forward))
	}
}

func TestCastIsNeverInPlace(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		b.Fetch("z", b.Op(program.OpCast, program.Attrs{DType: program.Int32}, b.Input("x", program.Float32, oneMiB)))
	}))
	if b.count(event.Forward) != 0 {
		t.Error("a cast took over its input")
	}
}

func TestInputsAreFreedInIndexOrderAfterTheKernel(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{64, 4096})
		y := b.Input("y", program.Float32, program.Shape{4096, 128})
		b.Fetch("z", b.Op(program.OpMatMul, program.Attrs{}, x, y))
	}))
	got := b.told(gpu, event.Alloc, event.Free)
	want := []string{"alloc scratch", "alloc x", "alloc y", "alloc MatMul", "free x", "free y", "free MatMul"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestUnusedOutputIsFreedBeforeTheNextNodeStarts(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.step(b.compile(func(b *program.Builder) {
		x := b.Const("logits", program.Float32, program.Shape{1024, 512}, 1) // a constant is never taken over
		y := b.Input("labels", program.Int64, program.Shape{1024})
		// The second output is the gradient, which nobody wants here.
		b.Fetch("loss", b.Op(program.OpMean, program.Attrs{}, b.Op(program.OpSparseXent, program.Attrs{}, x, y)))
	}))
	told := b.told(gpu, event.Alloc, event.Free)
	i := slices.Index(told, "free SparseSoftmaxCrossEntropyWithLogits:1")
	j := slices.Index(told, "alloc Mean")
	if i < 0 || j < 0 || i > j {
		t.Errorf("the unused output was freed at %d, the next node's output made at %d: %q", i, j, told)
	}
}

// Root, then branches of two ops: breadth first holds all of the first ops'
// outputs at once; program order, which eager follows, holds two at a time.
func TestGraphRunsBreadthFirst(t *testing.T) {
	const branches = 5
	wide := func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{1, mib / 4})
		for range branches {
			y := b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{2, mib / 4}}, x)
			b.Fetch("s", b.Op(program.OpSum, program.Attrs{}, y))
		}
	}
	g := newBench(t, false, 64*mib)
	g.step(g.compile(wide))
	e := newBench(t, true, 64*mib)
	e.step(e.compile(wide))
	if got := g.peak(gpu); got != branches+1 {
		t.Errorf("graph: peak of %d buffers, want %d", got, branches+1)
	}
	if got := e.peak(gpu); got != 2 {
		t.Errorf("eager: peak of %d buffers, want 2", got)
	}
}

// The input is made by an op and read by nobody else: all but its kind of
// memory lets the output take it over, and does where no GPU reads that.
func TestPinnedOutputDoesNotTakeOverPageableInput(t *testing.T) {
	for _, sent := range []bool{true, false} {
		b := newBench(t, false, 64*mib)
		rules := []place.Rule{{Match: "Abs", Device: "/CPU:0"}, {Match: "Relu", Device: "/CPU:0"}}
		if !sent {
			rules = append(rules, place.Rule{Match: "Tanh", Device: "/CPU:0"})
		}
		b.step(b.compile(func(b *program.Builder) {
			x := b.Op(program.OpAbs, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
			y := b.Op(program.OpRelu, program.Attrs{}, x) // on the host, read by the GPU: pinned
			b.Fetch("z", b.Op(program.OpTanh, program.Attrs{}, y))
		}, rules...))
		taken := false
		for _, e := range b.events {
			taken = taken || e.Kind == event.Forward && e.Device == 0 && b.strings.At(e.Tensor) == "Relu"
			if e.Kind == event.TransferBegin && e.Flags&event.Pinned == 0 {
				t.Errorf("transfer of %s is not pinned", b.strings.At(e.Tensor))
			}
		}
		if taken == sent {
			t.Errorf("read by the GPU %v: the output took over its input %v", sent, taken)
		}
	}
}

func TestOneTransferServesAllConsumersOnADevice(t *testing.T) {
	for _, eager := range []bool{false, true} {
		b := newBench(t, eager, 64*mib)
		b.step(b.compile(func(b *program.Builder) {
			x := b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
			for range 3 {
				b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, x))
			}
		}, place.Rule{Match: "Tanh", Device: "/CPU:0"}))
		n := 0
		for _, e := range b.events {
			if e.Kind == event.TransferBegin && event.TransferCause(e.Cause) == event.CausePlacement {
				n++
			}
		}
		if n != 1 {
			t.Errorf("eager %v: %d transfers of one tensor to one device, want 1", eager, n)
		}
	}
}

func TestOutOfMemoryEndsTheStepAndASmallerBatchSucceeds(t *testing.T) {
	for _, eager := range []bool{false, true} {
		b := newBench(t, eager, 16*mib)
		build := func(batch int) *exec.Plan {
			p, err := zoo.Program("lenet5", zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := b.rt.Compile(p, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		small, big := build(16), build(4096)
		b.step(small)
		before := b.rt.Stats(gpu).InUse
		from := b.rt.Now()
		if _, err := b.rt.Step(big, 1, now{}); !errors.Is(err, exec.ErrOutOfMemory) {
			t.Fatalf("eager %v: batch 4096 in 16 MiB: %v, want out of memory", eager, err)
		}
		if waited := b.rt.Now() - from; waited < 10_000_000_000 {
			t.Errorf("eager %v: failed after %d ns, want the allocator's 10 s", eager, waited)
		}
		o := b.rt.OOM()
		if o == nil || o.Allocator != "GPU_0_bfc" || o.Verdict.Cause == event.OOMUndetermined {
			t.Fatalf("eager %v: finding %+v", eager, o)
		}
		message := ""
		for _, e := range b.events {
			if s := b.strings.At(e.Text); e.Kind == event.Log && strings.HasPrefix(s, "OOM when allocating tensor with shape[") {
				message = s
			}
		}
		for _, want := range []string{"type float", "/device:GPU:0", "GPU_0_bfc"} {
			if !strings.Contains(message, want) {
				t.Errorf("eager %v: message %q lacks %q", eager, message, want)
			}
		}
		if _, err := b.rt.Step(small, 2, now{}); err != nil {
			t.Fatalf("eager %v: the small batch after the failure: %v", eager, err)
		}
		// Graph: what the failed function left are its constants.
		if after := b.rt.Stats(gpu).InUse; after > before+16*1024 {
			t.Errorf("eager %v: %d bytes in use after, %d before", eager, after, before)
		}
	}
}

func TestEagerHoldsGradientsUntilAllAreApplied(t *testing.T) {
	order := func(eager bool) (firstApply, lastGradient int) {
		b := newBench(t, eager, 64*mib)
		p, err := zoo.Program("mlp", zoo.Options{Batch: 8, Train: true, Optimizer: "sgd"})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := b.rt.Compile(p, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		b.step(plan)
		live, most := 0, 0
		at := map[uint64]bool{}
		for _, e := range b.events {
			switch {
			case e.Device != gpu:
			case (e.Kind == event.Alloc || e.Kind == event.Forward) && e.Category == event.Gradient:
				if !at[e.Address] {
					live++
				}
				at[e.Address] = true
			case e.Kind == event.Free && at[e.Address]:
				live--
				delete(at, e.Address)
			}
			most = max(most, live)
		}
		return most, live
	}
	eager, left := order(true)
	graph, leftGraph := order(false)
	if n := freedBefore(t, true); n != 0 {
		t.Errorf("eager: %d gradients are freed before the last update has run", n)
	}
	if freedBefore(t, false) == 0 {
		t.Error("graph: no gradient is freed before the last update has run")
	}
	if eager != 6 {
		t.Errorf("eager: at most %d gradients alive at once, want all 6", eager)
	}
	if graph >= eager {
		t.Errorf("graph: at most %d gradients alive, want fewer than the %d of eager", graph, eager)
	}
	if left != 0 || leftGraph != 0 {
		t.Errorf("gradients outlive the step: eager %d, graph %d", left, leftGraph)
	}
}

// freedBefore counts the gradients that a step frees on the device before the
// last update is ordered.
func freedBefore(t *testing.T, eager bool) int {
	t.Helper()
	b := newBench(t, eager, 64*mib)
	p, err := zoo.Program("mlp", zoo.Options{Batch: 8, Train: true, Optimizer: "sgd"})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := b.rt.Compile(p, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	b.step(plan)
	var at []int // positions of the frees
	gradient, last := map[uint64]bool{}, 0
	for i, e := range b.events {
		switch {
		case e.Device != gpu:
		case e.Kind == event.Alloc || e.Kind == event.Forward:
			gradient[e.Address] = e.Category == event.Gradient
		case e.Kind == event.Free && gradient[e.Address]:
			at = append(at, i)
		case e.Kind == event.OpBegin && e.Category == event.OpUpdate:
			last = i
		}
	}
	before := 0
	for _, i := range at {
		if i < last {
			before++
		}
	}
	if len(at) != 6 {
		t.Errorf("eager %v: %d gradients freed, want 6", eager, len(at))
	}
	return before
}

func TestTimesNeverGoBackwards(t *testing.T) {
	for _, eager := range []bool{false, true} {
		b := newBench(t, eager, 64*mib)
		p, err := zoo.Program("lenet5", zoo.Options{Batch: 64, Train: true, Optimizer: "adam"})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := b.rt.Compile(p, []place.Rule{{Match: "conv2/*", Device: "/CPU:0"}}, true)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b.step(plan)
		}
		b.rt.End(event.EndDone, "")
		last := int64(0)
		open := map[uint64]bool{}
		for i, e := range b.events {
			if e.Time < last {
				t.Fatalf("eager %v: event %d (%s) at %d after %d", eager, i, e.Kind, e.Time, last)
			}
			last = e.Time
			switch e.Kind {
			case event.OpBegin:
				open[e.ID] = true
			case event.OpEnd:
				if !open[e.ID] {
					t.Fatalf("op %d ends before it begins", e.ID)
				}
				delete(open, e.ID)
			default:
			}
		}
		if len(open) != 0 {
			t.Errorf("eager %v: %d ops never ended", eager, len(open))
		}
	}
}

func TestKernelWaitsForItsCopiedInput(t *testing.T) {
	for _, eager := range []bool{false, true} {
		b := newBench(t, eager, 64*mib)
		b.step(b.compile(func(b *program.Builder) {
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, b.Input("x", program.Float32, oneMiB)))
		}))
		var arrived, begun int64
		for _, e := range b.events {
			if e.Kind == event.TransferEnd && e.Peer == gpu {
				arrived = e.Time
			}
			if e.Kind == event.OpBegin && e.Device == gpu {
				begun = e.Time
			}
		}
		if arrived == 0 || begun < arrived {
			t.Errorf("eager %v: the kernel began at %d, its input arrived at %d", eager, begun, arrived)
		}
	}
}
