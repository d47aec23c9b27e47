// Package reading is what a foreign file means, in one form for all kinds:
// named facts, a verdict, and what the input does not allow to conclude.
//
// The names are those of the JSON report and stay. A fact that the input does
// not tell is there as null, never as zero. How a kind's facts and verdict
// follow from its text is decided where the kind is known; this package only
// holds the result and writes it down. It does not import encoding/json,
// because the browser module carries it.
package reading

// Reading is one thing that an input tells: a failure, a table, a log.
type Reading struct {
	Kind string // such as "rmm-log"
	Line int    // of the text where it begins, from 1; 0 when there are no lines
	// Name is what the reading is about, in a word or two, for headings.
	Name  string
	Facts Facts

	Verdict   string
	Secondary string   // what stands beside the verdict
	Flags     []string // further words
	Cause     string   // likely cause, where the verdict is only its face

	Why  string   // one or a few sentences that follow from the facts
	Open []string // what cannot be concluded, and what was assumed
	Next []string // what to do; not verified
	Rows []Row    // the figures that matter, for a terminal
}

// Row is one line of a reading's table.
type Row struct{ Label, Value string }

// Row adds a line to the table.
func (r *Reading) Row(label, value string) {
	r.Rows = append(r.Rows, Row{label, value})
}

// All lists the facts with the verdict and what goes with it, as the JSON
// report has them.
func (r *Reading) All() Facts {
	f := append(Facts{}, r.Facts...)
	f.Text("verdict", r.Verdict)
	f.Text("secondary", r.Secondary)
	f.Texts("flags", r.Flags)
	f.Text("likely_cause", r.Cause)
	return f
}

// AppendJSON appends the reading as one JSON object.
func (r *Reading) AppendJSON(b []byte) []byte {
	f := Facts{}
	f.Text("kind", r.Kind)
	if r.Line > 0 {
		f.Int("line", int64(r.Line))
	}
	f = append(f, r.All()...)
	f.Text("why", r.Why)
	f.Texts("not_concluded", r.Open)
	f.Texts("next", r.Next)
	f.Bool("next_verified", false)
	return Object(f).AppendJSON(b)
}
