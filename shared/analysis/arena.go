package analysis

import "tideline/protocol/event"

// arenaState is, of an allocator that lies within another, what its arenas
// hold, and what they held at the other's peak. An arena is asked for, and may
// make the outer peak, before anything is put into it; what counts is what it
// holds when it is fullest.
type arenaState struct {
	held map[uint64]int64 // address -> bytes, of arenas that are held now

	best   int64 // most that was in use during this execution
	bestBy [event.NumCategories]int64
	bestOf int64 // bytes of the arenas then
	peak   int64 // most during the execution of the outer peak
	peakBy [event.NumCategories]int64
	peakOf int64 // bytes of the arenas then; 0 when none was held at that peak

	// Of the outer allocator: the block that made its peak.
	block uint64
	fresh bool // the peak is newer than what its arenas held then
}

// atPeak notes, of the outer allocator, that its peak is higher than before.
func (s *arenaState) atPeak(e *event.Event) { s.block, s.fresh = e.Address, true }

// fuller notes what the inner allocator holds, if that is the most of this
// execution.
func (s *arenaState) fuller(a *allocatorState) {
	if a.out.InUse > s.best {
		s.best, s.bestBy, s.bestOf = a.out.InUse, a.now, a.out.Reserved
	}
}

// outer is the allocator that an allocator lies within; nil for most.
func (t *Timeline) outer(a *allocatorState) *allocatorState {
	for i := range t.allocs {
		if o := &t.allocs[i]; a.out.Within != "" && o.out.Name == a.out.Within && o.device == a.device && o.known {
			return o
		}
	}
	return nil
}

// inner is the reverse.
func (t *Timeline) inner(a *allocatorState) *allocatorState {
	for i := range t.allocs {
		if in := &t.allocs[i]; in.out.Within != "" && in.out.Within == a.out.Name && in.device == a.device {
			return in
		}
	}
	return nil
}

// beginArena begins an execution, if no arena is held.
func (t *Timeline) beginArena(a *allocatorState, e *event.Event) {
	s := &a.arena
	if s.held == nil {
		s.held = map[uint64]int64{}
	}
	if len(s.held) == 0 {
		s.best, s.bestBy, s.bestOf = 0, [event.NumCategories]int64{}, 0
		if o := t.outer(a); o != nil && o.arena.fresh && o.arena.block != e.Address {
			s.peakOf, o.arena.fresh = 0, false // the peak was before this, with no arena
		}
	}
	s.held[e.Address] = e.Size
	if s.best == 0 {
		s.bestOf = a.out.Reserved
	}
}

// endArena ends an execution, and takes over what it held if the outer peak
// was reached during it.
func (t *Timeline) endArena(a *allocatorState) {
	s := &a.arena
	if o := t.outer(a); o != nil && o.arena.fresh {
		s.peak, s.peakBy, s.peakOf = s.best, s.bestBy, s.bestOf
		o.arena.fresh = false
	}
	if a.out.Reserved <= 0 {
		clear(s.held)
	}
}

// open puts what the arenas held at the outer peak in their place. fresh: that
// was in the execution that still goes on.
func (s *arenaState) open(out *AllocatorSummary, fresh bool) {
	by, in, of := &s.peakBy, s.peak, s.peakOf
	if fresh {
		by, in, of = &s.bestBy, s.best, s.bestOf
	}
	if of == 0 || out.PeakByCategory[event.Temporary] < of {
		return
	}
	out.PeakByCategory[event.Temporary] -= of
	for c, n := range by {
		out.PeakByCategory[c] += n
	}
	out.ArenaUnused = of - in
}
