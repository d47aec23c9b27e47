package launch

import "tideline/protocol/api"

// beyond lists the settings that a workload may have and that launch cannot
// carry out: to run without them would show something else than was asked.
func beyond(w *api.Workload) api.Problems {
	var out api.Problems
	no := func(path string, asked bool) {
		if asked {
			out = append(out, api.Problem{Path: path, Message: "not carried out by this version: remove it"})
		}
	}
	in := &w.Input
	no("input.interleave", in.Interleave.Cycle != 0)
	no("input.cache", in.Cache)
	if in.PrefetchToDevice > 0 {
		add := func(path, message string) { out = append(out, api.Problem{Path: path, Message: message}) }
		if len(w.Batch) > 1 || len(w.Image) > 1 || len(w.Sequence) > 1 {
			add("input.prefetch_to_device", "batches on the device are all of one shape: give one batch, image and sequence, or leave it out")
		}
		if in.Repeat > 0 && !in.DropRemainder {
			add("input.drop_remainder", "batches on the device are all of one shape, so the last, smaller one must be left out: write drop_remainder: true")
		}
	}
	return out
}
