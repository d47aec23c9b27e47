package whatif

import (
	"slices"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/shared/pipeline"
)

const ms = 1_000_000

// A pipeline that is too slow: the stage is named, each change is tried, and
// what it brings is what the rules of throughput say.
func TestChangesAgainstASlowStageAreVerified(t *testing.T) {
	const batch, compute = 10, 4 * ms
	base := pipeline.Settings{Elements: 1000, Batch: []int{batch}, ElementBytes: 1000}
	for _, c := range []struct {
		name  string
		set   func(*pipeline.Settings)
		stage string
		step  int64            // before, ms
		after map[string]int64 // ms by the first of what is set
	}{
		{
			"slow map", func(s *pipeline.Settings) { s.Map.Cost = ms }, pipeline.StageMap, 14,
			// Eight results wait when a batch of ten is asked for: two calls more.
			map[string]int64{"input.map.parallel=8": 5, "input.prefetch=auto": 10, "input.cache=true": 14},
		},
		{
			"slow map behind prefetch", func(s *pipeline.Settings) { s.Map.Cost, s.Prefetch = ms, 2 }, pipeline.StageMap, 10,
			map[string]int64{"input.map.parallel=8": 4, "input.cache=true": 10},
		},
		{
			"slow source", func(s *pipeline.Settings) { s.FetchCost, s.Prefetch = ms, 2 }, pipeline.StageSource, 10,
			map[string]int64{"input.interleave.cycle=8": 4, "input.cache=true": 10},
		},
	} {
		s := base
		c.set(&s)
		p, err := Try(s, compute, 60)
		if err != nil || p.Stage != c.stage || p.Step != c.step*ms {
			t.Errorf("%s: %+v, %v; want %d ms and %s", c.name, p, err, c.step, c.stage)
		}
		var paths []string
		for _, x := range Changes(s, p.Stage) {
			paths = append(paths, x.Set[0])
			w := api.Workload{Model: "mlp", Batch: []int{batch}}
			for _, set := range x.Set {
				path, value, _ := strings.Cut(set, "=")
				if err := w.Set(path, value); err != nil {
					t.Errorf("a workload does not take %s: %v", set, err)
				}
			}
			got, err := Try(x.Settings, compute, 60)
			want, ok := c.after[x.Set[0]]
			if err != nil || !ok || (got.Step+ms/2)/ms != want {
				t.Errorf("%s, %s: %d us a step, %v; want %d ms", c.name, x.Set[0], got.Step/1000, err, want)
			}
		}
		if len(paths) != len(c.after) {
			t.Errorf("%s: changes %v", c.name, paths)
		}
	}
}

func TestACacheHelpsFromTheSecondEpochOn(t *testing.T) {
	s := pipeline.Settings{Elements: 100, Batch: []int{10}, Map: pipeline.Map{Cost: ms}, ElementBytes: 1000}
	cached := s
	cached.Cache = true
	a, _ := Try(s, 2*ms, 101)
	b, _ := Try(cached, 2*ms, 101)
	if a.Step != 12*ms || b.Step >= 4*ms || b.Held != a.Held+100*1000 {
		t.Errorf("%+v, cached %+v", a, b)
	}
}

func TestNothingToChangeWhereAllIsOn(t *testing.T) {
	s := pipeline.Settings{
		Elements: 10, Batch: []int{1}, Map: pipeline.Map{Parallel: pipeline.Auto}, Prefetch: pipeline.Auto, Cache: true,
		Interleave: pipeline.Interleave{Cycle: 8, Parallel: 8},
	}
	for _, stage := range []string{pipeline.StageMap, pipeline.StageInterleave, pipeline.StageBatch} {
		if got := Changes(s, stage); len(got) > 0 {
			t.Errorf("%s: %+v", stage, got)
		}
	}
	if _, err := Try(pipeline.Settings{}, 1, 1); err == nil {
		t.Error("tried settings that cannot be")
	}
	short, err := Try(pipeline.Settings{Elements: 3, Epochs: 1, Batch: []int{1}}, 5, 99)
	if err != nil || short.Steps != 3 || short.Step != 5 || short.Stage != "" || !slices.Equal([]int64{short.First, short.Stalled}, []int64{0, 0}) {
		t.Errorf("%+v, %v", short, err)
	}
}
