package zoo

import (
	"fmt"
	"testing"

	"tideline/shared/program"
)

func TestParameterCountsAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		model          string
		total, trained int64
		head           int64 // of total, that published counts leave out
	}{
		{"mlp-8", 212, 212, 0},
		{"mlp-128", 101770, 101770, 0},
		{"mlp", 669706, 669706, 0},
		{"lenet5", 61706, 61706, 0},
		{"resnet50", 25636712, 25583592, 0},
		{"resnet50-torch", 25557032 + 53120, 25557032, 0}, // statistics are no parameters there
		{"resnet50-v1.5", 25557032 + 53120, 25557032, 0},
		{"resnet18", 11689512 + 9600, 11689512, 0},
		{"vgg16", 138357544, 138357544, 0},
		{"unet", 31030658, 31030658, 0},
		{"bert-base", 109482240, 109482240, 2*768 + 2},
		{"bert-large", 335141888, 335141888, 2*1024 + 2},
		{"bert-base-tf1", 109482240, 109482240, 2*768 + 2},
		{"bert-large-tf1", 335141888, 335141888, 2*1024 + 2},
		{"gpt2", 124439808, 124439808, 0},
		{"gpt2-medium", 354823168, 354823168, 0},
		{"gpt2-large", 774030080, 774030080, 0},
		{"gpt2-xl", 1557611200, 1557611200, 0},
		{"vit-b16", 86567656, 86567656, 0},
		{"lstm", 1280000 + 394240 + 2570000, 1280000 + 394240 + 2570000, 0},
	} {
		for _, opt := range []Options{{Batch: 1}, {Batch: 2, Train: true, Optimizer: "adam"}} {
			p := build(t, c.model, opt).Program
			if got := p.Parameters() - c.head; got != c.total {
				t.Errorf("%s %+v: %d parameters, want %d", c.model, opt, got, c.total)
			}
			if got := p.TrainedParameters() - c.head; got != c.trained {
				t.Errorf("%s %+v: %d trained parameters, want %d", c.model, opt, got, c.trained)
			}
		}
	}
}

func TestUNetParametersByChannelsAndClasses(t *testing.T) {
	m, err := Find("unet")
	if err != nil {
		t.Fatal(err)
	}
	for channels, want := range map[int]int64{1: 31030593, 3: 31031745} {
		m.Channels = channels
		b, err := m.build(Options{Batch: 1, Classes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Program.Parameters(); got != want {
			t.Errorf("%d channels: %d parameters, want %d", channels, got, want)
		}
	}
}

func TestParametersOfLayers(t *testing.T) {
	for model, layers := range map[string]map[string]int64{
		"mlp":        {"dense1/": 401920, "dense2/": 262656, "logits/": 5130},
		"lenet5":     {"conv1/": 156, "conv2/": 2416, "dense1/": 48120, "dense2/": 10164, "logits/": 850},
		"vgg16":      {"fc1/": 102764544, "fc2/": 16781312, "logits/": 4097000},
		"bert-base":  {"embeddings/": 23837184, "layer1/": 7087872, "layer12/": 7087872, "pooler/": 590592, "classifier/": 1538},
		"bert-large": {"embeddings/": 31782912, "layer1/": 12596224, "layer24/": 12596224, "pooler/": 1049600},
		"gpt2":       {"embeddings/": 39383808, "block1/": 7087872, "block12/": 7087872, "norm/": 1536},
		"vit-b16": {
			"embeddings/patch/": 590592, "embeddings/class": 768, "embeddings/position": 151296,
			"block1/": 7087872, "norm/": 1536, "logits/": 769000,
		},
		"lstm": {"embedding/": 1280000, "lstm/": 394240, "logits/": 2570000},
		"unet": {
			"down1/": 37568, "down2/": 221440, "down3/": 885248, "down4/": 3539968, "bottom/": 14157824,
			"up4/up/": 2097664, "up4/conv": 7078912, "up3/up/": 524544, "up3/conv": 1769984,
			"up2/up/": 131200, "up2/conv": 442624, "up1/up/": 32832, "up1/conv": 110720, "logits/": 130,
		},
	} {
		p := build(t, model, Options{Batch: 1}).Program
		for scope, want := range layers {
			if got := parameters(p, scope); got != want {
				t.Errorf("%s: %d parameters under %s, want %d", model, got, scope, want)
			}
		}
	}
}

func TestElementsOfOutputs(t *testing.T) {
	for model, ops := range map[string]map[program.Op]int64{
		"vgg16":         {program.OpConv2D: 13547520, program.OpMaxPool: 1530368},
		"resnet50":      {program.OpConv2D: 10587136, program.OpRelu: 9081856, program.OpAdd: 5519360, program.OpMaxPool: 200704},
		"resnet50-v1.5": {program.OpConv2D: 11113984, program.OpRelu: 9608704, program.OpAdd: 5519360, program.OpMaxPool: 200704},
	} {
		p := build(t, model, Options{Batch: 1}).Program
		for op, want := range ops {
			if got := outputs(p, op); got != want {
				t.Errorf("%s: %s gives %d elements, want %d", model, op, got, want)
			}
		}
	}
	if got := count(build(t, "resnet50", Options{Batch: 1}).Program, program.OpConv2D); got != 53 {
		t.Errorf("resnet50 has %d convolutions, want 53", got)
	}
}

func TestUNetOutputsBySize(t *testing.T) {
	for _, c := range []struct {
		side                        int
		conv, up, concat, gigaFLOPs float64 // megabytes of float32
	}{
		{256, 128.45, 31.46, 62.91, 96.2},
		{512, 513.8, 125.8, 251.7, 384.8},
	} {
		p := build(t, "unet", Options{Batch: 1, Image: c.side}).Program
		for what, is := range map[string][2]float64{
			"convolutions": {float64(outputs(p, program.OpConv2D)) * 4e-6, c.conv},
			"ways up":      {float64(outputs(p, program.OpConv2DBackpropInput)) * 4e-6, c.up},
			"concat":       {float64(outputs(p, program.OpConcat)) * 4e-6, c.concat},
			"work":         {float64(products(p)) * 1e-9, c.gigaFLOPs},
		} {
			if !near(is[0], is[1], 0.002) {
				t.Errorf("%d pixels, %s: %.2f, want %.2f", c.side, what, is[0], is[1])
			}
		}
	}
}

func TestForwardWork(t *testing.T) {
	for model, want := range map[string]float64{
		"mlp":           2 * (784*512 + 512*512 + 512*10),
		"lenet5":        2 * (28*28*25*6 + 10*10*150*16 + 400*120 + 120*84 + 84*10),
		"vgg16":         30.94e9,
		"resnet50":      7.72e9,
		"resnet50-v1.5": 8.18e9,
	} {
		p := build(t, model, Options{Batch: 5}).Program
		if got := float64(products(p)) / 5; !near(got, want, 0.01) {
			t.Errorf("%s: %.4g operations a sample, want %.4g", model, got, want)
		}
		if total := p.TotalCost(program.Forward).FLOPs; total <= products(p) {
			t.Errorf("%s: the total of %d is not above the products' %d", model, total, products(p))
		}
	}
}

// Batch 8 of 1024 tokens: what foretells them is larger than all else.
func TestGPT2LogitsAppearOnceAsOutputAndOnceAsGradient(t *testing.T) {
	const want = 8 * 1024 * 50257 * 4
	if want != 1646821376 {
		t.Fatal(want)
	}
	p := build(t, "gpt2", Options{Batch: 8, Train: true, Optimizer: "sgd"}).Program
	var forward, backward []string
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if d, _ := program.Lookup(n.Op); d.Alias {
			continue
		}
		for _, v := range n.Outputs {
			if p.Values[v].Bytes() != want {
				continue
			}
			if n.Phase == program.Forward {
				forward = append(forward, p.Values[v].Name)
			} else if !forwards(n, v) {
				backward = append(backward, p.Values[v].Name)
			}
		}
	}
	if fmt.Sprint(forward, backward) != "[logits/MatMul loss/SparseSoftmaxCrossEntropyWithLogits:1] []" {
		t.Errorf("forward pass makes %v, backward pass %v", forward, backward)
	}
}

// forwards says whether a node may write output v over an input.
func forwards(n *program.Node, v program.ValueID) bool {
	d, _ := program.Lookup(n.Op)
	return len(d.Forwardable) > 0 && n.Outputs[d.ForwardOutput] == v
}
