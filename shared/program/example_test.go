package program_test

import (
	"fmt"

	"tideline/shared/program"
)

// A model with one hidden layer, trained by SGD.
func ExampleBuilder() {
	b := program.NewBuilder("tiny", 4)
	x := b.Input("x", program.Float32, program.Shape{4, 8})
	y := b.Input("y", program.Int64, program.Shape{4})
	dense := func(name string, x program.ValueID, in, units int64) program.ValueID {
		defer b.Scope(name)()
		kernel := b.Variable("kernel", program.Shape{in, units}, program.Init{Kind: program.InitUniform, Scale: 0.5})
		bias := b.Variable("bias", program.Shape{units}, program.Init{})
		return b.Op(program.OpBiasAdd, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, kernel), bias)
	}
	hidden := b.Op(program.OpRelu, program.Attrs{}, dense("hidden", x, 8, 16))
	each := b.Op(program.OpSparseXent, program.Attrs{}, dense("logits", hidden, 16, 4), y)
	loss := b.Op(program.OpMean, program.Attrs{}, each)
	b.Fetch("loss", loss)
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
	// 212 parameters, 28 nodes
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

// Mixed precision as Keras does it: float32 weights, products of halves, and
// a loss scale that keeps small gradients from vanishing.
func ExampleBuilder_Minimize() {
	b := program.NewBuilder("mixed", 4)
	b.Compute(program.Float16)
	x := b.Read(b.Input("x", program.Float32, program.Shape{4, 8}))
	y := b.Op(program.OpMatMul, program.Attrs{}, x, b.Weight("w", program.Shape{8, 2}, program.Init{}))
	loss := b.Op(program.OpL2Loss, program.Attrs{}, b.Op(program.OpCast, program.Attrs{DType: program.Float32}, y))
	b.Fetch("loss", loss)
	b.Minimize(program.Optimizer{Name: "momentum", LossScale: true}, loss, b.Weights())
	p, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range p.Variables {
		fmt.Println(v.Name, v.DType, v.Shape, "slot:", v.Slot)
	}
	for _, n := range p.Nodes {
		if n.Phase == program.Update && len(n.Outputs) == 0 {
			fmt.Println(n.Name, "guarded:", n.Attrs.Guarded)
		}
	}
	// Output:
	// w float32 [8,2] slot: false
	// loss_scale/current float32 [] slot: false
	// loss_scale/good_steps int64 [] slot: false
	// Momentum/w/momentum float32 [8,2] slot: true
	// Momentum/w/ApplyMomentum guarded: true
	// loss_scale/UpdateLossScale guarded: false
}
