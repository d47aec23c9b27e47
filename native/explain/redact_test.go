package explain

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/golden"
	"tideline/shared/ingest"
	"tideline/shared/redact"
)

var (
	word = regexp.MustCompile(`\b[A-Za-z_][A-Za-z0-9_]{3,}`)
	bars = regexp.MustCompile(`[*x_]{100}`) // a pool's picture is no word
)

// foreignWords are the words of a text of more than three characters that are not
// Tideline's own.
func foreignWords(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range word.FindAllString(bars.ReplaceAllString(s, " "), -1) {
		if !redact.Known(w) && strings.Trim(w, "_") != "" {
			out[w] = true
		}
	}
	return out
}

// plain is what a form of the report says, without the form's own words.
func plain(form string, report string) string {
	if form != "html" {
		return report
	}
	report = regexp.MustCompile(`(?s)<head>.*</head>|data:image/png;base64,[^"]*`).ReplaceAllString(report, "")
	return regexp.MustCompile(`<[a-z/!][^>]*>`).ReplaceAllString(report, " ")
}

// survivors are the foreign words of an input that its redacted reports still
// have.
func survivors(t *testing.T, name string, input []byte, all map[string]bool, o Options) {
	t.Helper()
	for form, x := range map[string]Options{"text": {}, "json": {JSON: true}, "html": {HTML: true}} {
		x.Redact, x.NoReruns = true, o.NoReruns
		var out bytes.Buffer
		if err := Explain(name, bytes.NewReader(input), &out, x); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := plain(form, out.String())
		template := foreignWords(reportHTML)
		for w := range foreignWords(got) {
			if all[w] && !template[w] {
				at := strings.Index(got, w)
				t.Errorf("%s, %s: %q survives in …%s…", name, form, w, got[max(0, at-60):min(len(got), at+60)])
			}
		}
		if form == "json" && !json.Valid(out.Bytes()) {
			t.Errorf("%s: no JSON", name)
		}
	}
}

// TestRedactedReportsHaveOurWordsOnly: no word of an input longer than three
// characters that is not Tideline's own survives, over all cases.
func TestRedactedReportsHaveOurWordsOnly(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	if err != nil || len(folders) < 30 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	const place = "/home/somebody/secretproject/"
	for _, f := range folders {
		id := filepath.Base(filepath.Dir(f))
		inputs, _ := golden.Case(t, id)
		for name, b := range inputs {
			all := foreignWords(string(b) + " " + place + name + " " + unpacked(b))
			survivors(t, place+name, b, all, Options{NoReruns: true})
		}
	}
}

func unpacked(b []byte) string {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return ""
	}
	all, _ := io.ReadAll(z)
	return string(all)
}

// TestRedactedRunsHaveOurWordsOnly: the same over recorded runs, whose reruns
// stay.
func TestRedactedRunsHaveOurWordsOnly(t *testing.T) {
	for _, name := range []string{"leak", "oom-resnet", "copies", "stall", "fragmentation"} {
		file := exampleFile(t, name)
		strs := new(event.Strings)
		in, err := ingest.Open(name, bytes.NewReader(file), ingest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Emit(strs, event.SinkFunc(func(*event.Event) {})); err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for i := range strs.Len() {
			for w := range foreignWords(strs.At(event.StringID(i))) {
				all[w] = true
			}
		}
		if len(all) < 5 {
			t.Errorf("%s: only %d words", name, len(all))
		}
		survivors(t, name+".tideline", file, all, Options{NoReruns: name != "leak"})
	}
	got := explain(t, "leak.tideline", exampleFile(t, "leak"), Options{Redact: true})
	for _, part := range []string{"A leak filled the memory", "scope-", "Verified by rerun", "227.63 MiB", "GPU_0_bfc", "batch=134"} {
		if !strings.Contains(got, part) {
			t.Errorf("redacted, the report lacks %q:\n%s", part, got)
		}
	}
}

// TestRedactionKeepsTheFigures: sizes, verdict, devices and allocators stay.
func TestRedactionKeepsTheFigures(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden.Cases(t), "19-torch-2025-three-processes", "input.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := explain(t, "x", b, Options{Redact: true})
	for _, part := range []string{"900.00 MiB", "679.38 MiB", "71.60 GiB", "process-1", "Another process holds the memory"} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q:\n%s", part, got)
		}
	}
	if strings.Contains(got, "11111") {
		t.Errorf("a process number survives:\n%s", got)
	}
	got = explain(t, "input.log", read(t, copies+"/05-tf-bfc-2023-cifar-fragmented/input.log"), Options{Redact: true})
	for _, part := range []string{"GPU_0_bfc ran out of memory", "Fragmented", "532.88 MiB", "at 7f1cfb4cd500", "2.71 GiB"} {
		if !strings.Contains(got, part) {
			t.Errorf("lacks %q:\n%s", part, got)
		}
	}
}

// TestRedactedReportsHaveTheSameFields: names of fields are ours, also those
// that are put together of a name and a unit.
func TestRedactedReportsHaveTheSameFields(t *testing.T) {
	fields := func(o Options, id string, b []byte) map[string]bool {
		var out bytes.Buffer
		o.JSON, o.NoReruns = true, true
		if err := Explain(id, bytes.NewReader(b), &out, o); err != nil {
			t.Fatal(err)
		}
		var v struct {
			Readings []map[string]any `json:"readings"`
		}
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, r := range v.Readings {
			for name := range r {
				names[name] = true
			}
		}
		return names
	}
	for _, id := range []string{"12-xla-tpu-2019-padding-32x", "19-torch-2025-three-processes", "22-torch-2023-async-backend", "28-rmm-2020s-current-columns", "38-torch-2022-eval-grows-linearly"} {
		inputs, _ := golden.Case(t, id)
		for name, b := range inputs {
			plain := fields(Options{}, name, b)
			redacted := fields(Options{Redact: true}, name, b)
			if len(plain) == 0 {
				t.Errorf("%s has no readings", id)
			}
			for f := range plain {
				if !redacted[f] {
					t.Errorf("%s: the field %s is gone", id, f)
				}
			}
		}
	}
}
