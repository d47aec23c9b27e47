package zoo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tideline/shared/program"
)

func build(tb testing.TB, name string, opt Options) *Built {
	tb.Helper()
	b, err := Build(name, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestLeNetShapes(t *testing.T) {
	p := build(t, "lenet5", Options{Batch: 3}).Program
	want := map[string]string{
		"conv1/Conv2D": "[3,28,28,6]", "pool1/AvgPool": "[3,14,14,6]", "conv2/Conv2D": "[3,10,10,16]",
		"pool2/AvgPool": "[3,5,5,16]", "flatten/Reshape": "[3,400]", "dense1/Tanh": "[3,120]",
		"dense2/Tanh": "[3,84]", "logits/BiasAdd": "[3,10]", "loss/Mean": "[]", "accuracy/Mean": "[]",
	}
	for _, v := range p.Values {
		if s, ok := want[v.Name]; ok {
			if s != v.Shape.String() {
				t.Errorf("%s: %s, want %s", v.Name, v.Shape, s)
			}
			delete(want, v.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no values named %v", want)
	}
}

func TestTrainingStepHoldsWhatItShould(t *testing.T) {
	p := build(t, "lenet5", Options{Batch: 4, Train: true, Optimizer: "adam"}).Program
	var slots, slotBytes, applies, grads int64
	for _, v := range p.Variables {
		if v.Slot {
			slots++
			slotBytes += v.Bytes()
		}
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == program.OpApplyAdam {
			applies++
		}
	}
	for i := range p.Values {
		if v := &p.Values[i]; v.Role == program.RoleGradient {
			grads += v.Shape.Elements()
		}
	}
	if slots != 2*10+2 || slotBytes != 2*4*61706+8 || applies != 10 || grads != 61706 {
		t.Errorf("%d slots of %d bytes, %d updates, %d gradient elements", slots, slotBytes, applies, grads)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Name == "gradients/conv1/Conv2DBackpropInput" {
			t.Error("a gradient of the images is computed, though nobody asked")
		}
		if (n.Phase == program.Backward && n.Of == program.None && n.Op != program.OpConst) || (n.Phase != program.Backward && n.Of != program.None) {
			t.Errorf("%s: phase %d, backward of %d", n.Name, n.Phase, n.Of)
		}
	}
}

func TestUpdatesWaitForAllReadersOfTheVariable(t *testing.T) {
	for _, optimizer := range []string{"sgd", "adam"} {
		p := build(t, "lenet5", Options{Batch: 2, Train: true, Optimizer: optimizer}).Program
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if n.Op != program.OpApplySGD && n.Op != program.OpApplyAdam {
				continue
			}
			for j := range p.Nodes {
				for _, v := range p.Nodes[j].Inputs {
					if v == n.Inputs[0] && j != i && !slices.Contains(n.Control, program.NodeID(j)) {
						t.Errorf("%s may run before %s has read the variable", n.Name, p.Nodes[j].Name)
					}
				}
			}
		}
	}
}

func TestBuildIsDeterministic(t *testing.T) {
	for _, model := range []string{"lenet5", "resnet18", "unet", "bert-2layer", "lstm"} {
		opt := Options{Batch: 9, Train: true, Optimizer: "adam", Precision: "mixed_float16", Clip: 1}
		a, b := build(t, model, opt), build(t, model, opt)
		if !reflect.DeepEqual(a.Program, b.Program) || !slices.Equal(a.Blocks, b.Blocks) {
			t.Errorf("%s: two builds differ", model)
		}
		if fmt.Sprintf("%+v", *a.Program) != fmt.Sprintf("%+v", *b.Program) {
			t.Errorf("%s: two builds print differently", model)
		}
	}
}

func TestBuildErrorsNameWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		model string
		opt   Options
		want  string
	}{
		{"lenet", Options{Batch: 1}, `"lenet" is not in the zoo: choose one of mlp, mlp-128`},
		{"mlp", Options{}, "batch 0"},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "lion"}, `optimizer "lion" is unknown: choose one of sgd, momentum`},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "sgd", LearningRate: -1}, "learning rate -1"},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "sgd", Clip: -2}, "clip -2"},
		{"mlp", Options{Batch: 1, Sequence: 3}, "sequence 3: mlp has none"},
		{"mlp", Options{Batch: 1, Classes: 1}, "classes 1: mlp takes 2 to"},
		{"mlp", Options{Batch: 1, Precision: "int8"}, `precision "int8": evaluation takes one of float32, float64, float16`},
		{"mlp", Options{Batch: 1, Train: true, Optimizer: "sgd", Precision: "float16"}, `precision "float16": training takes one of float32, float64, mixed_float16`},
		{"unet", Options{Batch: 1, Image: 572}, "image 572: unet takes multiples of 16, such as 560 or 576"},
		{"unet", Options{Batch: 1, Image: 8}, "image 8: unet takes 16 to 1024"},
		{"unet", Options{Batch: 1, Image: -16}, "image -16: unet takes"},
		{"resnet50", Options{Batch: 1, Image: 31}, "image 31: resnet50 takes 32 to 1024"},
		{"gpt2", Options{Batch: 1, Sequence: 1025}, "sequence 1025: gpt2 takes 1 to 1024"},
		{"gpt2", Options{Batch: 1, Classes: 3}, "classes 3: gpt2 has none"},
		{"bert-base", Options{Batch: 1, Image: 32}, "image 32: bert-base has none"},
	} {
		if _, err := Build(c.model, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: error %v, want %q in it", c.model, c.opt, err, c.want)
		}
	}
}
