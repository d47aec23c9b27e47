package zoo

import (
	"math"

	"tideline/shared/program"
)

// transformer is the family of transformers.
type transformer struct {
	layers       int
	width, heads int64
	positions    int
	// longGelu writes gelu out of simple ops around the error function, as BERT
	// does; otherwise it is one op.
	longGelu bool
	// simpleOps writes gelu, layer norm and dropout out of simple ops, as the
	// models for TensorFlow 1 did, whose backward pass keeps more tensors.
	simpleOps bool
}

func (t transformer) blocks() Blocks {
	return Blocks{Count: t.layers, Width: int(t.width), Heads: int(t.heads)}
}

func (t transformer) simple() transformer {
	t.simpleOps = true
	return t
}

// token scale of first values: uniform, with the deviation 0.02 of the papers.
var tokenInit = program.Init{Kind: program.InitUniform, Scale: 0.02 * math.Sqrt(3)}

// encoder is BERT with a classifier on the pooled first token. Its tokens are
// all of one segment, and all count: there is no padding.
func (t transformer) encoder(n *net, ids program.ValueID) program.ValueID {
	leave := n.Scope("embeddings")
	b, s := n.samples, n.extent
	x := n.embedding("word", ids, int64(n.model.Vocabulary), t.width)
	types := n.Const("types", program.Int32, program.Shape{b, s}, 0)
	x = n.add(x, n.embedding("type", types, 2, t.width))
	x = n.add(x, n.position("position", int64(t.positions), s, t.width))
	x = n.reshape(x, program.Shape{b * s, t.width})
	x = n.dropout(t, n.layerNorm(t, "norm", x))
	leave()
	for i := range t.layers {
		leave := n.Scope(n.block("layer", i+1))
		x = n.layerNorm(t, "attention/norm", n.add(n.attend(t, x, program.None), x))
		x = n.layerNorm(t, "feed_forward/norm", n.add(n.feedForward(t, x), x))
		leave()
	}
	x = n.dense("pooler", n.row(x, s, 0), t.width, program.OpTanh)
	return n.dense("classifier", n.dropout(t, x), n.classes, "")
}

// decoder is GPT-2: the logits are products with the embedding of the tokens.
func (t transformer) decoder(n *net, ids program.ValueID) program.ValueID {
	leave := n.Scope("embeddings")
	b, s := n.samples, n.extent
	table := n.table("word", int64(n.model.Vocabulary), t.width)
	x := n.add(n.lookup("word", table, ids), n.position("position", int64(t.positions), s, t.width))
	x = n.dropout(t, n.reshape(x, program.Shape{b * s, t.width}))
	mask := n.causal(s)
	leave()
	for i := range t.layers {
		x = n.preNorm(t, n.block("block", i+1), x, mask)
	}
	x = n.layerNorm(t, "norm", x)
	defer n.Scope("logits")()
	return n.Op(program.OpMatMul, program.Attrs{TransposeB: true}, x, n.Read(table))
}

// vision is ViT: an image's patches are its tokens, behind one for the class.
func (t transformer) vision(n *net, x program.ValueID) program.ValueID {
	const patch = 16
	leave := n.Scope("embeddings")
	b, s := n.samples, (n.extent/patch)*(n.extent/patch)
	x = n.conv("patch", x, window{t.width, patch, patch, program.Valid}, true, "")
	x = n.reshape(x, program.Shape{b, s, t.width})
	class := n.Weight("class", program.Shape{1, 1, t.width}, program.Init{})
	class = n.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{b, 1, t.width}}, class)
	x = n.Op(program.OpConcat, program.Attrs{Axes: []int64{1}}, class, x)
	s++
	x = n.add(x, n.position("position", s, s, t.width))
	x = n.dropout(t, n.reshape(x, program.Shape{b * s, t.width}))
	leave()
	n.extent = s
	for i := range t.layers {
		x = n.preNorm(t, n.block("block", i+1), x, program.None)
	}
	x = n.layerNorm(t, "norm", x)
	return n.dense("logits", n.row(x, s, 0), n.classes, "")
}
