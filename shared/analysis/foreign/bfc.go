package foreign

import (
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
)

// mostHolders is how many ops a table names.
const mostHolders = 6

// BFC puts the reading of an allocator's own dump into the common form.
func BFC(a *analysis.Reading) *reading.Reading {
	r := &reading.Reading{Kind: "tf-bfc-oom", Line: a.Line, Name: a.Allocator, Verdict: string(a.Verdict), Cause: a.LikelyCause, Why: a.Why()}
	if r.Name == "" {
		r.Name = "an allocator"
	}
	for _, f := range a.Figures() {
		r.Row(f.Name, f.Value)
	}
	barRow(r, a)
	for i, h := range a.Holders {
		if i == mostHolders {
			break
		}
		r.Row("held by "+h.Name, event.FormatBytes(h.Bytes))
	}
	for _, v := range a.Values() {
		switch v.Name {
		case "kind", "verdict", "secondary", "likely_cause":
		default:
			r.Facts.Set(v.Name, fromValue(v))
		}
	}
	if len(a.Findings) > 0 {
		r.Secondary = a.Findings[0]
	}
	r.Open = a.Undecided(true)
	for _, x := range a.Advice() {
		r.Next = append(r.Next, x.Text)
	}
	return r
}
