package zoo

import "tideline/shared/program"

// perceptron is a multilayer perceptron with these hidden layers, without the
// dropout of some tutorials, so that a step is a function of its inputs alone.
func perceptron(hidden ...int64) func(*net, program.ValueID) program.ValueID {
	return func(n *net, x program.ValueID) program.ValueID {
		x = n.flatten("flatten", x)
		for i, units := range hidden {
			x = n.dense(n.block("dense", i+1), x, units, program.OpRelu)
		}
		return n.dense("logits", x, n.classes, "")
	}
}

// conv2 is the smallest network of convolutions.
func conv2(n *net, x program.ValueID) program.ValueID {
	for i, filters := range []int64{8, 16} {
		x = n.conv(n.block("conv", i+1), x, window{filters, 3, 1, program.Same}, true, program.OpRelu)
		x = n.pool(numbered("pool", i+1), program.OpMaxPool, x, 2, 2)
	}
	return n.dense("logits", n.flatten("flatten", x), n.classes, "")
}

// lenet5 is LeNet-5 with hyperbolic tangents, average pooling and every map
// of the second convolution connected to all of the first.
func lenet5(n *net, x program.ValueID) program.ValueID {
	for i, filters := range []int64{6, 16} {
		x = n.conv(n.block("conv", i+1), x, window{filters, 5, 1, program.Valid}, true, program.OpTanh)
		x = n.pool(numbered("pool", i+1), program.OpAvgPool, x, 2, 2)
	}
	x = n.flatten("flatten", x)
	for i, units := range []int64{120, 84} {
		x = n.dense(n.block("dense", i+1), x, units, program.OpTanh)
	}
	return n.dense("logits", x, n.classes, "")
}

// vgg16 is configuration D of the VGG paper.
func vgg16(n *net, x program.ValueID) program.ValueID {
	for i, convs := range []int{2, 2, 3, 3, 3} {
		filters := min(int64(64)<<i, 512)
		leave := n.Scope(n.block("block", i+1))
		for j := range convs {
			x = n.conv(numbered("conv", j+1), x, window{filters, 3, 1, program.Same}, true, program.OpRelu)
		}
		x = n.pool("pool", program.OpMaxPool, x, 2, 2)
		leave()
	}
	x = n.flatten("flatten", x)
	x = n.dense("fc1", x, 4096, program.OpRelu)
	x = n.dense("fc2", x, 4096, program.OpRelu)
	return n.dense("logits", x, n.classes, "")
}

// resnet is the family of residual networks with four stages.
type resnet struct {
	blocks [4]int // of each stage
	basic  bool   // blocks of two 3x3 convolutions instead of bottlenecks
	bias   bool   // convolutions have biases, as in Keras
	late   bool   // v1.5: the 3x3 convolution of a bottleneck has the stride, not the first 1x1
}

func (r resnet) layers(n *net, x program.ValueID) program.ValueID {
	leave := n.Scope("stem")
	x = n.convNorm("", x, window{64, 7, 2, program.Same}, r.bias, program.OpRelu)
	x = n.pool("pool", program.OpMaxPool, x, 3, 2)
	leave()
	number := 0
	for stage, blocks := range r.blocks {
		for i := range blocks {
			stride := int64(1)
			if stage > 0 && i == 0 {
				stride = 2
			}
			number++
			x = r.block(n, n.block("block", number), x, 64<<stage, stride)
		}
	}
	return n.dense("logits", n.mean("pool", x), n.classes, "")
}

// block adds the convolutions of one block and its input, which a projection
// brings to their shape where it differs.
func (r resnet) block(n *net, name string, x program.ValueID, filters, stride int64) program.ValueID {
	defer n.Scope(name)()
	first, second := stride, int64(1)
	if r.late {
		first, second = 1, stride
	}
	out := 4 * filters
	convs := []window{{filters, 1, first, program.Same}, {filters, 3, second, program.Same}, {out, 1, 1, program.Same}}
	if r.basic {
		out = filters
		convs = []window{{filters, 3, stride, program.Same}, {filters, 3, 1, program.Same}}
	}
	shortcut := x
	if s := n.Shape(x); len(s) == 4 && (s[3] != out || stride != 1) {
		leave := n.Scope("shortcut")
		shortcut = n.convNorm("", x, window{out, 1, stride, program.Same}, r.bias, "")
		leave()
	}
	for i, w := range convs {
		act := program.OpRelu
		if i == len(convs)-1 {
			act = ""
		}
		x = n.convNorm(numbered("", i+1), x, w, r.bias, act)
	}
	return n.Op(program.OpRelu, program.Attrs{}, n.Op(program.OpAdd, program.Attrs{}, x, shortcut))
}

// unet is the U-Net with padding, so that its output has its input's size. The
// ways down keep their outputs for the ways up.
func unet(n *net, x program.ValueID) program.ValueID {
	var skips []program.ValueID
	for i := range 4 {
		leave := n.Scope(n.block("down", i+1))
		x = n.convTwice(x, 64<<i)
		skips = append(skips, x)
		x = n.pool("pool", program.OpMaxPool, x, 2, 2)
		leave()
	}
	leave := n.Scope(n.block("bottom", 0))
	x = n.convTwice(x, 1024)
	leave()
	for i := 3; i >= 0; i-- {
		leave := n.Scope(n.block("up", i+1))
		x = n.convTransposed("up", x, 64<<i)
		x = n.Op(program.OpConcat, program.Attrs{Axes: []int64{3}}, skips[i], x)
		x = n.convTwice(x, 64<<i)
		leave()
	}
	return n.conv("logits", x, window{n.classes, 1, 1, program.Same}, true, "")
}
