package remedy

import (
	"slices"
	"sort"
	"strings"

	"tideline/shared/analysis/reading"
)

// Outcome is what the replays of one failure, or of an input without one, came
// to. Its fields are those of reading.Reading.
type Outcome struct {
	Trials   []reading.Trial
	Peaks    []reading.Trial
	Replayed string
	Least    int64
	Short    int64
}

// Attach puts the outcome into a reading.
func (o *Outcome) Attach(r *reading.Reading) {
	r.Trials, r.Peaks, r.Replayed, r.Least, r.Short = o.Trials, o.Peaks, o.Replayed, o.Least, o.Short
}

// asRecorded stands for no change.
const asRecorded = "as recorded"

// Any says whether there is anything to show.
func (o *Outcome) Any() bool { return o.Replayed != "" || len(o.Trials) > 0 || len(o.Peaks) > 0 }

// say adds a sentence.
func (o *Outcome) say(s string) {
	if o.Replayed != "" && s != "" {
		o.Replayed += " "
	}
	o.Replayed += s
}

// least notes the largest request that would have been served.
func (o *Outcome) least(request, served int64) {
	o.Least = request - served
	if served == 0 {
		o.say("Not the smallest request would have been served then.")
	}
}

// order puts what serves first, the program's own allocator before others, and
// of those with more to spare before those with less.
func (o *Outcome) order() {
	rank := func(t *reading.Trial) int {
		n := 0
		if !t.Serves {
			n += 2
		}
		if !t.Own {
			n++
		}
		return n
	}
	sort.SliceStable(o.Trials, func(i, j int) bool {
		a, b := &o.Trials[i], &o.Trials[j]
		if rank(a) != rank(b) {
			return rank(a) < rank(b)
		}
		return a.Serves && a.Spare > b.Spare
	})
	if len(o.Peaks) > 1 {
		rest := o.Peaks
		if rest[0].Setting == asRecorded {
			rest = rest[1:]
		}
		sort.SliceStable(rest, func(i, j int) bool { return rest[i].Peak < rest[j].Peak })
	}
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
