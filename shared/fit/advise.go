package fit

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/analysis/finding"
)

// Question is a workload that did not do well, and what to ask about it.
type Question struct {
	Workload *api.Workload
	// First is what its findings suggest, tried before the general remedies.
	First []Change
	// Leak: memory grows with every step. What does not stop that is no
	// remedy, so nothing but First and the batch is tried.
	Leak bool
}

// AskAbout makes the question of a workload that runs out of memory from what its
// findings say.
func AskAbout(w *api.Workload, found []finding.Finding) Question {
	q := Question{Workload: w}
	for i := range found {
		if found[i].ID == finding.OutOfMemory {
			q.First, q.Leak = append(q.First, found[i].Try...), found[i].Kind == "leak"
		}
	}
	return q
}

// Answer is what reruns of a workload that ran out of memory came to.
type Answer struct {
	Base *Trial // unchanged
	Need *Trial // without a bound on its memory; nil where that cannot be run
	// Good passed: what the findings suggest first, the rest by the time that
	// a sample takes. Bad did not.
	Good, Bad []*Trial
	// Batch is the largest batch that passes, verified at its neighbour; its
	// Value is 0 when none does.
	Batch Found
	// Postponed: the batch only puts a leak's end off.
	Postponed bool
	Cut       bool // the bounds were reached: more could have been tried
}

// Bounds of the search for pairs.
const (
	pairsOf    = 4 // of the single changes that save most
	pairsFound = 2 // that pass, then it ends
)

// Ask reruns a workload with each remedy by itself, then with the largest batch
// that passes, and, if none of those got it through, with the most promising
// pairs. each, if not nil, is told of every rerun as it ends; false ends the
// search. The answer is false when the unchanged workload could not be rerun.
func (p *Prober) Ask(q Question, each func(*Trial) bool) (*Answer, bool) {
	base, ok := p.Try(q.Workload)
	if !ok {
		return nil, false
	}
	a := &asking{p: p, q: &q, each: each, out: &Answer{Base: base}}
	if base.Passed {
		return a.out, true
	}
	a.out.Need, _ = p.Need(q.Workload)
	a.singles()
	a.batch()
	if len(a.out.Good) == 0 && !q.Leak {
		a.pairs()
	}
	a.out.Cut = a.ended || p.Over()
	sort.SliceStable(a.out.Good, func(i, j int) bool {
		x, y := a.out.Good[i], a.out.Good[j]
		if m, n := a.rank(x), a.rank(y); m != n || m == 0 {
			return m < n
		}
		return x.NanosPerSample() < y.NanosPerSample()
	})
	return a.out, true
}

type asking struct {
	p     *Prober
	q     *Question
	each  func(*Trial) bool
	out   *Answer
	ended bool
}

// rank is 0 for what the findings suggest, 1 for the rest.
func (a *asking) rank(t *Trial) int {
	if len(t.Changes) == 1 && slices.Contains(a.q.First, t.Changes[0]) {
		return 0
	}
	return 1
}

func (a *asking) try(changes ...Change) *Trial {
	if a.ended {
		return nil
	}
	t, ok := a.p.Try(a.q.Workload, a.fair(changes)...)
	if !ok {
		return nil
	}
	if t.Passed {
		a.out.Good = append(a.out.Good, t)
	} else {
		a.out.Bad = append(a.out.Bad, t)
	}
	if a.each != nil && !a.each(t) {
		a.ended = true
	}
	return t
}

// fair adds to a change of the allocator the limit that the device had without
// it. An allocator that is not TensorFlow's gets all that is free where nothing
// limits it, also what TensorFlow leaves to libraries: that would help by more
// memory, not by better use of it.
func (a *asking) fair(changes []Change) []Change {
	for _, c := range changes {
		rest, is := strings.CutSuffix(c.Field, ".allocator")
		entry, err := strconv.Atoi(strings.TrimPrefix(rest, "devices."))
		if !is || err != nil || c.Value == api.DefaultAllocator || c.Value == "async" || entry >= len(a.q.Workload.Devices) {
			continue
		}
		d := &a.q.Workload.Devices[entry]
		if d.MemoryLimit > 0 || len(d.Logical) > 0 || d.Virtual > 1 || d.Fraction > 0 || a.out.Base.Limit <= 0 ||
			slices.ContainsFunc(changes, func(c Change) bool { return c.Field == at(entry, "memory_limit") }) {
			continue
		}
		changes = slices.Clone(changes)
		if d.Growth { // excludes a limit, and means nothing to this allocator
			changes = append(changes, Change{Field: at(entry, "growth"), Value: "false"})
		}
		return append(changes, Change{Field: at(entry, "memory_limit"), Value: strconv.FormatInt(a.out.Base.Limit, 10)})
	}
	return changes
}

func (a *asking) singles() {
	list := slices.Clone(a.q.First)
	if !a.q.Leak {
		list = append(list, Remedies(a.q.Workload, Entry(a.q.Workload, a.p.Device))...)
	}
	seen := map[Change]bool{}
	parts := false // fewer parts passed already, and more only cost time
	for _, c := range list {
		if seen[c] || parts && c.Field == "train.microbatches" {
			continue
		}
		seen[c] = true
		if t := a.try(c); t != nil && t.Passed && c.Field == "train.microbatches" {
			parts = true
		}
	}
}

func (a *asking) batch() {
	now := Batch.Of(a.q.Workload)
	if a.ended || now < 2 {
		return
	}
	found, ok := a.p.Most(a.q.Workload, Batch, now/2, now-1)
	if !ok || found.Value == 0 || found.At == nil {
		return
	}
	a.out.Batch, a.out.Postponed = found, a.q.Leak
	a.out.Good = append(a.out.Good, found.At)
	if a.each != nil && !a.each(found.At) {
		a.ended = true
	}
}

// pairs tries two changes at once, of those that alone would save most: savings
// do not add up, so each pair is run.
func (a *asking) pairs() {
	type saving struct {
		c    Change
		need int64
	}
	var list []saving
	for _, t := range a.out.Bad {
		if n, ok := a.p.Need(a.q.Workload, t.Changes...); ok {
			list = append(list, saving{t.Changes[0], n.Peak})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].need < list[j].need })
	// Two values of one field are not two changes.
	var top []Change
	for _, s := range list {
		if len(top) < pairsOf && !slices.ContainsFunc(top, func(c Change) bool { return c.Field == s.c.Field }) {
			top = append(top, s.c)
		}
	}
	passed := 0
	for sum := 1; sum <= 2*len(top)-3; sum++ { // the best two first
		for i := 0; i < sum-i; i++ {
			if j := sum - i; j < len(top) && passed < pairsFound {
				if t := a.try(top[i], top[j]); t != nil && t.Passed {
					passed++
				}
			}
		}
	}
}

// Compare reruns a workload that passes with each of some changes, and then
// with those together that helped by themselves, or with all if none did. It
// is how the remedy of a finding about time or waste is verified. The answer is
// false when the unchanged workload could not be rerun, and the list empty when
// it does not pass.
func (p *Prober) Compare(w *api.Workload, changes []Change, helps func(base, t *Trial) bool) (base *Trial, out []*Trial, ok bool) {
	base, ok = p.Try(w)
	if !ok || !base.Passed {
		return base, nil, ok
	}
	var good []Change
	for _, c := range changes {
		t, ran := p.Try(w, c)
		if !ran || !t.Passed {
			continue
		}
		out = append(out, t)
		if helps(base, t) {
			good = append(good, c)
		}
	}
	if len(good) == 0 {
		good = changes
	}
	if together := oneEach(good); len(together) > 1 {
		if t, ran := p.Try(w, together...); ran && t.Passed {
			out = append(out, t)
		}
	}
	return base, out, true
}

// oneEach keeps the last value of each field: the strongest is suggested last.
func oneEach(list []Change) (out []Change) {
	for _, c := range list {
		if i := slices.IndexFunc(out, func(x Change) bool { return x.Field == c.Field }); i >= 0 {
			out[i] = c
			continue
		}
		out = append(out, c)
	}
	return out
}

// Helps says whether a rerun did what a finding is about: less time where it
// costs time, less memory where it costs that, by at least a hundredth.
func Helps(id finding.ID, base, t *Trial) bool {
	switch id {
	case finding.InputBound, finding.Copies:
		return t.Nanos < base.Nanos-base.Nanos/100
	default:
		return t.Peak < base.Peak-base.Peak/100
	}
}
