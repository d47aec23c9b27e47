package remedy

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// way is how the state at the beginning of a trace comes about.
type way uint8

const (
	withHoles way = iota // by requests for live blocks and for what was idle between, which is given back
	liveAlone            // by requests for live blocks
	backwards            // as withHoles, the segments from the highest address to the lowest
	inPlace              // as recorded; settings change where the trace begins
)

// sequence is the state at the beginning and the trace behind it.
func (t *caching) sequence(how way) *sequence {
	s := newSequence(t.end + 2*t.live)
	at := make(map[uint64]int32, t.live)
	if how == inPlace {
		t.asItStood(s, at)
	} else {
		var gaps []int32
		for i := range t.begin {
			if how == backwards {
				i = len(t.begin) - 1 - i
			}
			gaps = t.segment(s, &t.begin[i], how != liveAlone, at, gaps)
		}
		for _, slot := range gaps {
			s.drop(slot)
		}
	}
	s.begins = len(s.calls)
	private := t.private()
	for i := 0; i < t.end; i++ {
		switch e := &t.in.Trace[i]; e.Action {
		case torch.ActionAlloc:
			if e.Size > 0 {
				at[e.Addr] = s.add(call{what: ask, bytes: e.Size, stream: uint32(e.Stream), pool: s.pool(poolOf(private, e.Addr))})
			}
		case torch.ActionFreeCompleted:
			if slot, ok := at[e.Addr]; ok {
				s.drop(slot)
				delete(at, e.Addr)
			}
		case torch.ActionOOM:
			s.add(call{what: refused, bytes: max(1, e.Size), stream: uint32(e.Stream)})
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			next, forced := t.givenBack(i)
			if !forced {
				s.add(call{what: empty})
			}
			i = t.frees(s, at, i, next)
		default:
		}
	}
	return s
}

// frees takes the frees out of a run of segments that were given back, which
// ends before entry next, and returns the run's last entry.
func (t *caching) frees(s *sequence, at map[uint64]int32, i, next int) int {
	for ; i < next; i++ {
		if e := &t.in.Trace[i]; e.Action == torch.ActionFreeCompleted {
			if slot, ok := at[e.Addr]; ok {
				s.drop(slot)
				delete(at, e.Addr)
			}
		}
	}
	return next - 1
}

// givenBack is where a run of segments that were given back ends, and whether
// a request forced it: then it is for the replay to find that out again. What
// a program gave back right before the driver was asked looks the same, and
// counts as forced: that favours no setting.
func (t *caching) givenBack(i int) (next int, forced bool) {
	for next = i; next < t.end; next++ {
		switch t.in.Trace[next].Action {
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap, torch.ActionFreeCompleted:
		case torch.ActionSegmentAlloc, torch.ActionSegmentMap, torch.ActionOOM:
			return next, true
		default:
			return next, false
		}
	}
	return next, false
}

// asItStood gives slots to the blocks that are there when the trace begins.
// Those that wait for a stream come back by themselves.
func (t *caching) asItStood(s *sequence, at map[uint64]int32) {
	for i := range t.begin {
		for _, b := range t.begin[i].Blocks {
			if b.State == torch.ActiveAllocated {
				at[b.Address] = s.take()
				s.held = append(s.held, b.Address)
			}
		}
		s.streams = max(s.streams, uint32(t.begin[i].Stream)+1)
		s.pool(t.begin[i].Pool)
	}
}

// segment asks for what a segment held. A segment of the large pool was once a
// single request; that one goes first, and its blocks are then cut out of it.
func (t *caching) segment(s *sequence, g *torch.SnapshotSegment, holes bool, at map[uint64]int32, gaps []int32) []int32 {
	if g.Active == 0 && !holes {
		return gaps
	}
	c := call{what: ask, stream: uint32(g.Stream), pool: s.pool(g.Pool)}
	if holes && g.Large && !g.Expandable {
		c.bytes = g.Total
		s.drop(s.add(c))
	}
	for _, b := range g.Blocks {
		if b.State != torch.Inactive {
			c.bytes = b.Size
			if b.Requested > 0 && t.in.Settings.Round(b.Requested) == b.Size {
				c.bytes = b.Requested
			}
			at[b.Address] = s.add(c)
		} else if holes {
			idle(b.Size, g.Large, func(bytes int64) {
				c.bytes = bytes
				gaps = append(gaps, s.add(c))
			})
		}
	}
	return gaps
}

// private are the segments of private pools that are there at the end or at
// the beginning: the trace does not say of which pool a request was.
func (t *caching) private() (list []torch.SnapshotSegment) {
	for _, l := range [][]torch.SnapshotSegment{t.in.Segments, t.begin} {
		for i := range l {
			if !l[i].Pool.Default() && len(list) < maxPools {
				list = append(list, l[i])
			}
		}
	}
	return list
}

func poolOf(private []torch.SnapshotSegment, addr uint64) torch.PoolID {
	for i := range private {
		if g := &private[i]; addr >= g.Address && addr-g.Address < uint64(g.Total) {
			return g.Pool
		}
	}
	return torch.PoolID{}
}

// machine is the program's own allocator under some settings. capacity 0 is an
// endless device.
func (t *caching) machine(settings *torch.Settings, capacity int64) (machine, error) {
	o := torch.Options{Settings: *settings}
	card := capacity
	if settings.GarbageCollection > 0 && capacity > 0 && t.limited {
		// The limit is a fraction of a larger device.
		card = max(t.beyond, capacity+1)
		o.Fraction = (float64(capacity) + 0.5) / float64(card)
	}
	if t.how == inPlace {
		o.Settings = t.in.Settings
	}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(card), 0), o)
	if err == nil && t.how == inPlace {
		if err = a.Restore(t.begin); err == nil {
			err = a.SetSettings(*settings)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("replay a snapshot under %q: %w", settings.String(), err)
	}
	return pytorch{a}, nil
}
