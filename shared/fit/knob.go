package fit

import (
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/api"
)

// Knob is a number of the workload that its memory grows with.
type Knob string

// The knobs that can be searched.
const (
	Batch    Knob = "batch"
	Image    Knob = "image"
	Sequence Knob = "sequence"
)

func (k Knob) list(w *api.Workload) []int {
	switch k {
	case Image:
		return w.Image
	case Sequence:
		return w.Sequence
	default:
		return w.Batch
	}
}

// Of is the knob's present value: the largest where several are taken in turn;
// 0 where the model's own is used.
func (k Knob) Of(w *api.Workload) int {
	if list := k.list(w); len(list) > 0 {
		return slices.Max(list)
	}
	return 0
}

// At is the change that makes n the knob's largest value. Values that are taken
// in turn keep their ratios.
func (k Knob) At(w *api.Workload, n int) Change {
	list := k.list(w)
	if len(list) < 2 {
		return Change{Field: string(k), Value: strconv.Itoa(n)}
	}
	top := slices.Max(list)
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = strconv.Itoa(max(1, int(int64(v)*int64(n)/int64(top))))
	}
	return Change{Field: string(k), Value: "[" + strings.Join(words, ",") + "]"}
}

// unit is what values of the knob must be a multiple of.
func (k Knob) unit(w *api.Workload) int {
	if k == Batch && w.Train != nil {
		return max(1, w.Train.Microbatches)
	}
	return 1
}

// Found is the largest value of a knob that fits.
type Found struct {
	Knob  Knob
	Value int    // 0: none does
	At    *Trial // the run with it
	Next  *Trial // the one with the next value, which does not pass; nil at the end of the range
}

// Most finds the largest value of a knob up to a bound with which the workload
// passes, verified there and at the next value. Values that make no workload
// count as not fitting. False when the bounds were reached on the way.
func (p *Prober) Most(w *api.Workload, k Knob, guess, most int, with ...Change) (Found, bool) {
	unit := k.unit(w)
	ran := map[int]*Trial{}
	over := false
	n := Largest(max(1, guess/unit), max(1, most/unit), func(n int) bool {
		changes := append(slices.Clone(with), k.At(w, n*unit))
		t, ok := p.Try(w, changes...)
		if !ok && !p.Over() && n*unit == k.Of(w) && len(with) == 0 {
			t, ok = p.Try(w) // the value it has
		}
		if !ok {
			over = over || p.Over()
			return false
		}
		ran[n] = t
		return t.Passed
	})
	return Found{Knob: k, Value: n * unit, At: ran[n], Next: ran[n+1]}, !over
}
