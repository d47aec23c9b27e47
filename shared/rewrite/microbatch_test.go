package rewrite_test

import (
	"strings"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// Accumulated over k batches, the step reads as much, changes each variable as
// often, begins each batch after the one before, and needs hardly more memory
// than a step of one batch with a second set of gradients.
func TestAccumulateIsSequential(t *testing.T) {
	for _, name := range []string{"lenet5", "resnet50", "bert-2layer", "unet", "lstm"} {
		small, large := training(t, name, 2).Program, training(t, name, 8).Program
		q, err := rewrite.Accumulate(small, 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		for i, v := range large.Inputs {
			if a, b := &large.Values[v], &q.Values[q.Inputs[i]]; a.DType != b.DType || !a.Shape.Equal(b.Shape) {
				t.Errorf("%s: input %d is %s%s, want %s%s", name, i, b.DType, b.Shape, a.DType, a.Shape)
			}
		}
		updates := func(p *program.Program) (n int) {
			for i := range p.Nodes {
				if p.Nodes[i].Phase == program.Update {
					n++
				}
			}
			return n
		}
		if a, b := updates(small), updates(q); a != b {
			t.Errorf("%s: %d nodes update, were %d", name, b, a)
		}
		for _, s := range schedules {
			first, last := firstAndLast(q, s.order(q))
			for i := 1; i < 4; i++ {
				if first[i] < last[i-1] {
					t.Errorf("%s, %s: batch %d begins at %d, the one before needs until %d", name, s.name, i, first[i], last[i-1])
				}
			}
		}
		one, _ := rewrite.LiveBytes(small)
		all, _ := rewrite.LiveBytes(large)
		got, _ := rewrite.LiveBytes(q)
		var gradients int64
		for i := range small.Variables {
			if small.Variables[i].Trained() {
				gradients += small.Variables[i].Bytes()
			}
		}
		t.Logf("%-12s batch 2: %10d, 4 times 2: %10d, batch 8: %10d", name, one, got, all)
		if got > one+2*gradients+one/20 {
			t.Errorf("%s: %d bytes at the peak, %d for one batch and %d for its gradients", name, got, one, gradients)
		}
	}
}

// firstAndLast gives, by batch, where its forward ops begin and end.
func firstAndLast(p *program.Program, order []program.NodeID) (first, last [4]int) {
	for i := range first {
		first[i] = len(order)
	}
	for at, id := range order {
		n := &p.Nodes[id]
		batch := 0
		if i := strings.Index(n.Name, "microbatch"); i >= 0 {
			batch = int(n.Name[i+len("microbatch")] - '0')
		} else if n.Phase != program.Forward || len(n.Inputs) == 0 || strings.Contains(n.Name, "accumulate/") || stateful(n) {
			continue
		}
		if n.Phase == program.Forward && !stateful(n) && n.Op != program.OpSlice {
			last[batch] = max(last[batch], at)
		}
		if n.Op == program.OpSlice {
			first[batch] = min(first[batch], at)
		}
	}
	return first, last
}

func stateful(n *program.Node) bool {
	def, err := program.Lookup(n.Op)
	return err == nil && def.Stateful
}

// It goes together with recomputing and swapping: both need less than one.
func TestAccumulateAndCheckpoint(t *testing.T) {
	b := training(t, "vit-b16", 2)
	last := int64(1 << 62)
	for _, o := range []rewrite.Options{
		{Microbatches: 4},
		{Microbatches: 4, Checkpoint: rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: b.Blocks}},
		{Microbatches: 4, Checkpoint: rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: b.Blocks}, Swap: rewrite.Swap{Mode: rewrite.SwapManual, Above: mib}},
	} {
		q, notes, err := rewrite.Optimize(b.Program, o)
		if err != nil {
			t.Fatal(err)
		}
		peak, _ := rewrite.LiveBytes(q)
		t.Logf("peak %d, batch %d, %v", peak, q.Batch, notes)
		if peak >= last || q.Batch != 8 {
			t.Errorf("peak %d, with less rewritten %d; batch %d", peak, last, q.Batch)
		}
		last = peak
	}
}

// A budget holds for the step over all batches.
func TestAccumulateWithinBudget(t *testing.T) {
	for _, name := range []string{"vit-b16", "resnet50"} {
		b := training(t, name, 4)
		one, _ := rewrite.LiveBytes(b.Program)
		q, notes, err := rewrite.Optimize(b.Program, rewrite.Options{
			Microbatches: 3, Checkpoint: rewrite.Checkpoint{Mode: rewrite.WithinBudget, Budget: one, Blocks: b.Blocks},
		})
		if err != nil {
			t.Fatal(err)
		}
		peak, _ := rewrite.LiveBytes(q)
		t.Logf("%s: one batch %d, three within it %d; %v", name, one, peak, notes)
		if peak > one || q.Batch != 12 {
			t.Errorf("%s: batch %d, peak %d, budget %d", name, q.Batch, peak, one)
		}
	}
}

func TestAccumulateErrors(t *testing.T) {
	p := training(t, "lenet5", 2).Program
	if q, err := rewrite.Accumulate(p, 1); err != nil || q != p {
		t.Errorf("one batch: %v", err)
	}
	if _, err := rewrite.Accumulate(p, 0); err == nil {
		t.Error("no batches are no error")
	}
	b := program.NewBuilder("wide", 1)
	x := b.Input("x", program.Float32, program.Shape{2, 3})
	b.Fetch("all", b.Op(program.OpTanh, program.Attrs{}, x))
	wide, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rewrite.Accumulate(wide, 2); err == nil || !strings.Contains(err.Error(), "all is fetched") {
		t.Errorf("a fetch that is no number: %v", err)
	}
}
