package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// kernel is an op with everything settled but its inputs' memory: TensorFlow's
// kernel cache has one for each op, attributes, types and request.
type kernel struct {
	op     *exec.OneOp
	p      *program.Program
	node   *program.Node
	device event.DeviceID
	vars   int // how many inputs, the first ones, are variables
	host   []bool
	outs   []spec
	whole  bool // what it changes is written over whole
	// saved says which inputs and outputs the gradient reads; worked out when a
	// tape first records the kernel.
	saved *saved
}

type spec struct {
	dtype program.DType
	shape program.Shape
}

// call is one call of an op: what is fixed of it.
type call struct {
	op    program.Op
	attrs *program.Attrs
	phase program.Phase
	role  program.Role
	vars  []*Variable // first inputs, which the op changes
	in    []*handle
}

// maxOut is the most outputs an op has.
const maxOut = program.MaxOutputs

// dispatch runs an op eagerly. The outputs belong to the caller.
func (rt *Runtime) dispatch(x *call, out *[maxOut]*handle) (*kernel, error) {
	c := rt.core
	k, err := rt.kernel(x)
	if err != nil {
		return nil, err
	}
	var room [16]exec.Handle
	in := room[:0]
	for i, v := range x.vars {
		mem, err := c.ownVariable(v, k, i)
		if err != nil {
			return nil, err
		}
		in = append(in, mem)
	}
	for i, h := range x.in {
		mem, err := rt.bring(h, k, len(x.vars)+i)
		if err != nil {
			return nil, err
		}
		in = append(in, mem)
	}
	var mem [maxOut]exec.Handle
	if err := c.run.Do(k.op, in, mem[:len(k.outs)]); err != nil {
		return nil, c.wrap(string(x.op), k.device, k.failed(c), err)
	}
	for i, s := range k.outs {
		out[i] = c.newHandle(mem[i], k.device, s.dtype, s.shape)
	}
	return k, nil
}

// bring gives an input's memory where the kernel reads it. A copy stays with
// the tensor, so that a second op there finds it.
func (rt *Runtime) bring(h *handle, k *kernel, i int) (exec.Handle, error) {
	c := rt.core
	want := k.device
	if k.host[i] || c.devices[want].IsHost() {
		want = 0
	}
	at := c.run.Memory(h.mem).Device
	if at == want || h.bytes() == 0 {
		return h.mem, nil
	}
	for _, m := range h.mirrors {
		if m.device == want {
			return m.mem, nil
		}
	}
	if err := rt.mayCopy(h, k, i, at, want); err != nil {
		return 0, err
	}
	cause := event.CausePlacement
	if k.host[i] {
		cause = event.CauseHostArgument
	}
	v := &k.p.Values[k.node.Inputs[i]]
	name := c.strings.ID(k.node.Name)
	mem, err := c.run.Move(h.mem, exec.Ask{
		Device: want, Bytes: h.bytes(), Op: name, Tensor: name, Value: v, Category: event.Activation,
	}, cause)
	if err != nil {
		return 0, c.wrap(string(k.node.Op), want, v, err)
	}
	h.mirrors = append(h.mirrors, mirror{want, mem})
	return mem, nil
}

// mayCopy applies the context's copy policy.
func (rt *Runtime) mayCopy(h *handle, k *kernel, i int, at, want event.DeviceID) error {
	switch {
	case rt.policy == Silent, rt.policy == SilentForInt32 && h.dtype == program.Int32:
		return nil
	case rt.policy == Warn:
		rt.warn(fmt.Sprintf("op %s: input #%d is copied from %s to %s", k.node.Op, i, rt.devices[at].Name, rt.devices[want].Name))
		return nil
	}
	return &Error{
		Kind: device.InvalidArgument, Op: string(k.node.Op), Device: rt.devices[want].Name.String(), Setting: "device policy",
		Message: fmt.Sprintf("tensors on conflicting devices: input #%d is on %s, the op runs on %s; copy it there with Identity in that scope, or let the policy be silent",
			i, rt.devices[at].Name, rt.devices[want].Name),
	}
}

// kernel finds the kernel for a call, or makes it.
func (rt *Runtime) kernel(x *call) (*kernel, error) {
	c := rt.core
	c.key = rt.appendKey(c.key[:0], x)
	if k, ok := c.kernels[string(c.key)]; ok {
		return k, nil
	}
	key := string(c.key)
	k, err := rt.newKernel(x)
	if err != nil {
		return nil, err
	}
	c.kernels[key] = k
	return k, nil
}

// appendKey writes what tells kernels apart.
func (rt *Runtime) appendKey(b []byte, x *call) []byte {
	want := rt.request()
	b = append(b, x.op...)
	b = append(b, 0, byte(x.phase), byte(x.role), byte(len(x.vars)))
	b = append(b, want.Job...)
	b = append(b, 0)
	b = append(b, want.Type...)
	b = appendInt(append(b, 0), int64(want.Replica))
	b = appendInt(appendInt(b, int64(want.Task)), int64(want.ID))
	soft := byte(0)
	if rt.config.SoftPlacement(false) {
		soft = 1
	}
	b = append(b, soft)
	for _, v := range x.vars {
		b = appendInt(b, int64(v.device))
		b = appendSpec(b, v.dtype, v.shape)
	}
	for _, h := range x.in {
		if rt.o.PinSmallIntegers {
			b = appendInt(b, int64(h.device))
		}
		b = appendSpec(b, h.dtype, h.shape)
	}
	return appendAttrs(append(b, 1), x.attrs)
}

func appendInt(b []byte, n int64) []byte {
	if n >= 0 && n < 0xff {
		return append(b, byte(n))
	}
	return append(b, 0xff, byte(n), byte(n>>8), byte(n>>16), byte(n>>24), byte(n>>32), byte(n>>40), byte(n>>48), byte(n>>56))
}

func appendInts(b []byte, s []int64) []byte {
	if s == nil {
		return append(b, 0)
	}
	b = appendInt(append(b, 1), int64(len(s)))
	for _, n := range s {
		b = appendInt(b, n)
	}
	return b
}

func appendSpec(b []byte, d program.DType, s program.Shape) []byte {
	return appendInts(append(b, byte(d)), s)
}

// newKernel makes a program of the one op, places it and prepares it.
func (rt *Runtime) newKernel(x *call) (*kernel, error) {
	c := rt.core
	def, err := program.Lookup(x.op)
	if err != nil {
		return nil, &Error{Kind: device.NotFound, Op: string(x.op), Message: "no kernel is registered for it"}
	}
	p := &program.Program{Name: string(x.op), Batch: 1}
	n := program.Node{Name: string(x.op), Op: x.op, Attrs: *x.attrs, Phase: x.phase, Of: program.None}
	n.Attrs.Variable, n.Attrs.Slots = program.None, program.NoSlots
	for i, v := range x.vars {
		id := program.VariableID(i)
		p.Variables = append(p.Variables, program.Variable{Name: v.name, DType: v.dtype, Shape: v.shape})
		p.Nodes = append(p.Nodes, program.Node{
			Name: v.name, Op: program.OpVariable, Attrs: program.Attrs{Variable: id, Slots: program.NoSlots},
			Outputs: []program.ValueID{program.ValueID(i)}, Of: program.None,
		})
		p.Values = append(p.Values, program.Value{Name: v.name, DType: v.dtype, Shape: v.shape, Producer: program.NodeID(i), Variable: id, Role: program.RoleVariable})
		n.Inputs = append(n.Inputs, program.ValueID(i))
		if i == 0 {
			n.Attrs.Variable = id
		} else if i <= program.MaxSlots {
			n.Attrs.Slots[i-1] = id
		}
	}
	for i, h := range x.in {
		n.Inputs = append(n.Inputs, program.ValueID(len(p.Values)))
		p.Values = append(p.Values, program.Value{
			Name: "input " + strconv.Itoa(i) + " of " + string(x.op), DType: h.dtype, Shape: h.shape, Producer: program.None, Variable: program.None,
		})
	}
	specs, err := def.Infer(p, &n)
	if err != nil {
		return nil, &Error{Kind: device.InvalidArgument, Op: string(x.op), Message: err.Error(), Cause: err}
	}
	k := &kernel{p: p, vars: len(x.vars), whole: x.op == program.OpAssign}
	for i, s := range specs {
		name := string(x.op)
		if i > 0 {
			name += ":" + strconv.Itoa(i)
		}
		n.Outputs = append(n.Outputs, program.ValueID(len(p.Values)))
		p.Values = append(p.Values, program.Value{
			Name: name, DType: s.DType, Shape: s.Shape, Producer: program.NodeID(len(p.Nodes)), Index: i, Variable: program.None, Role: x.role,
		})
		k.outs = append(k.outs, spec{s.DType, s.Shape})
	}
	p.Nodes = append(p.Nodes, n)
	k.node = &p.Nodes[len(p.Nodes)-1]
	var resource *event.DeviceID
	if len(x.vars) > 0 {
		resource = &x.vars[0].device
	}
	dev, why, err := c.place(p, k.node, rt.request(), resource, x.in)
	if err != nil {
		return nil, err
	}
	k.device = dev
	for i := range k.node.Inputs {
		k.host = append(k.host, !c.devices[dev].IsHost() && p.HostInput(k.node, i))
	}
	if k.op, err = c.run.Prepare(p, program.NodeID(len(p.Nodes)-1), dev); err != nil {
		return nil, &Error{Kind: device.Internal, Op: string(x.op), Message: err.Error(), Cause: err}
	}
	c.run.TellPlacement(dev, c.strings.ID(k.node.Name), why)
	if c.config.General.LogPlacement {
		c.run.Log(dev, 0, "Executing op "+string(x.op)+" in device "+c.devices[dev].Name.String())
	}
	return k, nil
}

// failed is the output that could not be had, as far as its size tells.
func (k *kernel) failed(c *core) *program.Value {
	oom := c.run.OOM()
	if oom == nil {
		return nil
	}
	for _, v := range slices.Concat(k.node.Outputs, k.node.Inputs) {
		if x := &k.p.Values[v]; x.Bytes() == oom.Requested {
			return x
		}
	}
	return nil
}

// wrap gives a failure of the executor TensorFlow's kind and words.
func (c *core) wrap(op string, dev event.DeviceID, v *program.Value, err error) error {
	switch {
	case errors.Is(err, exec.ErrOutOfMemory):
		oom := c.run.OOM()
		e := &Error{Kind: device.ResourceExhausted, Op: op, Device: c.devices[oom.Device].Name.String(), Cause: err}
		what := fmt.Sprintf("%d bytes", oom.Requested)
		if v != nil {
			what = "shape" + v.Shape.String() + " and type " + typeName(v.DType)
		}
		e.Message = fmt.Sprintf("OOM when allocating tensor with %s on %s by allocator %s", what, e.Device, oom.Allocator)
		return e
	case errors.Is(err, exec.ErrStopped):
		return &Error{Kind: device.Cancelled, Op: op, Message: "stopped", Cause: err}
	}
	return &Error{Kind: device.Internal, Op: op, Device: c.devices[dev].Name.String(), Message: err.Error(), Cause: err}
}

// typeName is the C++ name that TensorFlow's messages use.
func typeName(d program.DType) string {
	switch d {
	case program.Float32:
		return "float"
	case program.Float64:
		return "double"
	case program.Float16:
		return "half"
	case program.Int32:
		return "int"
	default:
		return d.String()
	}
}
