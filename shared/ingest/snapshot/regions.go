package snapshot

import "sort"

// held are the ranges that an allocator has of the driver, ascending and
// without overlap.
type held []span

type span struct {
	addr uint64
	size int64
}

func (s span) end() uint64 { return s.addr + uint64(s.size) }

func (h held) after(addr uint64) int {
	return sort.Search(len(h), func(i int) bool { return h[i].addr >= addr })
}

// add puts a range in, unless it makes no sense.
func (h *held) add(s span) bool {
	if s.size <= 0 || s.end() < s.addr {
		return false
	}
	i := h.after(s.addr)
	if i < len(*h) && (*h)[i].addr < s.end() || i > 0 && (*h)[i-1].end() > s.addr {
		return false
	}
	*h = append(*h, span{})
	copy((*h)[i+1:], (*h)[i:])
	(*h)[i] = s
	return true
}

// cut takes a range out. gone are the ranges it touched, as they were, rest
// what remains of them.
func (h *held) cut(s span) (gone, rest []span) {
	if s.size <= 0 || s.end() < s.addr {
		return nil, nil
	}
	i := h.after(s.addr)
	if i > 0 && (*h)[i-1].end() > s.addr {
		i--
	}
	k := i
	for ; k < len(*h) && (*h)[k].addr < s.end(); k++ {
		x := (*h)[k]
		gone = append(gone, x)
		if x.addr < s.addr {
			rest = append(rest, span{x.addr, int64(s.addr - x.addr)})
		}
		if x.end() > s.end() {
			rest = append(rest, span{s.end(), int64(x.end() - s.end())})
		}
	}
	tail := append([]span(nil), (*h)[k:]...)
	*h = append(append((*h)[:i], rest...), tail...)
	return gone, rest
}

// maxSegmentEvents bounds the work that moving ranges about can be: a trace
// with more, which no program makes, keeps the ranges of its end.
const maxSegmentEvents = 200_000

// before takes the ranges of the end back to where the trace begins.
func (s *Snapshot) before(t Trace, h held) held {
	n := 0
	for i := range t.n {
		if a := s.Event(t, i).Action; a >= SegmentAlloc && a <= SegmentUnmap {
			n++
		}
	}
	if n > maxSegmentEvents {
		return h
	}
	for i := t.n - 1; i >= 0; i-- {
		e := s.Event(t, i)
		switch e.Action {
		case SegmentAlloc, SegmentMap:
			h.cut(span{e.Addr, e.Size})
		case SegmentFree, SegmentUnmap:
			h.add(span{e.Addr, e.Size})
		default:
		}
	}
	return h
}
