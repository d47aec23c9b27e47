package place_test

import (
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
)

// fed gives batches that are always there.
type fed struct{}

func (fed) Next(t int64) (exec.Batch, error) { return exec.Batch{Ready: t}, nil }
func (fed) Pending() int64                   { return 1 << 62 }
func (fed) Advance(int64)                    {}

// hop is one kind of transfer.
type hop struct{ from, to event.DeviceID }

// transfers runs one step on a host and two GPUs and counts the copies of each
// tensor, but for those of first values and fetches.
func transfers(t *testing.T, mode exec.Mode, rules []place.Rule, build func(b *program.Builder)) map[hop]int {
	t.Helper()
	pb := program.NewBuilder("test", 1)
	build(pb)
	p, err := pb.Build()
	if err != nil {
		t.Fatal(err)
	}
	preset, _ := device.Find("lab-1g")
	machine := device.NewMachine(nil)
	devices := []*device.Logical{{Name: device.Local("CPU", 0), Model: device.HostModel()}}
	for i := range 2 {
		card, err := machine.Card(string(rune('a'+i)), preset)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, &device.Logical{Name: device.Local("GPU", i), Model: preset.Model(), Card: card, Limit: 64 << 20, Alone: 64 << 20})
	}
	got := map[hop]int{}
	rt, err := exec.New(exec.Config{
		Mode: mode, Devices: devices, Backend: sim.New(), Strings: new(event.Strings), Seed: 1,
		Sink: event.SinkFunc(func(e *event.Event) {
			switch c := event.TransferCause(e.Cause); {
			case e.Kind != event.TransferBegin, c == event.CauseInitial, c == event.CauseFetch:
			default:
				got[hop{e.Device, e.Peer}]++
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := rt.Attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) { return system.New(system.Options{Observer: o}), nil }, nil); err != nil {
		t.Fatal(err)
	}
	for i := range devices {
		err := rt.Attach(event.DeviceID(i), i == 0, func(o alloc.Observer) (alloc.Allocator, error) {
			s, err := alloc.NewSpace(alloc.SpaceOptions{Base: uint64(i+1) << 40})
			if err != nil {
				return nil, err
			}
			return bfc.New(s, bfc.Options{Limit: 64 << 20, Growth: true, Observer: o})
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	plan, err := rt.Compile(p, rules, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Step(plan, 0, fed{}); err != nil {
		t.Fatal(err)
	}
	rt.End(event.EndDone, "")
	return got
}

func threeUses(b *program.Builder) {
	x := b.Input("x", program.Float32, program.Shape{64})
	a := b.Op(program.OpRelu, program.Attrs{}, x)
	s := b.Op(program.OpTanh, program.Attrs{}, a)
	s = b.Op(program.OpMul, program.Attrs{}, s, b.Op(program.OpExp, program.Attrs{}, a))
	b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpAdd, program.Attrs{}, s, a)))
}

// A tensor on GPU:0 consumed by three ops on GPU:1: one transfer per step, by
// a graph's shared receive as by an eager tensor's mirror.
func TestOneTransferForAllConsumersOnADevice(t *testing.T) {
	for _, mode := range []exec.Mode{exec.Graph, exec.Eager} {
		got := transfers(t, mode, []place.Rule{{Match: "Relu", Device: "/GPU:0"}, {Match: "*", Device: "/GPU:1"}}, threeUses)
		if n := got[hop{1, 2}]; n != 1 || got[hop{0, 1}] != 1 || len(got) != 2 {
			t.Errorf("mode %v: transfers %v, want one from GPU:0 to GPU:1 and the input", mode, got)
		}
	}
}

// Consumed by a host-memory argument on GPU:1 and by a device argument on
// GPU:1: two. Where the gather reads its axis from is not told apart here, so a
// kernel argument is made one of host memory.
func TestOneTransferForEachKindOfMemory(t *testing.T) {
	def, err := program.Lookup(program.OpTanh)
	if err != nil {
		t.Fatal(err)
	}
	was := def.HostInputs
	def.HostInputs = []int{0}
	t.Cleanup(func() { def.HostInputs = was })
	for _, mode := range []exec.Mode{exec.Graph, exec.Eager} {
		got := transfers(t, mode, []place.Rule{{Match: "Relu", Device: "/GPU:0"}, {Match: "*", Device: "/GPU:1"}}, threeUses)
		if got[hop{1, 2}] != 1 || got[hop{1, 0}] != 1 {
			t.Errorf("mode %v: transfers %v, want one from GPU:0 to GPU:1 and one to the host", mode, got)
		}
	}
}

// Eager x on the CPU used twice by ops on GPU:0: one transfer.
func TestMirrorIsSentOnce(t *testing.T) {
	got := transfers(t, exec.Eager, nil, func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{64})
		b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpMul, program.Attrs{}, b.Op(program.OpRelu, program.Attrs{}, x), x)))
	})
	if got[hop{0, 1}] != 1 {
		t.Errorf("transfers %v, want one to GPU:0", got)
	}
}

// int32 vector of 10 elements, Add, no request: the kernel is GPU:0's, its
// data stays in host memory, so nothing is sent.
func TestInt32OfTheGPUStaysOnTheHost(t *testing.T) {
	for _, mode := range []exec.Mode{exec.Graph, exec.Eager} {
		got := transfers(t, mode, nil, func(b *program.Builder) {
			x := b.Input("x", program.Int32, program.Shape{10})
			b.Fetch("y", b.Op(program.OpAdd, program.Attrs{}, x, x))
		})
		if len(got) != 0 {
			t.Errorf("mode %v: transfers %v, want none", mode, got)
		}
	}
}

// The result of Shape is in host memory: nothing is sent for a host's reader.
func TestShapeIsReadInHostMemory(t *testing.T) {
	got := transfers(t, exec.Graph, []place.Rule{{Match: "AddV2", Device: "/CPU:0"}}, func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{64})
		s := b.Op(program.OpShape, program.Attrs{}, b.Op(program.OpRelu, program.Attrs{}, x))
		b.Fetch("y", b.Op(program.OpAdd, program.Attrs{}, s, s))
	})
	if got[hop{1, 0}] != 0 {
		t.Errorf("transfers %v, want none to the host", got)
	}
}
