package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// compare puts the timeline beside the base.
func (s *Session) compare(a *answer, r *request) {
	base := s.slots[Base]
	if base == nil {
		if len(r.sl.tl.Settings()) == 0 || r.sl.tl.Settings().Text("model") == "" {
			a.key("text").text("Nothing to compare with yet. Open or drop two files at once: the second becomes the base, drawn as a ghost line, and the differences are listed here.")
			return
		}
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
