package runtime

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// Variable is state: one buffer that outlives steps and that ops change in
// place, unless a reader still holds the value.
type Variable struct {
	c        *core
	id       program.VariableID
	name     string
	dtype    program.DType
	shape    program.Shape
	device   event.DeviceID
	category event.Category
	uid      uint64 // of the present value, for tapes
	anyShape bool
	frozen   bool
	released bool
}

// VariableOptions say what a variable is. The zero value is a float32 scalar
// of 0.
type VariableOptions struct {
	DType  program.DType
	Shape  program.Shape
	Init   program.Init // float types only
	Values []byte       // the first elements, in place of Init; BytesOf gives them
	// AnyShape lets Assign give the variable another shape.
	AnyShape bool
	// Slot is optimizer state, Frozen what no tape watches by itself.
	Slot, Frozen bool
}

// BytesOf is the memory of a slice, for VariableOptions.Values.
func BytesOf[T Numbers](s []T) []byte { return bytesOf(s) }

// NewVariable makes a variable on the device of the innermost scope, or the
// default device. While a function is traced it may be called in the first
// trace only, and the first value is then made outside of the graph.
// ValueError: a later trace makes a variable.
func (rt *Runtime) NewVariable(name string, o VariableOptions) (*Variable, error) {
	if t := rt.trace; t != nil {
		if !t.create {
			return nil, &Error{
				Kind: device.ValueError, Op: t.f.name, Setting: "variable " + name,
				Message: "a function may make variables in its first call only: make it outside, or keep it from the first call on",
			}
		}
		t.made++
	}
	c := rt.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.start(); err != nil {
		return nil, err
	}
	dev, err := rt.variableDevice(name)
	if err != nil {
		return nil, err
	}
	v := &Variable{
		c: c, name: name, dtype: o.DType, shape: slices.Clone(o.Shape), device: dev, category: event.Parameter, anyShape: o.AnyShape, frozen: o.Frozen || o.Slot,
	}
	if o.Slot {
		v.category = event.OptimizerState
	}
	desc := program.Variable{Name: name, DType: o.DType, Shape: v.shape, Init: o.Init, Slot: o.Slot, Frozen: o.Frozen}
	v.id = c.newID(desc)
	fill := func(dst []byte) { copy(dst, o.Values) }
	if o.Values == nil {
		fill = func(dst []byte) { c.initial(dst, v.id, o) }
	} else if int64(len(o.Values)) != desc.Bytes() {
		return nil, &Error{Kind: device.ValueError, Setting: "variable " + name, Message: fmt.Sprintf("%d bytes of values for a variable of %d", len(o.Values), desc.Bytes())}
	}
	h, err := c.fill(name, dev, v.dtype, v.shape, v.category, fill)
	if err != nil {
		return nil, err
	}
	c.run.Bind(v.id, h.mem) // takes the handle's reference
	v.uid = h.uid
	return v, nil
}

// variableDevice places a variable as an op is placed: softly, if that is on.
func (rt *Runtime) variableDevice(name string) (event.DeviceID, error) {
	n := program.Node{Name: name, Op: program.OpVariable}
	dev, _, err := rt.place(nil, &n, rt.request(), nil, nil)
	return dev, err
}

// initial writes the first values of a float variable.
func (c *core) initial(dst []byte, id program.VariableID, o VariableOptions) {
	n := o.Shape.Elements()
	p := program.Program{Variables: c.variables}
	switch o.DType {
	case program.Float32:
		x := make([]float32, n)
		p.Fill(x, id, c.o.Seed)
		copy(dst, bytesOf(x))
	case program.Float64:
		x := make([]float64, n)
		p.Fill64(x, id, c.o.Seed)
		copy(dst, bytesOf(x))
	default:
		clear(dst)
	}
}

// newID registers a variable of exec's: one of the program's, or an argument
// of a function.
func (c *core) newID(v program.Variable) program.VariableID {
	c.variables = append(c.variables, v)
	return program.VariableID(len(c.variables) - 1)
}

// Name is what the variable was called when it was made.
func (v *Variable) Name() string { return v.name }

// DType is the type of its elements.
func (v *Variable) DType() program.DType { return v.dtype }

// Shape is its extent by dimension.
func (v *Variable) Shape() program.Shape { return slices.Clone(v.shape) }

// Device is the full name of the device that it lives on.
func (v *Variable) Device() string { return v.c.devices[v.device].Name.String() }

// Release gives the variable's memory back.
func (v *Variable) Release() {
	v.c.mu.Lock()
	defer v.c.mu.Unlock()
	if !v.released && !v.c.closed {
		v.released = true
		v.c.run.Drop(v.c.run.Unbind(v.id))
	}
}

func (rt *Runtime) usableVariable(v *Variable, op string) error {
	switch {
	case v == nil:
		return &Error{Kind: device.ValueError, Op: op, Message: "the variable is nil"}
	case v.c != rt.core:
		return &Error{Kind: device.InvalidArgument, Op: op, Setting: "variable " + v.name, Message: "belongs to another runtime"}
	case v.released:
		return &Error{Kind: device.FailedPrecondition, Op: op, Setting: "variable " + v.name, Message: "was released"}
	}
	return nil
}

// Read gives the variable's present value: a tensor that shares its buffer.
// Holding it makes the next change of the variable copy.
func (rt *Runtime) Read(v *Variable) (*Tensor, error) {
	if err := rt.usableVariable(v, "ReadVariableOp"); err != nil {
		return nil, err
	}
	if rt.trace != nil {
		return rt.trace.read(v), nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return nil, err
	}
	mem := rt.run.Bound(v.id)
	rt.run.Hold(mem)
	h := rt.newHandle(mem, v.device, v.dtype, v.shape)
	h.uid = v.uid
	for _, t := range rt.tapes {
		t.readVariable(v)
	}
	return rt.own(h), nil
}

// ownVariable gives the memory of a variable that a kernel may write: where
// somebody holds the value, a new buffer.
func (c *core) ownVariable(v *Variable, k *kernel, i int) (exec.Handle, error) {
	old := c.run.Bound(v.id)
	name := c.strings.ID(k.node.Name)
	value := &k.p.Values[k.node.Inputs[i]]
	at := c.run.Memory(old).Device
	mem, err := c.run.Own(old, exec.Ask{
		Device: at, Bytes: value.Bytes(), Op: name, Tensor: c.strings.ID(v.name), Value: value, Category: v.category,
	}, k.whole && i == 0)
	if err != nil {
		return 0, c.wrap(string(k.node.Op), at, value, err)
	}
	if mem != old {
		c.run.Bind(v.id, mem)
	}
	c.uid++
	v.uid = c.uid
	return mem, nil
}

// Update runs an op that changes variables, such as ApplyGradientDescent: vars
// are the variable and the optimizer's slots, in the order of the op's first
// inputs, and in the rest. It runs where the first variable lives.
func (rt *Runtime) Update(op program.Op, a program.Attrs, vars []*Variable, in ...*Tensor) error {
	if def, err := program.Lookup(op); err != nil || !def.Stateful || len(vars) == 0 || len(vars) != 1+def.Slots {
		return &Error{Kind: device.ValueError, Op: string(op), Message: fmt.Sprintf("does not change %d variables", len(vars))}
	}
	for _, v := range vars {
		if err := rt.usableVariable(v, string(op)); err != nil {
			return err
		}
	}
	for _, t := range in {
		if err := rt.usable(t, string(op)); err != nil {
			return err
		}
	}
	if rt.trace != nil {
		return rt.trace.update(op, a, vars, in)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return err
	}
	x := call{op: op, attrs: &a, phase: program.Update, vars: vars}
	for _, t := range in {
		x.in = append(x.in, t.h)
	}
	var out [maxOut]*handle
	if rt.queue.on {
		_, err := rt.enqueue(&x, &out)
		return err
	}
	for _, h := range x.in {
		if h.err != nil {
			return h.err
		}
	}
	_, err := rt.dispatch(&x, &out)
	return err
}

// Assign gives the variable a new value. ValueError: another type or shape,
// unless the variable takes any shape.
func (rt *Runtime) Assign(v *Variable, t *Tensor) error {
	if err := rt.usableVariable(v, "Assign"); err != nil {
		return err
	}
	if err := rt.usable(t, "Assign"); err != nil {
		return err
	}
	if v.dtype == t.dtype && v.shape.Equal(t.shape) {
		return rt.Update(program.OpAssign, plain, []*Variable{v}, t)
	}
	if v.dtype != t.dtype || !v.anyShape || rt.trace != nil {
		return &Error{
			Kind: device.ValueError, Op: "Assign", Setting: "variable " + v.name,
			Message: fmt.Sprintf("%s%s cannot be assigned to %s%s", t.dtype, t.shape, v.dtype, v.shape),
		}
	}
	if err := rt.reshape(v, t); err != nil {
		return err
	}
	return rt.Update(program.OpAssign, plain, []*Variable{v}, t)
}

// reshape gives a variable a buffer for another shape, before the old one goes.
func (rt *Runtime) reshape(v *Variable, t *Tensor) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	c := rt.core
	if err := c.start(); err != nil {
		return err
	}
	old := c.run.Bound(v.id)
	value := &program.Value{Name: v.name, DType: v.dtype, Shape: t.shape}
	name := c.strings.ID(v.name)
	mem, err := c.run.Take(exec.Ask{
		Device: c.run.Memory(old).Device, Bytes: value.Bytes(), Op: c.strings.ID("Assign"), Tensor: name, Value: value, Category: v.category,
	})
	if err != nil {
		return c.wrap("Assign", v.device, value, err)
	}
	c.run.Bind(v.id, mem)
	c.run.Drop(old)
	v.shape = slices.Clone(t.shape)
	c.variables[v.id].Shape = v.shape
	return nil
}

// AssignAdd adds to the variable.
func (rt *Runtime) AssignAdd(v *Variable, t *Tensor) error {
	return rt.Update(program.OpAssignAdd, plain, []*Variable{v}, t)
}

// AssignSub subtracts from the variable.
func (rt *Runtime) AssignSub(v *Variable, t *Tensor) error {
	return rt.Update(program.OpAssignSub, plain, []*Variable{v}, t)
}
