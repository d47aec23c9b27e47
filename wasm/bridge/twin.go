package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/draw"
	"tideline/shared/store"
)

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
		cols = append(cols, column{heading(p, c), kBytes})
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
