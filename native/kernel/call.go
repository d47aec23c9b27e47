package kernel

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"tideline/shared/program"
)

// Call is one op on buffers. In and Out have one buffer per input and output
// of Node, at least as long as the value; the buffer of a variable is the
// variable's memory, and Apply ops and Assign write into it. Out of an op that
// aliases its input (Reshape, Identity) is that input's buffer. Buffers of
// numbers must be aligned to the number's size.
type Call struct {
	Program *program.Program
	Node    *program.Node
	In, Out [][]byte
	// Temp is the op's workspace, as many bytes as its Workspace rule asks for
	// or nil. Without it a convolution takes a slower direct way, whose sums
	// round differently.
	Temp []byte
}

type fn func(c *Call) error

var kernels = map[program.Op]fn{
	program.OpVariable:    func(*Call) error { return nil },
	program.OpConst:       constant,
	program.OpAssign:      assign,
	program.OpIdentity:    alias,
	program.OpReshape:     alias,
	program.OpBroadcastTo: broadcastTo,
	program.OpCast:        cast,

	program.OpMatMul:      matMul,
	program.OpBiasAdd:     biasAdd,
	program.OpBiasAddGrad: biasAddGrad,

	program.OpConv2D:               conv2D,
	program.OpConv2DBackpropInput:  conv2DBackpropInput,
	program.OpConv2DBackpropFilter: conv2DBackpropFilter,

	program.OpAvgPool:     avgPool,
	program.OpMaxPool:     maxPool,
	program.OpAvgPoolGrad: avgPoolGrad,
	program.OpMaxPoolGrad: maxPoolGrad,

	program.OpTanh:     tanh,
	program.OpRelu:     relu,
	program.OpTanhGrad: tanhGrad,
	program.OpReluGrad: reluGrad,

	program.OpAdd:  add,
	program.OpSub:  sub,
	program.OpMul:  mul,
	program.OpAddN: addN,

	program.OpSum:        sum,
	program.OpMean:       mean,
	program.OpArgMax:     argMax,
	program.OpEqual:      equal,
	program.OpSparseXent: sparseXent,

	program.OpApplySGD:  applySGD,
	program.OpApplyAdam: applyAdam,
}

// Supported says whether there is a kernel for op on values of p's types.
func Supported(op program.Op) bool { return kernels[op] != nil }

// Run computes one op. An error names the node and what does not fit; the
// outputs are then undefined.
func Run(c *Call) error {
	k := kernels[c.Node.Op]
	if k == nil {
		return fmt.Errorf("node %s: no CPU kernel for %s", c.Node.Name, c.Node.Op)
	}
	if err := c.check(); err != nil {
		return err
	}
	if err := k(c); err != nil {
		return fmt.Errorf("node %s: %s: %w", c.Node.Name, c.Node.Op, err)
	}
	return nil
}

// check holds buffers against the values they stand for, so that kernels can
// index without looking.
func (c *Call) check() error {
	if len(c.In) != len(c.Node.Inputs) || len(c.Out) != len(c.Node.Outputs) {
		return fmt.Errorf("node %s: %d inputs and %d outputs given, %s has %d and %d",
			c.Node.Name, len(c.In), len(c.Out), c.Node.Op, len(c.Node.Inputs), len(c.Node.Outputs))
	}
	for i, v := range c.Node.Inputs {
		if err := c.checkBuffer("input", i, c.In[i], &c.Program.Values[v]); err != nil {
			return err
		}
	}
	if c.Node.Op == program.OpVariable {
		return nil
	}
	for i, v := range c.Node.Outputs {
		if err := c.checkBuffer("output", i, c.Out[i], &c.Program.Values[v]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) checkBuffer(what string, i int, b []byte, v *program.Value) error {
	if int64(len(b)) < v.Bytes() {
		return fmt.Errorf("node %s: %s %d has %d bytes, %s%s needs %d", c.Node.Name, what, i, len(b), v.DType, v.Shape, v.Bytes())
	}
	if len(b) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(v.DType.Size()) != 0 {
		return fmt.Errorf("node %s: %s %d is not aligned to its %d bytes an element", c.Node.Name, what, i, v.DType.Size())
	}
	return nil
}

// inValue and outValue are the values of input and output i.
func (c *Call) inValue(i int) *program.Value  { return &c.Program.Values[c.Node.Inputs[i]] }
func (c *Call) outValue(i int) *program.Value { return &c.Program.Values[c.Node.Outputs[i]] }

// in and out give the elements of input and output i as float32.
func (c *Call) in(i int) []float32  { return view[float32](c.In[i], c.inValue(i)) }
func (c *Call) out(i int) []float32 { return view[float32](c.Out[i], c.outValue(i)) }

// number is an element type that the kernels know.
type number interface {
	float32 | float64 | int32 | int64 | uint8
}

// view gives the elements of v in buffer b.
func view[T number](b []byte, v *program.Value) []T { return elements[T](b)[:v.Shape.Elements()] }

// elements gives a buffer as numbers.
func elements[T number](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// Bytes gives the memory of a slice of numbers, for callers that hold tensors
// in Go slices.
func Bytes[T float32 | float64 | int32 | int64 | uint8](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// Floats gives memory as float32 numbers, the inverse of Bytes. The memory
// must be aligned to four bytes.
func Floats(b []byte) []float32 { return elements[float32](b) }

// Ints gives memory as int64 numbers, as labels are. The memory must be
// aligned to eight bytes.
func Ints(b []byte) []int64 { return elements[int64](b) }

// Ops lists the ops that have a kernel, by name.
func Ops() []program.Op {
	return slices.Sorted(maps.Keys(kernels))
}
