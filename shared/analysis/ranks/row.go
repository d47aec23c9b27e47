package ranks

import (
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/store"
)

// Unknown is an amount that a file does not tell.
const Unknown = -1

// Row is what one file comes to. Amounts are bytes, or Unknown.
type Row struct {
	Name    string // the file's
	Problem string // why it cannot be read; nothing else is known then

	Peak     int64 // the most that was in use
	Reserved int64 // held of the driver then
	End      int64 // in use at the end
	Hole     int64 // the largest hole, at the failure if there is one, else at the end

	Cut string // why not all of the file was read: the amounts are of what was

	Failed  bool   // a request failed for good
	Verdict string // why, or what else is concluded: a report's word
	Phrase  string // the same for people

	held []holder // who held the peak, the largest first
	cut  bool     // there were more
}

type holder struct {
	name  string
	bytes int64
}

// mostHeld is how many holders of a peak are kept to be compared.
const mostHeld = 48

// Unread is the row of a file that cannot be read, with the first sentence of why.
func Unread(name, problem string) Row {
	problem = strings.TrimPrefix(problem, name+": ")
	if rest, ok := strings.CutPrefix(problem, name+" "); ok {
		problem = "it " + rest
	}
	problem, _, _ = strings.Cut(problem, ". ")
	return Row{Name: name, Problem: problem, Peak: Unknown, Reserved: Unknown, End: Unknown, Hole: Unknown}
}

// Main is the pool that a question means when it names none: the one with the
// highest use on an accelerator, else the highest of all; nil where there is none.
func Main(tl *store.Timeline) *store.Pool {
	var best *store.Pool
	var most int64 = -1
	first, last := tl.Span()
	for _, p := range tl.Pools() {
		n := p.HighestInUse(first, last+1)
		if tl.Device(p.Device).Kind == "gpu" {
			n += 1 << 60
		}
		if n > most {
			best, most = p, n
		}
	}
	return best
}

// Of sums up a timeline by its main pool.
func Of(name string, tl *store.Timeline) Row {
	r := Unread(name, "")
	var failed *store.OOM
	list := tl.OOMs()
	for i := range list {
		if o := &list[i]; !o.Retryable {
			failed = o
		}
	}
	if failed != nil {
		r.Failed, r.Verdict = true, failed.Cause.String()
		if m, err := event.ParseChunkMap(tl.Text(failed.ChunkMap)); err == nil && len(m) > 0 {
			_, _, _, r.Hole = m.Totals()
		}
	}
	p := Main(tl)
	if p == nil || p.Points() == 0 || p.Facts.Text(analysis.PartialKey) == "true" { // a part of what was in use is no amount
		return r
	}
	first, last := tl.Span()
	pk := p.Peak(first, last+1, mostHeld+1)
	r.Peak, r.End = pk.InUse, p.Now().InUse
	if pk.Reserved > 0 {
		r.Reserved = pk.Reserved
	}
	if len(p.Regions()) > 0 && r.Hole == Unknown {
		m := p.ChunkMapAt(last)
		if failed != nil && failed.Pool == p.Index {
			m = p.ChunkMapIn(failed.Moment)
		}
		_, _, _, r.Hole = m.Totals()
	}
	if r.cut = len(pk.Top) > mostHeld; r.cut {
		pk.Top = pk.Top[:mostHeld]
	}
	for _, t := range pk.Top {
		who := tl.Text(t.Op)
		if who == "" {
			if t.Category == event.Unknown {
				continue // nobody is named
			}
			who = p.CategoryName(t.Category)
		}
		r.held = append(r.held, holder{who, t.Bytes})
	}
	return r
}

// whole reports whether a row's peak can be held against others.
func (r *Row) whole() bool { return r.Peak != Unknown && r.Cut == "" }

// holds is what a holder holds at a row's peak. Where only the largest are known,
// one that is not among them may hold as much as the least of them, and most says
// that this is what is told.
func (r *Row) holds(who string) (sum int64, most bool) {
	for _, h := range r.held {
		if h.name == who {
			sum += h.bytes
		}
	}
	if sum == 0 && r.cut && len(r.held) > 0 {
		return r.held[len(r.held)-1].bytes, true
	}
	return sum, false
}

// Moment is what a text tells of the moment of its failure, in bytes or Unknown: the
// most that was in use until then, what was in use and reserved, the largest hole.
type Moment struct{ Peak, InUse, Reserved, Hole int64 }

// Told takes what a text tells, which knows more than the timeline that is made of
// it: a list of blocks may be cut, and has no past.
func (r *Row) Told(m Moment) {
	if m.InUse == Unknown {
		return
	}
	r.Peak, r.Reserved, r.End = max(m.Peak, m.InUse), Unknown, m.InUse
	if r.Peak == m.InUse {
		r.Reserved = m.Reserved
	}
	if m.Hole != Unknown {
		r.Hole = m.Hole
	}
}

// Says is what is concluded of the file, for people.
func (r *Row) Says() string {
	switch {
	case r.Problem != "":
		return "Cannot be read: " + r.Problem
	case r.Cut != "":
		return "Not all of it was read: " + r.Cut
	case !r.Failed:
		return r.Phrase
	}
	why := r.Phrase
	if why == "" && r.Verdict != event.OOMUndetermined.String() {
		why = strings.ReplaceAll(r.Verdict, "_", " ")
	}
	if why == "" {
		return "Out of memory"
	}
	return "Out of memory: " + strings.ToLower(why[:1]) + why[1:]
}

// Rename gives the file and who held its memory other names.
func (r *Row) Rename(file, who func(string) string) {
	r.Name = file(r.Name)
	r.held = slices.Clone(r.held)
	for i := range r.held {
		r.held[i].name = who(r.held[i].name)
	}
}
