package fit

import (
	"slices"
	"sort"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
)

// Estimate is what a workload comes to on a device.
type Estimate struct {
	Asked *Trial // as it is
	// Need is Asked where that passes, else the run without a bound on memory:
	// how much it takes when nothing is in the way.
	Need  *Trial
	Least // the smallest limit of the workload as it is written
	// Whole is the smallest limit of a workload whose pool grows if it did not:
	// another workload, often with another answer. Nil where it does not grow,
	// or none was found.
	Whole *Least
	Found Found

	// The interval around the peak, in bytes: Low is what the exact allocator
	// comes to; High adds as much workspace again as the largest that a kernel
	// asked for, for libraries whose choice of algorithm is not known.
	Low, High int64
	// Runtime is what the process takes besides, by the card's preset: the
	// driver's context and libraries.
	Runtime int64
}

// ShortSteps is how many steps an estimate needs: two, for optimizers that make
// their state in the first, and one turn of every list that is taken in turn.
func ShortSteps(w *api.Workload) int {
	n := max(2, len(w.Batch), len(w.Image), len(w.Sequence))
	if w.Steps > 0 && len(w.Keep) == 0 {
		n = min(n, w.Steps)
	}
	if len(w.Keep) > 0 {
		n = max(n, w.Steps) // a leak takes its time
	}
	return n
}

// Estimate runs a workload, shortened to what its memory needs, and searches
// the largest value of a knob and the smallest limit. The answer is false when
// the bounds ended it or it cannot be run.
func (p *Prober) Estimate(w *api.Workload, k Knob, most int) (*Estimate, bool) {
	w = w.Clone()
	w.Steps = ShortSteps(w)
	asked, ok := p.Try(w)
	if !ok {
		return nil, false
	}
	e := &Estimate{Asked: asked, Need: asked}
	if !asked.Passed {
		if n, ok := p.Need(w); ok {
			e.Need = n
		}
	}
	e.Low, e.High = e.Need.Peak, e.Need.Peak+e.Need.Workspace
	e.Runtime = runtimeOf(w, Entry(w, p.Device))
	guess := k.Of(w)
	if guess == 0 {
		guess = k.Default(w)
	}
	if e.Found, ok = p.Most(w, k, guess, most); !ok {
		return e, false
	}
	ok = p.smallestLimits(w, e)
	return e, ok
}

// runtimeOf is the driver's context on the card of a device of the workload.
func runtimeOf(w *api.Workload, entry int) int64 {
	if card := presetOf(w, entry); card != nil {
		return card.Context.Value
	}
	return 0
}

// presetOf is the card of a device of the workload, nil for an unknown one.
func presetOf(w *api.Workload, entry int) *device.Preset {
	if entry < 0 {
		return nil
	}
	for _, list := range [][]device.Preset{device.Presets(), device.TPUs()} {
		if i := slices.IndexFunc(list, func(d device.Preset) bool { return d.Name == w.Devices[entry].Preset }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// Below is why a limit below the peak suffices.
type Below struct {
	Unasked int64   // bytes of the peak that are room in chunks beyond what was asked for
	Enough  bool    // that alone is the difference
	Falls   bool    // kernels fell back to algorithms with less workspace
	Slower  float64 // how many times as long the run under the limit takes
}

// Below says why the smallest limit is below the peak of a workload that fits,
// by comparing the two runs. It is false where it is not, or for no reason that
// shows.
func (e *Estimate) Below() (Below, bool) {
	if !e.Asked.Passed || e.Smallest == nil || e.SmallestLimit >= e.Asked.Peak || e.Asked.Nanos == 0 {
		return Below{}, false
	}
	lack := e.Asked.Peak - e.SmallestLimit
	b := Below{Unasked: e.Asked.Unasked, Enough: e.Asked.Unasked >= lack, Slower: float64(e.Smallest.Nanos) / float64(e.Asked.Nanos)}
	if b.Unasked < lack/10 {
		b.Unasked = 0
	}
	b.Falls = e.Smallest.Workspace < e.Asked.Workspace || b.Slower > 1.001
	return b, b.Enough || b.Falls
}

// Parts are the categories of a trial's peak, the largest first.
func (t *Trial) Parts() (out []Part) {
	for c, n := range t.ByCategory {
		if n > 0 {
			out = append(out, Part{event.Category(c).String(), n})
		}
	}
	if t.ArenaUnused > 0 {
		out = append(out, Part{"unused in the arena", t.ArenaUnused})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

// Part is a part of a peak.
type Part struct {
	Name  string
	Bytes int64
}
