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
// hole. A chunk narrower than a unit takes one, and where several meet the
// highest rank is shown: a map of any size costs at most stripWidth pieces.
func (a *answer) strip(m event.ChunkMap) {
	pool, used, free, largest := m.Totals()
	if pool <= 0 {
		return
	}
	a.key("stripWidth").num(stripWidth)
	a.key("stripLabel").text(event.FormatBytes(used) + " in use, " + event.FormatBytes(free) + " free in " +
		plural(int64(holes(m)), "hole") + ", the largest " + event.FormatBytes(largest))
	var units [stripWidth]byte // the rank of each
	var at int64
	seen := false
	for _, r := range m {
		for _, c := range r.Chunks {
			var rank byte = 1
			switch {
			case c.InUse:
				rank = 2
			case c.Size == largest && !seen:
				rank, seen = 3, true
			}
			x := min(scale(at, pool), stripWidth-1)
			at += c.Size
			for end := min(max(x+1, scale(at, pool)), stripWidth); x < end; x++ {
				units[x] = max(units[x], rank)
			}
		}
	}
	a.key("strip").list()
	for x := 0; x < stripWidth; {
		end := x
		for ; end < stripWidth && units[end] == units[x]; end++ {
		}
		if rank := units[x]; rank > 0 {
			a.list().num(int64(x)).num(int64(end - x)).text(stripWords[rank]).endList()
		}
		x = end
	}
	a.endList()
}

// stripWords are the kinds of piece by rank.
var stripWords = [4]string{1: "hole", 2: "used", 3: "hole largest"}

func scale(n, whole int64) int64 { return int64(float64(n)/float64(whole)*stripWidth + 0.5) }

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
