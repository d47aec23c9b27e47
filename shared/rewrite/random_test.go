package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// random makes a training step over matrices of one size, with constants,
// aliases, things computed twice, things that change nothing, and values that
// are read any number of times.
func random(tb testing.TB, seed uint64) *program.Program {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 5))
	b := program.NewBuilder("random", 1)
	m := program.Shape{17, 17} // more than the 1024 bytes below which nothing is swapped
	x := b.Input("x", program.Float32, m)
	weights := []program.ValueID{
		b.Variable("v", m, program.Init{Kind: program.InitUniform, Scale: 1}),
		b.Variable("w", m, program.Init{Kind: program.InitUniform, Scale: 1}),
	}
	values := []program.ValueID{
		x, b.Const("one", program.Float32, nil, 1), b.Const("two", program.Float32, m, 2),
		b.Op(program.OpMatMul, program.Attrs{}, x, weights[0]), b.Op(program.OpMatMul, program.Attrs{}, x, weights[1]),
	}
	pick := func() program.ValueID { return values[r.IntN(len(values))] }
	matrix := func() program.ValueID {
		for {
			if v := values[max(0, len(values)-1-r.IntN(6))]; len(b.Shape(v)) == 2 {
				return v
			}
		}
	}
	ones := []program.Op{program.OpRelu, program.OpTanh, program.OpSquare, program.OpNeg, program.OpIdentity}
	twos := []program.Op{program.OpAdd, program.OpSub, program.OpMul}
	for i := range 10 + r.IntN(30) {
		leave := b.Scope(fmt.Sprintf("block%d", i/5))
		v := matrix()
		switch r.IntN(8) {
		case 0, 1, 2:
			v = b.Op(ones[r.IntN(len(ones))], program.Attrs{}, v)
		case 3:
			v = b.Op(twos[r.IntN(len(twos))], program.Attrs{}, v, v)
		case 4:
			v = b.Op(program.OpReshape, program.Attrs{Shape: m}, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{289}}, v))
		case 5:
			v = b.Op(program.OpMatMul, program.Attrs{TransposeB: r.IntN(2) == 0}, v, weights[r.IntN(2)])
		case 6:
			v = b.Op(program.OpTranspose, program.Attrs{Axes: []int64{1, 0}}, b.Op(program.OpTranspose, program.Attrs{Axes: []int64{1, 0}}, v))
		default:
			v = b.Op(twos[r.IntN(len(twos))], program.Attrs{}, v, matrix())
		}
		leave()
		values = append(values, v)
	}
	last := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpAdd, program.Attrs{}, values[len(values)-1], values[4]))
	last = b.Op(program.OpMul, program.Attrs{}, last, values[3])
	loss := b.Op(program.OpSum, program.Attrs{}, last)
	b.Fetch("loss", loss)
	grads := b.Gradients(loss, weights)
	b.SGD(0.5, weights, grads)
	b.Fetch("middle", pick())
	p, err := b.Build()
	if err != nil {
		tb.Fatalf("seed %d: %v", seed, err)
	}
	return p
}

// rewrites are all passes by name, in the forms that a random program can bear.
var rewrites = []struct {
	name string
	run  func(p *program.Program) (*program.Program, int, error)
}{
	{"prune", rewrite.Prune},
	{"fold", func(p *program.Program) (*program.Program, int, error) {
		out, n, _, err := rewrite.FoldConstants(p)
		return out, n, err
	}},
	{"remap", rewrite.Remap},
	{"arithmetic", rewrite.Arithmetic},
	{"dependencies", rewrite.Dependencies},
	{"checkpoint 1", checkpoint(rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1})},
	{"checkpoint sqrt", checkpoint(rewrite.Checkpoint{Mode: rewrite.SqrtBlocks})},
	{"checkpoint scopes", checkpoint(rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: []string{"block0", "block1"}})},
	{"selective", checkpoint(rewrite.Checkpoint{Mode: rewrite.Selective})},
	{"recompute heuristics", func(p *program.Program) (*program.Program, int, error) {
		return rewrite.Recompute(p, rewrite.RecomputeHeuristics, nil)
	}},
	{"recompute manual", func(p *program.Program) (*program.Program, int, error) {
		return rewrite.Recompute(p, rewrite.RecomputeManual, []string{"block0/*", "*Tanh"})
	}},
	{"swap manual", func(p *program.Program) (*program.Program, int, error) {
		return rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 1})
	}},
	{"swap manual, eager", func(p *program.Program) (*program.Program, int, error) {
		return rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 2, Eager: true})
	}},
	{"swap heuristics", func(p *program.Program) (*program.Program, int, error) {
		peak, _ := rewrite.LiveBytes(p)
		slow := func(*program.Program, *program.Node) int64 { return 1_000_000 }
		return rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapHeuristics, DeviceBytes: peak * 3 / 4, Nanos: slow})
	}},
	{"accumulate", func(p *program.Program) (*program.Program, int, error) { return rewrite.AccumulateSums(p, 100) }},
	{"optimize", func(p *program.Program) (*program.Program, int, error) {
		out, notes, err := rewrite.Optimize(p, rewrite.Options{
			Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks}, DeviceBytes: 100, Recompute: rewrite.RecomputeHeuristics,
			Swap: rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 1},
		})
		return out, len(notes), err
	}},
}

func checkpoint(c rewrite.Checkpoint) func(p *program.Program) (*program.Program, int, error) {
	return func(p *program.Program) (*program.Program, int, error) { return rewrite.ApplyCheckpoint(p, c) }
}

// Every pass on random programs: valid, the same fetches, inputs and changes of
// variables, and the same numbers to the bit, in whatever order the edges
// allow. Each pass finds something to do in some program.
func TestRewritesKeepResults(t *testing.T) {
	const seeds = 30
	done := make([]int, len(rewrites))
	for seed := range uint64(seeds) {
		p := random(t, seed)
		want := newEvaluator(t, p, seed)
		want.step(t, rewrite.ProgramOrder(p))
		for i, w := range rewrites {
			before := fmt.Sprint(*p)
			q, n, err := w.run(p)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, w.name, err)
			}
			if fmt.Sprint(*p) != before {
				t.Fatalf("seed %d, %s: changed the program it was given", seed, w.name)
			}
			if err := q.Validate(); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, w.name, err)
			}
			done[i] += n
			sameEffects(t, fmt.Sprintf("seed %d, %s", seed, w.name), p, q)
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for _, order := range [][]program.NodeID{rewrite.ProgramOrder(q), rewrite.FIFO(q), anyOrder(q, r), anyOrder(q, r)} {
				if len(order) != len(q.Nodes) {
					t.Fatalf("seed %d, %s: %d of %d nodes run", seed, w.name, len(order), len(q.Nodes))
				}
				got := newEvaluator(t, q, seed)
				got.step(t, order)
				equal(t, fmt.Sprintf("seed %d, %s", seed, w.name), want, got)
			}
		}
	}
	for i, n := range done {
		t.Logf("%-22s %d changes in %d programs", rewrites[i].name, n, seeds)
		if n == 0 {
			t.Errorf("%s found nothing to do in any program", rewrites[i].name)
		}
	}
}

// sameEffects compares what a step is for: fetches, inputs, variables' changes.
func sameEffects(t *testing.T, what string, p, q *program.Program) {
	t.Helper()
	stateful := func(p *program.Program) (out []string) {
		for i := range p.Nodes {
			if def, err := program.Lookup(p.Nodes[i].Op); err == nil && def.Stateful {
				out = append(out, p.Nodes[i].Name)
			}
		}
		slices.Sort(out)
		return out
	}
	if a, b := stateful(p), stateful(q); !slices.Equal(a, b) {
		t.Fatalf("%s: stateful ops were %v, are %v", what, a, b)
	}
	if len(p.Fetches) != len(q.Fetches) || len(p.Inputs) != len(q.Inputs) || len(p.Variables) != len(q.Variables) {
		t.Fatalf("%s: %d fetches, %d inputs, %d variables; were %d, %d, %d", what,
			len(q.Fetches), len(q.Inputs), len(q.Variables), len(p.Fetches), len(p.Inputs), len(p.Variables))
	}
}

func equal(t *testing.T, what string, want, got *evaluator) {
	t.Helper()
	same := func(part string, a, b []float64) {
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) && (a[i] == a[i] || b[i] == b[i]) {
				t.Fatalf("%s: %s, element %d: %v, was %v", what, part, i, b[i], a[i])
			}
		}
	}
	for i, f := range want.p.Fetches {
		same("fetch "+f.Name, want.values[f.Value], got.values[got.p.Fetches[i].Value])
	}
	for i := range want.vars {
		same("variable "+want.p.Variables[i].Name, want.vars[i], got.vars[i])
	}
}
