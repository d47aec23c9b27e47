package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tideline/shared/golden"
)

func goldenPlanning(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join(golden.Dir(tb, "static-planning"), name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// instance reads a published instance, such as A.1048576 or S_1.
func instance(tb testing.TB, name string) *Problem {
	tb.Helper()
	for _, dir := range []string{
		filepath.Join(golden.Dir(tb, "minimalloc"), "challenging"), filepath.Join(golden.Dir(tb, "minimalloc"), "small"),
		filepath.Join(golden.Dir(tb, "static-planning"), "large"),
	} {
		f, err := os.Open(filepath.Join(dir, name+".csv"))
		if err != nil {
			continue
		}
		defer f.Close()
		p, err := ReadCSV(f)
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		return p
	}
	tb.Fatalf("no instance %s", name)
	return nil
}

// TestGreedyHeightsAreThePublished: all ten heights of all instances, exactly.
func TestGreedyHeightsAreThePublished(t *testing.T) {
	var want map[string]map[string]int64
	if err := json.Unmarshal(goldenPlanning(t, "greedy.json"), &want); err != nil {
		t.Fatal(err)
	}
	if len(want) < 23 {
		t.Fatalf("only %d instances", len(want))
	}
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && w["n"] > 2000 {
				t.Skip("large instances natively only")
			}
			p := instance(t, name)
			if int64(len(p.Buffers)) != w["n"] || Load(p) != w["load"] {
				t.Errorf("n %d load %d, want %d and %d", len(p.Buffers), Load(p), w["n"], w["load"])
			}
			best := int64(1 << 62)
			for _, m := range Methods() {
				plan, err := Greedy(p, m)
				if err != nil {
					t.Fatal(err)
				}
				if plan.Height != w[m.String()] {
					t.Errorf("%s: height %d, want %d", m, plan.Height, w[m.String()])
				}
				if err := Check(p, plan); err != nil {
					t.Errorf("%s: %v", m, err)
				}
				best = min(best, plan.Height)
			}
			if len(p.Buffers) > 2000 {
				return // ten more passes would take seconds
			}
			plan, by, err := BestGreedy(p)
			if err != nil || plan.Height != best || w[by.String()] != best {
				t.Errorf("best of ten: %s %d (%v), want %d", by, plan.Height, err, best)
			}
		})
	}
}

func BenchmarkGreedy(b *testing.B) {
	for _, name := range []string{"A.1048576", "resnet50", "pangu_2.6B", "S_1"} {
		for _, m := range []Method{{BySize, First}, {BySize, Best}, {ByStart, Best}, {ByLoad, First}} {
			b.Run(name+"/"+m.String(), func(b *testing.B) {
				p := instance(b, name)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Greedy(p, m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
