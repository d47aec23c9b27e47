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
	// Seed is the run's, Step counts from 0: random ops depend on both.
	Seed uint64
	Step int64
	// CheckNumerics makes it an error, which wraps ErrNotFinite, when an
	// output or a changed variable holds a NaN or an infinity.
	CheckNumerics bool

	entry *entry
}

// Supported says whether there is a kernel for op.
func Supported(op program.Op) bool { return kernels[op] != nil }

// Ops lists the ops that have a kernel, by name.
func Ops() []program.Op {
	return slices.Sorted(maps.Keys(kernels))
}

// Run computes one op. An error names the node and what does not fit; the
// outputs are then undefined. A panic in a kernel becomes an error.
func Run(c *Call) (err error) {
	e := kernels[c.Node.Op]
	if e == nil {
		return fmt.Errorf("node %s: no CPU kernel for %s", c.Node.Name, c.Node.Op)
	}
	if err := c.check(); err != nil {
		return err
	}
	c.entry = e
	defer func() {
		c.entry = nil
		if p := recover(); p != nil {
			err = fmt.Errorf("node %s: %s: the kernel failed: %v", c.Node.Name, c.Node.Op, p)
		}
	}()
	if e.check != nil {
		if err := e.check(c); err != nil {
			return fmt.Errorf("node %s: %s: %w", c.Node.Name, c.Node.Op, err)
		}
	}
	if err := c.compute(); err != nil {
		return fmt.Errorf("node %s: %s: %w", c.Node.Name, c.Node.Op, err)
	}
	if c.CheckNumerics {
		return c.checkNumerics()
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
	if len(v.Shape) > maxRank {
		return fmt.Errorf("node %s: %s %d has %d dimensions, at most %d are supported", c.Node.Name, what, i, len(v.Shape), maxRank)
	}
	return nil
}

// maxRank bounds the dimensions of a tensor, so that a walk over them needs no
// memory of its own.
const maxRank = 8

// inValue and outValue are the values of input and output i.
func (c *Call) inValue(i int) *program.Value  { return &c.Program.Values[c.Node.Inputs[i]] }
func (c *Call) outValue(i int) *program.Value { return &c.Program.Values[c.Node.Outputs[i]] }

// last is the extent of the last dimension of v, 1 for a scalar.
func last(v *program.Value) int {
	if len(v.Shape) == 0 {
		return 1
	}
	return int(v.Shape[len(v.Shape)-1])
}

// float is a type that kernels compute with.
type float interface{ float32 | float64 }

// number is an element type that the kernels know.
type number interface {
	float32 | float64 | int32 | int64 | uint8
}

// unit is a type of every size that elements have, for kernels that only move
// them.
type unit interface {
	uint8 | uint16 | uint32 | uint64
}

// in and out give the elements of input and output i.
func in[T number | unit](c *Call, i int) []T {
	return elements[T](c.In[i])[:c.inValue(i).Shape.Elements()]
}

func out[T number | unit](c *Call, i int) []T {
	return elements[T](c.Out[i])[:c.outValue(i).Shape.Elements()]
}

// elements gives a buffer as numbers.
func elements[T number | unit](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

// Bytes gives the memory of a slice of numbers, for callers that hold tensors
// in Go slices.
func Bytes[T float32 | float64 | int32 | int64 | uint8 | uint16](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// Floats gives memory as float32 numbers, the inverse of Bytes. The memory
// must be aligned to four bytes.
func Floats(b []byte) []float32 { return elements[float32](b) }

// Doubles gives memory as float64 numbers. The memory must be aligned to eight
// bytes.
func Doubles(b []byte) []float64 { return elements[float64](b) }

// Ints gives memory as int64 numbers, as labels are. The memory must be
// aligned to eight bytes.
func Ints(b []byte) []int64 { return elements[int64](b) }

// index is element r of input i, which holds int32 or int64.
func (c *Call) index(i, r int) int64 {
	if c.inValue(i).DType == program.Int32 {
		return int64(elements[int32](c.In[i])[r])
	}
	return elements[int64](c.In[i])[r]
}
