package snapshot

import (
	"fmt"
	"sort"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc/torch"
	"tideline/shared/ingest/groups"
)

// moment is the made-up distance between two events of a file without times,
// in nanoseconds.
const moment = 1000

// maxDevices keeps a file that makes up device numbers small.
const maxDevices = 256

// Emit tells the snapshot as the events of a timeline: what was held when the
// trace begins, and then the trace. What was allocated before is told with the
// stack that the snapshot has for it, or without one where it was freed since.
//
// A block in use at the end has its true size; of one that was freed the trace
// has only the request, and its size is that rounded by the allocator's
// settings. A block counts as in use until its free is completed.
func (s *Snapshot) Emit(strs *event.Strings, sink event.Sink) {
	w := teller{s: s, strs: strs, sink: sink, ops: make([]event.StringID, len(s.stackEnds)), stacks: make([]event.StringID, len(s.stackEnds))}
	w.settings = s.TorchSettings()
	w.devices()
	w.group()
	for i := range w.list {
		w.deviceFacts(w.list[i].id)
	}
	w.settingFields()
	w.clock()
	for i := range w.list {
		w.begin(&w.list[i])
	}
	w.merge()
	w.end()
}

// device is what goes on on one device while its trace is told.
type device struct {
	id    int
	trace Trace
	known addresses
	entry []uint32 // of each event of the trace: the number of its address in known
	held  held
	early []span // freed in the trace and allocated before it; sizes as requested
	next  int    // event
}

type teller struct {
	s        *Snapshot
	strs     *event.Strings
	sink     event.Sink
	settings torch.Settings
	list     []device
	ops      []event.StringID // by stack
	stacks   []event.StringID
	groups   []string         // names, largest first
	groupOf  []event.Category // by stack
	budget   int
	first    int64 // microseconds
	timed    bool
	now      int64
	ooms     int
	odd      int64       // events that contradict what came before
	e        event.Event // the one being told: made once, as a sink keeps none
}

func (w *teller) emit(e event.Event) {
	w.e = e
	w.send()
}

func (w *teller) send() {
	w.e.Time, w.e.Step = w.now, event.NoStep
	w.sink.Emit(&w.e)
}

func (w *teller) devices() {
	find := func(id int) *device {
		for i := range w.list {
			if w.list[i].id == id {
				return &w.list[i]
			}
		}
		if len(w.list) == maxDevices || id < 0 || id > 1<<15 {
			return nil
		}
		w.list = append(w.list, device{id: id})
		return &w.list[len(w.list)-1]
	}
	for i := range w.s.Segments() {
		g := &w.s.Segments()[i]
		if d := find(g.Device); d == nil || !d.held.add(span{g.Address, g.Total}) {
			w.odd++
		}
	}
	for _, t := range w.s.Traces {
		if t.n == 0 {
			continue
		}
		if d := find(t.Device); d != nil {
			d.trace = t
		}
	}
	sort.Slice(w.list, func(i, j int) bool { return w.list[i].id < w.list[j].id })
	for i := range w.list {
		w.index(&w.list[i])
	}
}

func (w *teller) deviceFacts(id int) {
	n := strconv.Itoa(id)
	w.emit(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(id), Text: w.strs.ID(event.Fields{
		{Key: "name", Value: "/GPU:" + n}, {Key: "kind", Value: "gpu"},
	}.Encode())})
	f := event.Fields{{Key: "name", Value: "GPU_" + n + "_torch"}, {Key: "kind", Value: "torch"}}
	if text, ok := w.s.Setting("PYTORCH_CUDA_ALLOC_CONF"); ok {
		f.Set("settings", text)
	}
	if n := w.capacity(id); n > 0 {
		f.Set("capacity", strconv.FormatInt(n, 10))
	}
	groups.Name(&f, w.groups)
	w.emit(event.Event{Kind: event.AllocatorFacts, Device: event.DeviceID(id), Allocator: event.AllocatorID(id), Text: w.strs.ID(f.Encode())})
}

// capacity is the most that the process could have of a device, where its last
// refused request tells: what was reserved then and what the device had free. 0
// where no request failed, or one failed though the device had room.
func (w *teller) capacity(id int) (n int64) {
	var reserved, peak int64
	for i := range w.s.Segments() {
		if g := &w.s.Segments()[i]; g.Device == id {
			reserved += g.Total
		}
	}
	for _, t := range w.s.Traces {
		if t.Device != id {
			continue
		}
		for i := t.n - 1; i >= 0; i-- {
			switch e := w.s.Event(t, i); e.Action {
			case SegmentAlloc, SegmentMap:
				peak = max(peak, reserved)
				reserved -= e.Size
			case SegmentFree, SegmentUnmap:
				reserved += e.Size
			case OOM:
				if n > 0 {
					continue
				}
				free := int64(min(e.Addr, 1<<60))
				if free >= w.settings.Segment(w.settings.Round(max(e.Size, 1))) {
					return 0 // a limit below the device refused it
				}
				n, peak = reserved+free, reserved // what comes before counts
			default:
			}
		}
	}
	if n > 0 {
		n = max(n, peak)
	}
	return n
}

func (w *teller) settingFields() {
	var f event.Fields
	for _, x := range w.s.Settings {
		f.Set("allocator_settings."+x.Name, x.Value)
	}
	if len(f) > 0 {
		w.emit(event.Event{Kind: event.Settings, Text: w.strs.ID(f.Encode())})
	}
}

// clock finds where the time begins.
func (w *teller) clock() {
	for i := range w.list {
		for k := range w.list[i].trace.n {
			if at := w.s.Event(w.list[i].trace, k).Time; at > 0 && (!w.timed || at < w.first) {
				w.first, w.timed = at, true
			}
		}
	}
	if !w.timed {
		w.emit(event.Event{Kind: event.Annotation, Text: w.strs.ID("The file has no times: the events follow each other at a made-up distance.")})
	}
}

// timeOf is an event's time since the beginning.
func (w *teller) timeOf(d *device) int64 {
	e := w.s.Event(d.trace, d.next)
	if !w.timed {
		return int64(d.next) * moment
	}
	if e.Time == 0 {
		return w.now
	}
	return min((e.Time-w.first)*1000, 1<<58)
}

// index finds what the trace says of each address.
func (w *teller) index(d *device) {
	s := w.s
	for i := range s.Segments() {
		if g := &s.Segments()[i]; g.Device == d.id {
			for k := range g.n {
				if b := s.blocks.at(g.first + k); b.State != Inactive {
					d.known.at(b.Address).final = uint32(g.first+k) + 1
				}
			}
		}
	}
	d.entry = make([]uint32, d.trace.n)
	for i := range d.trace.n {
		e := s.Event(d.trace, i)
		switch e.Action {
		case Alloc:
			n := d.known.number(e.Addr)
			d.entry[i] = n
			x := &d.known.list[n]
			x.seen, x.last = true, uint32(i)+1
		case Free, FreeRequested, FreeCompleted:
			n := d.known.number(e.Addr)
			d.entry[i] = n
			x := &d.known.list[n]
			if !x.seen {
				d.early = append(d.early, span{e.Addr, e.Size})
			}
			x.seen = true
			if e.Action != FreeRequested {
				x.last = 0
			}
		default:
		}
	}
}

// begin tells what a device held when its trace began.
func (w *teller) begin(d *device) {
	s, early := w.s, d.early
	d.held = s.before(d.trace, d.held)
	for _, r := range d.held {
		w.region(d, event.RegionAdd, r)
	}
	sort.SliceStable(early, func(i, j int) bool { return early[i].addr < early[j].addr })
	for _, b := range early {
		w.alloc(d, d.known.at(b.addr), b.size, w.settings.Round(max(b.size, 1)), 0, 0)
	}
	for i := range s.Segments() {
		g := &s.Segments()[i]
		if g.Device != d.id {
			continue
		}
		s.Blocks(g, func(b *Block) {
			if b.State == Inactive {
				return
			}
			if x := d.known.at(b.Address); !x.seen {
				requested := b.Requested
				if requested < 0 {
					requested = b.Size // the file does not say
				}
				w.alloc(d, x, requested, b.Size, b.Stack, g.Stream)
			}
		})
	}
}

func (w *teller) region(d *device, k event.Kind, r span) {
	w.emit(event.Event{
		Kind: k, Device: event.DeviceID(d.id), Allocator: event.AllocatorID(d.id),
		Address: r.addr, Size: r.size, Requested: r.size,
	})
}

func streamID(n uint16) event.StreamID {
	if n == 0 {
		return 0
	}
	return event.StreamID(min(int(n)+int(event.StreamD2D), 255))
}

func (w *teller) alloc(d *device, x *entry, requested, size int64, stack uint32, stream uint16) {
	if x.size != 0 {
		w.odd++
		w.free(d, x, 0)
	}
	x.size = max(size, 1)
	w.e = event.Event{
		Kind: event.Alloc, Device: event.DeviceID(d.id), Allocator: event.AllocatorID(d.id), Address: x.addr,
		Size: x.size, Requested: requested, Stream: streamID(stream),
	}
	if stack != 0 {
		w.e.Op, w.e.Tensor = w.op(stack), w.stack(stack)
		if int(stack) < len(w.groupOf) {
			w.e.Category = w.groupOf[stack]
		}
	}
	w.send()
}

func (w *teller) free(d *device, x *entry, stream uint16) {
	w.e = event.Event{
		Kind: event.Free, Device: event.DeviceID(d.id), Allocator: event.AllocatorID(d.id), Address: x.addr,
		Size: x.size, Stream: streamID(stream),
	}
	w.send()
	x.size = 0
}

// earliest is the device whose next event comes first, and when; nil at the end.
func (w *teller) earliest() (d *device, at int64) {
	for i := range w.list {
		if x := &w.list[i]; x.next < x.trace.n {
			if t := w.timeOf(x); d == nil || t < at {
				d, at = x, t
			}
		}
	}
	return d, at
}

// merge tells the traces of all devices, and the user's marks, by time.
func (w *teller) merge() {
	marks := w.s.Annotations
	for {
		d, at := w.earliest()
		for w.timed && len(marks) > 0 && (d == nil || (marks[0].Time-w.first)*1000 <= at) {
			w.now = max(w.now, min((marks[0].Time-w.first)*1000, 1<<58))
			word := " ends"
			if marks[0].Start {
				word = " begins"
			}
			w.emit(event.Event{Kind: event.Annotation, Text: w.strs.ID(marks[0].Name + word)})
			marks = marks[1:]
		}
		if d == nil {
			return
		}
		w.now = max(w.now, at)
		w.tell(d)
		d.next++
	}
}

func (w *teller) tell(d *device) {
	e := w.s.Event(d.trace, d.next)
	switch e.Action {
	case Alloc:
		x := &d.known.list[d.entry[d.next]]
		size := w.settings.Round(max(e.Size, 1))
		if x.last == uint32(d.next)+1 && x.final != 0 {
			size = w.s.blocks.at(int(x.final) - 1).Size
		}
		w.alloc(d, x, e.Size, size, e.Stack, e.Stream)
	case Free, FreeCompleted:
		if x := &d.known.list[d.entry[d.next]]; x.size != 0 {
			w.free(d, x, e.Stream)
		} else {
			w.odd++
		}
	case SegmentAlloc, SegmentMap:
		if r := (span{e.Addr, e.Size}); d.held.add(r) {
			w.region(d, event.RegionAdd, r)
		} else {
			w.odd++
		}
	case SegmentFree, SegmentUnmap:
		gone, rest := d.held.cut(span{e.Addr, e.Size})
		if len(gone) == 0 {
			w.odd++
		}
		for _, r := range gone {
			w.region(d, event.RegionRemove, r)
		}
		for _, r := range rest {
			w.region(d, event.RegionAdd, r)
		}
	case OOM:
		w.oom(d, e)
	case Snap:
		w.emit(event.Event{Kind: event.Annotation, Text: w.strs.ID("snapshot taken")})
	default:
	}
}

// maxMaps is how many failures get the map of their moment.
const maxMaps = 16

func (w *teller) oom(d *device, e *Event) {
	out := event.Event{
		Kind: event.OutOfMemory, Device: event.DeviceID(d.id), Allocator: event.AllocatorID(d.id),
		Size: w.settings.Round(max(e.Size, 1)), Requested: e.Size, Op: w.op(e.Stack), Tensor: w.stack(e.Stack), Stream: streamID(e.Stream),
	}
	if w.ooms++; w.ooms <= maxMaps {
		out.Text = w.strs.ID(d.chunkMap().Encode())
	}
	w.emit(out)
	w.emit(event.Event{Kind: event.Log, Device: event.DeviceID(d.id), Flags: event.Failure, Text: w.strs.ID(fmt.Sprintf(
		"out of memory: %d bytes asked for, the device had %d free", e.Size, e.Addr))})
}

// chunkMap is what the device's allocator holds at this moment.
func (d *device) chunkMap() event.ChunkMap {
	var blocks []span
	for i := range d.known.list {
		if x := &d.known.list[i]; x.size != 0 {
			blocks = append(blocks, span{x.addr, x.size})
		}
	}
	sort.Slice(blocks, func(i, j int) bool { return blocks[i].addr < blocks[j].addr })
	m := make(event.ChunkMap, 0, len(d.held))
	for _, r := range d.held {
		g := event.Region{Address: r.addr, Size: r.size}
		at := r.addr
		for len(blocks) > 0 && blocks[0].addr < r.end() {
			b := blocks[0]
			blocks = blocks[1:]
			if b.addr < at || b.end() > r.end() {
				continue
			}
			if b.addr > at {
				g.Chunks = append(g.Chunks, event.Chunk{Address: at, Size: int64(b.addr - at)})
			}
			g.Chunks = append(g.Chunks, event.Chunk{Address: b.addr, Size: b.size, Requested: b.size, InUse: true})
			at = b.end()
		}
		if at < r.end() {
			g.Chunks = append(g.Chunks, event.Chunk{Address: at, Size: int64(r.end() - at)})
		}
		m = append(m, g)
	}
	return m
}

func (w *teller) end() {
	if w.s.Cut != "" {
		w.emit(event.Event{Kind: event.Annotation, Text: w.strs.ID("The file is cut, and what is told of its end is not whole: " + w.s.Cut)})
	}
	if w.odd > 0 {
		w.emit(event.Event{Kind: event.Annotation, Text: w.strs.ID(fmt.Sprintf("%d events contradict those before them", w.odd))})
	}
	w.emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone), Text: w.strs.ID("end of the snapshot")})
}
