package launch

import (
	"fmt"

	"tideline/protocol/event"
)

// retraces watches how often a function is traced anew, and warns as a
// tf.function does: when at least 5 of the last 10 calls traced, at most
// twice in a function's life.
type retraces struct {
	recent [10]bool
	calls  int
	warned int
}

const (
	retraceThreshold = 5
	retraceWarnings  = 2
)

// call notes one call and says whether to warn now.
func (t *retraces) call(traced bool) bool {
	t.recent[t.calls%len(t.recent)] = traced
	t.calls++
	if !traced || t.count() < retraceThreshold || t.warned == retraceWarnings {
		return false
	}
	t.warned++
	return true
}

func (r *Runner) noteCall(traced bool) {
	if r.retraces.call(traced) {
		r.rt.Log(0, event.Warning, fmt.Sprintf(
			"%d of the last %d calls of the step of %s were traced anew, each for another shape: every trace costs host time and keeps constants on the device. Fixed shapes avoid it",
			r.retraces.count(), min(r.retraces.calls, len(r.retraces.recent)), r.w.Name))
	}
}

func (t *retraces) count() int {
	n := 0
	for _, x := range t.recent {
		if x {
			n++
		}
	}
	return n
}
