package finding

import (
	"math"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// NotFinite finds numbers that a run reports of its training, such as its
// loss, that ended as no number or beyond all numbers.
func NotFinite(tl *store.Timeline) (out []Finding) {
	for _, s := range tl.SeriesList() {
		if s.Kind != store.MetricSeries || s.Len() == 0 || finite(s.Float(s.Len()-1)) {
			continue
		}
		i := s.Len() - 1
		for i > 0 && !finite(s.Float(i-1)) {
			i--
		}
		name, what := tl.Text(s.Name), word(s.Float(s.Len()-1))
		_, _, step := s.Point(i)
		f := Finding{ID: Diverged, Title: "The " + name + " is " + what, Severity: Serious, Culprit: name}
		since := ""
		if step != event.NoStep {
			f.put("since_step", int64(step)+1, Count)
			since = " since step " + itoa(int64(step)+1) // events count from 0, people from 1
		}
		f.say("The " + name + " is " + what + since + ": what the run trains from there on is worthless.")
		if tl.Settings().Text("check_numerics") != "true" {
			f.say("Run it again with check_numerics=true: that ends the run at the first op whose result is not finite, and names it.")
		}
		out = append(out, f)
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// word is how people write what is no finite number.
func word(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case x > 0:
		return "infinite"
	}
	return "minus infinite"
}
