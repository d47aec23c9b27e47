package examples

import (
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

// endings are the examples that do not simply end well.
var endings = map[string]struct {
	reason event.EndReason
	cause  event.OOMCause
}{
	"oom-batch.yaml":     {event.EndOutOfMemory, event.OOMFull},
	"fragmentation.yaml": {event.EndOutOfMemory, event.OOMFragmented},
}

func read(t *testing.T, name string) api.Workload {
	t.Helper()
	text, err := Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# ") {
		t.Errorf("%s: the first line says nothing about it", name)
	}
	w, problems := workfile.Read(text, launch.Known())
	if len(problems) > 0 {
		t.Fatalf("%s: %v", name, problems)
	}
	return *w
}

func TestEveryExampleRunsAsItSays(t *testing.T) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		res, err := launch.Run(read(t, e.Name()), launch.Options{})
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
			continue
		}
		want := endings[e.Name()]
		if res.Reason != want.reason {
			t.Errorf("%s ended with %s (%s), want %s", e.Name(), res.Reason, res.Message, want.reason)
		}
		if want.cause != event.OOMUndetermined && res.OOM != nil && res.OOM.Cause != want.cause {
			t.Errorf("%s: %s", e.Name(), res.Message)
		}
		if res.OOM != nil {
			t.Logf("%s: %s", e.Name(), res.Message)
		}
		for _, d := range res.Devices {
			t.Logf("%-20s %s peak in use %s, pool %s", e.Name(), d.Name, event.FormatBytes(d.PeakInUse), event.FormatBytes(d.PeakReserved))
		}
	}
}

// The failing batch of the fragmentation example is not too big for the card:
// there are enough free bytes, and alone it runs.
func TestFragmentationIsNotLackOfMemory(t *testing.T) {
	w := read(t, "fragmentation.yaml")
	res, err := launch.Run(w, launch.Options{})
	if err != nil || res.OOM == nil {
		t.Fatalf("%v %+v", err, res)
	}
	if o := res.OOM; o.Free < o.Requested || o.Largest >= o.Requested {
		t.Errorf("%d bytes asked for, %d free, largest hole %d", o.Requested, o.Free, o.Largest)
	}
	if res.Steps < 40 {
		t.Errorf("failed after %d steps, want a long run", res.Steps)
	}
	w.Batch = []int{w.Batch[res.Steps%len(w.Batch)]}
	w.Steps = 20
	if res, err = launch.Run(w, launch.Options{}); err != nil || res.Reason != event.EndDone {
		t.Errorf("alone, the batch of %d: %v %s", w.Batch[0], err, res.Message)
	}
}
