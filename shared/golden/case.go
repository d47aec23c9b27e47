package golden

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
)

// Case opens one real input: the contents of its files by name, and its
// case.json.
func Case(tb testing.TB, id string) (inputs map[string][]byte, description []byte) {
	tb.Helper()
	dir := filepath.Join(Cases(tb), id)
	description, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var c struct{ Inputs []string }
	if err := json.Unmarshal(description, &c); err != nil {
		tb.Fatalf("case %s: %v", id, err)
	}
	inputs = map[string][]byte{}
	for _, name := range c.Inputs {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			tb.Fatal(err)
		}
		inputs[name] = b
	}
	return inputs, description
}

// CheckCase holds the JSON of a reading against the expected object of a
// case.json. Every expected field must be there and equal, whole numbers to the
// last digit; the reading may say more.
func CheckCase(tb testing.TB, description, got []byte) {
	tb.Helper()
	var c struct{ Expected map[string]any }
	if err := decode(description, &c); err != nil {
		tb.Fatalf("case.json: %v", err)
	}
	var g map[string]any
	if err := decode(got, &g); err != nil {
		tb.Fatalf("the reading's JSON: %v\n%s", err, got)
	}
	if len(c.Expected) == 0 {
		tb.Fatal("the case expects nothing")
	}
	for name, want := range c.Expected {
		have, there := g[name]
		if !there {
			tb.Errorf("%s: the reading has no such field", name)
		} else if !alike(have, want) {
			tb.Errorf("%s = %v, want %v", name, text(have), text(want))
		}
	}
}

func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func alike(got, want any) bool {
	switch w := want.(type) {
	case json.Number:
		g, ok := got.(json.Number)
		return ok && (g == w || !isWhole(w) && near(g, w))
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !alike(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, v := range w {
			h, there := g[name]
			ok = ok && there && alike(h, v)
		}
		return ok
	default:
		return reflect.DeepEqual(got, want)
	}
}

func isWhole(n json.Number) bool {
	_, err := strconv.ParseInt(n.String(), 10, 64)
	return err == nil
}

func near(a, b json.Number) bool {
	x, err := a.Float64()
	y, err2 := b.Float64()
	return err == nil && err2 == nil && math.Abs(x-y) < 5e-7*max(1, math.Abs(y))
}
