package bridge

import (
	"sort"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// maxStacks bounds the stacks that a flame graph is told of; the rest is
// summed. With stacks of a hundred frames that is an answer of some 2 MB.
const maxStacks = 4000

// flame answers "flame HOW AT T0 T1 LANE FILTER": what holds a pool's memory, by
// stack. HOW says which blocks are meant:
//
//	at    those in use at the instant AT
//	peak  those in use when most was, within [T0,T1)
//	kept  those that were allocated within [T0,T1] and are in use at its end:
//	      what grew in between
//
// Only blocks that pass the filter count; "whole" is what all of them hold.
// Frames are told once, and a stack is a list of their numbers: [bytes, blocks,
// category, op, the outermost frame, …, the innermost]. A tensor of our own runs
// is a stack of one frame, its whole name.
func flame(s *Session, arg func(int) string, _ string) {
	a := s.out.open()
	if r := s.request(arg); r != nil && r.pool != nil {
		s.stacks(a, r, arg(1))
	} else if r != nil {
		nothing(a, r)
	}
	s.out = *a.close()
}

// held is the blocks that a flame graph is about, and the instant of it.
func (s *Session) held(r *request, how string) ([]int32, store.Moment) {
	p := r.pool
	switch how {
	case "peak":
		at, _ := p.PeakPoint(r.t0, r.t1)
		m := p.Fullest(at)
		return p.LiveIn(nil, m), m
	case "kept":
		m := p.After(r.t1)
		ids := p.LiveIn(nil, m)
		// They are in the order of their births.
		n := sort.Search(len(ids), func(i int) bool { return p.Alloc(int(ids[i])).Birth >= r.t0 })
		return ids[n:], m
	}
	m := s.seen(r.sl, p, r.at)
	return p.LiveIn(nil, m), m
}

func (s *Session) stacks(a *answer, r *request, how string) {
	ids, m := s.held(r, how)
	r.at = m.Time
	a.note(r.where())
	a.key("t").num(m.Time)
	var whole, in [2]int64 // bytes, blocks
	list := r.pool.TotalsByName(ids)
	n := 0
	for i := range list {
		t := &list[i]
		whole[0], whole[1] = whole[0]+t.Bytes, whole[1]+int64(t.Count)
		if r.filter.Passes(t.Tensor, t.Op) {
			in[0], in[1] = in[0]+t.Bytes, in[1]+int64(t.Count)
			list[n] = *t
			n++
		}
	}
	list, rest := store.Largest(list[:n], maxStacks)
	a.key("whole").list().num(whole[0]).num(whole[1]).endList()
	a.key("sum").list().num(in[0]).num(in[1]).endList()
	before := s.before(r, ids)
	a.key("before").list().num(before[0]).num(before[1]).endList()
	a.key("rest").list().num(rest.Bytes).num(int64(rest.Count)).num(int64(n - len(list))).endList()
	writeStacks(a, r.sl.tl, list)
	th := theme(s.theme)
	a.key("categories").list()
	for c := range event.NumCategories {
		a.list().text(r.pool.CategoryName(event.Category(c))).text(th.Category[c].Hex()).endList()
	}
	a.endList()
}

// before is the bytes and blocks without a stack that the timeline begins with.
func (s *Session) before(r *request, ids []int32) (sum [2]int64) {
	first, last := r.sl.tl.Span()
	if first == last {
		return sum // all of it is one moment
	}
	for _, id := range ids { // in the order of their births
		b := r.pool.Alloc(int(id))
		if b.Birth > first {
			break
		}
		if b.Tensor == 0 && r.filter.Passes(b.Tensor, b.Op) {
			sum[0], sum[1] = sum[0]+b.Size, sum[1]+1
		}
	}
	return sum
}

// writeStacks writes the stacks, and then the frames that they number.
func writeStacks(a *answer, tl *store.Timeline, list []store.Total) {
	var frames event.Strings
	number := func(frame string) int64 { return int64(frames.ID(frame)) }
	a.key("stacks").list()
	for i := range list {
		t := &list[i]
		a.list().num(t.Bytes).num(int64(t.Count)).num(int64(t.Category)).num(number(tl.Text(t.Op)))
		for rest := tl.Text(t.Tensor); rest != ""; {
			var frame string
			if frame, rest, _ = strings.Cut(rest, "\n"); frame != "" {
				a.num(number(frame))
			}
		}
		a.endList()
	}
	a.endList().key("frames").list()
	for i := range frames.Len() {
		a.text(frames.At(event.StringID(i)))
	}
	a.endList()
}
