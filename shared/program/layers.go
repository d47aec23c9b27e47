package program

import "math"

// glorot is the usual first distribution of a weight with this many inputs
// and outputs per unit: uniform, with half-width sqrt(6/(in+out)).
func glorot(in, out int64) Init {
	return Init{Kind: InitUniform, Scale: math.Sqrt(6 / float64(in+out))}
}

// Dense adds a fully connected layer under a scope of its own.
func (b *Builder) Dense(name string, x ValueID, units int64, activation Op) ValueID {
	if b.err != nil {
		return None
	}
	defer b.Scope(name)()
	s := b.shape(x)
	if len(s) != 2 {
		b.fail(mismatchLayer(name, "a dense layer", "[n,features]", s))
		return None
	}
	w := b.Variable("kernel", Shape{s[1], units}, glorot(s[1], units))
	bias := b.Variable("bias", Shape{units}, Init{})
	return b.activate(activation, b.Op(OpBiasAdd, Attrs{}, b.Op(OpMatMul, Attrs{}, x, w), bias))
}

// Conv adds a convolution with square windows and stride 1 under a scope of
// its own.
func (b *Builder) Conv(name string, x ValueID, filters, size int64, pad Padding, activation Op) ValueID {
	if b.err != nil {
		return None
	}
	defer b.Scope(name)()
	s := b.shape(x)
	if len(s) != 4 {
		b.fail(mismatchLayer(name, "a convolution", "[n,h,w,c]", s))
		return None
	}
	w := b.Variable("kernel", Shape{size, size, s[3], filters}, glorot(size*size*s[3], size*size*filters))
	bias := b.Variable("bias", Shape{filters}, Init{})
	y := b.Op(OpConv2D, Attrs{Strides: [2]int64{1, 1}, Padding: pad}, x, w)
	return b.activate(activation, b.Op(OpBiasAdd, Attrs{}, y, bias))
}

// activate adds an activation; "" is none.
func (b *Builder) activate(op Op, x ValueID) ValueID {
	if op == "" {
		return x
	}
	return b.Op(op, Attrs{}, x)
}

// Pool adds a pooling op with square windows that do not overlap.
func (b *Builder) Pool(name string, op Op, x ValueID, size int64) ValueID {
	defer b.Scope(name)()
	w := [2]int64{size, size}
	return b.Op(op, Attrs{Window: w, Strides: w}, x)
}

// Flatten gives x as [n, features].
func (b *Builder) Flatten(name string, x ValueID) ValueID {
	defer b.Scope(name)()
	s := b.shape(x)
	if len(s) == 0 {
		return b.Op(OpReshape, Attrs{}, x)
	}
	return b.Op(OpReshape, Attrs{Shape: Shape{s[0], s[1:].Elements()}}, x)
}

// Classify adds what a classifier is judged by: the mean cross entropy of
// logits [n,c] against labels [n], and the fraction that is right. Both are
// fetched, as "loss" and "accuracy". It gives the loss.
func (b *Builder) Classify(logits, labels ValueID) ValueID {
	loss := b.crossEntropy(logits, labels)
	leave := b.Scope("accuracy")
	right := b.Op(OpEqual, Attrs{}, b.Op(OpArgMax, Attrs{}, logits), labels)
	accuracy := b.Op(OpMean, Attrs{}, b.Op(OpCast, Attrs{DType: Float32}, right))
	leave()
	b.Fetch("loss", loss)
	b.Fetch("accuracy", accuracy)
	return loss
}

func (b *Builder) crossEntropy(logits, labels ValueID) ValueID {
	defer b.Scope("loss")()
	return b.Op(OpMean, Attrs{}, b.Op(OpSparseXent, Attrs{}, logits, labels))
}
