package remedy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
	"tideline/shared/golden"
	"tideline/shared/ingest"
)

var update = flag.Bool("update", false, "write the table that the cases are compared with")

// TestCases holds what the replays of all recorded cases come to.
func TestCases(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(golden.Cases(t), "*"))
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range files {
			if filepath.Base(name) != "case.json" {
				fill(t, &table, name)
			}
		}
	}
	const golden = "testdata/cases.txt"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(table.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d is %q, want %q; -update writes the table anew", i+1, got[min(i, len(got)-1)], line)
		}
	}
}

func fill(t *testing.T, w *strings.Builder, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		return // no file of the case
	}
	defer f.Close()
	in, err := ingest.Open(filepath.Base(name), f, ingest.Limits{})
	if err != nil {
		t.Logf("%s: %v", name, err)
		return
	}
	Fill(in, Options{})
	fmt.Fprintf(w, "%s\n", filepath.Base(filepath.Dir(name)))
	for _, r := range in.Readings {
		if r.Replayed == "" && r.Least == 0 {
			fmt.Fprintf(w, "  line %d: %s: nothing to replay\n", r.Line, r.Kind)
			continue
		}
		fmt.Fprintf(w, "  line %d: %s: %s\n    least reduction %d, short %d\n", r.Line, r.Kind, r.Replayed, r.Least, r.Short)
		for i := range r.Trials {
			fmt.Fprintf(w, "    %-8s %s\n", map[bool]string{true: "serves", false: "fails"}[r.Trials[i].Serves], row(&r.Trials[i]))
		}
		for i := range r.Peaks {
			fmt.Fprintf(w, "    %s\n", row(&r.Peaks[i]))
		}
	}
}

func row(x *reading.Trial) string {
	return fmt.Sprintf("peak %12d spare %12d  %s", x.Peak, x.Spare, x.Setting)
}
