package launch

import (
	"fmt"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/program"
	"tideline/shared/rewrite"
	"tideline/shared/zoo"
)

// What arithmetic on a CPU is still a pleasure to wait for, and what memory of
// the host may mirror that of virtual cards.
const (
	stepFLOPs = 40_000_000_000
	allFLOPs  = 4_000_000_000_000
	allBytes  = 2 << 30
)

// Heavy says why a workload is too much to compute on a CPU: such a run can
// only be modelled. It is "" for one that is not, or that cannot be built.
func Heavy(w *api.Workload) string {
	w = w.Clone()
	w.Defaults()
	s := shape{}
	for _, b := range w.Batch {
		s.batch = max(s.batch, b)
	}
	for _, n := range w.Image {
		s.image = max(s.image, n)
	}
	for _, n := range w.Sequence {
		s.sequence = max(s.sequence, n)
	}
	o := zoo.Options{Batch: s.batch, Image: s.image, Sequence: s.sequence, Precision: w.Precision}
	if t := w.Train; t != nil {
		o.Train, o.Optimizer, o.Precision = true, t.Optimizer, t.Precision
	}
	b, err := zoo.Build(w.Model, o)
	if err != nil {
		return ""
	}
	var flops int64
	for i := range b.Program.Nodes {
		n := &b.Program.Nodes[i]
		if def, err := program.Lookup(n.Op); err == nil {
			flops += def.Cost(b.Program, n).FLOPs
		}
	}
	steps := int64(w.Steps)
	bytes, _ := rewrite.LiveBytes(b.Program)
	switch {
	case bytes > allBytes:
		return fmt.Sprintf("a step holds %s, more than the %s that computing may take of this machine", event.FormatBytes(bytes), event.FormatBytes(allBytes))
	case flops > stepFLOPs || flops > allFLOPs/steps:
		return fmt.Sprintf("%d steps of %.3g GFLOP each are too much to compute on a CPU", steps, float64(flops)/1e9)
	}
	return ""
}
