package profiler

import (
	"math"
	"slices"
	"sort"

	"tideline/protocol/event"
)

// LifetimePeak is the field of an allocator's facts that tells the most bytes in
// use of its life before the first event, where a profile tells that.
const LifetimePeak = "lifetime_peak_bytes"

// MaxEvents bounds what a Recorder keeps.
const MaxEvents = 4_000_000

// Recorder makes the profiler's events of a run's own. It is an event.Sink. The
// statistics of an event are those that the profiler would have read from
// TensorFlow's allocator: nothing is on its stack, and what is available is the
// limit less what is in use, whatever the pool holds. A pool without a limit, such
// as PyTorch's, has what it holds of the driver instead. Of a pool of which neither
// is told nothing is available to anybody's knowledge, and without the pool's
// memory there is no fragmentation: the events say so.
type Recorder struct {
	strings *event.Strings
	pools   []pool
	events  []Event
	step    int64
}

// NewRecorder makes one for the events of a run with these strings.
func NewRecorder(strings *event.Strings) *Recorder { return &Recorder{strings: strings, step: NoStep} }

// Events are those recorded so far.
func (r *Recorder) Events() []Event { return r.events }

// pool is an allocator with the runs of free memory in it.
type pool struct {
	name        string
	inner       bool // lies within another, which has its memory already
	limit       int64
	inUse, peak int64
	regions     []region
	live        map[uint64]block
	largest     int64
	free        int64
	reserved    int64 // in regions
	held        bool  // regions were told of
}

type block struct {
	size, requested int64
	op, tensor      event.StringID
	category        event.Category
}

// region is memory got from the driver; free are its runs, by address.
type region struct {
	address uint64
	size    int64
	free    []run
}

type run struct {
	at   uint64
	size int64
}

// Emit implements event.Sink.
func (r *Recorder) Emit(e *event.Event) {
	switch e.Kind {
	case event.AllocatorFacts:
		p := r.pool(e.Allocator)
		f, _ := event.ParseFields(r.strings.At(e.Text))
		p.name, p.limit, p.inner = f.Text("name"), e.Size, f.Text("within") != ""
		p.peak = max(p.peak, f.Int(LifetimePeak))
	case event.RegionAdd:
		p := r.pool(e.Allocator)
		p.regions = append(p.regions, region{e.Address, e.Size, []run{{e.Address, e.Size}}})
		p.free += e.Size
		p.reserved, p.held = p.reserved+e.Size, true
		p.largest = max(p.largest, e.Size)
	case event.RegionRemove:
		p := r.pool(e.Allocator)
		p.regions = slices.DeleteFunc(p.regions, func(x region) bool { return x.address == e.Address })
		p.free -= e.Size
		p.reserved -= e.Size
		p.find()
	case event.StepBegin:
		r.step = int64(e.Step)
	case event.StepEnd:
		r.step = NoStep
	case event.Alloc:
		p := r.pool(e.Allocator)
		p.live[e.Address] = block{e.Size, e.Requested, e.Op, e.Tensor, e.Category}
		p.take(e.Address, e.Size)
		r.tell(e, p, p.live[e.Address], false)
	case event.Forward: // no allocation: the profiler sees nothing
	case event.Free:
		p := r.pool(e.Allocator)
		b, ok := p.live[e.Address]
		if !ok {
			return
		}
		delete(p.live, e.Address)
		p.give(e.Address, b.size)
		b.op, b.tensor = 0, 0 // the profiler does not tell whose it was
		r.tell(e, p, b, true)
	default:
	}
}

func (r *Recorder) pool(id event.AllocatorID) *pool {
	for int(id) >= len(r.pools) {
		r.pools = append(r.pools, pool{live: map[uint64]block{}})
	}
	return &r.pools[id]
}

func (r *Recorder) tell(e *event.Event, p *pool, b block, free bool) {
	if p.inner || len(r.events) >= MaxEvents {
		return
	}
	x := Event{
		Time: e.Time * 1000, Memory: p.name, Free: free, Step: r.step, Heap: p.inUse, PeakInUse: p.peak,
		NoAvailable: p.limit <= 0 && !p.held, NoFragmentation: !p.held, Requested: b.requested, Allocated: b.size, Address: e.Address,
	}
	if most := p.limit; most > 0 {
		x.Available = max(0, most-p.inUse)
	} else if p.held {
		x.Available = max(0, p.reserved-p.inUse)
	}
	if p.held {
		x.Fragmentation = p.fragmentation()
	}
	if !free {
		x.Op, x.Region = r.strings.At(b.op), regionOf(b.category)
	}
	r.events = append(r.events, x)
}

// regionOf is the profiler's word for what a block is for.
func regionOf(c event.Category) string {
	switch c {
	case event.Parameter, event.OptimizerState, event.Constant:
		return "persist"
	case event.Temporary:
		return "temp"
	case event.Unknown:
		return ""
	default:
		return "output"
	}
}

// fragmentation is the allocator's: the part of the free bytes outside of the
// largest free chunk, NaN when nothing is free.
func (p *pool) fragmentation() float64 {
	if p.free == 0 {
		return math.NaN()
	}
	return float64(p.free-p.largest) / float64(p.free)
}

// holding is the region of an address.
func (p *pool) holding(at uint64) *region {
	for i := range p.regions {
		if x := &p.regions[i]; at-x.address < uint64(x.size) {
			return x
		}
	}
	return nil
}

func (p *pool) take(at uint64, size int64) {
	p.inUse += size
	p.peak = max(p.peak, p.inUse)
	x := p.holding(at)
	if x == nil {
		return
	}
	i := sort.Search(len(x.free), func(i int) bool { return x.free[i].at > at }) - 1
	if i < 0 || at-x.free[i].at+uint64(size) > uint64(x.free[i].size) {
		return // not free as far as was told
	}
	f := x.free[i]
	p.free -= size
	var rest []run
	if before := int64(at - f.at); before > 0 {
		rest = append(rest, run{f.at, before})
	}
	if after := f.size - int64(at-f.at) - size; after > 0 {
		rest = append(rest, run{at + uint64(size), after})
	}
	x.free = slices.Replace(x.free, i, i+1, rest...)
	if f.size == p.largest {
		p.find()
	}
}

func (p *pool) give(at uint64, size int64) {
	p.inUse -= size
	x := p.holding(at)
	if x == nil {
		return
	}
	p.free += size
	i := sort.Search(len(x.free), func(i int) bool { return x.free[i].at > at })
	f := run{at, size}
	from, to := i, i
	if i < len(x.free) && x.free[i].at == at+uint64(size) {
		f.size += x.free[i].size
		to = i + 1
	}
	if i > 0 && x.free[i-1].at+uint64(x.free[i-1].size) == at {
		f.at, f.size = x.free[i-1].at, f.size+x.free[i-1].size
		from = i - 1
	}
	x.free = slices.Replace(x.free, from, to, f)
	p.largest = max(p.largest, f.size)
}

// find looks for the largest run.
func (p *pool) find() {
	p.largest = 0
	for i := range p.regions {
		for _, f := range p.regions[i].free {
			p.largest = max(p.largest, f.size)
		}
	}
}
