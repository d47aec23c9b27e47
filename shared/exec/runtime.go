package exec

import (
	"errors"
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/device"
)

// Config is what a Runtime is made of.
type Config struct {
	Mode    Mode
	Devices []*device.Logical
	Backend Backend
	Strings *event.Strings
	Sink    event.Sink  // nil drops all events
	Stop    func() bool // polled once per op; nil never stops
	Seed    uint64      // of the variables' first values

	// Keep names ops, by patterns in which * stands for any text, whose results
	// the program appends to a list after each step and never takes out: a leak.
	Keep []string
	// Copies says what eager execution does with an input on another device.
	Copies CopyPolicy
	// FreeTapeGradually lets an eager program's gradient tape let go of a value
	// with the last gradient that reads it, instead of after all of them.
	FreeTapeGradually bool
	// Async makes eager execution asynchronous: ops go into a queue that holds
	// their inputs, and a failure stays until ClearError.
	Async bool
	// DeferredDeletion gathers the references that finished copies held and
	// drops them together when they are worth more than so many bytes, as
	// TensorFlow did in 2019 (8 MiB); 0 drops each at once.
	DeferredDeletion int64
	// PrefetchToDevice is how many batches wait in the first accelerator's
	// memory for their steps, beside the one in use and one that is sent; 0: a
	// step sends its own.
	PrefetchToDevice int
	// WorkspaceLimit is the most workspace, in bytes, that a kernel may ask for;
	// one that wants more does without. 0 is TensorFlow's 4 GiB.
	WorkspaceLimit int64
	// Autotune lets a kernel with a workspace try its algorithms when it first
	// runs on a shape, as cuDNN's do: each asks for another amount, up to
	// WorkspaceLimit, so that the first step can take more than later ones.
	Autotune bool
	// ForceGPUCompatible takes all memory of the host from the pinned pool, if
	// there is one.
	ForceGPUCompatible bool
	// Timestamps, if set, lets copies to accelerators take only memory that is
	// free in the device's time.
	Timestamps *Timestamps
}

// Why a step ended early. Out of memory is a result, told by Runtime.OOM.
var (
	ErrOutOfMemory = errors.New("out of memory")
	ErrStopped     = errors.New("stopped")
)

// Runtime is the state of a run that outlives steps: devices with their
// memory, variables, constants, and the events told so far. Not safe for
// concurrent use.
type Runtime struct {
	cfg     Config
	backend Backend
	strings *event.Strings
	out     emitter
	ev      event.Event

	spaces      []space
	hostSpace   spaceID   // pageable host memory
	pinnedSpace spaceID   // page-locked host memory; noSpace when there is none
	memory      []spaceID // by device: where its tensors live
	buffers     []buffer
	freeBuffer  bufferID // the slot given back last; 0: none

	variables   []variable
	scalars     []scalar
	flights     []flight
	deferred    []bufferID // references of finished copies, see Config.DeferredDeletion
	deferredSum int64      // their bytes
	swapping    int        // flights that a kernel count ends
	kept        []Kept     // see Config.Keep
	keptBytes   int64
	keptBefore  int        // how many there were before the step under way
	dry         *dryRun    // set while a plan is worked out: nothing is asked for
	batch       []bufferID // host tensors of the step under way
	ahead       []ahead    // batches on the device, oldest first
	aheadSpare  []ahead    // used ones, for their slices
	held        []bufferID // eager: the last batch, until the next is there
	metrics     []Metric
	copy        Copy
	serial      uint32

	step     int32
	current  event.StringID // the op that asks for memory now
	opID     uint64
	copyID   uint64
	stallID  uint64
	warnings []string
	failed   error // the first thing that broke; ends the run
	oom      *OOM
	placed   bool
	names    names
	// modelled is the flag of events whose times come from the cost model.
	modelled event.Flags
}

// spaceID indexes Runtime.spaces, one per allocator.
type spaceID int16

const noSpace spaceID = -1

// space is memory of a device under one allocator.
type space struct {
	r       *Runtime
	id      event.AllocatorID
	device  event.DeviceID
	memory  alloc.Allocator
	ask     alloc.Request
	pinned  bool
	begun   bool
	closing bool
	// An arena's place in memory while an execution holds it. within is the
	// space that it is asked of; arena, in that one, the space of its arena.
	arena, within spaceID
	base          uint64
	inUse, peak   int64
	tracker       *tracker // see Config.Timestamps; nil for none
}

// names are the strings that the runtime itself uses.
type names struct {
	scratch, batch, arena, kept event.StringID
}

// New opens the backend and returns a runtime without memory; Attach gives it
// some before anything runs.
func New(c Config) (*Runtime, error) {
	if len(c.Devices) == 0 || !c.Devices[0].IsHost() {
		return nil, errors.New("exec: the first device must be the host, /CPU:0")
	}
	if c.Strings == nil {
		c.Strings = new(event.Strings)
	}
	r := &Runtime{cfg: c, backend: c.Backend, strings: c.Strings, step: event.NoStep, hostSpace: noSpace, pinnedSpace: noSpace}
	if err := c.Backend.Open(c.Devices); err != nil {
		return nil, fmt.Errorf("open backend: %w", err)
	}
	if c.Backend.Modelled() {
		r.modelled = event.Modelled
	}
	r.buffers = make([]buffer, 1, 256)
	r.out = emitter{sink: c.Sink, clock: c.Backend}
	if c.Sink == nil {
		r.out.sink = nobody{}
	}
	r.out.open(len(c.Devices))
	r.memory = make([]spaceID, len(c.Devices))
	for i := range r.memory {
		r.memory[i] = noSpace
	}
	r.names = names{c.Strings.ID("scratch"), c.Strings.ID("batch"), 0, 0}
	return r, nil
}

// Attach gives a device memory: build gets the observer to report to. Pinned
// memory of the host is a second allocator beside the pageable one.
func (r *Runtime) Attach(dev event.DeviceID, pinned bool, build func(alloc.Observer) (alloc.Allocator, error), facts event.Fields) error {
	id := spaceID(len(r.spaces))
	r.spaces = append(r.spaces, space{r: r, id: event.AllocatorID(id), device: dev, pinned: pinned, arena: noSpace, within: noSpace})
	a, err := build(&observer{r, id})
	if err != nil {
		return err
	}
	s := &r.spaces[id]
	s.memory = a
	switch {
	case pinned:
		r.pinnedSpace = id
		if r.cfg.ForceGPUCompatible {
			r.hostSpace, r.memory[dev] = id, id
		}
	case r.cfg.Devices[dev].IsHost():
		r.hostSpace, r.memory[dev] = id, id
	default:
		r.memory[dev] = id
	}
	r.ev = event.Event{
		Kind: event.AllocatorFacts, Device: dev, Allocator: s.id, Size: a.Limit(),
		Text: r.strings.ID(facts.Encode()), Step: event.NoStep,
	}
	r.out.host(&r.ev)
	if !r.cfg.Devices[dev].IsHost() {
		if err := r.attachTracker(&r.spaces[id]); err != nil {
			return err
		}
	}
	if r.cfg.Mode == Planned && !pinned {
		r.attachArena(id)
	}
	return nil
}

// ScratchBytes is what the first op on a GPU's stream takes for good, so that
// it is the first chunk at the pool's base in practically every real dump.
const ScratchBytes = 1028

// begin is called at the first request of a space.
func (r *Runtime) begin(id spaceID) {
	s := &r.spaces[id]
	s.begun = true
	if r.cfg.Devices[s.device].IsHost() {
		return
	}
	r.allocate(&request{
		bytes: ScratchBytes, op: r.names.scratch, tensor: r.names.scratch,
		space: id, category: event.Temporary, noRetry: true,
	})
}

// Emit tells an event at the host's time.
func (r *Runtime) Emit(e *event.Event) { r.out.host(e) }

// Log tells a line for people.
func (r *Runtime) Log(dev event.DeviceID, f event.Flags, text string) {
	if f&event.Warning != 0 && len(r.warnings) < maxWarnings && !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
	r.ev = event.Event{Kind: event.Log, Device: dev, Flags: f, Text: r.strings.ID(text), Step: r.step}
	r.out.host(&r.ev)
}

// maxWarnings bounds what Warnings keeps: a copy may warn at every step.
const maxWarnings = 8

// Warnings are the first different warnings about the program and its settings,
// in order; those of allocators are not among them.
func (r *Runtime) Warnings() []string { return r.warnings }

// Annotate tells a remark.
func (r *Runtime) Annotate(text string) {
	r.ev = event.Event{Kind: event.Annotation, Text: r.strings.ID(text), Step: r.step}
	r.out.host(&r.ev)
}

// Events is how many events were told.
func (r *Runtime) Events() uint64 { return r.out.count }

// Now is the time on the run's clock in nanoseconds.
func (r *Runtime) Now() int64 { return r.backend.Now() }

// OOM is the request that failed, or nil.
func (r *Runtime) OOM() *OOM { return r.oom }

// Stats are the figures of a device's memory.
func (r *Runtime) Stats(dev event.DeviceID) alloc.Stats {
	return r.spaces[r.memory[dev]].memory.Stats()
}

func (r *Runtime) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// End waits for all devices, tells what they still did, and then the end.
func (r *Runtime) End(reason event.EndReason, text string) {
	r.sync()
	r.ev = event.Event{Kind: event.End, Cause: uint8(reason), Text: r.strings.ID(text), Step: event.NoStep}
	r.out.host(&r.ev)
}

// sync lets the host wait for everything ordered so far.
func (r *Runtime) sync() {
	for i := range r.cfg.Devices {
		r.backend.WaitUntil(r.backend.Idle(event.DeviceID(i)))
	}
	r.broken()
	r.land()
	r.out.flush(r.backend.Now())
}

// broken fails the run with what went wrong in work ordered earlier, if
// anything did.
func (r *Runtime) broken() bool {
	d, ok := r.backend.(Driver)
	if !ok {
		return false
	}
	err := d.Err()
	if err != nil {
		r.fail(err)
	}
	return err != nil
}

// Close gives all memory back and closes the backend. It tells nothing.
func (r *Runtime) Close() {
	for i := range r.spaces {
		r.spaces[i].closing = true
		if m := r.spaces[i].memory; m != nil {
			m.Close()
		}
	}
	r.backend.Close()
}

// observer connects an allocator to the run's events, clock and memory.
type observer struct {
	r  *Runtime
	id spaceID
}

var _ alloc.Observer = (*observer)(nil)

func (o *observer) space() *space { return &o.r.spaces[o.id] }

// RegionTaken backs the region and tells it.
func (o *observer) RegionTaken(addr uint64, asked, received int64) {
	r, s := o.r, o.space()
	r.backend.Spend(device.DriverAlloc(received))
	if err := r.backend.Map(s.device, addr, received); err != nil {
		r.fail(fmt.Errorf("back %s of %s: %w", event.FormatBytes(received), r.cfg.Devices[s.device].Name.Short(), err))
	}
	e := event.Event{
		Kind: event.RegionAdd, Device: s.device, Allocator: s.id, Address: addr,
		Size: received, Requested: asked, Step: r.step,
	}
	r.out.host(&e)
}

// RegionRefused tells that the driver said no.
func (o *observer) RegionRefused(asked int64) {
	r, s := o.r, o.space()
	r.backend.Spend(device.DriverAlloc(0))
	e := event.Event{Kind: event.RegionRefused, Device: s.device, Allocator: s.id, Size: asked, Step: r.step}
	r.out.host(&e)
}

// RegionGiven tells that a region went back; the driver waits for the device.
func (o *observer) RegionGiven(addr uint64, bytes int64) {
	r, s := o.r, o.space()
	r.backend.Unmap(s.device, addr, bytes)
	if s.closing {
		return
	}
	r.backend.WaitUntil(r.backend.Idle(s.device))
	r.backend.Spend(device.DriverFree)
	e := event.Event{Kind: event.RegionRemove, Device: s.device, Allocator: s.id, Address: addr, Size: bytes, Step: r.step}
	r.out.host(&e)
}

// Wait lands the copies in flight, whose references may be what the request
// waits for, or else lets the model's time pass.
func (o *observer) Wait(nanos int64) int64 {
	r := o.r
	from := r.backend.Now()
	if len(r.flights) > 0 {
		for i := range r.flights {
			r.backend.WaitUntil(r.flights[i].end)
		}
		r.land()
		return max(1, min(nanos, r.backend.Now()-from))
	}
	if t := r.spaces[o.id].tracker; t != nil && len(t.queue) > 0 {
		r.backend.WaitUntil(t.queue[0].end)
		t.advance(r.backend.Now())
		return max(1, min(nanos, r.backend.Now()-from))
	}
	r.backend.Spend(nanos)
	return nanos
}

// Log tells an allocator's record.
func (o *observer) Log(s alloc.Severity, text string) {
	var f event.Flags
	if s == alloc.Warning {
		f = event.Warning
	}
	e := event.Event{Kind: event.Log, Device: o.space().device, Allocator: o.space().id, Flags: f, Text: o.r.strings.ID(text), Step: o.r.step}
	o.r.out.host(&e)
}

// Op is the op on whose behalf memory is asked for.
func (o *observer) Op() string { return o.r.strings.At(o.r.current) }
