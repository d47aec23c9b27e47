package store

import (
	"cmp"
	"strings"

	"tideline/protocol/event"
)

// Difference is how one pool differs between two timelines.
type Difference struct {
	Name       string // of the pool, with its device's: "/GPU:0 GPU_0_bfc → GPU_0_torch" of two that differ
	Planned    bool   // an arena, whose bytes are part of another pool's and must not be added to them
	A, B       int    // its index in each timeline; -1 where it is missing
	PeakA      int64  // bytes in use
	PeakB      int64
	ReservedA  int64 // highest, bytes
	ReservedB  int64
	CategoryA  Categories // at A's peak
	CategoryB  Categories // at B's peak
	ByCategory Categories // B minus A
	Ops        []OpDifference
}

// OpDifference is what one op holds at the two peaks.
type OpDifference struct {
	Op           string
	BytesA       int64
	BytesB       int64
	CountA       int // blocks
	CountB       int
	CategoryName string
}

// Compare puts the pools of two timelines side by side, matched as
// Counterparts does, with the ops that differ most at the peaks, at most top of them, largest
// change first.
func Compare(a, b *Timeline, top int) []Difference {
	var out []Difference
	used := make([]bool, len(b.pools))
	to := Counterparts(a.seats(nil), b.seats(nil))
	for i, p := range a.pools {
		d := Difference{Name: a.PoolName(i), A: i, B: to[i], Planned: p.Planned()}
		var other *Pool
		if d.B >= 0 {
			used[d.B], other = true, b.pools[d.B]
			if name := b.PoolName(d.B); name != d.Name {
				d.Name += " → " + strings.TrimPrefix(name, a.Device(p.Device).Name+" ")
			}
		}
		d.fill(a, b, p, other, top)
		out = append(out, d)
	}
	for j, p := range b.pools {
		if !used[j] {
			d := Difference{Name: b.PoolName(j), A: -1, B: j, Planned: p.Planned()}
			d.fill(a, b, nil, p, top)
			out = append(out, d)
		}
	}
	return out
}

// PoolName is a pool's device and name, as people know it: "/GPU:0 GPU_0_bfc".
func (t *Timeline) PoolName(i int) string {
	p := t.pools[i]
	return t.Device(p.Device).Name + " " + p.Name
}

func (d *Difference) fill(a, b *Timeline, pa, pb *Pool, top int) {
	ops := make(map[string]*OpDifference)
	var list []*OpDifference
	at := func(t *Timeline, s Total) *OpDifference {
		name := t.Text(s.Op)
		o := ops[name]
		if o == nil {
			o = &OpDifference{Op: name, CategoryName: s.Category.Plain().String()}
			ops[name] = o
			list = append(list, o)
		}
		return o
	}
	if pa != nil {
		k := pa.peakOf(a)
		d.PeakA, d.CategoryA, d.ReservedA = k.InUse, k.ByCategory.Plain(), pa.HighestReserved(a.first, a.last+1)
		for _, s := range k.Top {
			o := at(a, s)
			o.BytesA, o.CountA = o.BytesA+s.Bytes, o.CountA+s.Count
		}
	}
	if pb != nil {
		k := pb.peakOf(b)
		d.PeakB, d.CategoryB, d.ReservedB = k.InUse, k.ByCategory.Plain(), pb.HighestReserved(b.first, b.last+1)
		for _, s := range k.Top {
			o := at(b, s)
			o.BytesB, o.CountB = o.BytesB+s.Bytes, o.CountB+s.Count
		}
	}
	for c := range event.NumCategories {
		d.ByCategory[c] = d.CategoryB[c] - d.CategoryA[c]
	}
	list = arrange(list, func(a, b **OpDifference) int {
		x, y := *a, *b
		return cmp.Or(cmp.Compare(abs(y.BytesB-y.BytesA), abs(x.BytesB-x.BytesA)), cmp.Compare(x.Op, y.Op))
	})
	for _, o := range list {
		if len(d.Ops) < top && (o.BytesA != o.BytesB || o.CountA != o.CountB) {
			d.Ops = append(d.Ops, *o)
		}
	}
}

// peakOf is the pool's peak over the whole of its timeline, with all ops.
func (p *Pool) peakOf(t *Timeline) Peak { return p.Peak(t.first, t.last+1, 1<<30) }

func abs(n int64) int64 { return max(n, -n) }
