package lower

import (
	"errors"
	"fmt"
	"math"

	"tideline/native/backend/cuda/ptx"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// Kind is what a Command does.
type Kind uint8

// The kinds.
const (
	Launch  Kind = iota // Kernel with Grid, Block and Args
	Product             // a product of matrices: Gemm says which, and Launch's fields how our kernel does it
	Fill32              // Count words of Value at Dst
	Fill8               // Count bytes of Value at Dst
	Move                // Count bytes from Src to Dst, which do not overlap
)

// MaxArgs is the most arguments a kernel takes.
const MaxArgs = 20

// Command is one thing for the compute stream to do.
type Command struct {
	Kind   Kind
	Kernel int // index into Kernels
	NArgs  int
	Grid   [2]uint32 // blocks along x and y
	Block  [2]uint32 // threads along x and y
	Args   [MaxArgs]uint64
	Gemm   Gemm

	Dst, Src uint64
	Count    int64
	Value    uint32
}

// Gemm is c = a*b, plus c where Accumulate is set, for row-major matrices: a
// is M x K and b K x N once they are transposed as told.
type Gemm struct {
	A, B, C        uint64
	M, N, K        int64
	TransA, TransB bool
	Accumulate     bool
}

// Kernels are the entry points that commands launch, by index.
func Kernels() []ptx.Kernel { return kernels }

// Text is the module that holds them.
func Text() string { return text }

var (
	text, kernels = ptx.Module()
	index         = names()
)

func names() map[string]int {
	m := map[string]int{}
	for i, k := range kernels {
		m[k.Name] = i
	}
	return m
}

// ErrNoKernel is wrapped by the error of an op or type that has no kernel here.
var ErrNoKernel = errors.New("no CUDA kernel")

// Lowering makes commands. It reuses what it returns; the zero value is ready.
// Not safe for concurrent use.
type Lowering struct {
	out []Command
	k   *exec.Kernel
	at  func(exec.Ref) (uint64, error)
	err error
}

type fn func(l *Lowering)

// Supported says whether there is a way to run op.
func Supported(op program.Op) bool { return ops[op] != nil }

var ops = map[program.Op]fn{
	program.OpVariable:    func(*Lowering) {},
	program.OpConst:       (*Lowering).constant,
	program.OpAssign:      (*Lowering).assign,
	program.OpIdentity:    (*Lowering).alias,
	program.OpReshape:     (*Lowering).alias,
	program.OpBroadcastTo: (*Lowering).expand,
	program.OpCast:        (*Lowering).cast,

	program.OpMatMul:      (*Lowering).matMul,
	program.OpBiasAdd:     (*Lowering).biasAdd,
	program.OpBiasAddGrad: (*Lowering).biasAddGrad,

	program.OpConv2D:               (*Lowering).conv2D,
	program.OpConv2DBackpropInput:  (*Lowering).conv2DInput,
	program.OpConv2DBackpropFilter: (*Lowering).conv2DFilter,

	program.OpAvgPool:     pool("tl_avgpool"),
	program.OpMaxPool:     pool("tl_maxpool"),
	program.OpAvgPoolGrad: (*Lowering).avgPoolGrad,
	program.OpMaxPoolGrad: (*Lowering).maxPoolGrad,

	program.OpTanh:     elementwise("tl_tanh", 1),
	program.OpRelu:     elementwise("tl_relu", 1),
	program.OpTanhGrad: elementwise("tl_tanh_grad", 2),
	program.OpReluGrad: elementwise("tl_relu_grad", 2),

	program.OpAdd:  broadcast("tl_add"),
	program.OpSub:  broadcast("tl_sub"),
	program.OpMul:  broadcast("tl_mul"),
	program.OpAddN: (*Lowering).addN,

	program.OpSum:        func(l *Lowering) { l.reduceOp(false) },
	program.OpMean:       func(l *Lowering) { l.reduceOp(true) },
	program.OpArgMax:     (*Lowering).argMax,
	program.OpEqual:      (*Lowering).equal,
	program.OpSparseXent: (*Lowering).sparseXent,

	program.OpApplySGD:  (*Lowering).applySGD,
	program.OpApplyAdam: (*Lowering).applyAdam,
}

// Kernel gives the commands that do what k says. at gives the device address
// of a Ref. The answer is good until the next call.
func (l *Lowering) Kernel(k *exec.Kernel, at func(exec.Ref) (uint64, error)) ([]Command, error) {
	f := ops[k.Node.Op]
	if f == nil {
		return nil, fmt.Errorf("node %s: %w for %s", k.Node.Name, ErrNoKernel, k.Node.Op)
	}
	l.out, l.k, l.at, l.err = l.out[:0], k, at, nil
	f(l)
	l.k, l.at = nil, nil
	if l.err != nil {
		return nil, fmt.Errorf("node %s: %s: %w", k.Node.Name, k.Node.Op, l.err)
	}
	return l.out, nil
}

func (l *Lowering) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// in and out are device addresses, inValue and outValue what lies there.
func (l *Lowering) in(i int) uint64   { return l.address(l.k.In[i]) }
func (l *Lowering) out1(i int) uint64 { return l.address(l.k.Out[i]) }

func (l *Lowering) address(r exec.Ref) uint64 {
	if r.Bytes == 0 {
		return 0
	}
	a, err := l.at(r)
	if err != nil {
		l.fail(err)
	}
	return a
}

func (l *Lowering) inValue(i int) *program.Value {
	return &l.k.Program.Values[l.k.Node.Inputs[i]]
}

func (l *Lowering) outValue(i int) *program.Value {
	return &l.k.Program.Values[l.k.Node.Outputs[i]]
}

// floats is false, with an error noted, where a value is not float32.
func (l *Lowering) floats(values ...*program.Value) bool {
	for _, v := range values {
		if v.DType != program.Float32 {
			l.fail(fmt.Errorf("%w for %s%s", ErrNoKernel, v.DType, v.Shape))
			return false
		}
	}
	return true
}

// launch orders a kernel with one thread for each of n results.
func (l *Lowering) launch(name string, n int64, args ...uint64) {
	if n == 0 {
		return
	}
	c := l.command(Launch, name, args...)
	c.Grid = [2]uint32{uint32((n + ptx.Threads - 1) / ptx.Threads), 1}
	c.Block = [2]uint32{ptx.Threads, 1}
}

// command appends a command for a kernel, without its extents.
func (l *Lowering) command(kind Kind, name string, args ...uint64) *Command {
	i, ok := index[name]
	if !ok || len(args) != len(kernels[i].Params) {
		l.fail(fmt.Errorf("kernel %s does not take %d arguments: the module and its callers differ", name, len(args)))
		return new(Command)
	}
	l.out = append(l.out, Command{Kind: kind, Kernel: i, NArgs: len(args)})
	c := &l.out[len(l.out)-1]
	copy(c.Args[:], args)
	return c
}

// count is a number of elements that a kernel can index.
func (l *Lowering) count(n int64) uint64 {
	if n > math.MaxInt32 {
		l.fail(fmt.Errorf("%d elements are more than a kernel can index (%d)", n, math.MaxInt32))
		return 0
	}
	return uint64(n)
}

func (l *Lowering) move(dst, src uint64, bytes int64) {
	if bytes > 0 && dst != src {
		l.out = append(l.out, Command{Kind: Move, Dst: dst, Src: src, Count: bytes})
	}
}

func (l *Lowering) zero(dst uint64, elements int64) {
	if elements > 0 {
		l.out = append(l.out, Command{Kind: Fill32, Dst: dst, Count: elements})
	}
}

func (l *Lowering) constant() {
	v, x := l.outValue(0), l.k.Node.Attrs.Value
	c := Command{Kind: Fill32, Dst: l.out1(0), Count: v.Shape.Elements()}
	switch v.DType {
	case program.Float32:
		c.Value = math.Float32bits(float32(x))
	case program.Int32:
		c.Value = uint32(int32(x))
	case program.Uint8, program.Bool:
		c.Kind, c.Value = Fill8, uint32(uint8(x))
	default:
		l.fail(fmt.Errorf("%w for a constant of %s", ErrNoKernel, v.DType))
		return
	}
	if c.Count > 0 {
		l.out = append(l.out, c)
	}
}

func (l *Lowering) assign() { l.move(l.in(0), l.in(1), l.inValue(0).Bytes()) }

// alias has nothing to do where executors share the buffer, as they should.
func (l *Lowering) alias() { l.move(l.out1(0), l.in(0), l.outValue(0).Bytes()) }
