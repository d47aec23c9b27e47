package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// maxRows bounds a table; what is left out is counted.
const maxRows = 300

// request is what a table is about.
type request struct {
	sl     *slot
	pool   *store.Pool // may be nil
	at     int64
	t0, t1 int64 // the selection, or what is visible
	lane   string
	filter *store.Filter // what the tables of allocations are about
}

// request reads the words of a question from the third on: AT T0 T1 LANE
// FILTER. It is nil without a timeline.
func (s *Session) request(arg func(int) string) *request {
	sl := s.slots[Current]
	if sl == nil {
		return nil
	}
	t0 := number(arg(3))
	return &request{
		sl: sl, at: s.time(arg(2)), t0: t0, t1: max(number(arg(4)), t0+1),
		lane: arg(5), pool: s.pool(arg(5)), filter: s.filterFor(sl.tl, arg(6)),
	}
}

// details answers "details TAB AT T0 T1 LANE FILTER".
func details(s *Session, arg func(int) string, _ string) {
	a := s.out.open()
	if r := s.request(arg); r != nil {
		switch arg(1) {
		case "live":
			s.live(a, r)
		case "chunks":
			s.chunks(a, r)
		case "peak":
			s.peak(a, r)
		case "oom":
			s.oom(a, r)
		case "transfers":
			s.transfers(a, r)
		case "compare":
			s.compare(a, r)
		case "twin":
			s.twin(a, r)
		case "log":
			s.log(a, r)
		}
	}
	s.out = *a.close()
}

func (r *request) where() string {
	if r.sl.origin == "log" {
		n := "one moment"
		if list := r.sl.tl.OOMs(); len(list) > 0 {
			n = failureWords(r.sl.dumpAt(r.at), len(list))
		}
		if r.pool != nil {
			n = r.pool.Name + " · " + n
		}
		if partial(r.pool) {
			n += " · " + listedWords
		}
		return n
	}
	n := "at " + clock(r.at)
	if st, ok := r.sl.tl.StepAt(r.at); ok {
		n += " · step " + itoa(int64(st.Step)+1)
	}
	if r.pool != nil {
		n = r.poolName() + " · " + n
	}
	return n
}

func (r *request) poolName() string {
	return short(r.sl.tl.Device(r.pool.Device).Name) + " " + r.pool.Name
}

// nothing answers for a timeline that tells no memory: with what a text counts, or
// with why it ended, where that is told.
func nothing(a *answer, r *request) {
	if r.sl.origin == "log" {
		var dev event.DeviceID
		if list := r.sl.tl.OOMs(); len(list) > 0 {
			dev = list[r.sl.dumpAt(r.at)].Device
		}
		a.note(r.where())
		a.figures(reported(r.sl.tl, dev, r.at)...)
		a.key("text").text("Which blocks and holes there were is not in the file: see “What it says”.")
		return
	}
	if end := r.sl.tl.End(); end.Ended && end.Text != "" && end.Reason != event.EndDone {
		a.verdict(title(end.Reason.String())+" before the first allocation", false, end.Text)
		return
	}
	a.key("text").text("This timeline tells of no memory.")
}
