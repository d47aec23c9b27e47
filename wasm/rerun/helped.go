package rerun

import (
	"iter"
	"strconv"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
)

// Ask begins to find out what stands out in a run of the fields in text, and
// what would have helped. The answer is "" when it began, else what is wrong.
// Every call of Next gives a piece of what was found.
func (s *Session) Ask(text string) string {
	s.forget()
	w, answer := read(text)
	if w == nil {
		return answer
	}
	w.Defaults()
	s.next, s.forgo = iter.Pull(helped(w))
	return ""
}

// Next goes on with what Ask began, by a run or a few, and tells what that
// came to as fields: findings, a rerun that was tried, or what all came to. It
// is "" at the end.
func (s *Session) Next() string {
	if s.next == nil {
		return ""
	}
	piece, ok := s.next()
	if !ok {
		s.forget()
		return ""
	}
	return piece
}

func (s *Session) forget() {
	if s.forgo != nil {
		s.forgo()
	}
	s.next, s.forgo = nil, nil
}

// helped is the pieces of an answer, each worked out when it is asked for.
func helped(w *api.Workload) iter.Seq[string] {
	return func(yield func(string) bool) {
		p := &fit.Prober{Device: first(w)}
		found, ok := p.Diagnose(w)
		if !ok {
			yield(fieldsOf("error", "This run is too long to be rerun here."))
			return
		}
		if !yield(findings(found)) {
			return
		}
		for i := range found {
			if found[i].ID == finding.OutOfMemory {
				p.Device = found[i].Device
				remedies(p, w, found, yield)
				return
			}
		}
		gains(p, w, found, yield)
	}
}

// first is the first accelerator, whose memory counts where no finding names
// another.
func first(w *api.Workload) string {
	if len(w.Devices) > 0 && w.Devices[0].Kind == "tpu" {
		return "/TPU:0"
	}
	return "/GPU:0"
}

// remedies tells what gets a run through that ran out of memory.
func remedies(p *fit.Prober, w *api.Workload, found []finding.Finding, yield func(string) bool) {
	going := true
	a, ok := p.Ask(fit.AskAbout(w, found), func(t *fit.Trial) bool {
		going = yield(trial(t, t.Passed))
		return going
	})
	if !ok || !going {
		return
	}
	var f event.Fields
	f.Set("over", "true")
	f.Set("cut", strconv.FormatBool(a.Cut))
	if a.Need != nil {
		f.Set("need", itoa(a.Need.Peak))
		f.Set("need_per_sample", itoa(a.Need.NanosPerSample()))
		f.Set("limit", itoa(a.Base.Limit))
	}
	if a.Batch.At != nil {
		f.Set("batch", a.Batch.At.Text())
		f.Set("postpones_only", strconv.FormatBool(a.Postponed))
		if a.Batch.Next != nil {
			f.Set("batch_next", a.Batch.Next.Text())
		}
	}
	yield(f.Encode())
}

// gains tells what the findings' suggestions bring a run that came to its end.
func gains(p *fit.Prober, w *api.Workload, found []finding.Finding, yield func(string) bool) {
	for i := range found {
		if found[i].Severity == finding.Note || len(found[i].Try) == 0 {
			continue
		}
		if found[i].Device != "" {
			p.Device = found[i].Device
		}
		base, list, ok := p.Compare(w, found[i].Try, func(base, t *fit.Trial) bool { return fit.Helps(found[i].ID, base, t) })
		if !ok || !base.Passed {
			continue
		}
		for _, t := range list {
			f := trialFields(t, fit.Helps(found[i].ID, base, t))
			f.Set("finding", strconv.Itoa(i))
			f.Set("base_peak", itoa(base.Peak))
			f.Set("base_duration", itoa(base.Nanos))
			if !yield(f.Encode()) {
				return
			}
		}
	}
	yield(fieldsOf("over", "true"))
}

func fieldsOf(key, value string) string {
	var f event.Fields
	f.Set(key, value)
	return f.Encode()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// findings tells what stands out, numbered from 0.
func findings(list []finding.Finding) string {
	var f event.Fields
	f.Set("count", strconv.Itoa(len(list)))
	for i := range list {
		x := &list[i]
		at := "findings." + strconv.Itoa(i) + "."
		put := func(key, value string) { f = append(f, event.Field{Key: at + key, Value: one(value)}) }
		put("id", string(x.ID))
		put("kind", x.Kind)
		put("title", x.Title)
		put("severity", x.Severity.String())
		put("device", x.Device)
		put("culprit", x.Culprit)
		for k, t := range x.Text {
			put("text."+strconv.Itoa(k), t)
		}
		for k, c := range x.Try {
			put("try."+strconv.Itoa(k), c.String())
		}
		for k := range x.Holders {
			h := &x.Holders[k]
			n := "holders." + strconv.Itoa(k) + "."
			put(n+"name", h.Name)
			put(n+"bytes", itoa(h.Bytes))
			put(n+"blocks", itoa(h.Blocks))
		}
	}
	return f.Encode()
}

func trial(t *fit.Trial, helps bool) string {
	f := trialFields(t, helps)
	return f.Encode()
}

// trialFields is one rerun: bytes, nanoseconds.
func trialFields(t *fit.Trial, helps bool) event.Fields {
	var f event.Fields
	f.Set("trial", strconv.FormatUint(t.ID, 16))
	f.Set("set", t.Text())
	f.Set("short", t.Short())
	for i, c := range t.Changes {
		f.Set("changes."+strconv.Itoa(i)+".field", c.Field)
		f.Set("changes."+strconv.Itoa(i)+".value", c.Value)
	}
	f.Set("passed", strconv.FormatBool(t.Passed))
	f.Set("helps", strconv.FormatBool(helps))
	f.Set("steps", strconv.Itoa(t.Steps))
	f.Set("peak", itoa(t.Peak))
	f.Set("reserved", itoa(t.Reserved))
	f.Set("duration", itoa(t.Nanos))
	f.Set("per_sample", itoa(t.NanosPerSample()))
	for i, p := range t.Parts() {
		if i == 3 {
			break
		}
		f.Set("parts."+strconv.Itoa(i)+".name", p.Name)
		f.Set("parts."+strconv.Itoa(i)+".bytes", itoa(p.Bytes))
	}
	return f
}
