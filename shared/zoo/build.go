package zoo

import (
	"fmt"
	"slices"
	"strings"

	"tideline/shared/program"
)

// Options say how to build a model.
type Options struct {
	Batch        int     // samples per step, at least 1
	Image        int     // side in pixels; 0: the model's own
	Sequence     int     // tokens of a sample; 0: the model's own
	Classes      int     // that the head tells apart; 0: the model's own
	Train        bool    // add backward pass and updates; otherwise the step is an evaluation
	Optimizer    string  // one of program.Optimizers; read when Train is set, as are the next five
	LearningRate float64 // 0: the optimizer's default
	Momentum     float64 // of momentum (0: 0.9) and rmsprop (0: none)
	Nesterov     bool    // momentum looks ahead
	Centered     bool    // rmsprop keeps the mean gradient, too
	Clip         float64 // the global norm that gradients are scaled down to; 0: none
	Precision    string  // one of Precisions; "": float32
	NoDropout    bool    // leave out what models that train with dropout drop
}

// precisions are the number formats: what variables are, what arithmetic is on.
var precisions = []struct {
	name           string
	float, compute program.DType
	train, eval    bool
}{
	{"float32", program.Float32, program.Float32, true, true},
	{"float64", program.Float64, program.Float64, true, true},
	{"float16", program.Float16, program.Float16, false, true},
	{"bfloat16", program.BFloat16, program.BFloat16, false, true},
	{"mixed_float16", program.Float32, program.Float16, true, true},
	{"mixed_bfloat16", program.Float32, program.BFloat16, true, true},
}

// Precisions lists the names of the number formats of training, or of
// evaluation. The mixed ones are Keras's policies: variables, losses and the
// statistics of normalisations are float32, all other arithmetic is on half
// the bits, with a loss scale where those are float16.
func Precisions(train bool) []string {
	var names []string
	for _, p := range precisions {
		if (train && p.train) || (!train && p.eval) {
			names = append(names, p.name)
		}
	}
	return names
}

// Input says what one of a program's inputs may hold.
type Input struct {
	Name  string // images, features, tokens, labels
	Below int64  // integers are from 0 to Below-1; 0 for real numbers, which are from 0 to 1
}

// Built is a model's step.
type Built struct {
	Program *program.Program
	Model   *Model
	// Inputs describes Program.Inputs: what the model reads, as its Kind says,
	// and the labels.
	Inputs []Input
	// Blocks are the scopes of the model's repeated blocks, in forward order:
	// every node of block "block3" has a name that begins with "block3/". What a
	// block takes from the one before is one tensor (two for lstm; U-Net's skips
	// apart), which makes their borders the places to recompute from.
	Blocks []string
}

// Build makes the step of a model. Its fetches are "loss" and "accuracy",
// float32 scalars. Without Train the step is an evaluation: the same forward
// pass and fetches, nothing else. Errors name the option that is wrong and say
// what would do.
func Build(name string, opt Options) (*Built, error) {
	m, err := Find(name)
	if err != nil {
		return nil, err
	}
	return m.build(opt)
}

func (m *Model) build(opt Options) (*Built, error) {
	n, err := newNet(m, opt)
	if err != nil {
		return nil, err
	}
	x, labels, inputs := n.inputs()
	loss := n.judge(m.layers(n, x), labels)
	if opt.Train {
		n.Minimize(program.Optimizer{
			Name: opt.Optimizer, Rate: opt.LearningRate, Momentum: opt.Momentum, Nesterov: opt.Nesterov, Centered: opt.Centered,
			ClipNorm: opt.Clip, LossScale: n.ComputeType() == program.Float16,
		}, loss, n.Weights())
	}
	p, err := n.Build()
	if err != nil {
		return nil, err
	}
	return &Built{Program: p, Model: m, Inputs: inputs, Blocks: n.blocks}, nil
}

// Program is Build for callers that want the program alone.
func Program(name string, opt Options) (*program.Program, error) {
	b, err := Build(name, opt)
	if err != nil {
		return nil, err
	}
	return b.Program, nil
}

// newNet checks the options and begins the program.
func newNet(m *Model, opt Options) (*net, error) {
	image, err := m.Image.Of(m.Name, "image", opt.Image)
	if err != nil {
		return nil, err
	}
	sequence, err := m.Sequence.Of(m.Name, "sequence", opt.Sequence)
	if err != nil {
		return nil, err
	}
	classes, err := m.Classes.Of(m.Name, "classes", opt.Classes)
	if err != nil {
		return nil, err
	}
	if opt.Clip < 0 || opt.Clip != opt.Clip {
		return nil, fmt.Errorf("clip %v: a norm is above 0, such as 1; 0 is none", opt.Clip)
	}
	n := &net{
		Builder: program.NewBuilder(m.Name, opt.Batch), model: m, train: opt.Train, dropped: opt.NoDropout,
		samples: int64(opt.Batch), extent: int64(image + sequence + m.Features), classes: int64(classes),
	}
	if m.Task == NextToken {
		n.classes = int64(m.Vocabulary)
	}
	return n, n.precision(opt.Precision)
}

// precision sets the number format.
func (n *net) precision(name string) error {
	if name == "" {
		name = "float32"
	}
	if known := Precisions(n.train); !slices.Contains(known, name) {
		what := "evaluation"
		if n.train {
			what = "training"
		}
		return fmt.Errorf("precision %q: %s takes one of %s", name, what, strings.Join(known, ", "))
	}
	for _, p := range precisions {
		if p.name == name {
			n.Float(p.float)
			n.Compute(p.compute)
		}
	}
	return nil
}

// inputs adds what the step is fed and gives the first in the type of the
// arithmetic.
func (n *net) inputs() (x, labels program.ValueID, in []Input) {
	b, s, m := n.samples, n.extent, n.model
	in = []Input{{m.Kind.String(), 0}, {"labels", n.classes}}
	ls := program.Shape{b}
	switch m.Kind {
	case Tokens:
		in[0].Below = int64(m.Vocabulary)
		x = n.Input(in[0].Name, program.Int32, program.Shape{b, s})
	case Features:
		x = n.Input(in[0].Name, program.Float32, program.Shape{b, s})
	default:
		x = n.Input(in[0].Name, program.Float32, program.Shape{b, s, s, int64(m.Channels)})
	}
	switch m.Task {
	case Classify:
	case NextToken:
		ls = append(ls, s)
	case ClassifyPixels:
		ls = append(ls, s, s)
	}
	labels = n.Input(in[1].Name, program.Int64, ls)
	if m.Kind != Tokens {
		x = n.cast(x, n.ComputeType())
	}
	return x, labels, in
}

// judge adds what all models are judged by: the mean cross entropy of logits
// [...,c] against labels, which it gives, and the fraction that is right.
func (n *net) judge(logits, labels program.ValueID) program.ValueID {
	leave := n.Scope("loss")
	if s := n.Shape(labels); len(s) > 1 {
		labels = n.reshape(labels, program.Shape{s.Elements()})
		logits = n.reshape(logits, program.Shape{s.Elements(), n.classes})
	}
	logits = n.asWide(logits)
	loss := n.Op(program.OpMean, program.Attrs{}, n.Op(program.OpSparseXent, program.Attrs{}, logits, labels))
	fetched := n.cast(loss, program.Float32)
	leave()
	leave = n.Scope("accuracy")
	right := n.Op(program.OpEqual, program.Attrs{}, n.Op(program.OpArgMax, program.Attrs{}, logits), labels)
	accuracy := n.Op(program.OpMean, program.Attrs{}, n.Op(program.OpCast, program.Attrs{DType: program.Float32}, right))
	leave()
	n.Fetch("loss", fetched)
	n.Fetch("accuracy", accuracy)
	return loss
}
