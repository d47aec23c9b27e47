package kernel_test

import (
	"testing"

	"tideline/native/dataset"
	"tideline/native/feed"
	"tideline/shared/pipeline"
	"tideline/shared/zoo"
)

// Both models must learn: after a short run over real digits, through the
// real pipeline, more than 95 % of digits that they never saw are right.
func TestModelsLearnTheDigits(t *testing.T) {
	for _, c := range []struct {
		model string
		opt   zoo.Options
		steps int
		want  float32
		long  bool // left out by -short
	}{
		{"mlp", zoo.Options{Batch: 32, Train: true, Optimizer: "sgd"}, 120, 0.95, true},
		{"lenet5", zoo.Options{Batch: 32, Train: true, Optimizer: "adam"}, 150, 0.95, true},
		{"mlp", zoo.Options{Batch: 32, Train: true, Optimizer: "adam", LearningRate: 5e-4}, 40, 0.85, false},
		{"lenet5", zoo.Options{Batch: 16, Train: true, Optimizer: "sgd"}, 80, 0.80, false},
	} {
		t.Run(c.model+" "+c.opt.Optimizer, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("the long runs are for go test without -short")
			}
			loss, accuracy := train(t, c.model, c.opt, c.steps)
			t.Logf("%d steps: loss %.3f, %.1f %% of %d held-out digits right", c.steps, loss, 100*accuracy, dataset.HeldOutCount)
			if accuracy <= c.want {
				t.Errorf("%.1f %% right after %d steps, want more than %.0f", 100*accuracy, c.steps, 100*c.want)
			}
		})
	}
}

// train runs a model over the training digits and gives loss and accuracy on
// those held out.
func train(tb testing.TB, model string, opt zoo.Options, steps int) (loss, accuracy float32) {
	tb.Helper()
	p, err := zoo.Program(model, opt)
	if err != nil {
		tb.Fatal(err)
	}
	m := newMachine(tb, p, 1)
	size := int(p.Values[p.Inputs[0]].Shape[1])
	digits, err := dataset.Training()
	if err != nil {
		tb.Fatal(err)
	}
	f, err := feed.New(feed.Options{
		Settings: pipeline.Settings{
			Elements: digits.Len(), Batch: []int{opt.Batch}, Batches: steps,
			Shuffle: digits.Len(), Seed: 1, Map: pipeline.Map{Parallel: 2}, Prefetch: 2,
		},
		Map:    func(i int32, image []float32) (int64, error) { return digits.Map(i, image, size) },
		Pixels: size * size,
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	for {
		b, err := f.Next()
		if err != nil {
			break
		}
		m.feed(b.Images, b.Labels)
		m.step(tb)
	}
	return evaluate(tb, m, model)
}

func (m *machine) feed(images []float32, labels []int64) {
	copy(m.floats(m.p.Inputs[0]), images)
	copy(m.ints(m.p.Inputs[1]), labels)
}

// evaluate runs the model's evaluation over the held-out digits with the
// weights of m.
func evaluate(tb testing.TB, m *machine, model string) (loss, accuracy float32) {
	tb.Helper()
	_, held, err := dataset.Load()
	if err != nil {
		tb.Fatal(err)
	}
	p, err := zoo.Program(model, zoo.Options{Batch: held.Len()})
	if err != nil {
		tb.Fatal(err)
	}
	e := newMachine(tb, p, 1)
	for id := range e.vars {
		copy(e.vars[id], m.vars[id])
	}
	data := dataset.Of(held)
	elements := make([]int32, held.Len())
	for i := range elements {
		elements[i] = int32(i)
	}
	for i, v := range p.Inputs {
		if err := data.Fill(elements, i, &p.Values[v], e.values[v]); err != nil {
			tb.Fatal(err)
		}
	}
	e.step(tb)
	return e.fetch(tb, "loss")[0], e.fetch(tb, "accuracy")[0]
}

// Two runs must give the same weights to the last bit, whatever the order in
// which cores finish.
func TestTrainingIsReproducible(t *testing.T) {
	opt := zoo.Options{Batch: 32, Train: true, Optimizer: "adam"}
	loss1, acc1 := train(t, "lenet5", opt, 12)
	loss2, acc2 := train(t, "lenet5", opt, 12)
	if loss1 != loss2 || acc1 != acc2 {
		t.Errorf("loss %v and %v, accuracy %v and %v", loss1, loss2, acc1, acc2)
	}
}

// Every kind of model learns: ResNet-50 on small images, the two-layer BERT,
// the LSTM language model, LeNet in other precisions, with its loss scale in
// float16. No value is NaN or infinite on the way.
func TestLossFallsInEveryKindOfModel(t *testing.T) {
	for _, c := range []struct {
		model   string
		opt     zoo.Options
		samples int // that are seen, again and again
		steps   int
		below   float64 // how much of the first losses the last ones may be
	}{
		{"resnet50", zoo.Options{Batch: 4, Image: 32, Classes: 10, Optimizer: "sgd", LearningRate: 0.01}, 4, 4, 0.8},
		{"bert-2layer", zoo.Options{Batch: 8, Optimizer: "adam", LearningRate: 1e-3}, 32, 32, 0.7},
		{"lstm", zoo.Options{Batch: 4, Sequence: 12, Optimizer: "adam", LearningRate: 1e-2}, 1000, 8, 0.7},
		{"lenet5", zoo.Options{Batch: 16, Optimizer: "adam", Precision: "mixed_float16"}, 1000, 16, 0.5},
		{"lenet5", zoo.Options{Batch: 16, Optimizer: "adam", Precision: "mixed_bfloat16"}, 1000, 16, 0.5},
		{"lenet5", zoo.Options{Batch: 16, Optimizer: "adam", Precision: "float64"}, 1000, 16, 0.5},
		{"mlp-8", zoo.Options{Batch: 32, Optimizer: "adam", LearningRate: 1e-2}, 1000, 60, 0.8},
	} {
		t.Run(c.model+" "+c.opt.Precision, func(t *testing.T) {
			c.opt.Train = true
			first, last := losses(t, c.model, c.opt, c.samples, c.steps)
			t.Logf("loss from %.3f to %.3f in %d steps", first, last, c.steps)
			if !(last < c.below*first) {
				t.Errorf("loss from %.3f to %.3f", first, last)
			}
		})
	}
}

// losses trains and gives the mean loss of the first and of the last quarter
// of the steps.
func losses(tb testing.TB, model string, opt zoo.Options, samples, steps int) (first, last float64) {
	tb.Helper()
	b, err := zoo.Build(model, opt)
	if err != nil {
		tb.Fatal(err)
	}
	digits, err := dataset.Training()
	if err != nil {
		tb.Fatal(err)
	}
	data := digits.For(b.Inputs)
	m := newMachine(tb, b.Program, 1)
	m.numerics = true
	quarter := max(1, steps/4)
	elements := make([]int32, opt.Batch)
	for s := range steps {
		for i := range elements {
			elements[i] = int32((s*opt.Batch + i) % samples)
		}
		for i, v := range b.Program.Inputs {
			if err := data.Fill(elements, i, &b.Program.Values[v], m.values[v]); err != nil {
				tb.Fatal(err)
			}
		}
		m.step(tb)
		m.advance()
		loss := float64(m.fetch(tb, "loss")[0])
		if s < quarter {
			first += loss / float64(quarter)
		}
		if s >= steps-quarter {
			last += loss / float64(quarter)
		}
	}
	return first, last
}
