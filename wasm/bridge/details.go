package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/draw"
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
}

// details answers "details TAB AT T0 T1 LANE".
func details(s *Session, arg func(int) string, _ string) {
	a := s.out.open()
	sl := s.slots[Current]
	if sl != nil {
		r := &request{
			sl: sl, at: s.time(arg(2)), t0: number(arg(3)), t1: number(arg(4)),
			lane: arg(5), pool: s.pool(arg(5)),
		}
		r.t1 = max(r.t1, r.t0+1)
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
		n := failureWords(r.sl.dumpAt(r.at), len(r.sl.logs))
		if r.pool != nil {
			n = r.pool.Name + " · " + n
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

// nothing answers for a timeline that tells no memory: with why it ended, where
// that is told.
func nothing(a *answer, r *request) {
	if end := r.sl.tl.End(); end.Ended && end.Text != "" && end.Reason != event.EndDone {
		a.verdict(title(end.Reason.String())+" before the first allocation", false, end.Text)
		return
	}
	a.key("text").text("This timeline tells of no memory.")
}

// live is what is allocated at the cursor.
func (s *Session) live(a *answer, r *request) {
	if r.pool == nil {
		nothing(a, r)
		return
	}
	p := r.pool
	a.note(r.where())
	m := s.seen(r.sl, p, r.at)
	st := p.In(m)
	ids := p.LiveIn(nil, m)
	f := []figure{
		{name: "In use", value: size(st.InUse)},
		{name: "Unused tails", value: size(st.Waste), sub: percent(st.Waste, st.InUse)},
	}
	if st.Reserved > 0 {
		f = append(f, figure{name: "Reserved", value: size(st.Reserved)},
			figure{name: "Reserved, unused", value: size(st.Reserved - st.InUse), sub: percent(st.Reserved-st.InUse, st.Reserved)})
	}
	if p.Limit > 0 {
		f = append(f, figure{name: "Limit", value: size(p.Limit)})
	}
	f = append(f, figure{name: "Live blocks", value: itoa(int64(len(ids)))})
	a.figures(f...)
	p.Sort(ids, store.BySize)
	a.key("tables").list()
	s.allocTable(a, r.sl.tl, p, "Live allocations, largest first", ids, r.at)
	a.endList()
}

func (s *Session) allocTable(a *answer, tl *store.Timeline, p *store.Pool, caption string, ids []int32, at int64) {
	th := theme(s.theme)
	more := max(0, len(ids)-maxRows)
	log := s.slots[Current].origin == "log" // which has no times
	columns := []column{
		{"Tensor", kText},
		{"Category", kText},
		{"Size", kBytes},
		{"Requested", kBytes},
		{"Address", kAddr},
		{"Op", kText},
		{"Step", kCount},
		{"Age", kTime},
		{"Lifetime", kTime},
	}
	if log {
		columns = columns[:5]
	}
	a.table(caption, more, columns, func() {
		for _, id := range ids[:len(ids)-more] {
			al := p.Alloc(int(id))
			name := tl.Text(al.Tensor)
			if name == "" {
				name = "–"
			}
			a.row().text(name).text(al.Category.String()).num(al.Size).num(al.Requested).text(address(al.Address))
			if log {
				a.endRow(rowEnd{color: th.Category[al.Category].Hex()})
				continue
			}
			a.text(tl.Text(al.Op))
			if al.Step >= 0 {
				a.num(int64(al.Step) + 1)
			} else {
				a.null()
			}
			a.num(max(0, at-al.Birth))
			end := rowEnd{color: th.Category[al.Category].Hex(), goes: true, t: al.Birth}
			if al.Death == store.Alive {
				a.text("to the end")
			} else {
				a.num(al.Death - al.Birth)
				end.t1, end.ranged = al.Death, true
			}
			a.endRow(end)
		}
	})
}

// chunks is the allocator's map at the cursor: regions and holes.
func (s *Session) chunks(a *answer, r *request) {
	if r.pool == nil {
		nothing(a, r)
		return
	}
	a.note(r.where())
	m := r.pool.ChunkMapIn(s.seen(r.sl, r.pool, r.at))
	pool, used, free, largest := m.Totals()
	frag := "–"
	if free > 0 {
		frag = percent(free-largest, free)
	}
	a.figures(
		figure{name: "Reserved", value: size(pool), sub: "in " + plural(int64(len(m)), "region")},
		figure{name: "In use", value: size(used), sub: percent(used, pool)},
		figure{name: "Free", value: size(free), sub: "in " + plural(int64(holes(m)), "hole")},
		figure{name: "Largest hole", value: size(largest)},
		figure{name: "Fragmentation", value: frag, sub: "of free bytes outside the largest hole"},
	)
	a.strip(m)
	a.key("tables").list()
	regionTable(a, m)
	holeTable(a, m)
	a.endList()
}

func regionTable(a *answer, m event.ChunkMap) {
	a.table("Regions, by address", 0, []column{
		{"Region", kAddr},
		{"Size", kBytes},
		{"In use", kBytes},
		{"Free", kBytes},
		{"Largest hole", kBytes},
		{"Chunks", kCount},
		{"Holes", kCount},
		{"In use, share", kPercent},
	}, func() {
		for i := range m {
			one := event.ChunkMap{m[i]}
			pool, used, free, largest := one.Totals()
			a.row().text(address(m[i].Address)).num(pool).num(used).num(free).num(largest).
				num(int64(len(m[i].Chunks))).num(int64(holes(one)))
			if pool > 0 {
				a.real(float64(used) / float64(pool))
			} else {
				a.null()
			}
			a.endRow(rowEnd{})
		}
	})
}

func holeTable(a *answer, m event.ChunkMap) {
	list := largestHoles(m, 60)
	a.table("Holes, largest first", max(0, holes(m)-len(list)), []column{
		{"Address", kAddr}, {"Size", kBytes}, {"Share", kShare}, {"Between", kText},
	}, func() {
		for _, h := range list {
			a.row().text(address(h.chunk.Address)).num(h.chunk.Size).num(h.chunk.Size).text(h.between).endRow(rowEnd{})
		}
	})
}

type hole struct {
	chunk   event.Chunk
	between string
}

// largestHoles keeps the n largest free chunks, largest first.
func largestHoles(m event.ChunkMap, n int) (out []hole) {
	for _, r := range m {
		for i, c := range r.Chunks {
			if c.InUse {
				continue
			}
			at := len(out)
			for at > 0 && out[at-1].chunk.Size < c.Size {
				at--
			}
			if at >= n {
				continue
			}
			h := hole{c, "start of its region"}
			if i > 0 {
				h.between = "after " + size(r.Chunks[i-1].Size)
			}
			if i+1 < len(r.Chunks) {
				h.between += ", before " + size(r.Chunks[i+1].Size)
			} else {
				h.between += ", end of its region"
			}
			out = append(out, hole{})
			copy(out[at+1:], out[at:])
			out[at] = h
			out = out[:min(len(out), n)]
		}
	}
	return out
}

// peak is what made up the highest use: of the whole run, or of the selection.
func (s *Session) peak(a *answer, r *request) {
	if r.pool == nil {
		nothing(a, r)
		return
	}
	p, tl := r.pool, r.sl.tl
	first, last := r.sl.span()
	pk := p.Peak(first, last+1, 1<<30)
	where := r.poolName() + " · peak" + r.sl.atClock(pk.Time)
	if st, ok := tl.StepAt(pk.Time); ok {
		where += " · step " + itoa(int64(st.Step)+1)
	}
	a.note(where)
	f := []figure{{name: "Peak in use", value: size(pk.InUse), sub: plural(int64(pk.Count), "block")}}
	if pk.Reserved > 0 {
		f = append(f, figure{name: "Reserved then", value: size(pk.Reserved), sub: percent(pk.InUse, pk.Reserved) + " used"})
	}
	if p.Limit > 0 {
		f = append(f, figure{name: "Limit", value: size(p.Limit), sub: percent(pk.InUse, p.Limit) + " reached"})
	}
	f = append(f, figure{name: "Unused tails", value: size(pk.Waste), sub: percent(pk.Waste, pk.InUse)})
	a.figures(f...)
	if planned(tl, p) {
		s.arenaPeak(a, r)
		return
	}
	th := theme(s.theme)
	a.key("tables").list()
	a.table("By category, at the peak", 0, []column{{"Category", kText}, {"Bytes", kBytes}, {"Of the peak", kPercent}, {"", kShare}}, func() {
		for c := range event.NumCategories {
			if n := pk.ByCategory[c]; n > 0 {
				a.row().text(event.Category(c).String()).num(n).real(float64(n) / float64(pk.InUse)).num(n).
					endRow(rowEnd{color: th.Category[c].Hex(), goes: true, t: pk.Time})
			}
		}
	})
	more := max(0, len(pk.Top)-maxRows)
	a.table("By op, at the peak", more, []column{{"Op", kText}, {"Category", kText}, {"Bytes", kBytes}, {"Blocks", kCount}, {"Unused tails", kBytes}, {"", kShare}}, func() {
		for _, t := range pk.Top[:len(pk.Top)-more] {
			name := tl.Text(t.Op)
			if name == "" {
				name = "–"
			}
			a.row().text(name).text(t.Category.String()).num(t.Bytes).num(int64(t.Count)).num(t.Waste).num(t.Bytes).
				endRow(rowEnd{color: th.Category[t.Category].Hex(), goes: true, t: pk.Time})
		}
	})
	a.endList()
}

// transfers sums what crossed between devices in the selection or the view.
func (s *Session) transfers(a *answer, r *request) {
	tl := r.sl.tl
	var bytes, nanos, count int64
	type line struct {
		track        *store.Track
		cause        int
		n, size, dur int64
	}
	var list []line
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.TransferTrack {
			continue
		}
		sums := causes(tr, r.t0, r.t1)
		for c := range sums {
			if x := sums[c]; x.count > 0 {
				list = append(list, line{tr, c, x.count, x.bytes, x.nanos})
				bytes, nanos, count = bytes+x.bytes, nanos+x.nanos, count+x.count
			}
		}
	}
	if r.sl.origin == "log" {
		a.key("text").text("A log of a failure tells nothing of transfers.")
		return
	}
	a.note(clock(r.t0) + " – " + clock(r.t1))
	if len(list) == 0 {
		a.key("text").text("Nothing crossed between devices in this part of the timeline.")
		return
	}
	span := r.t1 - r.t0
	a.figures(
		figure{name: "Transfers", value: itoa(count)},
		figure{name: "Bytes", value: size(bytes)},
		figure{name: "Copying", value: clock(nanos), sub: percent(nanos, span) + " of the time shown"},
	)
	th := theme(s.theme)
	a.key("tables").list()
	a.table("By direction and cause", 0, []column{
		{"Cause", kText}, {"From", kText}, {"To", kText}, {"Count", kCount}, {"Bytes", kBytes}, {"Time", kTime}, {"Rate", kRate}, {"Bytes, share", kShare},
	}, func() {
		for _, l := range list {
			rate := int64(0)
			if l.dur > 0 {
				rate = int64(float64(l.size) * 1e9 / float64(l.dur))
			}
			a.row().text(event.TransferCause(l.cause).String()).text(short(tl.Device(l.track.Device).Name)).text(short(tl.Device(l.track.Peer).Name)).
				num(l.n).num(l.size).num(l.dur).num(rate).num(l.size).endRow(rowEnd{color: th.Cause[l.cause].Hex()})
		}
	})
	a.endList()
}

type causeSum struct{ count, bytes, nanos int64 }

// causes sums a track's spans by cause. Times and bytes come from the track's
// sums; the counts of causes that share a track are counted one by one up to
// a bound, and belong to the first cause beyond it.
func causes(tr *store.Track, t0, t1 int64) (out [store.NumClasses]causeSum) {
	busy, value, n := tr.Sum(t0, t1)
	only := -1
	for c := range busy {
		if busy[c] > 0 || value[c] > 0 {
			out[c].bytes, out[c].nanos = value[c], busy[c]
			if only == -1 {
				only = c
			} else {
				only = -2
			}
		}
	}
	if only >= 0 {
		out[only].count = int64(n)
		return out
	}
	for _, i := range tr.Overlapping(nil, t0, t1, 200_000) {
		sp := tr.Span(int(i))
		if sp.Begin >= t0 && int(sp.Class) < len(out) {
			out[sp.Class].count++
		}
	}
	return out
}

// compare puts the timeline beside the base.
func (s *Session) compare(a *answer, r *request) {
	base := s.slots[Base]
	if base == nil {
		a.key("text").text("Nothing to compare with yet. Change a setting on the left and rerun: the run you had before stays as the base, drawn as a ghost line, and the differences are listed here.")
		return
	}
	cur := r.sl
	a.note("A: " + cur.name + " · B: " + base.name)
	list := store.Compare(base.tl, cur.tl, 40) // so that a difference is A minus B
	b0, b1 := base.span()
	c0, c1 := cur.span()
	list = accelerators(base.tl, cur.tl, list)
	var f []figure
	for i := range list {
		d := &list[i]
		d.Name = short(d.Name)
		if d.Planned {
			d.Name += ", an arena in the pool"
		}
		f = append(f,
			figure{name: "Peak in use, " + d.Name, value: size(d.PeakB), sub: signed(d.PeakB - d.PeakA), tone: tone(d.PeakB - d.PeakA)},
			figure{name: "Reserved", value: size(d.ReservedB), sub: signed(d.ReservedB - d.ReservedA), tone: tone(d.ReservedB - d.ReservedA)})
	}
	ct, bt := moved(cur.tl), moved(base.tl)
	f = append(f,
		figure{name: "Transferred", value: size(ct), sub: signed(ct - bt), tone: tone(ct - bt)},
		figure{name: timeName(cur, base), value: clock(c1 - c0), sub: signedClock((c1 - c0) - (b1 - b0)), tone: tone((c1 - c0) - (b1 - b0))})
	if n, m := len(cur.tl.OOMs()), len(base.tl.OOMs()); n+m > 0 {
		x := figure{name: "Failed requests", value: itoa(int64(n)), sub: "base " + itoa(int64(m))}
		if n > m {
			x.tone = "bad"
		}
		f = append(f, x)
	}
	a.figures(f...)
	a.key("facts").list()
	changed := changes(base.tl.Settings(), cur.tl.Settings())
	for i, c := range changed {
		if i == 6 && len(changed) > 7 {
			a.text("and " + plural(int64(len(changed)-i), "more setting"))
			break
		}
		a.text(c)
	}
	a.endList()
	th := theme(s.theme)
	a.key("tables").list()
	for _, d := range list {
		a.table("At the peaks, "+d.Name, 0, []column{{"Category", kText}, {"A", kBytes}, {"B", kBytes}, {"A − B", kDelta}}, func() {
			for c := range event.NumCategories {
				if d.CategoryA[c] != 0 || d.CategoryB[c] != 0 {
					a.row().text(event.Category(c).String()).num(d.CategoryB[c]).num(d.CategoryA[c]).num(d.CategoryB[c] - d.CategoryA[c]).
						endRow(rowEnd{color: th.Category[c].Hex()})
				}
			}
		})
		if len(d.Ops) == 0 {
			continue
		}
		a.table("By op, "+d.Name+", largest change first", 0, []column{{"Op", kText}, {"A", kBytes}, {"B", kBytes}, {"A − B", kDelta}, {"Blocks A", kCount}, {"Blocks B", kCount}}, func() {
			for _, o := range d.Ops {
				a.row().text(o.Op).num(o.BytesB).num(o.BytesA).num(o.BytesB - o.BytesA).num(int64(o.CountB)).num(int64(o.CountA)).endRow(rowEnd{})
			}
		})
	}
	a.endList()
}

// accelerators are the differences on accelerators, else all there are: what
// the host holds is told in its own lane.
func accelerators(a, b *store.Timeline, list []store.Difference) []store.Difference {
	kind := func(tl *store.Timeline, i int) string {
		if i < 0 || i >= len(tl.Pools()) {
			return ""
		}
		return tl.Device(tl.Pools()[i].Device).Kind
	}
	var out []store.Difference
	for _, d := range list {
		if kind(a, d.A) == "gpu" || kind(b, d.B) == "gpu" {
			out = append(out, d)
		}
	}
	if out == nil {
		return list
	}
	return out
}

func timeName(cur, base *slot) string {
	if cur.origin == "rerun" || base.origin == "rerun" || modelledTime(cur.tl) {
		return "Time, modelled"
	}
	return "Time"
}

func signedClock(n int64) string {
	switch {
	case n == 0:
		return "same"
	case n > 0:
		return "+" + clock(n)
	}
	return "−" + clock(-n)
}

// moved is all bytes that crossed between devices.
func moved(tl *store.Timeline) (n int64) {
	first, last := tl.Span()
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.TransferTrack {
			_, value, _ := tr.Sum(first, last+1)
			n += value.Total()
		}
	}
	return n
}

// changes says which settings differ.
func changes(from, to event.Fields) (out []string) {
	for _, f := range to {
		if f.Key == "name" || f.Key == "train" {
			continue
		}
		if old, had := from.Get(f.Key); !had {
			out = append(out, f.Key+": "+f.Value+", was not set")
		} else if old != f.Value {
			out = append(out, f.Key+": "+f.Value+", was "+old)
		}
	}
	for _, f := range from {
		if _, has := to.Get(f.Key); !has && f.Key != "train" {
			out = append(out, f.Key+": no longer set, was "+f.Value)
		}
	}
	return out
}

// log is the run itself: settings, remarks, placements, damage.
func (s *Session) log(a *answer, r *request) {
	tl := r.sl.tl
	a.note(plural(tl.Events(), "event") + " · " + size(tl.Bytes()) + " in this tab")
	end := tl.End()
	switch {
	case r.sl.warn != "":
		a.verdict("Not everything could be read", false, r.sl.warn)
	case end.Ended && end.Text != "":
		a.verdict(title(end.Reason.String()), end.Reason == event.EndDone, end.Text)
	}
	if n := tl.Skipped(); n > 0 {
		a.key("text").text(plural(n, "event") + " contradicted the rest and were left out.")
	}
	a.key("tables").list()
	a.table("Settings", 0, []column{{"Field", kText}, {"Value", kText}}, func() {
		for _, f := range tl.Settings() {
			a.row().text(f.Key).text(f.Value).endRow(rowEnd{})
		}
	})
	if notes := tl.Notes(); len(notes) > 0 && r.sl.origin == "log" {
		a.table("Failures in the text", 0, []column{{"Where", kText}}, func() {
			for _, n := range notes {
				a.row().text(tl.Text(n.Text)).endRow(rowEnd{goes: true, t: n.Time})
			}
		})
	} else if len(notes) > 0 {
		more := max(0, len(notes)-maxRows)
		a.table("Log", more, []column{{"Time", kTime}, {"Line", kText}}, func() {
			for _, n := range notes[:len(notes)-more] {
				a.row().num(n.Time).text(tl.Text(n.Text)).endRow(rowEnd{goes: true, t: n.Time})
			}
		})
	}
	for _, d := range tl.Devices() {
		a.table("Device "+short(d.Name), 0, []column{{"Fact", kText}, {"Value", kText}}, func() {
			for _, f := range d.Facts {
				a.row().text(f.Key).text(f.Value).endRow(rowEnd{})
			}
		})
	}
	if places := tl.Places(); len(places) > 0 {
		more := max(0, len(places)-maxRows)
		a.table("Placement", more, []column{{"Op", kText}, {"Device", kText}, {"Why", kText}}, func() {
			for _, p := range places[:len(places)-more] {
				a.row().text(tl.Text(p.Op)).text(short(tl.Device(p.Device).Name)).text(tl.Text(p.Reason)).endRow(rowEnd{})
			}
		})
	}
	a.endList()
}

// twin is the lane as a table, for those who cannot see the picture.
func (s *Session) twin(a *answer, r *request) {
	l := s.lane(r.lane)
	if l == nil {
		a.key("text").text("No lane is chosen.")
		return
	}
	name, sub := laneTitle(r.sl.tl, l)
	note := name + ", " + sub
	if r.sl.origin != "log" {
		note += " · " + clock(r.t0) + " – " + clock(r.t1)
	}
	a.note(note)
	a.key("tables").list()
	switch l.Kind {
	case draw.MemoryLane:
		s.memoryTwin(a, r, l)
	case draw.AddressLane:
		s.addressTwin(a, r, l)
	case draw.SampleLane:
		s.sampleTwin(a, r)
	default:
		s.spanTwin(a, r, l)
	}
	a.endList()
}

const twinRows = 40

func (s *Session) memoryTwin(a *answer, r *request, l *draw.Lane) {
	p := r.sl.tl.Pools()[l.Pool]
	w := store.Window{T0: r.t0, T1: r.t1, W: twinRows}
	if r.t1-r.t0 < twinRows {
		w.W = max(1, int(r.t1-r.t0))
	}
	dst := make([]store.MemoryBucket, w.W)
	p.Buckets(w, dst)
	cats := s.categories(r.sl, l.Pool)
	cols := []column{{"From", kTime}, {"Lowest in use", kBytes}, {"Highest in use", kBytes}, {"Reserved", kBytes}, {"Changes", kCount}}
	for _, c := range cats {
		cols = append(cols, column{title(c.String()), kBytes})
	}
	a.table("Memory in "+plural(int64(w.W), "part")+" of the time shown; categories at the part's highest", 0, cols, func() {
		for i := range dst {
			b := &dst[i]
			a.row().num(w.Edge(i)).num(b.Min).num(b.Max).num(b.Reserved).num(int64(b.Events))
			for _, c := range cats {
				a.num(b.ByCategory[c])
			}
			a.endRow(rowEnd{goes: true, t: b.Time})
		}
	})
}

func (s *Session) addressTwin(a *answer, r *request, l *draw.Lane) {
	p := r.sl.tl.Pools()[l.Pool]
	if r.sl.origin == "log" {
		regionTable(a, p.ChunkMapIn(s.seen(r.sl, p, r.at)))
		return
	}
	const n = 12
	a.table("The address map at twelve instants of the time shown", 0, []column{
		{"Time", kTime}, {"Regions", kCount}, {"Reserved", kBytes}, {"In use", kBytes}, {"Free", kBytes}, {"Holes", kCount}, {"Largest hole", kBytes},
	}, func() {
		for i := range int64(n) {
			t := r.t0 + (r.t1-r.t0)*i/(n-1)
			m := p.ChunkMapIn(s.seen(r.sl, p, t))
			pool, used, free, largest := m.Totals()
			a.row().num(t).num(int64(len(m))).num(pool).num(used).num(free).num(int64(holes(m))).num(largest).endRow(rowEnd{goes: true, t: t})
		}
	})
}

func (s *Session) spanTwin(a *answer, r *request, l *draw.Lane) {
	tl := r.sl.tl
	for _, tr := range tl.Tracks() {
		if !onLane(l, tr) {
			continue
		}
		ids := tr.Overlapping(nil, r.t0, r.t1, maxRows)
		if len(ids) == 0 {
			continue
		}
		caption := "Ops of " + short(tl.Device(tr.Device).Name)
		switch tr.Kind {
		case store.TransferTrack:
			caption = "Transfers " + direction(tl, tr)
		case store.StallTrack:
			caption = "Stalls of " + short(tl.Device(tr.Device).Name)
		case store.StageTrack:
			caption = "Stage " + tl.Text(tr.Op)
		}
		more := max(0, tr.Began(r.t0, r.t1)-len(ids))
		a.table(caption, more, []column{{"What", kText}, {"Begin", kTime}, {"Takes", kTime}, {"Bytes", kBytes}, {"Step", kCount}}, func() {
			for _, i := range ids {
				sp := tr.Span(int(i))
				what := tl.Text(sp.Op)
				if tr.Kind == store.TransferTrack {
					what = event.TransferCause(sp.Class).String()
				}
				a.row().text(what).num(sp.Begin)
				end := rowEnd{goes: true, t: sp.Begin}
				if sp.End == store.Alive {
					a.null()
				} else {
					a.num(sp.End - sp.Begin)
					end.t1, end.ranged = sp.End, true
				}
				if tr.Kind == store.TransferTrack || tr.Kind == store.StageTrack {
					a.num(sp.Value)
				} else {
					a.null()
				}
				if sp.Step >= 0 {
					a.num(int64(sp.Step) + 1)
				} else {
					a.null()
				}
				a.endRow(end)
			}
		})
	}
}
