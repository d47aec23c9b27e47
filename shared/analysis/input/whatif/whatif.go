package whatif

import (
	"errors"
	"strconv"

	"tideline/protocol/api"
	"tideline/shared/pipeline"
)

// Change is a setting of a workload that may help against waiting for input,
// with the pipeline as it would be then.
type Change struct {
	Set      []string // path=value, as a workload and the page have it: input.map.parallel=8
	What     string   // for people
	Settings pipeline.Settings
}

var cores = strconv.Itoa(pipeline.DefaultCores)

// Changes are what may help against the stage that is blamed, likeliest first:
// prefetch where there is none, parallel calls of a slow map, several files of
// a slow source, a cache where epochs repeat. Whether one does is told by Try,
// or by a rerun of the whole workload.
func Changes(s pipeline.Settings, stage string) []Change {
	var out []Change
	add := func(what string, change func(*pipeline.Settings), set ...string) {
		c := Change{Set: set, What: what, Settings: s}
		change(&c.Settings)
		out = append(out, c)
	}
	if stage == pipeline.StageMap && s.Map.Parallel != pipeline.Auto && s.Map.Parallel < pipeline.DefaultCores {
		add("map "+cores+" elements at a time", func(s *pipeline.Settings) { s.Map.Parallel = pipeline.DefaultCores }, "input.map.parallel="+cores)
	}
	reading := stage == pipeline.StageSource || stage == pipeline.StageInterleave
	if n := pipeline.DefaultCores; reading && s.Interleave.Parallel < n {
		add("read "+cores+" files at a time", func(s *pipeline.Settings) {
			s.Interleave = pipeline.Interleave{Cycle: n, Block: max(1, s.Interleave.Block), Parallel: n}
		}, "input.interleave.cycle="+cores, "input.interleave.parallel="+cores)
	}
	if s.Prefetch == 0 {
		add("make batches ahead, beside the step", func(s *pipeline.Settings) { s.Prefetch = pipeline.Auto }, "input.prefetch=auto")
	}
	if !s.Cache && s.Epochs != 1 && (reading || stage == pipeline.StageMap) {
		add("keep what was read and mapped in host memory", func(s *pipeline.Settings) { s.Cache = true }, "input.cache=true")
	}
	return out
}

// ForWorkload are the Changes to a workload; Settings of them hold no more of
// the pipeline than the workload says.
func ForWorkload(w *api.Workload, stage string) []Change {
	in := &w.Input
	return Changes(pipeline.Settings{
		Epochs: in.Repeat, OpenCost: in.OpenCost, FetchCost: in.FetchCost, Cache: in.Cache, Shuffle: in.Shuffle,
		Interleave: pipeline.Interleave{Cycle: in.Interleave.Cycle, Block: in.Interleave.Block, Parallel: in.Interleave.Parallel},
		Map:        pipeline.Map{Parallel: in.Map.Parallel, Cost: in.Map.Cost}, Prefetch: in.Prefetch, Batch: w.Batch,
	}, stage)
}

// Pace is what a training loop over a pipeline comes to, in nanoseconds.
type Pace struct {
	Steps   int
	Step    int64  // mean time of a step, without the first
	Stalled int64  // mean wait in it
	First   int64  // wait of the first step
	Stage   string // that is blamed for most of the waiting; "" for no wait
	Held    int64  // bytes of host memory when the buffers are full
}

// Try runs the modelled pipeline under steps that compute for so many
// nanoseconds each.
func Try(s pipeline.Settings, compute int64, steps int) (Pace, error) {
	m, err := pipeline.New(s, nil, nil)
	if err != nil {
		return Pace{}, err
	}
	var p Pace
	blamed := map[string]int64{}
	var now, begin int64
	limit := s.Limit()
	for ; p.Steps < steps; p.Steps++ {
		b, err := m.Next(now)
		if errors.Is(err, pipeline.ErrEnd) {
			break
		}
		if err != nil {
			return Pace{}, err
		}
		wait := b.Ready - now
		limit = max(limit, b.Limit)
		now = b.Ready + compute
		if p.Steps == 0 {
			p.First, begin = wait, now
			continue
		}
		p.Stalled += wait
		blamed[b.Stage] += wait
		if wait > 0 && (p.Stage == "" || blamed[b.Stage] > blamed[p.Stage]) {
			p.Stage = b.Stage
		}
	}
	if n := int64(p.Steps - 1); n > 0 {
		p.Step, p.Stalled = (now-begin)/n, p.Stalled/n
	}
	d := m.Dataset()
	for _, b := range d.Tuned().Buffers(limit) {
		if !b.Device {
			p.Held += b.Bytes * int64(b.Count)
		}
	}
	return p, nil
}
