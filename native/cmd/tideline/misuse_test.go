package main

import (
	"strings"
	"testing"
)

// TestWrongUseIsSaidAsSuch: what is wrong on the command line ends with the exit
// code of wrong use and names the flag that was given, and no other.
func TestWrongUseIsSaidAsSuch(t *testing.T) {
	w := file(t, "w.yaml", fitting)
	for _, c := range []struct{ args, want, never string }{
		{"run " + w + " --set batch=1000000000", w + ": batch: 1000000000 samples are impossible", ""},
		{"run " + w + " --set batch=-1", "not a whole number of at least 1", ""},
		{"replay ../../../examples/files/small-model.pickle --limit 1", "--limit goes with --allocator NAME or --matrix", "--of"},
		{"replay ../../../examples/files/small-model.pickle --of x", "--of goes with --allocator NAME or --matrix", "--limit"},
	} {
		code, stdout, stderr := tideline(t, strings.Fields(c.args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.want) || c.never != "" && strings.Contains(stderr, c.never) {
			t.Errorf("%s: %d %q %s", c.args, code, stdout, stderr)
		}
	}
	// A file that is wrong by itself is no wrong use.
	bad := file(t, "bad.yaml", strings.Replace(fitting, "batch: ", "batch: 100000000", 1))
	if code, _, stderr := tideline(t, "run", bad, "--set", "steps=2"); code != exitFailed {
		t.Errorf("%d %s", code, stderr)
	}
}
