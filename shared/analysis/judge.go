package analysis

import (
	"math"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

// span is every value that a quantity may have, as far as the input tells.
type span struct {
	lo, hi int64
	known  bool
}

func exactly(n int64) span { return span{n, n, true} }

func (a span) or(b span) span {
	if a.known {
		return a
	}
	return b
}

func spanOf(a amount) span {
	if !a.Known {
		return span{}
	}
	return exactly(a.N)
}

func spanOfSize(s bfclog.Size) span { return span{s.Lo, s.Hi, s.Known} }

// facts are what a verdict is decided from: the same for a log and for a
// failure of our own. Unknown quantities are tried at both extremes.
type facts struct {
	fixed   cause.Inputs // what is exact or unknown for good
	request span         // rounded
	limit   span
	pool    span
	inUse   span
	refused bool
	// recorded is the cause that was decided at the moment of failure, by the
	// same rules but with what the driver said just then. It has precedence.
	recorded event.OOMCause
	async    bool // the stream-ordered allocator's text: the driver keeps the pool
	// state: the input holds more than the request itself.
	state     bool
	truncated bool
}

// dumpFacts gathers the decision's inputs out of a log.
func dumpFacts(r *Reading, d *bfclog.Dump) facts {
	f := facts{
		request:   spanOf(r.Rounded).or(spanOfSize(d.Request.Size)),
		limit:     spanOf(r.Limit).or(spanOfSize(d.Limit.Or(d.PoolLimit))),
		pool:      spanOf(r.Pool).or(spanOfSize(d.Pool)),
		inUse:     spanOf(r.InUse).or(spanOfSize(d.InUse.Or(d.SumTotal))),
		refused:   len(d.Refusals) > 0,
		async:     d.Async,
		state:     d.Begun(),
		truncated: d.Truncated,
	}
	f.fixed.HostPinned = r.HostPinned
	f.fixed.LargestFree = r.LargestFree
	f.fixed.DeviceTotal, f.fixed.DriverFree = r.DeviceTotal, r.DriverFree
	if used, all, ok := binSpans(d); ok {
		f.inUse, f.pool = f.inUse.or(used), f.pool.or(all)
	}
	if !f.limit.known && r.Growth == bfclog.No {
		f.limit = f.pool
	}
	return f
}

// binSpans sums the bin lines: bytes in use and bytes of all chunks. The first
// generation counts free chunks only, which bounds neither.
func binSpans(d *bfclog.Dump) (used, all span, ok bool) {
	if len(d.Bins) != 21 || d.FreeOnly {
		return used, all, false
	}
	for _, b := range d.Bins {
		if !b.Used.Known || !b.Allocated.Known {
			return span{}, span{}, false
		}
		used.lo, used.hi = used.lo+b.Used.Lo, used.hi+b.Used.Hi
		all.lo, all.hi = all.lo+b.Allocated.Lo, all.hi+b.Allocated.Hi
	}
	used.known, all.known = true, true
	return used, all, true
}

// judge decides the verdict and what else there is to say.
func (r *Reading) judge(f facts) {
	if f.async {
		// What its statistics call a limit is what the driver keeps for it.
		f.limit = span{}
	}
	r.assume(&f)
	c, decided := r.decide(&f)
	if f.async {
		r.Decision.Missing, r.Decision.AfterCompaction = amount{}, amount{}
	}
	if f.recorded != event.OOMUndetermined {
		c, decided = f.recorded, true
	}
	r.Verdict = Verdict(c.String())
	if f.async && (c == event.OOMFragmented || c == event.OOMFull || c == event.OOMOtherProcess) {
		// The pool is the driver's: how much of it is idle is not in the text.
		decided = false
	}
	if f.request.known && f.request.lo > largestCard && !f.fixed.DeviceTotal.Known && !r.HostPinned && c != event.OOMNotMemory {
		c, decided = event.OOMRequestExceedsDevice, true // whatever the device is
		r.Verdict = RequestExceedsDevice
	}
	r.Decision.Cause = c
	if !decided || c == event.OOMUndetermined {
		r.Verdict = r.undecided(&f)
		r.Decision.Cause, _ = event.ParseOOMCause(string(r.Verdict)) // else undetermined
	}
	if r.Decision.Cause != event.OOMFragmented {
		r.Decision.Kind = cause.NoKind
	}
	if r.Verdict == Full && !r.Recorded && r.manyEqual(leakCount) {
		// A recorded run tells which op each block is of, and whether it grows:
		// package finding says that there is a leak, and who it is.
		r.Verdict = LeakManyEqualChunks
	}
	r.findings(&f)
	r.certainties(&f)
	if r.Verdict == LimitTooLow && r.Decision.TinyLimit && r.InUse.Known && r.InUse.N < r.Limit.N/10 {
		r.LikelyCause = othersBefore
	}
	if o := r.origin(); o != "" && r.Decision.TinyLimit {
		r.LikelyCause = o
	}
}

// assume fills a gap by what is true of nearly every such log, and says so.
func (r *Reading) assume(f *facts) {
	if !f.pool.known && f.limit.known && f.inUse.known && !f.async && !f.refused && r.Growth != bfclog.Yes && !barDenies(r.Bar, f.limit.hi, f.inUse.hi) {
		f.pool = f.limit
		if f.inUse.hi < f.limit.lo {
			r.Assumed = append(r.Assumed,
				"The text does not say how much the allocator had taken from the driver; it is taken to be its whole limit, as without memory growth.")
		}
	}
	if !f.limit.known && f.pool.known && f.inUse.known && f.request.known &&
		f.inUse.hi+f.request.hi <= f.pool.lo && !f.refused {
		// Enough bytes are free in the pool itself, so the limit, which can
		// only be larger, changes nothing about what moving them would do.
		f.limit = f.pool
		r.Assumed = append(r.Assumed,
			"The limit is not in the text; the free bytes of the pool alone decide.")
	}
	if !f.request.known && f.pool.known && f.limit.known && f.inUse.known &&
		f.inUse.lo >= f.pool.hi && f.limit.hi-f.pool.lo < granule {
		f.request = exactly(granule) // whatever was asked, nothing was left
	}
}

// decide runs the rules at the extremes of everything that is not exact. The
// answer counts only if all of them agree.
func (r *Reading) decide(f *facts) (event.OOMCause, bool) {
	pools := []span{f.pool}
	if !f.pool.known && f.limit.known && f.inUse.known {
		pools = []span{exactly(f.inUse.lo), exactly(f.limit.hi)}
	}
	var first event.OOMCause
	seen, agree := false, true
	for _, pool := range pools {
		for corner := range 16 {
			in := f.fixed
			in.Rounded = f.request.at(corner & 1)
			in.InUse = f.inUse.at(corner >> 1 & 1)
			in.Limit = f.limit.at(corner >> 2 & 1)
			in.Reserved = pool.at(corner >> 3 & 1)
			in.Request = r.Requested.Or(in.Rounded)
			in.Refused = f.refused
			v := cause.Decide(in)
			if !seen {
				first, seen, r.Decision = v.Cause, true, v
			}
			agree = agree && v.Cause == first
		}
	}
	if !f.request.exact() || !f.inUse.exact() || !f.limit.exact() {
		r.Decision.Missing = amount{} // a difference of rounded figures
		r.Decision.AfterCompaction = amount{}
	}
	return first, agree
}

func (a span) at(end int) amount {
	switch {
	case !a.known:
		return amount{}
	case end == 0:
		return cause.Of(a.lo)
	default:
		return cause.Of(a.hi)
	}
}

func (a span) exact() bool { return a.known && a.lo == a.hi }

// undecided finds the combined word for what the rules leave open.
func (r *Reading) undecided(f *facts) Verdict {
	if v, ok := r.asyncPool(f); ok {
		return v
	}
	if r.refusedWhole(f) {
		return OtherProcess
	}
	if len(r.Pinned) > 0 && !f.state && !f.request.known {
		return HostPinnedLimit
	}
	pool := amount{}
	if f.pool.exact() {
		pool = cause.Of(f.pool.lo)
	}
	if v, ok := byBar(r.Bar, pool, f.request.at(0)); ok && !f.inUse.known {
		r.emptyPool()
		switch {
		case v == Full && r.HostPinned:
			return HostPinnedLimit
		case v == FullOrFragmentedByBar && r.PoolAtMost.Known:
			return LimitTooLow
		}
		return v
	}
	if r.FromMap && !f.request.known && !f.truncated {
		return UndeterminedNoRequest
	}
	if f.state || f.truncated {
		return UndeterminedTruncated
	}
	return UndeterminedNoState
}

// refusedWhole says whether the driver refused a region that would have held the
// request. The allocator asks for one only within its limit, so that the limit
// allowed it.
func (r *Reading) refusedWhole(f *facts) bool {
	if !f.refused || !f.request.known || f.limit.known {
		return false
	}
	for _, n := range r.Refusals {
		if n >= f.request.hi {
			return true
		}
	}
	return false
}

// asyncPool judges the stream-ordered allocator's text: what is neither in use
// nor free for the driver is cached in its pool or somebody else's.
func (r *Reading) asyncPool(f *facts) (Verdict, bool) {
	free, total := r.DriverFree, r.DeviceTotal
	if !free.Known || !total.Known || !f.request.known {
		return "", false
	}
	if free.N >= f.request.hi {
		return DriverRefusedDespiteFree, true
	}
	if !f.inUse.known {
		return UndeterminedNoState, true
	}
	lacking := f.request.hi - free.N
	if f.pool.exact() { // the driver told how much of it is in its pool
		cached, others := f.pool.lo-f.inUse.hi, total.N-free.N-f.pool.lo
		switch {
		case cached >= lacking && others < lacking:
			return Fragmented, true
		case cached < lacking && others >= lacking:
			return OtherProcess, true
		}
	}
	if total.N-free.N-f.inUse.hi >= lacking {
		return FragmentedPoolOrCached, true
	}
	return Full, true
}

// Numbers of equal chunks. A training step rarely keeps a hundred tensors of
// one size beyond half of its memory; a leak does.
const (
	leakCount = 100
	manyCount = 16
)

func (r *Reading) manyEqual(count int64) bool {
	share, ok := r.DominantShare()
	return ok && share > 0.5 && r.DominantCount.N >= count
}

// findings lists what stands beside the cause, the weightiest first.
func (r *Reading) findings(f *facts) {
	add := func(cond bool, word string) {
		if cond && string(r.Verdict) != word && !slices.Contains(r.Findings, word) {
			r.Findings = append(r.Findings, word)
		}
	}
	add(r.Verdict == LeakManyEqualChunks, string(Full))
	add(r.Decision.TinyLimit && !r.HostPinned, string(LimitTooLow))
	add(r.Verdict != LeakManyEqualChunks && r.manyEqual(manyCount), "many_equal_chunks")
	share, ok := r.DominantShare()
	add(ok && share > 0.5 && r.DominantCount.N == 1, "one_chunk_dominates")
	add(f.refused && r.Verdict != OtherProcess, "driver_refused")
	add(r.Verdict == OtherProcess && r.Free.Known && !r.FreeIsOfLimit && f.request.known && r.Free.N >= f.request.hi, string(Fragmented))
	add(len(r.Pinned) > 0, "host_pinned_refused")
	add(r.Collected, "regions_given_back")
	add(r.NotFailure, "caller_can_do_without")
	r.oversized(add)
}

// oversized notes memory lost inside chunks that are larger than their use, as
// the x cells of the bar show it.
func (r *Reading) oversized(add func(bool, string)) {
	x := 0
	for i := range len(r.Bar) {
		if r.Bar[i] == 'x' {
			x++
		}
	}
	add(len(r.Bar) == 100 && x >= 10 || r.Waste.N > 0 && r.Waste.N >= r.InUse.N/10, "oversized_chunks")
}

// certainties says what holds although the verdict is open.
func (r *Reading) certainties(f *facts) {
	if !r.Verdict.Undetermined() {
		return
	}
	size, ok := bfclog.ParseSize(r.LargestFreeText)
	if !ok && r.LargestFree.Known {
		size, ok = bfclog.ExactSize(r.LargestFree.N), true
	}
	if ok && f.request.known && size.Hi < f.request.lo {
		r.Certain = append(r.Certain, "no free chunk can hold the request")
	}
	if ok && r.FreeChunks.Known && r.FreeChunks.N == 1 {
		r.Certain = append(r.Certain, "the only free chunk is about "+spaced(size))
	}
	if r.Free.Known && f.request.known && r.Free.N < f.request.lo {
		r.Certain = append(r.Certain, "the free bytes of the pool are fewer than the request")
	}
}

// spaced writes a printed size the way people do: "132.16 MiB".
func spaced(s bfclog.Size) string {
	text := s.Text
	if text == "" {
		text = bfclog.Human(s.N)
	}
	for i := range len(text) {
		if c := text[i]; c >= 'A' && c <= 'Z' {
			return text[:i] + " " + text[i:]
		}
	}
	return text
}

// round6 keeps six decimals, as the reports show ratios.
func round6(f float64) float64 { return math.Round(f*1e6) / 1e6 }
