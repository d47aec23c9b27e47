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

	"oom-model.yaml":          {event.EndOutOfMemory, event.OOMFull},
	"oom-resnet.yaml":         {event.EndOutOfMemory, event.OOMFull},
	"wasteful-dtype.yaml":     {event.EndOutOfMemory, event.OOMFull},
	"unet-fragmentation.yaml": {event.EndOutOfMemory, event.OOMFragmented},
	"leak.yaml":               {event.EndOutOfMemory, event.OOMFull},
}

// remedies are changes that let an example run which fails without, or fail
// which runs.
var remedies = map[string]struct {
	path, value string
	ends        event.EndReason
}{
	"oom-model.yaml":          {"model", "gpt2-medium", event.EndDone},
	"oom-resnet.yaml":         {"batch", "64", event.EndDone},
	"wasteful-dtype.yaml":     {"train.precision", "float32", event.EndDone},
	"unet-fragmentation.yaml": {"image", "576", event.EndDone},
	"leak.yaml":               {"keep", "", event.EndDone},
	"bert-checkpoint.yaml":    {"train.checkpoint", "none", event.EndOutOfMemory},
	"mixed-precision.yaml":    {"train.precision", "float32", event.EndOutOfMemory},
	"swap.yaml":               {"train.swap", "none", event.EndOutOfMemory},
	"resnet50.yaml":           {"batch", "192", event.EndOutOfMemory},
}

func TestRemediesDoWhatTheExamplesSay(t *testing.T) {
	for name, r := range remedies {
		w := read(t, name)
		if err := w.Set(r.path, r.value); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		res, err := launch.Run(w, launch.Options{})
		if err != nil || res.Reason != r.ends {
			t.Errorf("%s with %s=%s: %v, %s (%s), want %s", name, r.path, r.value, err, res.Reason, res.Message, r.ends)
		}
	}
}

// What an example is about takes a large part of its time: the wait for one
// thread, and what crosses the bus.
func TestBottlenecksAreThere(t *testing.T) {
	for _, c := range []struct{ name, path, value string }{
		{"cpu-bottleneck.yaml", "input.map.parallel", "16"},
		{"stall.yaml", "input.map.parallel", "8"},
		{"copies.yaml", "placement.rules", "none"},
		{"transfers.yaml", "placement.rules", "none"},
	} {
		w := read(t, c.name)
		slow, err := launch.Run(w, launch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Set(c.path, c.value); err != nil {
			t.Fatal(err)
		}
		fast, err := launch.Run(w, launch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d ms, with %s=%s %d ms", c.name, slow.Nanos/1e6, c.path, c.value, fast.Nanos/1e6)
		if fast.Nanos > slow.Nanos*9/10 {
			t.Errorf("%s: %d ns, and %d with %s=%s: hardly a bottleneck", c.name, slow.Nanos, fast.Nanos, c.path, c.value)
		}
	}
}

// A leak holds more every step, by the bytes of what is kept and of what the
// chunks around it waste.
func TestLeakGrowsByWhatIsKept(t *testing.T) {
	w := read(t, "leak.yaml")
	var peaks []int64
	for _, steps := range []int{3, 7, 11} {
		w.Steps = steps
		res, err := launch.Run(w, launch.Options{})
		if err != nil || res.Reason != event.EndDone {
			t.Fatalf("%v %s", err, res.Message)
		}
		peaks = append(peaks, res.Devices[1].PeakInUse)
	}
	const kept = 4 * 3 * 256 * 28 * 28 * 6 * 4 // three results of conv1
	for i := range 2 {
		if grown := peaks[i+1] - peaks[i]; grown < kept*9/10 || grown > kept*13/10 {
			t.Errorf("four steps more hold %d bytes more, want about %d", grown, kept)
		}
	}
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
