package rewrite_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// chain makes the training step of n equal layers, each a matrix product with
// a weight of its own and a tanh, under the scopes layer000, layer001, …
func chain(tb testing.TB, n int, batch, width int64) (*program.Program, []string) {
	tb.Helper()
	b := program.NewBuilder("chain", int(batch))
	x := b.Input("x", program.Float32, program.Shape{batch, width})
	var scopes []string
	var weights []program.ValueID
	for i := range n {
		scopes = append(scopes, fmt.Sprintf("layer%03d", i))
		leave := b.Scope(scopes[i])
		w := b.Variable("w", program.Shape{width, width}, program.Init{Kind: program.InitUniform, Scale: 0.1})
		x = b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, w))
		weights = append(weights, w)
		leave()
	}
	loss := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpSquare, program.Attrs{}, x))
	b.Fetch("loss", loss)
	b.SGD(0.1, weights, b.Gradients(loss, weights))
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p, scopes
}

// mostOutputs is the most outputs of layers, first made or made again, that
// live at once.
func mostOutputs(p *program.Program, order []program.NodeID) int {
	l := rewrite.Measure(p, order)
	change := make([]int, len(order)+2)
	for v := range p.Values {
		n := p.Values[v].Producer
		if n == program.None || p.Nodes[n].Op != program.OpTanh || l.Made[v] < 0 {
			continue
		}
		change[l.Made[v]]++
		change[l.Dies[v]+1]--
	}
	most, now := 0, 0
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return most
}

// flops sums the forward work, first and repeated.
func flops(p *program.Program) (forward, again int64) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case n.Phase == program.Forward:
			forward += p.Cost(n).FLOPs
		case strings.Contains(n.Name, "/recompute/"):
			again += p.Cost(n).FLOPs
		}
	}
	return forward, again
}

var schedules = []struct {
	name  string
	order func(*program.Program) []program.NodeID
}{{"first in, first out", rewrite.FIFO}, {"program order", rewrite.ProgramOrder}}

// Checkpointing every ceil(sqrt n)-th of n equal layers keeps at most
// 2·ceil(sqrt n)+2 layer outputs, and forward work at most doubles.
func TestSqrtCheckpointKeepsRootOfLayers(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 10, 16, 30, 64, 100, 150} {
		p, scopes := chain(t, n, 2, 4)
		for _, blocks := range [][]string{scopes, nil} { // nil: the chain's own cuts, two a layer
			q, _, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.SqrtBlocks, Blocks: blocks})
			if err != nil {
				t.Fatal(err)
			}
			k := 1
			for k*k < n {
				k++
			}
			for _, s := range schedules {
				got := mostOutputs(q, s.order(q))
				t.Logf("%d layers, %d scopes, %s: %d outputs at once, %d without", n, len(blocks), s.name, got, mostOutputs(p, s.order(p)))
				if got > 2*k+2 {
					t.Errorf("%d layers, %d scopes, %s: %d outputs at once, want at most %d", n, len(blocks), s.name, got, 2*k+2)
				}
			}
			if forward, again := flops(q); again > forward {
				t.Errorf("%d layers: %d FLOPs again after %d", n, again, forward)
			}
		}
	}
}

// 100 equal layers, every 10th kept: ten checkpoints, of each segment all but
// the kept layer run again. When the last segment does, its own output has been
// used up by the gradient of its last layer: nine checkpoints and nine copies.
func TestCheckpointTenOfHundred(t *testing.T) {
	p, scopes := chain(t, 100, 2, 4)
	q, copies, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 10, Blocks: scopes})
	if err != nil {
		t.Fatal(err)
	}
	products, outputs := 0, 0
	for i := range q.Nodes {
		if n := &q.Nodes[i]; strings.Contains(n.Name, "/recompute/") {
			if n.Phase != program.Backward || n.Of == program.None {
				t.Errorf("%s: phase %d, of %d", n.Name, n.Phase, n.Of)
			}
			if n.Op == program.OpTanh {
				outputs++
			} else {
				products++
			}
		}
	}
	if outputs != 90 || products != 90 || copies != 180 {
		t.Errorf("%d outputs and %d products again, %d in all; want 90, 90, 180", outputs, products, copies)
	}
	for _, s := range schedules {
		if got := mostOutputs(p, s.order(p)); got != 100 {
			t.Errorf("%s: without checkpoints %d outputs live at once, want 100", s.name, got)
		}
		if got := mostOutputs(q, s.order(q)); got != 18 {
			t.Errorf("%s: %d outputs live at once, want 18", s.name, got)
		}
	}
	forward, again := flops(q)
	if again*10 != (forward-lossFlops(p))*9 {
		t.Errorf("%d FLOPs again of %d", again, forward)
	}
	// At the end of the forward pass the ten alone are left.
	l := rewrite.Measure(q, rewrite.FIFO(q))
	end := l.Made[q.Fetches[0].Value]
	left := 0
	for v := range q.Values {
		n := q.Values[v].Producer
		if n != program.None && q.Nodes[n].Op == program.OpTanh && l.Made[v] < end && l.Dies[v] > end {
			left++
		}
	}
	if left != 10 {
		t.Errorf("%d outputs are kept behind the loss, want 10", left)
	}
}

// lossFlops is the forward work that lies in no layer.
func lossFlops(p *program.Program) (sum int64) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Phase == program.Forward && !strings.HasPrefix(n.Name, "layer") {
			sum += p.Cost(n).FLOPs
		}
	}
	return sum
}

// However it is checkpointed, the peak is at least the parameters with what
// the largest layer needs for itself.
func TestCheckpointCannotGoBelowOneLayer(t *testing.T) {
	p, scopes := chain(t, 30, 64, 32)
	before, _ := rewrite.LiveBytes(p)
	var own int64
	for i := range p.Nodes {
		var need int64
		n := &p.Nodes[i]
		for _, v := range append(append([]program.ValueID(nil), n.Inputs...), n.Outputs...) {
			if p.Values[v].Variable == program.None {
				need += p.Values[v].Bytes()
			}
		}
		own = max(own, need)
	}
	floor := rewrite.Measure(p, nil).Persistent + own
	for every := 1; every <= 30; every++ {
		q, _, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: every, Blocks: scopes})
		if err != nil {
			t.Fatal(err)
		}
		if peak, _ := rewrite.LiveBytes(q); peak < floor || every > 1 && every < 10 && peak >= before {
			t.Errorf("every %d: peak %d, without %d, floor %d", every, peak, before, floor)
		}
	}
}

// Copies must not run before the backward pass has come to their segment:
// each segment's first copy runs after the last gradient of the next one's
// first layer was begun.
func TestCopiesWaitForTheirSegment(t *testing.T) {
	p, scopes := chain(t, 40, 2, 4)
	q, _, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 8, Blocks: scopes})
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{}
	for i, n := range rewrite.FIFO(q) {
		place[q.Nodes[n].Name] = i
	}
	for s := range 5 {
		first := fmt.Sprintf("layer%03d/recompute/MatMul", 8*s)
		after := "Sum"
		if s < 4 {
			after = fmt.Sprintf("gradients/layer%03d/TanhGrad", 8*s+8)
		}
		if place[first] == 0 || place[first] < place[after] {
			t.Errorf("%s runs at %d, %s at %d", first, place[first], after, place[after])
		}
	}
}

// The gradient of a sum is a constant, and a gradient behind it may be ready
// when the step begins: copies must not hang on it.
func TestCopiesDoNotHangOnConstantGradients(t *testing.T) {
	b := program.NewBuilder("linear", 1)
	x := b.Input("x", program.Float32, program.Shape{4, 4})
	w := b.Variable("w", program.Shape{4, 4}, program.Init{})
	leave := b.Scope("block")
	y := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, w)))
	leave()
	loss := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpNeg, program.Attrs{}, y))
	b.Fetch("loss", loss)
	b.SGD(0.1, []program.ValueID{w}, b.Gradients(loss, []program.ValueID{w}))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	q, copies, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: []string{"block"}})
	if err != nil || copies == 0 {
		t.Fatalf("%d copies, %v", copies, err)
	}
	forward := 0
	for _, n := range rewrite.FIFO(q) {
		node := &q.Nodes[n]
		if strings.HasPrefix(node.Name, "block/") && node.Phase == program.Forward && node.Op == program.OpTanh {
			forward++
		}
		if strings.Contains(node.Name, "/recompute/") && forward < 2 {
			t.Errorf("%s runs after %d of 2 forward ops", node.Name, forward)
		}
	}
}

// A value in the buffer of a checkpoint is read from there.
func TestAliasesOfCheckpointsAreNotCopied(t *testing.T) {
	b := program.NewBuilder("alias", 1)
	x := b.Input("x", program.Float32, program.Shape{4, 4})
	w := b.Variable("w", program.Shape{4, 4}, program.Init{})
	leave := b.Scope("block")
	y := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, w))
	y = b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{16}}, y)
	leave()
	loss := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpSquare, program.Attrs{}, y))
	b.Fetch("loss", loss)
	b.SGD(0.1, []program.ValueID{w}, b.Gradients(loss, []program.ValueID{w}))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, copies, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 1, Blocks: []string{"block"}})
	if err != nil || copies != 0 {
		t.Errorf("%d copies, %v; the tanh lies in the buffer of the reshape, which is kept", copies, err)
	}
}

// Wishes that make no sense are errors that say so.
func TestCheckpointErrors(t *testing.T) {
	p, scopes := chain(t, 4, 2, 4)
	for _, c := range []struct {
		make rewrite.Checkpoint
		want string
	}{
		{rewrite.Checkpoint{Mode: rewrite.EveryBlocks}, "at least 1"},
		{rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 2, Blocks: []string{"layer000", "nowhere"}}, `"nowhere"`},
		{rewrite.Checkpoint{Mode: rewrite.WithinBudget, Budget: 10, Blocks: scopes}, "raise the budget"},
		{rewrite.Checkpoint{Mode: 99}, "unknown"},
	} {
		if _, _, err := rewrite.ApplyCheckpoint(p, c.make); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want one with %q", c.make, err, c.want)
		}
	}
}

// A budget between the least and the whole is met, with less work the larger
// it is, and with none when everything fits.
func TestCheckpointWithinBudget(t *testing.T) {
	p, scopes := chain(t, 24, 256, 32)
	whole, _ := rewrite.LiveBytes(p)
	least := whole
	for k := 1; k <= 24; k++ {
		q, _, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: k, Blocks: scopes})
		if err != nil {
			t.Fatal(err)
		}
		peak, _ := rewrite.LiveBytes(q)
		least = min(least, peak)
	}
	last := int64(1 << 62)
	for i := range 9 {
		budget := least + (whole-least)*int64(i)/8
		q, copies, err := rewrite.ApplyCheckpoint(p, rewrite.Checkpoint{Mode: rewrite.WithinBudget, Budget: budget, Blocks: scopes})
		if err != nil {
			if i == 0 {
				continue // rounding may miss the very least
			}
			t.Fatalf("budget %d of %d: %v", budget, whole, err)
		}
		peak, _ := rewrite.LiveBytes(q)
		_, again := flops(q)
		t.Logf("budget %d: peak %d, %d nodes again, %d FLOPs", budget, peak, copies, again)
		if peak > budget || again > last || i == 8 && copies != 0 {
			t.Errorf("budget %d: peak %d, %d nodes again, %d FLOPs after %d with less", budget, peak, copies, again, last)
		}
		last = again
	}
}

// A step with all kinds of ops is rewritten alike every time.
func TestRewritesAreDeterministic(t *testing.T) {
	for seed := range uint64(10) {
		p := random(t, seed)
		var first string
		for range 3 {
			q, notes, err := rewrite.Optimize(p, rewrite.Options{
				Checkpoint: rewrite.Checkpoint{Mode: rewrite.Selective}, DeviceBytes: 100, Swap: rewrite.Swap{Mode: rewrite.SwapManual, Ahead: 1 + rand.New(rand.NewPCG(seed, 1)).IntN(3)},
			})
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprint(*q, notes)
			if first == "" {
				first = text
			}
			if text != first {
				t.Fatalf("seed %d: another program", seed)
			}
		}
	}
}
