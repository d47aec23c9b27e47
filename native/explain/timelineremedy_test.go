package explain_test

import (
	"strings"
	"testing"

	"tideline/native/explain"
	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// The timeline of another program that ran out of memory says which settings
// would have served the request: its requests are replayed, as nothing is known
// to run again.
func TestAForeignTimelineIsVerifiedByReplay(t *testing.T) {
	k, err := kinds.ByName("bfc")
	if err != nil {
		t.Fatal(err)
	}
	x, err := contest.FromTrace(strings.NewReader("bfc-trace 1\no limit 67108864\na 1 1048576\na 2 2097152\na 3 4194304\na 4 8388608\na 5 16777216\na 6 17825792\n"))
	if err != nil {
		t.Fatal(err)
	}
	var strs event.Strings
	text := func(f ...event.Field) event.StringID { return strs.ID(event.Fields(f).Encode()) }
	events := []event.Event{
		{Kind: event.DeviceFacts, Step: event.NoStep, Text: text(event.Field{Key: "name", Value: "/GPU:0"}, event.Field{Key: "kind", Value: "gpu"})},
		{Kind: event.AllocatorFacts, Step: event.NoStep, Size: 64 << 20, Text: text(event.Field{Key: "name", Value: "GPU_0_bfc"}, event.Field{Key: "kind", Value: "bfc"})},
	}
	failed := false
	x.Run(contest.Entry{Kind: k, Settings: []kinds.Setting{{Name: "growth", Value: "true"}}}, contest.Options{Sink: event.SinkFunc(func(e *event.Event) {
		if !failed {
			events = append(events, *e)
		}
		failed = failed || e.Kind == event.OutOfMemory
	})})
	each := func(yield func(*event.Event) bool) {
		for i := range events {
			if !yield(&events[i]) {
				return
			}
		}
	}
	for _, quiet := range []bool{false, true} {
		var out strings.Builder
		if err := explain.FromEvents("x.tideline", each, &strs, &out, explain.Options{NoReruns: quiet}); err != nil {
			t.Fatal(err)
		}
		plain := strings.Join(strings.Fields(out.String()), " ")
		if got := strings.Contains(plain, "Verified by replay") && strings.Contains(plain, "TF_FORCE_GPU_ALLOW_GROWTH=false would have served the request"); got == quiet {
			t.Errorf("without replays: %v\n%s", quiet, out.String())
		}
	}
	var out strings.Builder
	if err := explain.FromEvents("x.tideline", each, &strs, &out, explain.Options{JSON: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `TF_FORCE_GPU_ALLOW_GROWTH=false`) || !strings.Contains(out.String(), `"least_reduction"`) {
		t.Error(out.String())
	}
}
