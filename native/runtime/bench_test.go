package runtime

import (
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/protocol/event"
	"tideline/shared/program"
)

// nowhere drops events.
type nowhere struct{}

func (nowhere) Emit(*event.Event) {}

func benchRuntime(b *testing.B, cards ...string) *Runtime {
	b.Helper()
	rt, err := New(Options{GPUs: cards, Backend: vgpu.New(), Sink: nowhere{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(rt.Close)
	return rt
}

// BenchmarkEagerOp is the cost of one small op: dispatch, allocation, events
// and a sum of two numbers.
func BenchmarkEagerOp(b *testing.B) {
	for name, cards := range map[string][]string{"cpu": nil, "gpu": {"t4-16g"}} {
		b.Run(name, func(b *testing.B) {
			rt := benchRuntime(b, cards...)
			x := Must(Constant(rt, []float32{1}))
			y := Must(Constant(rt, []float32{2}))
			b.ReportAllocs()
			for b.Loop() {
				Must(rt.Add(x, y)).Release()
			}
		})
	}
}

// BenchmarkEagerGradient is a product with its gradients, under a tape.
func BenchmarkEagerGradient(b *testing.B) {
	rt := benchRuntime(b, "t4-16g")
	x := Must(Constant(rt, []float32{1}))
	y := Must(Constant(rt, []float32{2}))
	b.ReportAllocs()
	for b.Loop() {
		t := rt.Tape(false)
		t.Watch(x)
		z := Must(rt.Mul(x, y))
		g, err := t.Gradient(z, x)
		if err != nil {
			b.Fatal(err)
		}
		g[0].Release()
		z.Release()
	}
}

// BenchmarkFunctionCall is a call of a traced function of ten small ops.
func BenchmarkFunctionCall(b *testing.B) {
	rt := benchRuntime(b, "t4-16g")
	f := rt.Function("f", func(args ...any) ([]*Tensor, error) {
		x := args[0].(*Tensor)
		for range 10 {
			x = Must(rt.Add(x, x))
		}
		return []*Tensor{x}, nil
	})
	x := Must(Constant(rt, []float32{1}))
	b.ReportAllocs()
	for b.Loop() {
		out, err := f.Call(x)
		if err != nil {
			b.Fatal(err)
		}
		out[0].Release()
	}
}

// BenchmarkAssignAdd changes a variable in place.
func BenchmarkAssignAdd(b *testing.B) {
	rt := benchRuntime(b, "t4-16g")
	v, err := rt.NewVariable("v", VariableOptions{Shape: program.Shape{16}})
	if err != nil {
		b.Fatal(err)
	}
	x := Must(rt.Fill(program.Float32, 1, 16))
	b.ReportAllocs()
	for b.Loop() {
		if err := rt.AssignAdd(v, x); err != nil {
			b.Fatal(err)
		}
	}
}
