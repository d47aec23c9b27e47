package launch

import "tideline/protocol/api"

// HashCase is a workload whose memory events are the same on every host.
type HashCase struct {
	Name     string
	Workload api.Workload
	// Small says that computing it takes a moment only.
	Small bool
}

// HashCases are the workloads by which the agent's backends, the modelled one
// and WebAssembly are held to each other: each model, each mode, growth on and
// off, and with batches of several sizes and a layer on the host.
func HashCases() []HashCase {
	var out []HashCase
	for _, model := range []string{"mlp", "lenet5"} {
		for _, mode := range []api.Mode{api.Eager, api.Graph} {
			for _, growth := range []bool{false, true} {
				name := model + "-" + string(mode) + "-preallocated"
				if growth {
					name = model + "-" + string(mode) + "-growth"
				}
				out = append(out, HashCase{Name: name, Small: true, Workload: api.Workload{
					Model: model, Mode: mode, Train: &api.Train{Optimizer: "adam"}, Batch: []int{32, 24, 40}, Steps: 7, Seed: 3,
					Input:     api.Input{Source: "digits", Shuffle: 128, Prefetch: 2, Map: api.Map{Parallel: 2, Cost: 3000}},
					Devices:   []api.Device{{Kind: "gpu", Preset: "lab-256m", Growth: growth}},
					Placement: api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/CPU:0"}}},
				}})
			}
		}
	}
	return out
}
