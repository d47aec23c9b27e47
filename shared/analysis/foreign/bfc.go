package foreign

import (
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
)

// BFC puts the reading of an allocator's own dump into the common form.
func BFC(a *analysis.Reading) *reading.Reading {
	r := &reading.Reading{Kind: "tf-bfc-oom", Line: a.Line, Name: a.Allocator, Verdict: string(a.Verdict), Cause: a.LikelyCause}
	for _, v := range a.Values() {
		switch v.Name {
		case "verdict", "secondary", "likely_cause":
		default:
			r.Facts.Set(v.Name, fromValue(v))
		}
	}
	if len(a.Findings) > 0 {
		r.Secondary = a.Findings[0]
	}
	r.Open = append(r.Open, a.Assumed...)
	for _, x := range a.Advice() {
		r.Next = append(r.Next, x.Text)
	}
	return r
}
