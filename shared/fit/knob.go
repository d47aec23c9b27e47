package fit

import (
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/zoo"
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

// steps are the values that the knob may have: least, least+unit, … up to most.
type steps struct{ least, unit, most int }

func (k Knob) steps(w *api.Workload, most int) steps {
	s := steps{1, 1, most}
	if k == Batch {
		if w.Train != nil && w.Train.Microbatches > 1 {
			s.least, s.unit = w.Train.Microbatches, w.Train.Microbatches
		}
		return s
	}
	m, err := zoo.Find(w.Model)
	if err != nil {
		return s
	}
	r := m.Image
	if k == Sequence {
		r = m.Sequence
	}
	s.unit = max(1, r.Multiple)
	s.least = (max(1, r.Min) + s.unit - 1) / s.unit * s.unit
	s.most = min(most, r.Max)
	return s
}

// count is how many values there are, and place the number of one, from 1.
func (s steps) count() int      { return max(0, (s.most-s.least)/s.unit+1) }
func (s steps) place(n int) int { return max(1, (n-s.least)/s.unit+1) }
func (s steps) value(i int) int { return s.least + (i-1)*s.unit }

// Has says whether the workload's model has this knob.
func (k Knob) Has(w *api.Workload) bool { return k.steps(w, api.MaxBatch).count() > 0 }

// Default is what the model takes where the knob is not set; 1 for the batch.
func (k Knob) Default(w *api.Workload) int {
	m, err := zoo.Find(w.Model)
	switch {
	case k == Batch || err != nil:
		return 1
	case k == Image:
		return max(1, m.Image.Default)
	default:
		return max(1, m.Sequence.Default)
	}
}

// Found is the largest value of a knob that fits.
type Found struct {
	Knob  Knob
	Value int    // 0: none does
	At    *Trial // the run with it
	Next  *Trial // the one with the next value, which does not pass; nil at the end of the range
}

// Most finds the largest value of a knob up to a bound with which the workload
// passes, verified there and at the next value that the model takes. False when
// the bounds of the prober were reached on the way, or the knob has no values.
func (p *Prober) Most(w *api.Workload, k Knob, guess, most int, with ...Change) (Found, bool) {
	s := k.steps(w, most)
	if s.count() == 0 {
		return Found{Knob: k}, false
	}
	ran := map[int]*Trial{}
	over := false
	i := Largest(s.place(guess), s.count(), func(i int) bool {
		n := s.value(i)
		changes := append(slices.Clone(with), k.At(w, n))
		t, ok := p.Try(w, changes...)
		if !ok && !p.Over() && n == k.Of(w) && len(with) == 0 {
			t, ok = p.Try(w) // the value it has
		}
		if !ok {
			over = over || p.Over()
			return false
		}
		ran[i] = t
		return t.Passed
	})
	f := Found{Knob: k, At: ran[i], Next: ran[i+1]}
	if i > 0 {
		f.Value = s.value(i)
	}
	return f, !over
}
