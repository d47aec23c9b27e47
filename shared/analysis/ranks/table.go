package ranks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// Table is the rows of all files, each with what it is called.
type Table struct {
	rows   []Row
	labels []string // of each
	told   bool     // they are ranks
	order  []int32  // by rank, then by name
	median int64    // of the peaks that are known; Unknown for fewer than three
}

// New puts rows side by side. What ranks the names tell counts only where it
// tells all of them apart, but for those that cannot be read, such as notes in the
// same folder; else the files are called by their names.
func New(rows []Row) *Table {
	t := &Table{rows: rows, labels: make([]string, len(rows)), order: make([]int32, len(rows)), median: Unknown}
	if t.told = t.label(); !t.told {
		for i := range rows {
			t.labels[i] = rows[i].Name
		}
	}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	slices.SortFunc(t.order, func(a, b int32) int {
		x, y := t.labels[a], t.labels[b]
		if p, q := t.told && x == rows[a].Name, t.told && y == rows[b].Name; p != q { // what has no rank comes last
			if p {
				return 1
			}
			return -1
		}
		switch {
		case before(x, y):
			return -1
		case before(y, x):
			return 1
		}
		return int(a - b)
	})
	var peaks []int64
	for i := range rows {
		if rows[i].whole() {
			peaks = append(peaks, rows[i].Peak)
		}
	}
	if len(peaks) > 2 {
		t.median = middle(peaks)
	}
	return t
}

// label calls the rows by their ranks, and reports whether these tell all apart
// that can be read.
func (t *Table) label() bool {
	some := false
	for i := range t.rows {
		r := &t.rows[i]
		switch l := Rank(r.Name); {
		case l == "" && r.Problem != "":
			t.labels[i] = r.Name
		case l == "" || slices.Contains(t.labels[:i], l):
			return false
		default:
			t.labels[i], some = l, true
		}
	}
	return some
}

// With is the same table with the rows in other words: renamed for somebody who is
// not to see their names. Order and ranks stay.
func (t *Table) With(rows []Row) *Table {
	x := *t
	x.rows, x.labels = rows, slices.Clone(t.labels)
	for i := range rows {
		if x.labels[i] == t.rows[i].Name {
			x.labels[i] = rows[i].Name
		}
	}
	return &x
}

// Order are the rows' places by rank, else by name.
func (t *Table) Order() []int32 { return t.order }

// Told reports whether the files' names tell ranks.
func (t *Table) Told() bool { return t.told }

// Row is the row at a place.
func (t *Table) Row(i int32) *Row { return &t.rows[i] }

// Label is what the file of a row is called: its rank, else its name.
func (t *Table) Label(i int32) string { return t.labels[i] }

// Median is the median of the peaks, or Unknown for fewer than three.
func (t *Table) Median() int64 { return t.median }

// few is the part of the median by which a peak may differ from it before it is
// said to.
const few = 0.05

// Far is by how many bytes a row's peak lies above the median, below it if
// negative; 0 where that is no more than a few percent.
func (t *Table) Far(i int32) int64 {
	r := &t.rows[i]
	if t.median == Unknown || !r.whole() {
		return 0
	}
	d := r.Peak - t.median
	if float64(max(d, -d)) <= few*float64(t.median) {
		return 0
	}
	return d
}

// mostTold is how many differing rows are told of in words.
const mostTold = 3

// Words says in sentences which files failed and which differ from the others.
func (t *Table) Words() (out []string) {
	if s := t.failed(); s != "" {
		out = append(out, s)
	}
	if t.median == Unknown {
		return out
	}
	far, known := 0, 0
	var told []int32 // the farthest, in their order
	for _, i := range t.order {
		if t.rows[i].whole() {
			known++
		}
		d := t.Far(i)
		if d == 0 {
			continue
		}
		far++
		at := len(told)
		for at > 0 && max(d, -d) > max(t.Far(told[at-1]), -t.Far(told[at-1])) {
			at--
		}
		if told = slices.Insert(told, at, i); len(told) > mostTold {
			told = told[:mostTold]
		}
	}
	if far == 0 {
		return append(out, "All "+strconv.Itoa(known)+" peak within 5 % of their median, "+event.FormatBytes(t.median)+".")
	}
	for _, i := range told {
		out = append(out, t.differs(i))
	}
	switch n := far - mostTold; {
	case n == 1:
		out = append(out, "1 more differs from the median by more than 5 %.")
	case n > 1:
		out = append(out, strconv.Itoa(n)+" more differ from the median by more than 5 %.")
	}
	return out
}

func (t *Table) differs(i int32) string {
	d, way := t.Far(i), " above"
	if d < 0 {
		d, way = -d, " below"
	}
	s := capital(t.labels[i]) + " peaks at " + event.FormatBytes(t.rows[i].Peak) + ", " + event.FormatBytes(d)
	if t.median > 0 {
		s += " (" + strconv.FormatInt((100*d+t.median/2)/t.median, 10) + " %)"
	}
	s += way + " the median of all, " + event.FormatBytes(t.median)
	if c := t.culprit(i); c.who != "" {
		s += "; " + c.who + " holds " + event.FormatBytes(c.here) + " there, and "
		if c.most {
			s += "at most "
		}
		s += event.FormatBytes(c.there) + " in the median of the others"
	}
	return s + "."
}

// culprit is the holder whose bytes account most for what sets a row apart, if
// they account for a fifth of it.
func (t *Table) culprit(i int32) (out culprit) {
	d := t.Far(i)
	seen := func(k int32) {
		for _, h := range t.rows[k].held {
			a, least := t.rows[i].holds(h.name)
			if least || k != i && a > 0 {
				continue // how much it lacks is not known, or it was looked at
			}
			var rest []int64
			most := false
			for o := range t.rows {
				if int32(o) != i && t.rows[o].whole() {
					n, bound := t.rows[o].holds(h.name)
					rest, most = append(rest, n), most || bound
				}
			}
			b := middle(rest)
			if more, best := a-b, out.here-out.there; d > 0 && more > best && more*5 >= d || d < 0 && more < best && more*5 <= d {
				out = culprit{h.name, a, b, most}
			}
		}
	}
	seen(i)
	if d < 0 { // what it lacks, the others have
		for _, k := range t.order {
			if k != i && t.Far(k) == 0 {
				seen(k)
				break
			}
		}
	}
	return out
}

// culprit is who holds more, or less, in one file than in the others: in their
// median, or at most so much.
type culprit struct {
	who         string
	here, there int64
	most        bool
}

// failed says how many failed, and which where that is not all.
func (t *Table) failed() string {
	var list []int32
	read := 0
	for _, i := range t.order {
		if t.rows[i].Problem == "" {
			read++
		}
		if t.rows[i].Failed {
			list = append(list, i)
		}
	}
	switch {
	case len(list) == 0:
		return ""
	case len(list) == read:
		return "A request failed in all " + strconv.Itoa(read) + "."
	}
	var names []string
	for _, i := range list[:min(len(list), mostTold)] {
		names = append(names, t.labels[i])
	}
	if n := len(list) - mostTold; n > 0 {
		names = append(names, strconv.Itoa(n)+" more")
	}
	s := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		s = strings.Join(rest, ", ") + " and " + s
	}
	return "A request failed in " + s + ", in the others none."
}

// middle is the median, of an even number of values the lower of the two in the
// middle.
func middle(list []int64) int64 {
	if len(list) == 0 {
		return 0
	}
	// Numbers of places are sorted, as package store does, for one more type that
	// is sorted by itself would make the module larger.
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(list[a], list[b]) })
	return list[order[(len(list)-1)/2]]
}

func capital(s string) string {
	if len(s) > 4 && s[:5] == "rank " {
		return "R" + s[1:]
	}
	return s
}
