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
