package rewrite

import (
	"fmt"

	"tideline/shared/program"
)

// Options say which rewrites a program goes through. The zero value is what
// TensorFlow does by default: everything that costs nothing.
type Options struct {
	// Disabled leaves all out, as disable_meta_optimizer does; the others one
	// pass each, by the names of tf.config.optimizer's experimental options.
	Disabled               bool
	DisableModelPruning    bool
	DisableConstantFolding bool
	DisableRemapping       bool
	DisableArithmetic      bool
	DisableDependency      bool
	// MinGraphNodes is the size below which a graph is left as it is. 0 is
	// TensorFlow's 4, a negative number rewrites every graph.
	MinGraphNodes int

	Checkpoint Checkpoint
	// Recompute is Grappler's own recomputation, RecomputeMatch the patterns of
	// RecomputeManual.
	Recompute      RecomputeMode
	RecomputeMatch []string
	// Microbatches is over how many batches of the program's size gradients are
	// accumulated before a step changes the weights; 0 and 1 are one.
	Microbatches int
	// DeviceBytes is the memory that the step must fit, 0 when it is unknown.
	// Sums are accumulated where the modelled peak exceeds 80 % of it, and it
	// stands for Swap's where that is 0.
	DeviceBytes int64
	Swap        Swap
}

// Note says what a pass did.
type Note struct {
	Pass      string
	Iteration int // from 1; 0 for the passes that run once
	Text      string
}

// String is the note as a line of the log.
func (n Note) String() string {
	if n.Iteration > 0 {
		return fmt.Sprintf("%s (iteration %d): %s", n.Pass, n.Iteration, n.Text)
	}
	return n.Pass + ": " + n.Text
}

// The passes run twice in a row, as TensorFlow's do, on graphs of at least so
// many nodes.
const (
	iterations  = 2
	fewestNodes = 4
)

// Optimize rewrites p in the order of TensorFlow's meta optimizer: twice
// pruning, constant folding with the shapes that are known, remapping,
// arithmetic and dependencies; then, once, what concerns memory; then pruning.
// Passes that found nothing to do leave no note. p is not changed. Gradients
// are accumulated over batches first, and what is recomputed is chosen before
// that, for one batch.
func Optimize(p *program.Program, o Options) (*program.Program, []Note, error) {
	l := line{p: p}
	microbatches := o.Microbatches
	if microbatches != 0 && microbatches != 1 {
		if o.Checkpoint.Mode == WithinBudget {
			l.err = o.Checkpoint.leaveFor(p, microbatches)
		}
		l.recompute(&o)
		l.pass(false, "microbatches", "gradients are accumulated over %d batches", func(p *program.Program) (*program.Program, int, error) {
			out, err := Accumulate(p, microbatches)
			return out, microbatches, err
		})
		o.Checkpoint.Mode, o.Recompute = KeepAll, RecomputeOff
	}
	fewest := o.MinGraphNodes
	if fewest == 0 {
		fewest = fewestNodes
	}
	if !o.Disabled && len(p.Nodes) >= fewest {
		for i := 1; i <= iterations && l.err == nil; i++ {
			l.iteration = i
			l.general(&o)
		}
		l.iteration = 0
	}
	general := l.p
	if l.memory(&o) && l.err == nil {
		before, _ := LiveBytes(general)
		after, at := LiveBytes(l.p)
		l.note("memory", "modelled peak %d bytes, was %d; it is at %s", after, before, l.p.Nodes[at].Name)
	}
	if l.err == nil && l.p != p {
		l.err = l.p.Validate() // guards against a broken pass
	}
	if l.err != nil {
		return nil, l.notes, l.err
	}
	return l.p, l.notes, nil
}

// line is a program on its way through the passes.
type line struct {
	p         *program.Program
	iteration int
	notes     []Note
	err       error
}

func (l *line) note(pass, format string, args ...any) {
	l.notes = append(l.notes, Note{pass, l.iteration, fmt.Sprintf(format, args...)})
}

// pass runs one pass unless it is off or an earlier one failed. text says what
// the number that the pass gives counts. It gives whether anything changed.
func (l *line) pass(off bool, name, text string, run func(*program.Program) (*program.Program, int, error)) bool {
	if off || l.err != nil {
		return false
	}
	out, count, err := run(l.p)
	if err != nil {
		l.err = fmt.Errorf("%s: %w", name, err)
		return false
	}
	changed := out != l.p
	l.p = out
	if count > 0 {
		l.note(name, text, count)
	}
	return changed
}

func (l *line) general(o *Options) {
	l.pass(o.DisableModelPruning, "pruning", "%d nodes that nothing needs left out", Prune)
	l.pass(o.DisableConstantFolding, "constant folding", "%d nodes are constants now", func(p *program.Program) (*program.Program, int, error) {
		out, folded, large, err := FoldConstants(p)
		if large > 0 {
			l.note("constant folding", "%d nodes not folded: results of more than %d MiB and larger than their inputs", large, foldLimit>>20)
		}
		return out, folded, err
	})
	l.pass(o.DisableRemapping, "remapping", "%d intermediates fused away", Remap)
	l.pass(o.DisableArithmetic, "arithmetic", "%d nodes merged or removed", Arithmetic)
	l.pass(o.DisableDependency, "dependency", "%d control edges said nothing new", Dependencies)
}

// memory runs the passes that trade memory, and says whether one did something.
func (l *line) memory(o *Options) bool {
	changed := l.recompute(o)
	changed = l.pass(o.DeviceBytes == 0, "accumulation", "%d sums are accumulated", func(p *program.Program) (*program.Program, int, error) {
		return AccumulateSums(p, o.DeviceBytes)
	}) || changed
	swap := o.Swap
	if swap.DeviceBytes == 0 {
		swap.DeviceBytes = o.DeviceBytes
	}
	changed = l.pass(swap.Mode == SwapOff, "swapping", "%d tensors wait in host memory for their next reader", func(p *program.Program) (*program.Program, int, error) {
		return ApplySwap(p, swap)
	}) || changed
	if changed {
		l.pass(o.DisableModelPruning, "pruning", "%d nodes that nothing needs left out", Prune)
	}
	return changed
}

// recompute runs the passes that run forward nodes again.
func (l *line) recompute(o *Options) bool {
	changed := l.pass(o.Checkpoint.Mode == KeepAll, "checkpointing", "%d nodes run again in the backward pass", func(p *program.Program) (*program.Program, int, error) {
		return ApplyCheckpoint(p, o.Checkpoint)
	})
	return l.pass(o.Recompute == RecomputeOff, "recomputation", "%d nodes run again in the backward pass", func(p *program.Program) (*program.Program, int, error) {
		return Recompute(p, o.Recompute, o.RecomputeMatch)
	}) || changed
}
