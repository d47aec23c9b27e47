package fit

import (
	"math"
	"strconv"

	"tideline/protocol/api"
)

// Least is the smallest limit that a workload runs with.
type Least struct {
	SmallestLimit int64    // bytes, whole MiB; one MiB less fails. 0: not found
	Smallest      *Trial   // under it; nil: not found
	Set           []Change // what sets it
}

const mib = 1 << 20

// smallestLimits searches the limit of the workload as it is written and, where
// its pool grows, of the one that takes its limit whole: growth leaves regions
// that cannot join, so that the two need not be the same.
func (p *Prober) smallestLimits(w *api.Workload, e *Estimate) bool {
	i := Entry(w, p.Device)
	if i < 0 || kindOf(&w.Devices[i]) != "gpu" || len(w.Devices[i].Logical) > 0 || w.Devices[i].Virtual > 0 {
		return true
	}
	d := &w.Devices[i]
	whole := func(n int) []Change {
		return append([]Change{{Field: at(i, "memory_limit"), Value: strconv.FormatInt(int64(n)*mib, 10)}}, excluded(w)...)
	}
	if !grows(d) {
		e.Least = p.least(w, e, whole)
		return !p.Over()
	}
	// A memory_limit excludes growth, a fraction does not. It is of the whole
	// card, which tells how much that is.
	total := int64(0)
	if card := presetOf(w, i); card != nil {
		total = card.Total.Value
	}
	part := func(n int) []Change { return fractionOf(w, int64(n)*mib, total) }
	if e.Least = p.least(w, e, part); e.Smallest == nil && d.Held > 0 {
		// What others hold keeps the pool below any limit that would do.
		e.Least = p.least(w, e, func(n int) []Change {
			if list := part(n); list != nil {
				return append(list, Change{Field: at(i, "held"), Value: "0"})
			}
			return nil
		})
	}
	if l := p.least(w, e, whole); l.Smallest != nil {
		e.Whole = &l
	}
	return !p.Over()
}

// grows says whether the pool of a device grows as needed: other allocators
// than TensorFlow's own have no such setting.
func grows(d *api.Device) bool {
	return d.Growth && !d.Unified && (d.Allocator == "" || d.Allocator == api.DefaultAllocator)
}

// excluded takes away what excludes a memory_limit. A process has growth and
// fraction once, for all its cards.
func excluded(w *api.Workload) (list []Change) {
	for i := range w.Devices {
		d := &w.Devices[i]
		for _, x := range []struct {
			set          bool
			field, value string
		}{{d.Growth, "growth", "false"}, {d.Fraction != 0, "fraction", "0"}, {d.Unified, "unified", "false"}} {
			if x.set {
				list = append(list, Change{Field: at(i, x.field), Value: x.value})
			}
		}
	}
	return list
}

// fractionOf limits the cards to exactly so many bytes of this total, nil where
// it is less.
func fractionOf(w *api.Workload, limit, total int64) (list []Change) {
	if total <= 0 || limit > total {
		return nil
	}
	f := float64(limit) / float64(total)
	if int64(f*float64(total)) < limit { // the product is cut to whole bytes
		f = math.Nextafter(f, 2)
	}
	for i := range w.Devices {
		if kindOf(&w.Devices[i]) == "gpu" {
			list = append(list, Change{Field: at(i, "fraction"), Value: strconv.FormatFloat(f, 'g', -1, 64)})
		}
	}
	return list
}

// least searches from half of what is needed at the peak up to twice that.
func (p *Prober) least(w *api.Workload, e *Estimate, set func(mib int) []Change) (l Least) {
	least := max(1, int(e.Need.Peak/2/mib))
	most := max(least, int(2*e.Need.Peak/mib))
	if e.Asked.Passed {
		most = min(most, int((e.Asked.Limit+mib-1)/mib))
	}
	n := Smallest(least, most, func(n int) bool {
		changes := set(n)
		if changes == nil {
			return false
		}
		t, ok := p.Try(w, changes...)
		if ok = ok && t.Passed; ok {
			l.Smallest, l.Set = t, changes // each that passes is smaller than those before
		}
		return ok
	})
	l.SmallestLimit = int64(n) * mib
	return l
}
