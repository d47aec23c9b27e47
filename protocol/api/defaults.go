package api

import (
	"slices"
	"strings"
)

// What a field means when it is not given.
const (
	DefaultBatch     = 32
	DefaultSteps     = 20
	DefaultSeed      = 1
	DefaultOptimizer = "adam"
	DefaultPrecision = "float32"
	DefaultAllocator = "bfc"
	DefaultReserve   = "current"
)

// Defaults fills in what was left out, but for the input's source, which
// depends on the model: whoever runs the workload knows what fits it. It changes nothing that Validate finds
// fault with, so the two may come in any order.
func (w *Workload) Defaults() {
	setDefault(&w.Name, w.Model)
	setDefault(&w.Mode, Graph)
	if len(w.Batch) == 0 {
		w.Batch = []int{DefaultBatch}
	}
	setDefault(&w.Steps, DefaultSteps)
	setDefault(&w.Seed, DefaultSeed)
	setDefault(&w.Input.Map.Parallel, 1)
	if w.Input.Interleave.Cycle > 0 {
		setDefault(&w.Input.Interleave.Block, 1)
		setDefault(&w.Input.Interleave.Parallel, 1)
	}
	if w.Train != nil {
		t := *w.Train
		t.defaults()
		w.Train = &t
	}
	w.Devices = slices.Clone(w.Devices)
	for i := range w.Devices {
		d := &w.Devices[i]
		setDefault(&d.Kind, kindOf(d.Preset))
		setDefault(&d.Card, d.Preset+"#"+itoa(i))
		if d.Kind == "gpu" {
			setDefault(&d.Allocator, DefaultAllocator)
		}
	}
	if w.Placement.Soft == nil {
		on := true
		w.Placement.Soft = &on
	}
}

func (t *Train) defaults() {
	setDefault(&t.Optimizer, DefaultOptimizer)
	setDefault(&t.Precision, DefaultPrecision)
	setDefault(&t.LearningRate, learningRates[t.Optimizer])
}

// learningRates are the defaults by optimizer: they let the small models of
// the zoo learn the digits, and are otherwise of no account.
var learningRates = map[string]float64{
	"sgd": 0.1, "momentum": 0.01, "adagrad": 0.02, "rmsprop": 0.001, "adam": 0.002, "adamw": 0.002, "amsgrad": 0.002,
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
	c.Image = slices.Clone(w.Image)
	c.Sequence = slices.Clone(w.Sequence)
	c.Keep = slices.Clone(w.Keep)
	c.Env = slices.Clone(w.Env)
	if w.Optimize != nil {
		o := *w.Optimize
		c.Optimize = &o
	}
	c.Devices = slices.Clone(w.Devices)
	for i := range c.Devices {
		c.Devices[i].Logical = slices.Clone(c.Devices[i].Logical)
		c.Devices[i].AllocatorOptions = slices.Clone(c.Devices[i].AllocatorOptions)
	}
	if w.Placement.Soft != nil {
		s := *w.Placement.Soft
		c.Placement.Soft = &s
	}
	c.Placement.Rules = slices.Clone(w.Placement.Rules)
	return &c
}

// Accelerators is how many logical accelerators a program sees, of all kinds:
// every logical device of every visible card counts.
func (w *Workload) Accelerators() int {
	n := 0
	for i := range w.Devices {
		n += w.Devices[i].Count()
	}
	return n
}

// accelerators is the same for one type of device.
func (w *Workload) accelerators(typ string) int {
	n := 0
	for i := range w.Devices {
		if d := &w.Devices[i]; d.Type() == typ {
			n += d.Count()
		}
	}
	return n
}

// Count is how many logical devices are made of the card.
func (d *Device) Count() int {
	if d.Hidden {
		return 0
	}
	return max(1, len(d.Logical), d.Virtual)
}

// Type is the device type as names have it: GPU, TPU.
func (d *Device) Type() string {
	if d.Kind == "tpu" || d.Kind == "" && kindOf(d.Preset) == "tpu" {
		return "TPU"
	}
	return "GPU"
}

// Variable is the value of an environment variable of the workload, and
// whether it is set.
func (w *Workload) Variable(name string) (value string, set bool) {
	for _, e := range w.Env {
		if n, v, _ := strings.Cut(e, "="); n == name {
			value, set = v, true
		}
	}
	return value, set
}

// tpuPrefix begins the names of all presets of TPUs, and of no other.
const tpuPrefix = "tpu-"

// kindOf is the kind of the devices of a preset.
func kindOf(preset string) string {
	if strings.HasPrefix(preset, tpuPrefix) {
		return "tpu"
	}
	return "gpu"
}

// follow lets a device's kind go with its new preset where it went with the
// old one. An allocator that is the default of GPUs stays behind.
func (d *Device) follow(was Device) {
	if d.Kind == "" || was.Kind != kindOf(was.Preset) || d.Preset == "" {
		return
	}
	d.Kind = kindOf(d.Preset)
	if d.Kind == "tpu" && d.Allocator == DefaultAllocator && len(d.AllocatorOptions) == 0 {
		d.Allocator = ""
	}
}
