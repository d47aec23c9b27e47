package analysis

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/ingest/bfclog"
)

// prose are the expected fields that describe the input in somebody's words
// rather than state a result. They must be answered, but not word by word.
var prose = []string{"format_variant"}

func TestCases(t *testing.T) {
	t.Run("copies", func(t *testing.T) { runCases(t, filepath.Join("testdata", "cases"), 3) })
	t.Run("all", func(t *testing.T) { runCases(t, golden.Cases(t), 8) })
}

func runCases(t *testing.T, dir string, atLeast int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			ID, Kind string
			Inputs   []string
			Expected map[string]json.RawMessage
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if c.Kind != "tf-bfc-oom" {
			continue
		}
		n++
		t.Run(c.ID, func(t *testing.T) {
			checkCase(t, filepath.Join(filepath.Dir(f), c.Inputs[0]), c.Expected)
		})
	}
	if n < atLeast {
		t.Errorf("%d cases of this kind in %s, want at least %d", n, dir, atLeast)
	}
}

func checkCase(t *testing.T, input string, expected map[string]json.RawMessage) {
	t.Helper()
	f, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := bfclog.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Dumps) != 1 {
		t.Fatalf("%d dumps, want 1", len(log.Dumps))
	}
	values := FromDump(log.Dumps[0]).Values()
	for name, raw := range expected {
		got, ok := values.Get(name)
		if !ok {
			t.Errorf("%s: the reading has no such field", name)
			continue
		}
		if slices.Contains(prose, name) {
			if got.Type != TextValue {
				t.Errorf("%s is not answered", name)
			}
			continue
		}
		if !same(t, got, raw) {
			t.Errorf("%s = %+v, want %s", name, got, raw)
		}
	}
}

// same compares a value with JSON: type, nullness and every digit.
func same(t *testing.T, got Value, raw json.RawMessage) bool {
	t.Helper()
	into := func(p any) bool { return json.Unmarshal(raw, p) == nil }
	if string(raw) == "null" {
		return got.Type == Null
	}
	switch got.Type {
	case IntValue:
		var n int64
		return into(&n) && n == got.Int
	case FloatValue:
		var f float64
		return into(&f) && math.Abs(f-got.Float) < 5e-7
	case TextValue:
		var s string
		return into(&s) && s == got.Text
	case BoolValue:
		var b bool
		return into(&b) && b == got.Bool
	case IntsValue:
		var l []int64
		return into(&l) && slices.Equal(l, got.Ints)
	case TextsValue:
		var l []string
		return into(&l) && slices.Equal(l, got.Texts)
	default:
		return false
	}
}
