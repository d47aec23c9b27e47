package remedy

import (
	"bytes"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/ingest"
)

// ours knows a workload by its model.
func ours(f event.Fields) bool { return f.Text("model") != "" }

// told is a timeline made of a snapshot whose last request fails.
func told(t *testing.T, keep int, first ...func(*event.Strings) event.Event) *Timeline {
	t.Helper()
	in, err := ingest.Open("oom.pickle", bytes.NewReader(file(t, broken(t, keep))), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var strs event.Strings
	x := NewTimeline(&strs, ours)
	for _, e := range first {
		y := e(&strs)
		x.Emit(&y)
	}
	if err := in.Emit(&strs, x); err != nil {
		t.Fatal(err)
	}
	return x
}

// A snapshot that was made a timeline of fails as recorded, by the capacity that
// its failure tells, and is served by what serves the snapshot.
func TestATimelineOfAnotherProgramIsReplayed(t *testing.T) {
	o := told(t, 1<<20).Outcome(Options{})
	x := find(&o, expandable)
	if x == nil || !x.Serves || o.Least != 75*mib || !strings.Contains(o.Replayed, "The whole history was replayed: under the defaults of PyTorch the request fails as recorded") {
		t.Errorf("%+v", o)
	}
	// Where it began in the middle the holes of then are not in the events.
	if o = told(t, 31).Outcome(Options{}); len(o.Trials) > 0 || !strings.Contains(o.Replayed, "from what was live when it began, but under no setting") {
		t.Errorf("%+v", o)
	}
}

// Runs of our own are rerun, and what was made of a dump has no history.
func TestOtherTimelinesAreNotReplayed(t *testing.T) {
	facts := func(kind event.Kind, f ...event.Field) func(*event.Strings) event.Event {
		return func(s *event.Strings) event.Event {
			return event.Event{Kind: kind, Text: s.ID(event.Fields(f).Encode())}
		}
	}
	for name, first := range map[string]func(*event.Strings) event.Event{
		"our own": facts(event.Settings, event.Field{Key: "model", Value: "mlp"}, event.Field{Key: "batch", Value: "8"}),
		"a dump":  facts(event.AllocatorFacts, event.Field{Key: analysis.FormatKey, Value: "2023"}),
		"partial": facts(event.AllocatorFacts, event.Field{Key: analysis.PartialKey, Value: "true"}),
	} {
		if o := told(t, 1<<20, first).Outcome(Options{}); o.Any() {
			t.Errorf("%s: %+v", name, o)
		}
	}
	var strs event.Strings
	if o := NewTimeline(&strs, ours).Outcome(Options{}); o.Any() {
		t.Errorf("nothing: %+v", o)
	}
}
