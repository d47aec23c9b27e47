package exec

import "tideline/protocol/event"

// Kept is a tensor that the program holds although no step needs it any more.
type Kept struct {
	Op, Tensor event.StringID
	Step       int32 // that made it
	Device     event.DeviceID
	Bytes      int64
	buffer     bufferID
}

// Kept are the tensors that Config.Keep has made the program hold so far,
// oldest first. Valid until the next Step.
func (r *Runtime) Kept() []Kept { return r.kept }

// ReleaseKept lets the program clear its list.
func (r *Runtime) ReleaseKept() { r.unkeep(0) }

// keep appends an op's results to the program's list.
func (r *Runtime) keep(p *Plan, n *node, outs []bufferID) {
	if !n.kept {
		return
	}
	for o, b := range outs {
		r.hold(b, 1)
		x := &r.buffers[b]
		r.kept = append(r.kept, Kept{
			Op: n.name, Tensor: p.tensors[n.out[o]].name, Step: r.step, Device: r.spaces[x.space].device, Bytes: x.size, buffer: b,
		})
		r.keptBytes += x.size
	}
}

// unkeep drops what was kept from the given position on.
func (r *Runtime) unkeep(from int) {
	for _, k := range r.kept[from:] {
		r.keptBytes -= k.Bytes
		r.drop(k.buffer)
	}
	r.kept = r.kept[:from]
}

// tellKept tells, at the end of a step, what the list has grown to.
func (r *Runtime) tellKept() {
	if len(r.cfg.Keep) == 0 {
		return
	}
	if r.names.kept == 0 {
		r.names.kept = r.strings.ID("kept by the program")
	}
	r.ev = event.Event{
		Kind: event.Sample, Op: r.names.kept, Size: r.keptBytes, Step: r.step,
		Device: event.DeviceID(min(1, len(r.cfg.Devices)-1)),
	}
	r.out.host(&r.ev)
}
