package remedy

import (
	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/analysis"
)

// maxTold bounds the calls that a Timeline keeps: more are not replayed anyway.
const maxTold = DefaultBudget / 8

// Timeline is an event.Sink that keeps the requests of a timeline which is not a
// run of our own: those are rerun instead.
type Timeline struct {
	strings *event.Strings
	rec     *contest.Recorder // nil when nothing is to be replayed
	ours    func(event.Fields) bool
	calls   int
	failed  event.AllocatorID // of the last failure
	device  event.DeviceID
	fails   bool
}

// NewTimeline returns an empty one for events with that table. Whether the
// settings of a run are a workload of ours, ours says: who has no use for
// timelines then has no need of package api, whose table of fields is as large
// as a reader or two.
func NewTimeline(strs *event.Strings, ours func(event.Fields) bool) *Timeline {
	return &Timeline{strings: strs, rec: contest.NewRecorder(strs), ours: ours}
}

// Emit implements event.Sink.
func (t *Timeline) Emit(e *event.Event) {
	if t.rec == nil {
		return
	}
	switch e.Kind {
	case event.Settings:
		f, err := event.ParseFields(t.strings.At(e.Text))
		if err != nil {
			break
		}
		if len(f) > 0 && t.ours(f) {
			t.rec = nil
			return
		}
	case event.AllocatorFacts: // of a dump there is a state, and no history
		if f, err := event.ParseFields(t.strings.At(e.Text)); err == nil && (f.Text(analysis.FormatKey) != "" || f.Text(analysis.PartialKey) == "true") {
			t.rec = nil
			return
		}
	case event.OutOfMemory:
		t.fails, t.device, t.failed = true, e.Device, e.Allocator
	case event.Alloc, event.Free:
		if t.calls++; t.calls > maxTold {
			t.rec = nil
			return
		}
	default:
	}
	t.rec.Emit(e)
}

// Outcome replays the requests of the allocator whose request failed last. It is
// empty where none failed, or the timeline is one of our own runs.
func (t *Timeline) Outcome(o Options) Outcome {
	if t.rec == nil || !t.fails {
		return Outcome{}
	}
	if x := t.rec.Trace(t.device, t.failed); x != nil {
		return History(x, o)
	}
	return Outcome{}
}
