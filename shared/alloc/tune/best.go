package tune

import (
	"slices"
	"sort"
	"strings"

	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// Outcome is one setting and what came of it.
type Outcome struct {
	Settings []kinds.Setting // as they are written for the limit of Least
	Least    Least
	// At is the replay under Answer.Terms.
	At contest.Result
}

// Scope says how much of the domain a search went through.
type Scope uint8

// The scopes.
const (
	// Cut: the bounds ended the search before any of the others.
	Cut Scope = iota
	// Around: no change of one option, or of two, is better.
	Around
	// All: every combination of the values was tried.
	All
)

// String says it for people.
func (s Scope) String() string {
	switch s {
	case All:
		return "every combination of the values was tried"
	case Around:
		return "no change of one option or of two is better"
	default:
		return "the search was cut short"
	}
}

// Answer is the best setting that was found, beside the default.
type Answer struct {
	Default, Best Outcome
	// Terms is the limit under which peaks and driver calls are compared: the
	// one asked for, or what the default needs, or where neither is known twice
	// the bytes wanted at once.
	Terms int64

	Axes         []Axis
	LeftOut      []LeftOut
	Combinations int64 // of all values
	Tried        int   // settings, the default among them
	Impossible   int   // settings that the allocator refuses
	Scope        Scope
	Replays      int
}

// Improved reports whether something is better than the default.
func (a *Answer) Improved() bool { return len(a.Best.Settings) > 0 }

// allOf is up to how many combinations all are tried.
const allOf = 1500

// Best finds the best setting of a kind for a trace.
func Best(t *contest.Trace, k *kinds.Kind, o Options) *Answer {
	s := newSearcher(t, o)
	b := &search{searcher: s, kind: k, tried: map[string]bool{}}
	a := &b.answer
	a.Axes, a.LeftOut = Axes(t, k, o.Release)
	a.Combinations = 1
	for _, x := range a.Axes {
		a.Combinations = min(1<<40, a.Combinations*int64(len(x.Values)+1))
	}
	b.start()
	if !s.over {
		switch {
		case a.Combinations <= allOf && a.Combinations*int64(t.Len()) < s.o.Calls:
			if b.all() {
				a.Scope = All
			}
		case b.around():
			a.Scope = Around
		}
	}
	b.finish()
	return a
}

// search is a search for the best setting under way. A choice has, for each
// axis, 0 for the default or the number of a value from 1.
type search struct {
	*searcher
	kind   *kinds.Kind
	answer Answer
	best   candidate
	choice []int
	tried  map[string]bool
	common int64          // the limit under which all settings are compared
	bestAt contest.Result // of the best under it
}

func (b *search) candidate(choice []int) candidate {
	c := candidate{kind: b.kind}
	for i, v := range choice {
		if v > 0 {
			c.settings = append(c.settings, kinds.Setting{Name: b.answer.Axes[i].Option, Value: b.answer.Axes[i].Values[v-1]})
		}
	}
	return c
}

// start measures the default, and settles the terms.
func (b *search) start() {
	a := &b.answer
	b.choice = make([]int, len(a.Axes))
	b.best = candidate{kind: b.kind}
	b.tried[key(b.choice)] = true
	a.Tried = 1
	a.Default.Least = b.least(b.best, 0)
	switch {
	case b.o.Limit > 0:
		a.Terms = b.o.Limit
	case b.t.Limit > 0:
		a.Terms = b.t.Limit
	default:
		a.Terms = max(2*b.t.Floor, 1<<20)
	}
	a.Default.At, _ = b.run(b.best, a.Terms, true)
	b.common, b.bestAt = a.Terms, a.Default.At
	if n := a.Default.Least.Limit; n > a.Terms {
		b.common = n
		b.bestAt, _ = b.run(b.best, n, true)
	}
	a.Best = a.Default
}

// finish writes the best setting for its limit.
func (b *search) finish() {
	a := &b.answer
	a.Best.Settings = b.best.at(a.Best.Least.Limit)
	a.Replays = b.replays
	if b.over {
		a.Scope = Cut
	}
}

// all tries every combination of the values from the axis on; with fewer
// changes first, so that ties go to the plainest.
func (b *search) all() bool {
	choice := make([]int, len(b.answer.Axes))
	for changes := 1; changes <= len(choice); changes++ {
		if !b.combine(choice, 0, changes) {
			return false
		}
	}
	return true
}

func (b *search) combine(choice []int, from, changes int) bool {
	if changes == 0 {
		return b.try(choice)
	}
	for i := from; i+changes <= len(choice); i++ {
		for v := 1; v <= len(b.answer.Axes[i].Values); v++ {
			choice[i] = v
			if !b.combine(choice, i+1, changes-1) {
				return false
			}
		}
		choice[i] = 0
	}
	return true
}

// around goes from the best to what differs in one option until nothing there
// is better, then to what differs in two, and so on until nothing is.
func (b *search) around() bool {
	if !b.singles() {
		return false
	}
	for {
		was := slices.Clone(b.choice)
		if !b.vary(1) {
			return false
		}
		if !slices.Equal(was, b.choice) {
			continue
		}
		if !b.vary(2) {
			return false
		}
		if slices.Equal(was, b.choice) {
			return true
		}
	}
}

// singles tries every change of one option of the default, those first that
// reserve least under the common limit: a good one early spares the others
// a search of their own.
func (b *search) singles() bool {
	type single struct {
		choice []int
		at     contest.Result
	}
	var list []single
	for i := range b.answer.Axes {
		for v := range b.answer.Axes[i].Values {
			choice := make([]int, len(b.answer.Axes))
			choice[i] = v + 1
			at, ok := b.run(b.candidate(choice), b.common, true)
			if !ok && at.Err == nil {
				return false
			}
			list = append(list, single{choice, at})
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return less(&list[i].at, &list[j].at) })
	for _, x := range list {
		if !b.try(x.choice) {
			return false
		}
	}
	return true
}

// vary tries every change of so many options of what is best now.
func (b *search) vary(options int) bool {
	return b.varied(slices.Clone(b.choice), 0, options)
}

func (b *search) varied(choice []int, from, options int) bool {
	if options == 0 {
		return b.try(choice)
	}
	for i := from; i < len(choice); i++ {
		was := choice[i]
		for v := 0; v <= len(b.answer.Axes[i].Values); v++ {
			if v == was {
				continue
			}
			choice[i] = v
			if !b.varied(choice, i+1, options-1) {
				return false
			}
		}
		choice[i] = was
	}
	return true
}

func key(choice []int) string {
	var k strings.Builder
	for _, v := range choice {
		k.WriteByte(byte(v))
	}
	return k.String()
}

// try replaces the best by a choice that is better. The answer is false when the
// search is over.
func (b *search) try(choice []int) bool {
	k := key(choice)
	if b.tried[k] {
		return !b.stop()
	}
	b.tried[k] = true
	a := &b.answer
	c := b.candidate(choice)
	a.Tried++
	at, ok := b.run(c, b.common, true)
	if at.Err != nil {
		a.Impossible++
		return !b.stop()
	}
	if !ok {
		return false
	}
	if a.Best.Least.Limit > 0 && !at.Served() {
		return true // it fails where the best does not
	}
	least, better, ok := b.beats(c, &at)
	if !ok {
		return false
	}
	if better {
		b.best, b.choice, b.bestAt = c, slices.Clone(choice), at
		if b.common != a.Terms {
			if at, ok = b.run(c, a.Terms, true); !ok {
				return false
			}
		}
		a.Best = Outcome{Least: least, At: at}
	}
	return true
}

// beats reports whether a candidate is better than the best, with its smallest
// limit. The first replay is just below the best's limit: what fails there
// cannot need less.
func (b *search) beats(c candidate, at *contest.Result) (l Least, better, ok bool) {
	a := &b.answer
	goal := a.Best.Least.Limit
	if goal == 0 { // the default is served nowhere
		l = b.least(c, 0)
		return l, l.Complete(), !b.over
	}
	below := goal - 1
	if !c.lazy() {
		below = (goal - 1) / c.granule() * c.granule()
	}
	if below >= b.t.Floor {
		served, ok := b.serves(c, below)
		if !ok {
			return l, false, false
		}
		if served {
			l = b.least(c, below)
			return l, l.Complete() && l.Limit < goal, !b.over || l.Complete()
		}
	}
	if !less(at, &b.bestAt) {
		return l, false, true
	}
	// It may need as much and be better otherwise.
	if !c.lazy() && goal%c.granule() != 0 {
		return l, false, true // the next multiple that it could need is above
	}
	if served, ok := b.serves(c, goal); !ok || !served {
		return l, false, ok
	}
	l = b.least(c, goal)
	return l, l.Complete() && l.Limit == goal, !b.over || l.Complete()
}

// less compares what two replays under one limit held and asked of the driver.
func less(x, y *contest.Result) bool {
	if x.Served() != y.Served() {
		return x.Served()
	}
	if x.PeakReserved != y.PeakReserved {
		return x.PeakReserved < y.PeakReserved
	}
	return x.DriverCalls < y.DriverCalls
}
