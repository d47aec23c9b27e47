package exec

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/place"
	"tideline/shared/program"
)

// Compile places p and prepares it. Placement events are told at once.
func (r *Runtime) Compile(p *program.Program, rules []place.Rule, soft bool) (*Plan, error) {
	where, err := place.Place(p, r.cfg.Devices, rules, soft)
	if err != nil {
		return nil, err
	}
	return r.CompilePlaced(p, where)
}

// CompilePlaced prepares a program whose nodes have their devices already.
func (r *Runtime) CompilePlaced(p *program.Program, where []place.Decision) (*Plan, error) {
	if len(where) != len(p.Nodes) {
		return nil, fmt.Errorf("compile %s: %d placements for %d nodes", p.Name, len(where), len(p.Nodes))
	}
	for i, d := range where {
		if int(d.Device) >= len(r.memory) || r.memory[d.Device] == noSpace {
			return nil, fmt.Errorf("compile %s: node %s is placed on device %d, which does not exist or has no memory attached", p.Name, p.Nodes[i].Name, d.Device)
		}
	}
	if r.hostSpace == noSpace {
		return nil, fmt.Errorf("compile %s: the host has no memory attached", p.Name)
	}
	c := compiler{r: r, p: p, where: where, plan: &Plan{p: p, eager: r.cfg.Mode == Eager}}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	return c.plan, nil
}

type compiler struct {
	r     *Runtime
	p     *program.Program
	where []place.Decision
	plan  *Plan
	keep  []bool
	node  []int32    // by program node
	at    []tensorID // by value and device: the value in that memory, or none
	ids   []tensorID // unused room for the nodes' inputs and outputs
	refs  []Ref      // and for their kernels'
}

func (c *compiler) run() error {
	c.reserve()
	c.prune()
	c.inputs()
	for i := range c.p.Nodes {
		if c.keep[i] {
			if err := c.add(program.NodeID(i)); err != nil {
				return err
			}
		}
	}
	c.fetch()
	c.finish()
	if c.plan.eager {
		c.lifetimes()
	}
	c.tellPlacement()
	c.tellIdlePatterns()
	return nil
}

// tellIdlePatterns warns of what Config.Keep names and the program does not have.
func (c *compiler) tellIdlePatterns() {
	for _, pattern := range c.r.cfg.Keep {
		match := func(n program.Node) bool { return place.Match(pattern, n.Name) && c.kept(&n) }
		if !slices.ContainsFunc(c.p.Nodes, match) {
			c.r.Log(0, event.Warning, fmt.Sprintf("keep %q: no op of %s with a result has such a name, so nothing is kept", pattern, c.p.Name))
		}
	}
}

// reserve makes room at once for what a program of this size needs at least.
func (c *compiler) reserve() {
	c.at = make([]tensorID, len(c.p.Values)*len(c.r.cfg.Devices))
	for i := range c.at {
		c.at[i] = noTensor
	}
	c.node = make([]int32, len(c.p.Nodes))
	n, most := 0, 1
	for i := range c.p.Nodes {
		most = max(most, len(c.p.Nodes[i].Outputs))
		n += len(c.p.Nodes[i].Inputs) + len(c.p.Nodes[i].Outputs)
	}
	c.ids, c.refs = make([]tensorID, n), make([]Ref, n)
	c.plan.outs = make([]bufferID, most)
	c.plan.nodes = make([]node, 0, len(c.p.Nodes)+len(c.p.Inputs)+len(c.p.Fetches)+8)
	c.plan.tensors = make([]tensor, 0, len(c.p.Values)+8)
}

// prune keeps what the fetches and the stateful ops need. Eager execution
// cannot know what will be needed, and runs everything.
func (c *compiler) prune() {
	c.keep = make([]bool, len(c.p.Nodes))
	if c.plan.eager {
		for i := range c.keep {
			c.keep[i] = true
		}
		return
	}
	// Nodes stand in topological order: one pass from the back marks all.
	for _, f := range c.p.Fetches {
		c.need(f.Value)
	}
	for i := len(c.p.Nodes) - 1; i >= 0; i-- {
		n := &c.p.Nodes[i]
		if d, err := program.Lookup(n.Op); err == nil && d.Stateful || c.kept(n) {
			c.keep[i] = true
		}
		if !c.keep[i] {
			continue
		}
		for _, v := range n.Inputs {
			c.need(v)
		}
		for _, before := range n.Control {
			c.keep[before] = true
		}
	}
}

func (c *compiler) need(v program.ValueID) {
	if n := c.p.Values[v].Producer; n != program.None {
		c.keep[n] = true
	}
}

// kept says whether the program appends the node's outputs to a list.
func (c *compiler) kept(n *program.Node) bool {
	return len(n.Outputs) > 0 && n.Op != program.OpVariable && n.Op != program.OpConst &&
		slices.ContainsFunc(c.r.cfg.Keep, func(pattern string) bool { return place.Match(pattern, n.Name) })
}

func (c *compiler) inputs() {
	for _, v := range c.p.Inputs {
		t := c.tensor(v, 0, inputTensor)
		c.plan.inputs = append(c.plan.inputs, t)
		c.push(node{kind: inputNode, src: program.None, name: c.r.strings.ID(c.p.Values[v].Name), out: []tensorID{t}})
	}
}

func (c *compiler) push(n node) int32 {
	id := int32(len(c.plan.nodes))
	n.id = id
	for _, t := range n.out {
		c.plan.tensors[t].producer = id
	}
	n.firstSlot = int32(c.plan.slots)
	c.plan.slots += len(n.in)
	n.needs += int32(len(n.in))
	c.plan.nodes = append(c.plan.nodes, n)
	return id
}

func (c *compiler) tensor(v program.ValueID, dev event.DeviceID, kind tensorKind) tensorID {
	val := &c.p.Values[v]
	id := tensorID(len(c.plan.tensors))
	elements := val.Shape.Elements()
	c.plan.tensors = append(c.plan.tensors, tensor{
		value: v, from: noTensor, bytes: elements * val.DType.Size(), elements: elements, dtype: val.DType,
		name: c.r.strings.ID(val.Name), space: c.r.memory[dev], kind: kind, category: categories[val.Role],
	})
	*c.home(v, dev) = id
	return id
}

// home is where the tensor of v in a device's memory is noted.
func (c *compiler) home(v program.ValueID, dev event.DeviceID) *tensorID {
	return &c.at[int(v)*len(c.r.cfg.Devices)+int(dev)]
}

var categories = [...]event.Category{
	program.RoleActivation:         event.Activation,
	program.RoleInput:              event.Input,
	program.RoleVariable:           event.Parameter,
	program.RoleGradient:           event.Gradient,
	program.RoleActivationGradient: event.ActivationGradient,
	program.RoleConstant:           event.Constant,
	program.RoleOutput:             event.Output,
	program.RoleTemporary:          event.Temporary,
}

var phases = [...]event.Category{
	program.Forward:  event.OpForward,
	program.Backward: event.OpBackward,
	program.Update:   event.OpUpdate,
}

func (c *compiler) add(id program.NodeID) error {
	src := &c.p.Nodes[id]
	def, err := program.Lookup(src.Op)
	if err != nil {
		return err
	}
	dev := c.where[id].Device
	n := node{
		src: id, name: c.r.strings.ID(src.Name), device: dev, phase: phases[src.Phase], alias: def.Alias,
		forward: def.Forwardable, forwardTo: def.ForwardOutput, kept: c.kept(src),
	}
	kind := c.kind(&n, src)
	n.in = c.take(len(src.Inputs))
	for i, v := range src.Inputs {
		n.in[i] = c.input(v, c.inputDevice(src, dev, i), c.p.HostInput(src, i))
		if x := &c.plan.tensors[n.in[i]]; x.kind == variableTensor {
			if def.Stateful && writes(src, c.p.Values[v].Variable) {
				n.writes = append(n.writes, write{i, c.p.Values[v].Variable})
			} else {
				x.read = true
			}
		}
	}
	n.out = c.take(len(src.Outputs))
	for i, v := range src.Outputs {
		n.out[i] = c.tensor(v, c.outputDevice(id, i), kind)
		if src.Op == program.OpSwapOut && c.r.pinnedSpace != noSpace {
			c.plan.tensors[n.out[i]].space = c.r.pinnedSpace
		}
		if n.kind == swapNode {
			c.plan.tensors[n.out[i]].cause = event.CauseSwap
		}
	}
	if def.Workspace != nil && !c.r.cfg.Devices[dev].IsHost() {
		n.workspace = def.Workspace(c.p, src)
		n.workName = c.r.strings.ID(src.Name + " workspace")
	}
	c.kernel(&n, def, src)
	if n.workspace > c.r.cfg.workspaceLimit() {
		n.workspace = 0
		n.kernel.Nanos *= withoutWorkspace
	}
	n.dispatch = c.dispatch(len(n.in) + len(n.out))
	me := c.push(n)
	c.node[id] = me
	for _, before := range src.Control {
		if c.keep[before] {
			b := &c.plan.nodes[c.node[before]]
			b.control = append(b.control, me)
			c.plan.nodes[me].needs++
		}
	}
	return nil
}

func (c *compiler) kind(n *node, src *program.Node) tensorKind {
	switch src.Op {
	case program.OpVariable:
		n.kind = variableNode
		return variableTensor
	case program.OpConst:
		n.kind = constNode
		return constant
	case program.OpSwapOut, program.OpSwapIn:
		// On the host there is nothing to swap: the tensor stays where it is.
		if n.alias = c.r.cfg.Devices[n.device].IsHost(); !n.alias {
			n.kind = swapNode
		}
	case program.OpShape:
		n.metadata = true
	default:
	}
	return computed
}

// writes says whether a stateful op writes into its input of variable v.
func writes(src *program.Node, v program.VariableID) bool {
	return v != program.None && (v == src.Attrs.Variable || slices.Contains(src.Attrs.Slots[:], v))
}

func (c *compiler) take(n int) []tensorID {
	if n > len(c.ids) {
		return make([]tensorID, n)
	}
	s := c.ids[:n:n]
	c.ids = c.ids[n:]
	return s
}

func (c *compiler) takeRefs(n int) []Ref {
	if n > len(c.refs) {
		return make([]Ref, n)
	}
	s := c.refs[:n:n]
	c.refs = c.refs[n:]
	return s
}

// kernel prepares the call. A kernel all of whose data lies in host memory runs
// there, as does one that reads no contents, and takes no place on a stream.
func (c *compiler) kernel(n *node, def *program.Def, src *program.Node) {
	dev := n.device
	if n.metadata || c.hostKernel(n) {
		dev = 0
	}
	cost := program.Cost{}
	if !n.metadata {
		cost = def.Cost(c.p, src)
	}
	n.kernel = Kernel{
		Program: c.p, Node: src, Device: dev, In: c.takeRefs(len(n.in)), Out: c.takeRefs(len(n.out)),
		Nanos: c.r.cfg.Devices[dev].Model.Kernel(cost.FLOPs, cost.Bytes),
	}
}

// Host time to issue one op, in nanoseconds: an eager op goes through the
// Python layer and makes handles, a graph's node is only looked up.
const (
	eagerDispatch    = 12_000
	eagerPerTensor   = 800
	eagerDispatchMax = 20_000
	graphDispatch    = 5_000
)

func (c *compiler) dispatch(tensors int) int64 {
	if c.plan.eager {
		t := min(eagerDispatchMax, eagerDispatch+eagerPerTensor*int64(tensors))
		if c.r.cfg.Async {
			t -= asyncDispatch
		}
		return t
	}
	return graphDispatch
}

// hostKernel says whether all that the op reads and writes is host memory.
func (c *compiler) hostKernel(n *node) bool {
	for _, ids := range [][]tensorID{n.in, n.out} {
		for _, t := range ids {
			if !c.r.cfg.Devices[c.r.spaces[c.plan.tensors[t].space].device].IsHost() {
				return false
			}
		}
	}
	return len(n.in)+len(n.out) > 0
}

func (c *compiler) inputDevice(src *program.Node, dev event.DeviceID, i int) event.DeviceID {
	if c.p.HostInput(src, i) {
		return 0
	}
	return dev
}

// outputDevice is the device in whose memory an op's output lies.
func (c *compiler) outputDevice(id program.NodeID, i int) event.DeviceID {
	src := &c.p.Nodes[id]
	if def, err := program.Lookup(src.Op); err == nil && hostOutput(c.p, def, src, i) {
		return 0
	}
	return c.where[id].Device
}

// hostOutput says whether an output is in host memory wherever the op runs. What
// comes of int32 kernels on the host stays there, of whatever type it is.
func hostOutput(p *program.Program, def *program.Def, src *program.Node, i int) bool {
	return p.HostOutput(src, i) || def.HostInt32 && len(src.Inputs) > 0 && p.HostInput(src, 0)
}

// input is the tensor of v in a device's memory: the original, or one copy
// that all consumers there share.
func (c *compiler) input(v program.ValueID, dev event.DeviceID, argument bool) tensorID {
	if t := *c.home(v, dev); t != noTensor {
		return t
	}
	from := *c.home(v, c.origin(v))
	if c.r.memory[dev] == c.r.memory[c.origin(v)] { // CPUs of one process: the buffer is shared
		*c.home(v, dev) = from
		return from
	}
	t := c.tensor(v, dev, copied)
	to := &c.plan.tensors[t]
	to.from, to.cause, to.argument = from, event.CausePlacement, argument
	switch {
	case argument:
		to.cause = event.CauseHostArgument
	case c.plan.tensors[from].kind == inputTensor:
		to.cause = event.CauseInput
	}
	if c.plan.tensors[from].kind == variableTensor {
		c.plan.tensors[from].read = true
	}
	if c.plan.eager {
		return t
	}
	if c.r.pinnedSpace != noSpace {
		// A graph knows that this host tensor is one side of a copy.
		if dev == 0 {
			to.space = c.r.pinnedSpace
		} else if s := &c.plan.tensors[from]; s.kind == computed && s.space == c.r.hostSpace {
			s.space = c.r.pinnedSpace
		}
	}
	c.push(node{kind: copyNode, src: program.None, name: to.name, device: dev, phase: event.OpCopy, in: []tensorID{from}, out: []tensorID{t}})
	return t
}

// origin is the device in whose memory a value is made: the host for a
// program's input.
func (c *compiler) origin(v program.ValueID) event.DeviceID {
	if p := c.p.Values[v].Producer; p != program.None {
		return c.outputDevice(p, c.p.Values[v].Index)
	}
	return 0
}

func (c *compiler) fetch() {
	for _, f := range c.p.Fetches {
		home := c.origin(f.Value)
		t := *c.home(f.Value, home)
		x := fetch{name: f.Name, id: c.r.strings.ID(f.Name), tensor: t}
		x.node = c.push(node{kind: fetchNode, src: program.None, name: x.id, device: home, in: []tensorID{t}})
		c.plan.fetches = append(c.plan.fetches, x)
		if c.plan.tensors[t].kind == variableTensor {
			c.plan.tensors[t].read = true
		}
	}
}
