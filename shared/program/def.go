package program

import (
	"fmt"
	"slices"
)

// Def is what the rest of the system knows of an op.
type Def struct {
	// Infer gives the type and shape of every output, or an error that names
	// the op and the inputs' shapes.
	Infer func(p *Program, n *Node) ([]Spec, error)
	// Cost is what the op's kernel does, for the model of time.
	Cost func(p *Program, n *Node) Cost
	// Grad adds the backward nodes of n to b and returns the gradient of each
	// input, None where there is none. grads[i] is the gradient of output i.
	Grad func(b *Builder, n NodeID, grads []ValueID) []ValueID
	// Workspace is the bytes of temporary memory that the kernel asks for on
	// an accelerator after its outputs; nil means none. It is asked for with
	// retry off: the kernel is right without it, only slower.
	Workspace func(p *Program, n *Node) int64
	// Forwardable lists the inputs that output ForwardOutput may take over in
	// place, in the order in which they are tried (same type and element
	// count, sole owner).
	Forwardable []int
	// ForwardOutput is 0 but for ops whose first output has another shape.
	ForwardOutput int
	// Alias is set for ops whose output is input 0's buffer: Reshape, Identity.
	Alias bool
	// HostInputs lists inputs that an accelerator's kernel wants in host memory.
	HostInputs []int
	// HostOutputs lists outputs that an accelerator's kernel gives in host memory.
	HostOutputs []int
	// HostInt32 is set where the accelerator's kernel for int32 is one on the
	// host: all its int32 inputs and outputs are in host memory. See
	// Program.HostInput and HostOutput, which know of all three.
	HostInt32 bool
	// Slots is how many of the inputs after the first are state of an optimizer
	// that the op changes too: Attrs.Slots.
	Slots int
	// Random ops give other numbers each step: never folded, never merged.
	Random bool
	// Stateful ops change the variable of input 0 and are never pruned:
	// Assign, Apply.
	Stateful bool
	// CPUOnly ops have no accelerator kernel.
	CPUOnly bool
}

// Spec is the type and shape of one tensor.
type Spec struct {
	DType DType
	Shape Shape
}

// Cost is the work of one kernel call.
type Cost struct {
	FLOPs int64 // two per multiply-add
	Bytes int64 // read and written
}

// Lookup returns the definition of op, or an error that lists nothing that
// the caller could not have known: the op's name.
func Lookup(op Op) (*Def, error) {
	if d, ok := defs[op]; ok {
		return d, nil
	}
	return nil, fmt.Errorf("program: unknown op %q", string(op))
}

// HostInput says whether an accelerator's kernel of n wants input i in host
// memory.
func (p *Program) HostInput(n *Node, i int) bool {
	d := defs[n.Op]
	return d != nil && (slices.Contains(d.HostInputs, i) || d.HostInt32 && p.Values[n.Inputs[i]].DType == Int32)
}

// HostOutput says whether an accelerator's kernel of n gives output i in host
// memory.
func (p *Program) HostOutput(n *Node, i int) bool {
	d := defs[n.Op]
	return d != nil && (slices.Contains(d.HostOutputs, i) || d.HostInt32 && p.Values[n.Outputs[i]].DType == Int32)
}
