package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/native/monitor"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/store"
)

// fakeSMI is a command that tells of two cards.
func fakeSMI(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fake-smi")
	text := "#!/bin/sh\necho '0, Tesla T4, 00000000:3B:00.0, GPU-1, 15360, 450, 14910, 57, 12'\n" +
		"echo '1, Tesla T4, 00000000:AF:00.0, GPU-2, 15360, 2048, 13312, [N/A], [N/A]'\n"
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// samplesOf reads a file's series of samples.
func samplesOf(t *testing.T, name string) (*store.Timeline, map[string]*store.Series) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := timeline.NewStream(f)
	if err != nil {
		t.Fatal(err)
	}
	tl := store.New(s.Strings())
	if err := s.Replay(event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) })); err != nil {
		t.Fatal(err)
	}
	out := map[string]*store.Series{}
	for _, x := range tl.SeriesList() {
		if x.Kind == store.SampleSeries {
			out[tl.Device(x.Device).Name+" "+tl.Text(x.Name)] = x
		}
	}
	return tl, out
}

func TestWatchWritesWhatTheCommandTells(t *testing.T) {
	out := filepath.Join(t.TempDir(), "cards.tideline")
	code, stdout, stderr := tideline(t, "watch", "-o", out, "--every", "20ms", "--for", "150ms", "--smi", fakeSMI(t))
	if code != exitDone || !strings.Contains(stderr, "Tesla T4: 450.00 MiB of 15.00 GiB used") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	tl, series := samplesOf(t, out)
	x := series["Tesla T4 #1 "+monitor.SeriesUsed]
	if x == nil || x.Len() < 2 || x.Second != 15<<30 {
		t.Fatalf("series %v", series)
	}
	if _, v, _ := x.Point(0); v != 2<<30 {
		t.Errorf("the second card uses %d bytes, want 2 GiB", v)
	}
	if _, known := series["Tesla T4 #1 "+monitor.SeriesUtilisation]; known || len(series) != 3 {
		t.Errorf("%d series, want no utilisation of a card whose driver tells none", len(series))
	}
	if end := tl.End(); !end.Ended || end.Reason != event.EndDone || tl.Skipped() != 0 {
		t.Errorf("the file ends with %+v, %d events skipped", end, tl.Skipped())
	}
}

func TestWatchSaysWhyThereIsNothingToSee(t *testing.T) {
	t.Setenv("TIDELINE_NVML", "/nowhere/libnvidia-ml.so.1")
	code, _, stderr := tideline(t, "watch", "--smi", "/nowhere/nvidia-smi")
	if code != exitFailed || !strings.Contains(stderr, "there is no command /nowhere/nvidia-smi") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %q: want one line", code, stderr)
	}
	if code, _, stderr = tideline(t, "watch", "--every", "1ms"); code != exitUsage || !strings.Contains(stderr, "--every") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	out := file(t, "notes.txt", "not a timeline, and dear to somebody")
	if code, _, stderr = tideline(t, "watch", "-o", out, "--smi", fakeSMI(t)); code != exitUsage || !strings.Contains(stderr, "is not a timeline") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
