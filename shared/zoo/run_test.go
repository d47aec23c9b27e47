package zoo_test

import (
	"math"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

// What models come to in a run, on modelled cards.

// training is a workload of two steps on one large card.
func training(model string, batch int, t api.Train) api.Workload {
	return api.Workload{
		Model: model, Mode: api.Graph, Train: &t, Batch: []int{batch}, Steps: 2,
		Input:   api.Input{Source: "synthetic", Prefetch: 1},
		Devices: []api.Device{{Preset: "a100-40g"}},
	}
}

func run(tb testing.TB, w api.Workload, sink func(*event.Event)) launch.Result {
	tb.Helper()
	if sink == nil {
		sink = func(*event.Event) {}
	}
	r, err := launch.Run(w, launch.Options{Strings: new(event.Strings), Sink: event.SinkFunc(sink)})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// peak is the most that the card's tensors took.
func peak(tb testing.TB, w api.Workload) float64 {
	tb.Helper()
	r := run(tb, w, nil)
	if r.Reason != event.EndDone {
		tb.Fatalf("%s, batch %v: %s", w.Model, w.Batch, r.Message)
	}
	for _, d := range r.Devices {
		if d.Limit > 0 {
			return float64(d.PeakInUse)
		}
	}
	tb.Fatal("no card")
	return 0
}

func near(got, want, within float64) bool { return math.Abs(got-want) <= within*want }

// The peak is affine in the batch: what is kept a sample, and the transient
// tensors of the moment, which are told apart.
func TestPeakGrowsByWhatIsKept(t *testing.T) {
	for model, kept := range map[string]float64{"resnet50": 80089088, "resnet50-v1.5": 84303872} {
		slope := (peak(t, training(model, 32, api.Train{})) - peak(t, training(model, 16, api.Train{}))) / 16
		t.Logf("%s: %.0f bytes a sample, %.0f of them transient", model, slope, slope-kept)
		if !near(slope, kept, 0.01) {
			t.Errorf("%s: the peak grows by %.0f bytes a sample, %.0f are kept", model, slope, kept)
		}
	}
}

func TestPeakDoublesInFloat64(t *testing.T) {
	for _, model := range []string{"resnet50", "lstm"} {
		single := peak(t, training(model, 16, api.Train{Precision: "float32"}))
		double := peak(t, training(model, 16, api.Train{Precision: "float64"}))
		if !near(double, 2*single, 0.01) {
			t.Errorf("%s: peak of %.0f in float32, %.3f times that in float64", model, single, double/single)
		}
	}
}

func TestMomentumsFirstStepAddsItsState(t *testing.T) {
	var requested, taken, tensors int64
	run(t, training("resnet50", 1, api.Train{Optimizer: "momentum"}), func(e *event.Event) {
		if e.Kind == event.Alloc && e.Category == event.OptimizerState {
			if e.Step != 0 {
				t.Errorf("state is made in step %d", e.Step)
			}
			requested += e.Requested
			taken += e.Size
			tensors++
		}
	})
	if requested != 102334368 || taken < requested || taken > requested+255*tensors {
		t.Errorf("%d tensors of state, %d bytes requested, %d taken", tensors, requested, taken)
	}
}

func TestGPT2LogitsAreHeldTwice(t *testing.T) {
	const logits = 8 * 1024 * 50257 * 4
	var live, most, made int
	held := map[uint64]bool{}
	run(t, training("gpt2", 8, api.Train{Optimizer: "sgd"}), func(e *event.Event) {
		switch e.Kind {
		case event.Alloc:
			if e.Requested == logits {
				held[e.Address] = true
				made++
				live++
				most = max(most, live)
			}
		case event.Free:
			if held[e.Address] {
				delete(held, e.Address)
				live--
			}
		default:
		}
	})
	if most != 2 || made != 2*2 {
		t.Errorf("at most %d tensors of %d bytes at a time, %d made in two steps", most, logits, made)
	}
}

func TestResNetFitsAT4UpToABatch(t *testing.T) {
	for batch, want := range map[int]event.EndReason{32: event.EndDone, 192: event.EndOutOfMemory} {
		w := training("resnet50", batch, api.Train{Optimizer: "adam"})
		w.Devices = []api.Device{{Preset: "t4-16g"}}
		r := run(t, w, nil)
		if r.Reason != want {
			t.Errorf("batch %d: %s %s", batch, r.Reason, r.Message)
		}
		for _, d := range r.Devices {
			if gib := float64(d.Limit) / (1 << 30); d.Limit > 0 && (gib < 13.3 || gib > 13.6) {
				t.Errorf("the limit is %.2f GiB", gib)
			}
		}
	}
}

// Fine-tuning BERT-base on a card of 12 GB: its authors measured these largest
// batches with TensorFlow 1.11. Ours are up to 1.6 times theirs, closest where
// samples are long and memory is not what lies between them.
func TestBERTFitsFewerSamplesTheLongerTheyAre(t *testing.T) {
	const limit = 112 << 30 / 10
	fits := func(sequence, batch int) bool {
		w := training("bert-base-tf1", batch, api.Train{Optimizer: "adam", Clip: 1})
		w.Sequence = []int{sequence}
		w.Devices[0].MemoryLimit = limit
		return run(t, w, nil).Reason == event.EndDone
	}
	before := 256
	for _, c := range []struct{ sequence, published int }{{64, 64}, {128, 32}, {256, 16}, {320, 14}, {384, 12}, {512, 6}} {
		low, high := 0, before
		for high-low > 1 {
			if m := (low + high) / 2; fits(c.sequence, m) {
				low = m
			} else {
				high = m
			}
		}
		t.Logf("%d tokens: %d samples, %d published", c.sequence, low, c.published)
		if low >= before || low < c.published || float64(low) > 1.6*float64(c.published) {
			t.Errorf("%d tokens: %d samples fit, %d of the length before, %d published", c.sequence, low, before, c.published)
		}
		before = low
	}
	if before < 4 || before > 9 {
		t.Errorf("%d samples of 512 tokens fit, want 4 to 9", before)
	}
}
