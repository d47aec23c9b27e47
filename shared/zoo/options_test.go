package zoo

import (
	"slices"
	"strings"
	"testing"

	"tideline/shared/program"
)

// small gives options under which a model is as small as it can be.
func small(m *Model) Options {
	return Options{Batch: 2, Image: m.Image.Min, Sequence: m.Sequence.Min}
}

func TestEveryModelBuildsInEveryPrecision(t *testing.T) {
	for _, m := range Models() {
		for _, train := range []bool{false, true} {
			for _, precision := range Precisions(train) {
				opt := small(&m)
				opt.Precision, opt.Train, opt.Optimizer = precision, train, "sgd"
				p := build(t, m.Name, opt).Program
				if len(p.Fetches) != 2 || p.Fetches[0].Name != "loss" || p.Fetches[1].Name != "accuracy" {
					t.Errorf("%s: fetches %v", m.Name, p.Fetches)
				}
				for _, f := range p.Fetches {
					if v := &p.Values[f.Value]; v.DType != program.Float32 || len(v.Shape) != 0 {
						t.Errorf("%s in %s: %s is %s%s", m.Name, precision, f.Name, v.DType, v.Shape)
					}
				}
				wantTypes(t, p, precision)
			}
		}
	}
}

// wantTypes checks in which types a program computes.
func wantTypes(t *testing.T, p *program.Program, precision string) {
	t.Helper()
	half := program.Float32
	switch {
	case strings.HasSuffix(precision, "bfloat16"):
		half = program.BFloat16
	case strings.HasSuffix(precision, "float16"):
		half = program.Float16
	case precision == "float64":
		half = program.Float64
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, v := range append(slices.Clone(n.Inputs), n.Outputs...) {
			d := p.Values[v].DType
			wrong := false
			switch n.Op {
			case program.OpMatMul, program.OpBatchMatMul, program.OpConv2D, program.OpConv2DBackpropInput, program.OpConv2DBackpropFilter, program.OpSoftmax:
				wrong = d != half
			case program.OpSparseXent:
				wrong = d == program.Float16 || d == program.BFloat16
			case program.OpFusedBatchNorm, program.OpFusedBatchNormGrad:
				wrong = d != half && d != program.Float32
			default:
			}
			if wrong {
				t.Fatalf("%s in %s: %s has a %s", p.Name, precision, n.Name, d)
			}
		}
	}
	scaled := count(p, program.OpUpdateLossScale)
	if want := precision == "mixed_float16" && count(p, program.OpApplySGD) > 0; (scaled == 1) != want {
		t.Errorf("%s in %s: %d loss scales", p.Name, precision, scaled)
	}
}

func TestEveryOptimizerUpdatesEveryWeightOnce(t *testing.T) {
	for _, model := range []string{"resnet18", "bert-2layer", "lstm", "gpt2"} {
		for _, optimizer := range program.Optimizers() {
			for _, precision := range Precisions(true) {
				m, _ := Find(model)
				opt := small(m)
				opt.Train, opt.Optimizer, opt.Precision, opt.Clip = true, optimizer, precision, 1
				p := build(t, model, opt).Program
				updates := make([]int, len(p.Variables))
				for i := range p.Nodes {
					if n := &p.Nodes[i]; n.Phase == program.Update && n.Attrs.Variable != program.None {
						updates[n.Attrs.Variable]++
					}
				}
				for i := range p.Variables {
					if v := &p.Variables[i]; v.Trained() && updates[i] != 1 {
						t.Fatalf("%s, %s, %s: %s is updated %d times", model, optimizer, precision, v.Name, updates[i])
					}
				}
			}
		}
	}
}

func TestEvaluationIsTheForwardPassAlone(t *testing.T) {
	for _, m := range Models() {
		p := build(t, m.Name, small(&m)).Program
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if d, _ := program.Lookup(n.Op); n.Phase != program.Forward || d.Stateful || d.Random || n.Attrs.Training {
				t.Errorf("%s: an evaluation has %s, a %s", m.Name, n.Name, n.Op)
			}
		}
	}
}

func TestTrainingMovesTheStatisticsOfNormalisation(t *testing.T) {
	p := build(t, "resnet50", Options{Batch: 2, Image: 32, Train: true, Optimizer: "sgd"}).Program
	norms, moves := count(p, program.OpFusedBatchNorm), count(p, program.OpAssignMovingAverage)
	if norms != 53 || moves != 2*norms {
		t.Errorf("%d normalisations move %d statistics", norms, moves)
	}
	for i := range p.Variables {
		if v := &p.Variables[i]; v.Frozen != strings.Contains(v.Name, "/moving_") {
			t.Errorf("%s: frozen is %t", v.Name, v.Frozen)
		}
	}
}

func TestDropoutIsOnInTrainingUnlessLeftOut(t *testing.T) {
	for model, want := range map[string]int{"bert-2layer": 1 + 3*2 + 1, "gpt2": 1 + 3*12, "vit-b16": 1 + 3*12, "vgg16": 0, "mlp": 0} {
		m, _ := Find(model)
		opt := small(m)
		opt.Train, opt.Optimizer = true, "sgd"
		p := build(t, model, opt).Program
		seeds := map[int64]bool{}
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Op == program.OpDropout {
				seeds[n.Attrs.Seed] = true
			}
		}
		if len(seeds) != want || count(p, program.OpDropout) != want {
			t.Errorf("%s: %d dropouts of %d seeds, want %d", model, count(p, program.OpDropout), len(seeds), want)
		}
		opt.NoDropout = true
		if got := count(build(t, model, opt).Program, program.OpDropout); got != 0 {
			t.Errorf("%s: %d dropouts though they are left out", model, got)
		}
	}
}

func TestInputsAreDescribed(t *testing.T) {
	for _, c := range []struct {
		model  string
		opt    Options
		shapes [2]string
		below  [2]int64
	}{
		{"mlp", Options{Batch: 3}, [2]string{"float32[3,28,28,1]", "int64[3]"}, [2]int64{0, 10}},
		{"mlp-8", Options{Batch: 3}, [2]string{"float32[3,8]", "int64[3]"}, [2]int64{0, 4}},
		{"resnet50", Options{Batch: 3, Image: 64, Classes: 7}, [2]string{"float32[3,64,64,3]", "int64[3]"}, [2]int64{0, 7}},
		{"resnet50", Options{Batch: 3, Precision: "float16"}, [2]string{"float32[3,224,224,3]", "int64[3]"}, [2]int64{0, 1000}},
		{"unet", Options{Batch: 3}, [2]string{"float32[3,512,512,1]", "int64[3,512,512]"}, [2]int64{0, 2}},
		{"unet", Options{Batch: 3, Image: 576}, [2]string{"float32[3,576,576,1]", "int64[3,576,576]"}, [2]int64{0, 2}},
		{"bert-base", Options{Batch: 3}, [2]string{"int32[3,128]", "int64[3]"}, [2]int64{30522, 2}},
		{"bert-2layer", Options{Batch: 3, Sequence: 100}, [2]string{"int32[3,100]", "int64[3]"}, [2]int64{1000, 2}},
		{"gpt2", Options{Batch: 3, Sequence: 7}, [2]string{"int32[3,7]", "int64[3,7]"}, [2]int64{50257, 50257}},
		{"lstm", Options{Batch: 3}, [2]string{"int32[3,35]", "int64[3,35]"}, [2]int64{10000, 10000}},
	} {
		b := build(t, c.model, c.opt)
		if len(b.Program.Inputs) != 2 || len(b.Inputs) != 2 {
			t.Fatalf("%s has %d inputs, describes %d", c.model, len(b.Program.Inputs), len(b.Inputs))
		}
		for i, id := range b.Program.Inputs {
			v := &b.Program.Values[id]
			if got := v.DType.String() + v.Shape.String(); got != c.shapes[i] || v.Name != b.Inputs[i].Name || b.Inputs[i].Below != c.below[i] {
				t.Errorf("%s: input %d is %s %s, described as %+v", c.model, i, v.Name, got, b.Inputs[i])
			}
		}
		if b.Inputs[0].Name != b.Model.Kind.String() || b.Inputs[1].Name != "labels" {
			t.Errorf("%s: inputs %+v", c.model, b.Inputs)
		}
	}
}

func TestBlocksAreScopesOfForwardNodes(t *testing.T) {
	for model, want := range map[string]int{
		"mlp": 2, "lenet5": 4, "vgg16": 5, "resnet18": 8, "resnet50": 16, "resnet50-v1.5": 16, "unet": 9,
		"bert-base": 12, "bert-large": 24, "gpt2": 12, "gpt2-xl": 48, "vit-b16": 12, "lstm": 35, "bert-2layer": 2,
	} {
		b := build(t, model, Options{Batch: 1})
		if len(b.Blocks) != want {
			t.Errorf("%s has %d blocks, want %d", model, len(b.Blocks), want)
		}
		at := 0 // the block that the last node with one belongs to
		for i := range b.Program.Nodes {
			scope := slices.IndexFunc(b.Blocks, func(s string) bool { return strings.HasPrefix(b.Program.Nodes[i].Name, s+"/") })
			if scope >= 0 && scope != at && scope != at+1 {
				t.Errorf("%s: %s comes after block %s", model, b.Program.Nodes[i].Name, b.Blocks[at])
			}
			at = max(at, scope)
		}
		if at != len(b.Blocks)-1 {
			t.Errorf("%s: the last block with a node is %d of %d", model, at, len(b.Blocks))
		}
	}
}

func TestModelsAreDescribed(t *testing.T) {
	names := map[string]bool{}
	for i, m := range Models() {
		if names[m.Name] || m.Title == "" || Names()[i] != m.Name {
			t.Errorf("%+v", m)
		}
		names[m.Name] = true
		if (m.Image.Default > 0) != (m.Kind == Images) || (m.Channels > 0) != (m.Kind == Images) || (m.Features > 0) != (m.Kind == Features) ||
			(m.Sequence.Default > 0) != (m.Kind == Tokens) || (m.Vocabulary > 0) != (m.Kind == Tokens) || (m.Classes.Default > 0) != (m.Task != NextToken) {
			t.Errorf("%s: the description of a %s model for %s does not fit together: %+v", m.Name, m.Kind, m.Task, m)
		}
		for _, r := range []Range{m.Image, m.Sequence, m.Classes} {
			for _, n := range []int{r.Default, r.Min, r.Max} {
				if got, err := r.Of(m.Name, "size", n); n > 0 && (err != nil || got != n) {
					t.Errorf("%s: %d of %+v: %v", m.Name, n, r, err)
				}
			}
		}
	}
}

func TestErrorsOfRangesSayWhatWouldDo(t *testing.T) {
	r := Range{Default: 64, Min: 32, Max: 100, Multiple: 16}
	for n, want := range map[int]string{
		31: "m takes 32 to 100", 101: "m takes 32 to 100", 33: "such as 32 or 48", 97: "multiples of 16, such as 80 or 96", -64: "m takes 32 to 100",
	} {
		if _, err := r.Of("m", "size", n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", n, err, want)
		}
	}
}
