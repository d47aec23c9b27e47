package launch

import (
	"fmt"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
	"tideline/shared/rewrite"
	"tideline/shared/zoo"
)

// shape is what a step's function is traced for. 0 is the model's own.
type shape struct{ batch, image, sequence int }

// concrete is the program for one shape, ready to run.
type concrete struct {
	shape   shape
	program *program.Program
	plan    *exec.Plan
	called  bool
}

// shape is that of the step after so many, when the input has so many elements
// left.
func (r *Runner) shape(done int, left int64) shape {
	turn := func(list []int) int {
		if len(list) == 0 {
			return 0
		}
		return list[done%len(list)]
	}
	s := shape{turn(r.w.Batch), turn(r.w.Image), turn(r.w.Sequence)}
	if left >= 0 && int64(s.batch) > left {
		s.batch = int(left) // the last batch of the last epoch
	}
	return s
}

// call is the function for a shape, for a step to run.
func (r *Runner) call(s shape) (concrete, error) {
	c, err := r.concrete(s)
	if err != nil {
		return concrete{}, err
	}
	r.noteCall(!c.called && r.w.Mode != api.Eager)
	c.called = true
	return *c, nil
}

// nextSent is the function that the batch after those already asked for is
// for.
func (r *Runner) nextSent() (concrete, error) {
	s := r.shape(r.sent, r.sentLeft)
	c, err := r.concrete(s)
	if err != nil {
		return concrete{}, err
	}
	r.sent++
	if r.sentLeft >= 0 {
		r.sentLeft -= int64(s.batch)
	}
	return *c, nil
}

// concrete is the function for a shape, made when it is first needed. Valid
// until the next one is made.
func (r *Runner) concrete(s shape) (*concrete, error) {
	for i := range r.plans {
		if r.plans[i].shape == s {
			return &r.plans[i], nil
		}
	}
	p, err := r.program(s)
	if err != nil {
		return nil, err
	}
	plan, err := r.compile(p)
	if err != nil {
		return nil, err
	}
	r.plans = append(r.plans, concrete{shape: s, program: p, plan: plan})
	return &r.plans[len(r.plans)-1], nil
}

func (r *Runner) program(s shape) (*program.Program, error) {
	if b := r.built; b != nil && b.shape == s {
		r.built = nil
		return b.program, nil
	}
	return r.build(s)
}

// build makes the program for a shape and sends it through the passes that the
// workload asks for.
func (r *Runner) build(s shape) (*program.Program, error) {
	parts := r.parts(s.batch)
	o := zoo.Options{Batch: s.batch / parts, Image: s.image, Sequence: s.sequence, Precision: r.w.Precision}
	t := r.w.Train
	if t != nil {
		o.Train, o.Optimizer, o.LearningRate, o.Clip, o.Precision = true, t.Optimizer, t.LearningRate, t.Clip, t.Precision
		o.Momentum, o.Nesterov, o.Centered = t.Momentum, t.Nesterov, t.Centered
	}
	b, err := zoo.Build(r.w.Model, o)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", r.w.Model, err)
	}
	p, notes, err := rewrite.Optimize(b.Program, r.passes(b, parts))
	if err != nil {
		return nil, fmt.Errorf("rewrite %s: %w", r.w.Model, err)
	}
	for _, n := range notes {
		r.rt.Log(0, 0, n.String())
	}
	return p, nil
}

// parts is in how many parts a batch goes through. A last batch that cannot be
// cut like the others is cut in fewer.
func (r *Runner) parts(batch int) int {
	if r.w.Train == nil {
		return 1
	}
	k := max(1, r.w.Train.Microbatches)
	for batch%k != 0 {
		k--
	}
	return k
}

// passes are the rewrites that the workload asks for.
func (r *Runner) passes(b *zoo.Built, parts int) rewrite.Options {
	o := rewrite.Options{Disabled: r.w.Optimize == nil || !*r.w.Optimize, Microbatches: parts}
	if !o.Disabled && r.w.Mode != api.Planned && len(r.hw.Devices) > 1 { // memory is left to XLA, which plans it
		o.DeviceBytes = r.hw.Devices[1].Limit
	}
	t := r.w.Train
	if t == nil {
		return o
	}
	o.Checkpoint.Blocks = b.Blocks
	switch t.Checkpoint {
	case "", "none":
	case "sqrt":
		o.Checkpoint.Mode = rewrite.SqrtBlocks
	case "selective":
		o.Checkpoint.Mode = rewrite.Selective
	default:
		o.Checkpoint.Mode = rewrite.EveryBlocks
		o.Checkpoint.Every, o.Checkpoint.Budget, _ = t.Kept() // validated
		if o.Checkpoint.Budget > 0 {
			o.Checkpoint.Mode = rewrite.WithinBudget
		}
	}
	o.Swap.Eager = r.w.Mode == api.Eager
	switch t.Swap {
	case "activations":
		o.Swap.Mode = rewrite.SwapManual
	case "auto":
		o.Swap.Mode = rewrite.SwapHeuristics
		if len(r.hw.Devices) > 1 {
			o.Swap.DeviceBytes = r.hw.Devices[1].Limit
		}
	}
	return o
}

// compile places a program, tells what is to be told of that, and prepares it.
func (r *Runner) compile(p *program.Program) (*exec.Plan, error) {
	first := len(r.plans) == 0
	d, err := place.Decide(p, r.hw.Devices, r.place)
	if err != nil {
		return nil, err
	}
	if first {
		r.warn(d.Warnings)
	}
	if r.w.Placement.Log && (first || r.w.Mode != api.Eager) { // eager kernels are kept by op and type
		for i := range p.Nodes {
			dev := d.Nodes[i].Device
			r.rt.Log(dev, 0, p.Nodes[i].Name+": ("+string(p.Nodes[i].Op)+"): "+r.hw.Devices[dev].Name.String())
		}
	}
	return r.rt.CompilePlaced(p, d.Nodes)
}

func (r *Runner) warn(lines []string) {
	for _, l := range lines {
		r.rt.Log(0, event.Warning, l)
	}
}
