package zoo

import (
	"testing"

	"tideline/shared/program"
)

const (
	lossHead = 1000 * 4 // the backprop tensor of a cross entropy over 1000 classes
	mib      = 1 << 20
)

func TestSavedBytesPerSample(t *testing.T) {
	for model, want := range map[string]int64{"resnet50": 80089088, "resnet50-torch": 80089088, "resnet50-v1.5": 84303872} {
		if got := savedPerSample(t, model, Options{}, "") - lossHead; got != want {
			t.Errorf("%s: %d bytes kept a sample, want %d", model, got, want)
		}
	}
	if got := float64(savedPerSample(t, "vgg16", Options{}, "")) / mib; !near(got, 58.1, 0.001) {
		t.Errorf("vgg16: %.2f MiB kept a sample, want 58.1", got)
	}
	// Gates, state and output of each step and unit; of the last step's output
	// only the copy that the logits are made of.
	steps := savedPerSample(t, "lstm", Options{}, "lstm/step")
	if want := int64(35*6*256*4 - 256*4); steps != want {
		t.Errorf("lstm: %d bytes kept a sample, want %d", steps, want)
	}
}

// Convolution, normalisation, sum and pool outputs, with relu in place: what a
// published table calls feature memory.
func TestFeatureMemoryOfThePublishedTable(t *testing.T) {
	p := build(t, "vgg16", Options{Batch: 1}).Program
	vgg := float64(outputs(p, program.OpConv2D)+outputs(p, program.OpMaxPool)+9192) * 4 / mib
	p = build(t, "resnet50", Options{Batch: 1}).Program
	resnet := float64(2*outputs(p, program.OpConv2D)+outputs(p, program.OpAdd)+outputs(p, program.OpMaxPool)) * 4 / mib
	p = build(t, "resnet18", Options{Batch: 1}).Program
	small := float64(2*outputs(p, program.OpConv2D)+outputs(p, program.OpAdd)+outputs(p, program.OpMaxPool)) * 4 / mib
	if !near(vgg, 57.55, 0.001) || !near(resnet, 102.6, 0.001) || !near(small, 23, 0.03) {
		t.Errorf("vgg16 %.2f MiB, resnet50 %.2f, resnet18 %.2f", vgg, resnet, small)
	}
}

func TestHalfPrecisionHalvesWhatIsKeptAndNoParameters(t *testing.T) {
	for _, model := range []string{"resnet50", "vgg16", "unet", "gpt2", "bert-base", "vit-b16", "lstm"} {
		// Losses are float32 in both, and with many classes more than all else.
		full := savedPerSample(t, model, Options{}, "") - savedPerSample(t, model, Options{}, "loss/")
		for _, precision := range []string{"mixed_float16", "mixed_bfloat16"} {
			opt := Options{Precision: precision}
			half := savedPerSample(t, model, opt, "") - savedPerSample(t, model, opt, "loss/")
			if r := float64(half) / float64(full); r < 0.5 || r > 0.56 {
				t.Errorf("%s in %s keeps %.3f of float32's", model, precision, r)
			}
		}
		p := build(t, model, Options{Batch: 2, Train: true, Optimizer: "sgd", Precision: "mixed_float16"}).Program
		for i := range p.Variables {
			if v := &p.Variables[i]; v.DType != program.Float32 && !v.Training {
				t.Errorf("%s: %s is %s", model, v.Name, v.DType)
			}
		}
	}
}

func TestFloat64DoublesWhatIsKept(t *testing.T) {
	for _, model := range []string{"mlp", "resnet50", "gpt2", "lstm"} {
		single := savedPerSample(t, model, Options{NoDropout: true}, "")
		double := savedPerSample(t, model, Options{Precision: "float64", NoDropout: true}, "")
		if r := float64(double) / float64(single); !near(r, 2, 0.01) {
			t.Errorf("%s: float64 keeps %.3f times float32's", model, r)
		}
	}
}

// What a layer keeps by its published formula, s*b*h*(34 + 5*a*s/h) bytes in
// half precision with masks of a byte; and by one measured in float32.
func TestTransformerLayersKeepWhatTheFormulaSays(t *testing.T) {
	for _, c := range []struct {
		model, layer, precision string
		sequence                int
		h, heads                float64
		perH, perScore          float64
		within                  float64
	}{
		{"gpt2", "block5/", "mixed_float16", 1024, 768, 12, 34, 5, 0.02},
		{"gpt2-xl", "block5/", "mixed_bfloat16", 512, 1600, 25, 34, 5, 0.02},
		{"bert-large", "layer5/", "float32", 512, 1024, 16, 97, 10, 0.2},
		{"bert-base", "layer5/", "float32", 128, 768, 12, 97, 10, 0.2},
		{"gpt2", "block5/", "float32", 1024, 768, 12, 97, 10, 0.2},
	} {
		got := float64(savedPerSample(t, c.model, Options{Precision: c.precision, Sequence: c.sequence}, c.layer))
		s := float64(c.sequence)
		want := s * c.h * (c.perH + c.perScore*c.heads*s/c.h)
		if !near(got, want, c.within) {
			t.Errorf("%s, %d tokens, %s: a layer keeps %.0f bytes, the formula says %.0f", c.model, c.sequence, c.precision, got, want)
		} else {
			t.Logf("%s, %d tokens, %s: a layer keeps %.3f of the formula", c.model, c.sequence, c.precision, got/want)
		}
	}
}

func TestSimpleOpsKeepMore(t *testing.T) {
	const tokens = 128
	for model, most := range map[string]float64{"bert-base": 130, "bert-base-tf1": 210} {
		got := float64(savedPerSample(t, model, Options{Sequence: tokens}, "layer3/")) / (tokens * 768)
		t.Logf("%s keeps %.1f bytes a token and unit in a layer", model, got)
		if got < most*0.8 || got > most {
			t.Errorf("%s keeps %.1f bytes a token and unit in a layer, want up to %v", model, got, most)
		}
	}
}

// Bytes per parameter: weights, the gradients that updates read, state.
func TestOptimizerBytesPerParameter(t *testing.T) {
	for _, c := range []struct {
		optimizer, precision      string
		weights, gradients, state float64
	}{
		{"", "float32", 4, 0, 0},
		{"", "float16", 2, 0, 0},
		{"", "bfloat16", 2, 0, 0},
		{"sgd", "float32", 4, 4, 0},
		{"momentum", "float32", 4, 4, 4},
		{"adagrad", "float32", 4, 4, 4},
		{"rmsprop", "float32", 4, 4, 4},
		{"adam", "float32", 4, 4, 8},
		{"adamw", "float32", 4, 4, 8},
		{"amsgrad", "float32", 4, 4, 12},
		{"adam", "mixed_float16", 4, 4, 8},
		{"adam", "mixed_bfloat16", 4, 4, 8},
		{"adam", "float64", 8, 8, 16},
	} {
		p := build(t, "vgg16", Options{Batch: 1, Train: c.optimizer != "", Optimizer: c.optimizer, Precision: c.precision}).Program
		var weights, gradients, state int64
		for i := range p.Variables {
			switch v := &p.Variables[i]; {
			case v.Trained():
				weights += v.Bytes()
			case v.Slot && len(v.Shape) > 0:
				state += v.Bytes()
			}
		}
		read := map[program.ValueID]bool{}
		for i := range p.Nodes {
			for _, v := range p.Nodes[i].Inputs {
				if x := &p.Values[v]; p.Nodes[i].Phase == program.Update && x.Role == program.RoleGradient && !read[v] {
					read[v] = true
					gradients += x.Bytes()
				}
			}
		}
		n := float64(p.TrainedParameters())
		for what, is := range map[string][2]float64{
			"weights": {float64(weights) / n, c.weights}, "state": {float64(state) / n, c.state}, "gradients": {float64(gradients) / n, c.gradients},
		} {
			if is[0] != is[1] {
				t.Errorf("%s, %s: %v bytes of %s a parameter, want %v", c.optimizer, c.precision, is[0], what, is[1])
			}
		}
	}
}

// The estimate of section 5 of the specification of workloads: 12 bytes a
// parameter with momentum, and what is kept a sample.
func TestResNetEstimateByBatch(t *testing.T) {
	kept := savedPerSample(t, "resnet50", Options{}, "") - lossHead
	p := build(t, "resnet50", Options{Batch: 1, Train: true, Optimizer: "momentum"}).Program
	for batch, want := range map[int64]float64{1: 0.36, 32: 2.67, 64: 5.06, 128: 9.83, 256: 19.38} {
		if got := float64(12*p.TrainedParameters()+kept*batch) / (1 << 30); got < want-0.005 || got > want+0.005 {
			t.Errorf("batch %d: %.3f GiB, want %.2f", batch, got, want)
		}
	}
}

func TestResNetState(t *testing.T) {
	const trained, statistics = 25583592, 53120
	bytes := func(optimizer string) (model, slots int64) {
		p := build(t, "resnet50", Options{Batch: 1, Train: true, Optimizer: optimizer}).Program
		for i := range p.Variables {
			switch v := &p.Variables[i]; {
			case !v.Slot:
				model += v.Bytes()
			case len(v.Shape) > 0:
				slots += v.Bytes()
			}
		}
		return model, slots
	}
	for optimizer, perWeight := range map[string]int64{"momentum": 4, "adam": 8} {
		model, slots := bytes(optimizer)
		if model != 4*(trained+statistics) || slots != perWeight*trained {
			t.Errorf("%s: model of %d bytes, state of %d", optimizer, model, slots)
		}
	}
	if _, slots := bytes("momentum"); slots != 102334368 {
		t.Errorf("momentum's first step adds %d bytes, want 102334368", slots)
	}
}
