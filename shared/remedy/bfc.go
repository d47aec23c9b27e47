package remedy

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/tune"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
)

// maxChunks bounds what a dump's summary can claim.
const maxChunks = 1 << 20

// BFC replays the failure of a BFC allocator's dump, which is a state without a
// history. r is the dump's reading.
func BFC(d *bfclog.Dump, r *analysis.Reading, o Options) Outcome {
	t := bestFit{d: d, r: r, work: o.work()}
	if !t.replayable() {
		return t.out
	}
	t.measure()
	if !t.baseline() {
		t.hole()
		return t.out
	}
	if t.how != alone { // a placement that was made up tells nothing of how things were
		t.least()
		t.needs()
	}
	var easier played
	s := played{sequence: t.s, assumes: t.assumes}
	if t.how != alone {
		easier = played{sequence: t.sequence(alone), assumes: t.oneByOne()}
	}
	if t.how == exact {
		s.doubts = []*sequence{t.sequence(alone)}
	}
	own, foreign := t.candidates()
	t.try(&t.out, s, easier, own, t.capacity)
	if t.how == exact { // how BFC splits is nothing to others
		s.sequence = t.sequence(holes)
		s.doubts = append(s.doubts, t.sequence(downwards))
	}
	t.try(&t.out, s, easier, foreign, t.capacity)
	t.tails()
	t.out.order()
	return t.out
}

// tails takes back what does not follow where the unused tails of chunks hold
// what is missing: a dump does not say what was asked for, and the replay asks
// for whole chunks.
func (t *bestFit) tails() {
	if !t.r.TailsHoldIt() {
		return
	}
	t.out.Trials = slices.DeleteFunc(t.out.Trials, func(x reading.Trial) bool { return !x.Serves })
	t.out.Short = 0
	t.out.say("The unused tails of the chunks in use hold what is missing, and what was asked for is not in the dump: whether other settings would have served is not known.")
}

// bestFit is the work on one dump.
type bestFit struct {
	d *bfclog.Dump
	r *analysis.Reading
	*work
	out Outcome

	rounded  string // a sentence, where figures are rounded
	request  int64
	limit    int64
	capacity int64 // of the device for this pool
	growth   bool
	s        *sequence
	assumes  string
	how      layout
}

const inOrder = "the dump's chunks are asked for in the order of addresses, the free ones too, which are then given back"

const oneByOne = "the chunks in use are asked for in the order of addresses, and nothing else ever was"

const inTurn = "the chunks in use are asked for in the order of their counts of actions, and nothing else ever was"

// oneByOne says in which order the chunks in use are asked for on their own.
func (t *bestFit) oneByOne() string {
	for i := range t.d.Regions {
		for j := range t.d.Regions[i].Chunks {
			if c := &t.d.Regions[i].Chunks[j]; c.InUse && c.Action > 0 {
				return inTurn
			}
		}
	}
	return oneByOne
}

// replayable says whether the dump tells what is needed: the request, the
// limit and every chunk in use.
func (t *bestFit) replayable() bool {
	if t.r.NotFailure || !t.sizes() {
		if t.d.Map && !t.r.Rounded.Known {
			t.out.say("Nothing was replayed: a memory map does not tell how much was asked for.")
		}
		return false
	}
	if len(t.r.Refusals) > 0 && t.r.Pool.Known {
		t.capacity = t.r.Pool.N // the driver had no more that would have done
	}
	chunks, _, whole := t.d.SummaryTotals()
	if t.d.ListComplete {
		used, _, free, _ := t.d.Listed()
		chunks, whole = used+free, true
	}
	if whole && chunks > 0 && chunks <= maxChunks {
		t.out.say(t.rounded)
		return true
	}
	if t.d.Begun() && (len(t.d.Regions) > 0 || t.d.HasSummary) {
		t.out.say("Nothing was replayed: the list of chunks is cut, and what was in use is not known in full.")
		t.hole()
	}
	return false
}

// sizes finds the request and the limit. Newer texts round both: then the
// printed figure is taken, and that is said.
func (t *bestFit) sizes() bool {
	size, limit := t.r.Rounded.Or(t.r.Requested), t.r.Limit
	if !size.Known || size.N <= 0 || size.N >= 1<<50 {
		return false
	}
	t.request = (size.N + bfc.MinAllocation - 1) &^ (bfc.MinAllocation - 1)
	printed := t.d.Limit.Or(t.d.PoolLimit)
	switch {
	case limit.Known:
		t.limit = limit.N
	case printed.Known && printed.N < 1<<50:
		t.limit = max(printed.N, t.r.Pool.N)
	case t.r.Pool.Known:
		t.limit = t.r.Pool.N
	}
	t.capacity = t.limit
	if !t.r.Exact || !limit.Known {
		t.rounded = "The text rounds the request or the limit; the printed figures are taken."
	}
	return t.limit > 0
}

// measure says what no placement could have made up for.
func (t *bestFit) measure() {
	_, used, ok := t.d.SummaryTotals()
	if t.d.ListComplete || !ok {
		_, used, _, _ = t.d.Listed()
	}
	t.out.Short = max(0, used+t.request-t.capacity/bfc.MinAllocation*bfc.MinAllocation)
}

// hole tells the least reduction without a replay, where the pool cannot grow
// and its largest hole is known.
func (t *bestFit) hole() {
	full := t.r.Pool.Known && t.r.Available.Known && t.r.Available.N < bfc.MinAllocation
	if full && t.r.LargestFree.Known && t.r.LargestFree.N < t.request {
		t.out.Least = t.request - t.r.LargestFree.N
		t.out.say("The least reduction follows from the largest hole, since the pool cannot grow.")
	}
}

// layout is how closely a dump's chunks are built up.
type layout uint8

const (
	exact     layout = iota // each where it lay, by means that BFC's splitting allows
	holes                   // chunk by chunk, free ones too, which are then given back
	alone                   // the chunks in use
	downwards               // as holes, from the last chunk to the first
	// apart is as exact, but that the last chunk of a region is left in pieces:
	// where a region is larger than it was, the surplus then lies free behind,
	// instead of going to the last chunk whole.
	apart
)

// ascending are the regions in the order in which regions grow: doubling, and
// at the end those that the limit or the driver cut short.
func (t *bestFit) ascending() []bfclog.Region {
	regions := slices.Clone(t.d.Regions)
	cut := func(r *bfclog.Region) bool { return r.Size&(r.Size-1) != 0 }
	sort.SliceStable(regions, func(i, j int) bool {
		a, b := &regions[i], &regions[j]
		if cut(a) != cut(b) {
			return cut(b)
		}
		return a.Size < b.Size
	})
	return regions
}

// sequence is the state and the failing request.
func (t *bestFit) sequence(how layout) *sequence {
	s := newSequence(64)
	var gaps []int32
	switch {
	case !t.d.ListComplete:
		for _, c := range t.d.Summary {
			for range c.Count {
				s.add(call{what: ask, bytes: c.Size})
			}
		}
	case how == exact || how == apart:
		for _, r := range t.ascending() {
			gaps = append(gaps, carve(s, &r, how == apart)...)
		}
	default:
		var list []bfclog.Chunk
		for _, r := range t.ascending() {
			list = append(list, r.Chunks...)
		}
		if how == downwards {
			slices.Reverse(list)
		}
		if how == alone { // in the order in which they were taken, where the dump tells it
			sort.SliceStable(list, func(i, j int) bool { return list[i].Action < list[j].Action })
		}
		for _, c := range list {
			if c.InUse {
				s.add(call{what: ask, bytes: c.Size})
			} else if how != alone {
				gaps = append(gaps, s.add(call{what: ask, bytes: c.Size}))
			}
		}
	}
	for _, slot := range gaps {
		s.drop(slot)
	}
	s.begins = len(s.calls)
	s.add(call{what: refused, bytes: t.request})
	return s
}

// carve builds a region up to the byte. A request that is more than half of the
// only free chunk would get all of it, so the region is taken whole, given back
// and cut into pieces of at most half of what is left, with a cut at every
// border of chunks; then each chunk's pieces make room for it. It returns the
// slots of the free chunks' pieces. With apart the last chunk stays in pieces.
func carve(s *sequence, r *bfclog.Region, apart bool) (gaps []int32) {
	s.drop(s.add(call{what: ask, bytes: r.Size}))
	left := r.Size
	pieces := make([][]int32, len(r.Chunks))
	for i, c := range r.Chunks {
		for size := c.Size; size > 0; {
			n := size
			if n < left || apart && n > bfc.MinAllocation { // of the last chunk all is taken at once
				n = max(bfc.MinAllocation, min(size, left/2&^(bfc.MinAllocation-1)))
			}
			pieces[i] = append(pieces[i], s.add(call{what: ask, bytes: n}))
			size -= n
			left -= n
		}
	}
	for i, c := range r.Chunks {
		switch {
		case !c.InUse:
			gaps = append(gaps, pieces[i]...)
		case len(pieces[i]) > 1 && (!apart || i < len(r.Chunks)-1):
			for _, slot := range pieces[i] {
				s.drop(slot)
			}
			s.add(call{what: ask, bytes: c.Size})
		}
	}
	return gaps
}

// machine is the program's own allocator.
func (t *bestFit) machine(growth bool, limit, capacity int64) (machine, error) {
	a, err := bfc.New(torch.NewDevice(alloc.NewCard(capacity), 0), bfc.Options{
		Limit: limit, Growth: growth, NoRetry: true, GarbageCollection: true,
	})
	if err != nil {
		return nil, fmt.Errorf("replay a dump: %w", err)
	}
	return plain{a}, nil
}

// baseline finds a way to build the state up that fails as recorded.
func (t *bestFit) baseline() bool {
	served := false
	growths := []bool{t.r.Growth == bfclog.Yes}
	if t.r.Growth == bfclog.Unknown {
		growths = []bool{false, true}
	}
	for _, t.growth = range growths {
		for _, t.how = range []layout{exact, holes, alone} {
			if t.how != alone && !t.d.ListComplete {
				continue
			}
			t.s = t.sequence(t.how)
			m, err := t.machine(t.growth, t.limit, t.capacity)
			if err != nil {
				continue
			}
			r := t.play(t.s, m, t.capacity)
			if r.asRecorded(t.s) {
				t.assume()
				return true
			}
			served = served || r.serves(t.s)
		}
	}
	if t.stopped {
		t.out.say("There are too many chunks to replay them here.")
		return false
	}
	switch {
	case t.out.Short > 0:
		t.out.say(fmt.Sprintf("What was in use and the request together are %s more than there is, so no placement serves both.", event.FormatBytes(t.out.Short)))
	case served:
		t.out.say("The dump lists what was in use, not how it came to lie so. Placed anew under the recorded settings, the request would be served: what broke the pool up is not in the dump, so no setting can be said to serve.")
	default:
		t.out.say("The chunks in use cannot be placed anew under the recorded settings in the order in which the dump lists them, so nothing was tried.")
	}
	return false
}

func (t *bestFit) assume() {
	switch {
	case t.how != alone:
		t.assumes = inOrder
		t.out.say("The dump's chunks were built up in the order of addresses, holes included; the request fails as recorded.")
	case t.d.ListComplete:
		t.assumes = t.oneByOne()
		order := "addresses"
		if t.assumes == inTurn {
			order = "their counts of actions"
		}
		t.out.say("The chunks in use were asked for in the order of " + order + "; the request fails as recorded even so.")
	default:
		t.assumes = "the chunks in use are asked for from the smallest size to the largest, as the dump's summary has them, and nothing else ever was"
		t.out.say("The chunks in use, as the summary counts them, were asked for from the smallest size to the largest; the request fails as recorded even so.")
	}
	if t.r.Growth == bfclog.Unknown {
		t.out.say("The dump does not say whether the pool grows on demand; " + map[bool]string{true: "it is taken to.", false: "it is taken to be one region."}[t.growth])
	}
	if t.capacity < t.limit {
		t.out.say("The driver refused, so the device is taken to have not a byte more than the pool held.")
	}
}

func (t *bestFit) least() {
	n, known := largest(t.request, bfc.MinAllocation, func(bytes int64) (bool, bool) {
		return t.replaced(t.s, bytes, func() (machine, error) { return t.machine(t.growth, t.limit, t.capacity) })
	})
	if known {
		t.out.least(t.request, n)
	}
}

// growthText is the switch as its user writes it.
func growthText(on bool) string {
	if on {
		return "TF_FORCE_GPU_ALLOW_GROWTH=true"
	}
	return "TF_FORCE_GPU_ALLOW_GROWTH=false"
}

func (t *bestFit) candidates() (own, foreign []candidate) {
	if !t.d.HostPinned() { // whose pool has no switches, and which no other allocator serves
		own = append(own, candidate{
			setting: growthText(!t.growth), kind: "bfc", own: true,
			make: func(capacity int64) (machine, error) { return t.machine(!t.growth, t.limit, capacity) },
		})
		foreign = append([]candidate{ofKind("TF_GPU_ALLOCATOR=cuda_malloc_async", "async")}, others("bfc", "async")...)
	}
	if n := t.r.Obtainable; n.Known && n.N > t.limit {
		own = append(own, candidate{
			setting: fmt.Sprintf("a memory limit of %s, which the device has", event.FormatBytes(n.N)), kind: "bfc", own: true, capacity: n.N,
			make: func(capacity int64) (machine, error) { return t.machine(t.growth, n.N, capacity) },
		})
	}
	return own, foreign
}

// needs finds the least limit under which the replay serves, where the dump
// does not tell what the device has.
func (t *bestFit) needs() {
	if t.r.Obtainable.Known || t.capacity < t.limit || t.stopped {
		return
	}
	x := t.trace(t.placed())
	least, replays := tune.SmallestLimit(x, t.entry(), tune.Options{Limit: t.limit, Calls: t.left, Stop: t.stop})
	t.left = max(0, t.left-int64(replays)*int64(x.Len()))
	if !least.Complete() || least.Limit <= t.limit {
		return
	}
	how := "by the same replay"
	if t.how == exact && !t.growth {
		how = "the chunks in use staying where they lay and what is more being free behind the last"
	}
	t.out.say(fmt.Sprintf("A limit of %d bytes (%s more) would have served it, and is the smallest, %s; the dump does not tell whether the device has so much free.",
		least.Limit, event.FormatBytes(least.Limit-t.limit), how))
}

// placed is the layout for other limits.
func (t *bestFit) placed() layout {
	if t.how == exact {
		return apart
	}
	return t.how
}

// entry is the program's own allocator.
func (t *bestFit) entry() contest.Entry {
	k, err := kinds.ByName("bfc")
	if err != nil {
		return contest.Entry{} // cannot happen
	}
	return contest.Entry{Kind: k, Settings: []kinds.Setting{{Name: "growth", Value: strconv.FormatBool(t.growth)}}}
}

// trace is the state and the failing request as a trace.
func (t *bestFit) trace(how layout) *contest.Trace {
	return t.sequence(how).trace(&contest.Trace{Name: t.d.Allocator, Kind: "bfc", Limit: t.capacity})
}
