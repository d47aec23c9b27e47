package remedy

import (
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis"
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
	t.least()
	var easier played
	if t.holes {
		easier = played{t.sequence(false), oneByOne}
	}
	t.try(&t.out, played{t.s, t.assumes}, easier, t.candidates(), t.capacity)
	t.needs()
	t.out.order()
	return t.out
}

// bestFit is the work on one dump.
type bestFit struct {
	d *bfclog.Dump
	r *analysis.Reading
	*work
	out Outcome

	request  int64
	limit    int64
	capacity int64 // of the device for this pool
	growth   bool
	s        *sequence
	assumes  string
	holes    bool // s builds the holes up, too
}

const oneByOne = "the chunks in use are asked for in the order of addresses, and nothing else ever was"

// replayable says whether the dump tells what is needed: the request, the
// limit and every chunk in use.
func (t *bestFit) replayable() bool {
	limit := t.r.Limit.Or(t.r.Pool)
	size := t.r.Rounded.Or(t.r.Requested)
	if !size.Known || !t.r.Exact || size.N <= 0 || size.N >= 1<<50 || !limit.Known || limit.N <= 0 || t.r.NotFailure {
		return false
	}
	t.request, t.limit, t.capacity = size.N, limit.N, limit.N
	if len(t.r.Refusals) > 0 && t.r.Pool.Known {
		t.capacity = t.r.Pool.N // the driver had no more that would have done
	}
	chunks, _, whole := t.d.SummaryTotals()
	if t.d.ListComplete {
		used, _, free, _ := t.d.Listed()
		chunks, whole = used+free, true
	}
	if whole && chunks > 0 && chunks <= maxChunks {
		return true
	}
	if t.d.Begun() && (len(t.d.Regions) > 0 || t.d.HasSummary) {
		t.out.say("Nothing was replayed: the list of chunks is cut, and what was in use is not known in full.")
		t.hole()
	}
	return false
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
	}
}

// sequence is the state and the failing request. With holes it is the list of
// chunks, region by region in the order in which regions grow; without, the
// chunks in use alone.
func (t *bestFit) sequence(holes bool) *sequence {
	s := newSequence(64)
	if !t.d.ListComplete {
		for _, c := range t.d.Summary {
			for range c.Count {
				s.add(call{what: ask, bytes: c.Size})
			}
		}
	} else {
		regions := slices.Clone(t.d.Regions)
		slices.SortStableFunc(regions, func(a, b bfclog.Region) int {
			switch {
			case a.Size != b.Size && a.Size < b.Size:
				return -1
			case a.Size != b.Size:
				return 1
			}
			return 0
		})
		var gaps []int32
		for i := range regions {
			for _, c := range regions[i].Chunks {
				switch {
				case c.InUse:
					s.add(call{what: ask, bytes: c.Size})
				case holes:
					gaps = append(gaps, s.add(call{what: ask, bytes: c.Size}))
				}
			}
		}
		for _, slot := range gaps {
			s.drop(slot)
		}
	}
	s.begins = len(s.calls)
	s.add(call{what: refused, bytes: t.request})
	return s
}

// machine is the program's own allocator.
func (t *bestFit) machine(growth bool, limit, capacity int64, fragmentation float64) (machine, error) {
	a, err := bfc.New(torch.NewDevice(alloc.NewCard(capacity), 0), bfc.Options{
		Limit: limit, Growth: growth, NoRetry: true, GarbageCollection: true, Fragmentation: fragmentation,
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
		for _, holes := range []bool{true, false} {
			if holes && !t.d.ListComplete {
				continue
			}
			t.s = t.sequence(holes)
			m, err := t.machine(t.growth, t.limit, t.capacity, 0)
			if err != nil {
				continue
			}
			r := t.play(t.s, m, t.capacity)
			if r.asRecorded(t.s) {
				t.holes = holes
				t.assume(holes)
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

func (t *bestFit) assume(holes bool) {
	switch {
	case holes:
		t.assumes = "the dump's chunks are asked for in the order of addresses, the free ones too, which are then given back"
		t.out.say("The dump's chunks were built up in the order of addresses, holes included; the request fails as recorded.")
	case t.d.ListComplete:
		t.assumes = oneByOne
		t.out.say("The chunks in use were asked for in the order of addresses; the request fails as recorded even so.")
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
		return t.replaced(t.s, bytes, func() (machine, error) { return t.machine(t.growth, t.limit, t.capacity, 0) })
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

func (t *bestFit) candidates() (list []candidate) {
	if t.d.HostPinned() {
		return nil // its pool has no switches, and no other allocator serves it
	}
	list = append(list, candidate{
		setting: growthText(!t.growth), kind: "bfc", own: true,
		make: func(capacity int64) (machine, error) { return t.machine(!t.growth, t.limit, capacity, 0) },
	})
	list = append(list, candidate{
		setting: "internal_fragmentation_fraction=0.01", kind: "bfc", own: true,
		make: func(capacity int64) (machine, error) { return t.machine(t.growth, t.limit, capacity, 0.01) },
	})
	if n := t.r.Obtainable; n.Known && n.N > t.limit {
		list = append(list, candidate{
			setting: fmt.Sprintf("a memory limit of %s, which the device has", event.FormatBytes(n.N)), kind: "bfc", own: true, capacity: n.N,
			make: func(capacity int64) (machine, error) { return t.machine(t.growth, n.N, capacity, 0) },
		})
	}
	return append(append(list, ofKind("TF_GPU_ALLOCATOR=cuda_malloc_async", "async")), others("bfc", "async")...)
}

// needs finds the least limit under which the replay serves, where the dump
// does not tell what the device has.
func (t *bestFit) needs() {
	if t.r.Obtainable.Known || t.capacity < t.limit || t.stopped {
		return
	}
	serves := func(granules int64) bool {
		limit := granules * bfc.MinAllocation
		m, err := t.machine(t.growth, limit, limit, 0)
		if err != nil {
			return false
		}
		r := t.play(t.s, m, limit)
		return r.serves(t.s)
	}
	low := t.limit / bfc.MinAllocation
	high := low + (t.request+t.out.Short)/bfc.MinAllocation + 2
	for range 8 { // a growing pool may need much more than the bytes
		if serves(high) {
			break
		}
		high += high - low
	}
	if t.stopped || !serves(high) {
		return
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; serves(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	if !t.stopped {
		t.out.say(fmt.Sprintf("A limit of %d bytes (%s more) would have served it, by the same replay, if the device has so much free, which the dump does not tell.",
			high*bfc.MinAllocation, event.FormatBytes(high*bfc.MinAllocation-t.limit)))
	}
}
