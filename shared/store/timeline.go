package store

import (
	"slices"

	"tideline/protocol/event"
)

// Timeline is everything that a stream of events told. It is not safe for
// concurrent use, nor are questions alone: they finish what Append left undone.
type Timeline struct {
	strings *event.Strings
	version uint64
	events  int64
	first   int64
	last    int64
	started bool
	// Skipped counts what contradicted the rest and was left out: a free of an
	// unknown block, an end without a begin, a block allocated twice.
	skipped int64

	pools   []*Pool
	poolIdx table // device and allocator -> index
	tracks  []*Track
	trackIx table // trackKey -> index
	series  []*Series
	seriesX map[seriesKey]int32
	devices []Device
	open    [event.NumKinds]table

	ooms     []OOM
	gaps     []Gap
	notes    []Note
	places   []Place
	settings event.Fields
	end      End

	// Of the last event that had one: most follow each other.
	lastPool *Pool
	lastKey  uint32 // device and allocator of lastPool
	lastOps  *Track
	running  [runningOps]runningOp
}

// New returns an empty timeline whose string ids are those of strings, which the
// caller may go on filling; nil makes a table of its own.
func New(strings *event.Strings) *Timeline {
	if strings == nil {
		strings = new(event.Strings)
	}
	return &Timeline{
		strings: strings, seriesX: map[seriesKey]int32{},
	}
}

// Strings is the string table of the timeline.
func (t *Timeline) Strings() *event.Strings { return t.strings }

// Text is the string of an id.
func (t *Timeline) Text(id event.StringID) string { return t.strings.At(id) }

// Version grows with every Append that brought something: equal versions mean
// equal answers.
func (t *Timeline) Version() uint64 { return t.version }

// Events is how many events were appended.
func (t *Timeline) Events() int64 { return t.events }

// Skipped is how many of them contradicted what was told before and were left
// out: a free of an unknown block, an end without its begin, a time that goes
// backwards (taken as the time before it).
func (t *Timeline) Skipped() int64 { return t.skipped }

// Span is the time of the first and of the last event, in nanoseconds.
func (t *Timeline) Span() (first, last int64) { return t.first, t.last }

// Device is an accelerator or host as its facts describe it.
type Device struct {
	ID    event.DeviceID
	Name  string // "/GPU:0", or "device 3" when the facts are missing
	Kind  string // cpu, gpu
	Facts event.Fields
}

// Devices are the devices in the order of their ids.
func (t *Timeline) Devices() []Device { return t.devices }

// Device returns one device; its name is made up when no facts were told.
func (t *Timeline) Device(id event.DeviceID) Device {
	for i := range t.devices {
		if t.devices[i].ID == id {
			return t.devices[i]
		}
	}
	return Device{ID: id, Name: "device " + itoa(int64(id))}
}

// Pools are the allocators of all devices.
func (t *Timeline) Pools() []*Pool { return t.pools }

// Tracks are all rows of spans.
func (t *Timeline) Tracks() []*Track { return t.tracks }

// SeriesList are all numbers over time.
func (t *Timeline) SeriesList() []*Series { return t.series }

// Settings is the flattened workload that the run was asked for; nil when
// it did not say.
func (t *Timeline) Settings() event.Fields { return t.settings }

// End says how a run ended.
type End struct {
	Ended  bool // false: still running, or cut
	Time   int64
	Reason event.EndReason
	Text   string
}

// End is the timeline's end.
func (t *Timeline) End() End { return t.end }

// OOM is a request that failed for good.
type OOM struct {
	Time      int64
	Moment    Moment // of Pool, when the request failed
	Device    event.DeviceID
	Pool      int   // index into Pools
	Size      int64 // bytes, as the allocator rounded it
	Requested int64 // bytes, as the op asked
	Op        event.StringID
	Tensor    event.StringID
	ChunkMap  event.StringID // text form of an event.ChunkMap
	Step      int32
	Cause     event.OOMCause
	Retryable bool // the caller could do without
}

// OOMs are the failed requests in the order of time.
func (t *Timeline) OOMs() []OOM { return t.ooms }

// NextOOM is the first failed request after time at, and false when there is
// none.
func (t *Timeline) NextOOM(at int64) (OOM, bool) {
	for _, o := range t.ooms {
		if o.Time > at {
			return o, true
		}
	}
	return OOM{}, false
}

// PrevOOM is the last failed request before time at, and false when there is
// none.
func (t *Timeline) PrevOOM(at int64) (OOM, bool) {
	for _, v := range slices.Backward(t.ooms) {
		if v.Time < at {
			return v, true
		}
	}
	return OOM{}, false
}

// Gap is a place where events are missing.
type Gap struct {
	Time  int64
	Count int64 // events lost
	Text  event.StringID
}

// Gaps are the places where events are missing.
func (t *Timeline) Gaps() []Gap { return t.gaps }

// Note is a line for people: a log line or an annotation.
type Note struct {
	Time       int64
	Device     event.DeviceID
	Step       int32
	Text       event.StringID
	Flags      event.Flags // Warning, Failure
	Annotation bool
}

// Notes are log lines and annotations in the order of time.
func (t *Timeline) Notes() []Note { return t.notes }

// Place says where an op was put and why.
type Place struct {
	Device event.DeviceID
	Op     event.StringID
	Reason event.StringID
}

// Places are the placements of ops in the order told.
func (t *Timeline) Places() []Place { return t.places }
