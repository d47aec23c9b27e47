package bridge

import (
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
func partial(p *store.Pool) bool { return p.Facts.Text(analysis.PartialKey) == "true" }

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
