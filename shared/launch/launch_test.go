package launch

import (
	"fmt"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

func TestScratch(t *testing.T) {
	for _, model := range []string{"mlp", "lenet5"} {
		for _, mode := range []api.Mode{api.Eager, api.Graph} {
			w := api.Workload{Model: model, Mode: mode, Train: &api.Train{Optimizer: "adam"}, Batch: []int{64}, Steps: 5,
				Devices: []api.Device{{Preset: "lab-256m", Growth: true}}}
			strs := new(event.Strings)
			var kinds [event.NumKinds]int
			res, err := Run(w, Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
				kinds[e.Kind]++
				if model == "mlp" && mode == api.Graph && e.Step <= 0 {
					t.Logf("%d %v dev%d al%d %x %d %d op=%s t=%s cat=%d st=%d", e.Time, e.Kind, e.Device, e.Allocator, e.Address, e.Size, e.Requested, strs.At(e.Op), strs.At(e.Tensor), e.Category, e.Step)
				}
			})})
			t.Log(model, mode, err, fmt.Sprintf("%+v", res))
			for k, n := range kinds {
				if n > 0 {
					t.Log(event.Kind(k), n)
				}
			}
		}
	}
}
