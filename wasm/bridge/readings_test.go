package bridge

import (
	"bytes"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// TestReadingsOfATimelineAreFound: the page is told where they lie, and that its
// times are made up once the reader knows.
func TestReadingsOfATimelineAreFound(t *testing.T) {
	const words = `{"moments":true}`
	for name, events := range map[string]int{"events": 3, "none": 0} {
		var b bytes.Buffer
		w := timeline.NewWriter(&b, timeline.Options{})
		for i := range events {
			w.Emit(&event.Event{Kind: event.Sample, Op: w.Strings().ID("x"), Time: int64(i), Size: 5, Step: event.NoStep})
		}
		if err := w.WriteReadings([]byte(words)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := NewSession()
		s.Ask("reset\t0\tx\tfile")
		if err := s.Feed(Current, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if end := ask(t, s, "finish\t0"); end["warning"] != nil || end["error"] != nil {
			t.Errorf("%s: %v", name, end)
		}
		slot := ask(t, s, "status")["slots"].([]any)[0].(map[string]any)
		at, ok := slot["readings"].([]any)
		if !ok || slot["origin"] != "file" {
			t.Fatalf("%s: %v", name, slot)
		}
		from, n := int(at[0].(float64)), int(at[1].(float64))
		if block := b.Bytes()[from : from+n]; !bytes.Contains(block, []byte(words)) || !bytes.HasPrefix(block, []byte("TDLB")) {
			t.Errorf("%s: %q lies there", name, block)
		}
		if slot := ask(t, s, "moments\t0")["slots"].([]any)[0].(map[string]any); slot["origin"] != "log" {
			t.Errorf("%s: %v", name, slot)
		}
	}
}
