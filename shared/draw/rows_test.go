package draw

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// TestRowsNameADeviceShortly: by what tells it from others, however long its name.
func TestRowsNameADeviceShortly(t *testing.T) {
	for name, want := range map[string]string{
		"/job:localhost/replica:0/task:0/device:GPU:0": "GPU:0: in use",
		"/device:GPU:1": "GPU:1: in use",
		"Tesla T4 #0":   "Tesla T4 #0: in use",
	} {
		strs := new(event.Strings)
		tl := store.New(strs)
		facts := event.Fields{{Key: "name", Value: name}, {Key: "kind", Value: "gpu"}}
		tl.Append([]event.Event{
			{Kind: event.DeviceFacts, Text: strs.ID(facts.Encode())},
			{Kind: event.Sample, Op: strs.ID("in use"), Size: 5},
		})
		rows := Rows(tl, &Lane{Kind: SampleLane, H: 30})
		if len(rows) != 1 || rows[0].Title != want {
			t.Errorf("%s: rows %+v, want %q", name, rows, want)
		}
	}
}
