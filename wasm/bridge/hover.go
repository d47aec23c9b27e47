package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/draw"
	"tideline/shared/store"
)

// hover answers what lies under a point of the lanes, in device pixels, and
// what all lanes hold at that time.
func (s *Session) hover(x, y int, t int64) {
	a := s.out.open()
	sl := s.slots[Current]
	if sl != nil {
		v := &s.pictures[Lanes].view
		if v.T1 > v.T0 && len(v.Lanes) > 0 {
			h := draw.HitTest(sl.tl, v, x, y)
			s.hit(a, sl, &h)
		}
	}
	a.key("at").open()
	s.writeAt(a, t)
	s.out = *a.close().close()
}

// lines is a hit's title and the facts under it.
type lines struct {
	a    *answer
	open bool
}

func (s *Session) hit(a *answer, sl *slot, h *draw.Hit) {
	begin := func(title string) *lines {
		a.key("hit").open().key("title").text(title).key("lines").list()
		return &lines{a, true}
	}
	var l *lines
	tl := sl.tl
	switch h.Kind {
	case draw.MemoryHit:
		if !h.InBand {
			break
		}
		l = s.bandHit(begin, tl, h)
	case draw.AllocHit:
		l = s.allocHit(begin, tl, h)
	case draw.HoleHit:
		l = begin("Free")
		l.add("hole", size(h.Size))
	case draw.SpanHit:
		l = s.spanHit(begin, tl, h)
	case draw.OOMHit:
		if h.Index < len(tl.OOMs()) {
			o := tl.OOMs()[h.Index]
			l = begin("Out of memory: " + causeWords(o.Cause))
			l.add("asked", size(o.Requested))
			l.add("op", tl.Text(o.Op))
		}
	case draw.QueueHit:
		if h.Index < len(tl.SeriesList()) {
			x := tl.SeriesList()[h.Index]
			if x.Kind == store.SampleSeries {
				l = begin(tl.Text(x.Name))
				l.add("device", short(tl.Device(x.Device).Name))
				l.add("value", sampleText(tl.Text(x.Name), x, h.Value))
				break
			}
			l = begin("Queue of " + tl.Text(x.Name))
			l.add("buffered", itoa(h.Value)+" of "+itoa(x.Second))
		}
	}
	if l == nil {
		return
	}
	if h.Count > 1 {
		more := " share this pixel"
		if h.Kind == draw.AllocHit && s.part(h.Pool) != nil {
			more += ", of which " + itoa(int64(h.Passing)) + " match"
		}
		l.add("here", itoa(int64(h.Count))+more+": zoom in")
	}
	if sl.origin != "log" { // a log's times are made up
		l.add("at", clock(h.Time))
	}
	if st, ok := tl.StepAt(h.Time); ok {
		l.add("step", itoa(int64(st.Step)+1))
	}
	a.endList().close()
}

func (l *lines) add(k, v string) {
	if v != "" {
		l.a.list().text(k).text(v).endList()
	}
}

// bandHit tells the block under a point of a stack, if one is told apart there,
// and the category that it is in.
func (s *Session) bandHit(begin func(string) *lines, tl *store.Timeline, h *draw.Hit) *lines {
	p := tl.Pools()[h.Pool]
	holds := size(h.Size)
	if part := s.part(h.Pool); part != nil {
		if part.Knows(h.Moment) {
			in := part.In(h.Moment)
			holds += ", matching " + size(in[h.Category])
		}
	}
	if h.Index >= 0 {
		l := s.allocHit(begin, tl, h)
		if l != nil {
			if sl, birth := s.slots[Current], p.Alloc(h.Index).Birth; sl.origin != "log" {
				age := clock(max(0, h.Time-birth))
				if sl.early(birth) {
					age += " or more"
				}
				l.add("age", age)
			}
			l.add(kindWord(h.Category)+" holds", holds)
		}
		return l
	}
	l := begin(heading(p, h.Category))
	l.add("holds", holds)
	if h.Merged > 1 {
		l.add("here", size(h.Rest)+" in "+itoa(int64(h.Merged))+" blocks, too thin or too short-lived to tell apart")
	}
	return l
}

// kindWord is what a category is: groups are by who asked.
func kindWord(c event.Category) string {
	if c != c.Plain() {
		return "group"
	}
	return "category"
}

func (s *Session) allocHit(begin func(string) *lines, tl *store.Timeline, h *draw.Hit) *lines {
	if h.Pool < 0 || h.Pool >= len(tl.Pools()) || h.Index < 0 || h.Index >= tl.Pools()[h.Pool].Allocs() {
		return nil
	}
	al := tl.Pools()[h.Pool].Alloc(h.Index)
	class := tl.Pools()[h.Pool].CategoryName(al.Category)
	name := tl.Text(al.Tensor)
	if name == "" {
		name = tl.Text(al.Op)
	}
	if name == "" {
		name = class
	}
	l := begin(oneLine(name))
	l.add("filter", passesWords(s.part(h.Pool), h.Index))
	l.add("size", size(al.Size))
	if w := al.Size - al.Requested; w > 0 {
		l.add("asked", size(al.Requested)+" (+"+size(w)+" unused tail)")
	}
	if class != tl.Text(al.Op) { // a group is called what its op is
		l.add("category", class)
	}
	l.add("op", tl.Text(al.Op))
	l.add("address", address(al.Address))
	if s.slots[Current].origin == "log" {
		return l
	}
	switch early := s.slots[Current].early(al.Birth); {
	case early && al.Death == store.Alive:
		l.add("lives", "since the recording began, or before")
	case early:
		l.add("lives", "until "+clock(al.Death)+", since the recording began or before")
	case al.Death == store.Alive:
		l.add("lives", "from "+clock(al.Birth)+" on")
	default:
		l.add("lives", clock(al.Death-al.Birth)+" from "+clock(al.Birth))
	}
	return l
}

func (s *Session) spanHit(begin func(string) *lines, tl *store.Timeline, h *draw.Hit) *lines {
	if h.Track < 0 || h.Track >= len(tl.Tracks()) || h.Index < 0 || h.Index >= tl.Tracks()[h.Track].Spans() {
		return nil
	}
	tr := tl.Tracks()[h.Track]
	sp := tr.Span(h.Index)
	l := begin(spanTitle(tl, tr, &sp))
	if sp.End != store.Alive {
		l.add("takes", clock(sp.End-sp.Begin))
	}
	switch tr.Kind {
	case store.OpTrack:
		l.add("phase", phaseWords(sp.Class))
	case store.TransferTrack:
		l.add("bytes", size(sp.Value))
		if d := sp.End - sp.Begin; sp.End != store.Alive && d > 0 {
			l.add("rate", size(int64(float64(sp.Value)*1e9/float64(d)))+"/s")
		}
		l.add("cause", event.TransferCause(sp.Class).String())
		if sp.Flags&event.Pinned != 0 {
			l.add("host side", "pinned")
		}
		l.add("tensor", tl.Text(sp.Tensor))
	case store.StallTrack:
		l.add("device", short(tl.Device(tr.Device).Name))
		l.add("waits for", tl.Text(sp.Op))
	case store.StageTrack:
		l.add("bytes out", size(sp.Value))
	}
	return l
}

func spanTitle(tl *store.Timeline, tr *store.Track, sp *store.Span) string {
	switch tr.Kind {
	case store.TransferTrack:
		return direction(tl, tr)
	case store.StallTrack:
		return "Waiting for input"
	case store.StageTrack:
		return "Stage " + tl.Text(tr.Op)
	case store.StepTrack:
		return "Step " + itoa(int64(sp.Step)+1)
	}
	return tl.Text(sp.Op)
}

func direction(tl *store.Timeline, tr *store.Track) string {
	return short(tl.Device(tr.Device).Name) + " → " + short(tl.Device(tr.Peer).Name)
}

func phaseWords(class uint8) string {
	switch event.Category(class) {
	case event.OpForward:
		return "forward"
	case event.OpBackward:
		return "backward"
	case event.OpUpdate:
		return "update"
	case event.OpInput:
		return "input"
	case event.OpCopy:
		return "copy"
	default:
		return ""
	}
}

// step moves the cursor to the change before or after it: of the lane's pool
// for memory and addresses, of its spans else.
func (s *Session) step(t, dir int64, key string) {
	a := s.out.open()
	if sl := s.slots[Current]; sl != nil {
		if at, ok := s.neighbour(sl, t, dir, key); ok {
			a.key("t").num(at)
		}
	}
	s.out = *a.close()
}

func (s *Session) neighbour(sl *slot, t, dir int64, key string) (int64, bool) {
	if l := s.lane(key); l != nil && l.Kind != draw.MemoryLane && l.Kind != draw.AddressLane {
		best, found := int64(0), false
		for _, tr := range sl.tl.Tracks() {
			if !onLane(l, tr) {
				continue
			}
			at, ok := beginBeside(tr, t, dir)
			if ok && (!found || (dir > 0) == (at < best)) {
				best, found = at, true
			}
		}
		return best, found
	}
	p := s.pool(key)
	if p == nil {
		return 0, false
	}
	return changeBeside(sl, p, t, dir)
}

func onLane(l *draw.Lane, tr *store.Track) bool {
	switch l.Kind {
	case draw.OpLane:
		return tr.Kind == store.OpTrack && tr.Device == l.Device
	case draw.TransferLane:
		return tr.Kind == store.TransferTrack
	case draw.InputLane:
		return tr.Kind == store.StallTrack || tr.Kind == store.StageTrack
	}
	return false
}

// beginBeside is the begin of the span after or before a time.
func beginBeside(tr *store.Track, t, dir int64) (int64, bool) {
	if tr.Spans() == 0 {
		return 0, false
	}
	// Spans up to t, by bisection over their begins.
	lo, hi := 0, tr.Spans()
	for lo < hi {
		m := (lo + hi) / 2
		if b := tr.Span(m).Begin; b < t || b == t && dir > 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if dir > 0 {
		if lo == tr.Spans() {
			return 0, false
		}
		return tr.Span(lo).Begin, true
	}
	if lo == 0 {
		return 0, false
	}
	return tr.Span(lo - 1).Begin, true
}

// changeBeside is the pool's next change after a time, or the last before it,
// found by halving a range until it holds one.
func changeBeside(sl *slot, p *store.Pool, t, dir int64) (int64, bool) {
	first, last := sl.tl.Span()
	a, b := t+1, last+1
	if dir < 0 {
		a, b = first, t
	}
	if a >= b || p.Changes(a, b) == 0 {
		return 0, false
	}
	for b-a > 1 {
		m := a + (b-a)/2
		near, far := p.Changes(a, m), p.Changes(m, b)
		if dir > 0 && near > 0 || dir < 0 && far == 0 {
			b = m
		} else {
			a = m
		}
	}
	return a, true
}

func (s *Session) peakAt(key string) {
	a := s.out.open()
	if p := s.pool(key); p != nil {
		t0, t1 := s.slots[Current].span()
		pk := p.Peak(t0, t1+1, 1)
		a.key("t").num(pk.Time)
	}
	s.out = *a.close()
}

func (s *Session) nextOOM(t, dir int64) {
	a := s.out.open()
	if sl := s.slots[Current]; sl != nil {
		o, ok := sl.tl.NextOOM(t)
		if dir < 0 {
			o, ok = sl.tl.PrevOOM(t)
		} else if !ok { // after the last one begins again
			o, ok = sl.tl.NextOOM(-1 << 62)
		}
		if ok {
			a.key("t").num(o.Time)
		}
	}
	s.out = *a.close()
}

const maxHits = 500

func (s *Session) find(text string) {
	a := s.out.open().key("hits").list()
	more := false
	if sl := s.slots[Current]; sl != nil && text != "" {
		hits, _, done := sl.tl.Search(store.Query{Text: text, Limit: maxHits}, store.Cursor{})
		more = !done
		for _, h := range hits {
			a.open().key("t").num(h.Time).key("name").text(hitName(sl.tl, &h)).key("size").num(h.Size)
			if h.Kind == store.SpanHit {
				if sp := sl.tl.Tracks()[h.Track].Span(h.Index); sp.End != store.Alive {
					a.key("t1").num(sp.End)
				}
			}
			a.close()
		}
	}
	s.out = *a.endList().key("more").truth(more).close()
}

func hitName(tl *store.Timeline, h *store.Hit) string {
	if h.Kind == store.AllocHit {
		al := tl.Pools()[h.Pool].Alloc(h.Index)
		if n := tl.Text(al.Tensor); n != "" {
			return oneLine(n)
		}
		return tl.Text(al.Op)
	}
	tr := tl.Tracks()[h.Track]
	sp := tr.Span(h.Index)
	return spanTitle(tl, tr, &sp)
}
