package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakesAreAnsweredInOneLine: each has one error, which says what to do.
func TestMistakesAreAnsweredInOneLine(t *testing.T) {
	w := file(t, "w.yaml", fitting)
	run := recorded(t, fitting)
	text := file(t, "notes.txt", "nothing of interest\n")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an allocator that is misspelt", []string{"run", "-q", w, "--set", "devices.0.allocator=torhc"}, `did you mean "torch"?`},
		{"one of a replay", []string{"replay", run, "--allocator", "torhc"}, `did you mean "torch"?`},
		{"an option that is misspelt", []string{"replay", run, "--allocator", "torch", "--set", "expandable_segmens=true"}, `did you mean "expandable_segments"?`},
		{"a number beyond all", []string{"run", "-q", w, "--set", "batch=99999999999999999999"}, "is too large"},
		{"a workload to explain", []string{"explain", w}, "is a workload"},
		{"a text without a timeline", []string{"convert", text, "-"}, "Tideline opens .tideline files"},
	} {
		code, stdout, stderr := tideline(t, c.args...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], "Try: ") {
			lines = lines[:n-1]
		}
		if code == 0 || stdout != "" || len(lines) != 1 || !strings.Contains(lines[0], c.want) {
			t.Errorf("%s: exit %d, %q\n%s", c.name, code, stdout, stderr)
		}
	}
	out := filepath.Join(t.TempDir(), "out.txt")
	if code, _, _ := tideline(t, "convert", text, out); code == 0 {
		t.Error("a text without a timeline was converted")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was left behind")
	}
}

// TestALeakIsNamedFirst: the advice at the end of a run begins with it.
func TestALeakIsNamedFirst(t *testing.T) {
	_, stdout, _ := tideline(t, "run", "-q", "--modelled", "../../../examples/leak.yaml")
	leak, full := strings.Index(stdout, "A leak filled the memory"), strings.Index(stdout, "on /GPU:0 in step")
	if leak < 0 || full < leak {
		t.Error(stdout)
	}
}
