package ingest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
	"tideline/shared/golden"
)

// prose are the expected fields that describe the input in somebody's words
// rather than state a result. They must be answered, but not word by word.
var prose = map[string]bool{"format_variant": true}

// textKinds with the number of cases at hand.
var textKinds = map[string]int{
	"tf-bfc-oom": 8, "xla-oom": 3, "xla-tpu-oom": 1, "ort-bfcarena": 3, "pytorch-oom-message": 7, "pytorch-memory-summary": 1,
	"rmm-log": 2, "nvidia-smi": 3, "step-memory-log": 2, "tf-log-memory": 1,
}

type testCase struct {
	ID, Kind string
	Inputs   []string
	Expected map[string]json.RawMessage
	dir      string
}

func cases(t *testing.T) []testCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(files)
	var out []testCase
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		c := testCase{dir: filepath.Dir(f)}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out = append(out, c)
	}
	return out
}

// TestCases holds every text of the collection to its expected reading: each
// number, word and null.
func TestCases(t *testing.T) {
	count := map[string]int{}
	for _, c := range cases(t) {
		if textKinds[c.Kind] == 0 {
			continue // held by TestBinaryCases
		}
		t.Run(c.ID, func(t *testing.T) {
			count[c.Kind]++
			for _, form := range forms {
				t.Run(form.name, func(t *testing.T) { checkCase(t, c, form.change) })
			}
		})
	}
	for kind, n := range textKinds {
		if count[kind] < n {
			t.Errorf("%d cases of %s, want at least %d", count[kind], kind, n)
		}
	}
}

// forms are ways in which the same text reaches us.
var forms = []struct {
	name   string
	change func([]byte) []byte
}{
	{"as it is", func(b []byte) []byte { return b }},
	{"Windows line ends", func(b []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}},
	{"quoted", func(b []byte) []byte {
		return append([]byte("> "), bytes.ReplaceAll(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"), []byte("\n> "))...)
	}},
}

// read gives the reading of a case's kind.
func read(t *testing.T, c testCase, change func([]byte) []byte) *reading.Reading {
	t.Helper()
	var texts []io.Reader
	for _, name := range c.Inputs {
		b, err := os.ReadFile(filepath.Join(c.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, bytes.NewReader(change(b)))
	}
	text, err := ReadText(c.ID, texts...)
	if err != nil {
		t.Fatal(err)
	}
	all := text.All()
	if len(all) != 1 {
		for _, r := range all {
			t.Logf("line %d: %s: %s", r.Line, r.Kind, r.Verdict)
		}
		t.Fatalf("%d readings, want 1", len(all))
	}
	if all[0].Kind != c.Kind {
		t.Errorf("read as %s, want %s", all[0].Kind, c.Kind)
	}
	return all[0]
}

func checkCase(t *testing.T, c testCase, change func([]byte) []byte) {
	t.Helper()
	r := read(t, c, change)
	if r.Why == "" && c.Kind != "tf-bfc-oom" {
		t.Error("the reading does not say why")
	}
	var got map[string]any
	d := json.NewDecoder(bytes.NewReader(r.AppendJSON(nil)))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	for name, raw := range c.Expected {
		var want any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		value, ok := got[name]
		switch {
		case !ok:
			t.Errorf("%s: the reading has no such field; want %s", name, raw)
		case prose[name]:
			if value == nil {
				t.Errorf("%s is not answered", name)
			}
		case !equal(value, want):
			b, _ := json.Marshal(value)
			t.Errorf("%s = %s, want %s", name, b, raw)
		}
	}
}

// equal compares two JSON values: type, nullness, every digit. 8 and 8.0 are
// the same number.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && (x == y || number(x) == number(y))
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !equal(x[k], v) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

func number(n json.Number) string {
	s := string(n)
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return s
		}
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return s
}
