package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestARunThatNeverBeganSaysWhy: what it leaves behind explains itself, and is
// replayed with another setting.
func TestARunThatNeverBeganSaysWhy(t *testing.T) {
	full := strings.Replace(fitting, "lab-256m", "lab-256m, held: 250MiB", 1)
	out := filepath.Join(t.TempDir(), "x.tideline")
	code, stdout, stderr := tideline(t, "run", "-q", "--modelled", file(t, "full.yaml", full), "-o", out)
	if code != exitFailed || !strings.Contains(stdout, "why it failed, and its settings") {
		t.Fatalf("%d %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := tideline(t, "explain", out); code != exitDone || !strings.Contains(stdout, "choose another card") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := tideline(t, "replay", out, "--set", "devices.0.held=0"); code != exitDone || !strings.Contains(stdout, "devices.0.held: 250MiB -> 0") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	if code, _, stderr := tideline(t, "replay", out); code != exitFailed || !strings.Contains(stderr, "choose another card") {
		t.Errorf("%d %s", code, stderr)
	}
}
