package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tideline/native/bench"
)

var benchLines = []bench.Line{
	{Group: "allocators", What: "plain", Nanos: 150.26, Per: "operation", Allocs: 0.25},
	{Group: "allocators", What: "ours", Nanos: 30, Per: "operation", Allocs: 0.001, Ratio: 0.2, To: "plain", Note: "quick"},
	{Group: "planners", What: "hard", Nanos: 2.5e9, Per: "plan", Allocs: 12},
	{Group: "planners", What: "step", Nanos: 12_345, Per: "step"},
	{Group: "planners", What: "call", Nanos: 2_345_678, Per: "call"},
	{Group: "WebAssembly", What: "not measured", Allocs: -1, Note: "why"},
}

func TestMeasurementsAsMarkdown(t *testing.T) {
	const want = `### Allocators

| what | time | heap allocations | ratio | note |
| --- | --- | --- | --- | --- |
| plain | 150.3 ns an operation | 0.25 |  |  |
| ours | 30.0 ns an operation | 0 | 0.20 of plain | quick |

### Planners

| what | time | heap allocations | ratio | note |
| --- | --- | --- | --- | --- |
| hard | 2.50 s a plan | 12.00 |  |  |
| step | 12.3 µs a step | 0 |  |  |
| call | 2.35 ms a call | 0 |  |  |

### WebAssembly

| what | time | heap allocations | ratio | note |
| --- | --- | --- | --- | --- |
| not measured |  |  |  | why |

`
	if got := markdown(benchLines); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestMeasurementsForPeople(t *testing.T) {
	var out bytes.Buffer
	printBench(&console{out: &out}, benchLines)
	for _, want := range []string{"\nallocators\n", "30.0 ns an operation", "0.20 of plain", "not measured"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMeasurementsAreWrittenBetweenTheMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "measured.md")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + benchBegin + "old\n" + benchEnd + "after\n")
	for range 2 { // the second time finds the same place
		if err := writeInto(path, benchLines); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	if !strings.HasPrefix(text, "before\n"+benchBegin+"\n20") || !strings.HasSuffix(text, "\n"+benchEnd+"after\n") ||
		strings.Contains(text, "old") || strings.Count(text, "### Allocators") != 1 {
		t.Errorf("got\n%s", text)
	}
	write("no marks\n")
	if err := writeInto(path, benchLines); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("error %v", err)
	}
	if err := writeInto(path+"x", benchLines); err == nil {
		t.Error("a missing document was written")
	}
}

func TestCircumstances(t *testing.T) {
	if got := circumstances(time.Date(2026, 11, 30, 9, 5, 0, 0, time.UTC)); !strings.HasPrefix(got, "2026-11-30 09:05 UTC, go1.") || !strings.HasSuffix(got, ".\n") {
		t.Errorf("got %q", got)
	}
}
