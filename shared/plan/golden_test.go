package plan

import (
	"encoding/json"
	"testing"
)

// smallInstance is one of small-optima.json.
type smallInstance struct {
	Buffers [][3]int64
	Load    int64
	Optimum int64
	Greedy  map[string]int64
}

// TestSmallOptimaAreProven: all 70, those whose optimum is load + 1 included.
func TestSmallOptimaAreProven(t *testing.T) {
	var file struct{ Instances []smallInstance }
	if err := json.Unmarshal(goldenPlanning(t, "small-optima.json"), &file); err != nil {
		t.Fatal(err)
	}
	above := 0
	for i, in := range file.Instances {
		p := &Problem{}
		for _, b := range in.Buffers {
			p.Buffers = append(p.Buffers, Buffer{Lower: b[0], Upper: b[1], Size: b[2]})
		}
		if in.Optimum > in.Load {
			above++
		}
		r, err := Minimize(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Height != in.Optimum || !r.Proven() || r.Load != in.Load {
			t.Errorf("%d: height %d proven %v load %d, want %d proven, load %d", i, r.Height, r.Proven(), r.Load, in.Optimum, in.Load)
		}
		if err := Check(p, r.Plan); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		for name, want := range in.Greedy {
			m, err := ParseMethod(name)
			if err != nil {
				t.Fatal(err)
			}
			if plan, err := Greedy(p, m); err != nil || plan.Height != want {
				t.Errorf("%d %s: height %d (%v), want %d", i, name, plan.Height, err, want)
			}
		}
	}
	if len(file.Instances) != 70 || above != 10 {
		t.Errorf("%d instances, %d of them above the load: want 70 and 10", len(file.Instances), above)
	}
}
