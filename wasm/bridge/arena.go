package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/store"
)

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
			put(r.pool.CategoryName(event.Category(k)), n, th.Category[k].Hex())
		}
		put("unused in the arena", c.Arena, th.Category[event.Unknown].Hex())
	})
	more := max(0, len(c.Holders)-maxRows)
	a.table("By op, at the peak", more, []column{{"Op", kText}, {"Category", kText}, {"Bytes", kBytes}, {"Blocks", kCount}, {"", kShare}}, func() {
		for i := range c.Holders[:len(c.Holders)-more] {
			h := &c.Holders[i]
			a.row().text(h.Name).text(r.pool.CategoryName(h.Category)).num(h.Bytes).num(h.Blocks).num(h.Bytes).
				endRow(rowEnd{color: th.Category[h.Category].Hex(), goes: true, t: c.Time})
		}
	})
	a.endList()
}
