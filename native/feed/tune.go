package feed

import (
	"slices"
	"sync"

	"tideline/shared/pipeline"
)

// tunable is a stage with automatic parallelism.
type tunable interface {
	parallelism() int
	raise(n int)
}

// tuner raises the calls of automatic stages by pipeline.HillClimb over the
// costs that were measured.
type tuner struct {
	mu       sync.Mutex
	stages   map[int]tunable
	at       int64
	interval int64
}

// The optimizer looks after 10 ms and then at intervals that double up to a
// minute, in nanoseconds.
const (
	firstInterval = 10_000_000
	lastInterval  = 60_000_000_000
)

func (t *tuner) add(stage int, x tunable) {
	if t.stages == nil {
		t.stages = map[int]tunable{}
	}
	t.stages[stage] = x
}

// retune looks at the pipeline when the interval is over.
func (f *Feed) retune() {
	t := &f.tuner
	if len(t.stages) == 0 {
		return
	}
	now := f.o.Clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.interval == 0 {
		t.interval = firstInterval
		t.at = now + t.interval
	}
	if now < t.at {
		return
	}
	t.interval = min(2*t.interval, lastInterval)
	t.at = now + t.interval
	root, tuned := f.Measured().Performance(pipeline.DefaultCores)
	if !pipeline.HillClimb(root, pipeline.DefaultCores, f.d.Budget()) {
		return
	}
	for i, p := range tuned {
		if x := t.stages[i]; x != nil && p.Value > x.parallelism() {
			x.raise(p.Value)
		}
	}
}

// Measured is the dataset with the mean costs that its calls have had so far,
// in nanoseconds, for a modelled pipeline that runs as this one did.
func (f *Feed) Measured() pipeline.Dataset {
	d := pipeline.Dataset{Stages: slices.Clone(f.d.Stages)}
	for i := range d.Stages {
		s := &d.Stages[i]
		n := f.cost[i].calls.Load()
		if n == 0 {
			continue
		}
		mean := f.cost[i].nanos.Load() / n
		if s.Op != pipeline.OpInterleave {
			s.Costs, s.Cost = nil, mean
			continue
		}
		files := slices.Clone(d.Stages[0].Files)
		for k := range files { // opening is part of what was measured
			files[k].Open, files[k].Read = 0, mean
		}
		d.Stages[0].Files = files
	}
	return d
}
