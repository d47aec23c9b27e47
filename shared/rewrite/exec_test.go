package rewrite_test

import (
	"math"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/rewrite"
	"tideline/shared/sim"
)

// now feeds batches that are always there.
type now struct{}

func (now) Next(t int64) (exec.Batch, error) { return exec.Batch{Ready: t}, nil }

func (now) Pending() int64 { return math.MaxInt64 }

func (now) Advance(int64) {}

// executed is what the graph executor and the allocator made of a program on a
// card: the most requested bytes that lived at once in the second step, and
// the bytes that went to the host and back.
type executed struct {
	peak          int64
	out, in       int64
	transfersDone int

	nanos   int64    // of the second step
	compute int64    // in which the card computed
	copying [2]int64 // in which each direction of the link swapped
}

// execute runs two steps on a card whose model may be changed.
func execute(t *testing.T, p *program.Program, mode exec.Mode, change func(*device.Model)) (x executed) {
	t.Helper()
	const gpu = 1
	preset, _ := device.Find("h200-141g")
	card, err := device.NewMachine(nil).Card("card", preset)
	if err != nil {
		t.Fatal(err)
	}
	model := preset.Model()
	if change != nil {
		change(&model)
	}
	const limit = 100 << 30
	var live int64
	type block struct {
		of event.AllocatorID
		at uint64
	}
	size := map[block]int64{}
	texts := new(event.Strings)
	counting, begun := false, int64(0)
	sink := event.SinkFunc(func(e *event.Event) {
		if !counting {
			begun = e.Time
		}
		swap := event.TransferCause(e.Cause) == event.CauseSwap
		direction := 0
		if e.Stream == event.StreamH2D {
			direction = 1
		}
		switch {
		case !counting:
		case e.Kind == event.StepEnd:
			x.nanos = e.Time - begun
		case e.Kind == event.OpBegin && e.Device == gpu && e.Stream == event.StreamCompute:
			x.compute -= e.Time
		case e.Kind == event.OpEnd && e.Device == gpu && e.Stream == event.StreamCompute:
			x.compute += e.Time
		case e.Kind == event.TransferBegin && swap:
			x.copying[direction] -= e.Time
		case e.Kind == event.TransferEnd && swap:
			x.copying[direction] += e.Time
		}
		if e.Kind == event.TransferBegin && event.TransferCause(e.Cause) == event.CauseSwap && counting {
			x.transfersDone++
			if e.Stream == event.StreamD2H {
				x.out += e.Size
			} else {
				x.in += e.Size
			}
		}
		if e.Device != gpu {
			return
		}
		switch e.Kind {
		case event.Alloc:
			if texts.At(e.Tensor) == "planned arena" {
				return // what lies in it is told apart
			}
			size[block{e.Allocator, e.Address}] = e.Requested
			live += e.Requested
			if counting {
				x.peak = max(x.peak, live)
			}
		case event.Free:
			live -= size[block{e.Allocator, e.Address}]
			delete(size, block{e.Allocator, e.Address})
		default:
		}
	})
	rt, err := exec.New(exec.Config{
		Devices: []*device.Logical{
			{Name: device.Local("CPU", 0), Model: device.HostModel()},
			{Name: device.Local("GPU", 0), Model: model, Card: card, Limit: limit, Alone: limit},
		},
		Backend: sim.New(), Strings: texts, Seed: 1, Mode: mode, Sink: sink,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	attach := func(dev event.DeviceID, pinned bool, f func(alloc.Observer) (alloc.Allocator, error)) {
		if err := rt.Attach(dev, pinned, f, event.Fields{{Key: "name", Value: "memory"}}); err != nil {
			t.Fatal(err)
		}
	}
	attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) { return system.New(system.Options{Observer: o}), nil })
	attach(0, true, func(o alloc.Observer) (alloc.Allocator, error) {
		s, err := alloc.NewSpace(alloc.SpaceOptions{Base: 0x6000_0000_0000})
		if err != nil {
			return nil, err
		}
		return bfc.New(s, bfc.Options{Name: "gpu_host_bfc", Limit: 1 << 37, Growth: true, Observer: o})
	})
	attach(gpu, false, func(o alloc.Observer) (alloc.Allocator, error) {
		s, err := card.Space(0x7000_0000_0000)
		if err != nil {
			return nil, err
		}
		return bfc.New(s, bfc.Options{Name: "GPU_0_bfc", Limit: limit, Observer: o})
	})
	plan, err := rt.Compile(p, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := rt.Step(plan, 0, now{}); err != nil {
			t.Fatal(err)
		}
		counting = true
	}
	return x
}

// The modelled peak is what the executor and the allocator come to, within a
// thousandth and what they hold besides (the scratch chunk, small host copies):
// for models as they are and with what trades memory. What is swapped out
// comes back, once each.
func TestModelledPeakIsTheExecutors(t *testing.T) {
	for _, name := range []string{"lenet5", "resnet50", "bert-2layer", "gpt2", "unet", "lstm"} {
		b := training(t, name, 2)
		for _, o := range []struct {
			name string
			rewrite.Options
		}{
			{"as it is", rewrite.Options{Disabled: true}},
			{"general passes", rewrite.Options{}},
			{"sqrt", rewrite.Options{Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks, Blocks: b.Blocks}}},
			{"selective", rewrite.Options{Checkpoint: rewrite.Checkpoint{Mode: rewrite.Selective}}},
			{"swap all", rewrite.Options{Swap: rewrite.Swap{Mode: rewrite.SwapManual, Above: 1 << 16}}},
		} {
			q, _, err := rewrite.Optimize(b.Program, o.Options)
			if err != nil {
				t.Fatal(err)
			}
			want, at := rewrite.LiveBytes(q)
			got := execute(t, q, exec.Graph, nil)
			pairs := count(q, program.OpSwapOut)
			t.Logf("%-12s %-14s modelled %12d, executed %12d (%+.2f %%), %d pairs; at %s",
				name, o.name, want, got.peak, 100*(float64(got.peak)/float64(want)-1), pairs, q.Nodes[at].Name)
			if off := got.peak - want; o.name != "swap all" && (off > want/1000+1<<16 || off < -want/1000-1<<16) {
				t.Errorf("%s, %s: modelled %d, executed %d", name, o.name, want, got.peak)
			}
			if got.out != got.in || got.transfersDone != 2*pairs {
				t.Errorf("%s, %s: %d pairs, %d transfers: %d bytes out, %d in", name, o.name, pairs, got.transfersDone, got.out, got.in)
			}
		}
	}
}

// What swapping costs depends on the link alone: with one that takes no time
// the card computes the same and the step takes as long, but for the host's
// time to ask for the copies; with a real one the step is no shorter than its
// computing or than either direction's copying.
func TestSwappingCostsWhatTheLinkTakes(t *testing.T) {
	p := training(t, "resnet50", 8).Program
	q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapManual, Above: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	free := func(m *device.Model) { m.H2D, m.D2H, m.CopyLatency = 0, 0, 0 }
	slow := func(m *device.Model) { m.H2D, m.D2H = 1_000_000_000, 1_000_000_000 }
	without := execute(t, p, exec.Graph, free)
	with := execute(t, q, exec.Graph, free)
	const dispatch = 5_000 // host time for a graph's node
	t.Logf("%d pairs: %d ns without, %d with a free link", pairs, without.nanos, with.nanos)
	if with.compute != without.compute || with.nanos < without.nanos || with.nanos > without.nanos+int64(2*pairs)*dispatch {
		t.Errorf("with a free link the step takes %d ns, %d of it computing; without swapping %d, %d", with.nanos, with.compute, without.nanos, without.compute)
	}
	for name, change := range map[string]func(*device.Model){"the card's link": nil, "a slow link": slow} {
		x := execute(t, q, exec.Graph, change)
		t.Logf("%s: %d ns, %d computing, %v copying", name, x.nanos, x.compute, x.copying)
		if x.nanos < max(x.compute, x.copying[0], x.copying[1]) || x.nanos < with.nanos {
			t.Errorf("%s: the step takes %d ns, less than %d computing, %v copying or %d with a free link", name, x.nanos, x.compute, x.copying, with.nanos)
		}
	}
}

// Recomputing lowers the peak of every mode of execution: eager goes in program
// order, in which a copy stands right before its first reader.
func TestRecomputingLowersThePeakOfEveryMode(t *testing.T) {
	for _, name := range []string{"resnet50", "vit-b16"} {
		b := training(t, name, 4)
		for _, mode := range []exec.Mode{exec.Eager, exec.Graph, exec.Planned} {
			before := execute(t, b.Program, mode, nil).peak
			for _, c := range []rewrite.Checkpoint{
				{Mode: rewrite.EveryBlocks, Every: 1, Blocks: b.Blocks}, {Mode: rewrite.SqrtBlocks, Blocks: b.Blocks}, {Mode: rewrite.Selective},
			} {
				q, _, err := rewrite.ApplyCheckpoint(b.Program, c)
				if err != nil {
					t.Fatal(err)
				}
				after := execute(t, q, mode, nil).peak
				t.Logf("%s, mode %v, checkpoint %d: %d, was %d (%.0f %%)", name, mode, c.Mode, after, before, 100*float64(after)/float64(before))
				if after >= before {
					t.Errorf("%s, mode %v, checkpoint %d: the peak is %d, was %d", name, mode, c.Mode, after, before)
				}
			}
		}
	}
}
