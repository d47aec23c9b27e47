package chrometrace

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// Traffic is all device copies of one name.
type Traffic struct {
	Name     string
	Count    int
	Bytes    int64
	Duration int64 // nanoseconds
}

// Traffic sums the copies of the devices' rows by name, in the order of their
// first.
func (t *Trace) Traffic() []Traffic {
	var out []Traffic
	at := map[uint32]int{}
	for i := range t.Copies {
		c := &t.Copies[i]
		if !c.Device {
			continue
		}
		k, ok := at[c.Name]
		if !ok {
			k = len(out)
			at[c.Name] = k
			out = append(out, Traffic{Name: t.Text(c.Name)})
		}
		out[k].Count++
		out[k].Bytes += c.Bytes
		out[k].Duration += c.Duration
	}
	return out
}

// The beginnings of copies' names: of TensorFlow's traces, of PyTorch's on CUDA,
// and on ROCm.
var (
	toDevice = []string{"MemcpyH2D", "Memcpy HtoD", "CopyHostToDevice"}
	toHost   = []string{"MemcpyD2H", "Memcpy DtoH", "CopyDeviceToHost"}
)

// IsH2D reports whether a copy of that name goes from the host to a device.
func IsH2D(name string) bool { return begins(name, toDevice) }

// IsD2H reports whether a copy of that name goes from a device to the host.
func IsD2H(name string) bool { return begins(name, toHost) }

func begins(name string, list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(name, s) })
}

func micros(ns int64) float64 { return float64(ns) / 1000 }

func round3(f float64) float64 { return math.Round(f*1000) / 1000 }

// ThreadName is the name of a row, or its id where it has none.
func (t *Trace) ThreadName(process, thread uint32) string {
	for _, x := range t.Threads {
		if x.Process == process && x.ID == thread {
			return t.Text(x.Name)
		}
	}
	return t.Text(thread)
}

// Reading is what the trace says about memory and copies.
func (t *Trace) Reading() reading.Reading {
	r := reading.Reading{Kind: "chrome-trace", Name: "Chrome trace", Verdict: "timeline"}
	f := &r.Facts
	f.Text("written_by", t.Flavour.String())
	f.Text("display_time_unit", t.Unit)
	f.Text("time_field_unit", "us")
	f.Int("events", int64(t.Events))
	var processes reading.Facts
	for _, p := range t.Processes {
		processes.Text(t.Text(p.ID), t.Text(p.Name))
	}
	f.Set("processes", reading.Object(processes))
	t.copyFacts(&r)
	f.Bool("last_event_is_empty_object", t.LastEmpty)
	t.memoryFacts(&r)
	f.Int("counter_values", int64(len(t.Counters)))
	if r.Why == "" {
		r.Why = t.without()
	}
	return r
}

// without says what a trace tells that has no copy.
func (t *Trace) without() string {
	peak := int64(-1)
	name := ""
	for _, d := range t.Devices() {
		if d.Peak > peak {
			peak, name = d.Peak, d.Name()
		}
	}
	switch {
	case peak >= 0:
		return fmt.Sprintf("At most %s are allocated on %s. No copy between host and device is in the trace.", event.FormatBytes(peak), name)
	case len(t.Counters) > 0:
		return fmt.Sprintf("The trace has counters (values: %d); no copy and no allocation is in it.", len(t.Counters))
	}
	return "No copy and no allocation is in the trace: it says nothing of memory."
}

func (t *Trace) copyFacts(r *reading.Reading) {
	f := &r.Facts
	var copies reading.Facts
	var h2d Traffic
	for _, x := range t.Traffic() {
		var c reading.Facts
		c.Int("count", int64(x.Count))
		c.Int("bytes", x.Bytes)
		c.Float("duration_us", micros(x.Duration))
		copies.Set(x.Name, reading.Object(c))
		if IsH2D(x.Name) {
			h2d.Bytes += x.Bytes
			h2d.Duration += x.Duration
		}
		rate := 0.0
		if x.Duration > 0 {
			rate = float64(x.Bytes) / float64(x.Duration)
		}
		r.Row(x.Name, fmt.Sprintf("%d copies, %s in %.3f ms, %.2f GB/s", x.Count, event.FormatBytes(x.Bytes), micros(x.Duration)/1000, rate))
	}
	f.Set("device_copies", reading.Object(copies))
	host, largest := 0, -1
	for i := range t.Copies {
		c := &t.Copies[i]
		if !c.Device {
			host++
		} else if largest < 0 || c.Bytes > t.Copies[largest].Bytes {
			largest = i
		}
	}
	f.Int("host_side_duplicate_events", int64(host))
	f.Int("copy_events_total", int64(len(t.Copies)))
	if largest >= 0 {
		c := &t.Copies[largest]
		var l reading.Facts
		l.Text("name", t.Text(c.Name))
		l.Int("bytes", c.Bytes)
		l.Float("duration_us", micros(c.Duration))
		l.Text("stream", t.ThreadName(c.Process, c.Thread))
		f.Set("largest_copy", reading.Object(l))
		r.Why = fmt.Sprintf("The largest copy is one %s of %d bytes taking %.3f ms on %s.",
			t.Text(c.Name), c.Bytes, micros(c.Duration)/1000, strings.TrimSpace(t.ThreadName(c.Process, c.Thread)))
	} else {
		f.Null("largest_copy")
	}
	f.FloatIf("h2d_gb_s", round3(float64(h2d.Bytes)/float64(max(h2d.Duration, 1))), h2d.Duration > 0)
	if host > 0 {
		r.Open = append(r.Open, fmt.Sprintf("%d rows of the host are launches of the same copies: they are not counted.", host))
	}
}

// Device is what the [memory] instants tell of one device. Bytes.
type Device struct {
	Type, ID      int32
	Allocations   int
	Frees         int
	Allocated     int64 // asked for, in all
	Freed         int64
	Peak          int64 // highest total allocated; -1 where the file has no totals
	PeakReserved  int64
	First, Last   int64 // total allocated after the first and the last event
	LargestBytes  int64
	Live          int // allocations that were not freed in the trace
	LiveBytes     int64
	UnmatchedFree int // frees of what was allocated before
}

// Name is the device's name.
func (d *Device) Name() string {
	if d.Type == 0 {
		return "cpu"
	}
	return fmt.Sprintf("gpu:%d", d.ID)
}

// Devices sums the [memory] instants, in the order of the devices' first.
func (t *Trace) Devices() []Device {
	type key struct{ kind, id int32 }
	at := map[key]int{}
	var out []Device
	var open []map[uint64]int64
	for i := range t.Memory {
		m := &t.Memory[i]
		k, ok := at[key{m.DeviceType, m.DeviceID}]
		if !ok {
			k = len(out)
			at[key{m.DeviceType, m.DeviceID}] = k
			out = append(out, Device{Type: m.DeviceType, ID: m.DeviceID, Peak: -1, PeakReserved: -1, First: m.Allocated})
			open = append(open, map[uint64]int64{})
		}
		d := &out[k]
		d.Last = m.Allocated
		d.Peak, d.PeakReserved = max(d.Peak, m.Allocated), max(d.PeakReserved, m.Reserved)
		if m.Bytes < 0 {
			d.Frees++
			d.Freed -= m.Bytes
			if _, ok := open[k][m.Address]; !ok {
				d.UnmatchedFree++
			}
			delete(open[k], m.Address)
			continue
		}
		d.Allocations++
		d.Allocated += m.Bytes
		d.LargestBytes = max(d.LargestBytes, m.Bytes)
		open[k][m.Address] = m.Bytes
	}
	for k := range out {
		for _, n := range open[k] {
			out[k].Live++
			out[k].LiveBytes += n
		}
	}
	return out
}

func (t *Trace) memoryFacts(r *reading.Reading) {
	var list []reading.Value
	for _, d := range t.Devices() {
		var f reading.Facts
		f.Text("device", d.Name())
		f.Int("allocations", int64(d.Allocations))
		f.Int("frees", int64(d.Frees))
		f.Int("frees_without_seen_allocation", int64(d.UnmatchedFree))
		f.Int("allocated_bytes", d.Allocated)
		f.Int("freed_bytes", d.Freed)
		f.IntIf("peak_allocated_bytes", d.Peak, d.Peak >= 0)
		f.IntIf("peak_reserved_bytes", d.PeakReserved, d.PeakReserved >= 0)
		f.IntIf("first_allocated_bytes", d.First, d.First >= 0)
		f.IntIf("last_allocated_bytes", d.Last, d.Last >= 0)
		f.Int("largest_allocation_bytes", d.LargestBytes)
		f.Int("still_live_at_end", int64(d.Live))
		f.Int("still_live_bytes", d.LiveBytes)
		list = append(list, reading.Object(f))
		peak := "not told"
		if d.Peak >= 0 {
			peak = event.FormatBytes(d.Peak)
		}
		r.Row(d.Name()+" peak allocated", peak)
	}
	r.Facts.Set("memory", reading.List(list...))
	switch {
	case len(list) > 0:
	case t.Flavour == PyTorch:
		r.Open = append(r.Open, "The trace has no memory events: it was recorded without profile_memory=True.")
	case t.Flavour == TensorFlow:
		r.Open = append(r.Open, "Allocations are not in this file: they are in the profile beside it (*.xplane.pb).")
	}
}
