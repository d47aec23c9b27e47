package bench

import (
	"encoding/binary"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/yardstick"
)

// extents are those of a matrix product: m x k times k x n.
type extents struct{ m, k, n int }

func (e extents) flops() float64 { return 2 * float64(e.m) * float64(e.k) * float64(e.n) }

// kernels are matrix products and convolutions of ResNet-50 for one image (the
// last layer for 32), beside the same product by the yardstick's BLAS.
func kernels(*Options) ([]*task, []Line, error) {
	var tasks []*task
	for _, x := range []struct {
		name string
		extents
	}{
		{"512 x 512 x 512", extents{512, 512, 512}},
		{"3136 x 64 x 256", extents{3136, 64, 256}},
		{"196 x 2304 x 256", extents{196, 2304, 256}},
		{"32 x 2048 x 1000", extents{32, 2048, 1000}},
	} {
		run, err := product(x.extents)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, beside("matrix product "+x.name, x.extents, run)...)
	}
	for _, x := range []struct {
		name          string
		side, in, out int64
		filter        int64
		stride        int64
	}{
		{"7x7, 3 to 64 of 224x224", 224, 3, 64, 7, 2},
		{"1x1, 64 to 256 of 56x56", 56, 64, 256, 1, 1},
		{"3x3, 64 to 64 of 56x56", 56, 64, 64, 3, 1},
		{"3x3, 512 to 512 of 7x7", 7, 512, 512, 3, 1},
	} {
		run, err := convolution(x.side, x.in, x.out, x.filter, x.stride)
		if err != nil {
			return nil, nil, err
		}
		side := int((x.side + x.stride - 1) / x.stride)
		e := extents{side * side, int(x.filter * x.filter * x.in), int(x.out)}
		tasks = append(tasks, beside("convolution "+x.name, e, run)...)
	}
	return tasks, []Line{{What: "the yardstick is " + yardBLAS, Note: yardHow}}, nil
}

// beside pairs a task with the plain product of the same extents.
func beside(name string, e extents, run func() error) []*task {
	a, b, c := numbers(e.m*e.k), numbers(e.k*e.n), make([]float32, e.m*e.n)
	to := yardBLAS + ", for the " + name
	tasks := plain(
		yardstick.Task{Name: to, Per: "call", N: 1, Plain: true, Run: func() error {
			sgemm(e.m, e.n, e.k, a, b, c)
			return nil
		}},
		yardstick.Task{Name: name, Per: "call", N: 1, To: to, Run: run},
	)
	for _, t := range tasks {
		t.beside = func() string { return fmt.Sprintf("%.1f GFLOP/s", e.flops()/t.nanos) }
	}
	return tasks
}

// plainGonum is the product as gonum computes it by itself.
func plainGonum(m, n, k int, a, b, c []float32) {
	gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, a, k, b, n, 0, c, n)
}

func numbers(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%17)/16 - 0.5
	}
	return x
}

func product(e extents) (func() error, error) {
	return call(program.OpMatMul, program.Attrs{}, program.Shape{int64(e.m), int64(e.k)}, program.Shape{int64(e.k), int64(e.n)})
}

func convolution(side, in, out, filter, stride int64) (func() error, error) {
	return call(program.OpConv2D, program.Attrs{Strides: [2]int64{stride, stride}, Padding: program.Same},
		program.Shape{1, side, side, in}, program.Shape{filter, filter, in, out})
}

// call is one op on float32 inputs of these shapes, with its workspace.
func call(op program.Op, at program.Attrs, shapes ...program.Shape) (func() error, error) {
	b := program.NewBuilder("op", 1)
	var in []program.ValueID
	var buffers [][]byte
	for i, s := range shapes {
		in = append(in, b.Input(fmt.Sprintf("x%d", i), program.Float32, s))
		buffers = append(buffers, encoded(numbers(int(s.Elements()))))
	}
	b.Op(op, at, in...)
	p, err := b.Build()
	if err != nil {
		return nil, err
	}
	def, err := program.Lookup(op)
	if err != nil {
		return nil, err
	}
	n := &p.Nodes[len(p.Nodes)-1]
	c := &kernel.Call{Program: p, Node: n, In: buffers, Out: [][]byte{make([]byte, p.Values[n.Outputs[0]].Bytes())}}
	if def.Workspace != nil {
		c.Temp = make([]byte, def.Workspace(p, n))
	}
	return func() error { return kernel.Run(c) }, nil
}

func encoded(x []float32) []byte {
	out := make([]byte, 0, 4*len(x))
	for _, v := range x {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
