package launch

import (
	"slices"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/zoo"
)

// factor is one thing that cases vary in. Value 0 goes with everything.
type factor struct {
	name   string
	values []string
}

// pairFactors are the models and the switches of execution.
var pairFactors = []factor{
	{"model", []string{"mlp", "mlp-8", "conv-2", "lenet5", "vgg16", "resnet18", "resnet50", "unet", "vit-b16", "bert-2layer", "bert-base", "gpt2", "lstm"}},
	{"optimizer", []string{"adam", "none", "sgd", "momentum", "adagrad", "rmsprop", "adamw", "amsgrad"}},
	{"precision", []string{"float32", "float64", "mixed_float16", "mixed_bfloat16"}},
	{"checkpoint", []string{"none", "2", "sqrt", "selective"}},
	{"mode", []string{"graph", "eager", "planned"}},
	{"swap", []string{"none", "activations", "auto"}},
	{"place", []string{"one", "host", "two"}},
	{"pool", []string{"whole", "growth", "tight"}},
	{"optimize", []string{"off", "on"}},
	{"clip", []string{"off", "on"}},
	{"keep", []string{"off", "on"}},
	{"shapes", []string{"one", "two"}},
	{"parts", []string{"1", "2"}},
	{"input", []string{"plain", "cache", "files", "device"}},
}

const (
	byModel = iota
	byOptimizer
	byPrecision
	byCheckpoint
	byMode
	bySwap
	byPlace
	byPool
	byOptimize
	byClip
	byKeep
	byShapes
	byParts
	byInput
)

// canMeet says whether two values can be in one case.
func canMeet(f int, v string, g int, w string) bool {
	if f > g {
		f, v, g, w = g, w, f, v
	}
	switch {
	case f == byMode && v == "eager" && g == byOptimize:
		return w == "off" // eager execution has no graph to rewrite
	case f == byOptimizer && v == "none" && (g == byCheckpoint || g == bySwap):
		return w == "none" // inference keeps nothing to save
	case f == byOptimizer && v == "none" && g == byClip:
		return w == "off"
	case f == byOptimizer && v == "none" && g == byParts:
		return w == "1"
	case f == byShapes && v == "two" && g == byInput:
		return w != "device" // batches on the device are of one shape
	}
	return true
}

// PairwiseCases are workloads in which every value of every switch meets every
// value of every other, where the two can meet, in far fewer cases than all
// combinations: each mode, switch and kind of model with each other, and every
// other model once. Those that are Small are quick to compute with, too.
func PairwiseCases() []HashCase {
	rows := pairwise(pairFactors)
	out := make([]HashCase, len(rows))
	for i, row := range rows {
		out[i] = pairCase(row)
	}
	// The other models of the zoo are larger or smaller sisters of these.
	for _, m := range zoo.Models() {
		if slices.Contains(pairFactors[byModel].values, m.Name) {
			continue
		}
		w := api.Workload{
			Model: m.Name, Mode: api.Graph, Train: &api.Train{}, Batch: []int{1}, Steps: 1, Devices: []api.Device{{Preset: "h200-141g"}},
		}
		switch m.Kind {
		case zoo.Images:
			w.Image = []int{32}
		case zoo.Tokens:
			w.Sequence = []int{8}
		default:
		}
		out = append(out, HashCase{Name: m.Name + " alone", Workload: w})
	}
	out = append(out, HashCase{Name: "lenet5 graph shapes=two input=device", Small: true, Workload: api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{8, 16}, Steps: 9, Seed: 5, Devices: []api.Device{{Preset: "lab-256m"}},
		Input: api.Input{Take: 50, Repeat: 2, PrefetchToDevice: 2},
	}})
	return append(out, allocatorCases()...)
}

// allocatorCases are a run under every kind of allocator that is not
// TensorFlow's, the modes and the options that change how they take memory in
// turn, and one on a TPU.
func allocatorCases() (out []HashCase) {
	modes := []api.Mode{api.Graph, api.Eager, api.Planned}
	add := func(name string, d api.Device) {
		out = append(out, HashCase{Name: name, Small: true, Workload: api.Workload{
			Model: "lenet5", Mode: modes[len(out)%len(modes)], Train: &api.Train{}, Batch: []int{16, 24}, Steps: 4, Seed: 5,
			Input: api.Input{Shuffle: 16, Prefetch: 1}, Devices: []api.Device{d},
		}})
	}
	for _, c := range [][]string{
		{"torch"},
		{"torch", "expandable_segments=true"},
		{"ort"},
		{"ort", "arena_extend_strategy=same_as_requested", "use_device_allocator_for_initializers=true"},
		{"async"},
		{"async", "release_threshold=0"},
		{"rmm-pool"},
		{"rmm-arena", "arena_size=64MiB"},
		{"system"},
		{"direct"},
	} {
		add("allocator="+strings.Join(c, " "), api.Device{Preset: "lab-256m", Allocator: c[0], AllocatorOptions: c[1:]})
	}
	add("tpu", api.Device{Kind: "tpu", Preset: "tpu-v2"})
	return out
}

// pairwise makes rows of values, each covering as many pairs that no earlier
// one has as a greedy choice finds.
func pairwise(factors []factor) [][]int {
	type pair struct{ f, v, g, w int }
	open := map[pair]bool{}
	var order []pair
	for f := range factors {
		for g := f + 1; g < len(factors); g++ {
			for v, vs := range factors[f].values {
				for w, ws := range factors[g].values {
					if canMeet(f, vs, g, ws) {
						order = append(order, pair{f, v, g, w})
						open[pair{f, v, g, w}] = true
					}
				}
			}
		}
	}
	covers := func(f, v, g, w int) bool {
		if f > g {
			f, v, g, w = g, w, f, v
		}
		return open[pair{f, v, g, w}]
	}
	var rows [][]int
	for _, p := range order {
		if !open[p] {
			continue
		}
		row := make([]int, len(factors))
		for f := range row {
			row[f] = -1
		}
		row[p.f], row[p.g] = p.v, p.w
		for f := range factors {
			if row[f] < 0 {
				row[f] = best(factors, row, f, len(rows), covers)
			}
		}
		for f := range row {
			for g := f + 1; g < len(row); g++ {
				delete(open, pair{f, row[f], g, row[g]})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// best is the value of a factor that covers most with what is chosen already;
// turn lets ties go to another value each time.
func best(factors []factor, row []int, f, turn int, covers func(f, v, g, w int) bool) int {
	choice, most := 0, -1
	n := len(factors[f].values)
	for k := range n {
		v := (k + turn) % n
		count, allowed := 0, true
		for g, w := range row {
			if w < 0 {
				continue
			}
			allowed = allowed && canMeet(f, factors[f].values[v], g, factors[g].values[w])
			if covers(f, v, g, w) {
				count++
			}
		}
		if allowed && count > most {
			choice, most = v, count
		}
	}
	return choice
}

// pairSizes are batch, image side and sequence of a model in the cases: small,
// because memory is the same sum at any size. Computed says that arithmetic on
// it takes a moment only.
var pairSizes = map[string]struct {
	batch, image, sequence int
	computed               bool
	layer                  string // that goes elsewhere
}{
	"mlp":         {16, 0, 0, true, "dense2"},
	"mlp-8":       {16, 0, 0, true, "dense1"},
	"conv-2":      {16, 0, 0, true, "conv2"},
	"lenet5":      {16, 0, 0, true, "conv2"},
	"vgg16":       {1, 32, 0, false, "block3"},
	"resnet18":    {1, 32, 0, false, "block3"},
	"resnet50":    {1, 32, 0, false, "block3"},
	"unet":        {1, 32, 0, false, "down2"},
	"vit-b16":     {1, 32, 0, false, "block3"},
	"bert-2layer": {2, 0, 8, true, "layer2"},
	"bert-base":   {1, 0, 8, false, "layer3"},
	"gpt2":        {1, 0, 8, false, "block3"},
	"lstm":        {2, 0, 8, false, "lstm"},
}

func pairCase(row []int) HashCase {
	at := func(f int) string { return pairFactors[f].values[row[f]] }
	var name strings.Builder
	for f := range row {
		if row[f] > 0 || f == byModel || f == byMode {
			if name.Len() > 0 {
				name.WriteByte(' ')
			}
			if f != byModel && f != byMode {
				name.WriteString(pairFactors[f].name + "=")
			}
			name.WriteString(at(f))
		}
	}
	size := pairSizes[at(byModel)]
	w := api.Workload{
		Model: at(byModel), Mode: api.Mode(at(byMode)), Steps: 3, Seed: 5, Batch: []int{size.batch},
		Input:   api.Input{Shuffle: 16, Prefetch: 1, Map: api.Map{Cost: 2000}},
		Devices: []api.Device{{Preset: "t4-16g"}},
	}
	if at(byModel) == "mlp-8" {
		w.Input.Source = sourceDigits // which native/dataset makes features of
	}
	if size.image > 0 {
		w.Image = []int{size.image}
	}
	if size.sequence > 0 {
		w.Sequence = []int{size.sequence}
	}
	if at(byOptimizer) == "none" {
		w.Precision = strings.TrimPrefix(at(byPrecision), "mixed_")
	} else {
		w.Train = &api.Train{Optimizer: at(byOptimizer), Precision: at(byPrecision), Checkpoint: at(byCheckpoint), Swap: at(bySwap)}
		if at(byClip) == "on" {
			w.Train.Clip = 1
		}
	}
	if at(byOptimize) == "on" {
		on := true
		w.Optimize = &on
	}
	if at(byKeep) == "on" {
		w.Keep = []string{"*MatMul", "*Conv2D"}
	}
	parts := 1
	if at(byParts) == "2" {
		parts = 2
		w.Batch[0] *= parts
		w.Train.Microbatches = parts
	}
	if at(byShapes) == "two" {
		w.Batch = append(w.Batch, w.Batch[0]+parts)
	}
	switch in := &w.Input; at(byInput) {
	case "cache":
		in.Cache, in.Take = true, 10
	case "files":
		in.Interleave, in.Map.Parallel = api.Interleave{Cycle: 3, Block: 2, Parallel: 2}, api.Auto
	case "device":
		in.PrefetchToDevice = 1
	}
	w.Devices[0].Growth = at(byPool) == "growth"
	if at(byPool) == "tight" { // so that swapping and garbage collection have something to do
		w.Devices[0] = api.Device{Preset: "lab-1g"}
	}
	layer := size.layer + "/*"
	switch at(byPlace) {
	case "host":
		w.Placement.Rules = []api.Rule{{Match: layer, Device: "/CPU:0"}}
	case "two":
		w.Devices = append(w.Devices, w.Devices[0])
		w.Placement.Rules = []api.Rule{{Match: layer, Device: "/GPU:1"}}
	}
	return HashCase{Name: name.String(), Workload: w, Small: size.computed}
}
