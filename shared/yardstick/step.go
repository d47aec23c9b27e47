package yardstick

import (
	"fmt"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/launch"
	"tideline/shared/zoo"
)

// Steps are modelled steps of training ResNet-50 at a batch of 32, in each
// mode, once the first ones have made what a run makes once.
func Steps() ([]Task, error) {
	const model, batch = "resnet50", 32
	p, err := zoo.Program(model, zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
	if err != nil {
		return nil, err
	}
	ops := 0
	for i := range p.Nodes {
		if len(p.Nodes[i].Inputs) > 0 { // not a constant or a variable
			ops++
		}
	}
	var tasks []Task
	for _, mode := range []api.Mode{api.Graph, api.Eager, api.Planned} {
		tasks = append(tasks, step(api.Workload{
			Model: model, Mode: mode, Train: &api.Train{Optimizer: "adam"}, Batch: []int{batch}, Steps: api.MaxSteps,
			Devices: []api.Device{{Preset: "t4-16g"}},
		}, ops*StepsPerRun))
	}
	return tasks, nil
}

// StepsPerRun is how many steps a run of one of Steps is.
const StepsPerRun = 4

// step is so many ops of a workload, in all steps of a run.
func step(w api.Workload, ops int) Task {
	var r *launch.Runner
	var events uint64
	next := func(n int) error {
		for range n {
			if !r.Step() {
				res, err := r.Finish()
				return fmt.Errorf("a step of %s ended with %s (%s): %w", w.Model, res.Reason, res.Message, err)
			}
		}
		return nil
	}
	return Task{
		Name: fmt.Sprintf("ResNet-50 at %d, modelled, %s", w.Batch[0], w.Mode), Per: "op", N: ops,
		Prepare: func() (err error) {
			if r != nil {
				return nil
			}
			r, err = launch.Start(w, launch.Options{Sink: event.SinkFunc(func(*event.Event) { events++ })})
			if err != nil {
				return err
			}
			return next(3)
		},
		Run: func() error {
			events = 0
			return next(StepsPerRun)
		},
		Note: func() string { return fmt.Sprintf("%d ops and %d events a step", ops/StepsPerRun, events/StepsPerRun) },
	}
}
