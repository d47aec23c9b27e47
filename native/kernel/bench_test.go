package kernel_test

import (
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

func benchmarkOp(b *testing.B, d program.DType, o program.Op, at attrs, in ...arg) {
	b.Helper()
	r := (&opCase{op: o, at: at, in: in}).prepare(b, d)
	run(b, r.c)
	b.ReportAllocs()
	for b.Loop() {
		run(b, r.c)
	}
	cost := r.p.Cost(r.c.Node)
	b.ReportMetric(float64(cost.FLOPs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(float64(cost.Bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}

// The library is part of the name, so that runs with another build tag can be
// laid side by side.
func BenchmarkMatMul(b *testing.B) {
	for _, c := range []struct {
		name string
		d    program.DType
		at   attrs
		n    int64
	}{
		{"512", program.Float32, attrs{}, 512},
		{"512 transposed", program.Float32, attrs{TransposeA: true, TransposeB: true}, 512},
		{"1024", program.Float32, attrs{}, 1024},
		{"512 double", program.Float64, attrs{}, 512},
		{"512 bfloat16", program.BFloat16, attrs{}, 512},
	} {
		b.Run(c.name+" "+kernel.BLAS, func(b *testing.B) {
			benchmarkOp(b, c.d, program.OpMatMul, c.at, x(c.n, c.n), x(c.n, c.n))
		})
	}
}

// The convolutions of ResNet-50 at 224 pixels, one sample, and LeNet's.
func BenchmarkConv2D(b *testing.B) {
	for _, c := range []struct {
		name          string
		image, filter shape
		stride        int64
	}{
		{"7x7 of 3", shape{1, 224, 224, 3}, shape{7, 7, 3, 64}, 2},
		{"1x1 of 64", shape{1, 56, 56, 64}, shape{1, 1, 64, 256}, 1},
		{"3x3 of 64", shape{1, 56, 56, 64}, shape{3, 3, 64, 64}, 1},
		{"3x3 of 512", shape{1, 7, 7, 512}, shape{3, 3, 512, 512}, 1},
		{"LeNet 2", shape{32, 14, 14, 6}, shape{5, 5, 6, 16}, 1},
	} {
		at := attrs{Strides: [2]int64{c.stride, c.stride}, Padding: program.Same}
		oh, _ := padding(c.image[1], c.filter[0], c.stride, program.Same)
		y := x(c.image[0], oh, oh, c.filter[3])
		b.Run(c.name+" "+kernel.BLAS, func(b *testing.B) {
			benchmarkOp(b, program.Float32, program.OpConv2D, at, x(c.image...), x(c.filter...))
		})
		b.Run(c.name+" to input "+kernel.BLAS, func(b *testing.B) {
			at := at
			at.Shape = c.image
			benchmarkOp(b, program.Float32, program.OpConv2DBackpropInput, at, x(c.filter...), y)
		})
		b.Run(c.name+" to filter "+kernel.BLAS, func(b *testing.B) {
			at := at
			at.Shape = c.filter
			benchmarkOp(b, program.Float32, program.OpConv2DBackpropFilter, at, x(c.image...), y)
		})
	}
}

func BenchmarkElementwise(b *testing.B) {
	const n = 1 << 20
	for _, c := range []struct {
		op program.Op
		at attrs
		in []arg
	}{
		{program.OpAdd, attrs{}, []arg{x(n), x(n)}},
		{program.OpMul, attrs{}, []arg{x(1024, 1024), x(1024)}},
		{program.OpRelu, attrs{}, []arg{x(n)}},
		{program.OpTanh, attrs{}, []arg{x(n)}},
		{program.OpGelu, attrs{}, []arg{x(n)}},
		{program.OpSoftmax, attrs{}, []arg{x(1024, 1024)}},
		{program.OpSum, attrs{Axes: []int64{0}}, []arg{x(1024, 1024)}},
		{program.OpSum, attrs{Axes: []int64{1}}, []arg{x(1024, 1024)}},
		{program.OpLayerNorm, attrs{Value: 1e-5}, []arg{x(1024, 1024), x(1024), x(1024)}},
		{program.OpFusedBatchNorm, attrs{Value: 1e-5, Training: true}, []arg{x(16, 32, 32, 64), x(64), x(64), x(64), x(64)}},
		{program.OpDropout, attrs{Value: 0.1}, []arg{x(n)}},
		{program.OpTranspose, attrs{Axes: []int64{0, 2, 1, 3}}, []arg{x(8, 128, 12, 64)}},
	} {
		b.Run((&opCase{op: c.op, in: c.in}).String(), func(b *testing.B) {
			benchmarkOp(b, program.Float32, c.op, c.at, c.in...)
		})
	}
	b.Run("AddV2 bfloat16", func(b *testing.B) { benchmarkOp(b, program.BFloat16, program.OpAdd, attrs{}, x(n), x(n)) })
	b.Run("AddV2 float16", func(b *testing.B) { benchmarkOp(b, program.Float16, program.OpAdd, attrs{}, x(n), x(n)) })
}

// A call of an op on little data: what the machinery costs.
func BenchmarkSmallCall(b *testing.B) {
	benchmarkOp(b, program.Float32, program.OpAdd, attrs{}, x(4), x(4))
}

func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		model string
		batch int
	}{{"mlp", 32}, {"lenet5", 32}, {"bert-2layer", 8}} {
		b.Run(c.model+" "+kernel.BLAS, func(b *testing.B) {
			p, err := zoo.Program(c.model, zoo.Options{Batch: c.batch, Train: true, Optimizer: "adam"})
			if err != nil {
				b.Fatal(err)
			}
			m := newMachine(b, p, 1)
			b.ReportAllocs()
			for b.Loop() {
				m.step(b)
			}
			work := p.TotalCost(program.Forward).FLOPs + p.TotalCost(program.Backward).FLOPs + p.TotalCost(program.Update).FLOPs
			b.ReportMetric(float64(work)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
