package place

import (
	"errors"
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

var errNoCommonDevice = errors.New("no device has kernels and wishes of both")

// graph places all nodes as TensorFlow's placer does a function's.
func (pl *placer) graph() error {
	pl.groups.open(len(pl.p.Nodes))
	for i := range pl.p.Nodes {
		pl.begin(program.NodeID(i))
	}
	for i := range pl.p.Nodes {
		if err := pl.tieReferences(program.NodeID(i)); err != nil {
			return err
		}
	}
	if err := pl.tieClasses(); err != nil {
		return err
	}
	for i := range pl.p.Nodes {
		if isGenerator(&pl.p.Nodes[i]) {
			continue
		}
		if err := pl.node(program.NodeID(i)); err != nil {
			return err
		}
	}
	for i := range pl.p.Nodes {
		if !pl.done[i] {
			if err := pl.generator(program.NodeID(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin makes a node's own group. A variable's wish is that of a resource.
func (pl *placer) begin(id program.NodeID) {
	w := &pl.wishes[id]
	g := group{resource: device.Anywhere, requested: w.name, kernels: kernels(pl.defs[id]), text: w.text, from: id, size: 1}
	if pl.p.Nodes[id].Op == program.OpVariable {
		g.resource = w.name
	}
	pl.groups.state[id] = g
}

// tieReferences ties a node that writes variables to them. A wish of its own
// gives way to theirs.
func (pl *placer) tieReferences(id program.NodeID) error {
	for _, v := range pl.references(id) {
		src := pl.p.Values[v].Producer
		if src == program.None {
			continue
		}
		from, to := pl.groups.of(src), pl.groups.of(id)
		if from == to {
			continue
		}
		if _, err := device.Merge(from.resource, to.resource, device.Hard); err != nil {
			return &device.Error{
				Kind: device.InvalidArgument, Op: pl.p.Nodes[id].Name, Device: to.text, Cause: ErrPlacement,
				Message: "it takes the variable " + pl.p.Nodes[src].Name + " on an incompatible resource device: " + err.Error() +
					". Put all variables of one op on one device",
			}
		}
		if _, err := device.Merge(to.requested, from.requested, device.Hard); err != nil {
			to.requested, to.text, to.from = from.requested, from.text, from.from
		}
		if err := pl.groups.tie(src, id, pl.o.Soft, func(*group) bool { return true }); err != nil {
			return pl.conflict(id, src, err)
		}
	}
	return nil
}

// tieClasses ties nodes by Node.Colocate. The first node seen of a group's
// name stands for it.
func (pl *placer) tieClasses() error {
	asked := false
	for i := range pl.p.Nodes {
		asked = asked || len(pl.p.Nodes[i].Colocate) > 0
	}
	if !asked {
		return nil
	}
	first := make(map[string]program.NodeID, len(pl.p.Nodes))
	for i := range pl.p.Nodes {
		n := &pl.p.Nodes[i]
		names := n.Colocate
		if len(names) == 0 {
			names = []string{n.Name}
		}
		for _, name := range names {
			name = strings.TrimPrefix(name, "loc:@")
			root, seen := first[name]
			if !seen {
				first[name] = program.NodeID(i)
				continue
			}
			err := pl.groups.tie(root, program.NodeID(i), pl.o.Soft, func(g *group) bool { return len(pl.candidates(g.requested, g.kernels)) > 0 })
			switch {
			case err == nil:
			case pl.o.Soft:
				pl.warn("ignored: " + n.Name + " asks to be colocated with " + name + ", but " + err.Error())
			default:
				return pl.conflict(program.NodeID(i), root, err)
			}
		}
	}
	return nil
}

func (pl *placer) conflict(id, with program.NodeID, why error) error {
	return &device.Error{
		Kind: device.InvalidArgument, Op: pl.p.Nodes[id].Name, Device: pl.wishes[id].text, Cause: ErrPlacement,
		Message: "it cannot be colocated with " + pl.p.Nodes[with].Name + ": " + why.Error() + "; " + string(pl.p.Nodes[id].Op) + " has kernels for " +
			pl.kernelList(kernels(pl.defs[id])) + ", " + string(pl.p.Nodes[with].Op) + " for " + pl.kernelList(kernels(pl.defs[with])),
	}
}

// choices are the devices that a node's group can be on, best first, with
// whether its wish had to be dropped for that.
func (pl *placer) choices(id program.NodeID) (list []event.DeviceID, dropped bool, err error) {
	g := pl.groups.of(id)
	if list = pl.candidates(g.requested, g.kernels); len(list) > 0 {
		return list, false, nil
	}
	if pl.o.Soft {
		// First what the resource did not fix, then that, too.
		loose, _ := device.Merge(anywhere(g.requested), g.resource, device.Override)
		if list = pl.candidates(loose, g.kernels); len(list) > 0 {
			return list, true, nil
		}
		if list = pl.candidates(anywhere(g.requested), g.kernels); len(list) > 0 {
			if g.resource.Type != "" || g.resource.ID != device.Unset {
				pl.warn("the variable of " + pl.p.Nodes[id].Name + " cannot be on " + g.text + ": it is moved to " + pl.devices[list[0]].Name.Short())
			}
			return list, true, nil
		}
	}
	colocated := ""
	if g.requested != pl.wishes[id].name && g.from != id {
		colocated = pl.p.Nodes[g.from].Name
	}
	return nil, false, pl.refuse(id, g.requested, g.text, g.kernels, colocated)
}

// node places a node that need not wait for others.
func (pl *placer) node(id program.NodeID) error {
	list, dropped, err := pl.choices(id)
	if err != nil {
		return err
	}
	dev := list[0]
	n := &pl.p.Nodes[id]
	if isMetadata(n) {
		if at, ok := pl.source(n.Inputs[0]); ok && slices.Contains(list, at) {
			pl.fix(id, at)
			pl.set(id, at, "with its input")
			return nil
		}
	}
	pl.fix(id, dev)
	pl.set(id, dev, pl.reason(id, dev, dropped))
	return nil
}

// fix puts a whole group on a device.
func (pl *placer) fix(id program.NodeID, dev event.DeviceID) {
	g := pl.groups.of(id)
	if g.fixed || g.size == 1 {
		return
	}
	g.fixed = true
	g.requested, g.resource = pl.devices[dev].Name, pl.devices[dev].Name
}

// source is where a value comes from, if that is decided.
func (pl *placer) source(v program.ValueID) (event.DeviceID, bool) {
	p := pl.p.Values[v].Producer
	if p == program.None {
		return 0, true // fed by the host
	}
	return pl.out[p].Device, pl.done[p]
}

func (pl *placer) reason(id program.NodeID, dev event.DeviceID, dropped bool) string {
	n, w := &pl.p.Nodes[id], &pl.wishes[id]
	if lead := pl.leader(id); lead != program.None {
		return "with its variable " + pl.p.Nodes[lead].Name
	}
	if n.Op == program.OpVariable {
		if o := pl.owner[n.Attrs.Variable]; o != program.None {
			return "with its variable " + pl.p.Variables[o].Name
		}
	}
	switch {
	case w.text != "" && w.name.Matches(pl.devices[dev].Name):
		return w.reason
	case len(n.Colocate) > 0:
		return "colocated with " + strings.TrimPrefix(n.Colocate[0], "loc:@")
	case w.text != "":
		return pl.softReason(*w, n.Op, dev)
	case dropped:
		return "with its group, whose wish " + pl.groups.of(id).text + " cannot be met"
	default:
		return pl.defaultReason(dev, pl.groups.of(id).kernels)
	}
}

// generator places a node without inputs with its consumers, if they are all
// on one device that it may be on.
func (pl *placer) generator(id program.NodeID) error {
	list, _, err := pl.choices(id)
	if err != nil {
		return err
	}
	dev, ok := pl.consumers(pl.p.Nodes[id].Outputs[0])
	if !ok || !slices.Contains(list, dev) {
		return pl.node(id)
	}
	reason := "with its consumers"
	if w := &pl.wishes[id]; w.text != "" && w.name.Matches(pl.devices[dev].Name) {
		reason = w.reason
	}
	pl.fix(id, dev)
	pl.set(id, dev, reason)
	return nil
}

// consumers is the device that all takers of a value are on, if it is one.
func (pl *placer) consumers(v program.ValueID) (dev event.DeviceID, one bool) {
	if pl.takers == nil {
		pl.takers = make([][]program.NodeID, len(pl.p.Values))
		for i := range pl.p.Nodes {
			for _, in := range pl.p.Nodes[i].Inputs {
				pl.takers[in] = append(pl.takers[in], program.NodeID(i))
			}
		}
	}
	for _, n := range pl.takers[v] {
		if one && dev != pl.out[n].Device {
			return 0, false
		}
		dev, one = pl.out[n].Device, true
	}
	return dev, one
}
