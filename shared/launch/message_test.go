package launch_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/export/chrome"
	"tideline/shared/launch"
)

// TestWordsCountStepsFromOne: the message of a run that failed names the step that
// the command and the page name, and so does a trace of it.
func TestWordsCountStepsFromOne(t *testing.T) {
	strs := new(event.Strings)
	var trace bytes.Buffer
	w := chrome.NewWriter(&trace, strs)
	r, err := launch.Run(api.Workload{
		Model: "lenet5", Train: &api.Train{}, Batch: []int{64, 8192}, Steps: 4, Devices: []api.Device{{Preset: "lab-256m"}},
	}, launch.Options{Strings: strs, Sink: w})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if r.Reason != event.EndOutOfMemory || r.Steps != 1 {
		t.Fatalf("%v after %d steps: %s", r.Reason, r.Steps, r.Message)
	}
	if !strings.HasPrefix(r.Message, "out of memory in step 2: ") {
		t.Error(r.Message)
	}
	_, failure, _ := strings.Cut(trace.String(), `"name":"out of memory`)
	failure, _, _ = strings.Cut(failure, "\n")
	if !strings.Contains(failure, fmt.Sprintf(`"step":%d`, r.Steps+1)) {
		t.Error(failure)
	}
}
