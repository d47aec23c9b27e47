package bridge

import "tideline/protocol/event"

// chunks is the allocator's map at the cursor: regions and holes.
func (s *Session) chunks(a *answer, r *request) {
	if r.pool == nil {
		nothing(a, r)
		return
	}
	a.note(r.where())
	m := r.pool.ChunkMapIn(s.seen(r.sl, r.pool, r.at))
	pool, used, free, largest := m.Totals()
	if untold(r.sl, r.pool) {
		a.figures(figure{name: "In use", value: size(used), sub: "in " + plural(blocks(m), "block")})
		a.key("text").text("The file tells blocks, and no memory that is reserved but free: nothing can be said of holes.")
		return
	}
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
	partOf(a, r)
	a.strip(m)
	a.key("tables").list()
	regionTable(a, m)
	holeTable(a, m)
	a.endList()
}

// blocks counts the chunks in use.
func blocks(m event.ChunkMap) (n int64) {
	for i := range m {
		for _, c := range m[i].Chunks {
			if c.InUse {
				n++
			}
		}
	}
	return n
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
