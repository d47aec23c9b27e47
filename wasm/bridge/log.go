package bridge

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/store"
)

// instant is the distance between two failures of one log on the time axis, as
// package ingest tells them: a dump is a moment without a clock that can be
// trusted, so they are shown one after the other, each in the middle of its own.
const instant = 1_000_000

// dumpAt is the number of the failure of a log that is shown at a time.
func (sl *slot) dumpAt(t int64) int {
	list := sl.tl.OOMs()
	for i := range list {
		if t < list[i].Time+instant/2 {
			return i
		}
	}
	return max(0, len(list)-1)
}

// listed reports whether the log lists every chunk of the failure that is
// shown at a time.
func (sl *slot) listed(t int64) bool {
	list := sl.tl.OOMs()
	n := sl.dumpAt(t)
	return n < len(list) && list[n].Pool >= 0 && list[n].Pool < len(sl.tl.Pools()) && !partial(sl.tl.Pools()[list[n].Pool])
}

// recall notices that a timeline was made of a log, of which it was saved: its
// times are made up all the same.
func (sl *slot) recall() {
	for _, p := range sl.tl.Pools() {
		if sl.origin == "file" && p.Facts.Text(analysis.FormatKey) != "" {
			sl.origin = "log"
		}
	}
}

// moments takes a timeline for one of a log, as the readings say that it keeps.
func (s *Session) moments(n int) {
	if sl := s.slot(n); sl != nil && (sl.origin == "file" || sl.origin == "live") {
		sl.origin = "log"
		s.invalidate()
	}
	s.status()
}

// partial reports whether a pool's blocks are not all told.
func partial(p *store.Pool) bool { return p != nil && p.Facts.Text(analysis.PartialKey) == "true" }

// listedWords is what figures of a partial pool are of.
const listedWords = "of the chunks that the text lists"

// partOf says of a pool's figures that they are of a part, and what the text counts
// of the whole.
func partOf(a *answer, r *request) {
	if !partial(r.pool) {
		return
	}
	a.key("facts").list().text("The text does not list all chunks: what is shown is " + listedWords + ".")
	var counts []string
	for _, f := range reported(r.sl.tl, r.pool.Device, r.at) {
		counts = append(counts, f.value+" "+strings.ToLower(strings.TrimSuffix(f.name, " (reported)")))
	}
	if counts != nil {
		a.text("The text itself counts " + strings.Join(counts, ", ") + ".")
	}
	a.endList()
}

// tails is how much of chunks was not asked for, where any is known: another
// program's file that tells no such bytes need not know what was asked for.
func tails(sl *slot, waste, inUse int64) []figure {
	if waste == 0 && len(sl.tl.Settings()) == 0 {
		return nil
	}
	return []figure{{name: "Unused tails", value: size(waste), sub: percent(waste, inUse)}}
}

// untaught reports whether nothing is told of a pool but that a request of it
// failed: its zeros are not known, they are what nobody said.
func untaught(p *store.Pool) bool {
	return p.Points() == 0 && (len(p.Facts) == 0 || partial(p))
}

// reported is what a text itself counts of a device at a time.
func reported(tl *store.Timeline, dev event.DeviceID, t int64) (out []figure) {
	for _, x := range tl.SeriesList() {
		if v, ok := x.At(t); ok && x.Kind == store.SampleSeries && x.Device == dev {
			name := tl.Text(x.Name)
			out = append(out, figure{name: title(name), value: sampleText(name, x, v)})
		}
	}
	return out
}

// conclusion is what a log concludes of a failure, in its own moment; "" if it
// says nothing.
func conclusion(tl *store.Timeline, o *store.OOM) string {
	for _, n := range tl.Notes() {
		if !n.Annotation && n.Device == o.Device && n.Time > o.Time && n.Time <= o.Time+instant/2 {
			return tl.Text(n.Text)
		}
	}
	return ""
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
