package api

import "slices"

// What a field means when it is not given.
const (
	DefaultBatch     = 32
	DefaultSteps     = 20
	DefaultSeed      = 1
	DefaultOptimizer = "adam"
	DefaultPrecision = "float32"
	DefaultSource    = "digits"
	DefaultAllocator = "bfc"
)

// Defaults fills in what was left out. It changes nothing that Validate finds
// fault with, so the two may come in any order.
func (w *Workload) Defaults() {
	setDefault(&w.Name, w.Model)
	setDefault(&w.Mode, Graph)
	if len(w.Batch) == 0 {
		w.Batch = []int{DefaultBatch}
	}
	setDefault(&w.Steps, DefaultSteps)
	setDefault(&w.Seed, DefaultSeed)
	setDefault(&w.Input.Source, DefaultSource)
	setDefault(&w.Input.Map.Parallel, 1)
	if w.Train != nil {
		t := *w.Train
		t.defaults()
		w.Train = &t
	}
	w.Devices = slices.Clone(w.Devices)
	for i := range w.Devices {
		d := &w.Devices[i]
		setDefault(&d.Kind, "gpu")
		setDefault(&d.Card, d.Preset+"#"+itoa(i))
		setDefault(&d.Allocator, DefaultAllocator)
	}
	if w.Placement.Soft == nil {
		on := true
		w.Placement.Soft = &on
	}
}

func (t *Train) defaults() {
	setDefault(&t.Optimizer, DefaultOptimizer)
	setDefault(&t.Precision, DefaultPrecision)
	rate := 0.1
	if t.Optimizer == "adam" {
		rate = 0.002
	}
	setDefault(&t.LearningRate, rate)
}

func setDefault[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

// Clone copies a workload with everything in it.
func (w *Workload) Clone() *Workload {
	c := *w
	if w.Train != nil {
		t := *w.Train
		c.Train = &t
	}
	c.Batch = slices.Clone(w.Batch)
	c.Devices = slices.Clone(w.Devices)
	for i := range c.Devices {
		c.Devices[i].Logical = slices.Clone(c.Devices[i].Logical)
	}
	if w.Placement.Soft != nil {
		s := *w.Placement.Soft
		c.Placement.Soft = &s
	}
	c.Placement.Rules = slices.Clone(w.Placement.Rules)
	return &c
}

// Accelerators is how many GPUs a program sees: every logical device counts.
func (w *Workload) Accelerators() int {
	n := 0
	for i := range w.Devices {
		n += max(1, len(w.Devices[i].Logical))
	}
	return n
}
