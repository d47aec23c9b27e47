package xspace

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/profiler"
)

// maxPlaces keeps ids small in a file that makes up names.
const maxPlaces = 256

// Emit tells the profile as the events of a timeline: allocations and frees,
// copies, ops and steps, by time. What was in use before the first event is one
// block, made up in address and named so; blocks that are freed in the window
// but were made before it have their true address and size.
func (s *Space) Emit(strs *event.Strings, sink event.Sink) {
	w := teller{s: s, strs: strs, sink: sink}
	w.places()
	w.memory()
	w.copies()
	w.spans()
	w.flush()
}

type teller struct {
	s       *Space
	strs    *event.Strings
	sink    event.Sink
	devices []string // by id; 0 is the host
	pools   []uint32 // allocator's text, by id
	list    []event.Event
	id      uint64
}

func (w *teller) device(name string) event.DeviceID {
	if i := slices.Index(w.devices, name); i >= 0 {
		return event.DeviceID(i)
	}
	if len(w.devices) == maxPlaces {
		return 0
	}
	w.devices = append(w.devices, name)
	return event.DeviceID(len(w.devices) - 1)
}

// ofHost says whether an allocator's memory is the host's: gpu_host_bfc, cpu,
// mklcpu, bfc_cpu_allocator_for_gpu.
func ofHost(allocator string) bool {
	return strings.Contains(allocator, "host") || strings.Contains(allocator, "cpu")
}

// deviceOf is the device of an allocator: GPU_1_bfc is on GPU 1, the host's is
// not on any, and a number is that of the device.
func deviceOf(allocator string) string {
	if ofHost(allocator) {
		return "/host:CPU"
	}
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, allocator)
	if digits == "" {
		digits = "0"
	}
	if strings.Contains(allocator, "TPU") || strings.Contains(allocator, "tpu") {
		return "/device:TPU:" + digits
	}
	return "/device:GPU:" + digits
}

func (w *teller) places() {
	w.devices = []string{"/host:CPU"}
	for i := range w.s.Planes {
		if p := &w.s.Planes[i]; p.IsDevice() {
			w.device(p.Name)
		}
	}
	for i := range w.s.Memory {
		m := &w.s.Memory[i]
		if !slices.Contains(w.pools, m.Allocator) && len(w.pools) < maxPlaces {
			w.pools = append(w.pools, m.Allocator)
			w.device(deviceOf(w.s.Text(m.Allocator)))
		}
	}
}

func (w *teller) add(e event.Event, ps int64) {
	e.Time = min(max(ps/1000, -1<<58), 1<<58)
	if e.Kind != event.StepBegin && e.Kind != event.StepEnd && e.Step == 0 {
		e.Step = event.NoStep
	}
	w.list = append(w.list, e)
}

func (w *teller) text(n uint32) event.StringID {
	if n == 0 {
		return 0
	}
	return w.strs.ID(w.s.Text(n))
}

// categories of the profiler's region types, as far as one follows.
var categories = map[string]event.Category{"temp": event.Temporary, "persist": event.Parameter}

func (w *teller) memory() {
	list := w.s.Sorted()
	type key struct {
		pool uint32
		addr uint64
	}
	open := map[key]bool{}
	started := map[uint32]bool{}
	early := map[uint32]int64{} // bytes of blocks from before the window
	var lead []Memory
	for i := range list {
		m := &list[i]
		k := key{m.Allocator, m.Address}
		if m.Free && !open[k] {
			lead = append(lead, *m)
			early[m.Allocator] += m.Allocated
		}
		open[k] = !m.Free
	}
	if len(list) == 0 {
		return
	}
	start := list[0].Time
	before := w.strs.ID("before the window")
	for _, m := range w.s.Windows() {
		n := w.s.number[m.Allocator]
		started[n] = true
		if rest := m.Before - early[n]; rest > 0 {
			w.block(event.Event{Kind: event.Alloc, Size: rest, Requested: rest, Op: before}, n, start)
		}
	}
	for i := range lead {
		m := &lead[i]
		w.block(event.Event{Kind: event.Alloc, Address: m.Address, Size: m.Allocated, Requested: m.Requested, Op: before}, m.Allocator, start)
	}
	for i := range list {
		m := &list[i]
		e := event.Event{Kind: event.Free, Address: m.Address, Size: m.Allocated, Requested: m.Requested}
		if !m.Free {
			e.Kind, e.Op, e.Tensor = event.Alloc, w.text(m.Op), w.text(m.Shape)
			e.Category = categories[w.s.Text(m.Region)]
		}
		w.block(e, m.Allocator, m.Time)
	}
}

func (w *teller) block(e event.Event, allocator uint32, at int64) {
	i := slices.Index(w.pools, allocator)
	if i < 0 {
		return
	}
	e.Device = w.device(deviceOf(w.s.Text(allocator)))
	e.Allocator = event.AllocatorID(i)
	w.add(e, at)
}

func (w *teller) copies() {
	for i := range w.s.Copies {
		c := &w.s.Copies[i]
		name := w.s.Text(c.Name)
		dev := w.device(w.s.Planes[c.Plane].Name)
		e := event.Event{Kind: event.TransferBegin, Device: dev, Peer: dev, Size: c.Bytes, Op: w.text(c.Op)}
		switch name {
		case "MemcpyH2D":
			e.Device, e.Stream = 0, event.StreamH2D
		case "MemcpyD2H":
			e.Peer, e.Stream = 0, event.StreamD2H
		case "Memset":
			continue
		default:
			e.Stream = event.StreamD2D
		}
		if strings.Contains(w.s.Text(c.Details), "kind_src:pinned") || strings.Contains(w.s.Text(c.Details), "kind_dst:pinned") {
			e.Flags = event.Pinned
		}
		w.pair(e, event.TransferEnd, c.Start, c.Duration)
	}
}

func (w *teller) pair(e event.Event, end event.Kind, at, duration int64) {
	w.id++
	e.ID = w.id
	w.add(e, at)
	e.Kind = end
	w.add(e, at+max(duration, 0))
}

func (w *teller) spans() {
	steps := int32(0)
	for i := range w.s.Spans {
		p := &w.s.Spans[i]
		e := event.Event{Kind: event.OpBegin, Device: w.device(w.s.Planes[p.Plane].Name), Op: w.text(p.Name)}
		if !p.Step {
			w.pair(e, event.OpEnd, p.Start, p.Duration)
			continue
		}
		if p.Plane != w.s.firstSteps() {
			continue // every device has the same steps
		}
		w.pair(event.Event{Kind: event.StepBegin, Step: steps}, event.StepEnd, p.Start, p.Duration)
		steps++
	}
}

func (s *Space) firstSteps() int32 {
	for i := range s.Spans {
		if s.Spans[i].Step {
			return s.Spans[i].Plane
		}
	}
	return -1
}

// flush tells everything by time, beginning at 0. Of equal times frees and
// ends come in the file's order.
func (w *teller) flush() {
	sort.SliceStable(w.list, func(i, j int) bool { return w.list[i].Time < w.list[j].Time })
	first, last := int64(0), int64(0)
	if len(w.list) > 0 {
		first = w.list[0].Time
	}
	tell := func(e event.Event) { w.sink.Emit(&e) }
	for i, name := range w.devices {
		kind := "gpu"
		if i == 0 {
			kind = "cpu"
		}
		tell(event.Event{Kind: event.DeviceFacts, Step: event.NoStep, Device: event.DeviceID(i), Text: w.strs.ID(event.Fields{
			{Key: "name", Value: name}, {Key: "kind", Value: kind},
		}.Encode())})
	}
	windows := w.s.Windows()
	for i, n := range w.pools {
		name := w.s.Text(n)
		limit := int64(0)
		facts := event.Fields{{Key: "name", Value: name}, {Key: "kind", Value: "bfc"}}
		for k := range windows {
			x := &windows[k]
			if x.Allocator != name {
				continue
			}
			if !x.Varies {
				limit = max(x.Capacity, 0)
			}
			if x.LifetimePeak > x.Peak.InUse {
				facts = append(facts, event.Field{Key: profiler.LifetimePeak, Value: strconv.FormatInt(x.LifetimePeak, 10)})
			}
		}
		tell(event.Event{
			Kind: event.AllocatorFacts, Step: event.NoStep, Device: w.device(deviceOf(name)), Allocator: event.AllocatorID(i), Size: limit,
			Text: w.strs.ID(facts.Encode()),
		})
	}
	for i := range w.list {
		w.list[i].Time -= first
		last = w.list[i].Time
		w.sink.Emit(&w.list[i])
	}
	for i := range windows {
		if n := windows[i].Unmatched; n > 0 {
			tell(event.Event{Kind: event.Annotation, Time: last, Step: event.NoStep, Text: w.strs.ID(fmt.Sprintf(
				"%s: %d blocks came from before the window; the op of what was in use then is not known", windows[i].Allocator, n))})
		}
	}
	tell(event.Event{Kind: event.End, Time: last, Step: event.NoStep, Cause: uint8(event.EndDone), Text: w.strs.ID("end of the profile")})
}
