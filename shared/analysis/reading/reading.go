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
	File string // of several texts, the one that it is in; "" of one
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

	// Held is who holds the memory, at the peak and at the end; Growth what
	// grows, an allocator each; Copies what they take of the time, nil where the
	// input tells of none. Filled by package blame.
	Held   []Held
	Growth []Growth
	Copies *Copies

	// Trials are other settings, each tried on the recorded requests; those
	// that serve come first. Empty where the input holds no requests to replay.
	Trials []Trial
	// Peaks are what the same requests took of the driver under other settings,
	// of an input in which no request failed, or whose capacity is not known.
	// The first is the recorded one, where the input tells its settings.
	Peaks []Trial
	// Replayed says in sentences what was replayed, and whether the replay
	// under the recorded settings fails as recorded; "" when nothing was.
	Replayed string
	// Least is by how many bytes the failing request must shrink to be served
	// under the settings it failed with, by replay; 0 when that is not known.
	Least int64
	// Short is how many bytes less must be live, or asked for, before any
	// placement could have served the request; 0 when the bytes would do, or
	// when that is not known.
	Short int64
}

// Trial is what one change of settings made of the recorded requests when they
// were replayed under it. It is a fact of the replay, not advice.
type Trial struct {
	// Setting is the change as its user writes it, such as
	// PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128.
	Setting   string
	Allocator string // the kind that ran, a name of shared/alloc/kinds
	Own       bool   // the program's own allocator, under another setting
	// Serves: every request that was served in the original was served, and
	// those that failed as well. That it is false proves nothing where the trial
	// assumes something.
	Serves bool
	// Spare is what one more block could have had after that: the larger of
	// what could still be taken of the driver and the largest free block; -1
	// when that is not known.
	Spare int64
	Peak  int64 // most bytes held of the driver, up to the end or the first refusal
	// Assumes says what the replay had to take for granted; "" when the input
	// tells all of it.
	Assumes string
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
	if r.File != "" {
		f.Text("file", r.File)
	}
	if r.Line > 0 {
		f.Int("line", int64(r.Line))
	}
	f = append(f, r.All()...)
	f.Text("why", r.Why)
	f.Texts("not_concluded", r.Open)
	f.Texts("next", r.Next)
	f.Bool("next_verified", false)
	f = append(f, r.holding()...)
	f = append(f, r.Replays()...)
	return Object(f).AppendJSON(b)
}

// Replays are what replays came to, as the JSON report has it.
func (r *Reading) Replays() (f Facts) {
	f.trials("trials", r.Trials)
	f.trials("peaks", r.Peaks)
	f.Text("replayed", r.Replayed)
	f.IntIf("least_reduction", r.Least, r.Least > 0)
	f.IntIf("short_bytes", r.Short, r.Short > 0)
	return f
}

// trials adds what replays came to, or null when there were none.
func (f *Facts) trials(name string, list []Trial) {
	if len(list) == 0 {
		f.Null(name)
		return
	}
	var values []Value
	for i := range list {
		t, o := &list[i], Facts{}
		o.Text("setting", t.Setting)
		o.Text("allocator", t.Allocator)
		o.Bool("own", t.Own)
		o.Bool("serves", t.Serves)
		o.IntIf("spare", t.Spare, t.Spare >= 0)
		o.Int("peak_reserved", t.Peak)
		o.Text("assumes", t.Assumes)
		values = append(values, Object(o))
	}
	f.Set(name, List(values...))
}
