package input

import (
	"sort"

	"tideline/protocol/event"
)

// Run reads a run's events and tells where its steps' time goes. It is an
// event.Sink. The first step, whose wait fills buffers for the first time, is
// warm-up and reported apart.
type Run struct {
	strings *event.Strings
	open    map[key]Span
	spans   []Span
	step    event.Event
	inStep  bool
	steps   int
	stall   int64 // of the step under way
	blamed  map[event.StringID]int64
	host    HostTime
	queued  int64 // nanoseconds of copies to devices in steps
	out     Reading
}

type key struct {
	kind event.Kind
	id   uint64
}

// Reading is what a run's events say about its input.
type Reading struct {
	Steps   int
	Time    Step  // of all steps but the first
	WarmUp  Step  // of the first
	Stalled int64 // nanoseconds of waiting in all steps but the first
	// WarmStall is the first step's wait: caches, buffers and files are cold.
	WarmStall int64
	Summary   Summary  // of Time, or of WarmUp where there is one step only
	Host      HostTime // nanoseconds, where the run is bound by its input
	Stages    []Blamed // most blamed first
}

// Blamed is a stage with the waiting that it caused, in nanoseconds.
type Blamed struct {
	Stage string
	Nanos int64
}

// StalledFraction is the part of the steps' time that was spent waiting, from
// 0 to 1, without the first step.
func (r *Reading) StalledFraction() float64 {
	if r.Time.Nanos == 0 {
		return 0
	}
	return float64(r.Stalled) / float64(r.Time.Nanos)
}

// NewRun reads a run with these strings.
func NewRun(strings *event.Strings) *Run {
	return &Run{strings: strings, open: map[key]Span{}, blamed: map[event.StringID]int64{}}
}

// Emit implements event.Sink.
func (r *Run) Emit(e *event.Event) {
	switch e.Kind {
	case event.StepBegin:
		r.step, r.inStep, r.stall = *e, true, 0
	case event.StepEnd:
		r.endStep(e.Time)
	case event.OpBegin:
		r.begin(e, classOfOp(e))
	case event.TransferBegin:
		r.begin(e, classOfCopy(e))
	case event.StallBegin:
		r.begin(e, HostWaitInput)
	case event.StageBegin:
		r.begin(e, Unknown)
	case event.OpEnd:
		r.end(e, event.OpBegin)
	case event.TransferEnd:
		x := r.end(e, event.TransferBegin)
		if x.Class == HostToDevice {
			r.queued += x.End - x.Begin
		}
	case event.StallEnd:
		x := r.end(e, event.StallBegin)
		r.stall += x.End - x.Begin
		if r.steps > 0 {
			r.blamed[e.Op] += x.End - x.Begin
		}
	case event.StageEnd:
		x := r.end(e, event.StageBegin)
		r.host[ClassifyHost(r.strings.At(e.Op))] += float64(x.End - x.Begin)
	default:
	}
}

func classOfOp(e *event.Event) Class {
	if e.Device == 0 {
		return HostCompute
	}
	return DeviceCompute32
}

func classOfCopy(e *event.Event) Class {
	switch {
	case e.Device == 0 && e.Peer == 0:
		return HostToHost
	case e.Device == 0:
		return HostToDevice
	case e.Peer == 0:
		return DeviceToHost
	}
	return DeviceToDevice
}

func (r *Run) begin(e *event.Event, c Class) {
	r.open[key{e.Kind, e.ID}] = Span{Begin: e.Time, Class: c}
}

// end closes what began; the zero Span when it did not.
func (r *Run) end(e *event.Event, kind event.Kind) Span {
	k := key{kind, e.ID}
	x, ok := r.open[k]
	if !ok {
		return Span{}
	}
	delete(r.open, k)
	x.End = e.Time
	if kind != event.StageBegin { // a pipeline's work is beside the step
		r.spans = append(r.spans, x)
	}
	return x
}

// endStep gives the step's time to the classes. What goes on beyond it counts
// for the next one, too, from there on.
func (r *Run) endStep(at int64) {
	if !r.inStep {
		return
	}
	r.inStep = false
	spans := r.spans
	for k, x := range r.open {
		if k.kind != event.StageBegin {
			spans = append(spans, Span{x.Begin, at, x.Class})
		}
	}
	s := StepOf(r.step.Time, at, spans)
	r.spans = r.spans[:0]
	if r.steps == 0 {
		r.out.WarmUp, r.out.WarmStall = s, r.stall
		r.host, r.queued = HostTime{}, 0
	} else {
		r.out.Time.Add(s)
		r.out.Stalled += r.stall
	}
	r.steps++
}

// Reading is what was read so far.
func (r *Run) Reading() Reading {
	out := r.out
	out.Steps = r.steps
	out.Summary = Judge(out.Time)
	if r.steps == 1 {
		out.Summary = Judge(out.WarmUp)
	}
	if v := out.Summary.Verdict; v == HighlyBound || v == ModeratelyBound {
		t := out.Time
		out.Host = BreakDown(r.host, r.queued, t.ByClass[HostToDevice], t.Nanos)
	}
	for id, n := range r.blamed {
		if n > 0 {
			out.Stages = append(out.Stages, Blamed{r.strings.At(id), n})
		}
	}
	sort.Slice(out.Stages, func(i, j int) bool {
		a, b := &out.Stages[i], &out.Stages[j]
		if a.Nanos != b.Nanos {
			return a.Nanos > b.Nanos
		}
		return a.Stage < b.Stage
	})
	return out
}
