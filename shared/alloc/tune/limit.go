package tune

import (
	"math"
	"slices"

	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// DefaultCalls bounds the replays of a question together: some seconds.
const DefaultCalls = 40_000_000

// Options bound a search. The zero value is ready.
type Options struct {
	Limit int64 // under which settings are compared; 0 means the trace's own
	// Calls is the most calls that are replayed; 0 means DefaultCalls.
	Calls int64
	// Release of the program, such as "2.8": options that it lacks are left out
	// of the search for the best. "" means the newest.
	Release string
	// Stop ends the search when it says so; nil never does.
	Stop func() bool
}

// Least is the smallest limit of an allocator for a trace.
type Least struct {
	Limit   int64 // in bytes; 0 where no limit up to Ceiling serves the trace
	Granule int64 // Limit is the least among the multiples of it; 1 for all numbers
	// Proven: every limit from Limit on serves the trace, and Probed replays
	// stand for all of them. Otherwise Probed larger ones did, up to Ceiling.
	Proven  bool
	Probed  int
	Ceiling int64
	// Below is the next lower limit, which was replayed and fails, or is below
	// what is wanted at once and needs no replay; 0 where the search ended before.
	Below int64
}

// Complete reports whether the search came to its end.
func (l *Least) Complete() bool { return l.Limit > 0 && (l.Below > 0 || l.Limit <= l.Granule) }

// searcher counts what it replays.
type searcher struct {
	t       *contest.Trace
	o       Options
	calls   int64
	replays int
	over    bool
}

func newSearcher(t *contest.Trace, o Options) *searcher {
	if o.Calls == 0 {
		o.Calls = DefaultCalls
	}
	return &searcher{t: t, o: o}
}

// stop is asked within replays, too.
func (s *searcher) stop() bool {
	s.over = s.over || s.calls >= s.o.Calls || s.o.Stop != nil && s.o.Stop()
	return s.over
}

// run replays under a limit; math.MaxInt64 means none. The answer is false when
// the search is over.
func (s *searcher) run(c candidate, limit int64, all bool) (contest.Result, bool) {
	if s.stop() {
		return contest.Result{Stopped: true}, false
	}
	o := contest.Options{Limit: limit, UntilFailure: !all, Stop: s.stop}
	if limit == math.MaxInt64 {
		o.Limit, o.Unlimited = 0, true
	} else if c.needsCard() {
		// A power of two, so that the limit is an exact fraction of it.
		for o.Card = 1 << 20; o.Card <= limit; {
			o.Card *= 2
		}
	}
	r := s.t.Run(contest.Entry{Kind: c.kind, Settings: c.at(limit)}, o)
	s.calls += r.Calls + 1
	s.replays++
	return r, !r.Stopped
}

func (s *searcher) serves(c candidate, limit int64) (served, ok bool) {
	r, ok := s.run(c, limit, false)
	return r.Served(), ok
}

// SmallestLimit is the smallest limit under which an allocator serves a trace.
// It replays no more than the options allow; see Least.Complete.
func SmallestLimit(t *contest.Trace, e contest.Entry, o Options) (l Least, replays int) {
	s := newSearcher(t, o)
	l = s.least(candidate{kind: e.Kind, settings: e.Settings}, 0)
	return l, s.replays
}

// Serves replays a trace under a limit as the searches do: with a garbage
// collection threshold the limit is a part of a larger card's memory, without
// which PyTorch collects nothing.
func Serves(t *contest.Trace, e contest.Entry, limit int64) bool {
	served, _ := newSearcher(t, Options{Calls: math.MaxInt64}).serves(candidate{kind: e.Kind, settings: e.Settings}, limit)
	return served
}

// least finds the smallest limit. served, if not 0, is a limit that is known to
// serve: an upper bound.
func (s *searcher) least(c candidate, served int64) Least {
	if s.t.Floor == 0 && s.t.OutOfMem == 0 {
		return Least{Granule: 1} // nothing is asked for
	}
	if c.lazy() {
		l := s.descend(c)
		if l.Complete() || l.Limit == 0 || s.over {
			return l
		}
		if served = up(l.Limit, c.granule()); served > l.Limit {
			served -= c.granule() // limits are taken by whole granules
		}
		if ok, going := s.serves(c, served); !ok || !going {
			return l
		}
	}
	return s.bisect(c, served)
}

// mostSteps is after how many limits a descent leaves the rest to a bisection.
const mostSteps = 300

// descend goes down from no limit: what a replay reached is the limit of the
// next one, less a byte.
func (s *searcher) descend(c candidate) Least {
	l := Least{Granule: 1, Proven: true, Ceiling: math.MaxInt64}
	for limit := int64(math.MaxInt64); ; {
		r, ok := s.run(c, limit, false)
		if !ok {
			return l
		}
		if !r.Served() {
			l.Below = limit
			if limit == math.MaxInt64 {
				l = Least{Granule: 1}
			}
			return l
		}
		l.Limit = r.PeakReserved
		if l.Probed++; l.Probed > mostSteps {
			return l
		}
		if limit = r.PeakReserved - 1; limit < s.t.Floor {
			l.Below = limit // too little for what is wanted at once
			return l
		}
	}
}

// bisect finds a limit that serves whose neighbour does not, and then looks
// whether larger ones serve, too; a larger one that does not becomes the lower
// bound.
func (s *searcher) bisect(c candidate, served int64) Least {
	g := c.granule()
	l := Least{Granule: g}
	lo := (s.t.Floor - 1) / g // too little, in granules
	hi := served / g
	if hi == 0 {
		if hi = s.gallop(c, lo); hi == 0 {
			return l
		}
	}
	l.Ceiling = max(s.t.Limit, s.o.Limit, 2*hi*g)
	for {
		for hi-lo > 1 {
			mid := lo + (hi-lo)/2
			ok, going := s.serves(c, mid*g)
			if !going {
				l.Limit = hi * g
				return l
			}
			if ok {
				hi = mid
			} else {
				lo = mid
			}
		}
		l.Limit = hi * g
		bad, next, probed, going := s.probe(c, hi, l.Ceiling/g)
		l.Probed = probed
		if !going {
			return l
		}
		if bad == 0 {
			l.Below = max(1, lo*g)
			return l
		}
		lo, hi = bad, next
	}
}

// gallop finds a number of granules that serves, at distances from lo that
// double; 0 when there is none.
func (s *searcher) gallop(c candidate, lo int64) int64 {
	g := c.granule()
	const most = 1 << 42 // bytes: no card has that
	for step := max(1, lo/16); ; step *= 2 {
		ok, going := s.serves(c, (lo+step)*g)
		switch {
		case !going:
			return 0
		case ok:
			return lo + step
		case (lo+step)*g > most:
			return 0
		}
	}
}

// probe replays larger limits up to the ceiling: at distances that double, and
// at closeProbes even ones within a thirty-second, where a failure is likeliest.
// The highest that fails is bad, and next the lowest probed above it that serves.
func (s *searcher) probe(c candidate, hi, ceiling int64) (bad, next int64, probed int, going bool) {
	for _, at := range probes(hi, ceiling) {
		ok, going := s.serves(c, at*c.granule())
		if !going {
			return bad, next, probed, false
		}
		probed++
		switch {
		case !ok:
			bad, next = at, 0
		case bad > 0 && next == 0:
			next = at
		}
	}
	if bad > 0 && next == 0 { // the ceiling itself fails: look further up
		next = s.gallop(c, bad)
		return bad, next, probed, next > 0
	}
	return bad, next, probed, true
}

const closeProbes = 24

// probes are the numbers above hi to try, ascending, the ceiling the last.
func probes(hi, ceiling int64) []int64 {
	var list []int64
	for step := int64(1); hi+step < ceiling; step *= 2 {
		list = append(list, hi+step)
	}
	for i := int64(1); i <= closeProbes; i++ {
		if at := hi + hi/32*i/closeProbes; at > hi && at < ceiling {
			list = append(list, at)
		}
	}
	if ceiling > hi {
		list = append(list, ceiling)
	}
	ascending(list)
	return slices.Compact(list)
}

// granule is the step of limits that can make a difference for a bisection.
func (c candidate) granule() int64 {
	switch c.kind.Name {
	case "torch", "async":
		return 2 << 20 // segments and pages are multiples of it
	default:
		return 256
	}
}

// lazy reports whether the allocator heeds its limit only by being refused.
func (c candidate) lazy() bool {
	switch c.kind.Name {
	case "direct", "async":
		return true
	case "torch":
		return !c.has("expandable_segments") && !c.has("garbage_collection_threshold") && !c.has("memory_fraction")
	default:
		return false
	}
}

func (c candidate) needsCard() bool {
	return c.kind.Name == "torch" && c.has("garbage_collection_threshold")
}

// candidate is an allocator with settings, some of which may follow the limit.
type candidate struct {
	kind     *kinds.Kind
	settings []kinds.Setting
}

func (c candidate) has(option string) bool {
	for _, s := range c.settings {
		if s.Name == option && s.Value != "false" {
			return true
		}
	}
	return false
}
