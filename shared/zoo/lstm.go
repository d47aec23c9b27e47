package zoo

import "tideline/shared/program"

// lstm is a language model of one layer of 256 units, unrolled over the
// sequence. What the layer makes of its inputs is computed for all steps at
// once; a step adds what it makes of its last output.
func lstm(n *net, ids program.ValueID) program.ValueID {
	const width, units = 128, 256
	vocabulary, b, s := int64(n.model.Vocabulary), n.samples, n.extent
	leave := n.Scope("embedding")
	x := n.reshape(n.embedding("table", ids, vocabulary, width), program.Shape{b * s, width})
	leave()
	leave = n.Scope("lstm")
	kernel := n.Weight("kernel", program.Shape{width, 4 * units}, uniform(width, 4*units))
	recurrent := n.Weight("recurrent_kernel", program.Shape{units, 4 * units}, uniform(units, 4*units))
	bias := n.Weight("bias", program.Shape{4 * units}, program.Init{})
	x = n.Op(program.OpBiasAdd, program.Attrs{}, n.Op(program.OpMatMul, program.Attrs{}, x, kernel), bias)
	x = n.reshape(x, program.Shape{b, s, 4 * units})
	parts := n.Node(program.OpSplit, program.Attrs{Axes: []int64{1, s}}, x)
	h := n.Const("zeros", n.ComputeType(), program.Shape{b, units}, 0)
	c := h
	leave()
	var outputs []program.ValueID
	for i := range min(int(s), len(parts)) {
		leave := n.Scope(n.block("lstm/step", i+1))
		gates := n.add(n.reshape(parts[i], program.Shape{b, 4 * units}), n.Op(program.OpMatMul, program.Attrs{}, h, recurrent))
		cell := n.Node(program.OpLSTMCell, program.Attrs{}, gates, c)
		c, h = cell[1], cell[2]
		outputs = append(outputs, n.reshape(h, program.Shape{b, 1, units}))
		leave()
	}
	x = outputs[0]
	if len(outputs) > 1 {
		x = n.Op(program.OpConcat, program.Attrs{Axes: []int64{1}}, outputs...)
	}
	return n.dense("logits", n.reshape(x, program.Shape{b * s, units}), vocabulary, "")
}
