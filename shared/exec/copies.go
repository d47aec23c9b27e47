package exec

import (
	"errors"
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/program"
)

// CopyPolicy says what eager execution does with an input that lies on another
// device than its op wants it on: tf.config's device policy.
type CopyPolicy uint8

// The policies.
const (
	CopySilent         CopyPolicy = iota // copy
	CopySilentForInt32                   // copy int32 tensors, refuse others
	CopyWarn                             // warn, then copy
	CopyExplicit                         // refuse
)

// String is the policy's word in workloads.
func (c CopyPolicy) String() string {
	switch c {
	case CopySilent:
		return "silent"
	case CopySilentForInt32:
		return "silent_for_int32"
	case CopyWarn:
		return "warn"
	case CopyExplicit:
		return "explicit"
	}
	return "unknown"
}

// ErrConflictingDevices is wrapped by the error of a copy that the policy
// refuses.
var ErrConflictingDevices = errors.New("invalid argument: tensors on conflicting devices")

// mayCopy applies the policy to a copy of input i.
func (r *Runtime) mayCopy(p *Plan, n *node, i int) bool {
	x := &p.tensors[n.in[i]]
	policy := r.cfg.Copies
	if policy == CopySilent || policy == CopySilentForInt32 && x.dtype == program.Int32 {
		return true
	}
	from := r.spaces[p.tensors[x.from].space].device
	to := r.spaces[x.space].device
	if policy == CopyWarn {
		r.Log(to, event.Warning, fmt.Sprintf("op %s: input #%d, %s, is copied from %s to %s",
			p.p.Nodes[n.src].Name, i, p.p.Values[x.value].Name, r.cfg.Devices[from].Name, r.cfg.Devices[to].Name))
		return true
	}
	r.fail(fmt.Errorf("%w: op %s wants input #%d (%s) on %s, but it is on %s; copy it there explicitly, or let the copy policy be silent",
		ErrConflictingDevices, p.p.Nodes[n.src].Name, i, p.p.Values[x.value].Name, r.cfg.Devices[to].Name, r.cfg.Devices[from].Name))
	return false
}
