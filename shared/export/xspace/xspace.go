// Package xspace writes a timeline as a profile of TensorFlow's, an XSpace
// message, so that the stock profiler shows the memory page that it would show of
// such a run: every allocation and free with the statistics of its allocator,
// the steps, and the copies between host and device.
//
// What the statistics are is decided in package profiler, which the page of
// Tideline's own is made from, too; here they get their places in the format.
// Ops are not written: the profiler takes them from device tracers. A profile is
// kept until it is closed, since its messages carry their lengths in front.
package xspace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"tideline/protocol/event"
	"tideline/shared/analysis/profiler"
)

// The fields that are written, by the numbers of the format.
const (
	spacePlane, spaceHost                                     = 1, 4
	planeName, planeLine, planeEvents, planeStats, planeIdent = 2, 3, 4, 5, 1
	lineIdent, lineName, lineEvent                            = 1, 2, 4
	eventMeta, eventOffset, eventDuration, eventStat          = 1, 2, 3, 4
	statMeta, statDouble, statInt, statText, statRef          = 1, 2, 4, 5, 7
	mapKey, mapValue                                          = 1, 2
	metaIdent, metaName                                       = 1, 2
)

// Writer makes a profile of events. It is an event.Sink; nothing is written
// before Close.
type Writer struct {
	w       io.Writer
	strs    *event.Strings
	rec     *profiler.Recorder
	devices map[event.DeviceID]*plane
	order   []event.DeviceID
	names   map[event.DeviceID]string
	open    map[uint64]event.Event // copies
	began   map[int32]int64        // steps, nanoseconds
	steps   []span
}

type span struct {
	from, to int64 // nanoseconds
	step     int32
}

// NewWriter makes one for the events of a run with these strings.
func NewWriter(w io.Writer, strs *event.Strings) *Writer {
	return &Writer{
		w: w, strs: strs, rec: profiler.NewRecorder(strs), devices: map[event.DeviceID]*plane{}, names: map[event.DeviceID]string{},
		open: map[uint64]event.Event{}, began: map[int32]int64{},
	}
}

// Emit implements event.Sink.
func (x *Writer) Emit(e *event.Event) {
	x.rec.Emit(e)
	switch e.Kind {
	case event.DeviceFacts:
		f, _ := event.ParseFields(x.strs.At(e.Text))
		if f.Text("kind") != "cpu" {
			x.names[e.Device] = f.Text("name")
			x.device(e.Device)
		}
	case event.StepBegin:
		x.began[e.Step] = e.Time
	case event.StepEnd:
		if from, ok := x.began[e.Step]; ok {
			delete(x.began, e.Step)
			x.steps = append(x.steps, span{from, e.Time, e.Step})
		}
	case event.TransferBegin:
		if e.Stream == event.StreamH2D || e.Stream == event.StreamD2H || e.Stream == event.StreamD2D {
			x.open[e.ID] = *e
		}
	case event.TransferEnd:
		if b, ok := x.open[e.ID]; ok {
			delete(x.open, e.ID)
			x.copied(&b, e.Time)
		}
	default:
	}
}

// device is the plane of an accelerator; nil for the host.
func (x *Writer) device(id event.DeviceID) *plane {
	if p, ok := x.devices[id]; ok {
		return p
	}
	name, ok := x.names[id]
	if !ok {
		return nil
	}
	p := newPlane("/device:" + strings.TrimPrefix(strings.TrimPrefix(name, "/"), "device:"))
	x.devices[id] = p
	x.order = append(x.order, id)
	return p
}

// copied tells a copy on the plane of the accelerator that it is to or from.
func (x *Writer) copied(b *event.Event, end int64) {
	p, name := x.device(b.Peer), "MemcpyH2D"
	switch b.Stream {
	case event.StreamD2H:
		p, name = x.device(b.Device), "MemcpyD2H"
	case event.StreamD2D:
		name = "MemcpyD2D"
	case event.StreamH2D, event.StreamCompute: // to the peer, as above
	}
	if p == nil {
		p = x.device(b.Device)
	}
	if p == nil {
		return
	}
	var m message
	m.number(eventMeta, p.event(name))
	m.number(eventOffset, b.Time*1000)
	m.number(eventDuration, (end-b.Time)*1000)
	m.message(eventStat, p.text("memcpy_details", fmt.Sprintf("size:%d dest:0 async:1", b.Size)))
	if op := x.strs.At(b.Op); op != "" {
		m.message(eventStat, p.ref("annotation", op))
	}
	p.line("Stream #"+fmt.Sprint(20+int(b.Stream))+"("+name+")").message(lineEvent, m)
}

// Close writes the profile.
func (x *Writer) Close() error {
	w := bufio.NewWriter(x.w)
	put := func(field protowire.Number, m message) {
		head := protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.BytesType), uint64(len(m)))
		_, _ = w.Write(head) // Flush returns the first error
		_, _ = w.Write(m)
	}
	put(spacePlane, x.host().bytes(1))
	for i, id := range x.order {
		p := x.devices[id]
		for _, s := range x.steps {
			var m message
			m.number(eventMeta, p.event(fmt.Sprint(s.step)))
			m.number(eventOffset, s.from*1000)
			m.number(eventDuration, (s.to-s.from)*1000)
			m.message(eventStat, p.number("group_id", int64(s.step)))
			p.line("Steps").message(lineEvent, m)
		}
		put(spacePlane, p.bytes(int64(2+i)))
	}
	put(spaceHost, message("tideline"))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// host is the plane of the host's threads, with all that happened to memory on
// one line: the profiler goes by the order of lines, and this one's is the run's.
func (x *Writer) host() *plane {
	p := newPlane("/host:CPU")
	l := p.line("tideline")
	events := x.rec.Events()
	for i := range events {
		e := &events[i]
		name := "MemoryAllocation"
		if e.Free {
			name = "MemoryDeallocation"
		}
		var m message
		m.number(eventMeta, p.event(name))
		m.number(eventOffset, e.Time)
		for _, s := range []struct {
			name string
			n    int64
			gone bool // not known, which is not 0
		}{
			{"bytes_reserved", e.Stack, false},
			{"bytes_allocated", e.Heap, false},
			{"bytes_available", e.Available, e.NoAvailable},
			{"peak_bytes_in_use", e.PeakInUse, false},
			{"requested_bytes", e.Requested, false},
			{"allocation_bytes", e.Allocated, false},
			{"addr", int64(e.Address), false},
		} {
			if !s.gone {
				m.message(eventStat, p.number(s.name, s.n))
			}
		}
		m.message(eventStat, p.ref("allocator_name", e.Memory))
		if !e.NoFragmentation {
			m.message(eventStat, p.double("fragmentation", e.Fragmentation))
		}
		if !e.Free {
			m.message(eventStat, p.ref("tf_op", e.Op))
			m.message(eventStat, p.ref("region_type", e.Region))
		}
		if e.Step != profiler.NoStep {
			m.message(eventStat, p.number("group_id", e.Step))
		}
		l.message(lineEvent, m)
	}
	return p
}

// message is a message as it grows.
type message []byte

func (m *message) number(field protowire.Number, n int64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(n))
}

func (m *message) message(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (m *message) text(field protowire.Number, s string) {
	m.message(field, []byte(strings.ToValidUTF8(s, "\ufffd"))) // the format has UTF-8 only
}

// plane is a device or the host, with the numbers of its events' and statistics'
// names, from 1.
type plane struct {
	name          string
	lines         map[string]*message
	order         []string
	events, stats names
}

type names struct {
	number map[string]int64
	list   []string
}

func (n *names) of(s string) int64 {
	id, ok := n.number[s]
	if !ok {
		n.list = append(n.list, s)
		id = int64(len(n.list))
		n.number[s] = id
	}
	return id
}

func newPlane(name string) *plane {
	return &plane{name: name, lines: map[string]*message{}, events: names{number: map[string]int64{}}, stats: names{number: map[string]int64{}}}
}

func (p *plane) event(name string) int64 { return p.events.of(name) }

func (p *plane) line(name string) *message {
	l, ok := p.lines[name]
	if !ok {
		l = new(message)
		p.lines[name] = l
		p.order = append(p.order, name)
	}
	return l
}

func (p *plane) number(name string, n int64) (m message) {
	m.number(statMeta, p.stats.of(name))
	m.number(statInt, n)
	return m
}

func (p *plane) double(name string, f float64) (m message) {
	m.number(statMeta, p.stats.of(name))
	return protowire.AppendFixed64(protowire.AppendTag(m, statDouble, protowire.Fixed64Type), math.Float64bits(f))
}

func (p *plane) text(name, s string) (m message) {
	m.number(statMeta, p.stats.of(name))
	m.text(statText, s)
	return m
}

// ref is a text that occurs again and again: the name of a statistic that is
// none.
func (p *plane) ref(name, s string) (m message) {
	m.number(statMeta, p.stats.of(name))
	m.number(statRef, p.stats.of(s))
	return m
}

// bytes is the plane's message.
func (p *plane) bytes(id int64) (m message) {
	m.number(planeIdent, id)
	m.text(planeName, p.name)
	for i, name := range p.order {
		var l message
		l.number(lineIdent, int64(i+1))
		l.text(lineName, name)
		m.message(planeLine, append(l, *p.lines[name]...))
	}
	m.metadata(planeEvents, &p.events)
	m.metadata(planeStats, &p.stats)
	return m
}

func (m *message) metadata(field protowire.Number, n *names) {
	for i, name := range n.list {
		var meta, entry message
		meta.number(metaIdent, int64(i+1))
		meta.text(metaName, name)
		entry.number(mapKey, int64(i+1))
		entry.message(mapValue, meta)
		m.message(field, entry)
	}
}
