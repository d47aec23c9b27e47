package explain

import (
	"slices"
	"strconv"

	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/redact"
)

// redact takes out of a report whose it is, before any form of it is written.
// It is done last: reruns need the names.
func (rep *report) redact() {
	r := redact.New()
	rep.red = r
	rep.name = r.Name(redact.File, rep.name)
	rep.cut = r.Foreign(rep.cut)
	if rep.saved != nil {
		rep.saved = r.Readings(rep.saved)
		rep.readings = rep.saved.List
	}
	rep.readings = slices.Clone(rep.readings)
	for i, x := range rep.readings {
		rep.readings[i] = r.Reading(x)
		rep.readings[i].File = r.Name(redact.File, x.File)
	}
	if rep.run != nil {
		rep.run = redactRun(r, rep.run)
	}
	memo := trials{r: r, done: map[*fit.Trial]*fit.Trial{}}
	for i := range rep.failures {
		rep.failures[i].redact(r, &memo)
	}
	for i := range rep.found {
		rep.found[i].redact(r, &memo)
	}
	rep.notices = slices.Clone(rep.notices)
	for i := range rep.notices {
		n := &rep.notices[i]
		n.File = r.Name(redact.File, n.File)
		n.Allocator, n.Requested.Text = r.Name(redact.Allocator, n.Allocator), r.Text(n.Requested.Text)
	}
	if rep.reruns != nil {
		rep.reruns.redact(&memo)
	}
}

func redactRun(r *redact.Redactor, in *analysis.Summary) *analysis.Summary {
	s := *in
	s.EndText = r.Foreign(s.EndText)
	s.Settings = r.Fields(s.Settings)
	s.Allocators = slices.Clone(s.Allocators)
	for i := range s.Allocators {
		a := &s.Allocators[i]
		a.Name, a.Device, a.Within = r.Name(redact.Allocator, a.Name), r.Name(redact.Name, a.Device), r.Name(redact.Allocator, a.Within)
	}
	return &s
}

func (f *failure) redact(r *redact.Redactor, memo *trials) {
	f.file = r.Name(redact.File, f.file)
	f.leak, f.culprit = r.Text(f.leak), r.Name(redact.Op, f.culprit)
	if f.replays != nil {
		f.replays = r.Reading(f.replays)
	}
	if f.recorded != nil {
		x := *f.recorded
		x.Problem = r.Foreign(x.Problem)
		x.ByOp = slices.Clone(x.ByOp)
		for i := range x.ByOp {
			x.ByOp[i].Name = r.Name(redact.Op, x.ByOp[i].Name)
		}
		x.Pins = slices.Clone(x.Pins)
		for i := range x.Pins {
			x.Pins[i].Holder = r.Name(redact.Op, x.Pins[i].Holder)
		}
		f.recorded = &x
	}
	if f.reruns != nil {
		f.reruns.redact(memo)
	}
	if f.Reading != nil {
		f.Reading = redactFailure(r, f.Reading)
	}
}

func redactFailure(r *redact.Redactor, in *analysis.Reading) *analysis.Reading {
	x := *in
	if x.LargestFreeAt != 0 { // the report tells where the hole lies
		r.Keep(strconv.FormatUint(x.LargestFreeAt, 16))
	}
	x.Allocator, x.Device = r.Name(redact.Allocator, x.Allocator), r.Name(redact.Name, x.Device)
	x.Op, x.Node, x.ByOp = r.Name(redact.Op, x.Op), r.Name(redact.Op, x.Node), r.Name(redact.Op, x.ByOp)
	x.DType = r.Name(redact.Name, x.DType)
	x.RequestedText, x.LimitText, x.InUseText, x.PeakText = r.Text(x.RequestedText), r.Text(x.LimitText), r.Text(x.InUseText), r.Text(x.PeakText)
	x.LargestFreeText, x.WasteText = r.Text(x.LargestFreeText), r.Text(x.WasteText)
	x.Basis, x.FormatVariant, x.LikelyCause = r.Text(x.Basis), r.Text(x.FormatVariant), r.Text(x.LikelyCause)
	x.Missing, x.Faces, x.Findings = r.Texts(x.Missing), r.Texts(x.Faces), r.Texts(x.Findings)
	x.Certain, x.Assumed = r.Texts(x.Certain), r.Texts(x.Assumed)
	x.Usage = append([]bfclog.Holder(nil), x.Usage...)
	for i := range x.Usage {
		x.Usage[i].Node = r.Name(redact.Op, x.Usage[i].Node)
	}
	x.Holders = append([]analysis.Held(nil), x.Holders...)
	for i := range x.Holders {
		if x.Holders[i].Name != analysis.NoOp {
			x.Holders[i].Name = r.Name(redact.Op, x.Holders[i].Name)
		}
	}
	return &x
}

func (c *checked) redact(r *redact.Redactor, memo *trials) {
	c.Title, c.Text, c.Culprit, c.Device = r.Text(c.Title), r.Texts(c.Text), r.Name(redact.Op, c.Culprit), r.Name(redact.Name, c.Device)
	c.Holders = slices.Clone(c.Holders)
	for i := range c.Holders {
		c.Holders[i].Name = r.Name(redact.Op, c.Holders[i].Name)
	}
	c.Try = memo.changes(c.Try)
	c.base = memo.trial(c.base)
	c.better, c.worse = memo.list(c.better), memo.list(c.worse)
}

func (v *verifier) redact(memo *trials) {
	if v.redacted {
		return // the report and its last failure share it
	}
	v.redacted = true
	v.unknown = memo.r.Foreign(v.unknown)
	if v.answer == nil {
		return
	}
	a := *v.answer
	a.Base, a.Need, a.Batch.At, a.Batch.Next = memo.trial(a.Base), memo.trial(a.Need), memo.trial(a.Batch.At), memo.trial(a.Batch.Next)
	a.Good, a.Bad = memo.list(a.Good), memo.list(a.Bad)
	v.answer = &a
}

// trials redacts reruns, each once: reports tell them apart by identity.
type trials struct {
	r    *redact.Redactor
	done map[*fit.Trial]*fit.Trial
}

func (m *trials) list(in []*fit.Trial) []*fit.Trial {
	out := make([]*fit.Trial, len(in))
	for i, t := range in {
		out[i] = m.trial(t)
	}
	return out
}

func (m *trials) trial(t *fit.Trial) *fit.Trial {
	if t == nil {
		return nil
	}
	if m.done[t] == nil {
		x := *t
		x.Changes, x.Message = m.changes(t.Changes), m.r.Foreign(t.Message)
		m.done[t] = &x
	}
	return m.done[t]
}

func (m *trials) changes(in []finding.Change) []finding.Change {
	out := make([]finding.Change, len(in))
	for i, c := range in {
		c.Value = m.r.Text(c.Value)
		out[i] = c
	}
	return out
}
