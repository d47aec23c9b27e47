package fit

import (
	"strconv"
	"strings"

	"tideline/protocol/api"
)

// Remedies are the settings that may get a workload through that ran out of
// memory on one of its devices, those first that cost the user least. Which of
// them do is for reruns to show.
func Remedies(w *api.Workload, entry int) (out []Change) {
	add := func(field, value string) { out = append(out, Change{Field: field, Value: value}) }
	if entry >= 0 && entry < len(w.Devices) {
		d := &w.Devices[entry]
		switch {
		case d.MemoryLimit > 0:
			add(at(entry, "memory_limit"), strconv.FormatInt(2*d.MemoryLimit, 10))
		case len(d.Logical) == 0:
			add(at(entry, "growth"), strconv.FormatBool(!d.Growth))
		}
		if d.Held > 0 {
			add(at(entry, "held"), "0")
		}
		if d.Allocator == "" || d.Allocator == "bfc" { // TensorFlow has a second one, and PyTorch another
			add(at(entry, "allocator"), "async")
			add(at(entry, "allocator"), "torch")
		}
	}
	if w.Mode == api.Eager {
		add("mode", string(api.Graph))
	}
	if w.Mode != api.Planned {
		add("mode", string(api.Planned))
	}
	if w.Optimize == nil || !*w.Optimize {
		add("optimize", "true")
	}
	out = append(out, trainRemedies(w)...)
	if !limitsWorkspace(w) {
		add("env", strings.Join(append(append([]string(nil), w.Env...), "TF_CUDNN_WORKSPACE_LIMIT_IN_MB=16"), " "))
	}
	return out
}

func limitsWorkspace(w *api.Workload) bool {
	_, ok := w.Variable("TF_CUDNN_WORKSPACE_LIMIT_IN_MB")
	return ok
}

func trainRemedies(w *api.Workload) (out []Change) {
	add := func(field, value string) { out = append(out, Change{Field: field, Value: value}) }
	t := w.Train
	if t == nil {
		switch w.Precision {
		case "float64":
			add("precision", "float32")
		case "", "float32":
			add("precision", "float16")
		}
		return out
	}
	switch t.Precision {
	case "float64":
		add("train.precision", "float32")
		add("train.precision", "mixed_float16")
	case "", "float32":
		add("train.precision", "mixed_float16")
	}
	if t.Checkpoint == "" || t.Checkpoint == "none" {
		for _, c := range []string{"selective", "sqrt", "2"} {
			add("train.checkpoint", c)
		}
	}
	if t.Swap == "" || t.Swap == "none" {
		add("train.swap", "auto")
		add("train.swap", "activations")
	}
	for _, n := range []int{2, 4, 8} {
		if n > t.Microbatches {
			add("train.microbatches", strconv.Itoa(n))
		}
	}
	return out
}
