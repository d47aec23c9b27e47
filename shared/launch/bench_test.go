package launch

import (
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

// BenchmarkModelledRun is the speed of a rerun: a LeNet-5 training run on the
// modelled backend, counted in events.
func BenchmarkModelledRun(b *testing.B) {
	for _, mode := range []api.Mode{api.Graph, api.Eager} {
		b.Run(string(mode), func(b *testing.B) {
			w := api.Workload{
				Model: "lenet5", Mode: mode, Train: &api.Train{}, Batch: []int{64}, Steps: api.MaxSteps,
				Input:   api.Input{Source: "digits", Shuffle: 256, Prefetch: 2},
				Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
			}
			var kept event.Event
			r, err := Start(w, Options{Sink: event.SinkFunc(func(e *event.Event) { kept = *e })})
			if err != nil {
				b.Fatal(err)
			}
			for range 3 { // what a run makes once
				r.Step()
			}
			from := r.rt.Events()
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.Step()
			}
			n := float64(r.rt.Events() - from)
			b.ReportMetric(n/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/event")
			b.ReportMetric(n/float64(b.N), "events/op")
			b.StopTimer()
			if _, err := r.Finish(); err != nil {
				b.Fatal(err)
			}
			_ = kept
		})
	}
}

// BenchmarkModelledResNet50 is a modelled step of training ResNet-50 at a batch
// of 32.
func BenchmarkModelledResNet50(b *testing.B) {
	for _, mode := range []api.Mode{api.Graph, api.Eager, api.Planned} {
		b.Run(string(mode), func(b *testing.B) {
			r, err := Start(api.Workload{
				Model: "resnet50", Mode: mode, Train: &api.Train{}, Batch: []int{32}, Steps: api.MaxSteps,
				Devices: []api.Device{{Preset: "t4-16g"}},
			}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			for range 3 { // what a run makes once
				r.Step()
			}
			kernels := 0
			for i := range r.plans[0].program.Nodes {
				if len(r.plans[0].program.Nodes[i].Inputs) > 0 {
					kernels++
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				r.Step()
			}
			b.ReportMetric(float64(kernels)*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
			_, _ = r.Finish()
		})
	}
}
