package launch

import (
	"strconv"

	"tideline/protocol/api"
)

// beyond lists the settings that a workload may have and that launch cannot
// carry out: to run without them would show something else than was asked.
func beyond(w *api.Workload) api.Problems {
	var out api.Problems
	no := func(path string, asked bool) {
		if asked {
			out = append(out, api.Problem{Path: path, Message: "not carried out by this version: remove it"})
		}
	}
	no("mode", w.Mode == api.Planned)
	no("precision", w.Precision != "" && w.Precision != api.DefaultPrecision)
	no("image", len(w.Image) > 0)
	no("sequence", len(w.Sequence) > 0)
	no("optimize", w.Optimize != nil && *w.Optimize)
	no("keep", len(w.Keep) > 0)
	no("copy_policy", w.CopyPolicy != "" && w.CopyPolicy != api.CopySilent)
	no("env", len(w.Env) > 0)
	if t := w.Train; t != nil {
		no("train.optimizer", t.Optimizer != "" && t.Optimizer != "sgd" && t.Optimizer != "adam")
		no("train.precision", t.Precision != "" && t.Precision != api.DefaultPrecision)
		no("train.checkpoint", t.Checkpoint != "" && t.Checkpoint != "none")
		no("train.swap", t.Swap != "" && t.Swap != "none")
		no("train.clip", t.Clip != 0)
	}
	in := &w.Input
	no("input.skip", in.Skip != 0)
	no("input.take", in.Take != 0)
	no("input.interleave", in.Interleave.Cycle != 0)
	no("input.cache", in.Cache)
	no("input.map.parallel", in.Map.Parallel == api.Auto)
	no("input.prefetch_to_device", in.PrefetchToDevice != 0)
	for i := range w.Devices {
		d, at := &w.Devices[i], "devices."+strconv.Itoa(i)+"."
		no(at+"kind", d.Kind == "tpu")
		no(at+"hidden", d.Hidden)
		no(at+"virtual", d.Virtual > 1)
		no(at+"fraction", d.Fraction != 0)
		no(at+"unified", d.Unified)
		no(at+"reserve_rule", d.ReserveRule != "" && d.ReserveRule != api.DefaultReserve)
		no(at+"peer", d.Peer != "")
	}
	return out
}
