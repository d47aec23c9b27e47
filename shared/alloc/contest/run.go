package contest

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
)

// Options say under which terms a trace is replayed.
type Options struct {
	Limit int64 // most bytes an allocator may take; 0 means the trace's own
	// Unlimited lifts the trace's limit, too.
	Unlimited bool
	// Card is the memory of the card; 0 means the limit. Where it is larger, an
	// allocator has a limit of its own below what the card could give, which
	// some rules heed (PyTorch's garbage collection).
	Card int64
	// UntilFailure ends the replay at the first failed request: figures are
	// those up to there.
	UntilFailure bool
	// Stop, asked every few thousand calls, ends the replay when it says so.
	Stop func() bool
	// Sink, if set, gets the replay as events of device 0, allocator 0: regions,
	// blocks and failures, the number of the call as their time.
	Sink event.Sink
	// Strings, if set beside Sink, is the table of the events' texts: then waits
	// are events, too (Log, with the stream that waits).
	Strings *event.Strings
}

// Result is what came of a replay. Bytes unless said otherwise. The measures of
// fragmentation are defined in docs/allocators.md.
type Result struct {
	Kind     string
	Settings []kinds.Setting
	Label    string // what must stand beside the figures; "" for exact kinds
	Err      error  // why the allocator could not be made; then the rest is zero

	PeakInUse    int64 // the most that the blocks came to
	PeakReserved int64 // the most that was held of the driver
	Reserved     int64 // at the end
	Requested    int64 // of the live blocks at PeakInUse
	PeakCall     int64 // number of the call that brought PeakInUse, from 1
	// External is the part of the free bytes outside of the largest free chunk,
	// at PeakInUse; 0 when nothing is free.
	External float64

	OutOfMemory int64 // failed requests
	Missing     int64 // bytes that they asked for
	FirstFailed int   // number of the first one's call from 1; 0 for none
	FirstBytes  int64 // what it asked for

	Calls   int64 // that were replayed
	Stopped bool  // by Options.Stop: the figures are those up to there

	DriverCalls int64 // regions taken and given back, and refusals
	Refused     int64
	Waits       int64 // of one stream for another
	Syncs       int64 // of the host for a stream or the device
}

// Utilisation is peak in use over peak reserved, 1 when nothing was reserved.
func (r *Result) Utilisation() float64 {
	if r.PeakReserved == 0 {
		return 1
	}
	return float64(r.PeakInUse) / float64(r.PeakReserved)
}

// Fragmentation is the part of the peak reserved that never held a block.
func (r *Result) Fragmentation() float64 { return 1 - r.Utilisation() }

// Internal is the part of the blocks that nobody asked for, at the peak; 0 when
// there were none.
func (r *Result) Internal() float64 {
	if r.PeakInUse == 0 {
		return 0
	}
	return float64(r.PeakInUse-r.Requested) / float64(r.PeakInUse)
}

// Cost is what the allocator held beyond what was wanted at once.
func (r *Result) Cost(t *Trace) int64 { return r.PeakReserved - t.Floor }

// Title is the kind with its settings.
func (r *Result) Title() string {
	k, err := kinds.ByName(r.Kind)
	if err != nil {
		return r.Kind
	}
	return kinds.Title(k, r.Settings)
}

// Served reports whether every request was served to the end.
func (r *Result) Served() bool { return r.Err == nil && r.OutOfMemory == 0 && !r.Stopped }

// run is a replay under way.
type run struct {
	alloc.NoObserver
	res     Result
	sink    event.Sink
	strings *event.Strings
	event   event.Event
	now     int64
	hold    *holder // watches regions in an inspection
	a       *kinds.Instance
	blocks  []alloc.Block
	order   stream.Order
	begins  int64 // call after which peaks count
	pools   []torch.PoolID

	inUse, requested int64
	rising           bool // inUse is at a new peak, not looked at yet
}

func (x *run) emit(e event.Event) {
	if x.sink != nil {
		e.Time, e.Step = x.now, event.NoStep
		x.event = e // so that nothing is put on the heap per event
		x.sink.Emit(&x.event)
	}
}

// tell makes a wait an event.
func (x *run) tell(s stream.ID, format string, args ...any) {
	if x.sink != nil && x.strings != nil {
		x.emit(event.Event{Kind: event.Log, Text: x.strings.ID(fmt.Sprintf(format, args...)), Stream: event.StreamID(s)})
	}
}

// RegionTaken implements alloc.Observer.
func (x *run) RegionTaken(addr uint64, asked, received int64) {
	x.res.DriverCalls++
	x.emit(event.Event{Kind: event.RegionAdd, Address: addr, Size: received, Requested: asked})
}

// RegionRefused implements alloc.Observer.
func (x *run) RegionRefused(asked int64) {
	x.res.DriverCalls++
	x.res.Refused++
	x.emit(event.Event{Kind: event.RegionRefused, Size: asked})
}

// RegionGiven implements alloc.Observer.
func (x *run) RegionGiven(addr uint64, bytes int64) {
	x.res.DriverCalls++
	if x.hold != nil {
		x.hold.drop(addr, bytes)
	}
	x.emit(event.Event{Kind: event.RegionRemove, Address: addr, Size: bytes})
}

// Run replays the trace through one allocator. An allocator that cannot be made
// under these terms is a result with Err.
func (t *Trace) Run(e Entry, o Options) Result {
	x := t.start(e, o)
	if x.res.Err != nil {
		return x.res
	}
	t.replay(x, o, nil)
	x.built()
	x.look()
	s := x.a.Stats()
	x.res.PeakReserved, x.res.Reserved = max(s.PeakPool, s.Pool), s.Pool
	calls := x.res.DriverCalls
	x.end()
	x.res.DriverCalls = calls // the end is the same for all
	return x.res
}

// start makes the allocator of a replay; why it cannot be made is in the result.
func (t *Trace) start(e Entry, o Options) *run {
	x := &run{sink: o.Sink, strings: o.Strings, blocks: make([]alloc.Block, t.Slots), begins: int64(t.Begins), pools: t.Pools}
	x.res = Result{Kind: e.Kind.Name, Settings: e.Settings, Label: e.Kind.Label()}
	env := kinds.Env{
		Limit: t.limit(o), Observer: x,
		OnWait: func(by, on stream.ID) {
			x.res.Waits++
			x.tell(by, "stream %d waits for what stream %d freed", by, on)
		},
		OnSync: func(s stream.ID, device bool) {
			x.res.Syncs++
			if device {
				x.tell(s, "the host waits for the device to collect free memory")
			} else {
				x.tell(s, "the host waits for stream %d to free a block elsewhere", s)
			}
		},
		OnStall: func() {
			x.res.Syncs++
			x.tell(0, "a request that would fail waits for the device")
		},
	}
	if t.Streams > 1 {
		env.Order = &x.order
	}
	if o.Card > 0 {
		env.Card = alloc.NewCard(o.Card)
	}
	a, err := e.Kind.New(env, e.Settings)
	if err != nil {
		x.res.Err = err
		return x
	}
	x.a = a
	return x
}

// replay makes the calls one after the other, until one of the options or
// until, asked before each call, ends it.
func (t *Trace) replay(x *run, o Options, until func(c *Call) bool) {
	streams := t.Streams > 1
	for _, chunk := range t.chunks {
		if o.Stop != nil && o.Stop() {
			x.res.Stopped = true
			break
		}
		for i := range chunk {
			c := &chunk[i]
			if until != nil && until(c) {
				x.res.Calls = x.now
				return
			}
			if x.now == x.begins {
				x.built()
			}
			x.now++
			switch {
			case len(x.pools) > 1:
				x.a.UsePool(c.Stream, x.pools[c.Pool])
			case streams:
				x.a.UseStream(c.Stream)
			}
			x.call(c)
			if o.UntilFailure && x.res.OutOfMemory > 0 {
				x.res.Calls = x.now
				return
			}
		}
	}
	x.res.Calls = x.now
}

func (t *Trace) limit(o Options) int64 {
	switch {
	case o.Unlimited:
		return 0
	case o.Limit > 0:
		return o.Limit
	}
	return t.Limit
}

func (x *run) call(c *Call) {
	switch c.Kind {
	case Allocate:
		x.allocate(c)
	case Free:
		x.look()
		x.free(c.Slot)
	case EndStep:
		x.a.Synchronize()
		x.a.EndStep()
	case GiveBack:
		x.look()
		x.a.EmptyCache()
	}
}

// built begins to measure: all before made the state in which the recording
// began.
func (x *run) built() {
	if x.begins > 0 && x.now == x.begins && x.res.PeakCall == 0 && x.inUse > 0 {
		x.res.PeakInUse, x.res.Requested, x.res.PeakCall = x.inUse, x.requested, x.now
		x.rising = true
	}
}

func (x *run) allocate(c *Call) {
	r := alloc.Request{Bytes: c.Bytes, Alignment: c.Align, NoRetry: true}
	var b alloc.Block
	var ok bool
	if c.Parameter {
		b, ok = x.a.AllocateParameter(r)
	} else {
		b, ok = x.a.Allocate(r)
	}
	if !ok {
		if c.Bytes != 0 {
			x.failed(c)
		}
		return
	}
	if x.hold != nil {
		x.hold.touch(b.Address, b.Size)
	}
	x.blocks[c.Slot] = b
	x.inUse += b.Size
	x.requested += b.Requested
	x.emit(event.Event{Kind: event.Alloc, Address: b.Address, Size: b.Size, Requested: b.Requested, Stream: event.StreamID(c.Stream)})
	if x.now > x.begins && x.inUse > x.res.PeakInUse {
		x.res.PeakInUse, x.res.Requested, x.res.PeakCall = x.inUse, x.requested, x.now
		x.rising = true
	}
	if c.Fails { // the program ended here; whoever can serve it shows so
		x.look()
		x.free(c.Slot)
	}
}

// look measures at a peak, before it is left.
func (x *run) look() {
	if x.rising {
		x.rising = false
		s := x.a.Stats()
		if free := s.Pool - x.inUse; free > 0 {
			x.res.External = float64(max(0, free-s.LargestFree)) / float64(free)
		} else {
			x.res.External = 0
		}
	}
}

func (x *run) failed(c *Call) {
	r := &x.res
	if r.OutOfMemory++; r.OutOfMemory == 1 {
		r.FirstFailed, r.FirstBytes = int(x.now), c.Bytes
	}
	r.Missing += max(0, c.Bytes)
	x.emit(event.Event{Kind: event.OutOfMemory, Size: max(0, c.Bytes), Requested: max(0, c.Bytes)})
}

func (x *run) free(slot int32) {
	b := x.blocks[slot]
	if b.Address == 0 {
		return // its request failed
	}
	x.blocks[slot] = alloc.Block{}
	x.inUse -= b.Size
	x.requested -= b.Requested
	x.emit(event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
	if err := x.a.Free(b.Address); err != nil {
		panic("contest: a block that was handed out is not taken back: " + err.Error())
	}
}

// end gives everything back, for those who watch.
func (x *run) end() {
	if x.sink == nil {
		return
	}
	for slot := range x.blocks {
		x.free(int32(slot))
	}
	x.a.Close()
}
