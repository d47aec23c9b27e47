package remedy

import (
	"errors"
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/snapshot"
)

// Requests are what an input holds of one allocator's requests, from the state
// in which its recording began.
type Requests struct {
	Own    *contest.Trace // for allocators of the recorded kind
	Others *contest.Trace // for those of other kinds
	// Start says in sentences what the state is and how it comes about; "" where
	// the recording holds everything from the beginning of the program.
	Start string
}

// For is the trace for allocators of a kind.
func (r *Requests) For(kind string) *contest.Trace {
	if kind == r.Own.Kind {
		return r.Own
	}
	return r.Others
}

// CutError is a dump that does not list all that was in use.
type CutError struct {
	Allocator     string
	Listed, InUse int64 // bytes in use; InUse is 0 where it is not known
}

// Error tells how much is listed.
func (e *CutError) Error() string {
	of := "what was in use"
	if e.InUse > 0 {
		of = "the " + event.FormatBytes(e.InUse) + " in use"
	}
	return fmt.Sprintf("the dump of %s is cut: it lists %s of %s, so its state cannot be replayed", e.Allocator, event.FormatBytes(e.Listed), of)
}

// RequestsOf takes the requests of an input whose events told x as one of their
// allocators. The state at the beginning is built up as for the trials, holes
// included; fresh leaves the holes away: what was live is asked for in an
// allocator that has held nothing before. A dump that is cut is a CutError,
// unless fresh asks for what it lists.
func RequestsOf(in *ingest.Input, x *contest.Trace, fresh bool, o Options) (*Requests, error) {
	switch {
	case in.Data != nil && in.Data.Snapshot != nil:
		return ofSnapshot(in.Data.Snapshot, x, fresh, o), nil
	case in.Data != nil && in.Data.Dump != nil:
		return ofDump(in.Data.Dump, x, fresh, o)
	case in.Text != nil && in.Text.Log != nil && x.OutOfMem > 0:
		for _, d := range in.Text.Log.Dumps {
			if d.Begun() && (d.Allocator == x.Name || d.Allocator == "" && len(in.Text.Log.Dumps) == 1) {
				return ofDump(d, x, fresh, o)
			}
		}
	}
	if x.Allocs == 0 && in.Text != nil {
		return nil, fmt.Errorf("%w: it tells of a request that failed and of no other", ErrNoRequests)
	}
	return &Requests{Own: x, Others: x}, nil
}

// ErrNoRequests says that an input holds nothing that could be replayed.
var ErrNoRequests = errors.New("there are no requests to replay")

func ofSnapshot(s *snapshot.Snapshot, x *contest.Trace, fresh bool, o Options) *Requests {
	r := &Requests{Own: x, Others: x}
	device := int(x.Device)
	t := caching{in: &Recorded{Segments: s.TorchSegments(device), Trace: s.TorchTrace(device), Settings: s.TorchSettings()}, work: o.work()}
	t.end = len(t.in.Trace)
	for i := range t.in.Trace {
		if t.in.Trace[i].Action == torch.ActionOOM {
			t.end, t.failed = i+1, true
		}
	}
	var err error
	switch t.begin, err = torch.Rewind(t.in.Segments, t.in.Trace, &t.in.Settings); {
	case s.Cut != "":
		r.Start = "The file is cut: what was read of it is replayed in a fresh allocator."
		return r
	case err != nil:
		r.Start = "The trace and the state at its end do not agree; what was live when the trace begins is asked for first, in a fresh allocator."
		return r
	}
	t.measure()
	if t.live == 0 {
		fresh = true
	}
	switch {
	case fresh && t.live == 0:
		r.Start = "Nothing was held when the trace begins: the replay is of all there was."
	case fresh:
		r.Start = "Fresh: what was live when the trace begins is asked for first, in an allocator that has held nothing before."
	default:
		t.how = withHoles
		if t.failed {
			if _, ok := t.baseline(); !ok || t.how == inPlace {
				t.how = withHoles
				r.Start = "From an empty device the last request does not fail as recorded. "
			}
		}
		r.Start += "As recorded: " + assumed[t.how] + "."
		r.Own = startingAt(t.sequence(t.how), x, t.capacity)
		r.Others = r.Own
	}
	if base := t.in.Settings.String(); base != "" {
		r.Start += " It was recorded under PYTORCH_CUDA_ALLOC_CONF=" + base + "."
	}
	return r
}

func ofDump(d *bfclog.Dump, x *contest.Trace, fresh bool, o Options) (*Requests, error) {
	t := bestFit{d: d, r: analysis.FromDump(d), work: o.work()}
	_, counted, _ := d.SummaryTotals()
	if !t.replayable() {
		_, listed, _, _ := d.Listed()
		cut := &CutError{Allocator: x.Name, Listed: listed, InUse: max(0, d.InUse.N)}
		switch {
		case d.ListComplete: // the request or the limit is missing
			return &Requests{Own: x, Others: x, Start: "Fresh: the chunks in use that the dump lists, " + event.FormatBytes(listed) + ", are asked for, and then what failed."}, nil
		case !fresh:
			return nil, cut
		}
		of := "what was in use"
		if cut.InUse > 0 {
			of = event.FormatBytes(cut.InUse) + " in use"
		}
		return &Requests{Own: x, Others: x, Start: fmt.Sprintf("The dump is cut: %s of %s are listed and replayed; the rest is left out, so what is served here need not have been.", event.FormatBytes(listed), of)}, nil
	}
	failed := t.baselineOnly()
	if fresh || !failed {
		t.how = alone
	}
	_, listed, _, listedFree := d.Listed()
	if !d.ListComplete {
		listed = counted
	}
	r := &Requests{Own: t.headed(t.placed(), x), Start: "The state of the dump, " + event.FormatBytes(listed) + " in use, and then the request that failed: "}
	r.Others = r.Own
	switch {
	case t.how == alone && d.ListComplete:
		r.Start += t.oneByOne() + "."
	case t.how == alone:
		r.Start += "the chunks in use are asked for from the smallest size to the largest, as the summary has them, and nothing else ever was."
	default:
		r.Others = t.headed(holes, x)
		r.Start += fmt.Sprintf("built up in the order of addresses, with the %s of holes, which are then given back.", event.FormatBytes(listedFree))
		if t.how == exact {
			r.Start += " In allocator bfc every chunk lies where it lay, and what a larger limit adds is free behind the last."
		}
	}
	if !failed {
		r.Start += " So placed, the request does not fail as recorded: what broke the pool up is not in the dump."
	}
	if t.growth {
		r.Start += " The pool grew on demand: --set growth=true."
	}
	return r, nil
}

// baselineOnly is baseline without its words.
func (t *bestFit) baselineOnly() bool {
	said := t.out
	ok := t.baseline()
	t.out = said
	return ok
}

// headed is a layout as a trace in place of another.
func (t *bestFit) headed(how layout, x *contest.Trace) *contest.Trace {
	if !t.d.ListComplete { // the events told fewer chunks than the summary counts
		head := *x
		head.Limit = t.capacity
		return t.sequence(how).trace(&head)
	}
	y := startingAt(t.sequence(how), x, t.capacity)
	y.Allocs = x.Allocs // not the pieces
	return y
}

// startingAt is a sequence as a trace in place of another, of which what was
// asked for is known: while a state is built up, whole blocks are asked for
// where the size of the request would not give their size.
func startingAt(s *sequence, x *contest.Trace, capacity int64) *contest.Trace {
	head := *x
	head.Limit = capacity
	y := s.trace(&head)
	y.Floor = min(y.Floor, x.Floor)
	return y
}
