package bridge

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/store"
)

// instant is the distance between two failures of one log on the time axis.
// A dump is a moment without a clock that can be trusted, so they are shown
// one after the other.
const instant = 1_000_000

// Log opens the text of an out-of-memory log in a slot: every failure becomes
// the chunks it listed and an out-of-memory event. The answer tells what was
// found, or that nothing was.
func (s *Session) Log(n int, name, text string) []byte {
	s.out.b = s.out.b[:0]
	l, err := bfclog.Read(strings.NewReader(text))
	if err != nil {
		s.fail("This text holds no out-of-memory report that can be read: expected lines such as “Allocator (GPU_0_bfc) ran out of memory trying to allocate …”.")
		return s.out.b
	}
	sl := s.reset(n, name, "log")
	s.kept[n] = nil
	sl.done = true
	sl.tl = store.New(nil)
	b := &dumpEvents{strings: sl.tl.Strings(), devices: map[string]event.DeviceID{}}
	for _, d := range l.Dumps {
		r := analysis.FromDump(d)
		sl.logs = append(sl.logs, r)
		b.add(r)
	}
	sl.tl.Append(b.events)
	if l.Cut != "" {
		sl.warn = l.Cut
	}
	a := s.out.open().key("dumps").num(int64(len(l.Dumps)))
	if sl.warn != "" {
		a.key("warning").text(sl.warn)
	}
	s.out = *a.close()
	return s.out.b
}

// dumpEvents turns readings into events: facts, regions, blocks, the failure.
type dumpEvents struct {
	strings *event.Strings
	devices map[string]event.DeviceID
	events  []event.Event
	live    map[event.DeviceID][]event.Event // what the last dump of a device left
	at      int64
}

func (b *dumpEvents) put(e event.Event) {
	e.Time, e.Step = b.at, event.NoStep
	b.events = append(b.events, e)
}

func (b *dumpEvents) add(r *analysis.Reading) {
	dev := b.device(r)
	b.clear(dev)
	if b.live == nil {
		b.live = map[event.DeviceID][]event.Event{}
	}
	for _, reg := range r.Map {
		e := event.Event{Kind: event.RegionAdd, Device: dev, Allocator: event.AllocatorID(dev), Address: reg.Address, Size: reg.Size, Requested: reg.Size}
		b.put(e)
		e.Kind = event.RegionRemove
		held := []event.Event{e}
		for _, c := range reg.Chunks {
			if !c.InUse {
				continue
			}
			req := c.Requested
			if req <= 0 || req > c.Size {
				req = c.Size
			}
			e := event.Event{Kind: event.Alloc, Device: dev, Allocator: event.AllocatorID(dev), Address: c.Address, Size: c.Size, Requested: req}
			b.put(e)
			e.Kind = event.Free
			held = append(held, e)
		}
		b.live[dev] = append(b.live[dev], held...)
	}
	b.at += instant / 2
	b.put(event.Event{
		Kind: event.OutOfMemory, Device: dev, Allocator: event.AllocatorID(dev),
		Size: r.Rounded.Or(r.Requested).N, Requested: r.Requested.N, Op: b.strings.ID(firstOf(r.Op, r.ByOp)),
		Tensor: b.strings.ID(tensorWords(r)), Cause: uint8(r.Decision.Cause), Text: b.strings.ID(r.Map.Encode()),
	})
	b.at += instant / 2
	b.put(event.Event{Kind: event.Log, Device: dev, Flags: event.Failure, Text: b.strings.ID("line " + strconv.Itoa(r.Line) + ": " + string(r.Verdict))})
}

// listed reports whether the log lists every chunk of the failure that is
// shown at a time.
func (sl *slot) listed(t int64) bool {
	return len(sl.logs) > 0 && sl.logs[sl.dumpAt(t)].ListComplete
}

// dumpAt is the number of the failure that is shown at a time.
func (sl *slot) dumpAt(t int64) int { return max(0, min(int(t/instant), len(sl.logs)-1)) }

// clear frees what the last dump of the device showed, in the order that keeps
// blocks inside their regions.
func (b *dumpEvents) clear(dev event.DeviceID) {
	held := b.live[dev]
	for _, kind := range []event.Kind{event.Free, event.RegionRemove} {
		for _, e := range held {
			if e.Kind == kind {
				b.put(e)
			}
		}
	}
	delete(b.live, dev)
}

func (b *dumpEvents) device(r *analysis.Reading) event.DeviceID {
	name := firstOf(r.Allocator, "allocator")
	if id, ok := b.devices[name]; ok {
		return id
	}
	id := event.DeviceID(len(b.devices))
	b.devices[name] = id
	kind := "gpu"
	if r.HostPinned {
		kind = "cpu"
	}
	facts := event.Fields{{Key: "name", Value: firstOf(r.Device, name)}, {Key: "kind", Value: kind}}
	if r.DeviceTotal.Known {
		facts.Set("total", itoa(r.DeviceTotal.N))
	}
	b.put(event.Event{Kind: event.DeviceFacts, Device: id, Text: b.strings.ID(facts.Encode())})
	alloc := event.Fields{{Key: "name", Value: name}, {Key: "kind", Value: "bfc"}}
	limit := int64(0)
	if r.Limit.Known {
		limit = r.Limit.N
	}
	b.put(event.Event{Kind: event.AllocatorFacts, Device: id, Allocator: event.AllocatorID(id), Size: limit, Text: b.strings.ID(alloc.Encode())})
	return id
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func tensorWords(r *analysis.Reading) string {
	if len(r.Shape) == 0 {
		return ""
	}
	dims := make([]string, len(r.Shape))
	for i, n := range r.Shape {
		dims[i] = itoa(n)
	}
	return strings.TrimSpace(r.DType + " [" + strings.Join(dims, ",") + "]")
}
