package fit

import (
	"slices"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
)

// Estimate is what a workload comes to on a device.
type Estimate struct {
	Asked *Trial // as it is
	// Need is Asked where that passes, else the run without a bound on memory:
	// how much it takes when nothing is in the way.
	Need *Trial
	// SmallestLimit is the smallest memory_limit, in whole MiB, that the
	// workload runs with; one MiB less fails. 0: not found.
	SmallestLimit int64
	Smallest      *Trial // under it; nil: not found
	Found         Found

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
	ok = p.smallestLimit(w, e)
	return e, ok
}

// runtimeOf is the driver's context on the card of a device of the workload.
func runtimeOf(w *api.Workload, entry int) int64 {
	if entry < 0 {
		return 0
	}
	for _, list := range [][]device.Preset{device.Presets(), device.TPUs()} {
		if i := slices.IndexFunc(list, func(d device.Preset) bool { return d.Name == w.Devices[entry].Preset }); i >= 0 {
			return list[i].Context.Value
		}
	}
	return 0
}

// smallestLimit searches from what is needed at the peak up to twice that.
func (p *Prober) smallestLimit(w *api.Workload, e *Estimate) bool {
	i := Entry(w, p.Device)
	if i < 0 || kindOf(&w.Devices[i]) != "gpu" || len(w.Devices[i].Logical) > 0 || w.Devices[i].Virtual > 0 {
		return true
	}
	x := w.Clone()
	d := &x.Devices[i]
	d.Growth, d.Fraction, d.Unified = false, 0, false
	const mib = 1 << 20
	least := max(1, int(e.Need.Peak/2/mib))
	most := max(least, int(2*e.Need.Peak/mib))
	if e.Asked.Passed {
		most = min(most, int((e.Asked.Limit+mib-1)/mib))
	}
	n := Smallest(least, most, func(n int) bool {
		d.MemoryLimit = int64(n) * mib
		t, ok := p.Try(x)
		if ok = ok && t.Passed; ok {
			e.Smallest = t // each that passes is smaller than those before
		}
		return ok
	})
	e.SmallestLimit = int64(n) * mib
	return !p.Over()
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
	slices.SortStableFunc(out, func(a, b Part) int {
		switch {
		case a.Bytes > b.Bytes:
			return -1
		case a.Bytes < b.Bytes:
			return 1
		}
		return 0
	})
	return out
}

// Part is a part of a peak.
type Part struct {
	Name  string
	Bytes int64
}
