package place

import (
	"tideline/shared/device"
	"tideline/shared/program"
)

// eager places each op by itself, in program order: the first variable among
// its inputs decides, whatever was asked; then small integers, if they are
// pinned; then the wish; then the order of devices.
func (pl *placer) eager() error {
	for pass := range 2 { // an optimizer makes its state where the variable is
		for i := range pl.p.Nodes {
			n := &pl.p.Nodes[i]
			slot := n.Op == program.OpVariable && pl.owner[n.Attrs.Variable] != program.None
			if n.Op != program.OpVariable || slot != (pass == 1) {
				continue
			}
			if slot && pl.beside(program.NodeID(i)) {
				continue
			}
			if err := pl.eagerNode(program.NodeID(i)); err != nil {
				return err
			}
		}
	}
	for i := range pl.p.Nodes {
		if !pl.done[i] {
			if err := pl.eagerNode(program.NodeID(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// beside puts optimizer state with the variable it belongs to.
func (pl *placer) beside(slot program.NodeID) bool {
	owner := pl.owner[pl.p.Nodes[slot].Attrs.Variable]
	for i := range pl.p.Nodes {
		if n := &pl.p.Nodes[i]; n.Op == program.OpVariable && n.Attrs.Variable == owner && pl.done[i] {
			pl.set(slot, pl.out[i].Device, "with its variable "+n.Name)
			return true
		}
	}
	return false
}

func (pl *placer) eagerNode(id program.NodeID) error {
	n, k, w := &pl.p.Nodes[id], kernels(pl.defs[id]), pl.wishes[id]
	if lead := pl.leader(id); lead != program.None {
		dev := pl.out[lead].Device
		if k&typeOf(pl.devices[dev]) == 0 {
			return &device.Error{
				Kind: device.NotFound, Op: n.Name, Device: pl.devices[dev].Name.Short(), Cause: ErrPlacement,
				Message: "its variable " + pl.p.Nodes[lead].Name + " is there, but " + string(n.Op) + " has kernels for " + pl.kernelList(k) + " only. Put the variable on one of these",
			}
		}
		pl.set(id, dev, "with its variable "+pl.p.Nodes[lead].Name)
		return nil
	}
	if pl.o.PinSmall && pl.smallIntegers(n) {
		pl.set(id, 0, "small integers on the host stay there")
		return nil
	}
	if list := pl.candidates(w.name, k); len(list) > 0 {
		reason := w.reason
		if w.text == "" {
			reason = pl.defaultReason(list[0], k)
		}
		pl.set(id, list[0], reason)
		return nil
	}
	list := pl.candidates(anywhere(w.name), k)
	if !pl.o.Soft || len(list) == 0 {
		return pl.refuse(id, w.name, w.text, k, "")
	}
	pl.set(id, list[0], pl.softReason(w, n.Op, list[0]))
	return nil
}

// smallElements is the most elements of a tensor that pinning looks at.
const smallElements = 64

// smallIntegers says whether all inputs, at least one, are small integer
// tensors in host memory.
func (pl *placer) smallIntegers(n *program.Node) bool {
	for _, v := range n.Inputs {
		x := &pl.p.Values[v]
		if x.DType != program.Int32 && x.DType != program.Int64 || x.Shape.Elements() > smallElements || !pl.inHostMemory(v) {
			return false
		}
	}
	return len(n.Inputs) > 0
}

// inHostMemory says whether a value lies in the host's memory, which that of
// some outputs of an accelerator's kernels does.
func (pl *placer) inHostMemory(v program.ValueID) bool {
	dev, ok := pl.source(v)
	if !ok {
		return false
	}
	x := &pl.p.Values[v]
	return pl.devices[dev].IsHost() || x.Producer != program.None && pl.p.HostOutput(&pl.p.Nodes[x.Producer], x.Index)
}
