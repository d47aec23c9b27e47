package kernel_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
	"tideline/shared/rewrite"
	"tideline/shared/zoo"
)

// memoryRewrites are what trades memory, and the general passes.
func memoryRewrites(blocks []string, peak int64) map[string]rewrite.Options {
	return map[string]rewrite.Options{
		"general passes":  {},
		"every block":     {Checkpoint: rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: blocks}},
		"sqrt of blocks":  {Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks, Blocks: blocks}},
		"sqrt of cuts":    {Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks}},
		"selective":       {Checkpoint: rewrite.Checkpoint{Mode: rewrite.Selective}},
		"heuristics":      {Recompute: rewrite.RecomputeHeuristics},
		"swap all":        {Swap: rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 1}},
		"sums and swap":   {DeviceBytes: peak * 3 / 4, Swap: rewrite.Swap{Mode: rewrite.SwapHeuristics, Nanos: slowNodes}},
		"sqrt, then swap": {Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks, Blocks: blocks}, Swap: rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 2}},
	}
}

// slowNodes makes tensors live long enough to be worth swapping.
func slowNodes(*program.Program, *program.Node) int64 { return 1_000_000 }

// outcome is the fetches of every step and the variables after the last.
func outcome(t *testing.T, p *program.Program, inputs []zoo.Input, steps int) [][]byte {
	t.Helper()
	m := newMachine(t, p, 5)
	r := rand.New(rand.NewPCG(5, 5))
	var out [][]byte
	for range steps {
		for i, v := range p.Inputs {
			fillInput(m.values[v], &p.Values[v], inputs[i].Below, r)
		}
		m.step(t)
		m.advance()
		for _, f := range p.Fetches {
			out = append(out, bytes.Clone(m.values[f.Value][:p.Values[f.Value].Bytes()]))
		}
	}
	return append(out, m.vars...)
}

func fillInput(b []byte, v *program.Value, below int64, r *rand.Rand) {
	for i := range v.Shape.Elements() {
		switch v.DType {
		case program.Float32:
			kernel.Floats(b)[i] = r.Float32()
		case program.Int64:
			kernel.Ints(b)[i] = r.Int64N(below)
		case program.Int32:
			x := uint32(r.Int64N(below))
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
		default: // no model reads anything else
		}
	}
}

// Whatever is recomputed, swapped or simplified: losses, and the weights after
// some steps, are the same to the bit, with dropout's masks and batch norm's
// moving statistics among what must agree.
func TestRewrittenModelsTrainTheSame(t *testing.T) {
	for _, c := range []struct {
		model string
		opt   zoo.Options
		only  []string // of memoryRewrites; nil: all
	}{
		{"mlp", zoo.Options{Batch: 3, Optimizer: "sgd"}, nil},
		{"lenet5", zoo.Options{Batch: 2, Optimizer: "adam"}, nil},
		{"resnet18", zoo.Options{Batch: 1, Image: 32, Classes: 10, Optimizer: "sgd"}, []string{"sqrt of blocks", "selective"}},
		{"bert-2layer", zoo.Options{Batch: 2, Sequence: 16, Optimizer: "adam", Clip: 1}, nil},
		{"bert-2layer", zoo.Options{Batch: 2, Sequence: 16, Optimizer: "adam", Precision: "mixed_float16"}, nil},
		{"lstm", zoo.Options{Batch: 1, Sequence: 4, Optimizer: "sgd"}, nil},
	} {
		c.opt.Train = true
		t.Run(c.model+" "+c.opt.Precision, func(t *testing.T) {
			if c.only != nil && testing.Short() {
				t.Skip("the large model is for go test without -short")
			}
			b, err := zoo.Build(c.model, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			const steps = 2
			want := outcome(t, b.Program, b.Inputs, steps)
			peak, _ := rewrite.LiveBytes(b.Program)
			for name, o := range memoryRewrites(b.Blocks, peak) {
				if c.only != nil && !slices.Contains(c.only, name) {
					continue
				}
				q, notes, err := rewrite.Optimize(b.Program, o)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				got := outcome(t, q, b.Inputs, steps)
				for i := range want {
					if !bytes.Equal(got[i], want[i]) {
						t.Errorf("%s: result %d of %d differs\n%v", name, i, len(want), notes)
						break
					}
				}
			}
		})
	}
}

// The checklist's chain of 100 equal layers with every 10th kept: loss,
// gradients and updated weights are the same to the bit.
func TestCheckpointedChainOfHundredLayersTrainsTheSame(t *testing.T) {
	b := program.NewBuilder("chain", 8)
	x := b.Input("x", program.Float32, shape{8, 16})
	var blocks []string
	var weights []program.ValueID
	for i := range 100 {
		blocks = append(blocks, fmt.Sprintf("layer%d", i))
		leave := b.Scope(blocks[i])
		w := b.Variable("w", shape{16, 16}, program.Init{Kind: program.InitUniform, Scale: 0.4})
		x = b.Op(program.OpTanh, attrs{}, b.Op(program.OpMatMul, attrs{}, x, w))
		weights = append(weights, w)
		leave()
	}
	loss := b.Op(program.OpSum, attrs{}, b.Op(program.OpSquare, attrs{}, x))
	b.Fetch("loss", loss)
	grads := b.Gradients(loss, weights)
	for i, g := range grads {
		b.Fetch(fmt.Sprint("gradient ", i), g)
	}
	b.SGD(0.5, weights, grads)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	inputs := []zoo.Input{{Name: "x"}}
	want := outcome(t, p, inputs, 3)
	q, copies, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 10, Blocks: blocks})
	if err != nil || copies != 180 {
		t.Fatalf("%d copies, %v", copies, err)
	}
	for i, got := range outcome(t, q, inputs, 3) {
		if !bytes.Equal(got, want[i]) {
			t.Fatalf("result %d differs", i)
		}
	}
}

// Four batches of 2, their gradients accumulated, train as one batch of 8
// does: the same losses and weights but for rounding, also with gradients that
// are rows of a table, a clipped norm and a loss scale.
func TestAccumulatedGradientsTrainLikeOneBatch(t *testing.T) {
	for _, c := range []struct {
		model string
		opt   zoo.Options
		near  float64
		again rewrite.CheckpointMode
	}{
		{"mlp", zoo.Options{Optimizer: "sgd"}, 1e-5, rewrite.KeepAll},
		{"lenet5", zoo.Options{Optimizer: "momentum", Clip: 0.1}, 1e-5, rewrite.SqrtBlocks},
		{"bert-2layer", zoo.Options{Optimizer: "sgd", Sequence: 8}, 1e-5, rewrite.Selective},
		{"bert-2layer", zoo.Options{Optimizer: "sgd", Sequence: 8, Clip: 1}, 1e-2, rewrite.KeepAll}, // rows with one index are squared apart or as their sum
		{"bert-2layer", zoo.Options{Optimizer: "rmsprop", Sequence: 8}, 1e-2, rewrite.SqrtBlocks},
		{"bert-2layer", zoo.Options{Optimizer: "sgd", Sequence: 8, Precision: "mixed_float16"}, 2e-2, rewrite.KeepAll},
		{"lstm", zoo.Options{Optimizer: "sgd", Sequence: 4}, 1e-5, rewrite.SqrtBlocks},
	} {
		t.Run(c.model+" "+c.opt.Optimizer+" "+c.opt.Precision, func(t *testing.T) {
			c.opt.Train, c.opt.NoDropout = true, true
			build := func(batch int) *zoo.Built {
				c.opt.Batch = batch
				b, err := zoo.Build(c.model, c.opt)
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			whole, part := build(8), build(2)
			q, _, err := rewrite.Optimize(part.Program, rewrite.Options{Microbatches: 4, Checkpoint: rewrite.Checkpoint{Mode: c.again}})
			if err != nil || q.Batch != 8 {
				t.Fatal(q, err)
			}
			want, got := outcome(t, whole.Program, whole.Inputs, 2), outcome(t, q, part.Inputs, 2)
			moved := 0.0
			for i := range want {
				v := program.Float32
				if n := len(want) - len(q.Variables); i >= n {
					v = q.Variables[i-n].DType
				}
				if v != program.Float32 {
					continue
				}
				a, b := kernel.Floats(want[i]), kernel.Floats(got[i])
				for j := range a {
					moved = max(moved, math.Abs(float64(a[j])))
					if d := math.Abs(float64(a[j]) - float64(b[j])); !(d <= c.near*(1+math.Abs(float64(a[j])))) {
						t.Fatalf("result %d of %d, element %d: %v, in one batch %v", i, len(want), j, b[j], a[j])
					}
				}
			}
			if moved == 0 {
				t.Error("nothing was computed")
			}
		})
	}
}
