package pipeline

import (
	"slices"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

// recordOf is what the events of a modelled run tell of its costs.
func recordOf(t *testing.T, s Settings) *Recorded {
	t.Helper()
	var names event.Strings
	rec := NewRecorded(&names)
	m, err := New(s, rec, &names)
	if err != nil {
		t.Fatal(err)
	}
	for now := int64(0); ; {
		b, err := m.Next(now)
		if err != nil {
			break
		}
		now = b.Ready
	}
	m.Advance(1 << 60)
	return rec
}

func TestRecordedCostsGiveTheSamePace(t *testing.T) {
	base := Settings{Elements: 60, Epochs: 2, Batch: []int{6}, ElementBytes: 100, Shuffle: 10, Prefetch: 2}
	for _, c := range []Settings{
		{FetchCost: 30, Map: Map{Cost: 70}, CopyCost: 5},
		{FetchCost: 30, Map: Map{Cost: 70, Parallel: 4}},
		{FetchCost: 30, Interleave: Interleave{Cycle: 2}},
	} {
		s := base
		s.FetchCost, s.Map, s.CopyCost, s.Interleave = c.FetchCost, c.Map, c.CopyCost, c.Interleave
		bare := s
		bare.FetchCost, bare.Map.Cost, bare.CopyCost = 0, 0, 0
		if got := recordOf(t, s).Apply(bare); got.FetchCost != s.FetchCost || got.Map.Cost != s.Map.Cost || got.CopyCost != s.CopyCost {
			t.Errorf("%+v came back as %+v", s, got)
		}
	}
}

func TestRecordedCostsAreKnobsOfAWorkload(t *testing.T) {
	s := Settings{Elements: 60, Epochs: 1, Batch: []int{6}, ElementBytes: 100, FetchCost: 30, Map: Map{Cost: 70}}
	got := recordOf(t, s).Knobs()
	if want := []string{"input.open_cost=0ns", "input.fetch_cost=30ns", "input.map.cost=70ns"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var w api.Workload
	for _, k := range got {
		path, value, _ := strings.Cut(k, "=")
		if err := w.Set(path, value); err != nil {
			t.Error(err)
		}
	}
	if w.Input.FetchCost != 30 || w.Input.Map.Cost != 70 {
		t.Errorf("%+v", w.Input)
	}
	if got := NewRecorded(new(event.Strings)).Knobs(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// A recording may begin in the middle: an end without its begin is no call.
func TestRecordedLeavesHalfCallsOut(t *testing.T) {
	var names event.Strings
	id := names.ID(StageMap)
	r := NewRecorded(&names)
	for _, e := range []event.Event{
		{Kind: event.StageEnd, Time: 5, Op: id, ID: 1},
		{Kind: event.StageBegin, Time: 10, Op: id, ID: 2},
		{Kind: event.StageBegin, Time: 12, Op: id, ID: 3},
		{Kind: event.StageEnd, Time: 30, Op: id, ID: 2, Size: 7},
		{Kind: event.StageEnd, Time: 52, Op: id, ID: 3, Size: 7},
		{Kind: event.StageBegin, Time: 60, Op: id, ID: 4},
	} {
		r.Emit(&e)
	}
	if got, want := r.Stage(StageMap), (StageCost{Calls: 2, Nanos: 60, Bytes: 14, Least: 20, Most: 40}); got != want || got.Mean() != 30 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if r.Stage("none") != (StageCost{}) || (StageCost{}).Mean() != 0 {
		t.Error("a stage that was not there")
	}
}
