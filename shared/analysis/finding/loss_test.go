package finding_test

import (
	"math"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/store"
)

// told is a timeline of losses alone, one a step.
func told(losses ...float64) *store.Timeline {
	strs := new(event.Strings)
	tl := store.New(strs)
	name := strs.ID("loss")
	for i, x := range losses {
		tl.Append([]event.Event{{Kind: event.Metric, Time: int64(i), Op: name, Step: int32(i), Size: int64(math.Float64bits(x))}})
	}
	return tl
}

func TestALossThatIsNoNumberIsFound(t *testing.T) {
	for _, c := range []struct {
		losses []float64
		title  string
		since  int64
	}{
		{[]float64{2.3, 1e30, math.NaN(), math.NaN()}, "The loss is NaN", 3},
		{[]float64{2.3, math.Inf(1)}, "The loss is infinite", 2},
		{[]float64{2.3, math.NaN(), 2.1}, "", 0}, // it came back
		{[]float64{2.3, 2.2}, "", 0},
	} {
		f := find(finding.Of(told(c.losses...)), finding.Diverged)
		if c.title == "" {
			if f != nil {
				t.Errorf("%v: %s", c.losses, f.Title)
			}
			continue
		}
		if f == nil || f.Title != c.title || f.Number("since_step") != c.since || !strings.Contains(strings.Join(f.Text, " "), "check_numerics=true") {
			t.Errorf("%v: %+v", c.losses, f)
		}
	}
}
