package chrometrace

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// maxPlaces keeps ids small in a file that makes up names.
const maxPlaces = 256

// Emit tells the trace as the events of a timeline: copies, PyTorch's
// allocations and frees, and counters, by time from 0. What was allocated
// before the trace is one block a device, named so, where the totals tell it.
func (t *Trace) Emit(strs *event.Strings, sink event.Sink) {
	w := teller{t: t, strs: strs, names: []string{"/host:CPU"}, at: map[string]int{"/host:CPU": 0}}
	w.copies()
	w.memory()
	for i := range t.Counters {
		c := &t.Counters[i]
		name := t.Text(c.Name) + " " + t.Text(c.Series)
		if c.Value > -1<<62 && c.Value < 1<<62 {
			w.add(event.Event{Kind: event.Sample, Op: strs.ID(name), Size: int64(c.Value)}, c.Time)
		}
	}
	w.flush(sink)
}

type teller struct {
	t     *Trace
	strs  *event.Strings
	names []string // of devices, by id; 0 is the host
	at    map[string]int
	list  []event.Event
	id    uint64
	pools []pool // by id
}

// pool is an allocator: the one that the trace names, else PyTorch's of the
// device.
type pool struct {
	device event.DeviceID
	name   uint32 // number of a text; 0 where the trace names none
}

// pool is the number of an allocator.
func (w *teller) pool(device event.DeviceID, name uint32) event.AllocatorID {
	p := pool{device, name}
	if i := slices.Index(w.pools, p); i >= 0 {
		return event.AllocatorID(i)
	}
	if len(w.pools) == maxPlaces {
		return 0
	}
	w.pools = append(w.pools, p)
	return event.AllocatorID(len(w.pools) - 1)
}

func (w *teller) device(name string) event.DeviceID {
	if i, ok := w.at[name]; ok {
		return event.DeviceID(i)
	}
	if len(w.names) == maxPlaces {
		return 0
	}
	w.at[name] = len(w.names)
	w.names = append(w.names, name)
	return event.DeviceID(len(w.names) - 1)
}

func (w *teller) add(e event.Event, at int64) {
	e.Time, e.Step = min(max(at, -1<<58), 1<<61), event.NoStep
	w.list = append(w.list, e)
}

func (w *teller) copies() {
	process := map[uint32]string{}
	for _, p := range w.t.Processes {
		process[p.ID] = w.t.Text(p.Name)
	}
	for i := range w.t.Copies {
		c := &w.t.Copies[i]
		name := w.t.Text(c.Name)
		if !c.Device || strings.HasPrefix(name, "Memset") {
			continue
		}
		device := process[c.Process]
		if !strings.HasPrefix(device, "/device:") {
			device = "/device:GPU:" + w.t.Text(c.Process)
		}
		dev := w.device(device)
		e := event.Event{Kind: event.TransferBegin, Device: dev, Peer: dev, Stream: event.StreamD2D, Size: c.Bytes}
		switch {
		case IsH2D(name):
			e.Device, e.Stream = 0, event.StreamH2D
		case IsD2H(name):
			e.Peer, e.Stream = 0, event.StreamD2H
		}
		if strings.Contains(name, "Pinned") {
			e.Flags = event.Pinned
		}
		w.id++
		e.ID = w.id
		w.add(e, c.Start)
		e.Kind = event.TransferEnd
		w.add(e, c.Start+max(c.Duration, 0))
	}
}

func (w *teller) memory() {
	type key struct {
		pool event.AllocatorID
		addr uint64
	}
	open := map[key]int64{}
	started := map[event.DeviceID]bool{}
	for i := range w.t.Memory {
		m := &w.t.Memory[i]
		name := "/host:CPU"
		if m.DeviceType != 0 {
			name = "/device:GPU:" + strconv.Itoa(int(m.DeviceID))
		}
		d := w.device(name)
		e := event.Event{Device: d, Allocator: w.pool(d, m.Allocator), Address: m.Address}
		if !started[d] {
			started[d] = true
			if before := m.Allocated - m.Bytes; m.Allocated >= 0 && before > 0 {
				b := e
				b.Kind, b.Address, b.Size, b.Requested, b.Op = event.Alloc, 0, before, before, w.strs.ID("before the trace")
				w.add(b, m.Time)
			}
		}
		k := key{e.Allocator, m.Address}
		if m.Bytes < 0 {
			n, ok := open[k]
			if !ok {
				continue // of a block from before: it stays a part of that one
			}
			delete(open, k)
			e.Kind, e.Size = event.Free, n
		} else {
			if n, ok := open[k]; ok { // its free was lost
				f := e
				f.Kind, f.Size = event.Free, n
				w.add(f, m.Time)
			}
			open[k] = m.Bytes
			e.Kind, e.Size, e.Requested = event.Alloc, max(m.Bytes, 1), max(m.Bytes, 1)
			w.ours(m, &e)
		}
		w.add(e, m.Time)
	}
}

// ours takes over what only the trace of a timeline tells of an allocation.
func (w *teller) ours(m *Memory, e *event.Event) {
	t := w.t
	if m.Requested > 0 && m.Requested <= e.Size {
		e.Requested = m.Requested
	}
	e.Op, e.Tensor = w.strs.ID(t.Text(m.Op)), w.strs.ID(t.Text(m.Tensor))
	if c, ok := event.ParseCategory(t.Text(m.Category)); ok {
		e.Category = c
	}
}

func (w *teller) flush(sink event.Sink) {
	sort.SliceStable(w.list, func(i, j int) bool { return w.list[i].Time < w.list[j].Time })
	tell := func(e event.Event) {
		e.Step = event.NoStep
		sink.Emit(&e)
	}
	for i, name := range w.names {
		kind := "gpu"
		if i == 0 {
			kind = "cpu"
		}
		tell(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(i), Text: w.strs.ID(event.Fields{
			{Key: "name", Value: name}, {Key: "kind", Value: kind},
		}.Encode())})
	}
	for i, p := range w.pools {
		name := w.t.Text(p.name)
		if name == "" {
			name = "torch on " + w.names[p.device]
		}
		tell(event.Event{Kind: event.AllocatorFacts, Device: p.device, Allocator: event.AllocatorID(i), Text: w.strs.ID(event.Fields{
			{Key: "name", Value: name}, {Key: "kind", Value: "trace"},
		}.Encode())})
	}
	last := int64(0)
	for i := range w.list {
		e := w.list[i]
		e.Time = min(e.Time-w.list[0].Time, 1<<58)
		last = e.Time
		sink.Emit(&e)
	}
	tell(event.Event{Kind: event.End, Time: last, Cause: uint8(event.EndDone), Text: w.strs.ID("end of the trace")})
}
