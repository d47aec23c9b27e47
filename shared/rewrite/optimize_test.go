package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// needless is a program that every general pass finds something in.
func needless(tb testing.TB) *program.Program {
	tb.Helper()
	b := program.NewBuilder("needless", 1)
	s := program.Shape{4}
	x, y := b.Input("x", program.Float32, s), b.Input("y", program.Float32, s)
	w := b.Variable("w", s, program.Init{})
	b.Op(program.OpTanh, program.Attrs{}, x)                                                                                  // pruned
	two := b.Op(program.OpAdd, program.Attrs{}, b.Const("a", program.Float32, nil, 1), b.Const("b", program.Float32, nil, 1)) // folded
	d := b.Op(program.OpSquare, program.Attrs{}, b.Op(program.OpSub, program.Attrs{}, x, y))                                  // fused
	d = b.Op(program.OpIdentity, program.Attrs{}, d)                                                                          // removed
	out := b.Op(program.OpMul, program.Attrs{}, b.Op(program.OpMul, program.Attrs{}, d, two), w)
	loss := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, out)) // whose gradient waits for every reader of w
	b.Fetch("loss", loss)
	b.SGD(0.1, []program.ValueID{w}, b.Gradients(loss, []program.ValueID{w}))
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// The passes come in TensorFlow's order, twice, and say what they did.
func TestOptimizeRunsInOrder(t *testing.T) {
	p := needless(t)
	q, notes, err := rewrite.Optimize(p, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var passes []string
	for _, n := range notes {
		if n.Iteration == 1 {
			passes = append(passes, n.Pass)
		}
		t.Log(n)
	}
	want := []string{"pruning", "constant folding", "remapping", "arithmetic", "dependency"}
	if !slices.Equal(passes, want) {
		t.Errorf("the passes of iteration 1 were %v, want %v", passes, want)
	}
	if len(q.Nodes) >= len(p.Nodes) {
		t.Errorf("%d nodes of %d are left", len(q.Nodes), len(p.Nodes))
	}
	if again, notes, err := rewrite.Optimize(q, rewrite.Options{}); err != nil || again != q || len(notes) != 0 {
		t.Errorf("a second time: %v, %v", notes, err)
	}
}

// What one pass leaves to an earlier one is done in the second iteration: the
// squared difference is seen once the identity in its way has gone.
func TestOptimizeRunsTwice(t *testing.T) {
	b := program.NewBuilder("twice", 1)
	s := program.Shape{4}
	x, y := b.Input("x", program.Float32, s), b.Input("y", program.Float32, s)
	d := b.Op(program.OpIdentity, program.Attrs{}, b.Op(program.OpSub, program.Attrs{}, x, y))
	b.Fetch("z", b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpSquare, program.Attrs{}, d)))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, notes, err := rewrite.Optimize(p, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for _, n := range notes {
		at[n.Pass] = n.Iteration
	}
	if at["arithmetic"] != 1 || at["remapping"] != 2 {
		t.Errorf("%v, want arithmetic in iteration 1 and remapping in iteration 2", notes)
	}
}

// Every switch leaves its pass out; a small graph is left as it is.
func TestOptimizeSwitches(t *testing.T) {
	p := needless(t)
	for _, c := range []struct {
		pass string
		opt  rewrite.Options
	}{
		{"pruning", rewrite.Options{DisableModelPruning: true}},
		{"constant folding", rewrite.Options{DisableConstantFolding: true}},
		{"remapping", rewrite.Options{DisableRemapping: true}},
		{"arithmetic", rewrite.Options{DisableArithmetic: true}},
		{"dependency", rewrite.Options{DisableDependency: true}},
		{"", rewrite.Options{Disabled: true}},
		{"", rewrite.Options{MinGraphNodes: len(p.Nodes) + 1}},
	} {
		q, notes, err := rewrite.Optimize(p, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range notes {
			if n.Pass == c.pass || c.pass == "" {
				t.Errorf("%+v: %v", c.opt, n)
			}
		}
		if c.pass == "" && q != p {
			t.Errorf("%+v: another program", c.opt)
		}
	}
}

// Graphs of fewer than four nodes are skipped.
func TestOptimizeSkipsSmallGraphs(t *testing.T) {
	for _, ops := range []int{3, 4} {
		b := program.NewBuilder("small", 1)
		x := b.Input("x", program.Float32, program.Shape{4})
		for range ops - 1 {
			b.Op(program.OpTanh, program.Attrs{}, x)
		}
		b.Fetch("out", b.Op(program.OpTanh, program.Attrs{}, x))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		q, _, err := rewrite.Optimize(p, rewrite.Options{})
		if err != nil || (q == p) != (ops < 4) {
			t.Errorf("%d nodes: rewritten %v, %v", ops, q != p, err)
		}
	}
}

// The memory passes tell what the peak came to; an error names its pass.
func TestOptimizeTellsOfMemory(t *testing.T) {
	p, scopes := chain(t, 16, 64, 16)
	q, notes, err := rewrite.Optimize(p, rewrite.Options{Checkpoint: rewrite.Checkpoint{Mode: rewrite.SqrtBlocks, Blocks: scopes}})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := rewrite.LiveBytes(p)
	after, _ := rewrite.LiveBytes(q)
	last := notes[len(notes)-1]
	if after >= before || last.Pass != "memory" || !strings.Contains(last.Text, "modelled peak") {
		t.Errorf("peak %d, was %d; %v", after, before, notes)
	}
	if _, _, err := rewrite.Optimize(p, rewrite.Options{Checkpoint: rewrite.Checkpoint{Mode: rewrite.EveryBlocks}}); err == nil || !strings.HasPrefix(err.Error(), "checkpointing: ") {
		t.Errorf("error %v, want one of checkpointing", err)
	}
}
