package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/draw"
	"tideline/shared/store"
)

// status is everything about both timelines that the bar and the lanes show.
func (s *Session) status() {
	s.arrange()
	a := s.out.open()
	a.key("slots").list()
	for _, sl := range s.slots {
		if sl == nil {
			a.null()
			continue
		}
		s.slotStatus(a, sl)
	}
	a.endList().key("lanes").list()
	if sl := s.slots[Current]; sl != nil {
		for i := range s.lanes {
			s.laneStatus(a, sl, &s.lanes[i])
		}
	}
	s.out = *a.endList().close()
}

func (s *Session) slotStatus(a *answer, sl *slot) {
	t0, t1 := sl.tl.Span()
	a.open().key("serial").num(int64(sl.serial)).key("name").text(sl.name).key("origin").text(sl.origin)
	a.key("events").num(sl.tl.Events()).key("first").num(t0).key("last").num(t1)
	a.key("memory").num(sl.tl.Bytes()).key("skipped").num(sl.tl.Skipped())
	a.key("state").text(sl.state()).key("ooms").num(int64(len(sl.tl.OOMs())))
	if sl.feed != nil && sl.feed.stream != nil {
		if at, n := sl.feed.stream.ReadingsAt(); n > 0 { // for the reader: nothing here reads them
			a.key("readings").list().num(at).num(n).endList()
		}
	}
	a.key("settings").truth(len(sl.tl.Settings()) > 0)
	a.key("modelled").truth(sl.origin == "rerun" || modelledTime(sl.tl))
	a.key("step")
	if st, ok := sl.tl.StepAt(t1); ok {
		a.num(int64(st.Step) + 1)
	} else {
		a.num(-1)
	}
	settings := sl.tl.Settings()
	a.key("steps").num(settings.Int("steps"))
	a.key("metrics").list()
	for _, m := range sl.metrics() {
		a.list().text(m.name).real(m.value).endList()
	}
	a.endList()
	if p := sl.mainPool(); p != nil {
		pk := p.Peak(t0, t1+1, 0)
		a.key("peak").num(pk.InUse).key("peakTime").num(pk.Time)
	}
	if t, ok := sl.failure(); ok {
		a.key("failure").num(t)
	}
	a.key("begin").num(sl.begin(t0, t1)).key("active").num(sl.active(t1))
	a.key("waited").num(sl.waited(t1))
	if i0, i1 := sl.idle(); i1 > i0 {
		a.key("idle").list().num(i0).num(i1).endList()
	}
	if end := sl.tl.End(); end.Ended && end.Reason != event.EndDone && sl.origin != "log" {
		a.key("message").text(end.Text)
	}
	var lost int64
	for _, g := range sl.tl.Gaps() {
		lost += g.Count
	}
	a.key("lost").num(lost).close()
}

// modelledTime reports whether ops of the run say that their times come from a
// cost model.
func modelledTime(tl *store.Timeline) bool {
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.OpTrack && tr.Spans() > 0 && tr.Span(0).Flags&event.Modelled != 0 {
			return true
		}
	}
	return false
}

// failure is when the request failed that ended the run.
func (sl *slot) failure() (int64, bool) {
	list := sl.tl.OOMs()
	if sl.tl.End().Reason != event.EndOutOfMemory || len(list) == 0 || list[len(list)-1].Retryable {
		return 0, false
	}
	return list[len(list)-1].Time, true
}

// begin is where a first look at the timeline begins: shortly before the first
// thing that an accelerator does, if what comes before is long enough to leave
// much of the picture empty, such as the tracing of a graph; else the start.
func (sl *slot) begin(first, last int64) int64 {
	at := last
	for _, p := range sl.tl.Pools() {
		if sl.tl.Device(p.Device).Kind == "gpu" {
			at = min(at, p.FirstChange())
		}
	}
	for _, tr := range sl.tl.Tracks() {
		if tr.Kind == store.OpTrack && tr.Spans() > 0 && sl.tl.Device(tr.Device).Kind == "gpu" {
			at = min(at, tr.Span(0).Begin)
		}
	}
	if at == last || at-first < (last-first)/20 {
		return first
	}
	return max(first, at-(last-at)/50)
}

// active is the end of the timeline, or the last change of memory before a wait
// for memory that ended it: a failed request may wait ten seconds for somebody
// to free, beside which a short run would not be seen.
func (sl *slot) active(end int64) int64 {
	list := sl.tl.OOMs()
	if len(list) == 0 || !sl.tl.End().Ended {
		return end
	}
	o := &list[len(list)-1]
	p := sl.mainPool()
	if p == nil {
		return end
	}
	if last, ok := changeBeside(sl, p, o.Time, -1); ok && o.Time-last > 1e9 {
		return last
	}
	return end
}

// waited is how long a request waited for memory before it ended the run; 0
// where none did for long.
func (sl *slot) waited(end int64) int64 {
	list := sl.tl.OOMs()
	if at := sl.active(end); at < end && len(list) > 0 {
		return list[len(list)-1].Time - at
	}
	return 0
}

// idle is the last wait for memory, where it is so long that the overview leaves
// it out; both 0 for none.
func (sl *slot) idle() (from, to int64) {
	first, last := sl.tl.Span()
	from = sl.active(last)
	if wait := sl.waited(last); float64(wait) > 0.4*float64(last-first) {
		return from, from + wait
	}
	return 0, 0
}

func (sl *slot) state() string {
	end := sl.tl.End()
	switch {
	case end.Ended && end.Reason == event.EndDone && sl.origin == "log":
		return "text"
	case end.Ended:
		return end.Reason.String()
	case sl.done:
		return "cut short"
	}
	return "running"
}

func (s *Session) settings() {
	a := s.out.open().key("fields")
	if sl := s.slots[Current]; sl != nil {
		f := sl.tl.Settings()
		a.text(f.Encode())
	} else {
		a.text("")
	}
	s.out = *a.close()
}

func theme(n int) *draw.Theme {
	if n == 1 {
		return draw.Dark()
	}
	return draw.Light()
}

// colors is the legends again, in the colours of a theme.
func (s *Session) colors(n int) {
	s.theme = n
	a := s.out.open().key("lanes").list()
	if sl := s.slots[Current]; sl != nil {
		for i := range s.lanes {
			a.open().key("key").text(laneKey(&s.lanes[i]))
			s.legend(a, sl, &s.lanes[i])
			a.close()
		}
	}
	a.endList().key("tokens").list()
	for _, t := range theme(n).Tokens() {
		a.list().text(t.Name).text(t.Color.Hex()).endList()
	}
	s.out = *a.endList().close()
}

func (s *Session) laneStatus(a *answer, sl *slot, l *draw.Lane) {
	name, sub := laneTitle(sl.tl, l)
	rows := 1
	switch l.Kind {
	case draw.OpLane, draw.SampleLane, draw.TransferLane, draw.InputLane:
		rows = len(draw.Rows(sl.tl, l))
	}
	a.open().key("key").text(laneKey(l)).key("kind").text(laneWord(l.Kind)).
		key("title").text(name).key("sub").text(sub).key("rows").num(int64(rows)).key("placed").truth(l.H > 0)
	s.legend(a, sl, l)
	a.close()
}

// legend lists the colours of a lane with their names: of the categories and
// classes that occur.
func (s *Session) legend(a *answer, sl *slot, l *draw.Lane) {
	th := theme(s.theme)
	a.key("legend").list()
	item := func(name string, c draw.Color) { a.open().key("name").text(name).key("color").text(c.Hex()).close() }
	switch l.Kind {
	case draw.MemoryLane:
		for _, c := range s.categories(sl, l.Pool) {
			item(sl.tl.Pools()[l.Pool].CategoryName(c), th.Category[c])
		}
	case draw.OpLane:
		for _, c := range []event.Category{event.OpForward, event.OpBackward, event.OpUpdate} {
			item(draw.PhaseName(uint8(c)), th.Phase[c])
		}
	case draw.TransferLane:
		for c, on := range causesSeen(sl.tl) {
			if on {
				item(causeShort(event.TransferCause(c)), th.Cause[c])
			}
		}
	case draw.InputLane:
		item("stall", th.Warning)
		item("queue", th.Queue)
		item("stage", th.Stage)
	}
	a.endList()
}

// causesSeen says which causes of transfer occur.
func causesSeen(tl *store.Timeline) (seen [store.NumClasses]bool) {
	first, last := tl.Span()
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.TransferTrack {
			continue
		}
		_, value, _ := tr.Sum(first, last+1)
		for c := range value {
			seen[c] = seen[c] || value[c] > 0
		}
	}
	return seen
}

// causeShort is a cause in one word, for the narrow head of a lane.
func causeShort(c event.TransferCause) string {
	switch c {
	case event.CauseInitial:
		return "initial"
	case event.CauseExplicit:
		return "copy"
	case event.CauseHostArgument:
		return "argument"
	default:
		return c.String()
	}
}

// categories are those that a pool ever held, top of the stack first.
func (s *Session) categories(sl *slot, pool int) (out []event.Category) {
	p := sl.tl.Pools()[pool]
	for c := event.Category(event.NumCategories); c > 0; c-- {
		if p.Held(c - 1) {
			out = append(out, c-1)
		}
	}
	return out
}

func laneWord(k draw.LaneKind) string {
	switch k {
	case draw.MemoryLane:
		return "memory"
	case draw.AddressLane:
		return "address"
	case draw.OpLane:
		return "op"
	case draw.TransferLane:
		return "transfer"
	case draw.InputLane:
		return "input"
	case draw.SampleLane:
		return "sample"
	}
	return "map"
}

// laneKey names a lane in questions and answers.
func laneKey(l *draw.Lane) string {
	switch l.Kind {
	case draw.MemoryLane, draw.AddressLane:
		return laneWord(l.Kind) + "-" + itoa(int64(l.Pool))
	case draw.OpLane:
		return laneWord(l.Kind) + "-" + itoa(int64(l.Device))
	}
	return laneWord(l.Kind)
}

func laneTitle(tl *store.Timeline, l *draw.Lane) (name, sub string) {
	switch l.Kind {
	case draw.MemoryLane, draw.AddressLane:
		p := tl.Pools()[l.Pool]
		name, sub = "Memory", poolWords(tl, p)
		if l.Kind == draw.AddressLane {
			name = "Addresses"
		}
		if p.Planned() { // the block around it is a temporary of the pool above
			name = map[draw.LaneKind]string{draw.MemoryLane: "Arena memory", draw.AddressLane: "Arena map"}[l.Kind]
		}
		return name, sub
	case draw.OpLane:
		return "Ops", short(tl.Device(l.Device).Name)
	case draw.TransferLane:
		return "Transfers", "by direction"
	case draw.InputLane:
		return "Input", "stages and stalls"
	case draw.SampleLane:
		return "Samples", "of their totals"
	}
	return "Overview", ""
}

// poolWords names a pool by its device, and by itself where the device has
// several. An arena of planned execution is named by its lane.
func poolWords(tl *store.Timeline, p *store.Pool) string {
	name := short(tl.Device(p.Device).Name)
	for _, o := range tl.Pools() {
		if o != p && o.Device == p.Device && !o.Planned() && !p.Planned() {
			return name + " · " + p.Name
		}
	}
	return name
}

// lane finds a lane by its key, or nil.
func (s *Session) lane(key string) *draw.Lane {
	for i := range s.lanes {
		if laneKey(&s.lanes[i]) == key {
			return &s.lanes[i]
		}
	}
	return nil
}

// pool is the pool that a lane is about, else the main one; nil without any of
// which something is told.
func (s *Session) pool(key string) *store.Pool {
	sl := s.slots[Current]
	if sl == nil {
		return nil
	}
	if l := s.lane(key); l != nil {
		switch l.Kind {
		case draw.MemoryLane, draw.AddressLane:
			return sl.tl.Pools()[l.Pool]
		case draw.OpLane:
			for _, p := range sl.tl.Pools() {
				if p.Device == l.Device {
					return p
				}
			}
		}
	}
	if p := sl.mainPool(); p != nil && !untaught(p) {
		return p
	}
	return nil
}
