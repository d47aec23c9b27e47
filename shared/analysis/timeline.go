package analysis

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/analysis/ledger"
	"tideline/shared/analysis/pins"
	"tideline/shared/ingest/bfclog"
)

// Timeline gathers what a run's events say about memory: peaks, who held it at
// the peak and at each failure, transfers and stalls. It is an event.Sink: feed
// it all events in order, then call Summary. Its memory grows with the blocks
// that live at once, not with the number of events.
type Timeline struct {
	strs    *event.Strings
	devices []deviceState
	allocs  []allocatorState
	sum     Summary
	stalls  map[uint64]stallStart
	copies  [8]Transfers
	seen    [event.NumKinds]int64
}

// Summary is what a run did with memory.
type Summary struct {
	Events     int64
	Nanos      int64 // from the first to the last event
	Steps      int64 // that ended
	Allocators []AllocatorSummary
	Transfers  []Transfers // by cause, those that happened
	Stalls     Stalls
	Failures   []RecordedFailure
	Settings   event.Fields
	Lost       int64 // events that are missing
	Ended      bool
	End        event.EndReason
	EndText    string
}

// AllocatorSummary is one allocator over the whole run.
type AllocatorSummary struct {
	ID               event.AllocatorID
	Name, Device     string
	Limit            amount
	InUse, Reserved  int64 // at the end
	PeakInUse        int64
	PeakAt           int64 // nanoseconds
	PeakReserved     int64
	PeakReservedAt   int64 // nanoseconds
	Floor            int64 // bytes: the most that was asked for at once; no allocator does with less
	DriverCalls      int64 // regions taken, given back and refused
	Allocs, Frees    int64
	PeakByCategory   [event.NumCategories]int64
	Fragmentation    float64 // worst over the failures, 0 without any
	UnknownAddresses int64   // frees of blocks that were never seen
	// Within is the allocator that this one's memory is a part of: a planned
	// arena is one block to that, and its tensors are told here. Their bytes
	// must not be added up.
	Within string
	// ArenaUnused is the part of PeakInUse that lies in planned arenas and is no
	// tensor's when they are fullest. PeakByCategory has the arena's tensors in
	// the place of the arena.
	ArenaUnused int64
	Reported    bool // the peaks are those that an imported log tells, not those of the blocks it lists
}

// Utilisation is the peak in use over the peak reserved, and 1 when nothing was.
func (a *AllocatorSummary) Utilisation() float64 {
	return Measures{Reserved: a.PeakReserved, InUse: a.PeakInUse}.Utilisation()
}

// Cost is what the allocator held at its peak beyond the least that any could
// have done with.
func (a *AllocatorSummary) Cost() int64 { return max(0, a.PeakReserved-a.Floor) }

// Transfers sums the copies of one cause.
type Transfers struct {
	Cause event.TransferCause
	Count int64
	Bytes int64
}

// Stalls sums the time in which steps waited for their input.
type Stalls struct {
	Count int64
	Nanos int64
}

// RecordedFailure is an out-of-memory of the run with its reading.
type RecordedFailure struct {
	Time    int64
	Waited  int64 // nanoseconds since the allocator last gave or took a block
	Step    int32
	Reading *Reading
	Ledger  *ledger.Ledger // where all memory of the card was then; nil where its size is not known
	Pins    []pins.Pin     // regions that little keeps, by op; of a pool of several
	ByKind  []Held         // by category, the largest first
	ByOp    []Held         // by op, the largest first
	Blocks  int64
	// Problem says why the event could not be read; Reading is nil then.
	Problem string
}

// Held is memory in use under one name.
type Held struct {
	Name   string
	Bytes  int64
	Blocks int64
}

type deviceState struct {
	name, card  string
	total, free amount // free: of the driver, when the run began
	held        amount // by other processes, then
	driver      amount // of this process, outside its allocators
	context     amount // the same with what its allocators leave
	pools       int64  // of its allocators together, now
	reported    map[string]amount
}

type allocatorState struct {
	out      AllocatorSummary
	device   event.DeviceID
	growth   bfclog.Tri
	live     map[uint64]live
	now      [event.NumCategories]int64
	asked    int64  // bytes of what is in use that were asked for
	kind     string // which allocator, a name of shared/alloc/kinds
	largest  int64
	changed  int64 // nanoseconds; when a block last came or went
	refusals []int64
	known    bool
	partial  bool
	imported bool
	arena    arenaState
}

type live struct {
	size     int64
	asked    int64
	op       event.StringID
	category event.Category
}

type stallStart struct{ at int64 }

// Bounds against files that lie about their ids.
const (
	maxAllocators = 1 << 12
	maxRefusals   = 1 << 10
	maxFailures   = 1 << 10
	topHolders    = 16
)

// NewTimeline returns an empty Timeline. strs is the table of the events that
// will follow.
func NewTimeline(strs *event.Strings) *Timeline {
	return &Timeline{strs: strs, stalls: map[uint64]stallStart{}}
}

// Emit takes the next event.
func (t *Timeline) Emit(e *event.Event) {
	s := &t.sum
	s.Events++
	s.Nanos = max(s.Nanos, e.Time)
	if int(e.Kind) < len(t.seen) {
		t.seen[e.Kind]++
	}
	switch e.Kind {
	case event.DeviceFacts:
		t.deviceFacts(e)
	case event.AllocatorFacts:
		t.allocatorFacts(e)
	case event.RegionAdd, event.RegionRemove, event.RegionRefused:
		t.region(e)
	case event.Alloc, event.Free, event.Forward:
		t.block(e)
	case event.TransferBegin:
		if int(e.Cause) < len(t.copies) {
			t.copies[e.Cause].Count++
			t.copies[e.Cause].Bytes += e.Size
		}
	case event.Sample:
		t.sample(e)
	case event.Annotation:
		t.annotation(e)
	case event.StepEnd:
		s.Steps++
	case event.StallBegin:
		t.stalls[e.ID] = stallStart{e.Time}
	case event.StallEnd:
		if b, ok := t.stalls[e.ID]; ok {
			delete(t.stalls, e.ID)
			s.Stalls.Count++
			s.Stalls.Nanos += e.Time - b.at
		}
	case event.OutOfMemory:
		t.failure(e)
	case event.Settings:
		s.Settings, _ = event.ParseFields(t.strs.At(e.Text))
	case event.Lost:
		s.Lost += e.Size
	case event.End:
		s.Ended, s.End, s.EndText = true, event.EndReason(e.Cause), t.strs.At(e.Text)
	default:
	}
}

func (a *allocatorState) pinned() bool { return HostPinned(a.out.Name) }

func (t *Timeline) device(id event.DeviceID) *deviceState {
	for int(id) >= len(t.devices) && len(t.devices) < maxAllocators {
		t.devices = append(t.devices, deviceState{name: "device " + strconv.Itoa(len(t.devices))})
	}
	if int(id) >= len(t.devices) {
		return &deviceState{}
	}
	return &t.devices[id]
}

func (t *Timeline) allocator(id event.AllocatorID, dev event.DeviceID) *allocatorState {
	for int(id) >= len(t.allocs) && len(t.allocs) < maxAllocators {
		t.allocs = append(t.allocs, allocatorState{live: map[uint64]live{}})
		t.allocs[len(t.allocs)-1].out.Name = "allocator " + strconv.Itoa(len(t.allocs)-1)
	}
	if int(id) >= len(t.allocs) {
		return &allocatorState{live: map[uint64]live{}}
	}
	a := &t.allocs[id]
	if !a.known {
		a.known, a.device = true, dev
	}
	return a
}

func (t *Timeline) deviceFacts(e *event.Event) {
	d := t.device(e.Device)
	f, _ := event.ParseFields(t.strs.At(e.Text))
	if name := f.Text("name"); name != "" {
		d.name = name
	}
	d.total, d.free = fieldAmount(f, "total"), fieldAmount(f, "free")
	d.held, d.driver, d.context = fieldAmount(f, "held"), fieldAmount(f, "context"), outside(f, d.free)
	d.card = f.Text("card")
}

// outside is what this process cannot give to its allocator: the driver's
// context and, where the limit was worked out and not configured, the reserve
// that it leaves.
func outside(f event.Fields, free amount) amount {
	context := fieldAmount(f, "context")
	limit, reserve := fieldAmount(f, "limit"), fieldAmount(f, "reserve")
	if context.Known && limit.Known && reserve.Known && limit.N == free.N-reserve.N {
		context.N += reserve.N
	}
	return context
}

// driverFree is what the driver has left: what it had when the run began, less
// what all allocators on the same card have taken since.
func (t *Timeline) driverFree(d *deviceState) amount {
	if !d.free.Known {
		return amount{}
	}
	left := d.free.N - d.pools
	for i := range t.devices {
		if o := &t.devices[i]; o != d && d.card != "" && o.card == d.card {
			left -= o.pools
		}
	}
	return cause.Of(max(0, left))
}

func fieldAmount(f event.Fields, key string) amount {
	text, ok := f.Get(key)
	if !ok {
		return amount{}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return amount{}
	}
	return cause.Of(n)
}

func (t *Timeline) allocatorFacts(e *event.Event) {
	a := t.allocator(e.Allocator, e.Device)
	f, _ := event.ParseFields(t.strs.At(e.Text))
	if name := f.Text("name"); name != "" {
		a.out.Name = name
	}
	if e.Size > 0 {
		a.out.Limit = cause.Of(e.Size)
	}
	a.out.Within, a.kind = f.Text("within"), f.Text("kind")
	a.partial = f.Text(PartialKey) == "true"
	a.imported = f.Text(FormatKey) != ""
	if g := growthFact(f); g != bfclog.Unknown {
		a.growth = g
	}
}

// sample keeps the totals that an imported log reports.
func (t *Timeline) sample(e *event.Event) {
	switch name := t.strs.At(e.Op); name {
	case ReportedInUse, ReportedPeak, ReportedPool, ReportedFree, ReportedLargestFree:
		d := t.device(e.Device)
		if d.reported == nil {
			d.reported = map[string]amount{}
		}
		d.reported[name] = cause.Of(e.Size)
	}
}

// annotation takes over the verdict of an imported failure, which was decided
// from more than the events can carry.
func (t *Timeline) annotation(e *event.Event) {
	word, ok := strings.CutPrefix(t.strs.At(e.Text), VerdictNote)
	n := len(t.sum.Failures)
	if ok && n > 0 && t.sum.Failures[n-1].Reading != nil && t.sum.Failures[n-1].Time == e.Time {
		t.sum.Failures[n-1].Reading.Verdict = Verdict(word)
	}
}

func (t *Timeline) region(e *event.Event) {
	a, d := t.allocator(e.Allocator, e.Device), t.device(e.Device)
	a.out.DriverCalls++
	switch e.Kind {
	case event.RegionAdd:
		a.out.Reserved += e.Size
		if a.out.Within == "" {
			d.pools += e.Size
		} else {
			t.beginArena(a, e)
		}
		if a.out.Reserved > a.out.PeakReserved {
			a.out.PeakReserved, a.out.PeakReservedAt = a.out.Reserved, e.Time
		}
		a.refusals = a.refusals[:0]
	case event.RegionRemove:
		a.out.Reserved -= e.Size
		if a.out.Within == "" {
			d.pools -= e.Size
		} else {
			t.endArena(a)
		}
	default:
		if len(a.refusals) < maxRefusals {
			a.refusals = append(a.refusals, e.Size)
		}
	}
}

func (t *Timeline) block(e *event.Event) {
	a := t.allocator(e.Allocator, e.Device)
	a.changed = e.Time
	if e.Kind == event.Alloc {
		a.refusals = a.refusals[:0]
		a.out.Allocs++
		a.largest = max(a.largest, e.Size)
		a.add(e)
		if a.out.InUse > a.out.PeakInUse {
			a.out.PeakInUse, a.out.PeakAt, a.out.PeakByCategory = a.out.InUse, e.Time, a.now
			a.arena.atPeak(e)
		}
		if a.out.Within != "" {
			a.arena.fuller(a)
		}
		return
	}
	b, ok := a.live[e.Address]
	if !ok {
		a.out.UnknownAddresses++
		return
	}
	a.now[b.category] -= b.size
	a.out.InUse -= b.size
	a.asked -= b.asked
	if e.Kind == event.Forward { // same memory, another tensor
		a.add(&event.Event{Address: e.Address, Size: b.size, Requested: b.asked, Op: e.Op, Category: e.Category})
		return
	}
	delete(a.live, e.Address)
	a.out.Frees++
}

func (a *allocatorState) add(e *event.Event) {
	c := e.Category.Plain()
	if int(c) >= event.NumCategories {
		c = event.Unknown
	}
	a.live[e.Address] = live{e.Size, e.Requested, e.Op, c}
	a.now[c] += e.Size
	a.asked += e.Requested
	a.out.Floor = max(a.out.Floor, a.asked)
	a.out.InUse += e.Size
}

func (t *Timeline) failure(e *event.Event) {
	if len(t.sum.Failures) >= maxFailures {
		return
	}
	a, d := t.allocator(e.Allocator, e.Device), t.device(e.Device)
	f := Failure{
		Allocator: a.out.Name, Device: d.name, Growth: a.growth, Limit: a.out.Limit, DeviceTotal: d.total,
		Peak: cause.Of(a.out.PeakInUse), Allocs: cause.Of(a.out.Allocs), LargestAlloc: cause.Of(a.largest),
		Refusals: slices.Clone(a.refusals),
	}
	f.DriverFree, f.Others, f.Outside = t.driverFree(d), d.held, d.context
	if a.pinned() { // host memory: the card's figures say nothing about it
		f.DeviceTotal, f.DriverFree, f.Others, f.Outside = amount{}, amount{}, amount{}, amount{}
	}
	if a.imported {
		a.out.report(d.reported)
	}
	if a.partial {
		f.Partial, f.Peak = true, d.reported[ReportedPeak]
		f.InUse, f.Pool = d.reported[ReportedInUse], d.reported[ReportedPool]
		f.Free, f.LargestFree = d.reported[ReportedFree], d.reported[ReportedLargestFree]
		d.reported = nil // the next failure has its own
	}
	out := RecordedFailure{Time: e.Time, Step: e.Step, Blocks: int64(len(a.live))}
	if a.out.Allocs > 0 {
		out.Waited = max(0, e.Time-a.changed)
	}
	r, err := FromOutOfMemory(e, t.strs, f)
	if err != nil {
		out.Problem = err.Error()
	} else {
		out.Reading = r
		if a.imported {
			r.Waste = amount{} // what was requested of a chunk is not in a log
		}
		a.out.Fragmentation = max(a.out.Fragmentation, r.Fragmentation)
	}
	out.Ledger = t.ledgerOf(a, e)
	if out.Reading != nil {
		out.Pins = out.Reading.Pins()
		for i := range out.Pins {
			out.Pins[i].Holder = t.strs.At(a.live[out.Pins[i].Largest].op)
		}
	}
	out.ByKind, out.ByOp = t.holders(a, t.inner(a))
	t.sum.Failures = append(t.sum.Failures, out)
}

// report takes over the peaks that an imported log tells: the blocks that it
// lists are those of one instant, and often not all.
func (a *AllocatorSummary) report(told map[string]amount) {
	for _, x := range []struct {
		name string
		to   *int64
	}{{ReportedPeak, &a.PeakInUse}, {ReportedPool, &a.PeakReserved}} {
		if n := told[x.name]; n.Known && n.N > *x.to {
			*x.to, a.Reported = n.N, true
		}
	}
	if a.Reported {
		a.PeakByCategory = [event.NumCategories]int64{}
	}
}

// holders sums what is in use by category and by op. in is what lies in the
// allocator's planned arenas, which stands for them as far as it goes; nil for
// none.
func (t *Timeline) holders(a, in *allocatorState) (kinds, ops []Held) {
	byOp := map[event.StringID]Held{}
	var byKind [event.NumCategories]Held
	sum := func(live map[uint64]live, without map[uint64]int64) {
		for at, b := range live {
			if _, ok := without[at]; ok {
				continue
			}
			byKind[b.category].Bytes += b.size
			byKind[b.category].Blocks++
			h := byOp[b.op]
			h.Bytes += b.size
			h.Blocks++
			byOp[b.op] = h
		}
	}
	if in == nil {
		sum(a.live, nil)
	} else {
		sum(a.live, in.arena.held)
		sum(in.live, nil)
		if unused := in.out.Reserved - in.out.InUse; unused > 0 {
			kinds = append(kinds, Held{Name: "unused in the planned arena", Bytes: unused, Blocks: 1})
			ops = append(ops, Held{Name: "(planned arena, unused)", Bytes: unused, Blocks: 1})
		}
	}
	for c, h := range byKind {
		if h.Blocks > 0 {
			h.Name = event.Category(c).String()
			kinds = append(kinds, h)
		}
	}
	for id, h := range byOp {
		if h.Name = t.strs.At(id); h.Name == "" {
			h.Name = "(no op)"
		}
		ops = append(ops, h)
	}
	sortHeld(kinds)
	sortHeld(ops)
	return kinds, ops[:min(len(ops), topHolders)]
}

func sortHeld(h []Held) {
	sort.SliceStable(h, func(i, j int) bool {
		if h[i].Bytes != h[j].Bytes {
			return h[i].Bytes > h[j].Bytes
		}
		return h[i].Name < h[j].Name
	})
}

// Summary is what the events so far amount to.
func (t *Timeline) Summary() *Summary {
	s := t.sum
	for i := range t.allocs {
		a := &t.allocs[i]
		if !a.known {
			continue
		}
		a.out.ID, a.out.Device = event.AllocatorID(i), t.device(a.device).name
		out := a.out
		if in := t.inner(a); in != nil {
			in.arena.open(&out, a.arena.fresh && len(in.arena.held) > 0)
		}
		s.Allocators = append(s.Allocators, out)
	}
	for c, x := range t.copies {
		if x.Count > 0 {
			x.Cause = event.TransferCause(c)
			s.Transfers = append(s.Transfers, x)
		}
	}
	return &s
}

// Count is how many events of a kind there were.
func (t *Timeline) Count(k event.Kind) int64 {
	if int(k) < len(t.seen) {
		return t.seen[k]
	}
	return 0
}
