package place

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// Rule puts the ops whose names match a pattern on a device. In Match, *
// stands for any text.
type Rule struct {
	Match  string
	Device string
}

// Decision is where one node runs and why.
type Decision struct {
	Device event.DeviceID
	Reason string
}

// ErrPlacement is wrapped by every error about a wish that cannot be met.
var ErrPlacement = errors.New("cannot place op")

// Place decides for every node of p. The index of a device in devices is its
// id; the first is the host. The error of a hard placement names the op, the
// device asked for and the devices there are.
func Place(p *program.Program, devices []*device.Logical, rules []Rule, soft bool) ([]Decision, error) {
	pl := placer{p: p, devices: devices, rules: rules, soft: soft, out: make([]Decision, len(p.Nodes)), done: make([]bool, len(p.Nodes))}
	pl.rank()
	if err := pl.variables(); err != nil {
		return nil, err
	}
	for i := range p.Nodes {
		if pl.done[i] || isGenerator(&p.Nodes[i]) {
			continue
		}
		if err := pl.node(program.NodeID(i)); err != nil {
			return nil, err
		}
	}
	for i := range p.Nodes {
		if !pl.done[i] {
			if err := pl.generator(program.NodeID(i)); err != nil {
				return nil, err
			}
		}
	}
	return pl.out, nil
}

type placer struct {
	p       *program.Program
	devices []*device.Logical
	rules   []Rule
	soft    bool
	order   []event.DeviceID // candidates, best first
	out     []Decision
	done    []bool
}

// rank sorts the devices as candidates: accelerators before the host, then by
// full name as text, as TensorFlow does (so GPU:10 comes before GPU:2).
func (pl *placer) rank() {
	pl.order = make([]event.DeviceID, len(pl.devices))
	for i := range pl.order {
		pl.order[i] = event.DeviceID(i)
	}
	sort.SliceStable(pl.order, func(i, j int) bool {
		a, b := pl.devices[pl.order[i]], pl.devices[pl.order[j]]
		if a.IsHost() != b.IsHost() {
			return b.IsHost()
		}
		return a.Name.String() < b.Name.String()
	})
}

// isGenerator says whether a node waits for its consumers to be placed: it
// takes nothing and gives one tensor that is no variable.
func isGenerator(n *program.Node) bool {
	return n.Op != program.OpVariable && len(n.Inputs) == 0 && len(n.Outputs) == 1
}

// variables places each variable by its first node, and its slots and updates
// with it, whatever is asked for these.
func (pl *placer) variables() error {
	home := make([]int, len(pl.p.Variables)) // node that decided, plus 1
	slotOf := make([]program.VariableID, len(pl.p.Variables))
	for i := range slotOf {
		slotOf[i] = program.None
	}
	for i := range pl.p.Nodes {
		n := &pl.p.Nodes[i]
		if !isUpdate(n) {
			continue
		}
		for _, s := range n.Attrs.Slots {
			if s != program.None && s != n.Attrs.Variable {
				slotOf[s] = n.Attrs.Variable
			}
		}
	}
	for pass := range 2 { // the variables first, then their slots
		for i := range pl.p.Nodes {
			n := &pl.p.Nodes[i]
			if n.Op != program.OpVariable || (slotOf[n.Attrs.Variable] != program.None) != (pass == 1) {
				continue
			}
			if pass == 1 {
				pl.follow(program.NodeID(i), home[slotOf[n.Attrs.Variable]]-1)
			} else if err := pl.node(program.NodeID(i)); err != nil {
				return err
			}
			home[n.Attrs.Variable] = i + 1
		}
	}
	for i := range pl.p.Nodes {
		if n := &pl.p.Nodes[i]; isUpdate(n) && home[n.Attrs.Variable] > 0 {
			pl.follow(program.NodeID(i), home[n.Attrs.Variable]-1)
		}
	}
	return nil
}

// isUpdate says whether the op writes into Attrs.Variable.
func isUpdate(n *program.Node) bool {
	def, err := program.Lookup(n.Op)
	return err == nil && def.Stateful && n.Attrs.Variable != program.None
}

func (pl *placer) follow(n program.NodeID, leader int) {
	pl.set(n, pl.out[leader].Device, "with its variable "+pl.p.Nodes[leader].Name)
}

func (pl *placer) set(n program.NodeID, dev event.DeviceID, reason string) {
	pl.out[n], pl.done[n] = Decision{dev, reason}, true
}

// wish is what somebody asked for a node.
type wish struct {
	text   string // the device as written; "" when nobody asked
	reason string
}

// wish finds the first rule for the node, or for the forward node whose
// gradient it belongs to, or what the program asks for.
func (pl *placer) wish(n *program.Node) wish {
	if r, ok := pl.rule(n.Name); ok {
		return wish{r.Device, "rule " + r.Match + " on " + r.Device}
	}
	if n.Device != "" {
		return wish{n.Device, "asked for by the program"}
	}
	if n.Of != program.None && int(n.Of) < len(pl.p.Nodes) && n.Phase == program.Backward {
		forward := &pl.p.Nodes[n.Of]
		if r, ok := pl.rule(forward.Name); ok {
			return wish{r.Device, "gradient of " + forward.Name + ": rule " + r.Match + " on " + r.Device}
		}
	}
	return wish{}
}

func (pl *placer) rule(name string) (Rule, bool) {
	for _, r := range pl.rules {
		if Match(r.Match, name) {
			return r, true
		}
	}
	return Rule{}, false
}

// node places a node by its wish or the default order.
func (pl *placer) node(id program.NodeID) error {
	n := &pl.p.Nodes[id]
	def, err := program.Lookup(n.Op)
	if err != nil {
		return err
	}
	w := pl.wish(n)
	pattern := device.Anywhere
	if w.text != "" {
		if pattern, err = parse(w.text); err != nil {
			return fmt.Errorf("%w %s (%s): %w", ErrPlacement, n.Name, n.Op, err)
		}
	}
	if dev, ok := pl.first(pattern, def); ok {
		pl.set(id, dev, pl.reason(w, def, dev))
		return nil
	}
	if !pl.soft {
		return pl.refused(n, w, pattern, def)
	}
	why := "does not exist"
	if pl.exists(pattern) {
		why = "has no kernel for " + string(n.Op)
	}
	pattern.Type, pattern.ID = "", device.Unset
	dev, ok := pl.first(pattern, def)
	if !ok {
		return pl.refused(n, w, pattern, def)
	}
	pl.set(id, dev, w.reason+", but "+w.text+" "+why+": soft placement chose "+pl.devices[dev].Name.Short())
	return nil
}

func (pl *placer) reason(w wish, def *program.Def, dev event.DeviceID) string {
	switch {
	case w.text != "":
		return w.reason
	case !pl.devices[dev].IsHost():
		return "default: the first GPU"
	case def.CPUOnly && len(pl.devices) > 1:
		return "default: has no GPU kernel"
	default:
		return "default: no GPU"
	}
}

func parse(s string) (device.Name, error) {
	if n, err := device.ParseLocal(s); err == nil {
		return n, nil
	}
	return device.ParseName(s)
}

// first is the best device that matches and has a kernel.
func (pl *placer) first(pattern device.Name, def *program.Def) (event.DeviceID, bool) {
	for _, d := range pl.order {
		l := pl.devices[d]
		if pattern.Matches(l.Name) && (l.IsHost() || !def.CPUOnly) {
			return d, true
		}
	}
	return 0, false
}

func (pl *placer) exists(pattern device.Name) bool {
	for _, l := range pl.devices {
		if pattern.Matches(l.Name) {
			return true
		}
	}
	return false
}

// refused words a hard placement's failure as TensorFlow does: which devices
// there are when the device is missing, which kernels when the kernel is.
func (pl *placer) refused(n *program.Node, w wish, pattern device.Name, def *program.Def) error {
	if pl.exists(pattern) && def.CPUOnly {
		return fmt.Errorf("%w %s: it was explicitly assigned to %s, but there is no supported kernel for %s devices; kernels of %s: CPU. Switch soft placement on, or change the rule",
			ErrPlacement, n.Name, w.text, pattern.Type, n.Op)
	}
	names := make([]string, len(pl.devices))
	for i, l := range pl.devices {
		names[i] = l.Name.String()
	}
	sort.Strings(names)
	kernels := "CPU, GPU"
	if def.CPUOnly {
		kernels = "CPU"
	}
	return fmt.Errorf("%w %s (%s, kernels: %s): it was explicitly assigned to %s, but available devices are [%s]. Switch soft placement on, or name one of these",
		ErrPlacement, n.Name, n.Op, kernels, w.text, strings.Join(names, ", "))
}

// generator places a node without inputs with its consumers, if they are all
// on one device.
func (pl *placer) generator(id program.NodeID) error {
	n := &pl.p.Nodes[id]
	if w := pl.wish(n); w.text != "" {
		return pl.node(id)
	}
	def, err := program.Lookup(n.Op)
	if err != nil {
		return err
	}
	dev, ok := pl.consumers(n.Outputs[0])
	if ok && (pl.devices[dev].IsHost() || !def.CPUOnly) {
		pl.set(id, dev, "with its consumers")
		return nil
	}
	return pl.node(id)
}

func (pl *placer) consumers(v program.ValueID) (dev event.DeviceID, one bool) {
	for i := range pl.p.Nodes {
		for _, in := range pl.p.Nodes[i].Inputs {
			if in != v || !pl.done[i] {
				continue
			}
			if one && dev != pl.out[i].Device {
				return 0, false
			}
			dev, one = pl.out[i].Device, true
		}
	}
	return dev, one
}

// Match says whether a name fits a pattern in which * stands for any text.
func Match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
