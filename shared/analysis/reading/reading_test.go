package reading

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	var f Facts
	f.Int("a_bytes", -3)
	f.Set("limit", Uint(math.MaxUint64))
	f.Float("share", 0.25)
	f.Float("nothing", math.NaN())
	f.Text("name", "a \"b\"\n\\ <é>\x01\xff\u2028")
	f.Text("empty", "")
	f.Bool("yes", true)
	f.Texts("words", []string{"x", ""})
	f.Ints("shape", []int64{})
	f.Int("a_bytes", 3) // replaces
	r := Reading{Kind: "k", Line: 7, Facts: f, Verdict: "full", Open: []string{"o"}}
	b := r.AppendJSON(nil)
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	for name, want := range map[string]any{
		"kind": "k", "line": 7.0, "a_bytes": 3.0, "share": 0.25, "nothing": nil, "empty": nil, "yes": true,
		"name": "a \"b\"\n\\ <é>\x01\ufffd\u2028", "verdict": "full", "secondary": nil, "next": nil, "next_verified": false,
	} {
		got, ok := m[name]
		if !ok || got != want {
			t.Errorf("%s = %#v, %v; want %#v", name, got, ok, want)
		}
	}
	for _, part := range []string{`"limit":18446744073709551615`, `"words":["x",""]`, `"shape":[]`, `"not_concluded":["o"]`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s lacks %s", b, part)
		}
	}
}

func TestTrialsJSON(t *testing.T) {
	r := Reading{Least: 512, Trials: []Trial{
		{Setting: "growth=false", Allocator: "bfc", Own: true, Serves: true, Spare: 1024, Peak: 4096, Assumes: "order"},
		{Setting: "torch", Allocator: "torch", Spare: -1, Peak: 8192},
	}}
	b := string(r.AppendJSON(nil))
	want := `"trials":[{"setting":"growth=false","allocator":"bfc","own":true,"serves":true,"spare":1024,"peak_reserved":4096,"assumes":"order"},` +
		`{"setting":"torch","allocator":"torch","own":false,"serves":false,"spare":null,"peak_reserved":8192,"assumes":null}],"peaks":null,"replayed":null,"least_reduction":512,"short_bytes":null`
	if !strings.Contains(b, want) {
		t.Errorf("%s\nlacks %s", b, want)
	}
	if b := string((&Reading{}).AppendJSON(nil)); !strings.Contains(b, `"trials":null,"peaks":null,"replayed":null,"least_reduction":null,"short_bytes":null`) {
		t.Errorf("without trials: %s", b)
	}
}

func FuzzQuoted(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\"\\\xff\u2029")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(AppendQuoted(nil, s), &back); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); strings.Count(back, "\ufffd") == 0 && back != want {
			t.Errorf("%q came back as %q", s, back)
		}
	})
}
