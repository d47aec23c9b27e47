package bridge

import "tideline/shared/store"

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
	f := append([]figure{{name: "In use", value: size(st.InUse)}}, tails(r.sl, st.Waste, st.InUse)...)
	if st.Reserved > 0 {
		f = append(f, figure{name: "Reserved", value: size(st.Reserved)},
			figure{name: "Reserved, unused", value: size(st.Reserved - st.InUse), sub: percent(st.Reserved-st.InUse, st.Reserved)})
	}
	if p.Limit > 0 {
		f = append(f, figure{name: "Limit", value: size(p.Limit)})
	}
	f = append(f, figure{name: "Live blocks", value: itoa(int64(len(ids)))})
	caption := "Live allocations, largest first"
	if r.filter.Text() != "" {
		n := len(ids)
		ids = r.filter.Sift(p, ids)
		var sum int64
		for _, t := range p.Totals(ids) {
			sum += t.Bytes
		}
		f = append(f, figure{name: "Pass the filter", value: size(sum), sub: itoa(int64(len(ids))) + " of " + plural(int64(n), "block")})
		caption = "Live allocations that pass the filter, largest first"
	}
	a.figures(f...)
	partOf(a, r)
	p.Sort(ids, store.BySize)
	a.key("tables").list()
	s.allocTable(a, r.sl.tl, p, caption, ids, r.at)
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
			a.row().text(oneLine(name)).text(p.CategoryName(al.Category)).num(al.Size).num(al.Requested).text(address(al.Address))
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
			early := s.slots[Current].early(al.Birth) // how long before, nobody knows
			if early {
				a.null()
			} else {
				a.num(max(0, at-al.Birth))
			}
			end := rowEnd{color: th.Category[al.Category].Hex(), goes: true, t: al.Birth}
			if al.Death == store.Alive {
				a.text("to the end")
			} else {
				if early {
					a.null()
				} else {
					a.num(al.Death - al.Birth)
				}
				end.t1, end.ranged = al.Death, true
			}
			a.endRow(end)
		}
	})
}
