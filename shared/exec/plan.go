package exec

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/place"
	"tideline/shared/program"
)

// Plan is a program made ready to run: placed, with the copies between
// devices that follow, and for graph execution pruned. It counts as one
// concrete function: what it holds for good are its constants.
type Plan struct {
	p       *program.Program
	eager   bool
	nodes   []node
	tensors []tensor
	edges   []edge
	inputs  []tensorID // host memory of each program input
	fetches []fetch
	slots   int     // input slots of all nodes
	needs   []int32 // by node: inputs and control edges
	roots   []int32
	traced  bool

	// State of the step under way.
	waiting []int32    // by node: inputs and control edges still missing
	slot    []bufferID // by input slot: the reference that it holds
	buf     []bufferID // by tensor: persistent memory, and in eager mode every live handle
	ready   fifo

	// Eager: what the program lets go of after each node, in order.
	dies      [][]tensorID
	atEnd     []tensorID
	firstSlot int32 // first update node, where missing optimizer slots are made
}

type tensorID int32

// tensor is a value in the memory of one device.
type tensor struct {
	value    program.ValueID
	from     tensorID // the tensor that this one is copied from; none for the original
	producer int32
	first, n int32 // its out-edges in Plan.edges, in order of creation
	bytes    int64
	name     event.StringID
	what     string // shape and type, as TensorFlow's messages write them
	space    spaceID
	kind     tensorKind
	category event.Category
	cause    event.TransferCause // of the copy that makes it
}

type tensorKind uint8

const (
	computed tensorKind = iota
	variableTensor
	constant
	inputTensor
	copied
)

const noTensor tensorID = -1

type edge struct {
	node int32
	slot int32 // index in Plan.slot
}

type nodeKind uint8

const (
	opNode nodeKind = iota
	variableNode
	constNode
	inputNode
	copyNode
	fetchNode
)

// node is an op, or what stands for one: a copy, a fetch.
type node struct {
	kind      nodeKind
	alias     bool
	src       program.NodeID
	name      event.StringID
	device    event.DeviceID
	phase     event.Category
	in, out   []tensorID
	control   []int32 // nodes that wait for this one
	needs     int32   // inputs and control edges
	firstSlot int32
	forward   []int
	forwardTo int
	workspace int64
	workName  event.StringID
	dispatch  int64
	kernel    Kernel
}

type fetch struct {
	name   string
	id     event.StringID
	node   int32
	tensor tensorID
}

// Compile places p and prepares it. Placement events are told at once.
func (r *Runtime) Compile(p *program.Program, rules []place.Rule, soft bool) (*Plan, error) {
	where, err := place.Place(p, r.cfg.Devices, rules, soft)
	if err != nil {
		return nil, err
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
	node  []int32               // by program node
	at    map[memoryOf]tensorID // a value in a device's memory
	outs  [][]edge              // by tensor
}

type memoryOf struct {
	value program.ValueID
	dev   event.DeviceID
}

func (c *compiler) run() error {
	c.at = map[memoryOf]tensorID{}
	c.node = make([]int32, len(c.p.Nodes))
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
	return nil
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
	var need func(program.NodeID)
	value := func(v program.ValueID) {
		if n := c.p.Values[v].Producer; n != program.None {
			need(n)
		}
	}
	need = func(id program.NodeID) {
		if c.keep[id] {
			return
		}
		c.keep[id] = true
		for _, v := range c.p.Nodes[id].Inputs {
			value(v)
		}
		for _, n := range c.p.Nodes[id].Control {
			need(n)
		}
	}
	for i := range c.p.Nodes {
		if d, err := program.Lookup(c.p.Nodes[i].Op); err == nil && d.Stateful {
			need(program.NodeID(i))
		}
	}
	for _, f := range c.p.Fetches {
		value(f.Value)
	}
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
	for _, t := range n.out {
		c.plan.tensors[t].producer = id
	}
	n.firstSlot = int32(c.plan.slots)
	c.plan.slots += len(n.in)
	n.needs += int32(len(n.in))
	for i, t := range n.in {
		c.outs[t] = append(c.outs[t], edge{id, n.firstSlot + int32(i)})
	}
	c.plan.nodes = append(c.plan.nodes, n)
	return id
}

func (c *compiler) tensor(v program.ValueID, dev event.DeviceID, kind tensorKind) tensorID {
	val := &c.p.Values[v]
	id := tensorID(len(c.plan.tensors))
	c.plan.tensors = append(c.plan.tensors, tensor{
		value: v, from: noTensor, bytes: val.Bytes(), name: c.r.strings.ID(val.Name), what: describe(val),
		space: c.r.memory[dev], kind: kind, category: categories[val.Role],
	})
	c.outs = append(c.outs, nil)
	c.at[memoryOf{v, dev}] = id
	return id
}

// describe writes a tensor's shape and type as TensorFlow's message on a failed
// allocation does, with the C++ names of types.
func describe(v *program.Value) string {
	name := v.DType.String()
	switch v.DType {
	case program.Float32:
		name = "float"
	case program.Float64:
		name = "double"
	case program.Float16:
		name = "half"
	default:
	}
	return "shape" + v.Shape.String() + " and type " + name
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
	if len(src.Outputs) > maxOutputs {
		return fmt.Errorf("node %s: %d outputs are more than the %d an op can have", src.Name, len(src.Outputs), maxOutputs)
	}
	dev := c.where[id].Device
	n := node{
		src: id, name: c.r.strings.ID(src.Name), device: dev, phase: phases[src.Phase], alias: def.Alias,
		forward: def.Forwardable, forwardTo: def.ForwardOutput,
	}
	kind := computed
	switch src.Op {
	case program.OpVariable:
		n.kind, kind = variableNode, variableTensor
	case program.OpConst:
		n.kind, kind = constNode, constant
	default:
	}
	for i, v := range src.Inputs {
		n.in = append(n.in, c.input(v, c.inputDevice(def, dev, i), hostArgument(def, i)))
	}
	for _, v := range src.Outputs {
		n.out = append(n.out, c.tensor(v, dev, kind))
	}
	if def.Workspace != nil && !c.r.cfg.Devices[dev].IsHost() {
		n.workspace = def.Workspace(c.p, src)
		n.workName = c.r.strings.ID(src.Name + " workspace")
	}
	cost := def.Cost(c.p, src)
	n.kernel = Kernel{
		Program: c.p, Node: src, Device: dev, In: make([]Ref, len(n.in)), Out: make([]Ref, len(n.out)),
		Nanos: c.r.cfg.Devices[dev].Model.Kernel(cost.FLOPs, cost.Bytes),
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
		return min(eagerDispatchMax, eagerDispatch+eagerPerTensor*int64(tensors))
	}
	return graphDispatch
}

func hostArgument(def *program.Def, i int) bool {
	return slices.Contains(def.HostInputs, i)
}

func (c *compiler) inputDevice(def *program.Def, dev event.DeviceID, i int) event.DeviceID {
	if hostArgument(def, i) {
		return 0
	}
	return dev
}

// input is the tensor of v in a device's memory: the original, or one copy
// that all consumers there share.
func (c *compiler) input(v program.ValueID, dev event.DeviceID, argument bool) tensorID {
	if t, ok := c.at[memoryOf{v, dev}]; ok {
		return t
	}
	from := c.at[memoryOf{v, c.home(v)}]
	t := c.tensor(v, dev, copied)
	to := &c.plan.tensors[t]
	to.from, to.cause = from, event.CausePlacement
	switch {
	case argument:
		to.cause = event.CauseHostArgument
	case c.plan.tensors[from].kind == inputTensor:
		to.cause = event.CauseInput
	}
	if !c.plan.eager && c.r.pinnedSpace != noSpace {
		// A graph knows that this host tensor is one side of a copy.
		if dev == 0 {
			to.space = c.r.pinnedSpace
		} else if s := &c.plan.tensors[from]; s.kind == computed && s.space == c.r.hostSpace {
			s.space = c.r.pinnedSpace
		}
	}
	if !c.plan.eager {
		c.push(node{kind: copyNode, src: program.None, name: to.name, device: dev, phase: event.OpCopy, in: []tensorID{from}, out: []tensorID{t}})
	}
	return t
}

// home is the device that makes a value: the host for a program's input.
func (c *compiler) home(v program.ValueID) event.DeviceID {
	if p := c.p.Values[v].Producer; p != program.None {
		return c.where[p].Device
	}
	return 0
}

func (c *compiler) fetch() {
	for _, f := range c.p.Fetches {
		home := c.home(f.Value)
		t := c.at[memoryOf{f.Value, home}]
		x := fetch{name: f.Name, id: c.r.strings.ID(f.Name), tensor: t}
		x.node = c.push(node{kind: fetchNode, src: program.None, name: x.id, device: home, in: []tensorID{t}})
		c.plan.fetches = append(c.plan.fetches, x)
	}
}

func (c *compiler) finish() {
	p := c.plan
	for i := range p.tensors {
		t := &p.tensors[i]
		t.first, t.n = int32(len(p.edges)), int32(len(c.outs[i]))
		p.edges = append(p.edges, c.outs[i]...)
		if t.kind == variableTensor && c.p.Variables[c.p.Values[t.value].Variable].Slot {
			t.category = event.OptimizerState
		}
	}
	for i := range p.nodes {
		p.needs = append(p.needs, p.nodes[i].needs)
		if p.nodes[i].needs == 0 {
			p.roots = append(p.roots, int32(i))
		}
	}
	p.waiting = make([]int32, len(p.nodes))
	p.slot = make([]bufferID, p.slots)
	p.buf = make([]bufferID, len(p.tensors))
	p.ready.ring = make([]int32, len(p.nodes)+1)
}

// tellPlacement tells where each op went, in program order.
func (c *compiler) tellPlacement() {
	if c.plan.eager && c.r.placed {
		return // eager kernels are kept by op and type: another shape is nothing new
	}
	c.r.placed = true
	for i := range c.p.Nodes {
		if !c.keep[i] {
			continue
		}
		c.r.ev = event.Event{
			Kind: event.Placement, Device: c.where[i].Device, Op: c.r.strings.ID(c.p.Nodes[i].Name),
			Text: c.r.strings.ID(c.where[i].Reason), Step: c.r.step,
		}
		c.r.out.host(&c.r.ev)
	}
}

// fifo is the queue of nodes that can run; no node enters it twice in a step.
type fifo struct {
	ring       []int32
	head, tail int
}

func (q *fifo) reset()       { q.head, q.tail = 0, 0 }
func (q *fifo) push(n int32) { q.ring[q.tail] = n; q.tail++ }
func (q *fifo) pop() (int32, bool) {
	if q.head == q.tail {
		return 0, false
	}
	q.head++
	return q.ring[q.head-1], true
}
