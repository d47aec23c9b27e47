package rewrite_test

import (
	"fmt"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// Sixteen layers of which the activations of every fourth are kept, and what
// that does to the modelled peak.
func ExampleOptimize() {
	b := program.NewBuilder("layers", 1024)
	x := b.Input("x", program.Float32, program.Shape{1024, 256})
	var blocks []string
	var weights []program.ValueID
	for i := range 16 {
		blocks = append(blocks, fmt.Sprint("layer", i))
		leave := b.Scope(blocks[i])
		w := b.Variable("w", program.Shape{256, 256}, program.Init{Kind: program.InitUniform, Scale: 0.1})
		x = b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, w))
		weights = append(weights, w)
		leave()
	}
	loss := b.Op(program.OpMean, program.Attrs{}, b.Op(program.OpSquare, program.Attrs{}, x))
	b.Fetch("loss", loss)
	b.SGD(0.1, weights, b.Gradients(loss, weights))
	p, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	q, notes, err := rewrite.Optimize(p, rewrite.Options{
		Checkpoint: rewrite.Checkpoint{Mode: rewrite.EveryBlocks, Every: 4, Blocks: blocks},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range notes {
		if n.Pass == "checkpointing" {
			fmt.Println(n)
		}
	}
	before, _ := rewrite.LiveBytes(p)
	after, _ := rewrite.LiveBytes(q)
	fmt.Printf("peak %d MiB, was %d MiB\n", after>>20, before>>20)
	// Output:
	// checkpointing: 24 nodes run again in the backward pass
	// peak 14 MiB, was 24 MiB
}
