package remedy

import (
	"tideline/shared/alloc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
)

// DefaultBudget is how many calls all replays of an input may come to: about
// three seconds at 400 ns a call.
const DefaultBudget = 8_000_000

// Options bound the work.
type Options struct {
	Budget int64       // calls of an allocator; 0 means DefaultBudget
	Stop   func() bool // asked now and then; nil never stops

	shared *work // of several failures in one input
}

// work is what is left to spend.
type work struct {
	left    int64
	stop    func() bool
	stopped bool // something was left out
}

func (o Options) work() *work {
	if o.shared != nil {
		o.shared.stopped = false
		return o.shared
	}
	w := &work{left: o.Budget, stop: o.Stop}
	if w.left <= 0 {
		w.left = DefaultBudget
	}
	return w
}

// afford takes the calls of one replay out of the budget, if they are there.
func (w *work) afford(s *sequence) bool {
	n := int64(len(s.calls))
	if w.stopped || n > w.left || w.stop != nil && w.stop() {
		w.stopped = true
		return false
	}
	w.left -= n
	return true
}

// machine is an allocator that a sequence is played on.
type machine interface {
	serve(s *sequence, c *call) (addr uint64, ok bool)
	Free(addr uint64) error
	giveBack() // idle memory to the driver, where the program can ask for it
	endStep()
	Stats() alloc.Stats
}

// pytorch is the caching allocator, which knows pools.
type pytorch struct{ *torch.Allocator }

func (m pytorch) serve(s *sequence, c *call) (addr uint64, ok bool) {
	b, ok := m.AllocateOn(torch.Request{Bytes: c.bytes, Stream: torch.Stream(c.stream), Pool: s.pools[c.pool]})
	return b.Address, ok
}

func (m pytorch) giveBack() { m.EmptyCache() }
func (m pytorch) endStep()  { m.ProcessEvents() }

// plain is an allocator without streams.
type plain struct{ alloc.Allocator }

func (m plain) serve(_ *sequence, c *call) (addr uint64, ok bool) {
	b, ok := m.Allocate(alloc.Request{Bytes: c.bytes, NoRetry: true})
	return b.Address, ok
}

func (plain) giveBack() {}
func (plain) endStep()  {}

// some is an allocator of any kind.
type some struct{ *kinds.Instance }

func (m some) serve(s *sequence, c *call) (addr uint64, ok bool) {
	if s.streams > 1 {
		m.UseStream(stream.ID(c.stream))
	}
	r := alloc.Request{Bytes: c.bytes, NoRetry: true}
	var b alloc.Block
	if c.stays {
		b, ok = m.AllocateParameter(r)
	} else {
		b, ok = m.Allocate(r)
	}
	return b.Address, ok
}

func (m some) giveBack() {
	if t, ok := m.Allocator.(*torch.Allocator); ok {
		t.EmptyCache()
	}
}

func (m some) endStep() { m.Synchronize(); m.EndStep() }

// result is what came of a replay.
type result struct {
	played bool // to its end, or to the first call that went wrong
	// broke says that a request which the original served was refused, at call
	// number at; the replay ends there.
	broke    bool
	at       int
	unserved int   // refused calls that were refused again
	peak     int64 // bytes held of the driver
	spare    int64 // after the last refused call was served; -1 where nobody knows
}

// serves: everything was served, and something had been refused.
func (r *result) serves(s *sequence) bool {
	return r.played && !r.broke && r.unserved == 0 && s.fails > 0
}

// fails as the original did.
func (r *result) asRecorded(s *sequence) bool {
	return r.played && !r.broke && r.unserved == s.fails && s.fails > 0
}

// stopEvery is how many calls pass between two looks at Stop.
const stopEvery = 1 << 14

// play replays a sequence. capacity is for the spare; 0 when it is not known.
func (w *work) play(s *sequence, m machine, capacity int64) (r result) {
	r.spare = -1
	if !w.afford(s) {
		return r
	}
	at := make([]uint64, s.slots)
	copy(at, s.held)
	left := s.fails
	for i := range s.calls {
		if i%stopEvery == stopEvery-1 && w.stop != nil && w.stop() {
			w.stopped = true
			return r
		}
		c := &s.calls[i]
		switch c.what {
		case ask:
			addr, ok := m.serve(s, c)
			if !ok {
				r.played, r.broke, r.at = true, true, i
				r.peak = m.Stats().PeakPool
				return r
			}
			at[c.slot] = addr
		case refused:
			left--
			addr, ok := m.serve(s, c)
			if !ok {
				r.unserved++
				continue
			}
			if left == 0 {
				r.spare = spare(m, capacity)
			}
			if err := m.Free(addr); err != nil {
				return r
			}
		case drop:
			if err := m.Free(at[c.slot]); err != nil {
				return r // cannot happen: it was handed out
			}
		case empty:
			m.giveBack()
		case stepEnd:
			m.endStep()
		}
	}
	r.played = true
	st := m.Stats()
	r.peak = max(st.PeakPool, st.Pool)
	return r
}

// spare is what one more block could have had: the larger of what could still
// be taken and the largest free block.
func spare(m machine, capacity int64) int64 {
	if capacity <= 0 {
		return -1
	}
	m.giveBack()
	st := m.Stats()
	return max(0, capacity-st.Pool, st.LargestFree)
}

// largest finds the largest request, a multiple of granule, that is served in
// place of the last refused one; 0 when none is. Both sides are tried: it is
// served, and one granule more is not.
func largest(request, granule int64, served func(bytes int64) (ok, known bool)) (int64, bool) {
	low, high := int64(0), (request+granule-1)/granule
	for high-low > 1 {
		mid := low + (high-low)/2
		ok, known := served(mid * granule)
		if !known {
			return 0, false
		}
		if ok {
			low = mid
		} else {
			high = mid
		}
	}
	return low * granule, true
}

// replaced replays with another size of the last refused request.
func (w *work) replaced(s *sequence, bytes int64, build func() (machine, error)) (ok, known bool) {
	m, err := build()
	if err != nil {
		return false, false
	}
	c := s.last()
	was := c.bytes
	c.bytes = bytes
	left := s.fails
	r := w.play(s, m, 0)
	c.bytes = was
	// All but the last may go as they went.
	return r.played && !r.broke && (r.unserved < left || left == 0), r.played
}
