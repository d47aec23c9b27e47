package explain

import (
	"bytes"
	"strings"
	"testing"

	"tideline/examples"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
)

// guideWidth leaves room for the four columns that a guide's blocks are
// indented by.
const guideWidth = 76

// example is the report on an example that is run with modelled times.
func example(t *testing.T, name string, o Options) string {
	t.Helper()
	return explain(t, name+".tideline", exampleFile(t, name), o)
}

// exampleFile is the timeline of an example.
func exampleFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := examples.Files.ReadFile(name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	w, problems := workfile.Read(text, launch.Known())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var file bytes.Buffer
	strs := new(event.Strings)
	tw := timeline.NewWriter(&file, timeline.Options{Strings: strs})
	if _, err := launch.Run(*w, launch.Options{Strings: strs, Sink: tw}); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestTheGuidesShowWhatIsPrinted: every indented line of a guide that is no
// command is a line of the report on its example.
func TestTheGuidesShowWhatIsPrinted(t *testing.T) {
	for guide, name := range map[string]string{
		"leak.md": "leak", "input-bound.md": "cpu-bottleneck", "copies.md": "copies",
	} {
		report := "\n" + example(t, name, Options{Width: guideWidth}) + "\n"
		shown := 0
		for line := range strings.SplitSeq(string(read(t, "../../docs/guide/"+guide)), "\n") {
			body, ok := strings.CutPrefix(line, "    ")
			if !ok || strings.HasPrefix(body, "tideline ") {
				continue
			}
			shown++
			if !strings.Contains(report, "\n"+body+"\n") {
				t.Errorf("%s shows a line that is not printed: %q\n%s", guide, body, report)
				break
			}
		}
		if shown < 6 {
			t.Errorf("%s shows %d lines", guide, shown)
		}
	}
}

// TestExamplesAreExplainedInWords: each trouble by its name, with a remedy that
// is verified.
func TestExamplesAreExplainedInWords(t *testing.T) {
	for name, want := range map[string][]string{
		"oom-model":      {"Serious: Out of memory: the model is too large for the card, /GPU:0", "train.optimizer=sgd: all 2 steps"},
		"oom-resnet":     {"Serious: Out of memory: the batch is too large, /GPU:0", "it is the largest batch:", "train.checkpoint=sqrt: all 2 steps", "saves "},
		"wasteful-dtype": {"Serious: float64 takes twice the memory of float32", "train.precision=float32: all 2 steps"},
		"fragmentation":  {"Serious: Out of memory: enough is free, but in pieces", "The free memory lies in pieces", "Verified by rerun"},
		"leak":           {"Serious: A leak: memory grows with every step, /GPU:0", "keep= (nothing is kept): all 30 steps", "this only puts its end off"},
		"stall":          {"HIGHLY input-bound", "input.map.parallel=8: "},
		"transfers":      {"Serious: Too many copies between host and device", "placement.rules=none: "},
	} {
		// Lines break anywhere.
		got := strings.Join(strings.Fields(example(t, name, Options{})), " ")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in %s", name, w, got)
			}
		}
		if name == "oom-resnet" && strings.Contains(got, "not verified by a rerun") {
			t.Errorf("%s: advice beside what is verified: %s", name, got)
		}
	}
	if got := example(t, "oom-resnet", Options{NoReruns: true}); strings.Contains(got, "Verified by rerun") || !strings.Contains(got, "the batch is too large") {
		t.Errorf("without reruns: %s", got)
	}
	if got := example(t, "oom-resnet", Options{Stop: func() bool { return true }}); strings.Contains(got, "Verified by rerun") {
		t.Errorf("stopped: %s", got)
	}
}

// TestTheProfilersViewOfARun: what the stock page would tell of the same file.
func TestTheProfilersViewOfARun(t *testing.T) {
	got := example(t, "resnet50", Options{Profiler: true})
	for _, want := range []string{"GPU_0_bfc\n", "memory capacity 13.480 GiB", "unused preallocated device memory", "persist/dynamic", "below 0.001 GiB not shown"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
