package place

import (
	"errors"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// Decision is where one node runs and why.
type Decision struct {
	Device event.DeviceID
	Reason string
}

// Options say what is wished for.
type Options struct {
	Rules []Rule
	Soft  bool // run elsewhere what cannot run where it was asked for
	Eager bool // op by op, without groups
	// PinSmall keeps eager ops on small integers in host memory on the host:
	// TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING.
	PinSmall bool
}

// Result is what came out.
type Result struct {
	Nodes    []Decision // by node
	Warnings []string   // in the order of the nodes
}

// ErrPlacement is wrapped by every error about a wish that cannot be met. The
// error is a *device.Error, whose Kind is TensorFlow's.
var ErrPlacement = errors.New("cannot place op")

// Place is Decide for a graph, without the warnings.
func Place(p *program.Program, devices []*device.Logical, rules []Rule, soft bool) ([]Decision, error) {
	r, err := Decide(p, devices, Options{Rules: rules, Soft: soft})
	return r.Nodes, err
}

// Decide decides for every node of p. The index of a device in devices is its
// id; the first is the host.
func Decide(p *program.Program, devices []*device.Logical, o Options) (Result, error) {
	pl := &placer{
		p: p, devices: devices, o: o, out: make([]Decision, len(p.Nodes)), done: make([]bool, len(p.Nodes)),
		defs: make([]*program.Def, len(p.Nodes)), wishes: make([]wish, len(p.Nodes)),
	}
	pl.rank()
	if err := pl.read(); err != nil {
		return Result{}, err
	}
	var err error
	if o.Eager {
		err = pl.eager()
	} else {
		err = pl.graph()
	}
	if err != nil {
		return Result{}, err
	}
	return Result{pl.out, pl.warnings}, nil
}

// placer is one call of Decide.
type placer struct {
	p        *program.Program
	devices  []*device.Logical
	o        Options
	order    []event.DeviceID // candidates, best first
	defs     []*program.Def   // by node
	wishes   []wish           // by node
	owner    []program.VariableID
	groups   groups
	takers   [][]program.NodeID // by value, made when first asked for
	out      []Decision
	done     []bool
	warnings []string
}

// wish is what somebody asked for a node.
type wish struct {
	text   string // the device as written; "" when nobody asked
	reason string
	name   device.Name
}

// read looks up the ops and what is asked for each.
func (pl *placer) read() error {
	pl.owners()
	for i := range pl.p.Nodes {
		n := &pl.p.Nodes[i]
		def, err := program.Lookup(n.Op)
		if err != nil {
			return &device.Error{
				Kind: device.InvalidArgument, Op: n.Name, Cause: ErrPlacement,
				Message: "no kernel is registered for " + quote(string(n.Op)) + ": name an op that the program package defines",
			}
		}
		pl.defs[i] = def
		w := pl.wish(n)
		if w.name, err = parse(w.text); err != nil {
			return &device.Error{Kind: device.InvalidArgument, Op: n.Name, Device: w.text, Message: err.Error(), Cause: ErrPlacement}
		}
		pl.wishes[i] = w
	}
	return nil
}

// owners finds for every variable the one whose optimizer state it is.
func (pl *placer) owners() {
	pl.owner = make([]program.VariableID, len(pl.p.Variables))
	for i := range pl.owner {
		pl.owner[i] = program.None
	}
	for i := range pl.p.Nodes {
		n := &pl.p.Nodes[i]
		if n.Attrs.Variable == program.None {
			continue
		}
		for _, s := range n.Attrs.Slots {
			if s != program.None && s != n.Attrs.Variable && n.Op != program.OpVariable && pl.p.Variables[s].Slot {
				pl.owner[s] = n.Attrs.Variable
			}
		}
	}
}

// wish finds what is asked for a node. An optimizer makes its state, and
// updates a variable, under the device of that variable, whatever scope is
// around it.
func (pl *placer) wish(n *program.Node) wish {
	if n.Attrs.Variable != program.None && (n.Op == program.OpVariable && pl.owner[n.Attrs.Variable] != program.None ||
		n.Op != program.OpVariable && n.Phase == program.Update) {
		return wish{}
	}
	if r, ok := find(pl.o.Rules, n.Name); ok {
		return wish{text: r.Device, reason: "rule " + r.Match + " on " + r.Device}
	}
	if n.Device != "" {
		return wish{text: n.Device, reason: "asked for by the program"}
	}
	if n.Of != program.None && int(n.Of) < len(pl.p.Nodes) && n.Phase == program.Backward {
		forward := &pl.p.Nodes[n.Of]
		if r, ok := find(pl.o.Rules, forward.Name); ok {
			return wish{text: r.Device, reason: "gradient of " + forward.Name + ": rule " + r.Match + " on " + r.Device}
		}
	}
	return wish{}
}

// parse reads a device as people write it in a scope, and else as the graph's
// grammar has it.
func parse(s string) (device.Name, error) {
	if n, err := device.ParseScope(s); err == nil {
		return n, nil
	}
	return device.ParseName(s)
}

// references lists the inputs of a node that are variables which it writes.
func (pl *placer) references(id program.NodeID) []program.ValueID {
	def, n := pl.defs[id], &pl.p.Nodes[id]
	if !def.Stateful || n.Attrs.Variable == program.None || len(n.Inputs) == 0 {
		return nil
	}
	return n.Inputs[:min(len(n.Inputs), 1+def.Slots)]
}

// leader is the node whose variable or buffer a node writes first, or None.
func (pl *placer) leader(id program.NodeID) program.NodeID {
	for _, v := range pl.references(id) {
		if src := pl.p.Values[v].Producer; src != program.None {
			return src
		}
	}
	return program.None
}

func (pl *placer) set(n program.NodeID, dev event.DeviceID, reason string) {
	pl.out[n], pl.done[n] = Decision{dev, reason}, true
}

func (pl *placer) warn(text string) { pl.warnings = append(pl.warnings, text) }

// isGenerator says whether a node waits for its consumers to be placed: it
// takes nothing and gives one tensor that is no variable.
func isGenerator(n *program.Node) bool {
	return n.Op != program.OpVariable && len(n.Inputs) == 0 && len(n.Outputs) == 1
}

// isMetadata says whether a node only looks at its input's shape.
func isMetadata(n *program.Node) bool { return n.Op == program.OpShape && len(n.Inputs) == 1 }
