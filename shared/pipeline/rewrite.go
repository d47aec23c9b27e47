package pipeline

// Rewrites says which changes TensorFlow's optimizer of datasets makes, for
// the sake of memory and time; none of them changes which elements come.
type Rewrites struct {
	MapAndBatch      bool // a parallel map writes into the batch: no element lies on its own
	ShuffleAndRepeat bool // a shuffle repeats its input: its buffer is not filled again in every epoch
	Noops            bool // a take of all, a skip of none, a repeat of one, a prefetch of none go
	ParallelMap      bool // a serial map gets automatic parallelism
	Prefetch         bool // an automatic prefetch at the end where there is none
}

// DefaultRewrites are those that are on unless a program turns them off.
func DefaultRewrites() Rewrites {
	return Rewrites{MapAndBatch: true, ShuffleAndRepeat: true, Noops: true, Prefetch: true}
}

// Rewrite makes the changes.
func (d Dataset) Rewrite(r Rewrites) Dataset {
	var out []Stage
	for _, s := range d.Stages {
		if r.Noops && s.noop() {
			continue
		}
		if r.ParallelMap && s.Op == OpMap && !s.async() {
			s.Parallel = Auto
		}
		if n := len(out); n > 0 {
			if f, ok := fused(r, &out[n-1], &s); ok {
				out[n-1] = f
				continue
			}
		}
		out = append(out, s)
	}
	if n := len(out); r.Prefetch && n > 0 && out[n-1].Op != OpPrefetch && out[n-1].Op != OpDevice {
		out = append(out, Stage{Op: OpPrefetch, N: Auto})
	}
	return Dataset{out}
}

// fused is one stage for two, where there is one.
func fused(r Rewrites, a, b *Stage) (Stage, bool) {
	switch {
	case r.MapAndBatch && a.Op == OpMap && b.Op == OpBatch && a.Parallel > 1 && !a.Unordered:
		f := *a
		f.Op, f.Sizes, f.Drop = OpMapBatch, b.Sizes, b.Drop
		return f, true
	case r.ShuffleAndRepeat && a.Op == OpShuffle && b.Op == OpRepeat && !a.Fused:
		f := *a
		f.Fused, f.Times = true, b.N
		return f, true
	}
	return Stage{}, false
}

// noop says whether the stage gives what it gets.
func (s *Stage) noop() bool {
	switch s.Op {
	case OpTake:
		return s.N < 0
	case OpSkip, OpPrefetch:
		return s.N == 0
	case OpRepeat:
		return s.N == 1
	default:
		return false
	}
}
