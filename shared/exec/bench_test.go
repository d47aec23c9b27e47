package exec_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// stepping is a runtime that runs a program's steps and drops what it tells.
func stepping(tb testing.TB, m exec.Mode, p *program.Program, options ...func(*exec.Config)) (step func()) {
	tb.Helper()
	b := newBenchWith(tb, 120<<30, func(c *exec.Config) {
		c.Mode = m
		for _, o := range options {
			o(c)
		}
		c.Sink = event.SinkFunc(func(*event.Event) {})
	})
	plan, err := b.rt.Compile(p, nil, true)
	if err != nil {
		tb.Fatal(err)
	}
	step = func() { b.step(plan) }
	for range 3 { // what a run makes once
		step()
	}
	return step
}

func training(tb testing.TB, model string, batch int) *program.Program {
	tb.Helper()
	p, err := zoo.Program(model, zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

var allModes = []exec.Mode{exec.Graph, exec.Eager, exec.Planned}

func TestASteadyStepAllocatesNothing(t *testing.T) {
	options := []func(*exec.Config){
		func(*exec.Config) {},
		func(c *exec.Config) { c.PrefetchToDevice = 2 },
		func(c *exec.Config) { c.DeferredDeletion, c.Timestamps = 8*mib, &exec.Timestamps{} },
		func(c *exec.Config) { c.FreeTapeGradually, c.Async, c.Autotune = true, true, true },
	}
	for _, m := range allModes {
		for i, o := range options {
			if n := testing.AllocsPerRun(10, stepping(t, m, training(t, "lenet5", 32), o)); n != 0 {
				t.Errorf("%s, options %d: a steady step makes %v heap allocations, want none", m, i, n)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, model := range []string{"lenet5", "resnet50"} {
		p := training(b, model, 32)
		for _, m := range allModes {
			b.Run(model+"/"+m.String(), func(b *testing.B) {
				step := stepping(b, m, p)
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
				b.ReportMetric(float64(len(p.Nodes)), "ops/op")
				b.ReportMetric(float64(len(p.Nodes))*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			})
		}
	}
}

// BenchmarkSmallOp is the dispatch of one small op, with the events of its
// memory and its time.
func BenchmarkSmallOp(b *testing.B) {
	for _, m := range allModes {
		b.Run(m.String(), func(b *testing.B) {
			const ops = 1000
			pb := program.NewBuilder("chain", 1)
			x := pb.Input("x", program.Float32, program.Shape{1, 64})
			for range ops {
				x = pb.Op(program.OpTanh, program.Attrs{}, x)
			}
			pb.Fetch("x", x)
			p, err := pb.Build()
			if err != nil {
				b.Fatal(err)
			}
			step := stepping(b, m, p)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ops, "ns/small-op")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, model := range []string{"lenet5", "resnet50", "bert-base"} {
		if _, err := zoo.Find(model); err != nil {
			continue
		}
		p := training(b, model, 32)
		for _, m := range allModes {
			rt := newBenchWith(b, 120<<30, func(c *exec.Config) {
				c.Mode = m
				c.Sink = event.SinkFunc(func(*event.Event) {})
			})
			b.Run(model+"/"+m.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := rt.rt.Compile(p, nil, true); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(p.Nodes)), "nodes")
			})
		}
		b.Run(model+"/place", func(b *testing.B) {
			devices := newBenchWith(b, 120<<30, func(c *exec.Config) {}).devices
			for b.Loop() {
				if _, err := place.Place(p, devices, nil, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstPlannedStep is compiling, planning the arena, and a step.
func BenchmarkFirstPlannedStep(b *testing.B) {
	for _, model := range []string{"lenet5", "resnet50", "gpt2-xl"} {
		p := training(b, model, 1)
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rt := newBenchWith(b, 120<<30, func(c *exec.Config) {
					c.Mode = exec.Planned
					c.Sink = event.SinkFunc(func(*event.Event) {})
				})
				plan, err := rt.rt.Compile(p, nil, true)
				if err != nil {
					b.Fatal(err)
				}
				rt.step(plan)
			}
		})
	}
}

// calling is one small op called by itself, its result dropped at once.
func calling(tb testing.TB) (call func()) {
	tb.Helper()
	b := newBenchWith(tb, 64*mib, func(c *exec.Config) {
		c.Mode = exec.Eager
		c.Sink = event.SinkFunc(func(*event.Event) {})
	})
	pb := program.NewBuilder("op", 1)
	pb.Op(program.OpTanh, program.Attrs{}, pb.Input("x", program.Float32, program.Shape{64}))
	p, err := pb.Build()
	if err != nil {
		tb.Fatal(err)
	}
	op, err := b.rt.Prepare(p, 0, gpu)
	if err != nil {
		tb.Fatal(err)
	}
	in, out := []exec.Handle{b.take(gpu, 256, "x")}, make([]exec.Handle, 1)
	n := 0
	return func() {
		if err := b.rt.Do(op, in, out); err != nil {
			tb.Fatal(err)
		}
		b.rt.Drop(out[0])
		if n++; n%1000 == 0 {
			if err := b.rt.Sync(); err != nil { // so that the queue of events to tell does not grow
				tb.Fatal(err)
			}
		}
	}
}

func TestCallingAnOpAllocatesNothing(t *testing.T) {
	call := calling(t)
	for range 3000 {
		call()
	}
	if n := testing.AllocsPerRun(2000, call); n != 0 {
		t.Errorf("a call makes %v heap allocations, want none", n)
	}
}

func BenchmarkCall(b *testing.B) {
	call := calling(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}
