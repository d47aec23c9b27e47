package runtime

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"unsafe"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// handle is TensorFlow's TensorHandle: memory with type, shape and device,
// counted by those who hold it (the program, tapes, functions), and the copies
// of it that ops on other devices needed.
type handle struct {
	uid     uint64
	refs    int
	mem     exec.Handle
	device  event.DeviceID // what the program sees; of several CPUs any
	dtype   program.DType
	shape   program.Shape
	mirrors []mirror
	err     error // set for the output of an op that failed or was cancelled
}

type mirror struct {
	device event.DeviceID
	mem    exec.Handle
}

func (h *handle) bytes() int64 { return h.shape.Elements() * h.dtype.Size() }

func (c *core) newHandle(mem exec.Handle, dev event.DeviceID, d program.DType, s program.Shape) *handle {
	c.uid++
	return &handle{uid: c.uid, refs: 1, mem: mem, device: dev, dtype: d, shape: s}
}

// drop gives a holder's reference back; with the last the memory goes, and the
// mirrors with it.
func (c *core) drop(h *handle) {
	h.refs--
	if h.refs > 0 || c.run == nil || c.closed {
		return
	}
	c.run.Drop(h.mem)
	for _, m := range h.mirrors {
		c.run.Drop(m.mem)
	}
	h.mem, h.mirrors = 0, nil
}

// Tensor is a value. In eager execution it holds memory until it is released;
// while a function is traced it stands for a value of the graph.
type Tensor struct {
	c        *core
	h        *handle // eager; nil in a graph
	released bool

	graph *trace // of a value in a graph
	value program.ValueID
	dtype program.DType
	shape program.Shape
}

// garbage counts what the collector had to find.
type garbage struct {
	mu      sync.Mutex
	found   []*handle // not released yet
	tensors int
	bytes   int64
}

// own makes the program's object for a handle, whose reference it takes.
func (rt *Runtime) own(h *handle) *Tensor {
	t := &Tensor{c: rt.core, h: h, dtype: h.dtype, shape: h.shape}
	goruntime.SetFinalizer(t, (*Tensor).unreachable)
	if n := len(rt.tidies); n > 0 {
		rt.tidies[n-1].made = append(rt.tidies[n-1].made, t)
	}
	return t
}

// unreachable is called by the collector. The memory itself goes at the next
// op, on the goroutine that runs it.
func (t *Tensor) unreachable() {
	if t.released || t.h == nil {
		return
	}
	g := &t.c.garbage
	g.mu.Lock()
	g.found = append(g.found, t.h)
	g.tensors++
	g.bytes += t.h.bytes()
	g.mu.Unlock()
}

// sweep releases what the collector found.
func (c *core) sweep() {
	g := &c.garbage
	g.mu.Lock()
	found := g.found
	g.found = nil
	g.mu.Unlock()
	for _, h := range found {
		c.run.Annotate(fmt.Sprintf("held by garbage: a tensor of %s that nobody could reach any more is released now", event.FormatBytes(h.bytes())))
		c.drop(h)
	}
}

// Garbage is how many tensors were left to the collector so far, and their
// bytes: memory that Release would have given back earlier.
func (rt *Runtime) Garbage() (tensors int, bytes int64) {
	g := &rt.garbage
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tensors, g.bytes
}

// Release gives the tensor's memory back, unless a tape, a function or another
// tensor holds it as well. A second Release does nothing.
func (t *Tensor) Release() {
	if t == nil || t.h == nil {
		return
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.release()
}

func (t *Tensor) release() {
	if !t.released && t.h != nil {
		t.released = true
		t.c.drop(t.h)
	}
}

// DType is the type of the elements.
func (t *Tensor) DType() program.DType { return t.dtype }

// Shape is the extent by dimension.
func (t *Tensor) Shape() program.Shape { return slices.Clone(t.shape) }

// Bytes is the memory that the elements need.
func (t *Tensor) Bytes() int64 { return t.shape.Elements() * t.dtype.Size() }

// Device is the full name of the device that the tensor was made on; a copy
// elsewhere does not change it. "" in a graph.
func (t *Tensor) Device() string {
	if t.h == nil {
		return ""
	}
	return t.c.devices[t.h.device].Name.String()
}

// Symbolic says whether the tensor stands for a value of a graph.
func (t *Tensor) Symbolic() bool { return t.graph != nil }

// Address and Rounded tell where the memory lies and what the allocator gave
// for it, for those who study allocation; 0 for a released or symbolic tensor.
func (t *Tensor) Address() uint64 {
	if t.h == nil || t.h.mem == 0 {
		return 0
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.run.Memory(t.h.mem).Address
}

// Rounded is the bytes of the tensor's chunk.
func (t *Tensor) Rounded() int64 {
	if t.h == nil || t.h.mem == 0 {
		return 0
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.run.Rounded(t.h.mem)
}

// usable says why a tensor cannot be an input here.
func (rt *Runtime) usable(t *Tensor, what string) error {
	bad := func(k device.Kind, message string) error { return &Error{Kind: k, Op: what, Message: message} }
	switch {
	case t == nil:
		return bad(device.ValueError, "an input is nil")
	case t.c != rt.core:
		return bad(device.InvalidArgument, "an input belongs to another runtime")
	case t.released:
		return bad(device.FailedPrecondition, "an input was released: hold it until its last use")
	case t.graph != nil && t.graph != rt.trace:
		return bad(device.InvalidArgument, "an input is a value of a graph that is not being traced here: return it from its function instead")
	}
	return nil
}

// Numbers are the element types that tensors are made of and read as.
type Numbers interface {
	float32 | float64 | int32 | int64 | uint8
}

func bytesOf[T Numbers](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

func typeOf[T Numbers]() program.DType {
	var t T
	switch any(t).(type) {
	case float32:
		return program.Float32
	case float64:
		return program.Float64
	case int32:
		return program.Int32
	case int64:
		return program.Int64
	default:
		return program.Uint8
	}
}

// Constant makes a tensor with these elements on the device of the innermost
// scope, or the default device. A nil shape with one element is a scalar.
// While a function is traced the elements become a constant that the function
// holds for good.
//
// RuntimeError: the scope's device does not exist, even with soft placement.
func Constant[T Numbers](rt *Runtime, values []T, shape ...int64) (*Tensor, error) {
	return rt.constant(typeOf[T](), shape, bytesOf(values))
}

func (rt *Runtime) constant(d program.DType, s program.Shape, content []byte) (*Tensor, error) {
	if int64(len(content)) != s.Elements()*d.Size() {
		return nil, &Error{Kind: device.ValueError, Op: "Const", Message: fmt.Sprintf("%d elements do not make a tensor of shape %s", int64(len(content))/d.Size(), s)}
	}
	return rt.fromHost("Const", d, s, event.Activation, func(dst []byte) { copy(dst, content) })
}

// Fill makes a tensor whose elements are all x.
func (rt *Runtime) Fill(d program.DType, x float64, shape ...int64) (*Tensor, error) {
	if rt.trace != nil {
		return rt.trace.constant(d, shape, x)
	}
	return rt.fromHost("Fill", d, shape, event.Activation, func(dst []byte) { exec.FillConst(dst, d, x) })
}

// fromHost makes a tensor of the host's numbers.
func (rt *Runtime) fromHost(op string, d program.DType, s program.Shape, cat event.Category, fill func([]byte)) (*Tensor, error) {
	for _, n := range s {
		if n < 0 {
			return nil, &Error{Kind: device.ValueError, Op: op, Message: "shape " + s.String() + " has a negative extent"}
		}
	}
	c := rt.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.start(); err != nil {
		return nil, err
	}
	dev, err := rt.creationDevice(op)
	if err != nil {
		return nil, err
	}
	if rt.trace != nil {
		cat = event.Constant
	}
	h, err := c.fill(op, dev, d, slices.Clone(s), cat, fill)
	if err != nil {
		return nil, err
	}
	t := rt.own(h)
	if rt.trace != nil {
		return rt.trace.capture(t, true)
	}
	return t, nil
}

// fill makes memory on a device from the host's numbers. Small integers of a
// GPU live in host memory.
func (c *core) fill(op string, dev event.DeviceID, d program.DType, s program.Shape, cat event.Category, fill func([]byte)) (*handle, error) {
	a := exec.Ask{
		Device: dev, Op: c.strings.ID(op), Tensor: c.strings.ID(op), Category: cat,
		Bytes: s.Elements() * d.Size(), Value: &program.Value{Name: op, DType: d, Shape: s, Variable: program.None, Producer: program.None},
	}
	if d == program.Int32 {
		a.Device = 0
	}
	mem, err := c.run.Fill(a, fill)
	if err != nil {
		return nil, c.wrap(op, dev, a.Value, err)
	}
	return c.newHandle(mem, dev, d, s), nil
}

// Read gives the elements to the host: it waits for the device and copies from
// it. T must be the tensor's type; a uint8 reads bools as well.
func Read[T Numbers](t *Tensor) ([]T, error) {
	if t == nil || t.h == nil {
		return nil, &Error{Kind: device.InvalidArgument, Op: "numpy", Message: "a value of a graph has no elements: return it from its function"}
	}
	if d := typeOf[T](); d != t.dtype && (t.dtype != program.Bool || d != program.Uint8) {
		return nil, &Error{Kind: device.InvalidArgument, Op: "numpy", Message: fmt.Sprintf("a tensor of %s cannot be read as %s", t.dtype, d)}
	}
	c := t.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.start(); err != nil {
		return nil, err
	}
	if t.released {
		return nil, &Error{Kind: device.FailedPrecondition, Op: "numpy", Message: "the tensor was released"}
	}
	c.drain()
	if t.h.err != nil {
		return nil, t.h.err
	}
	out := make([]T, t.shape.Elements())
	id := c.strings.ID("numpy")
	err := c.run.Read(t.h.mem, exec.Ask{Bytes: t.h.bytes(), Op: id, Tensor: id}, func(src []byte) { copy(bytesOf(out), src) })
	if err != nil {
		return nil, c.wrap("numpy", 0, nil, err)
	}
	return out, nil
}

// Scalar reads a tensor of one element as a number.
func (t *Tensor) Scalar() (float64, error) {
	if t != nil && t.shape.Elements() != 1 {
		return 0, &Error{Kind: device.ValueError, Op: "numpy", Message: "a tensor of shape " + t.shape.String() + " is no scalar"}
	}
	switch {
	case t == nil:
		return 0, &Error{Kind: device.ValueError, Op: "numpy", Message: "the tensor is nil"}
	case t.dtype == program.Float64:
		return scalarOf[float64](t)
	case t.dtype == program.Int32:
		return scalarOf[int32](t)
	case t.dtype == program.Int64:
		return scalarOf[int64](t)
	case t.dtype == program.Uint8, t.dtype == program.Bool:
		return scalarOf[uint8](t)
	}
	return scalarOf[float32](t)
}

func scalarOf[T Numbers](t *Tensor) (float64, error) {
	x, err := Read[T](t)
	if err != nil {
		return 0, err
	}
	return float64(x[0]), nil
}

// tidy is an open Tidy.
type tidy struct{ made []*Tensor }

// Tidy calls f and then releases every tensor that this context made in it,
// but for those that f returns: the end of a Python function's locals.
func (rt *Runtime) Tidy(f func() ([]*Tensor, error)) ([]*Tensor, error) {
	here := new(tidy)
	rt.tidies = append(rt.tidies, here)
	keep, err := f()
	rt.tidies = rt.tidies[:len(rt.tidies)-1]
	if err != nil {
		keep = nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for _, t := range here.made {
		if !slices.Contains(keep, t) {
			t.release()
		}
	}
	if n := len(rt.tidies); n > 0 {
		rt.tidies[n-1].made = append(rt.tidies[n-1].made, keep...)
	}
	return keep, err
}

// Must is t, or a panic with what went wrong: for examples and tests.
func Must(t *Tensor, err error) *Tensor {
	if err != nil {
		panic(err)
	}
	return t
}
