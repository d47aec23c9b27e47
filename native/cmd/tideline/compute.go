package main

import (
	"fmt"

	"tideline/native/backend/cpu"
	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/native/monitor"
	"tideline/protocol/api"
	"tideline/shared/launch"
	"tideline/shared/zoo"
)

// syntheticElements is the size of the made-up source, as large as MNIST.
const syntheticElements = 60_000

// compute gives a run what it computes with, and on. The cards of this
// machine compute themselves; with virtual accelerators it is
// real arithmetic in host memory behind virtual cards, on a modelled clock, or
// none where the model is too large for that;
// without any, the CPU itself, the wall clock and an input pipeline of real
// goroutines.
func compute(w *api.Workload, o *launch.Options, c *cards) error {
	data, err := source(w)
	if err != nil {
		return err
	}
	if asksForReal(w) {
		if c.use == nil {
			return c.errNoCard()
		}
		o.Data = data
		c.use(o)
		follow(o)
		return nil
	}
	if w.Accelerators() > 0 {
		// A large model has nothing to compute with: its memory is modelled, which
		// makes the same events.
		if why := launch.Heavy(w); why != "" {
			o.Remark = "Modelled, nothing is computed: " + why
			return nil
		}
		b := vgpu.New()
		b.Set(arithmetic(w))
		o.Backend, o.Data = b, data
		return nil
	}
	b := cpu.New(nil)
	b.Set(arithmetic(w))
	o.Backend, o.Data, o.Input = b, data, b.Input(data)
	follow(o)
	return nil
}

// follow lets a run on a real clock tell of the machine's cards beside it,
// where NVML can see any. A modelled clock has no "meanwhile".
func follow(o *launch.Options) {
	o.Sink = monitor.Follow(o.Sink, o.Strings, func() (monitor.Source, error) { return monitor.Open() }, monitor.FollowEvery)
}

// arithmetic is what a workload says of how kernels compute.
func arithmetic(w *api.Workload) cpu.Arithmetic {
	return cpu.Arithmetic{Seed: w.Seed, CheckNumerics: w.CheckNumerics}
}

// elements is a source of training data: whole batches, or one by one.
type elements interface {
	launch.Data
	cpu.Elements
}

// source is what the workload reads, in the form that its model takes.
func source(w *api.Workload) (elements, error) {
	b, err := zoo.Build(w.Model, zoo.Options{Batch: 1})
	if err != nil {
		return nil, fmt.Errorf("find what the model reads: %w", err)
	}
	if w.Input.Source == "synthetic" {
		return dataset.Synthetic(syntheticElements).For(b.Inputs), nil
	}
	data, err := dataset.Training()
	return data.For(b.Inputs), err
}
