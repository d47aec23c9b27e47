package bridge

import (
	"strings"

	"tideline/shared/draw"
	"tideline/shared/store"
)

// sampleText writes a value of a series of samples: percent where the name
// speaks of utilisation, else bytes; with the total where the value is part of
// one.
func sampleText(name string, x *store.Series, v int64) string {
	if strings.Contains(name, "utilisation") {
		return itoa(v) + " %"
	}
	if x.Second > 0 {
		return size(v) + " of " + size(x.Second)
	}
	return size(v)
}

// samplesAt tells the first two series: of one card, its memory and how busy it
// is.
func (s *Session) samplesAt(a *answer, sl *slot, t int64) {
	key := "now"
	for _, x := range sl.tl.SeriesList() {
		v, ok := x.At(t)
		if x.Kind != store.SampleSeries || !ok {
			continue
		}
		name := sl.tl.Text(x.Name)
		if key == "now" {
			a.key(key).text(sampleText(name, x, v))
			key = "sub"
			continue
		}
		a.key(key).text(sampleText(name, x, v) + " " + strings.TrimPrefix(name, "card "))
		return
	}
}

// sampleTwin is the lane of samples as a table: the highest of each part of the
// time shown.
func (s *Session) sampleTwin(a *answer, r *request) {
	tl := r.sl.tl
	w := store.Window{T0: r.t0, T1: r.t1, W: int(min(r.t1-r.t0, twinRows))}
	cols := []column{{"From", kTime}}
	var parts [][]store.SeriesBucket
	for _, row := range draw.Rows(tl, &draw.Lane{Kind: draw.SampleLane}) {
		x := tl.SeriesList()[row.Series]
		kind := kBytes
		if strings.Contains(tl.Text(x.Name), "utilisation") {
			kind = kCount
		}
		cols = append(cols, column{row.Title, kind})
		dst := make([]store.SeriesBucket, w.W)
		x.Buckets(w, dst)
		parts = append(parts, dst)
	}
	a.table("Highest samples in "+plural(int64(w.W), "part")+" of the time shown", 0, cols, func() {
		for i := range w.W {
			a.row().num(w.Edge(i))
			for _, p := range parts {
				a.num(p[i].Max)
			}
			a.endRow(rowEnd{goes: true, t: w.Edge(i)})
		}
	})
}
