package store

import "tideline/protocol/event"

// Append takes more events, in order. They are copied: the slice may be used
// again.
func (t *Timeline) Append(events []event.Event) {
	if len(events) == 0 {
		return
	}
	t.version++
	t.events += int64(len(events))
	if !t.started {
		t.odd(&events[0])
		events = events[1:]
	}
	last := t.last
	for i := range events {
		e := &events[i]
		if uint64(e.Time-last) > uint64(maxTime-last) { // falls, or is too great
			t.last = last
			t.odd(e)
			last = t.last
			continue
		}
		last = e.Time
		// The kinds that make up nearly all of a run go straight to their place:
		// calls cost more than the work, above all in WebAssembly.
		var ok bool
		switch e.Kind {
		case event.Alloc:
			ok = sane(e) && t.pool(e).alloc(e)
		case event.Free:
			ok = t.pool(e).free(e)
		case event.OpBegin:
			ok = t.beginOp(e)
		case event.OpEnd:
			ok = t.endOp(e)
		default:
			ok = t.take(e)
		}
		if !ok {
			t.skipped++
		}
	}
	t.last = last
	for _, k := range t.tracks {
		k.now = t.last
	}
}

// Bounds of what is believed. Far beyond anything real, and small enough that
// sums and differences of what lies within them do not overflow.
const (
	maxTime  = 1 << 59 // nanoseconds either way: 18 years
	maxBytes = 1 << 50
)

// odd takes the first event, and those whose time cannot be.
func (t *Timeline) odd(e *event.Event) {
	if !t.started {
		t.started = true
		t.first = min(max(e.Time, -maxTime), maxTime)
		t.last = t.first
	}
	if e.Time < t.last || e.Time > maxTime {
		// Columns of time must never fall; copied, for the event is the caller's.
		t.skipped++
		c := *e
		c.Time = t.last
		e = &c
	}
	t.last = e.Time
	if !t.take(e) {
		t.skipped++
	}
}

// take files an event; false when it contradicts what was told before.
func (t *Timeline) take(e *event.Event) bool {
	switch e.Kind {
	case event.Alloc:
		return sane(e) && t.pool(e).alloc(e)
	case event.Free:
		return t.pool(e).free(e)
	case event.Forward:
		return sane(e) && t.pool(e).forward(e)
	case event.RegionAdd:
		return sane(e) && t.pool(e).regionAdd(e)
	case event.RegionRemove:
		return t.pool(e).regionRemove(e)
	case event.RegionRefused:
		t.pool(e).refused++
	case event.OpBegin:
		return t.beginOp(e)
	case event.TransferBegin:
		return t.begin(e, TransferTrack, e.Peer, e.ID, e.Cause)
	case event.StepBegin:
		return t.begin(e, StepTrack, 0, uint64(uint32(e.Step)), 0)
	case event.StallBegin:
		return t.begin(e, StallTrack, 0, e.ID, 0)
	case event.StageBegin:
		return t.begin(e, StageTrack, 0, e.ID, 0)
	case event.StepEnd:
		return t.finish(e, uint64(uint32(e.Step)))
	case event.OpEnd:
		return t.endOp(e)
	case event.TransferEnd, event.StallEnd, event.StageEnd:
		return t.finish(e, e.ID)
	case event.QueueDepth:
		t.number(e, QueueSeries)
	case event.Sample:
		t.number(e, SampleSeries)
	case event.Metric:
		t.number(e, MetricSeries)
	default:
		return t.rare(e)
	}
	return true
}

// sane reports whether an event's sizes can be sizes.
func sane(e *event.Event) bool {
	return uint64(e.Size) < maxBytes && uint64(e.Requested) < maxBytes && e.Address+uint64(e.Size) >= e.Address
}

func (t *Timeline) rare(e *event.Event) bool {
	switch e.Kind {
	case event.OutOfMemory:
		p := t.pool(e)
		t.ooms = append(t.ooms, OOM{
			Time: e.Time, Moment: p.latest(e.Time), Device: e.Device, Pool: p.Index, Size: e.Size, Requested: e.Requested,
			Op: e.Op, Tensor: e.Tensor, ChunkMap: e.Text, Step: e.Step,
			Cause: event.OOMCause(e.Cause), Retryable: e.Flags&event.Retryable != 0,
		})
	case event.Settings:
		return t.facts(e, &t.settings)
	case event.DeviceFacts:
		return t.deviceFacts(e)
	case event.AllocatorFacts:
		p := t.pool(e)
		p.Limit = e.Size
		ok := t.facts(e, &p.Facts)
		if n := p.Facts.Text("name"); n != "" {
			p.Name = n
		}
		return ok
	case event.Placement:
		t.places = append(t.places, Place{e.Device, e.Op, e.Text})
	case event.Log, event.Annotation:
		t.notes = append(t.notes, Note{e.Time, e.Device, e.Step, e.Text, e.Flags, e.Kind == event.Annotation})
	case event.Lost:
		t.gaps = append(t.gaps, Gap{e.Time, e.Size, e.Text})
	case event.End:
		t.end = End{true, e.Time, event.EndReason(e.Cause), t.Text(e.Text)}
	default:
		return false
	}
	return true
}

func (t *Timeline) facts(e *event.Event, into *event.Fields) bool {
	f, err := event.ParseFields(t.Text(e.Text))
	*into = f
	return err == nil
}

func (t *Timeline) deviceFacts(e *event.Event) bool {
	d := Device{ID: e.Device}
	ok := t.facts(e, &d.Facts)
	d.Name, d.Kind = d.Facts.Text("name"), d.Facts.Text("kind")
	if d.Name == "" {
		d.Name = "device " + itoa(int64(e.Device))
	}
	for i := range t.devices {
		if t.devices[i].ID == e.Device {
			t.devices[i] = d // told again, after a break in the stream
			return ok
		}
	}
	k := len(t.devices)
	for k > 0 && t.devices[k-1].ID > d.ID {
		k--
	}
	t.devices = append(t.devices, Device{})
	copy(t.devices[k+1:], t.devices[k:])
	t.devices[k] = d
	return ok
}

// pool is the event's pool, made when it is new.
func (t *Timeline) pool(e *event.Event) *Pool {
	if t.lastPool == nil || t.lastKey != uint32(e.Device)|uint32(e.Allocator)<<16 {
		t.otherPool(e)
	}
	return t.lastPool
}

func (t *Timeline) otherPool(e *event.Event) {
	key := uint64(e.Device)<<16 | uint64(e.Allocator)
	i, ok := t.poolIdx.get(key)
	if !ok {
		i = uint64(len(t.pools))
		t.poolIdx.put(key, i)
		t.pools = append(t.pools, newPool(int(i), e.Device, e.Allocator))
	}
	t.lastPool, t.lastKey = t.pools[i], uint32(e.Device)|uint32(e.Allocator)<<16
}

// trackKey tells tracks apart. Only stages are told apart by name, and they
// have no device.
func trackKey(k TrackKind, d, peer event.DeviceID, s event.StreamID, stage event.StringID) uint64 {
	if k == StageTrack {
		return uint64(k)<<56 | uint64(stage)
	}
	return uint64(k)<<56 | uint64(d)<<32 | uint64(peer)<<16 | uint64(s)
}

// begin opens a span; false when one of that kind and id is open already,
// whose end was lost.
func (t *Timeline) begin(e *event.Event, kind TrackKind, peer event.DeviceID, id uint64, class uint8) bool {
	d, s := e.Device, e.Stream
	switch kind {
	case StepTrack:
		d, s = 0, 0
	case StallTrack:
		s = 0
	}
	k := t.track(e, kind, d, peer, s)
	return !t.open[e.Kind].put(id, uint64(k.Index)<<32|uint64(k.start(e, class)))
}

// track is the track of an event, made when it is new.
func (t *Timeline) track(e *event.Event, kind TrackKind, d, peer event.DeviceID, s event.StreamID) *Track {
	key := trackKey(kind, d, peer, s, e.Op)
	i, ok := t.trackIx.get(key)
	if !ok {
		i = uint64(len(t.tracks))
		t.trackIx.put(key, i)
		tr := &Track{Index: int(i), Kind: kind, Device: d, Peer: peer, Stream: s, spans: rows{cols: spanCols}}
		if kind == StageTrack {
			tr.Device, tr.Stream, tr.Op = 0, 0, e.Op
		}
		t.tracks = append(t.tracks, tr)
	}
	return t.tracks[i]
}

// runningOp is an op that has not ended. Few run at a time and their ids follow
// each other, so that those begun last are found by the low bits of their ids,
// without the table of those open.
type runningOp struct {
	track *Track // nil: none
	id    uint64
	span  int
	begin int64
	class uint8
}

const runningOps = 16

// beginOp is begin for an op, whose track most often is that of the op before.
func (t *Timeline) beginOp(e *event.Event) bool {
	k := t.lastOps
	if k == nil || k.Device != e.Device || k.Stream != e.Stream {
		k = t.track(e, OpTrack, e.Device, 0, e.Stream)
		t.lastOps = k
	}
	again := false
	o := &t.running[e.ID%runningOps]
	if o.track != nil || t.open[event.OpBegin].n > 0 {
		again = t.makeWay(o, e.ID)
	}
	o.track, o.id, o.span, o.begin, o.class = k, e.ID, k.spans.n, e.Time, uint8(e.Category)
	if o.class >= NumClasses {
		o.class = 0
	}
	k.start(e, o.class)
	return !again
}

// makeWay puts an op into the table of those open, so that another one may take
// its place; it reports whether that has the id of one that is open.
func (t *Timeline) makeWay(o *runningOp, id uint64) (again bool) {
	open := &t.open[event.OpBegin]
	if o.track != nil {
		if o.id == id {
			return true
		}
		open.put(o.id, uint64(o.track.Index)<<32|uint64(o.span))
	}
	_, again = open.take(id)
	return again
}

// endOp is finish for an op.
func (t *Timeline) endOp(e *event.Event) bool {
	if o := &t.running[e.ID%runningOps]; o.track != nil && o.id == e.ID {
		o.track.ends(o.span, int(o.class), o.begin, e.Time)
		o.track = nil
		return true
	}
	return t.finish(e, e.ID)
}

// finish ends the span that the kind before this one began.
func (t *Timeline) finish(e *event.Event, id uint64) bool {
	v, ok := t.open[e.Kind-1].take(id)
	if ok {
		t.tracks[v>>32].finish(int(uint32(v)), e.Time)
	}
	return ok
}

func (t *Timeline) number(e *event.Event, kind SeriesKind) {
	k := seriesKey{kind, e.Device, e.Op}
	i, ok := t.seriesX[k]
	if !ok {
		i = int32(len(t.series))
		t.seriesX[k] = i
		t.series = append(t.series, &Series{Index: int(i), Kind: kind, Device: e.Device, Name: e.Op, n: newNumbers()})
	}
	s := t.series[i]
	s.Second = e.Requested
	s.n.push(e.Time, e.Size, int64(e.Step))
}

// Bytes is how much memory the timeline holds, the string table left out.
func (t *Timeline) Bytes() int64 {
	var n int64
	for _, p := range t.pools {
		n += p.bytes()
	}
	for _, k := range t.tracks {
		n += k.bytes()
	}
	for _, s := range t.series {
		n += s.n.bytes()
	}
	for i := range t.open {
		n += t.open[i].bytes()
	}
	return n + int64(len(t.ooms))*80 + int64(len(t.notes))*24 + int64(len(t.places))*12
}
