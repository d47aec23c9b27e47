package exec

import (
	"errors"

	"tideline/protocol/event"
	"tideline/shared/program"
)

// This file is for programs that are not known ahead: ops called one by one
// on memory that the caller holds, and plans called with such memory as
// arguments. Package native/runtime is built on it.

// Handle is a reference to memory that the caller holds outside of any plan,
// as an eager tensor does; 0 is none. Whoever got one must Drop it.
type Handle bufferID

// Ask is what new memory is for.
type Ask struct {
	Device   event.DeviceID
	Bytes    int64
	Op       event.StringID // on whose behalf
	Tensor   event.StringID
	Value    *program.Value // what it is to hold, for the message of a failure; nil: bytes
	Category event.Category
}

func (r *Runtime) ask(a *Ask) request {
	return request{
		bytes: a.Bytes, op: a.Op, tensor: a.Tensor, value: a.Value, space: r.memory[a.Device], category: a.Category,
	}
}

// outcome is what went wrong since the last call, which does not stay: an
// eager program may go on with something smaller.
func (r *Runtime) outcome() error {
	err := r.failed
	r.failed = nil
	return err
}

// ShareHost lets all CPUs but the first use its memory, as the logical CPUs of
// a process do. Call it after the first got its own.
func (r *Runtime) ShareHost() {
	for i, d := range r.cfg.Devices {
		if d.IsHost() && r.memory[i] == noSpace {
			r.memory[i] = r.hostSpace
		}
	}
}

// HasMemory says whether a device got an allocator.
func (r *Runtime) HasMemory(dev event.DeviceID) bool { return r.memory[dev] != noSpace }

// ClearStats starts the peaks and counts of a device's memory anew.
func (r *Runtime) ClearStats(dev event.DeviceID) { r.spaces[r.memory[dev]].memory.ClearStats() }

// Take allocates memory whose contents are not defined.
func (r *Runtime) Take(a Ask) (Handle, error) {
	q := r.ask(&a)
	b, ok := r.allocate(&q)
	if !ok {
		return 0, r.outcome()
	}
	return Handle(b), nil
}

// Fill allocates memory and gives it first contents from the host: written in
// place on a CPU, sent there otherwise. fill is not called by a Backend that
// has no contents.
func (r *Runtime) Fill(a Ask, fill func([]byte)) (Handle, error) {
	b, ok := r.initial(r.ask(&a), fill)
	if !ok {
		return 0, r.outcome()
	}
	r.tidy()
	return Handle(b), nil
}

// Move copies memory to a device, where a asks for as many bytes. The caller
// keeps from.
func (r *Runtime) Move(from Handle, a Ask, cause event.TransferCause) (Handle, error) {
	q := r.ask(&a)
	b, ok := r.copied(bufferID(from), &q, cause)
	if !ok {
		return 0, r.outcome()
	}
	r.tidy()
	return Handle(b), nil
}

// mostFlights is how many copies may be under way before the host waits for
// the oldest, so that what they hold does not pile up in a program that never
// reads a result.
const mostFlights = 64

func (r *Runtime) tidy() {
	for len(r.flights) > mostFlights {
		r.backend.WaitUntil(r.flights[0].end)
		r.removeFlight(0)
	}
}

// Hold adds a reference.
func (r *Runtime) Hold(h Handle) { r.hold(bufferID(h), 1) }

// Drop gives a reference back; the last frees the memory.
func (r *Runtime) Drop(h Handle) {
	if h != 0 {
		r.drop(bufferID(h))
	}
}

// References is how many references there are to a handle's memory.
func (r *Runtime) References(h Handle) int { return int(r.buffers[h].refs) }

// Memory is where a handle's memory lies. Its device is the first CPU for all
// memory of the host.
func (r *Runtime) Memory(h Handle) Ref { return r.ref(bufferID(h)) }

// Rounded is the bytes that the allocator gave for a handle.
func (r *Runtime) Rounded(h Handle) int64 { return r.buffers[h].size }

// Read lets the host see the contents: it waits for the work that makes them
// and, for an accelerator's memory, copies them to host memory first, which
// a.Op is blamed for. into gets nil from a Backend without contents.
func (r *Runtime) Read(h Handle, a Ask, into func([]byte)) error {
	b := bufferID(h)
	if !r.cfg.Devices[r.spaces[b.of(r)].device].IsHost() {
		q := r.ask(&a)
		q.space, q.category = r.hostSpace, event.Output
		host, ok := r.copied(b, &q, event.CauseFetch)
		if !ok {
			return r.outcome()
		}
		defer r.drop(host)
		b = host
		r.backend.Spend(wakeUp)
	}
	r.sync()
	if r.buffers[b].size > 0 {
		into(r.backend.Bytes(r.ref(b)))
	} else {
		into(nil)
	}
	return r.outcome()
}

// Sync lets the host wait for all devices.
func (r *Runtime) Sync() error {
	r.sync()
	return r.outcome()
}

// OneOp is an op made ready to be called one by one on one device: the cached
// kernel of TensorFlow's eager context.
type OneOp struct {
	plan Plan
	n    node
	outs []Ask
	from []bufferID // the inputs of the call under way
	made []bufferID // its outputs
}

// Prepare makes node id of p, whose inputs and outputs have their shapes,
// ready for a device. p must not change afterwards.
func (r *Runtime) Prepare(p *program.Program, id program.NodeID, dev event.DeviceID) (*OneOp, error) {
	src := &p.Nodes[id]
	def, err := program.Lookup(src.Op)
	if err != nil {
		return nil, err
	}
	name := r.strings.ID(src.Name)
	o := &OneOp{plan: Plan{p: p, eager: true}, made: make([]bufferID, len(src.Outputs)), from: make([]bufferID, 0, len(src.Inputs))}
	o.n = node{
		src: id, name: name, device: dev, phase: phases[src.Phase], alias: def.Alias, metadata: src.Op == program.OpShape,
		dispatch: min(eagerDispatchMax, eagerDispatch+eagerPerTensor*int64(len(src.Inputs)+len(src.Outputs))),
	}
	for i, v := range src.Outputs {
		x := &p.Values[v]
		a := Ask{Device: dev, Bytes: x.Bytes(), Op: name, Tensor: r.strings.ID(x.Name), Value: x, Category: categories[x.Role]}
		if hostOutput(p, def, src, i) {
			a.Device = 0
		}
		o.outs = append(o.outs, a)
	}
	at := dev
	cost := program.Cost{}
	if o.n.metadata || o.onHost(p, src) {
		at = 0
	}
	if !o.n.metadata {
		cost = def.Cost(p, src)
	}
	if def.Workspace != nil && !r.cfg.Devices[dev].IsHost() {
		o.n.workspace, o.n.workName = def.Workspace(p, src), r.strings.ID(src.Name+" workspace")
	}
	o.n.kernel = Kernel{
		Program: p, Node: src, Device: at, In: make([]Ref, len(src.Inputs)), Out: make([]Ref, len(src.Outputs)),
		Nanos: r.cfg.Devices[at].Model.Kernel(cost.FLOPs, cost.Bytes),
	}
	if o.n.workspace > r.cfg.workspaceLimit() {
		o.n.workspace = 0
		o.n.kernel.Nanos *= withoutWorkspace
	}
	return o, nil
}

// onHost says whether all that the op reads and writes is host memory.
func (o *OneOp) onHost(p *program.Program, src *program.Node) bool {
	for i := range src.Inputs {
		if !p.HostInput(src, i) {
			return false
		}
	}
	for i := range o.outs {
		if o.outs[i].Device != 0 {
			return false
		}
	}
	return len(src.Inputs)+len(o.outs) > 0
}

// Device is where the op runs.
func (o *OneOp) Device() event.DeviceID { return o.n.device }

// Do calls the op: inputs lie where its kernel reads them, outputs are always
// new, except for an op that gives its input's own memory. What it writes into
// (variables) must be the caller's alone; see Own. On an error out is not
// touched.
func (r *Runtime) Do(o *OneOp, in, out []Handle) error {
	if r.stopped() {
		return r.outcome()
	}
	r.backend.Spend(o.n.dispatch)
	if o.n.alias {
		r.Hold(in[0])
		out[0] = in[0]
		return nil
	}
	outs, from := o.made, o.from[:0]
	for _, h := range in {
		from = append(from, bufferID(h))
	}
	for i := range o.outs {
		q := r.ask(&o.outs[i])
		b, ok := r.allocate(&q)
		if !ok {
			r.dropAll(outs[:i])
			return r.outcome()
		}
		outs[i] = b
	}
	if !r.run(&o.plan, &o.n, from, outs) {
		r.dropAll(outs)
		return r.outcome()
	}
	for i := range o.outs {
		out[i] = Handle(outs[i])
	}
	return nil
}

// Own gives a variable's owner memory that nobody else refers to, so that it
// may be written: h itself, or where a reader holds it new memory, for which
// the owner's reference to h is given back; whole says that the old value is
// written over and need not be copied.
func (r *Runtime) Own(h Handle, a Ask, whole bool) (Handle, error) {
	old := bufferID(h)
	if r.buffers[old].refs == 1 {
		return h, nil
	}
	q := r.ask(&a)
	b, ok := r.allocate(&q)
	if !ok {
		return 0, r.outcome()
	}
	if n := (&node{name: a.Op, phase: event.OpUpdate, kernel: Kernel{Device: a.Device}}); !whole && a.Bytes > 0 && !r.copyVariable(n, old, b) {
		r.drop(b)
		return 0, r.outcome()
	}
	r.drop(old)
	return Handle(b), nil
}

// Bind makes memory a plan's variable; the variable takes the caller's
// reference. What was bound before must have been taken back with Unbind.
func (r *Runtime) Bind(id program.VariableID, h Handle) {
	if n := int(id) + 1; len(r.variables) < n {
		r.variables = append(r.variables, make([]variable, n-len(r.variables))...)
	}
	r.variables[id] = variable{bufferID(h), true}
}

// Bound is a variable's memory now, without a reference for the caller.
func (r *Runtime) Bound(id program.VariableID) Handle { return Handle(r.variables[id].buffer) }

// Unbind takes a variable's memory back, with its reference.
func (r *Runtime) Unbind(id program.VariableID) Handle {
	h := Handle(r.variables[id].buffer)
	r.variables[id] = variable{}
	return h
}

// Call runs a plan that takes no inputs but variables, bound to the memory of
// its arguments, and gives a handle for each fetch. After an error everything
// of the call has been freed.
func (r *Runtime) Call(p *Plan) ([]Handle, error) {
	if len(p.inputs) > 0 || p.eager {
		return nil, errors.New("call: the plan is no function of bound memory")
	}
	if !p.traced && !r.trace(p) {
		return nil, r.outcome()
	}
	err := r.failed
	if r.takeArenas(p) {
		err = r.graphStep(p, nil)
	}
	if err == nil {
		err = r.failed
	}
	if err != nil {
		r.abandon(p)
		r.failed = nil // told by err
		return nil, err
	}
	out := make([]Handle, len(p.fetches))
	for i := range p.fetches {
		s := p.nodes[p.fetches[i].node].firstSlot
		out[i], p.slot[s] = Handle(p.slot[s]), 0
	}
	if len(p.arenas) > 0 && len(r.flights) > 0 {
		r.sync() // copies out of the arena hold what lies in it
	}
	r.giveArenas(p)
	r.tidy()
	return out, r.outcome()
}

// Forget gives back the constants that a plan holds for good.
func (r *Runtime) Forget(p *Plan) {
	for i := range p.nodes {
		if n := &p.nodes[i]; n.kind == constNode {
			if b := p.buf[n.out[0]]; b != 0 {
				p.buf[n.out[0]] = 0
				r.drop(b)
			}
		}
	}
	p.traced = false
}

// BeginStep and EndStep mark the steps of a program that runs by itself.
func (r *Runtime) BeginStep(step int32, batch int64) {
	r.step = step
	r.ev = event.Event{Kind: event.StepBegin, Step: step, Size: batch}
	r.out.host(&r.ev)
}

// EndStep ends the step that BeginStep began.
func (r *Runtime) EndStep(batch int64) {
	r.ev = event.Event{Kind: event.StepEnd, Step: r.step, Size: batch}
	r.out.host(&r.ev)
	r.step = event.NoStep
}

// TellPlacement tells that an op goes to a device, and why.
func (r *Runtime) TellPlacement(dev event.DeviceID, op event.StringID, reason string) {
	r.ev = event.Event{Kind: event.Placement, Device: dev, Op: op, Text: r.strings.ID(reason), Step: r.step}
	r.out.host(&r.ev)
}
