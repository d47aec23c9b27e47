package pipeline

import (
	"strconv"

	"tideline/protocol/event"
)

// Recorded gathers what the stages of a run cost, real or modelled, from its
// events, so that a modelled rerun takes as long for each element as the run
// did. It is an event.Sink for any of a run's events and knows stages by name.
type Recorded struct {
	strings *event.Strings
	stages  map[event.StringID]*StageCost
	begun   map[uint64]int64 // StageBegin without its end
}

// StageCost is what a stage did.
type StageCost struct {
	Calls int64
	Nanos int64 // of all calls together
	Bytes int64 // of what they made
	Least int64 // nanoseconds of the shortest call
	Most  int64 // and of the longest
}

// Mean is the mean time of a call in nanoseconds, 0 without any.
func (c StageCost) Mean() int64 {
	if c.Calls == 0 {
		return 0
	}
	return c.Nanos / c.Calls
}

// NewRecorded makes one for the events of a run with these strings.
func NewRecorded(strings *event.Strings) *Recorded {
	return &Recorded{strings: strings, stages: map[event.StringID]*StageCost{}, begun: map[uint64]int64{}}
}

// Emit implements event.Sink.
func (r *Recorded) Emit(e *event.Event) {
	switch e.Kind {
	case event.StageBegin:
		r.begun[e.ID] = e.Time
	case event.StageEnd:
		begin, ok := r.begun[e.ID]
		if !ok {
			return // the recording begins after it did
		}
		delete(r.begun, e.ID)
		c := r.stages[e.Op]
		if c == nil {
			c = &StageCost{Least: e.Time - begin}
			r.stages[e.Op] = c
		}
		took := e.Time - begin
		c.Calls++
		c.Nanos += took
		c.Bytes += e.Size
		c.Least, c.Most = min(c.Least, took), max(c.Most, took)
	default:
	}
}

// Stage is what the stage of a name did; the zero value is nothing.
func (r *Recorded) Stage(name string) StageCost {
	for id, c := range r.stages {
		if r.strings.At(id) == name {
			return *c
		}
	}
	return StageCost{}
}

// Apply gives the settings the costs that were recorded: the mean of a call.
// What was not recorded stays as it is. Reads of files count their opening,
// which the mean spreads over all elements, so that OpenCost becomes 0 where
// reading was recorded.
func (r *Recorded) Apply(s Settings) Settings {
	read := r.Stage(StageSource)
	if s.Interleave.Cycle > 0 {
		read = r.Stage(StageInterleave)
	}
	if read.Calls > 0 {
		s.FetchCost, s.OpenCost = read.Mean(), 0
	}
	if c := r.Stage(StageMap); c.Calls > 0 {
		s.Map.Cost = c.Mean()
	}
	if c := r.Stage(StageBatch); c.Calls > 0 && s.ElementBytes > 0 && c.Bytes > 0 {
		s.CopyCost = c.Nanos / max(1, c.Bytes/s.ElementBytes)
	}
	return s
}

// Knobs are the recorded costs as settings of a workload, path=value, for a
// modelled rerun of a run whose stages were measured: input.map.cost=700ns.
func (r *Recorded) Knobs() []string {
	s := r.Apply(Settings{OpenCost: -1, FetchCost: -1, Map: Map{Cost: -1}, Interleave: Interleave{Cycle: r.cycle()}})
	var out []string
	for _, k := range []struct {
		path  string
		nanos int64
	}{{"input.open_cost", s.OpenCost}, {"input.fetch_cost", s.FetchCost}, {"input.map.cost", s.Map.Cost}} {
		if k.nanos >= 0 {
			out = append(out, k.path+"="+strconv.FormatInt(k.nanos, 10)+"ns")
		}
	}
	return out
}

// cycle is above 0 where files were read in turn.
func (r *Recorded) cycle() int {
	if r.Stage(StageInterleave).Calls > 0 {
		return 1
	}
	return 0
}

// ApplyTo gives a chain of stages the costs that were recorded by their names,
// as Apply does for settings.
func (r *Recorded) ApplyTo(d Dataset) Dataset {
	out := Dataset{append([]Stage(nil), d.Stages...)}
	names := d.Names()
	for i := range out.Stages {
		s := &out.Stages[i]
		c := r.Stage(names[i])
		if c.Calls == 0 {
			continue
		}
		switch s.Op {
		case OpInterleave:
			files := append([]File(nil), out.Stages[0].Files...)
			for k := range files {
				files[k].Open, files[k].Read = 0, c.Mean()
			}
			out.Stages[0].Files = files
		case OpBatch:
			if n := d.entering(i); n > 0 && c.Bytes > 0 {
				s.Cost = c.Nanos / max(1, c.Bytes/n)
			}
		case OpSlices, OpMap, OpMapBatch, OpDevice:
			s.Open, s.Cost, s.Costs = 0, c.Mean(), nil
		default:
		}
	}
	return out
}
