package yardstick

import (
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/sim"
)

// Dispatch is a small op on a modelled card, with the events of its memory and
// its time: called by itself, and in programs of a thousand.
func Dispatch() ([]Task, error) {
	one, err := call()
	if err != nil {
		return nil, err
	}
	tasks := []Task{one}
	for _, m := range []exec.Mode{exec.Eager, exec.Graph, exec.Planned} {
		t, err := chain(m)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

const card event.DeviceID = 1

// modelled is a runtime with a host and a card of 1 GiB.
func modelled(m exec.Mode) (*exec.Runtime, error) {
	preset, _ := device.Find("lab-1g")
	c, err := device.NewMachine(nil).Card("card", preset)
	if err != nil {
		return nil, err
	}
	const limit = 512 << 20
	rt, err := exec.New(exec.Config{
		Mode: m, Backend: sim.New(), Strings: new(event.Strings), Seed: 1, Sink: event.SinkFunc(func(*event.Event) {}),
		Devices: []*device.Logical{
			{Name: device.Local("CPU", 0), Model: device.HostModel()},
			{Name: device.Local("GPU", 0), Model: preset.Model(), Card: c, Limit: limit, Alone: limit},
		},
	})
	if err != nil {
		return nil, err
	}
	pool := func(name string, base uint64) func(o alloc.Observer) (alloc.Allocator, error) {
		return func(o alloc.Observer) (alloc.Allocator, error) {
			s, err := alloc.NewSpace(alloc.SpaceOptions{Base: base})
			if err != nil {
				return nil, err
			}
			return bfc.New(s, bfc.Options{Name: name, Limit: limit, Observer: o})
		}
	}
	for _, a := range []struct {
		name   string
		dev    event.DeviceID
		pinned bool
		build  func(o alloc.Observer) (alloc.Allocator, error)
	}{
		{"cpu", 0, false, func(o alloc.Observer) (alloc.Allocator, error) { return system.New(system.Options{Observer: o}), nil }},
		{"gpu_host_bfc", 0, true, pool("gpu_host_bfc", 1<<44)},
		{"GPU_0_bfc", 1, false, pool("GPU_0_bfc", 1<<45)},
	} {
		if err := rt.Attach(a.dev, a.pinned, a.build, event.Fields{{Key: "name", Value: a.name}}); err != nil {
			return nil, err
		}
	}
	return rt, nil
}

// smallOps is how many ops a run of the tasks dispatches.
const smallOps = 1000

// call dispatches the ops one by one, as a program without a graph does; each
// result is dropped at once.
func call() (Task, error) {
	rt, err := modelled(exec.Eager)
	if err != nil {
		return Task{}, err
	}
	b := program.NewBuilder("op", 1)
	b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, program.Shape{64}))
	p, err := b.Build()
	if err != nil {
		return Task{}, err
	}
	op, err := rt.Prepare(p, 0, card)
	if err != nil {
		return Task{}, err
	}
	x, err := rt.Take(exec.Ask{Device: card, Bytes: 256, Category: event.Activation})
	if err != nil {
		return Task{}, err
	}
	in, out := []exec.Handle{x}, make([]exec.Handle, 1)
	return Task{Name: "small op, called", Per: "op", N: smallOps, Run: func() error {
		for range smallOps {
			if err := rt.Do(op, in, out); err != nil {
				return err
			}
			rt.Drop(out[0])
		}
		return rt.Sync() // tells the events that wait for the device's time
	}}, nil
}

// chain is a program of so many ops, one behind the other.
func chain(m exec.Mode) (Task, error) {
	rt, err := modelled(m)
	if err != nil {
		return Task{}, err
	}
	b := program.NewBuilder("chain", 1)
	x := b.Input("x", program.Float32, program.Shape{1, 64})
	for range smallOps {
		x = b.Op(program.OpTanh, program.Attrs{}, x)
	}
	b.Fetch("x", x)
	p, err := b.Build()
	if err != nil {
		return Task{}, err
	}
	plan, err := rt.Compile(p, nil, true)
	if err != nil {
		return Task{}, err
	}
	return Task{Name: "small op, " + m.String(), Per: "op", N: smallOps, To: "small op, called", Run: func() error {
		_, err := rt.Step(plan, 0, empty{})
		return err
	}}, nil
}

// empty is a feed whose batches are there at once and hold nothing.
type empty struct{}

func (empty) Next(now int64) (exec.Batch, error) { return exec.Batch{Ready: now}, nil }
func (empty) Pending() int64                     { return math.MaxInt64 }
func (empty) Advance(int64)                      {}
