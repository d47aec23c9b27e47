package foreign

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/steplog"
)

// line is a least-squares line through a series.
type line struct {
	slope, at0 float64
	r          float64 // correlation, 0 where nothing varies
}

func fit(x, y []float64) line {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	var sxx, sxy, syy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
		syy += (y[i] - my) * (y[i] - my)
	}
	l := line{at0: my}
	if sxx > 0 {
		l.slope = sxy / sxx
		l.at0 = my - l.slope*mx
	}
	if sxx > 0 && syy > 0 {
		l.r = sxy / math.Sqrt(sxx*syy)
	}
	return l
}

// grows says whether a series rises over its whole length: as a line does, and
// still in its second half, so that a warm-up that levels off is no growth.
func grows(s *steplog.Series) bool {
	n := len(s.Values)
	l := fit(s.Steps, s.Values)
	if n < 3 || l.slope <= 0 || s.Values[n-1] <= s.Values[0] {
		return false
	}
	rise := l.slope * (s.Steps[n-1] - s.Steps[0])
	if l.r < 0.8 || rise < 0.01*math.Abs(s.Values[0]) && !steady(s.Values, l.r) {
		return false
	}
	half := n / 2
	if n < 6 {
		half = 0
	}
	late := fit(s.Steps[half:], s.Values[half:])
	return late.slope > 0.25*l.slope
}

// steady says whether every sample is above the one before, as on a straight
// line: no noise does that, however little it is beside the whole.
func steady(v []float64, r float64) bool {
	for i := 1; i < len(v); i++ {
		if v[i] <= v[i-1] {
			return false
		}
	}
	return len(v) >= 4 && r > 0.99
}

func monotonic(v []float64) bool {
	for i := 1; i < len(v); i++ {
		if v[i] < v[i-1] {
			return false
		}
	}
	return true
}

// decimals keeps what the printed figures support.
func decimals(x float64) float64 {
	scale := 1e5
	if math.Abs(x) >= 1 {
		scale = 1e4
	}
	return math.Round(x*scale) / scale
}

func number(x float64) reading.Value {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return reading.Int(int64(x))
	}
	return reading.Float(x)
}

// unitOf names the unit for people, and for the facts' names.
func unitOf(s *steplog.Series, l *steplog.Log) (words, key string) {
	u := s.Unit
	if u == "" && s.Role != steplog.Plain {
		for _, o := range l.Series { // the line beside it may tell
			if o.Unit != "" && o.Unit != "bytes" {
				u = o.Unit
			}
		}
	}
	if u == "" && s.Role == steplog.Plain && s.Values[len(s.Values)-1] >= 1<<24 {
		u = "bytes"
	}
	if u == "" && s.Role == steplog.Plain && strings.Contains(s.Label, "mem") {
		u = "MiB" // as the loggers that print "max mem" do
	}
	if u == "" {
		return "as printed", "unit"
	}
	return u + " as printed", strings.ToLower(u)
}

// Steps judges figures that a loop printed again and again. It is nil when
// there are none.
func Steps(l *steplog.Log) *reading.Reading {
	if len(l.Series) == 0 {
		return nil
	}
	main := mainSeries(l)
	r := &reading.Reading{Kind: "step-memory-log", Line: main.Line, Name: "Memory over steps"}
	f := &r.Facts
	unit, key := unitOf(main, l)
	n := len(main.Values)
	m := fit(main.Steps, main.Values)
	f.Int("samples", int64(n))
	f.Text("unit", unit)
	f.Text("label", main.Label)
	f.Set("first", number(main.Values[0]))
	f.Set("last", number(main.Values[n-1]))
	f.Float("slope_per_step", decimals(m.slope))
	f.Float("slope_"+key+"_per_step", decimals(m.slope))
	f.Int("extrapolated_at_step_0_"+key, int64(math.Round(m.at0)))
	if l.Total > 0 {
		f.Int(fmt.Sprintf("extrapolated_at_step_%d_%s", l.Total, key), int64(math.Round(m.at0+m.slope*float64(l.Total))))
	}
	f.Bool("monotonic", monotonic(main.Values))
	f.Bool("steps_counted", main.Counted)
	for _, s := range l.Series {
		var name string
		switch s.Role {
		case steplog.DeviceCurrent:
			name = "device_current"
		case steplog.DevicePeak:
			name = "device_peak"
		case steplog.HostAvailable:
			name = "host_available"
		default:
			continue
		}
		if _, ok := f.Get(name + "_first"); ok {
			continue // another device: its series is in the list below
		}
		f.Set(name+"_first", number(s.Values[0]))
		f.Set(name+"_last", number(s.Values[len(s.Values)-1]))
		f.Float(name+"_slope_per_step", decimals(fit(s.Steps, s.Values).slope))
	}
	seriesList(f, l)
	stepsJudge(r, l, main, m, key)
	return r
}

func host(s *steplog.Series) bool {
	return s.Role == steplog.HostAvailable || s.Role == steplog.HostUsed
}

// mainSeries is the one that the verdict is about: what the device holds.
func mainSeries(l *steplog.Log) *steplog.Series {
	best := l.Series[0]
	for _, s := range l.Series {
		if s.Role == steplog.DeviceCurrent {
			return s
		}
		if host(best) && !host(s) || s.Role == best.Role && len(s.Values) > len(best.Values) {
			best = s
		}
	}
	return best
}

func seriesList(f *reading.Facts, l *steplog.Log) {
	list := reading.List()
	for _, s := range l.Series {
		var o reading.Facts
		unit, _ := unitOf(s, l)
		o.Text("label", s.Label)
		o.Text("unit", unit)
		o.Int("samples", int64(len(s.Values)))
		o.Set("first", number(s.Values[0]))
		o.Set("last", number(s.Values[len(s.Values)-1]))
		o.Float("slope_per_step", decimals(fit(s.Steps, s.Values).slope))
		o.Bool("grows", grows(s))
		list.List = append(list.List, reading.Object(o))
	}
	f.Set("series", list)
}

// amount is a figure in the unit that it was printed in, for people. Programs
// that print GB mean either of two units: such figures stay as they are.
func amount(v float64, key string) string {
	if key == "gb" || key == "mb" || key == "kb" {
		return strings.Replace(strconv.FormatFloat(decimals(v), 'f', -1, 64), "-", "−", 1) + " " + strings.ToUpper(key)
	}
	unit, ok := map[string]float64{
		"bytes": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
	}[key]
	switch {
	case !ok:
		return fmt.Sprintf("%g (no unit is given)", decimals(v))
	case v < 0:
		return "−" + event.FormatBytes(int64(-v*unit+0.5))
	}
	return event.FormatBytes(int64(v*unit + 0.5))
}

func stepsJudge(r *reading.Reading, l *steplog.Log, s *steplog.Series, m line, key string) {
	n := len(s.Values)
	r.Row("first", amount(s.Values[0], key))
	r.Row("last", amount(s.Values[n-1], key))
	r.Row("slope a step", amount(m.slope, key))
	growing := grows(s)
	if s.Role == steplog.HostAvailable {
		neg := *s
		neg.Values = make([]float64, n)
		for i, v := range s.Values {
			neg.Values[i] = -v
		}
		growing = grows(&neg)
	}
	if !growing {
		r.Verdict = "no_growth"
		r.Why = fmt.Sprintf("Over %d samples the figure does not rise beyond its warm-up.", n)
		return
	}
	r.Verdict = "leak_growth_per_step"
	r.Why = fmt.Sprintf("The figure rises by %s a step over %d samples, so about that much is kept in each step.", amount(m.slope, key), n)
	if l.Total > 0 {
		r.Why += fmt.Sprintf(" At step %d it would be about %s.", l.Total, amount(m.at0+m.slope*float64(l.Total), key))
	}
	for _, o := range l.Series {
		if o.Role == steplog.HostAvailable && s.Role != steplog.HostAvailable {
			if host := -fit(o.Steps, o.Values).slope; host > m.slope && host > 0 {
				r.Why += fmt.Sprintf(" The host loses %s a step, more than the device.", amount(host, key))
				r.Flags = append(r.Flags, "host_leak")
			}
		}
	}
	r.Next = []string{"Look for what keeps the results of each step: a list that is appended to, losses kept with their graph, a function traced anew. Moving kept results to the host makes the line flat."}
	if !s.Counted {
		r.Open = append(r.Open, "The text does not number the steps; the samples were counted instead.")
	}
}
