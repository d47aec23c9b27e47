package launch

import (
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// Evaluate runs the model forward once over elements 0 to n-1 of the data, in
// one batch, with the weights as they are, and returns loss and accuracy. It
// counts as a step of the run in its events. On a Backend that computes
// nothing there are no numbers.
func (r *Runner) Evaluate(d Data, n int) ([]Metric, error) {
	p, err := r.evaluation(n)
	if err != nil {
		return nil, fmt.Errorf("build evaluation of %s: %w", r.w.Model, err)
	}
	plan, err := r.compile(p)
	if err != nil {
		return nil, err
	}
	plan.SendAtOnce()
	m, err := r.rt.Step(plan, int32(r.done), &whole{p: p, data: d, n: n})
	if err != nil {
		return nil, fmt.Errorf("evaluate on %d elements: %w", n, err)
	}
	out := make([]Metric, len(m))
	for i := range m {
		out[i] = Metric(m[i])
	}
	return out, nil
}

// evaluation is the model's forward pass for n elements, in the shape of the
// first step. Half precision of the weights is training's, so it stays.
func (r *Runner) evaluation(n int) (*program.Program, error) {
	s := r.shape(0, r.left)
	o := zoo.Options{Batch: n, Image: s.image, Sequence: s.sequence, Precision: r.w.Precision}
	if t := r.w.Train; t != nil {
		o.Precision = t.Precision
	}
	return zoo.Program(r.w.Model, o)
}

// whole is a feed of one batch that holds everything.
type whole struct {
	p    *program.Program
	data Data
	n    int
}

func (w *whole) Next(now int64) (exec.Batch, error) {
	all := make([]int32, w.n)
	for i := range all {
		all[i] = int32(i)
	}
	return exec.Batch{Ready: now, Stage: event.StringID(0), Input: func(i int, dst []byte) error {
		return w.data.Fill(all, i, &w.p.Values[w.p.Inputs[i]], dst)
	}}, nil
}

func (*whole) Pending() int64 { return math.MaxInt64 }

func (*whole) Advance(int64) {}
