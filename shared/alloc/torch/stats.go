package torch

// group names what is counted.
type group uint8

// The four that every free touches last, and the four that every allocation
// touches, lie together.
const (
	allocations group = iota
	allocatedBytes
	active
	activeBytes
	requestedBytes
	segment
	reservedBytes
	inactiveSplit
	inactiveSplitBytes
	numGroups
)

// Stat is one figure over time.
type Stat struct {
	Current   int64
	Peak      int64
	Allocated int64 // sum of all increases since the start or ResetAccumulated
	Freed     int64 // sum of all decreases
}

// counter is a Stat with the decreases left to be worked out.
type counter struct{ current, peak, total, base int64 }

func (c *counter) up(n int64) {
	c.current += n
	c.total += n
	c.peak = max(c.peak, c.current)
}

func (c *counter) down(n int64) { c.current -= n }

func (c *counter) stat() Stat {
	return Stat{c.current, c.peak, c.total, c.base + c.total - c.current}
}

func (c *counter) resetTotal() { c.total, c.base = 0, c.current }
func (c *counter) resetPeak()  { c.peak = c.current }

// table is all that is counted.
type table struct {
	counters                              [numKinds][numGroups]counter
	oversizeAllocations, oversizeSegments counter

	retries, ooms, syncs, deviceAllocs, deviceFrees int64
	maxSplit                                        int64
}

func (t *table) up(k kind, g group, n int64) {
	t.counters[all][g].up(n)
	t.counters[k][g].up(n)
}

func (t *table) down(k kind, g group, n int64) {
	t.counters[all][g].down(n)
	t.counters[k][g].down(n)
}

func (t *table) change(k kind, g group, n int64) {
	if n > 0 {
		t.up(k, g, n)
	} else {
		t.down(k, g, -n)
	}
}

func (t *table) handedOut(k kind, size, requested int64) {
	for _, c := range [...]*[numGroups]counter{&t.counters[all], &t.counters[k&3%numKinds]} {
		c[allocations].up(1)
		c[allocatedBytes].up(size)
		c[active].up(1)
		c[activeBytes].up(size)
		c[requestedBytes].up(requested)
	}
}

func (t *table) takenBack(k kind, size int64) {
	t.down(k, allocations, 1)
	t.down(k, allocatedBytes, size)
}

// Kinds is one figure for all blocks, the small and the large ones.
type Kinds struct{ All, Small, Large Stat }

// Statistics are all figures of memory_stats, of this instant. Counts unless
// the name says bytes.
type Statistics struct {
	Allocation, Segment, Active, InactiveSplit                                     Kinds
	AllocatedBytes, ReservedBytes, ActiveBytes, InactiveSplitBytes, RequestedBytes Kinds
	OversizeAllocations, OversizeSegments                                          Stat
	NumAllocRetries, NumOOMs, NumSyncAllStreams, NumDeviceAlloc, NumDeviceFree     int64
	MaxSplitSize                                                                   int64 // -1 when there is none
	ReservedByPrivatePools                                                         []PoolBytes
}

// PoolBytes is what a private pool holds of the driver.
type PoolBytes struct {
	Pool  PoolID
	Bytes int64
}

// Statistics are the figures of this instant.
func (a *Allocator) Statistics() Statistics {
	t := &a.stats
	of := func(g group) Kinds {
		return Kinds{t.counters[all][g].stat(), t.counters[small][g].stat(), t.counters[large][g].stat()}
	}
	s := Statistics{
		Allocation: of(allocations), Segment: of(segment), Active: of(active), InactiveSplit: of(inactiveSplit),
		AllocatedBytes: of(allocatedBytes), ReservedBytes: of(reservedBytes), ActiveBytes: of(activeBytes),
		InactiveSplitBytes: of(inactiveSplitBytes), RequestedBytes: of(requestedBytes),
		OversizeAllocations: t.oversizeAllocations.stat(), OversizeSegments: t.oversizeSegments.stat(),
		NumAllocRetries: t.retries, NumOOMs: t.ooms, NumSyncAllStreams: t.syncs,
		NumDeviceAlloc: t.deviceAllocs, NumDeviceFree: t.deviceFrees, MaxSplitSize: t.maxSplit,
	}
	if s.MaxSplitSize == unlimited {
		s.MaxSplitSize = -1
	}
	for _, p := range a.privates {
		s.ReservedByPrivatePools = append(s.ReservedByPrivatePools, PoolBytes{p.id, p.held})
	}
	return s
}

// ResetPeaks makes every peak the present value.
func (a *Allocator) ResetPeaks() {
	a.eachCounter((*counter).resetPeak)
}

// ResetAccumulated starts all sums and counts anew.
func (a *Allocator) ResetAccumulated() {
	a.eachCounter((*counter).resetTotal)
	t := &a.stats
	t.retries, t.ooms, t.syncs, t.deviceAllocs, t.deviceFrees = 0, 0, 0, 0, 0
}

func (a *Allocator) eachCounter(f func(*counter)) {
	for k := range a.stats.counters {
		for g := range a.stats.counters[k] {
			f(&a.stats.counters[k][g])
		}
	}
	f(&a.stats.oversizeAllocations)
	f(&a.stats.oversizeSegments)
}
