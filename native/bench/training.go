package bench

import (
	"fmt"

	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/protocol/api"
	"tideline/shared/launch"
	"tideline/shared/yardstick"
	"tideline/shared/zoo"
)

// training is LeNet-5 learning the digits, computed on this machine's cores.
func training(*Options) ([]*task, []Line, error) {
	const batch, steps = 32, 20
	w := api.Workload{
		Model: "lenet5", Train: &api.Train{Optimizer: "adam"}, Batch: []int{batch}, Steps: api.MaxSteps,
		Input: api.Input{Source: "digits"}, Devices: []api.Device{{Preset: "lab-256m"}},
	}
	digits, err := dataset.Training()
	if err != nil {
		return nil, nil, err
	}
	b, err := zoo.Build(w.Model, zoo.Options{Batch: 1})
	if err != nil {
		return nil, nil, err
	}
	var tasks []*task
	for _, mode := range []api.Mode{api.Graph, api.Eager} {
		w.Mode = mode
		r, err := launch.Start(w, launch.Options{Backend: vgpu.New(), Data: digits.For(b.Inputs)})
		if err != nil {
			return nil, nil, err
		}
		t := &task{Task: yardstick.Task{
			Name: fmt.Sprintf("LeNet-5 at %d, %s", batch, mode), Per: "step", N: steps,
			Run: func() error { return stepOn(r, steps) },
		}}
		t.beside = func() string { return fmt.Sprintf("%.0f steps a second", 1e9/t.nanos) }
		tasks = append(tasks, t)
	}
	return tasks, nil, nil
}

func stepOn(r *launch.Runner, n int) error {
	for range n {
		if !r.Step() {
			res, err := r.Finish()
			return fmt.Errorf("training ended with %s (%s): %w", res.Reason, res.Message, err)
		}
	}
	return nil
}
