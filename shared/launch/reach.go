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
	no("input.prefetch_to_device", in.PrefetchToDevice != 0)
	_, limited := w.Variable("TF_CUDNN_WORKSPACE_LIMIT_IN_MB")
	no("env", limited)
	return out
}
