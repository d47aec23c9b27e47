package bridge

import "tideline/protocol/event"

// The pieces of an answer that the page lays out by itself: figures, a
// verdict, a strip and tables of plain values. Each column says its kind, so
// that the page formats and sorts it.

type kind string

const (
	kText    kind = "text"
	kBytes   kind = "bytes"
	kDelta   kind = "delta" // a difference in bytes
	kTime    kind = "time"  // nanoseconds
	kCount   kind = "count"
	kAddr    kind = "addr"
	kRate    kind = "rate" // bytes per second
	kPercent kind = "percent"
	kShare   kind = "share" // drawn as a bar
)

type column struct {
	name string
	kind kind
}

// table writes caption, columns and rows. The rows' writer calls row for each.
func (a *answer) table(caption string, more int, columns []column, rows func()) {
	a.open().key("caption").text(caption).key("more").num(int64(more)).key("columns").list()
	for _, c := range columns {
		a.open().key("name").text(c.name).key("kind").text(string(c.kind)).close()
	}
	a.endList().key("rows").list()
	rows()
	a.endList().close()
}

// row begins a row: its cells follow, then endRow.
func (a *answer) row() *answer { return a.open().key("c").list() }

// rowEnd is what a row has besides its cells.
type rowEnd struct {
	color  string // swatch or bar, "" for none
	goes   bool   // choosing it shows t (to t1)
	t, t1  int64
	ranged bool
}

func (a *answer) endRow(r rowEnd) {
	a.endList()
	if r.color != "" {
		a.key("color").text(r.color)
	}
	if r.goes {
		a.key("t").num(r.t)
		if r.ranged {
			a.key("t1").num(r.t1)
		}
	}
	a.close()
}

// figure is one number with its name.
type figure struct {
	name, value, sub string
	tone             string // "", "bad", "more", "less"
}

func (a *answer) figures(list ...figure) {
	a.key("figures").list()
	for _, f := range list {
		a.open().key("name").text(f.name).key("value").text(f.value)
		if f.sub != "" {
			a.key("sub").text(f.sub)
		}
		if f.tone != "" {
			a.key("tone").text(f.tone)
		}
		a.close()
	}
	a.endList()
}

func (a *answer) verdict(title string, calm bool, text ...string) {
	a.key("verdict").open().key("title").text(title).key("calm").truth(calm).key("text").list()
	for _, t := range text {
		if t != "" {
			a.text(t)
		}
	}
	a.endList().close()
}

func (a *answer) note(s string) { a.key("note").text(s) }

// stripWidth is the length of a chunk strip in its own units.
const stripWidth = 1000

// strip draws a chunk map as one bar of pieces: in use, holes, and the largest
// hole. Pieces narrower than a unit are merged, so that a map of any size
// costs at most stripWidth pieces.
func (a *answer) strip(m event.ChunkMap) {
	pool, used, free, largest := m.Totals()
	if pool <= 0 {
		return
	}
	a.key("stripWidth").num(stripWidth)
	a.key("stripLabel").text(event.FormatBytes(used) + " in use, " + event.FormatBytes(free) + " free in " +
		plural(int64(holes(m)), "hole") + ", the largest " + event.FormatBytes(largest))
	a.key("strip").list()
	var at, done int64
	var worst string
	put := func(to int64, what string) {
		if rank(what) > rank(worst) {
			worst = what
		}
		x0, x1 := scale(done, pool), scale(to, pool)
		if x1 > x0 {
			a.list().num(x0).num(x1 - x0).text(worst).endList()
			done, worst = to, ""
		}
	}
	seen := false
	for _, r := range m {
		for _, c := range r.Chunks {
			at += c.Size
			what := "hole"
			switch {
			case c.InUse:
				what = "used"
			case c.Size == largest && !seen:
				what, seen = "hole largest", true
			}
			put(at, what)
		}
	}
	a.endList()
}

// rank says which of several merged pieces a unit shows.
func rank(what string) int {
	switch what {
	case "hole largest":
		return 3
	case "used":
		return 2
	case "hole":
		return 1
	}
	return 0
}

func scale(n, whole int64) int64 { return int64(float64(n) / float64(whole) * stripWidth) }

func holes(m event.ChunkMap) (n int) {
	for _, r := range m {
		for _, c := range r.Chunks {
			if !c.InUse {
				n++
			}
		}
	}
	return n
}
