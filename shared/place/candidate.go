package place

import (
	"slices"
	"sort"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// types is a set of device types.
type types uint8

const (
	onCPU types = 1 << iota
	onGPU
	onTPU
)

// kernels are the types of device that have a kernel for an op.
func kernels(def *program.Def) types {
	if def.CPUOnly {
		return onCPU
	}
	return onCPU | onGPU | onTPU
}

func typeOf(l *device.Logical) types {
	switch l.Name.Type {
	case "CPU":
		return onCPU
	case "TPU":
		return onTPU
	default:
		return onGPU
	}
}

// priority orders the types: TensorFlow's 210 for GPU and 70 for CPU. What it
// is for a TPU could not be established; before the CPU is assumed.
func priority(t types) int {
	switch t {
	case onGPU:
		return 210
	case onTPU:
		return 200
	default:
		return 70
	}
}

// rank sorts the devices as candidates: by the priority of their type, then by
// full name as text, as TensorFlow does (so GPU:10 comes before GPU:2).
func (pl *placer) rank() {
	pl.order = make([]event.DeviceID, len(pl.devices))
	for i := range pl.order {
		pl.order[i] = event.DeviceID(i)
	}
	sort.SliceStable(pl.order, func(i, j int) bool {
		a, b := pl.devices[pl.order[i]], pl.devices[pl.order[j]]
		if x, y := priority(typeOf(a)), priority(typeOf(b)); x != y {
			return x > y
		}
		return a.Name.String() < b.Name.String()
	})
}

// candidates are the devices that match and have a kernel, best first.
func (pl *placer) candidates(pattern device.Name, k types) []event.DeviceID {
	out := make([]event.DeviceID, 0, len(pl.order))
	for _, d := range pl.order {
		if l := pl.devices[d]; pattern.Matches(l.Name) && k&typeOf(l) != 0 {
			out = append(out, d)
		}
	}
	return out
}

func (pl *placer) exists(pattern device.Name) bool {
	return slices.ContainsFunc(pl.devices, func(l *device.Logical) bool { return pattern.Matches(l.Name) })
}

// anywhere takes type and number out of a wish.
func anywhere(n device.Name) device.Name {
	n.Type, n.ID = "", device.Unset
	return n
}

// defaultReason is why a node nobody asked for went where it did.
func (pl *placer) defaultReason(dev event.DeviceID, k types) string {
	switch {
	case !pl.devices[dev].IsHost():
		return "default: the first " + pl.devices[dev].Name.Type
	case k == onCPU && len(pl.devices) > 1:
		return "default: has no GPU kernel"
	default:
		return "default: no GPU"
	}
}

// softReason is why a node went elsewhere than was asked.
func (pl *placer) softReason(w wish, op program.Op, dev event.DeviceID) string {
	why := "does not exist"
	if pl.exists(w.name) {
		why = "has no kernel for " + string(op)
	}
	return w.reason + ", but " + w.text + " " + why + ": soft placement chose " + pl.devices[dev].Name.Short()
}

// list names all devices, sorted.
func (pl *placer) list() string {
	names := make([]string, len(pl.devices))
	for i, l := range pl.devices {
		names[i] = l.Name.String()
	}
	sort.SliceStable(names, func(i, j int) bool { return names[i] < names[j] })
	return "[" + strings.Join(names, ", ") + "]"
}

func (k types) String() string {
	var names []string
	for i, s := range []string{"CPU", "GPU", "TPU"} {
		if k&(1<<i) != 0 {
			names = append(names, s)
		}
	}
	return strings.Join(names, ", ")
}

// kernelList are the kernels of an op for the types of device that there are.
func (pl *placer) kernelList(k types) string {
	there := onCPU | onGPU
	for _, l := range pl.devices {
		there |= typeOf(l)
	}
	return (k & there).String()
}

// refuse words a failure as TensorFlow does: which devices there are when the
// device is missing, which kernels when the kernel is.
func (pl *placer) refuse(id program.NodeID, asked device.Name, text string, k types, colocated string) error {
	n := &pl.p.Nodes[id]
	e := &device.Error{Kind: device.InvalidArgument, Op: n.Name, Device: text, Cause: ErrPlacement}
	own := kernels(pl.defs[id])
	switch {
	case colocated != "":
		e.Message = "it is colocated with " + colocated + ", which needs an incompatible device; " + string(n.Op) + " has kernels for " +
			pl.kernelList(own) + ", the group can use " + pl.kernelList(k) + ". Ask for one device for all of them"
	case !pl.exists(asked):
		e.Message = "it was explicitly assigned to a device that does not exist; available devices are " + pl.list() +
			"; kernels of " + string(n.Op) + ": " + pl.kernelList(own) + ". Switch soft placement on, or name one of these"
		if asked.Type == "GPU" && !slices.ContainsFunc(pl.devices, func(l *device.Logical) bool { return typeOf(l) == onGPU }) {
			e.Message += ". The workload has no GPU: add one under devices"
		}
	case asked.Type != "":
		e.Message = "it was explicitly assigned there, but there is no supported kernel for " + asked.Type + " devices; kernels of " +
			string(n.Op) + ": " + pl.kernelList(own) + ". Switch soft placement on, or change the rule"
	default:
		e.Message = "no device satisfies this specification; kernels of " + string(n.Op) + ": " + pl.kernelList(own) +
			"; available devices are " + pl.list()
	}
	return e
}
