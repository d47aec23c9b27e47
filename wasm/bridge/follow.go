package bridge

import "math/bits"

// window answers with the window in which a run that goes on is followed, and
// its span so far.
func (s *Session) window() {
	a := s.out.open()
	if sl := s.slots[Current]; sl != nil {
		first, last := sl.tl.Span()
		t0, t1 := sl.window()
		a.key("t0").num(t0).key("t1").num(t1).key("first").num(first).key("last").num(last)
	}
	s.out = *a.close()
}

// window is where to look at a run that goes on: all of it from its beginning,
// and a little of what is to come, so that the window stays while the run grows
// by some percent. In a window that stays a picture need only be drawn where it
// grew, and an axis does not shiver.
func (sl *slot) window() (t0, t1 int64) {
	first, last := sl.span()
	t1 = first + roomFor(last-first)
	return sl.begin(first, t1), t1
}

// roomFor is more than d, by at most a sixteenth: so many units of a power of two
// that there are between 16 and 32 of them.
func roomFor(d int64) int64 {
	unit := int64(1) << max(bits.Len64(uint64(max(d, 0)))-5, 0)
	return (max(d, 0)/unit + 1) * unit
}
