package explain

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
)

// findingsText lists what stands out, with what reruns came to. Notes are left
// to the JSON report.
func (rep *report) findingsText(w *bufio.Writer, width int) {
	for i := range rep.found {
		f := &rep.found[i]
		if f.Severity == finding.Note {
			continue
		}
		fmt.Fprintln(w)
		title := f.Title
		if f.Device != "" {
			title += ", " + f.Device
		}
		wrap(w, width, "", strings.ToUpper(f.Severity.String()[:1])+f.Severity.String()[1:]+": "+title)
		for _, s := range f.Text {
			wrap(w, width, "  ", s)
		}
		f.reruns(w, width)
	}
}

func (c *checked) reruns(w *bufio.Writer, width int) {
	if c.base == nil {
		return
	}
	good, worse := c.outcome()
	if len(good) > 0 {
		fmt.Fprintln(w, "  Verified by rerun")
		for _, s := range good {
			wrap(w, width, "    - ", s)
		}
	}
	if worse != "" {
		wrap(w, width, "  ", worse)
	}
}

// outcome is what reruns came to: those that helped, and a sentence about the
// rest.
func (c *checked) outcome() (good []string, worse string) {
	good = make([]string, len(c.better))
	for i, t := range c.better {
		good[i] = fmt.Sprintf("%s: %s instead of %s (%s), peak %s", shownChange(t), duration(t.Nanos), duration(c.base.Nanos),
			change(t.Nanos, c.base.Nanos), bytesOf(t.Peak))
		if bytesOf(t.Peak) != bytesOf(c.base.Peak) {
			good[i] += " instead of " + bytesOf(c.base.Peak)
		}
	}
	if len(c.worse) > 0 {
		words := make([]string, len(c.worse))
		for i, t := range c.worse {
			words[i] = shownChange(t)
		}
		worse = "Rerun as well, and no gain: " + strings.Join(words, ", ") + "."
	}
	return good, worse
}

// change says how much more or less one amount is than another, in percent.
func change(to, from int64) string {
	if from == 0 {
		return "new"
	}
	p := 100 * (float64(to)/float64(from) - 1)
	switch {
	case p <= -0.05:
		return fmt.Sprintf("%.1f %% less", -p)
	case p >= 0.05:
		return fmt.Sprintf("%.1f %% more", p)
	}
	return "the same"
}

// text lists what got through all steps, and what did not help.
func (v *verifier) text(w *bufio.Writer, width int) {
	if v.unknown != "" {
		fmt.Fprintln(w)
		wrap(w, width, "", "Nothing is verified: "+v.unknown+".")
		return
	}
	a := v.answer
	if a.Need != nil {
		fmt.Fprintln(w)
		wrap(w, width, "", v.needs())
	}
	good := make([]string, len(a.Good))
	for i, t := range a.Good {
		good[i] = v.line(t)
	}
	list(w, width, "Verified by rerun", good)
	if len(a.Good) == 0 {
		fmt.Fprintln(w)
		wrap(w, width, "", "Nothing that was tried gets it through.")
	}
	if len(a.Bad) > 0 {
		bad := make([]string, len(a.Bad))
		for i, t := range a.Bad {
			bad[i] = fmt.Sprintf("%s (fails in step %d)", shownChange(t), t.Steps+1)
		}
		fmt.Fprintln(w)
		wrap(w, width, "", "Rerun as well, and no help: "+strings.Join(bad, ", ")+".")
	}
	if a.Cut {
		fmt.Fprintln(w)
		wrap(w, width, "", "More could have been tried: the reruns were ended.")
	}
}

// needs says what the run takes where nothing bounds it.
func (v *verifier) needs() string {
	a := v.answer
	return fmt.Sprintf("Without a bound on memory this run needs %s, %s more than its limit; of that %s.",
		bytesOf(a.Need.Peak), bytesOf(max(0, a.Need.Peak-a.Base.Limit)), consistsOf(a.Need, 3))
}

// helped says whether a rerun got through.
func (v *verifier) helped() bool { return v.answer != nil && len(v.answer.Good) > 0 }

// line is one change that helped, with what it costs and saves.
func (v *verifier) line(t *fit.Trial) string {
	a := v.answer
	s := fmt.Sprintf("%s: all %s, peak %s (%s)", shownChange(t), plural(int64(t.Steps), "step"), bytesOf(t.Peak), consistsOf(t, 2))
	if a.Need != nil && a.Need.Peak > t.Peak {
		s += fmt.Sprintf(", saves %s", bytesOf(a.Need.Peak-t.Peak))
	}
	s += ", " + duration(t.Nanos) + " modelled"
	if a.Need != nil && a.Need.NanosPerSample() > 0 {
		if c := change(t.NanosPerSample(), a.Need.NanosPerSample()); c != "the same" {
			s += ", " + c + " for each sample"
		}
	}
	if t == a.Batch.At {
		if a.Batch.Next != nil {
			s += fmt.Sprintf("; it is the largest batch: %s fails", a.Batch.Next.Changes[0].Value)
			if strings.Contains(a.Batch.Next.Changes[0].Value, ",") {
				s = strings.TrimSuffix(s, fmt.Sprintf("%s fails", a.Batch.Next.Changes[0].Value)) + "the next fails"
			}
		}
		if a.Postponed {
			s += ". The leak goes on: this only puts its end off"
		}
	}
	return s
}

// consistsOf names the largest categories of a rerun's peak.
func consistsOf(t *fit.Trial, most int) string {
	by := t.ByCategory
	var words []string
	for range most {
		best := 0
		for c := range by {
			if by[c] > by[best] {
				best = c
			}
		}
		if by[best] == 0 {
			break
		}
		words = append(words, event.Category(best).String()+" "+bytesOf(by[best]))
		by[best] = 0
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

func (rep *report) findingsJSON(o *object) {
	o.array("findings", len(rep.found), func(i int, o *object) {
		f := &rep.found[i]
		o.text("id", string(f.ID))
		if f.Kind != "" {
			o.text("kind", f.Kind)
		}
		o.text("severity", f.Severity.String())
		o.text("title", f.Title)
		if f.Device != "" {
			o.text("device", f.Device)
		}
		if f.Culprit != "" {
			o.text("culprit", f.Culprit)
		}
		o.member("text", rawTexts(f.Text))
		o.object("numbers", func(o *object) {
			for _, n := range f.Numbers {
				if n.Unit == finding.BasisPoints {
					o.member(n.Name, strconv.FormatFloat(float64(n.Value)/100, 'f', -1, 64))
					continue
				}
				o.integer(n.Name, n.Value)
			}
		})
		if len(f.Holders) > 0 {
			o.array("holders", len(f.Holders), func(i int, o *object) {
				h := &f.Holders[i]
				o.text("name", h.Name)
				if h.Category != event.Unknown {
					o.text("category", h.Category.String())
				}
				o.integer("bytes", h.Bytes)
				o.integer("blocks", h.Blocks)
			})
		}
		try := make([]string, len(f.Try))
		for i, c := range f.Try {
			try[i] = c.String()
		}
		o.member("try", rawTexts(try))
		if f.base != nil {
			o.object("base", func(o *object) { trialJSON(o, f.base) })
			all := append(append([]*fit.Trial(nil), f.better...), f.worse...)
			o.array("reruns", len(all), func(i int, o *object) {
				trialJSON(o, all[i])
				o.member("helps", strconv.FormatBool(i < len(f.better)))
			})
		}
	})
}

func (v *verifier) json(o *object) {
	if v.unknown != "" {
		o.text("not_rerun", v.unknown)
		return
	}
	a := v.answer
	if a.Need != nil {
		o.object("without_limit", func(o *object) { trialJSON(o, a.Need) })
	}
	all := append(append([]*fit.Trial(nil), a.Good...), a.Bad...)
	o.array("reruns", len(all), func(i int, o *object) {
		t := all[i]
		trialJSON(o, t)
		if a.Need != nil && t.Passed {
			o.integer("saved_bytes", a.Need.Peak-t.Peak)
		}
		if t == a.Batch.At {
			o.member("largest_batch", "true")
			o.member("postpones_only", strconv.FormatBool(a.Postponed))
		}
	})
	o.member("reruns_cut", strconv.FormatBool(a.Cut))
}

func trialJSON(o *object, t *fit.Trial) {
	o.text("id", fmt.Sprintf("%016x", t.ID))
	set := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		set[i] = c.String()
	}
	o.member("set", rawTexts(set))
	if len(t.Changes) == 1 {
		o.text("field", t.Changes[0].Field)
		o.text("value", t.Changes[0].Value)
	}
	o.member("passed", strconv.FormatBool(t.Passed))
	o.integer("steps", int64(t.Steps))
	o.integer("peak_in_use_bytes", t.Peak)
	o.integer("peak_reserved_bytes", t.Reserved)
	o.object("peak_by_category", func(o *object) {
		for c, n := range t.ByCategory {
			if n > 0 {
				o.integer(event.Category(c).String(), n)
			}
		}
	})
	o.integer("duration_ns", t.Nanos)
	o.integer("duration_ns_per_sample", t.NanosPerSample())
}
