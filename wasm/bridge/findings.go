package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/store"
)

// found are a timeline's findings, kept until there is more to look at:
// working them out takes a look at whole steps, and questions come with every
// move of the cursor.
type found struct {
	list   []finding.Finding
	events int64
	ended  bool
}

// findings are what stands out in a slot's timeline. While a run goes on they
// are renewed when it has grown by a quarter.
func (sl *slot) findings() []finding.Finding {
	if sl.origin == "log" {
		return nil
	}
	f := &sl.found
	n, ended := sl.tl.Events(), sl.tl.End().Ended
	if n != f.events && (ended != f.ended || n < f.events || n > f.events+f.events/4) {
		f.list, f.events, f.ended = finding.Of(sl.tl), n, ended
	}
	return f.list
}

// standsOut answers what stands out: each with its sentences, the culprit and
// the settings to try. Whether those help, a rerun shows.
func (s *Session) standsOut(a *answer, r *request) {
	list := r.sl.findings()
	if len(list) == 0 {
		a.key("text").text("Nothing stands out in this timeline.")
		return
	}
	a.note(plural(int64(len(list)), "finding"))
	a.key("findings").list()
	for i := range list {
		f := &list[i]
		a.open().key("id").text(string(f.ID)).key("title").text(f.Title).key("severity").text(f.Severity.String())
		a.key("device").text(f.Device).key("culprit").text(f.Culprit).key("text").list()
		for _, t := range f.Text {
			a.text(t)
		}
		a.endList().key("try").list()
		for _, c := range f.Try {
			a.text(c.String())
		}
		a.endList().close()
	}
	a.endList()
	a.key("tables").list()
	for i := range list {
		s.holders(a, &list[i])
	}
	a.endList()
}

// holders is the table behind a finding: what holds the memory, or what is
// copied.
func (s *Session) holders(a *answer, f *finding.Finding) {
	if len(f.Holders) == 0 {
		return
	}
	th := theme(s.theme)
	a.table(f.Title, 0, []column{{"What", kText}, {"Category", kText}, {"Bytes", kBytes}, {"Count", kCount}, {"", kShare}}, func() {
		for i := range f.Holders {
			h := &f.Holders[i]
			word := "–"
			if h.Category != event.Unknown {
				word = h.Category.String()
			}
			a.row().text(h.Name).text(word).num(h.Bytes).num(h.Blocks).num(h.Bytes).endRow(rowEnd{color: th.Category[h.Category].Hex()})
		}
	})
}

// say adds the sentences of findings of some sorts to a list of facts.
func (sl *slot) say(a *answer, ids ...finding.ID) {
	for _, f := range sl.findings() {
		for _, id := range ids {
			if f.ID != id {
				continue
			}
			a.text(f.Title + ".")
			for _, t := range f.Text {
				a.text(t)
			}
		}
	}
}

// remark is say as facts of their own, or nothing where there are none.
func (sl *slot) remark(a *answer, ids ...finding.ID) {
	a.key("facts").list()
	sl.say(a, ids...)
	a.endList()
}

// findingTable lists what stands out in one table.
func findingTable(a *answer, list []finding.Finding) {
	if len(list) == 0 {
		return
	}
	a.table("What stands out", 0, []column{{"Finding", kText}, {"Weight", kText}, {"Where", kText}, {"To blame", kText}, {"What to try", kText}}, func() {
		for i := range list {
			f := &list[i]
			try := ""
			for k, c := range f.Try {
				if k > 0 {
					try += ", "
				}
				try += c.String()
			}
			a.row().text(f.Title).text(f.Severity.String()).text(firstOf(f.Device, "–")).text(firstOf(f.Culprit, "–")).text(firstOf(try, "–")).endRow(rowEnd{})
		}
	})
}

// planned is whether a planned arena lies within a pool.
func planned(tl *store.Timeline, p *store.Pool) bool {
	for _, in := range tl.Pools() {
		if in.Device == p.Device && in.Facts.Text("within") == p.Name && p.Name != "" {
			return true
		}
	}
	return false
}

// arenaPeak is what made up the peak of a pool that planned arenas lie in: an
// arena is one block to the pool, and the tensors in it are what is asked for.
func (s *Session) arenaPeak(a *answer, r *request) {
	c := finding.At(r.sl.tl, r.pool)
	th := theme(s.theme)
	a.key("tables").list()
	a.table("By category, at the peak; planned arenas when they are fullest", 0, []column{{"Category", kText}, {"Bytes", kBytes}, {"Of the peak", kPercent}, {"", kShare}}, func() {
		put := func(name string, n int64, color string) {
			if n > 0 {
				a.row().text(name).num(n).real(float64(n) / float64(c.InUse)).num(n).endRow(rowEnd{color: color, goes: true, t: c.Time})
			}
		}
		for k, n := range c.ByCategory {
			put(event.Category(k).String(), n, th.Category[k].Hex())
		}
		put("unused in the arena", c.Arena, th.Category[event.Unknown].Hex())
	})
	more := max(0, len(c.Holders)-maxRows)
	a.table("By op, at the peak", more, []column{{"Op", kText}, {"Category", kText}, {"Bytes", kBytes}, {"Blocks", kCount}, {"", kShare}}, func() {
		for i := range c.Holders[:len(c.Holders)-more] {
			h := &c.Holders[i]
			a.row().text(h.Name).text(h.Category.String()).num(h.Bytes).num(h.Blocks).num(h.Bytes).
				endRow(rowEnd{color: th.Category[h.Category].Hex(), goes: true, t: c.Time})
		}
	})
	a.endList()
}
