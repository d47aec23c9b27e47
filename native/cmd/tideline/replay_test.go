package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestReplayOfASnapshotSaysWhatCanBeDone: settings of an allocator are no
// workload, and one line says what replays its requests.
func TestReplayOfASnapshotSaysWhatCanBeDone(t *testing.T) {
	line := filepath.Join(t.TempDir(), "small.tideline")
	if code, _, stderr := tideline(t, "convert", "../../../examples/files/small-model.pickle", line); code != 0 {
		t.Fatalf("convert: %s", stderr)
	}
	code, _, stderr := tideline(t, "replay", line)
	if code != exitUsage || !strings.Contains(stderr, "--matrix") || strings.Count(stderr, "\n") > 2 {
		t.Errorf("code %d, and it says\n%s", code, stderr)
	}
}
