package program

import (
	"fmt"
	"strings"
)

// Options say how to build a model of the zoo.
type Options struct {
	Batch        int     // samples per step, at least 1
	Train        bool    // add backward pass and updates; otherwise the step is an evaluation
	Optimizer    string  // sgd, adam; read when Train is set
	LearningRate float64 // 0: the optimizer's default
}

// model is one entry of the zoo.
type model struct {
	name   string
	image  Shape // of one sample
	logits func(b *Builder, x ValueID) ValueID
}

// zoo lists the models in the order in which they are shown.
var zoo = []model{
	{"mlp", Shape{28, 28, 1}, mlp},
	{"lenet5", Shape{32, 32, 1}, lenet5},
}

// Models lists the names that Build knows.
func Models() []string {
	names := make([]string, len(zoo))
	for i := range zoo {
		names[i] = zoo[i].name
	}
	return names
}

// classes is the number of classes of the digits.
const classes = 10

// Build makes the step of a model: its inputs are images [n,h,w,1], float32,
// and labels [n], int64; its fetches are "loss" and "accuracy". Without Train
// the step is an evaluation: the same forward pass and fetches, nothing else.
func Build(name string, opt Options) (*Program, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(name, opt.Batch)
	n := int64(opt.Batch)
	x := b.Input("images", Float32, append(Shape{n}, m.image...))
	y := b.Input("labels", Int64, Shape{n})
	loss := b.Classify(m.logits(b, x), y)
	if opt.Train {
		b.train(loss, opt)
	}
	return b.Build()
}

func find(name string) (*model, error) {
	for i := range zoo {
		if zoo[i].name == name {
			return &zoo[i], nil
		}
	}
	return nil, fmt.Errorf("model %q is not in the zoo: choose one of %s", name, strings.Join(Models(), ", "))
}

// train adds the backward pass and the updates of all weights.
func (b *Builder) train(loss ValueID, opt Options) {
	vars := b.Weights()
	grads := b.Gradients(loss, vars)
	rate, err := LearningRate(opt.Optimizer, opt.LearningRate)
	if err != nil {
		b.fail(err)
		return
	}
	if opt.Optimizer == "adam" {
		b.Adam(rate, vars, grads)
		return
	}
	b.SGD(rate, vars, grads)
}

// mlp is the multilayer perceptron 784-512-512-10 of the MNIST tutorials
// without its dropout, so that a step is a function of its inputs alone.
// 669706 parameters.
func mlp(b *Builder, x ValueID) ValueID {
	x = b.Flatten("flatten", x)
	x = b.Dense("dense1", x, 512, OpRelu)
	x = b.Dense("dense2", x, 512, OpRelu)
	return b.Dense("logits", x, classes, "")
}

// lenet5 is LeNet-5 with hyperbolic tangents, average pooling and every map
// of the second convolution connected to all of the first. 61706 parameters.
func lenet5(b *Builder, x ValueID) ValueID {
	x = b.Conv("conv1", x, 6, 5, Valid, OpTanh)
	x = b.Pool("pool1", OpAvgPool, x, 2)
	x = b.Conv("conv2", x, 16, 5, Valid, OpTanh)
	x = b.Pool("pool2", OpAvgPool, x, 2)
	x = b.Flatten("flatten", x)
	x = b.Dense("dense1", x, 120, OpTanh)
	x = b.Dense("dense2", x, 84, OpTanh)
	return b.Dense("logits", x, classes, "")
}
