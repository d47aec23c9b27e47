package bridge

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
)

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
	if partial(p) {
		where += " · " + listedWords
	}
	a.note(where)
	f := []figure{{name: "Peak in use", value: size(pk.InUse), sub: plural(int64(pk.Count), "block")}}
	if pk.Reserved > 0 {
		f = append(f, figure{name: "Reserved then", value: size(pk.Reserved), sub: percent(pk.InUse, pk.Reserved) + " used"})
	}
	if p.Limit > 0 {
		f = append(f, figure{name: "Limit", value: size(p.Limit), sub: percent(pk.InUse, p.Limit) + " reached"})
	}
	f = append(f, tails(r.sl, pk.Waste, pk.InUse)...)
	a.figures(f...)
	partOf(a, r)
	if planned(tl, p) {
		s.arenaPeak(a, r)
		return
	}
	th := theme(s.theme)
	a.key("tables").list()
	a.table("By category, at the peak", 0, []column{{"Category", kText}, {"Bytes", kBytes}, {"Of the peak", kPercent}, {"", kShare}}, func() {
		for c := range event.NumCategories {
			if n := pk.ByCategory[c]; n > 0 {
				a.row().text(p.CategoryName(event.Category(c))).num(n).real(float64(n) / float64(pk.InUse)).num(n).
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
			a.row().text(name).text(p.CategoryName(t.Category)).num(t.Bytes).num(int64(t.Count)).num(t.Waste).num(t.Bytes).
				endRow(rowEnd{color: th.Category[t.Category].Hex(), goes: true, t: pk.Time})
		}
	})
	ledgerTable(a, finding.Ledger(tl, p, p.Fullest(pk.Time), nil))
	a.endList()
}
