package bridge

import (
	"strings"
	"time"

	"tideline/protocol/event"
	"tideline/shared/draw"
	"tideline/shared/store"
)

// The pictures of a page.
const (
	Lanes   = 0
	Minimap = 1
)

// picture is one canvas: its pixels and what was last drawn into them.
type picture struct {
	img      *draw.Image
	renderer draw.Renderer
	view     draw.View
}

// layoutHeight stands in for the real height while lanes are only listed.
const layoutHeight = 10_000

// arrange lists the lanes that the timeline has by now. The places that the
// page gave to lanes that were there before are kept.
func (s *Session) arrange() {
	sl := s.slots[Current]
	if sl == nil {
		s.lanes = nil
		return
	}
	list := draw.Layout(sl.tl, layoutHeight, 1, 1)
	lanes := make([]draw.Lane, 0, len(list))
	for _, l := range list {
		if l.Kind == draw.MinimapLane || l.Kind == draw.MemoryLane && sl.origin == "log" {
			continue // a log tells of moments: no use over time
		}
		l.Y, l.H = 0, 0 // not drawn before the page has placed it
		if old := s.lane(laneKey(&l)); old != nil {
			l.Y, l.H = old.Y, old.H
		}
		lanes = append(lanes, l)
	}
	s.lanes = lanes
}

// layout takes the places of lanes in device pixels: "key:y:height".
func (s *Session) layout(arg func(int) string) {
	for i := 1; arg(i) != ""; i++ {
		p := strings.Split(arg(i), ":")
		if len(p) != 3 {
			continue
		}
		if l := s.lane(p[0]); l != nil {
			l.Y, l.H = int(number(p[1])), int(number(p[2]))
		}
	}
	s.pictures[Lanes].renderer.Invalidate()
	s.out.open().close()
}

func (s *Session) invalidate() {
	for i := range s.pictures {
		s.pictures[i].renderer.Invalidate()
	}
}

// Invalidate makes the next Draw of a picture a whole one.
func (s *Session) Invalidate(n int) {
	if n >= 0 && n < len(s.pictures) {
		s.pictures[n].renderer.Invalidate()
	}
}

// maxPixels bounds a picture: four screens of 8K.
const maxPixels = 4 * 7680 * 4320

// drawTime is how long a picture is drawn while the hand moves it. A frame may
// cost 4 ms, of which as much is left for a processor that others use as well;
// the rest of the picture follows at once.
const drawTime = 2 * time.Millisecond

// Hurry makes Draw leave the rest of a moved picture for the next Draw when a
// frame's time is up; Pending tells. What is not exact yet is the picture
// before, moved to its place.
func (s *Session) Hurry() {
	enough := func() bool {
		// The next piece takes about as long as the last one did.
		now := time.Now()
		piece := now.Sub(s.asked)
		s.asked = now
		return now.Sub(s.began)+piece > drawTime
	}
	for i := range s.pictures {
		s.pictures[i].renderer.Enough = enough
	}
}

// Pending reports whether the last Draw of a picture left some of it.
func (s *Session) Pending(n int) bool {
	return n >= 0 && n < len(s.pictures) && s.pictures[n].renderer.Pending()
}

// Draw paints what changed of a picture of w x h pixels and returns the pieces
// touched. The pixels are in Pixels. The window is moved by less than a pixel,
// so that panning draws no more than what comes in: see draw.View.Align.
func (s *Session) Draw(n, w, h, dpr int, t0, t1 int64, th int) []draw.Rect {
	sl := s.slots[Current]
	if sl == nil || n < 0 || n >= len(s.pictures) || w <= 0 || h <= 0 || w > maxPixels/h || t1 <= t0 {
		return nil
	}
	p := &s.pictures[n]
	if p.img == nil || p.img.W != w || p.img.H != h {
		p.img = draw.NewImage(w, h)
	}
	if s.pictures[n].renderer.Enough != nil {
		s.began = time.Now()
		s.asked = s.began
	}
	s.theme = th
	s.fill(&p.view, sl, n, w, h, dpr, t0, t1)
	if n == Lanes {
		p.view.Align()
	}
	return p.renderer.Frame(p.img, sl.tl, &p.view)
}

func (s *Session) fill(v *draw.View, sl *slot, n, w, h, dpr int, t0, t1 int64) {
	lanes := v.Lanes[:0]
	*v = draw.View{T0: t0, T1: t1, W: w, H: h, DPR: max(1, dpr), Theme: theme(s.theme), Hide: s.hide}
	if b := s.slots[Base]; b != nil {
		v.Base = b.tl
	}
	if n == Minimap {
		if p := sl.mainPool(); p != nil {
			l := draw.Lane{Kind: draw.MinimapLane, Pool: p.Index, H: h}
			l.Idle0, l.Idle1 = sl.idle()
			lanes = append(lanes, l)
		}
		v.Lanes = lanes
		return
	}
	v.Parts, v.PartsSeen = s.parts(), s.sieve.seen
	for _, l := range s.lanes {
		if l.H > 0 && l.Y+l.H <= h {
			lanes = append(lanes, l)
		}
	}
	v.Lanes = lanes
}

// Pixels are those of a picture, four bytes each; nil before the first Draw.
func (s *Session) Pixels(n int) []byte {
	if n < 0 || n >= len(s.pictures) || s.pictures[n].img == nil {
		return nil
	}
	return s.pictures[n].img.Pix
}

// scales labels what lies on the lanes: ticks, marks and rows, in device
// pixels of the picture's lanes.
func (s *Session) scales(t0, t1 int64) {
	a := s.out.open().key("lanes").list()
	if sl := s.slots[Current]; sl != nil && t1 > t0 {
		v := s.pictures[Lanes].view
		v.T0, v.T1 = t0, t1
		for i := range s.lanes {
			if l := &s.lanes[i]; l.H > 0 {
				s.laneScale(a, sl, &v, l)
			}
		}
	}
	s.out = *a.endList().close()
}

func (s *Session) laneScale(a *answer, sl *slot, v *draw.View, l *draw.Lane) {
	a.open().key("key").text(laneKey(l))
	var top int64
	a.key("ticks").list()
	if l.Kind == draw.MemoryLane {
		top = draw.Scale(sl.tl, v, l)
		for _, t := range draw.ByteTicks(top, l.H, 44*max(1, v.DPR)) {
			// Ticks are counted from the lane's lower edge.
			if t.At > 0 && t.Pixel < l.H-12*v.DPR {
				a.open().key("y").num(int64(l.H - t.Pixel)).key("label").text(t.Label).close()
			}
		}
	}
	a.endList().key("marks").list()
	if l.Kind == draw.MemoryLane && top > 0 {
		s.marks(a, sl, l, top)
	}
	if l.Kind == draw.AddressLane && sl.origin == "log" {
		s.holeMark(a, sl, v, l)
	}
	a.endList().key("rows").list()
	switch l.Kind {
	case draw.OpLane, draw.SampleLane, draw.TransferLane, draw.InputLane:
		for _, r := range draw.Rows(sl.tl, l) {
			a.open().key("y").num(int64(r.Y - l.Y)).key("h").num(int64(r.H)).key("title").text(r.Title).close()
		}
	}
	a.endList().close()
}

// marks are the lines of a memory lane that have a name.
func (s *Session) marks(a *answer, sl *slot, l *draw.Lane, top int64) {
	p := sl.tl.Pools()[l.Pool]
	t0, t1 := sl.span()
	mark := func(kind, label string, n int64) {
		if n <= 0 || n > top {
			return
		}
		y := int64(float64(l.H) * (1 - float64(n)/float64(top)))
		a.open().key("y").num(y).key("kind").text(kind).key("label").text(label + " " + size(n)).close()
	}
	mark("limit", "limit", p.Limit)
	mark("reserved", "reserved", p.HighestReserved(t0, t1+1))
	mark("peak", "peak", p.HighestInUse(t0, t1+1))
}

// holeMark is the largest hole of a failure in a log, where the log lists it:
// what the request had to fit into.
func (s *Session) holeMark(a *answer, sl *slot, v *draw.View, l *draw.Lane) {
	t := v.T0 + (v.T1-v.T0)/2
	if !sl.listed(t) {
		return
	}
	p, o := sl.tl.Pools()[l.Pool], &sl.tl.OOMs()[sl.dumpAt(t)]
	m, _ := event.ParseChunkMap(sl.tl.Text(o.ChunkMap))
	list := largestHoles(m, 1)
	if o.Pool != l.Pool || len(list) == 0 {
		return
	}
	c := list[0].chunk
	off, ok := p.Offset(c.Address, o.Time)
	if !ok {
		return
	}
	y := l.Row(p, off+c.Size)
	a.open().key("y").num(int64(y)).key("h").num(int64(l.Row(p, off) - y)).
		key("kind").text("hole").key("label").text("largest hole " + size(c.Size)).close()
}

// at is what every lane holds at an instant.
func (s *Session) at(t int64) {
	a := s.out.open()
	s.writeAt(a, t)
	s.out = *a.close()
}

func (s *Session) writeAt(a *answer, t int64) {
	a.key("t").num(t)
	sl := s.slots[Current]
	if sl == nil {
		a.key("lanes").open().close()
		return
	}
	if st, ok := sl.tl.StepAt(t); ok {
		a.key("step").num(int64(st.Step))
	}
	a.key("lanes").open()
	for i := range s.lanes {
		l := &s.lanes[i]
		a.key(laneKey(l)).open()
		switch l.Kind {
		case draw.MemoryLane:
			s.memoryAt(a, sl, l.Pool, t)
		case draw.AddressLane:
			s.addressAt(a, sl, l.Pool, t)
		case draw.OpLane:
			s.opAt(a, sl, l.Device, t)
		case draw.TransferLane:
			s.transferAt(a, sl, t)
		case draw.InputLane:
			s.inputAt(a, sl, t)
		case draw.SampleLane:
			s.samplesAt(a, sl, t)
		}
		a.close()
	}
	a.close()
}

// seen is the moment of a pool that a time stands for: a failure at that time,
// else the fullest; the fullest in any case where the page asks for a peak.
func (s *Session) seen(sl *slot, p *store.Pool, t int64) store.Moment {
	if s.peaks {
		return p.Fullest(t)
	}
	return sl.tl.Seen(p, t)
}

// time reads a time of a question: nanoseconds, with a p at the end for the
// peak at that time rather than a failure that shares it.
func (s *Session) time(word string) int64 {
	word, s.peaks = strings.CutSuffix(word, "p")
	return number(word)
}

func (s *Session) memoryAt(a *answer, sl *slot, pool int, t int64) {
	p := sl.tl.Pools()[pool]
	m := s.seen(sl, p, t)
	st := p.In(m)
	words := " in use"
	if partial(p) {
		words = " listed in use"
	}
	a.key("now").text(size(st.InUse) + words)
	s.writePassing(a, p, m, st.InUse)
	if st.Reserved > 0 {
		a.key("sub").text(size(st.Reserved) + " reserved")
	}
	// By name: while a run goes on, the page may not know the newest category.
	a.key("legend").open()
	for _, c := range s.categories(sl, pool) {
		a.key(p.CategoryName(c)).num(st.ByCategory[c])
	}
	a.close()
}

func (s *Session) addressAt(a *answer, sl *slot, pool int, t int64) {
	p := sl.tl.Pools()[pool]
	if p.Live() > 20_000 || p.Allocs() > 2_000_000 {
		return // a chunk map of that many blocks is made on demand only
	}
	m := p.ChunkMapIn(s.seen(sl, p, t))
	_, used, free, largest := m.Totals()
	if untold(sl, p) {
		a.key("now").text(plural(blocks(m), "block"))
		a.key("sub").text("free memory is not told")
		return
	}
	if sl.origin == "log" && !sl.listed(t) {
		a.key("now").text(size(used) + " listed")
		a.key("sub").text("the text does not list all chunks")
		return
	}
	a.key("now").text(size(largest) + " largest hole")
	a.key("sub").text(size(free) + " free, " + plural(int64(len(m)), "region"))
}

// untold says whether another program's file tells no free memory of a pool:
// its regions are no more than places of its blocks.
func untold(sl *slot, p *store.Pool) bool {
	first, last := sl.tl.Span()
	return sl.origin != "log" && len(sl.tl.Settings()) == 0 && p.HighestReserved(first, last+1) == 0
}

func (s *Session) opAt(a *answer, sl *slot, dev event.DeviceID, t int64) {
	for _, tr := range sl.tl.Tracks() {
		if tr.Kind != store.OpTrack || tr.Device != dev {
			continue
		}
		if hit := tr.Overlapping(nil, t, t+1, 1); len(hit) > 0 {
			a.key("now").text(sl.tl.Text(tr.Span(int(hit[0])).Op))
			return
		}
	}
	a.key("now").text("idle")
}

func (s *Session) transferAt(a *answer, sl *slot, t int64) {
	var n, bytes int64
	for _, tr := range sl.tl.Tracks() {
		if tr.Kind != store.TransferTrack {
			continue
		}
		for _, i := range tr.Overlapping(nil, t, t+1, 16) {
			n++
			bytes += tr.Span(int(i)).Value
		}
	}
	if n == 0 {
		a.key("now").text("none")
		return
	}
	a.key("now").text(plural(n, "transfer") + ", " + size(bytes))
}

func (s *Session) inputAt(a *answer, sl *slot, t int64) {
	now := "ready"
	for _, tr := range sl.tl.Tracks() {
		if tr.Kind != store.StallTrack {
			continue
		}
		if hit := tr.Overlapping(nil, t, t+1, 1); len(hit) > 0 {
			sp := tr.Span(int(hit[0]))
			now = "waiting for input"
			if b := sl.tl.Text(sp.Op); b != "" {
				now = "waiting for " + b
			}
		}
	}
	a.key("now").text(now)
	for _, x := range sl.tl.SeriesList() {
		if x.Kind != store.QueueSeries {
			continue
		}
		if v, ok := x.At(t); ok {
			a.key("sub").text(sl.tl.Text(x.Name) + ": " + itoa(v) + " of " + itoa(x.Second))
			return
		}
	}
}
