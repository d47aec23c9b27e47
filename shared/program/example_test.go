package program_test

import (
	"fmt"

	"tideline/shared/program"
)

// A model that is not in the zoo: one hidden layer, trained by SGD.
func ExampleBuilder() {
	b := program.NewBuilder("tiny", 4)
	x := b.Input("x", program.Float32, program.Shape{4, 8})
	y := b.Input("y", program.Int64, program.Shape{4})
	hidden := b.Dense("hidden", x, 16, program.OpRelu)
	loss := b.Classify(b.Dense("logits", hidden, 4, ""), y)
	weights := b.Weights()
	b.SGD(0.1, weights, b.Gradients(loss, weights))
	p, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Parameters(), "parameters,", len(p.Nodes), "nodes")
	fmt.Println(p.Nodes[len(p.Nodes)-1].Name)
	// Output:
	// 212 parameters, 32 nodes
	// SGD/logits/bias/ApplyGradientDescent
}

// Errors name the node, the op and what came in.
func ExampleBuilder_errors() {
	b := program.NewBuilder("broken", 2)
	x := b.Input("x", program.Float32, program.Shape{2, 3})
	w := b.Variable("w", program.Shape{4, 5}, program.Init{})
	b.Op(program.OpMatMul, program.Attrs{}, x, w)
	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// node MatMul: MatMul(float32[2,3], float32[4,5]): shapes or types do not fit: inner extents 3 and 4 differ (transposed: false, false)
}
